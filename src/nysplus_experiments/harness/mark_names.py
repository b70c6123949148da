"""Write names beside marks where they cover neither curves nor other names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

# Directions in which a name may stand from its mark, best first.
_DIRECTIONS = ((1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
# Points between a mark and its name. A line leads from a name that is farther away to its mark.
_NEAR, _FAR = 9, 26
_MARK = 13  # pixels from the middle of a mark to its edge, and from a name to what is beside it


def name_marks(ax: Any, names: Sequence[tuple[str, float, float]], **text: Any) -> None:
    """Write names, each with the position of its mark; the limits of the axes must be final."""
    ax.figure.draw_without_rendering()  # gives panels their size
    taken = np.concatenate([np.empty((0, 2)), *(_pixels(ax, line) for line in ax.lines)])
    for name, x, y in names:
        labels = [
            _label(ax, name, (x, y), distance, direction, **text)
            for distance in (_NEAR, _FAR)
            for direction in _DIRECTIONS
        ]
        boxes = [_box(label) for label in labels]
        covered = [_covered(box, taken, ax.get_window_extent()) for box in boxes]
        best = covered.index(min(covered))
        for label in labels[:best] + labels[best + 1 :]:
            label.remove()
        taken = np.concatenate([taken, _grid(boxes[best])])


def _label(
    ax: Any, name: str, mark: tuple[float, float], distance: int, direction: Any, **text: Any
) -> Any:
    right, up = direction
    # shrinkB keeps the end of the line visible outside the mark
    line = {"arrowstyle": "-", "color": text.get("color"), "shrinkA": 1, "shrinkB": 5}
    return ax.annotate(
        name,
        mark,
        (distance * right, distance * up),
        textcoords="offset points",
        ha=("center", "left", "right")[right],
        va=("center", "bottom", "top")[up],
        arrowprops=line if distance == _FAR else None,
        **text,
    )


def _pixels(ax: Any, line: Any) -> np.ndarray:
    """Return points of a line, close to each other, in pixels."""
    corners = ax.transData.transform(np.column_stack(line.get_data()).astype(float))
    if line.get_linestyle() in ("None", "none", "") or len(corners) < 2:
        return corners
    steps = np.linspace(0, 1, 50)[:, None]
    pairs = pairwise(corners)
    return np.concatenate([start + steps * (end - start) for start, end in pairs])


def _box(label: Any) -> np.ndarray:
    """Return the corners of a text in pixels, without the line to its mark."""
    from matplotlib.text import Text

    label.get_window_extent()  # moves the text to its offset from the mark
    return Text.get_window_extent(label).get_points()


def _covered(box: np.ndarray, taken: np.ndarray, frame: Any) -> float:
    """Return how much a text covers; a text that leaves the panel covers most."""
    if not ((box[0] >= frame.p0) & (box[1] <= frame.p1)).all():
        return np.inf
    inside = (taken > box[0] - _MARK) & (taken < box[1] + _MARK)
    return float(inside.all(axis=1).sum())


def _grid(box: np.ndarray) -> np.ndarray:
    """Return points all over a text."""
    x, y = (np.linspace(low, high, 12) for low, high in box.T)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
