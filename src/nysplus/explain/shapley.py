"""Shapley values of fitted models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.estimators.base import KernelMachine
from nysplus.explain.function import (
    ExplainedFunction,
    column_names,
    explained_model,
    raw_rows,
    shown_entries,
)
from nysplus.explain.product import product_values
from nysplus.explain.sampling import Sampler, draw, permutation_count
from nysplus.explain.values import ShapleyValues


def shapley_values(
    model: Any,
    X: Any,
    background: Any,
    *,
    n_permutations: int | str = "auto",
    random_state: Any = None,
) -> ShapleyValues:
    """Compute the Shapley values of scores or predicted values.

    Columns that are not known are taken from background rows (interventional Shapley values), and
    the values are averaged over these. They are exact where the kernel is a product or a sum over
    features, RBF, Laplacian, chi-squared and linear kernels, without a learned map or with a
    diagonal one. Behind a map that mixes features, behind an encoder of images and for all other
    kernels they are means over random permutations, with standard errors.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor or Pipeline
        Fitted. The steps of a pipeline become a part of the model, see
        :func:`~nysplus.from_pipeline`, and the columns that are explained are those of its rows.
    X : rows, as for `predict`
        Dense. Several code columns of one column of a table, such as the levels of a category, are
        one player: the exact value of the column that the user knows.
    background : rows, as for `predict`
        Typical rows, such as 100 rows of the training set. Time is proportional to their number.
    n_permutations : int or "auto", default="auto"
        Random permutations for each background row, 2 at least. "auto": 256 over the whole
        background. Ignored if values are exact.
    random_state : int, RandomState or None, default=None
        Of the permutations.

    Returns
    -------
    ShapleyValues
        All numbers are float64 and computed from the stored numbers of the model. Scores of models
        that are stored in fewer bits are computed in float32 elsewhere, and differ by its rounding.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.explain import shapley_values
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
    >>> explanation = shapley_values(model, X[:5], background=X[::10])
    >>> explanation.values.shape, explanation.exact
    ((5, 4, 3), True)
    >>> total = explanation.base_values + explanation.values.sum(axis=1)
    >>> bool(abs(total - model.decision_function(X[:5])).max() < 1e-8)
    True
    """
    if not (isinstance(n_permutations, str) and n_permutations == "auto"):
        check_count("n_permutations", n_permutations, at_least=2)
    model = explained_model(model, "shapley_values")
    rows, others = raw_rows(model, X), raw_rows(model, background, "background")
    return values_of_rows(model, rows, others, n_permutations, random_state)


def values_of_rows(
    model: KernelMachine,
    rows: Float,
    others: Float,
    n_permutations: int | str = "auto",
    random_state: Any = None,
) -> ShapleyValues:
    """Return the Shapley values of checked rows that are numbers already.

    Parameters
    ----------
    model : KernelMachine
        Fitted.
    rows, others : ndarray
        Rows and background, as :func:`~nysplus.explain.function.raw_rows` returns them.
    n_permutations, random_state
        As for :func:`shapley_values`.
    """
    function = ExplainedFunction.of(model._model)
    n = permutation_count(len(others)) if isinstance(n_permutations, str) else n_permutations
    values, error = _values(function, rows, others, n, random_state)
    base = np.broadcast_to(function.expansion(others).mean(axis=0), (len(rows), values.shape[2]))
    names = output_names(model._model.code)
    if names is None:
        values, base = values[:, :, 0], base[:, 0]
        error = None if error is None else error[:, :, 0]
    return ShapleyValues(
        values,
        base.copy(),
        rows,
        column_names(model),
        function.form is not None,
        error,
        shown_entries(model, rows),
        names,
    )


def _values(
    function: ExplainedFunction, rows: Float, others: Float, n: int, random_state: Any
) -> tuple[Float, Float | None]:
    """Return values of shape (N, columns, L), and standard errors if they are not exact."""
    C, background = function.code(rows), function.code(others)
    linear, error = _linear_part(function, C, background), None
    if function.form == "product":
        return linear + product_values(function, C, background), None
    if function.form == "sum":
        return linear + _sum_part(function, C, background), None
    d = len(function.players[1])
    permutations = draw(n, len(others), d, check_random_state(random_state))
    values, error = Sampler(function, background, permutations).values(C)
    return linear + values, error


def _linear_part(function: ExplainedFunction, C: Float, background: Float) -> Float:
    """Return the Shapley values of ``E(x)B``: each column's own part."""
    B = function.expansion.linear
    if B is None:
        return np.zeros((len(C), function.n_players, function.expansion.dual_coef.shape[1]))
    parts = (C - background.mean(axis=0)).T[:, :, None] * B[:, None]
    return function.spread(function.by_player(parts, np.add.reduceat).swapaxes(0, 1))


def _sum_part(function: ExplainedFunction, C: Float, background: Float) -> Float:
    """Return the Shapley values of a kernel that is a sum over features."""
    h = function.expansion
    if len(h.landmarks) == 0:
        return np.zeros((len(C), function.n_players, h.dual_coef.shape[1]))
    parts = [
        h.kernel.per_feature(function.coordinates(rows), h.landmarks) @ h.dual_coef
        for rows in (C, background)
    ]
    gains = parts[0] - parts[1].mean(axis=1, keepdims=True)
    return function.spread(function.by_player(gains, np.add.reduceat).swapaxes(0, 1))


def output_names(code: TargetCode) -> list[str] | None:
    """Return the names of the columns of scores; None where scores have one dimension."""
    if code.kind == "classes":
        return None if code.n_outputs == 1 else [str(label) for label in code.classes.tolist()]
    if code.kind == "values" and code.decode(np.zeros((1, code.n_outputs))).ndim == 1:
        return None
    what = "label" if code.kind == "labels" else "output"
    return [f"{what} {i}" for i in range(code.n_outputs)]
