"""Seconds of fits on twelve tables of all sizes with all their training rows, one after the other.

Nothing else should run on the machine: all methods are measured in the same run, in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from nysplus import Refinement
from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import (
    SYNTHETIC,
    TableSplit,
    available_tables,
    load_table,
    nominal_columns,
)
from nysplus_experiments.harness.records import Row
from nysplus_experiments.tables.fits import Scores, in_single_threads
from nysplus_experiments.tables.systems import lightgbm, nysplus, xgboost

FILE = "seconds.csv"
#: Of the tables of more than 5,000 and fewer than 50,000 rows, in the order of their rows and, if
#: equal, of their names, every second one. a9a is adult again, and left out.
TABLES = (
    *("wall_robot", "cpu_act", "puma32h", "artificial_characters", "mammography"),
    *("vehicle_coupon", "miami_housing", "elevators", "hr_job_change", "house_16h"),
    *("credit_default", "adult"),
)


@dataclass(frozen=True)
class TimedMethod:
    """A model with its title; ``make(regression, seed)`` returns it unfitted."""

    title: str
    library: str
    make: Callable[[bool, int], Any]

    @property
    def installed(self) -> bool:
        """Whether the library is installed."""
        return find_spec(self.library) is not None


_ours = partial(nysplus.estimator, budget="64kB")
LIGHTGBM = "lightgbm"
METHODS = {
    "64kB": TimedMethod("64 kB", "nysplus", _ours),
    "fast": TimedMethod(
        "64 kB, no search", "nysplus", partial(_ours, refine=Refinement(search=False))
    ),
    "unrefined": TimedMethod("64 kB, unrefined", "nysplus", partial(_ours, refine=False)),
    LIGHTGBM: TimedMethod("LightGBM", "lightgbm", lightgbm.estimator),
    "xgboost": TimedMethod(
        "XGBoost", "xgboost", partial(xgboost.estimator, enable_categorical=True)
    ),
}


@dataclass(frozen=True)
class TimedFit(Row, key="table method seed"):
    """One row of ``seconds.csv``; scores as in the benchmark of bytes."""

    table: str
    method: str
    seed: int
    score: float
    fit_cpu_seconds: float
    rows: int
    test_rows: int
    features: int
    nominal: int
    version: str


@lru_cache(maxsize=1)  # the fits of a split follow each other
def split_of(table: str, seed: int) -> TableSplit:
    """Return the rows of a fit, all of them."""
    return load_table(table).split(seed)


def measure(table: str, method: str, seed: int) -> TimedFit:
    """Fit one model."""
    how, split = METHODS[method], split_of(table, seed)
    fitted = measurement.measure(how.make(split.regression, seed).fit, split.X, split.y)
    scores = Scores(split, np.ravel(fitted.result.predict(split.X_test)))
    return TimedFit(
        *(table, method, seed),
        score=scores.on(np.ones(len(split.y_test), bool)),
        fit_cpu_seconds=fitted.cpu_seconds,
        rows=len(split.y),
        test_rows=len(split.y_test),
        features=split.X.shape[1],
        nominal=len(nominal_columns(split.X)),
        version=f"{how.library} {import_module(how.library).__version__}",
    )


def plan(tables: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[str, str, int]]:
    """Yield all fits, one split after the other, the methods in turn, with all training rows."""
    for seed in seeds:
        for table in tables:
            for name, method in METHODS.items():
                if method.installed:
                    yield table, name, seed


def run(options: BenchOptions) -> None:
    """Measure seconds. Options of this step: seeds."""
    options.expect("seeds")
    tables = [SYNTHETIC] if options.smoke else available_tables(options.choose_datasets(TABLES))
    tasks = plan(tables, options.integers("seeds", [0]))
    alone = in_single_threads(options) | {"any_machine": False}
    options.measure(FILE, TimedFit, tasks, measure, **alone)
