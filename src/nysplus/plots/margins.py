"""Histogram of margins."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.estimators import NystroemClassifier
from nysplus.plots.style import BLUE, GREY, VERMILION, axes_or_new, label, legend_above


class MarginDisplay:
    """Histogram of the margins of rows, with the rows that became landmarks marked.

    The margin of a row is the score of its class minus the highest score of another class, halved;
    of two classes, y f(x) with y = ±1. It is negative where the prediction is wrong.

    Parameters
    ----------
    margins : ndarray of shape (n_rows,)
    selected : ndarray of bool of shape (n_rows,), optional
        The marked rows.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
        All rows.
    selected_bars_ : matplotlib BarContainer or None
        The marked rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import MarginDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystroemClassifier(selection="negative-margin", random_state=0).fit(X, y)
    >>> display = MarginDisplay.from_estimator(model, X, y)
    >>> int(display.selected.sum())
    100
    """

    def __init__(self, margins: Float, selected: npt.NDArray[np.bool_] | None = None) -> None:
        self.margins = margins
        self.selected = selected

    @classmethod
    def from_estimator(
        cls, estimator: NystroemClassifier, X: Any, y: Any, *, bins: int = 40, ax: Any = None
    ) -> MarginDisplay:
        """Compute the margins of rows and draw them.

        Parameters
        ----------
        estimator : fitted classifier with a `decision_function`
            If it has `landmark_indices_` below the number of rows, X is taken to be the rows of
            the fit, and the selected rows are marked.
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        bins : int, default=40
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        MarginDisplay
        """
        indices = getattr(estimator, "landmark_indices_", None)
        scores = np.asarray(estimator.decision_function(X))
        if indices is not None and indices.max(initial=-1) >= len(scores):
            indices = None
        return cls.from_predictions(
            y, scores, classes=estimator.classes_, selected=indices, bins=bins, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores: Any,
        *,
        classes: Any = None,
        selected: Any = None,
        bins: int = 40,
        ax: Any = None,
    ) -> MarginDisplay:
        """Draw the margins of given scores.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
        scores : array-like of shape (n_rows,) or (n_rows, n_classes)
            As `decision_function` returns them.
        classes : array-like of shape (n_classes,), optional
            In the order of the scores; by default those of `y_true`, sorted.
        selected : array-like of int, optional
            Numbers of the rows to mark.
        bins : int, default=40
        ax : matplotlib Axes, optional

        Returns
        -------
        MarginDisplay
        """
        y, F = np.asarray(y_true), np.asarray(scores)
        names = np.unique(y) if classes is None else np.asarray(classes)
        marked = None
        if selected is not None:
            marked = np.zeros(len(y), dtype=bool)
            marked[np.asarray(selected)] = True
        return cls(margins_of(y, F, names), marked).plot(ax, bins=bins)

    def plot(self, ax: Any = None, *, bins: int = 40) -> MarginDisplay:
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.
        bins : int, default=40

        Returns
        -------
        self
        """
        ax = axes_or_new(ax)
        edges = np.histogram_bin_edges(self.margins, bins)
        wrong = 100 * float((self.margins < 0).mean())
        _, _, self.bars_ = ax.hist(
            self.margins,
            edges,
            color=BLUE,
            alpha=0.55,
            label=f"{len(self.margins):,} rows, {wrong:.1f} % of them wrong",
        )
        self.selected_bars_ = None
        if self.selected is not None:
            _, _, self.selected_bars_ = ax.hist(
                self.margins[self.selected],
                edges,
                color=VERMILION,
                edgecolor="black",
                linewidth=0.6,
                label=f"{int(self.selected.sum()):,} rows selected as landmarks",
            )
        ax.axvline(0.0, color=GREY, linestyle="--", linewidth=1.5)
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.7)  # a bar of a single row is visible
        label(ax, "margin (below 0: wrong class)", "rows per bar (log scale)")
        legend_above(ax, 1)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def margins_of(y: npt.NDArray[Any], scores: Float, classes: npt.NDArray[Any]) -> Float:
    """Return the margin of each row."""
    if scores.ndim == 1:
        return np.where(y == classes[-1], scores, -scores)
    rows, own = np.arange(len(y)), np.searchsorted(classes, y)
    others = scores.copy()
    others[rows, own] = -np.inf
    margins: Float = (scores[rows, own] - others.max(axis=1)) / 2.0
    return margins
