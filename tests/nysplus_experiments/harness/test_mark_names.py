"""Names stand beside their marks and cover nothing."""

from __future__ import annotations

import numpy as np
import pytest

TEXT = {"color": "black", "fontsize": 10}


def panel(x, y):
    """Return axes of 0 to 1 with marks."""
    pytest.importorskip("matplotlib")
    from nysplus_experiments.harness import figures

    _, (ax,) = figures.new(1)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.plot(x, y, linestyle="none", marker="o")
    return ax


def boxes(ax):
    """Return the corners of the texts in pixels."""
    from matplotlib.text import Text

    ax.figure.draw_without_rendering()
    return [Text.get_window_extent(text).get_points() for text in ax.texts]


def name_marks(ax, names):
    from nysplus_experiments.harness.mark_names import name_marks

    name_marks(ax, names, **TEXT)


def test_a_free_mark_has_its_name_on_the_right():
    ax = panel([0.5], [0.5])
    name_marks(ax, [("name", 0.5, 0.5)])
    ((low, high),) = boxes(ax)
    x, y = ax.transData.transform((0.5, 0.5))
    assert x < low[0] < x + 30
    assert low[1] < y < high[1]


def test_names_cover_no_marks_and_stay_in_the_panel():
    x, y = np.array([0.9, 0.5, 0.55, 0.5]), np.array([0.9, 0.5, 0.5, 0.55])
    ax = panel(x, y)
    name_marks(ax, [(f"name {i}", *place) for i, place in enumerate(zip(x, y, strict=True))])
    frame = ax.get_window_extent()
    marks = ax.transData.transform(np.column_stack([x, y]))
    for low, high in boxes(ax):
        assert (low >= frame.p0).all()
        assert (high <= frame.p1).all()
        assert not ((marks > low) & (marks < high)).all(axis=1).any()


def test_a_name_without_room_has_a_line_to_its_mark():
    ring = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ax = panel(0.5 + 0.07 * np.cos(ring), 0.5 + 0.07 * np.sin(ring))
    name_marks(ax, [("name", 0.5, 0.5)])
    assert [text.arrow_patch is not None for text in ax.texts] == [True]
