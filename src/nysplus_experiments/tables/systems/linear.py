"""Logistic and ridge regression with weights of 8 bits, of the columns with the largest weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge

from nysplus_experiments.tables.boosting import outputs_of
from nysplus_experiments.tables.dense import NUMBER_BYTES, DenseCode, int8
from nysplus_experiments.tables.system import Model, NoModel, Rows, System

# Iterations of the solver that suffice on every table.
_ITERATIONS = 2000
#: Bytes of the number of a column, where some are left out.
_INDEX_BYTES = 2


def estimator(regression: bool) -> Any:
    """Return an unfitted model."""
    return Ridge() if regression else LogisticRegression(max_iter=_ITERATIONS)


@dataclass(frozen=True)
class _Full:
    """The model of all columns."""

    code: DenseCode
    X: np.ndarray
    model: Any


def _prepare(rows: Rows) -> _Full:
    code = DenseCode.of(rows)
    X = code(rows.X)
    return _Full(code, X, estimator(rows.regression).fit(X, rows.y))


def _fit(rows: Rows, n_bytes: int | None, prepared: _Full | None) -> Model:
    full = prepared or _prepare(rows)
    code, model, columns = full.code, full.model, np.arange(full.X.shape[1])
    fixed = 2 * NUMBER_BYTES * rows.n_outputs  # a scale and an intercept for each output
    size = code.n_bytes + fixed + rows.n_outputs * len(columns)
    if n_bytes is not None and size > n_bytes:
        each = rows.n_outputs + _INDEX_BYTES + NUMBER_BYTES
        most = (n_bytes - fixed) // each
        if most < 1:
            raise NoModel(f"Weights of one column take {fixed + each} bytes.")
        order = np.square(np.atleast_2d(model.coef_)).sum(axis=0).argsort()[::-1]
        columns = np.sort(order[:most])
        model = estimator(rows.regression).fit(full.X[:, columns], rows.y)
        size = fixed + each * len(columns)
    weights, intercept = int8(np.atleast_2d(model.coef_).T), np.atleast_1d(model.intercept_)

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return outputs_of(code(frame)[:, columns] @ weights + intercept, rows)

    return Model(predict, size, f"{len(columns)} of {code.n_columns} columns")


SYSTEMS = [System("linear", "logistic / ridge regression", "sklearn", _fit, _prepare)]
