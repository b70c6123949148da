"""The importance of columns, by gradients and by permutations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length, check_random_state

from nysplus._fit.model import FittedModel
from nysplus._rows.projected import project
from nysplus._rows.slicing import row_slices
from nysplus._tuning.outer_product import row_gradients
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.explain.function import ExplainedFunction, column_names, explained_model, raw_rows

# Half the width of an interval of 95 % in standard errors.
Z95 = 1.959964


@dataclass(frozen=True, eq=False)
class FeatureImportance:
    """The importance of each column of the user, with intervals of 95 %.

    Intervals are of the mean over rows: those of other rows from the same distribution.

    Attributes
    ----------
    feature_names : list of str
    permutation : ndarray of shape (n_columns,)
        How much worse the predictions are with the entries of the column shuffled: the loss of
        accuracy, or of R².
    permutation_interval : ndarray of shape (n_columns, 2)
    gradient : ndarray of shape (n_columns,) or None
        The diagonal of the mean outer product of gradients, ``mean Σ_c (∂f_c/∂x)²``, times the
        variance of x, summed over the code columns of a column: about the variance of the scores
        that the column causes. None for kernels without gradients.
    gradient_interval : ndarray of shape (n_columns, 2) or None
    """

    feature_names: list[str]
    permutation: Float
    permutation_interval: Float
    gradient: Float | None = None
    gradient_interval: Float | None = None

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Positions of the columns, the most important by permutation first."""
        return np.argsort(-self.permutation, kind="stable")


def feature_importance(
    model: Any, X: Any, y: Any, *, n_repeats: int = 5, random_state: Any = None
) -> FeatureImportance:
    """Compute the importance of columns, by gradients and by permutations of their entries.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor or Pipeline
        Fitted.
    X : rows, as for `predict`
        Rows that the model was not fitted to.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
    n_repeats : int, default=5
        Permutations of each column.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    FeatureImportance

    Examples
    --------
    >>> import numpy as np
    >>> from nysplus import NystroemRegressor
    >>> from nysplus.explain import feature_importance
    >>> X = np.random.RandomState(0).rand(200, 3)
    >>> y = np.sin(3 * X[:, 1])
    >>> model = NystroemRegressor(20, random_state=0).fit(X, y)
    >>> found = feature_importance(model, X, y, random_state=0)
    >>> int(found.permutation.argmax()), int(found.gradient.argmax())
    (1, 1)
    """
    check_count("n_repeats", n_repeats)
    model = explained_model(model, "feature_importance")
    rows = raw_rows(model, X)
    check_consistent_length(rows, y)
    if len(rows) < 2:
        raise ValueError(f"X has {len(rows)} row, and intervals need two rows at least.")
    rng = check_random_state(random_state)
    score = _row_scores(model._model, np.asarray(y))
    function = ExplainedFunction.of(model._model)
    slopes = _gradient_parts(function, rows)
    return FeatureImportance(
        column_names(model),
        *permutation_importance(score, rows, n_repeats, rng),
        *((None, None) if slopes is None else _mean_and_interval(slopes)),
    )


def _mean_and_interval(of_rows: Float) -> tuple[Float, Float]:
    """Return the mean over rows, and its interval, for each column."""
    mean = of_rows.mean(axis=0)
    half = Z95 * of_rows.std(axis=0, ddof=1) / np.sqrt(len(of_rows))
    return mean, np.stack([mean - half, mean + half], axis=1)


def permutation_importance(
    score: Callable[[Float], Float], X: Float, n_repeats: int, rng: np.random.RandomState
) -> tuple[Float, Float]:
    """Return the mean loss of score where a column is shuffled, and its interval, by column.

    Parameters
    ----------
    score : callable
        From rows to the score of each row.
    X : ndarray of shape (N, columns)
    n_repeats : int
    rng : RandomState
    """
    before = score(X)
    drops = np.zeros(X.shape)
    for column in range(X.shape[1]):
        shuffled = X.copy()
        for _ in range(n_repeats):
            shuffled[:, column] = rng.permutation(X[:, column])
            drops[:, column] += before - score(shuffled)
    return _mean_and_interval(drops / n_repeats)


def _row_scores(fitted: FittedModel, y: Any) -> Callable[[Float], Float]:
    """Return a function from rows to the score of each, whose mean is the accuracy or R²."""
    code = fitted.code
    if code.kind == "values":
        Y = code.encode(y).coded()
        # the mean over outputs of 1 − (error / deviation)²
        scatter = ((Y - Y.mean(axis=0)) ** 2).mean(axis=0)
        scale = np.divide(1.0, scatter, out=np.zeros_like(scatter), where=scatter > 0)
        return lambda X: 1.0 - ((fitted.expansion(X) - Y) ** 2 * scale).mean(axis=1)

    def hits(X: Float) -> Float:
        right = fitted.predict(X) == y
        whole: Float = (right if right.ndim == 1 else right.all(axis=1)).astype(np.float64)
        return whole

    return hits


def _gradient_parts(function: ExplainedFunction, X: Float) -> Float | None:
    """Return ``Σ_c (∂f_c/∂x)² Var(x)`` of each row and column; None without gradients."""
    h = function.expansion
    if len(h.landmarks) and not h.kernel.differentiable:
        return None
    C = function.code(X)
    variance = C.var(axis=0)[:, None]
    squares = np.empty((len(function.players[1]), len(C)))
    width = 8 * (len(h.landmarks) + 4 * C.shape[1])
    for rows in row_slices(len(C), width):
        squares[:, rows] = function.by_player(
            variance * _squared_gradients(function, C[rows]).T, np.add.reduceat
        )
    return function.spread(squares.T)


def _squared_gradients(function: ExplainedFunction, C: Float) -> Float:
    """Return ``Σ_c (∂f_c/∂e)²`` of each row and code column, of shape (N, D)."""
    h, squares = function.expansion, np.zeros(C.shape)
    P, B = h.projection, h.linear
    outputs = range(h.dual_coef.shape[1])
    if len(h.landmarks) == 0:
        slopes = iter([np.zeros_like(C) for _ in outputs])
    else:
        centered = project(C, None, h.center)
        slopes = row_gradients(replace(h, center=None, encoder=None), centered)
    for c, G in zip(outputs, slopes, strict=True):
        if P is not None and len(h.landmarks):
            G = G * P if P.ndim == 1 else G @ P.T
        squares += (G if B is None else G + B[:, c]) ** 2
    return squares
