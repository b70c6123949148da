"""scikit-learn's Nystroem with logistic or ridge regression, landmarks in float32."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from nysplus_experiments.tables.dense import NUMBER_BYTES, DenseCode
from nysplus_experiments.tables.system import Model, NoModel, Rows, System
from nysplus_experiments.tables.systems.linear import estimator

#: Landmarks at most, also where the size is unlimited.
MAX_LANDMARKS = 500


def _fit(rows: Rows, n_bytes: int | None, prepared: None) -> Model:
    code = DenseCode.of(rows)
    # The normalisation is multiplied with the weights: k(x, Z) A + b.
    each = NUMBER_BYTES * (code.n_columns + rows.n_outputs)
    fixed = code.n_bytes + NUMBER_BYTES * rows.n_outputs
    most = MAX_LANDMARKS if n_bytes is None else (n_bytes - fixed) // each
    n = min(most, MAX_LANDMARKS, len(rows.y))
    if n < 1:
        raise NoModel(f"A model with one landmark takes {fixed + each} bytes.")
    features = Nystroem(n_components=n, random_state=rows.seed)
    model = make_pipeline(features, estimator(rows.regression)).fit(code(rows.X), rows.y)
    method = model.predict if rows.regression else model.predict_proba

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(method(code(frame)))

    return Model(predict, fixed + n * each, f"{n} landmarks")


SYSTEMS = [System("nystroem", "scikit-learn Nystroem", "sklearn", _fit)]
