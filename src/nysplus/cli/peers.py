"""Other models for comparison: support vectors and gradient boosting beside the baselines."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from nysplus.report.baselines import Peer, RawColumns, baseline, linear
from nysplus.report.scores import Task

# Rows above which support vector machines take too long.
MAX_SVC_ROWS = 20_000
# Levels that HistGradientBoosting takes as categories at most.
MAX_LEVELS = 255


def support_vectors(task: Task) -> Peer:
    """Return a support vector machine on one-hot columns."""

    def make(columns: RawColumns, seed: int) -> Any:
        if task == "classify":
            return make_pipeline(columns.one_hot(), SVC())
        # the tube of SVR has a width in units of the target
        model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        return make_pipeline(columns.one_hot(), model)

    return Peer("SVC" if task == "classify" else "SVR", make)


def _frequent(X: Any, categories: tuple[int, ...] = ()) -> Any:
    """Return raw numbers with the levels that HistGradientBoosting takes; others are missing."""
    X = np.array(X, dtype=np.float64)
    for column in categories:
        levels = X[:, column]
        levels[(levels < 0) | (levels >= MAX_LEVELS)] = np.nan
    return X


def _hist_boosting(task: Task) -> Peer:
    def make(columns: RawColumns, seed: int) -> Any:
        kind = HistGradientBoostingClassifier if task == "classify" else None
        model = (kind or HistGradientBoostingRegressor)(
            categorical_features=list(columns.categories), random_state=seed
        )
        levels = FunctionTransformer(_frequent, kw_args={"categories": columns.categories})
        return make_pipeline(levels, model)

    return Peer("HistGradientBoosting", make)


def _lightgbm(task: Task) -> Peer:
    def make(columns: RawColumns, seed: int) -> Any:
        import lightgbm

        kind = lightgbm.LGBMClassifier if task == "classify" else lightgbm.LGBMRegressor
        levels = ",".join(map(str, columns.categories))
        return kind(random_state=seed, verbose=-1, n_jobs=1, categorical_feature=levels)

    return Peer("LightGBM", make)


def peers(task: Task, n_rows: int, columns: RawColumns) -> tuple[list[Peer], list[str]]:
    """Return the models that suit the rows, and the reasons why others are left out."""
    chosen, notes = [baseline(task), linear(task)], []
    if n_rows <= MAX_SVC_ROWS:
        chosen.append(support_vectors(task))
    else:
        notes.append(f"Support vector machines are left out above {MAX_SVC_ROWS:,} rows.")
    if columns.is_sparse:
        notes.append("HistGradientBoosting is left out: it takes no sparse rows.")
    else:
        chosen.append(_hist_boosting(task))
    if importlib.util.find_spec("lightgbm") is None:
        notes.append("LightGBM is left out: it is not installed (pip install lightgbm).")
    else:
        chosen.append(_lightgbm(task))
    return chosen, notes
