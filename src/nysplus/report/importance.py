"""Permutation importance of the columns of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._fit.model import FittedModel
from nysplus._typing import Float
from nysplus.plots.calibration import NORMAL_95
from nysplus.report.wording import as_texts

# Permutations of each column. The rows of the sample contribute more to the error.
REPEATS = 5


@dataclass(frozen=True)
class Importance:
    """Loss of accuracy or R² where the entries of a column are permuted.

    Attributes
    ----------
    names : tuple of str
    losses : ndarray of shape (n_columns,)
    intervals : ndarray of shape (n_columns, 2)
        95 % intervals, from the differences of the scores of each row.
    n_rows : int
    """

    names: tuple[str, ...]
    losses: Float
    intervals: Float
    n_rows: int

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Positions of the columns, the most important first."""
        return np.argsort(-self.losses, kind="stable")


def permutation_importance(
    fitted: FittedModel, names: Sequence[str], X: Float, y: Any, rng: np.random.RandomState
) -> Importance:
    """Permute each column among some rows, and return the mean loss of the score of a row.

    Parameters
    ----------
    fitted : FittedModel
    names : sequence of str
        Of the columns of X.
    X : ndarray of shape (n_rows, n_columns)
        Raw numbers.
    y : ndarray of shape (n_rows,)
    rng : RandomState
    """
    n = len(X)
    before = _row_scores(fitted, X, y)
    repeated, truth = np.tile(X, (REPEATS, 1)), np.tile(y, REPEATS)
    losses, errors = np.empty(len(names)), np.empty(len(names))
    for j in range(len(names)):
        column = repeated[:, j].copy()
        repeated[:, j] = np.concatenate([X[rng.permutation(n), j] for _ in range(REPEATS)])
        after = _row_scores(fitted, repeated, truth).reshape(REPEATS, n).mean(axis=0)
        losses[j] = (before - after).mean()
        errors[j] = (before - after).std() / np.sqrt(n)
        repeated[:, j] = column
    half = NORMAL_95 * errors
    return Importance(tuple(names), losses, np.column_stack([losses - half, losses + half]), n)


def _row_scores(fitted: FittedModel, X: Float, y: Any) -> Float:
    """Return 1 for correct labels, or minus the squared error in units of the variance of y."""
    predicted = fitted.predict(X)
    if fitted.code.discrete:
        return np.asarray(as_texts(predicted) == as_texts(y), dtype=np.float64)
    spread = max(float(np.var(y)), np.finfo(np.float64).tiny)
    scores: Float = -((y - predicted) ** 2) / spread
    return scores
