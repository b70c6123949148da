"""The score against the number of landmarks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nysplus.curve import LandmarkCurve, landmark_curve
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.plots.style import (
    BLUE,
    TICK_SIZE,
    VERMILION,
    axes_or_new,
    check_matplotlib,
    kilobytes,
    label,
    legible,
)


class LandmarkCurveDisplay:
    """Score on held-out rows against the number of landmarks and the size in kilobytes.

    Parameters
    ----------
    curve : LandmarkCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The scores.
    band_ : matplotlib collection
        One standard error to each side.
    mark_ : matplotlib Line2D
        The recommended size.

    See Also
    --------
    landmark_curve : Computes the curve.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus.plots import LandmarkCurveDisplay
    >>> from nysplus import NystroemClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystroemClassifier(random_state=0)
    >>> display = LandmarkCurveDisplay.from_estimator(model, X, y, sizes=[10, 40, 160])
    >>> display.figure_.savefig("curve.png")  # doctest: +SKIP
    """

    def __init__(self, curve: LandmarkCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls,
        estimator: NystroemClassifier | NystroemRegressor,
        X: Any,
        y: Any,
        *,
        sizes: Iterable[int] | None = None,
        sample_weight: Any = None,
        test_size: float | int = 0.2,
        random_state: Any = None,
        ax: Any = None,
    ) -> LandmarkCurveDisplay:
        """Compute the curve of an estimator and draw it.

        Parameters
        ----------
        estimator : NystroemClassifier or NystroemRegressor
            Not changed.
        X, y, sizes, sample_weight, test_size, random_state
            As for :func:`~nysplus.landmark_curve`.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        LandmarkCurveDisplay
        """
        check_matplotlib()
        curve = landmark_curve(
            X,
            y,
            sizes,
            estimator=estimator,
            sample_weight=sample_weight,
            test_size=test_size,
            random_state=random_state,
        )
        return cls(curve).plot(ax)

    def plot(self, ax: Any = None) -> LandmarkCurveDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax)
        curve = self.curve
        percent = 100.0 if curve.metric == "accuracy" else 1.0
        scores, errors = percent * curve.scores, percent * curve.errors
        (self.line_,) = ax.plot(
            curve.sizes, scores, color=BLUE, marker="o", label="score on held-out rows"
        )
        self.band_ = ax.fill_between(
            curve.sizes,
            scores - errors,
            scores + errors,
            color=BLUE,
            alpha=0.2,
            linewidth=0,
            label="± one standard error",
        )
        at = int((curve.sizes == curve.recommended).argmax())
        (self.mark_,) = ax.plot(
            curve.sizes[at],
            scores[at],
            color=VERMILION,
            marker="D",
            markersize=11,
            linestyle="none",
            label=f"recommended: {curve.recommended} landmarks, {kilobytes(curve.bytes[at])} kB",
        )
        _label_axes(ax, curve)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _label_axes(ax: Any, curve: LandmarkCurve) -> None:
    """Put sizes and kilobytes below the horizontal axis, and name both axes."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set_xscale("log")
    shown = legible(curve.sizes)
    ax.xaxis.set_major_locator(FixedLocator([curve.sizes[i] for i in shown]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{curve.sizes[i]}\n{kilobytes(curve.bytes[i])}" for i in shown])
    unit = " (%)" if curve.metric == "accuracy" else ""
    label(ax, "landmarks\nkilobytes of the model", f"{curve.metric} on held-out rows{unit}")
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", fontsize=TICK_SIZE)
