"""Importance of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.plots.style import BLUE, GREY, axes_or_new, label

# Columns that are drawn at most, and letters of a name.
MAX_COLUMNS, MAX_LETTERS = 15, 24


class ImportanceDisplay:
    """Loss of score where the entries of a column are permuted, with 95 % intervals.

    The columns are sorted by their importance, and at most fifteen of them are drawn.

    Parameters
    ----------
    names : sequence of str
    losses : ndarray of shape (n_columns,)
        In units of the score.
    intervals : ndarray of shape (n_columns, 2)
        Their 95 % intervals.
    metric : {"accuracy", "R²"}, default="accuracy"

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> import numpy as np
    >>> from nysplus.plots import ImportanceDisplay
    >>> losses, intervals = np.array([0.2, 0.01]), np.array([[0.15, 0.25], [-0.01, 0.03]])
    >>> display = ImportanceDisplay(["distance", "weight"], losses, intervals).plot()
    >>> [tick.get_text() for tick in display.ax_.get_yticklabels()]
    ['distance', 'weight']
    """

    def __init__(
        self, names: Sequence[str], losses: Float, intervals: Float, metric: str = "accuracy"
    ) -> None:
        self.names = names
        self.losses = losses
        self.intervals = intervals
        self.metric = metric

    def plot(self, ax: Any = None) -> ImportanceDisplay:
        """Draw the bars, the most important column at the top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        shown = np.argsort(-self.losses, kind="stable")[:MAX_COLUMNS]
        ax = axes_or_new(ax, 6.4, 1.5 + 0.34 * max(len(shown), 4))
        points = 100.0 if self.metric == "accuracy" else 1.0
        losses, bounds = points * self.losses[shown], points * self.intervals[shown]
        y = np.arange(len(shown))
        self.bars_ = ax.barh(
            y,
            losses,
            0.62,
            xerr=np.abs(bounds.T - losses),
            color=BLUE,
            ecolor=GREY,
            capsize=3,
        )
        ax.set_yticks(y, [_short(str(self.names[i])) for i in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.axvline(0.0, color=GREY, linewidth=1.0)
        unit = "accuracy (points)" if self.metric == "accuracy" else "R²"
        label(ax, f"loss of {unit}\nbars: 95 % interval", "")
        ax.grid(alpha=0.3, axis="x")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _short(name: str) -> str:
    return name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…"
