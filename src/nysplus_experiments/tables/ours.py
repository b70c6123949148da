"""Models of this library on tables: several budgets, without a search, and without an encoder."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
from sklearn.pipeline import make_pipeline

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.tables.fits import (
    ALL_ROWS,
    CAPPED,
    FEW_ROWS,
    OURS_FILE,
    Method,
    run_methods,
)
from nysplus_experiments.tables.pipelines import preprocessing

BUDGET = "64kB"


def _encoded(
    frame: pd.DataFrame, regression: bool, seed: int, budget: str = BUDGET, refine: Any = True
) -> Any:
    estimator: Any = NystroemRegressor if regression else NystroemClassifier
    return estimator(encoder="auto", budget=budget, refine=refine, random_state=seed)


def _hand_made(frame: pd.DataFrame, regression: bool, seed: int) -> Any:
    return piped(preprocessing(), regression, seed)


def piped(before: Any, regression: bool, seed: int) -> Any:
    """Return a pipeline of preprocessing and the model that is fitted to raw frames elsewhere."""
    estimator: Any = NystroemRegressor if regression else NystroemClassifier
    return make_pipeline(before, estimator(budget=BUDGET, refine=True, random_state=seed))


def model_bytes(model: Any) -> int:
    """Return the bytes of a model, or of the model at the end of a pipeline."""
    return int(model.model_bytes_)


def piped_bytes(model: Any) -> int:
    """Return the bytes of the model at the end of a pipeline, without the preprocessing."""
    return model_bytes(model[-1])


_fast = partial(_encoded, refine=Refinement(search=False))
#: A model of few bits, fitted in little time, to export.
small_model = partial(_encoded, budget="4kB", refine=Refinement(search=False))
_unrefined = ("nysplus", partial(_encoded, refine=False), model_bytes)
METHODS = {
    "64kB": Method("64 kB", "nysplus", _encoded, model_bytes, modes=(CAPPED, ALL_ROWS, FEW_ROWS)),
    "16kB": Method("16 kB", "nysplus", partial(_encoded, budget="16kB"), model_bytes),
    "4kB": Method("4 kB", "nysplus", partial(_encoded, budget="4kB"), model_bytes),
    "fast": Method("64 kB, no search", "nysplus", _fast, model_bytes),
    "unrefined": Method("64 kB, unrefined", *_unrefined, modes=(CAPPED, FEW_ROWS)),
    "no-encoder": Method("64 kB, hand-made pipeline", "nysplus", _hand_made, piped_bytes),
}


def run(options: BenchOptions) -> None:
    """Measure our models. Options of this step: methods, seeds, modes, workers."""
    run_methods(options, OURS_FILE, METHODS)
