"""A network with one hidden layer as wide as the bytes allow, weights of 8 bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

from nysplus_experiments.tables.boosting import outputs_of
from nysplus_experiments.tables.dense import NUMBER_BYTES, DenseCode, int8
from nysplus_experiments.tables.system import Model, NoModel, Rows, System

#: Hidden units at most, also where the size is unlimited, and epochs.
MAX_WIDTH, EPOCHS = 128, 100
#: Ten times the default: networks this small are far from converged otherwise.
LEARNING_RATE = 0.01


def _network(rows: Rows, width: int) -> Any:
    make: Any = MLPRegressor if rows.regression else MLPClassifier
    few = np.bincount(rows.y).min() < 2 if not rows.regression else False  # no stratified split
    options = {"max_iter": EPOCHS, "early_stopping": not few, "random_state": rows.seed}
    return make(hidden_layer_sizes=(width,), learning_rate_init=LEARNING_RATE, **options)


def _fit(rows: Rows, n_bytes: int | None, prepared: None) -> Model:
    code = DenseCode.of(rows)
    # A unit has 8-bit weights from all columns and to all outputs, a bias and a scale.
    each = code.n_columns + rows.n_outputs + 2 * NUMBER_BYTES
    fixed = code.n_bytes + 2 * NUMBER_BYTES * rows.n_outputs
    fixed += 2 * NUMBER_BYTES if rows.regression else 0  # the unit of the target
    most = MAX_WIDTH if n_bytes is None else (n_bytes - fixed) // each
    width = min(most, MAX_WIDTH)
    if width < 1:
        raise NoModel(f"A network with one hidden unit takes {fixed + each} bytes.")
    offset, unit = (rows.y.mean(), rows.y.std()) if rows.regression else (0.0, 1.0)
    targets = (rows.y - offset) / unit if rows.regression else rows.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the epochs are limited on purpose
        network = _network(rows, width).fit(code(rows.X), targets)
    (first, second), (bias, intercept) = map(int8, network.coefs_), network.intercepts_

    def predict(frame: pd.DataFrame) -> np.ndarray:
        hidden = np.maximum(code(frame) @ first + bias, 0.0)
        return outputs_of((hidden @ second + intercept) * unit + offset, rows)

    return Model(predict, fixed + width * each, f"{width} hidden units")


SYSTEMS = [System("mlp", "int8 network", "sklearn", _fit)]
