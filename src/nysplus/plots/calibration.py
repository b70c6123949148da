"""Reliability of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.plots.style import BLUE, GREY, LABEL_SIZE, TICK_SIZE, axes_or_new, label

# Standard deviations of a normal distribution to each side that have 95 % of it.
NORMAL_95 = 1.96


class ReliabilityDisplay:
    """Share of correct predictions against their probability, with 95 % intervals.

    Rows are sorted by the probability of the predicted class and divided into groups of equal
    size. Of any number of classes there is one curve. For one class against the others, use
    scikit-learn's ``CalibrationDisplay``, which accepts the same models.

    Parameters
    ----------
    confidence : ndarray of shape (n_groups,)
        Mean probability of the predicted class.
    correct : ndarray of shape (n_groups,)
        Share of rows whose predicted class is right.
    counts : ndarray of int of shape (n_groups,)
        Rows of each group.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
    band_ : matplotlib collection
        Wilson's 95 % intervals.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import ReliabilityDisplay
    >>> X, y = make_moons(1000, noise=0.4, random_state=0)
    >>> model = NystroemClassifier(n_components=20, random_state=0).fit(X[:500], y[:500])
    >>> display = ReliabilityDisplay.from_estimator(model, X[500:], y[500:], n_groups=5)
    >>> display.counts.tolist()
    [100, 100, 100, 100, 100]
    """

    def __init__(self, confidence: Float, correct: Float, counts: Any) -> None:
        self.confidence = confidence
        self.correct = correct
        self.counts = counts

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_groups: int = 10, ax: Any = None
    ) -> ReliabilityDisplay:
        """Compute the probabilities of rows that the model was not fitted to, and draw them.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : array-likes
        n_groups : int, default=10
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        P = estimator.predict_proba(X)
        return cls.from_predictions(y, P, classes=estimator.classes_, n_groups=n_groups, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, classes: Any = None, n_groups: int = 10, ax: Any = None
    ) -> ReliabilityDisplay:
        """Draw given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
        y_prob : array-like of shape (n_rows, n_classes)
        classes : array-like of shape (n_classes,), optional
            In the order of the columns; by default those of `y_true`, sorted.
        n_groups : int, default=10
        ax : matplotlib Axes, optional

        Returns
        -------
        ReliabilityDisplay
        """
        y, P = np.asarray(y_true), np.asarray(y_prob, dtype=np.float64)
        names = np.unique(y) if classes is None else np.asarray(classes)
        right, sure = names[P.argmax(axis=1)] == y, P.max(axis=1)
        groups = np.array_split(np.argsort(sure, kind="stable"), min(n_groups, len(y)))
        return cls(
            np.array([sure[group].mean() for group in groups]),
            np.array([right[group].mean() for group in groups]),
            np.array([len(group) for group in groups]),
        ).plot(ax)

    @property
    def calibration_error(self) -> float:
        """Mean distance between probability and share, weighted by rows."""
        return float(np.average(np.abs(self.confidence - self.correct), weights=self.counts))

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 5.4, 4.8)
        low, high = wilson_interval(self.correct, self.counts)
        sure = 100 * self.confidence
        least = min(sure.min(), 100 * low.min())
        least = max(0.0, 5.0 * np.floor(least / 5.0 - 0.4))
        ax.plot([least, 100], [least, 100], color=GREY, linestyle="--", label="ideal")
        self.band_ = ax.fill_between(
            sure, 100 * low, 100 * high, color=BLUE, alpha=0.2, linewidth=0, label="95 % interval"
        )
        (self.line_,) = ax.plot(
            sure,
            100 * self.correct,
            color=BLUE,
            marker="o",
            label=f"groups of {int(self.counts.min()):,} rows",
        )
        ax.set_xlim(least, 100.5)
        ax.set_ylim(least, 101)
        label(ax, "probability of the predicted class (%)", "correct predictions (%)")
        ax.set_title(
            f"mean calibration error: {100 * self.calibration_error:.1f} points",
            fontsize=LABEL_SIZE,
        )
        ax.grid(alpha=0.3)
        ax.legend(loc="lower right", fontsize=TICK_SIZE)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def wilson_interval(share: Any, count: Any) -> tuple[Any, Any]:
    """Return Wilson's 95 % interval of shares, which stays within 0 and 1."""
    z = NORMAL_95
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
