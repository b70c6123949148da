"""The other libraries on tables: gradient boosting, support vector machines, linear models.

All have their defaults, except for the C of the support vector machines. Gradient boosting gets
nominal columns declared as such, LightGBM also as numbers.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import level_codes, nominal_columns
from nysplus_experiments.speed.peers import SVC_C, SYSTEMS, array_bytes
from nysplus_experiments.tables.fits import CAPPED, MAX_TRAIN, PEERS_FILE, Method, run_methods
from nysplus_experiments.tables.pipelines import preprocessing

LIGHTGBM, LIGHTGBM_CODES, XGBOOST, CATBOOST = "lightgbm", "lightgbm-codes", "xgboost", "catboost"
SVM, LINEAR = "svm", "linear"
# Iterations of the solver that suffice on every table.
LOGISTIC_ITERATIONS = 2000
_stored_bytes = {system.name: system.stored_bytes for system in SYSTEMS}


def _boosting(
    frame: pd.DataFrame, regression: bool, seed: int, library: str, prefix: str, **options: Any
) -> Any:
    kind = "Regressor" if regression else "Classifier"
    make = getattr(import_module(library), prefix + kind)
    return make(n_jobs=1, random_state=seed, **options)


def _catboost(frame: pd.DataFrame, regression: bool, seed: int) -> Any:
    import catboost

    make = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
    quiet = {"verbose": False, "allow_writing_files": False}
    nominal = nominal_columns(frame)
    return make(thread_count=1, random_seed=seed, cat_features=nominal, **quiet)


def _gaps_as_levels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without NaN among the levels, which CatBoost refuses."""
    nominal = nominal_columns(frame)
    return frame.assign(**{name: frame[name].astype(object).fillna("gap") for name in nominal})


def _catboost_bytes(model: Any) -> int:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        model.save_model(str(path))
        return path.stat().st_size


def _support_vectors(frame: pd.DataFrame, regression: bool, seed: int) -> Any:
    if not regression:
        return make_pipeline(preprocessing(), SVC(C=SVC_C))
    # The tube of SVR has a width in units of the target.
    model = TransformedTargetRegressor(SVR(C=SVC_C), transformer=StandardScaler())
    return make_pipeline(preprocessing(), model)


def _support_vector_bytes(model: Any) -> int:
    machine = getattr(model[-1], "regressor_", model[-1])
    return _stored_bytes["sklearn-svc"](machine)


def _linear(frame: pd.DataFrame, regression: bool, seed: int) -> Any:
    model = Ridge() if regression else LogisticRegression(max_iter=LOGISTIC_ITERATIONS)
    return make_pipeline(preprocessing(), model)


def _linear_bytes(model: Any) -> int:
    return array_bytes(model[-1], ("coef_", "intercept_"))


_lightgbm = partial(_boosting, library="lightgbm", prefix="LGBM", verbose=-1)
_xgboost = partial(_boosting, library="xgboost", prefix="XGB", enable_categorical=True)
_lightgbm_bytes, _xgboost_bytes = _stored_bytes["lightgbm"], _stored_bytes["xgboost"]
METHODS = {
    LIGHTGBM: Method(*("LightGBM", "lightgbm", _lightgbm, _lightgbm_bytes), modes=(*MAX_TRAIN,)),
    LIGHTGBM_CODES: Method(
        *("LightGBM, codes as numbers", "lightgbm", _lightgbm, _lightgbm_bytes),
        prepare=level_codes,
        nominal_only=True,
        modes=(*MAX_TRAIN,),
    ),
    XGBOOST: Method("XGBoost", "xgboost", _xgboost, _xgboost_bytes),
    LINEAR: Method("logistic / ridge regression", "sklearn", _linear, _linear_bytes),
    SVM: Method(
        *("SVC / SVR", "sklearn", _support_vectors, _support_vector_bytes), modes=(CAPPED,)
    ),
    CATBOOST: Method(
        *("CatBoost", "catboost", _catboost, _catboost_bytes), prepare=_gaps_as_levels
    ),
}


def run(options: BenchOptions) -> None:
    """Measure the other libraries. Options of this step: methods, seeds, modes, workers."""
    run_methods(options, PEERS_FILE, METHODS)
