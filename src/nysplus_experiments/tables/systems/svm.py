"""SVC and SVR where the size is unlimited, otherwise compressed to the size by `from_svc`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

from nysplus import from_svc
from nysplus_experiments.speed.peers import SVC_C
from nysplus_experiments.tables.dense import NUMBER_BYTES, DenseCode
from nysplus_experiments.tables.pipelines import preprocessing
from nysplus_experiments.tables.system import Model, NoModel, Rows, System

#: Seconds after which a compression tries no further candidate.
TIME_LIMIT = 4.0


def _machine(rows: Rows) -> tuple[Any, np.ndarray]:
    """Return a fitted pipeline and its targets: those of SVR are standardised."""
    targets = (rows.y - rows.y.mean()) / rows.y.std() if rows.regression else rows.y
    machine = SVR(C=SVC_C) if rows.regression else SVC(C=SVC_C)
    return make_pipeline(preprocessing(), machine).fit(rows.X, targets), targets


def _whole(rows: Rows) -> Model:
    model, _ = _machine(rows)
    machine, code = model[-1], DenseCode.of(rows)
    numbers = machine.support_vectors_.size + machine.dual_coef_.size + machine.intercept_.size
    detail = f"{len(machine.support_vectors_)} support vectors"
    return Model(_in_units(model.predict, rows), code.n_bytes + NUMBER_BYTES * numbers, detail)


def _in_units(predict: Any, rows: Rows) -> Any:
    """Return predictions in the unit of the target."""
    if not rows.regression:
        return predict

    def predict_values(frame: pd.DataFrame) -> np.ndarray:
        return np.ravel(predict(frame)) * rows.y.std() + rows.y.mean()

    return predict_values


def _fit(rows: Rows, n_bytes: int | None, machine: tuple[Any, np.ndarray]) -> Model:
    if n_bytes is None:
        return _whole(rows)
    limit: dict[str, Any] = {"budget": n_bytes, "max_seconds": TIME_LIMIT}
    try:
        model: Any = from_svc(machine[0], rows.X, machine[1], random_state=rows.seed, **limit)
    except ValueError as error:
        if "budget" not in str(error):
            raise
        raise NoModel(str(error)) from error
    predict = model.predict if rows.regression else model.predict_proba
    return Model(_in_units(predict, rows), int(model.model_bytes_), "compressed")


SYSTEMS = [System("svm", "SVC / SVR, compressed", "sklearn", _fit, _machine)]
