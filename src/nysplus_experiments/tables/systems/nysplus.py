"""Models of this library with ``encoder="auto"`` and ``refine=True``."""

from __future__ import annotations

from typing import Any

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.budget import NoRoomError
from nysplus_experiments.tables.system import Model, NoModel, Rows, System


def estimator(regression: bool, seed: int, budget: int | str | None, **options: Any) -> Any:
    """Return an unfitted model for raw frames; of any size without a budget."""
    make: Any = NystroemRegressor if regression else NystroemClassifier
    options = {"encoder": "auto", "refine": True, "random_state": seed} | options
    if budget is None:
        return make("auto", **options)
    return make(budget=budget, **options)


def _fit(rows: Rows, n_bytes: int | None, prepared: None) -> Model:
    try:
        model = estimator(rows.regression, rows.seed, n_bytes).fit(rows.X, rows.y)
    except NoRoomError as error:
        raise NoModel(str(error)) from error
    n_landmarks = len(model.landmarks_)
    predict = model.predict if rows.regression else model.predict_proba
    return Model(predict, int(model.model_bytes_), f"{n_landmarks} landmarks")


SYSTEMS = [System("nysplus", "nysplus", "nysplus", _fit)]
