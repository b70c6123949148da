"""Scores of predictions, with their uncertainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nysplus._fit.model import FittedModel
from nysplus._typing import Float
from nysplus.plots.calibration import NORMAL_95 as Z
from nysplus.plots.calibration import wilson_interval
from nysplus.report.wording import as_texts

Array = npt.NDArray[Any]
Task = Literal["classify", "regress"]

# Pairs of classes that are listed as confused.
MAX_CONFUSED = 5


@dataclass(frozen=True)
class Score:
    """Accuracy or R² on rows that the model was not fitted to.

    Attributes
    ----------
    metric : {"accuracy", "R²"}
    value, standard_error, low, high : float
        The score, and its 95 % interval.
    n_rows : int
    rmse : float or None
        Root of the mean squared error; None for classes.
    """

    metric: str
    value: float
    standard_error: float
    low: float
    high: float
    n_rows: int
    rmse: float | None = None

    def __str__(self) -> str:
        if self.metric == "accuracy":
            return f"{self.value_text} accuracy ({self.interval_text})"
        return (
            f"R² {self.value_text} ({self.interval_text}), root mean squared error {self.rmse:.4g}"
        )

    @property
    def value_text(self) -> str:
        """The score without its name."""
        return self._text(self.value)

    @property
    def interval_text(self) -> str:
        """The 95 % interval."""
        return f"95 % interval {self._text(self.low)} to {self._text(self.high)}"

    def _text(self, value: float) -> str:
        # adding 0.0 turns −0.0 into 0.0
        if self.metric == "accuracy":
            return f"{round(100 * value, 1) + 0.0:.1f} %"
        return f"{round(value, 3) + 0.0:.3f}"

    @property
    def short(self) -> str:
        """The score alone."""
        if self.metric == "accuracy":
            return self.value_text
        return f"R² {self.value_text}, root mean squared error {self.rmse:.4g}"

    @property
    def entries(self) -> dict[str, Any]:
        """The score for JSON."""
        found = {
            "metric": "r2" if self.rmse is not None else "accuracy",
            "value": self.value,
            "standard_error": self.standard_error,
            "interval_95": [self.low, self.high],
            "rows": self.n_rows,
        }
        return found if self.rmse is None else {**found, "rmse": self.rmse}


def accuracy(y: Array, predicted: Array) -> Score:
    """Return the accuracy of labels, with Wilson's interval."""
    n = len(y)
    share = float((as_texts(y) == as_texts(predicted)).mean())
    low, high = wilson_interval(np.float64(share), n)
    return Score("accuracy", share, float(np.sqrt(share * (1 - share) / n)), low, high, n)


def r2(y: Array, predicted: Array) -> Score:
    """Return R² of values, with an interval from the linearised error of each row.

    R² = 1 − mean(e²)/mean(d²) with errors e and differences d from the mean. A row changes it by
    −(e² − (1 − R²) d²)/mean(d²), to first order.
    """
    y, n = np.asarray(y, np.float64), len(y)
    e2, d2 = (y - predicted) ** 2, (y - y.mean()) ** 2
    spread = max(float(d2.mean()), np.finfo(np.float64).tiny)
    value = 1.0 - float(e2.mean()) / spread
    influence = (e2 - (1.0 - value) * d2) / spread
    error = float(influence.std() / np.sqrt(n))
    rmse = float(np.sqrt(e2.mean()))
    return Score("R²", value, error, value - Z * error, min(value + Z * error, 1.0), n, rmse)


def row_scores(fitted: FittedModel, y: Array) -> Callable[[Float], Float]:
    """Return a function from raw rows to the score of each, whose mean is the accuracy or R²."""
    if fitted.code.discrete:
        texts = as_texts(y)
        return lambda X: (as_texts(fitted.predict(X)) == texts).astype(np.float64)
    spread = max(float(np.var(y)), np.finfo(np.float64).tiny)
    return lambda X: 1.0 - (y - fitted.predict(X)) ** 2 / spread


def confused(y: Array, predicted: Array) -> list[tuple[str, str, int]]:
    """Return the most frequent confusions: class, predicted class, number of rows."""
    true, said = as_texts(y), as_texts(predicted)
    wrong = true != said
    pairs = Counter(zip(true[wrong].tolist(), said[wrong].tolist(), strict=True))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [(*pair, count) for pair, count in ordered[:MAX_CONFUSED]]


def confusion_text(y: Array, predicted: Array) -> str:
    """Return the most frequent confusions as text."""
    sizes = Counter(as_texts(y).tolist())
    return "; ".join(
        f"{true} taken for {said}: {count:,} of {sizes[true]:,}"
        for true, said, count in confused(y, predicted)
    )
