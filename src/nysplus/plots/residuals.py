"""Residuals of predicted values."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.plots.style import BLUE, GREY, LABEL_SIZE, VERMILION, axes_or_new, label, legend_above

# Rows that are drawn as points at most, and groups of rows of about the same prediction.
MAX_POINTS, N_GROUPS = 2000, 10


class ResidualDisplay:
    """Errors of predicted values against the predictions.

    The line is the median error of groups of rows of about the same prediction, and nine of ten
    errors of a group are within the band. A line away from zero shows a bias, a band that widens
    errors that grow with the prediction.

    Parameters
    ----------
    predicted, residuals : ndarrays of shape (n_rows,)
        A residual is the true value minus the prediction.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib PathCollection
    line_ : matplotlib Line2D
        Medians of the groups.
    band_ : matplotlib collection

    Examples
    --------
    >>> import numpy as np
    >>> from nysplus.plots import ResidualDisplay
    >>> display = ResidualDisplay.from_predictions([1.0, 2.0, 3.5], [1.5, 2.0, 3.0])
    >>> display.residuals.tolist()
    [-0.5, 0.0, 0.5]
    """

    def __init__(self, predicted: Float, residuals: Float) -> None:
        self.predicted = predicted
        self.residuals = residuals

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> ResidualDisplay:
        """Predict rows that the model was not fitted to, and draw the errors.

        Parameters
        ----------
        estimator : fitted regressor with one output
        X, y : array-likes
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        ResidualDisplay
        """
        return cls.from_predictions(y, estimator.predict(X), ax=ax)

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, ax: Any = None) -> ResidualDisplay:
        """Draw the errors of given predictions.

        Parameters
        ----------
        y_true, y_pred : array-likes of shape (n_rows,)
        ax : matplotlib Axes, optional

        Returns
        -------
        ResidualDisplay
        """
        predicted = np.asarray(y_pred, dtype=np.float64)
        return cls(predicted, np.asarray(y_true, dtype=np.float64) - predicted).plot(ax)

    def plot(self, ax: Any = None) -> ResidualDisplay:
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax)
        order = np.argsort(self.predicted, kind="stable")
        some = order[:: -(-len(order) // MAX_POINTS)]
        self.points_ = ax.scatter(
            *(self.predicted[some], self.residuals[some], 9.0),
            color=BLUE,
            alpha=0.35,
            linewidths=0,
            rasterized=True,
            label=f"{len(some):,} rows",
        )
        groups = np.array_split(order, min(N_GROUPS, len(order)))
        middle = [np.median(self.predicted[group]) for group in groups]
        low, median, high = np.transpose(
            [np.quantile(self.residuals[group], [0.05, 0.5, 0.95]) for group in groups]
        )
        self.band_ = ax.fill_between(
            middle, low, high, color=VERMILION, alpha=0.18, linewidth=0, label="90 % of rows"
        )
        (self.line_,) = ax.plot(middle, median, color=VERMILION, linewidth=2, label="median")
        ax.axhline(0.0, color=GREY, linestyle="--", linewidth=1.5)
        label(ax, "predicted value", "true value − prediction")
        typical = float(np.median(np.abs(self.residuals)))
        ax.text(
            *(0.02, 0.02, f"median absolute error: {typical:.4g}"),
            transform=ax.transAxes,
            fontsize=LABEL_SIZE,
        )
        legend_above(ax, 3)
        self.ax_, self.figure_ = ax, ax.figure
        return self
