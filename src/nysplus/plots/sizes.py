"""The score against the bytes of the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split

from nysplus._fit.standard_error import accuracy_with_error, r2_with_error
from nysplus._typing import Float
from nysplus.plots.style import (
    CLASS_COLORS,
    MARKERS,
    TICK_SIZE,
    axes_or_new,
    check_matplotlib,
    kilobytes,
    label,
    legend_above,
    legible,
)


@dataclass(frozen=True, eq=False)
class BudgetCurve:
    """The scores of models of several sizes.

    Attributes
    ----------
    bytes : ndarray of int of shape (n_models,)
    scores : ndarray of shape (n_models,)
    errors : ndarray of shape (n_models,) or None
        Standard errors of the scores.
    metric : "accuracy" or "R²"
    """

    bytes: npt.NDArray[np.int_]
    scores: Float
    errors: Float | None = None
    metric: str = "accuracy"


class BudgetCurveDisplay:
    """Score against the size of the model in kilobytes, of one or several kinds of models.

    Parameters
    ----------
    curves : dict from str to BudgetCurve
        By the name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib containers

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.plots import BudgetCurveDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystroemClassifier(random_state=0)
    >>> display = BudgetCurveDisplay.from_estimator(model, X, y, ["1kB", "2kB"], random_state=0)
    >>> bool((display.curves["NystroemClassifier"].bytes <= [1024, 2048]).all())
    True
    """

    def __init__(self, curves: dict[str, BudgetCurve]) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        budgets: Iterable[int | str],
        *,
        test_size: float | int = 0.25,
        random_state: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> BudgetCurveDisplay:
        """Fit a model for each budget, score it on held-out rows, and draw the scores.

        Parameters
        ----------
        estimator : NystroemClassifier or NystroemRegressor
            Not changed; its budget is ignored.
        X, y : array-likes
        budgets : iterable of int or str
            Such as ``["1kB", "4kB", "16kB"]``.
        test_size : float or int, default=0.25
            Rows to hold out.
        random_state : int, RandomState or None, default=None
            Of the split.
        name : str, optional
            In the legend; by default the class of the estimator.
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        BudgetCurveDisplay
        """
        check_matplotlib()
        classes = is_classifier(estimator)
        parts = train_test_split(
            X,
            y,
            test_size=test_size,
            random_state=random_state,
            stratify=y if classes and np.ndim(y) == 1 else None,
        )
        curve = _curve(estimator, classes, budgets, *parts)
        return cls({name or type(estimator).__name__: curve}).plot(ax)

    @classmethod
    def from_points(
        cls,
        n_bytes: Any,
        scores: Any,
        *,
        errors: Any = None,
        metric: str = "accuracy",
        name: str = "models",
        ax: Any = None,
    ) -> BudgetCurveDisplay:
        """Draw scores that are known.

        Parameters
        ----------
        n_bytes, scores : array-likes of shape (n_models,)
            Accuracies are between 0 and 1.
        errors : array-like of shape (n_models,), optional
            Standard errors of the scores.
        metric : str, default="accuracy"
        name : str, default="models"
            In the legend.
        ax : matplotlib Axes, optional

        Returns
        -------
        BudgetCurveDisplay
        """
        order = np.argsort(n_bytes)
        found = None if errors is None else np.asarray(errors, dtype=np.float64)[order]
        curve = BudgetCurve(np.asarray(n_bytes)[order], np.asarray(scores)[order], found, metric)
        return cls({name: curve}).plot(ax)

    def plot(self, ax: Any = None) -> BudgetCurveDisplay:
        """Draw the scores, with bars of one standard error to each side.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, axes of a new figure.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax)
        from matplotlib.ticker import FixedLocator, NullLocator

        self.lines_ = []
        for i, (name, curve) in enumerate(self.curves.items()):
            percent = 100.0 if curve.metric == "accuracy" else 1.0
            self.lines_.append(
                ax.errorbar(
                    curve.bytes,
                    percent * curve.scores,
                    None if curve.errors is None else percent * curve.errors,
                    color=CLASS_COLORS[i % len(CLASS_COLORS)],
                    marker=MARKERS[i % len(MARKERS)],
                    markersize=7,
                    capsize=4,
                    label=name,
                )
            )
        ax.set_xscale("log")
        sizes = np.unique(np.concatenate([curve.bytes for curve in self.curves.values()]))
        if len(self.curves) > 1:
            sizes = np.array(_round_sizes(*ax.get_xlim()) or sizes)
        ticks = [float(sizes[i]) for i in legible(sizes)]
        ax.xaxis.set_major_locator(FixedLocator(ticks))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticklabels([kilobytes(tick) for tick in ticks])
        metric = next(iter(self.curves.values())).metric
        unit = " (%)" if metric == "accuracy" else ""
        errors = any(curve.errors is not None for curve in self.curves.values())
        bars = "\nbars: ± one standard error" if errors else ""
        label(ax, "size of the model (kB)", f"{metric} on held-out rows{unit}{bars}")
        ax.grid(alpha=0.3)
        if len(self.curves) > 1:
            legend_above(ax, 2)
        else:
            ax.legend(loc="lower right", fontsize=TICK_SIZE)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _round_sizes(low: float, high: float) -> list[int]:
    """Return the sizes of 1/4, 1, 4, 16, … kB between two numbers of bytes."""
    return [size for size in (4**i for i in range(4, 20)) if low <= size <= high]


def _curve(
    estimator: Any,
    classes: bool,
    budgets: Iterable[int | str],
    X: Any,
    X_test: Any,
    y: Any,
    y_test: Any,
) -> BudgetCurve:
    """Fit and score a model for each budget."""
    truth, weight = np.asarray(y_test), np.ones(len(y_test))
    sizes, pairs = [], []
    for budget in budgets:
        model = clone(estimator).set_params(budget=budget).fit(X, y)
        predicted = np.asarray(model.predict(X_test))
        if classes:
            hits = predicted == truth
            hits = hits if hits.ndim == 1 else hits.all(axis=1)
            pairs.append(accuracy_with_error(hits, weight))
        else:
            Y, values = (array.reshape(len(truth), -1) for array in (truth, predicted))
            pairs.append(r2_with_error(Y, values, weight))
        sizes.append(model.model_bytes_)
    order = np.argsort(sizes)
    scores, errors = np.array(pairs)[order].T
    return BudgetCurve(np.array(sizes)[order], scores, errors, "accuracy" if classes else "R²")
