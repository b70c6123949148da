"""Fit a method to a table and score it: one record a table, method, seed and number of rows.

All methods get the same frame: categories of strings, gaps as NaN, numbers as they are. The seed is
that of the split and of the method. Each fit has one thread, and its time is processor time, which
other processes hardly change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import (
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
    TABLES,
    TableSplit,
    available_tables,
    load_table,
    nominal_columns,
)
from nysplus_experiments.harness.records import Row

OURS_FILE, PEERS_FILE = "ours.csv", "peers.csv"
SEEDS = (0, 1, 2)
CAPPED, ALL_ROWS, FEW_ROWS = "capped", "all", "few"
#: Training rows of each mode.
MAX_TRAIN = {CAPPED: 10_000, ALL_ROWS: None, FEW_ROWS: 500}
#: The largest tables, which also have a mode with all rows. a9a is adult again, and left out.
LARGEST = (
    *("adult", "credit_default", "hr_job_change", "krkopt"),
    *("california", "diamonds", "fried", "house_16h"),
)
SMOKE_TABLES = (SYNTHETIC, SYNTHETIC_REGRESSION)


def _unchanged(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


@dataclass(frozen=True)
class Method:
    """One competitor.

    ``make(frame, regression, seed)`` returns an unfitted model, ``stored_bytes`` the size of a
    fitted one. ``library`` is the module whose version is recorded. ``prepare`` changes frames to
    a form that the library accepts. Methods with ``nominal_only`` differ from another one on
    tables with nominal columns only. ``modes`` are the numbers of training rows to measure with.
    """

    title: str
    library: str
    make: Callable[[pd.DataFrame, bool, int], Any]
    stored_bytes: Callable[[Any], int]
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = _unchanged
    nominal_only: bool = False
    modes: tuple[str, ...] = (CAPPED, ALL_ROWS)

    @property
    def installed(self) -> bool:
        """Whether the library is installed."""
        return find_spec(self.library) is not None

    @property
    def version(self) -> str:
        """Name and version of the library."""
        return f"{self.library} {import_module(self.library).__version__}"


@dataclass(frozen=True)
class TableFit(Row, key="mode table method seed"):
    """One row of a file of results.

    ``score`` is the accuracy in percent, or the RMSE in standard deviations of the test target;
    ``new_score`` that of the ``new_rows`` test rows that equal no training row.
    """

    mode: str
    table: str
    method: str
    seed: int
    score: float
    new_score: float | None
    bytes: int
    fit_cpu_seconds: float
    rows: int
    test_rows: int
    new_rows: int
    features: int
    nominal: int
    version: str


@lru_cache(maxsize=1)  # the fits of a split follow each other
def split_of(mode: str, table: str, seed: int) -> TableSplit:
    """Return the rows of a fit."""
    return load_table(table).split(seed, MAX_TRAIN[mode])


def measure(
    methods: Mapping[str, Method], mode: str, table: str, method: str, seed: int
) -> TableFit:
    """Fit one method, and predict the test rows."""
    how, split = methods[method], split_of(mode, table, seed)
    X, X_test = how.prepare(split.X), how.prepare(split.X_test)
    model = how.make(X, split.regression, seed)
    fitted = measurement.measure(model.fit, X, split.y)
    scores = Scores(split, np.ravel(fitted.result.predict(X_test)))
    new = ~split.has_twin
    return TableFit(
        *(mode, table, method, seed),
        score=scores.on(np.ones_like(new)),
        new_score=scores.on(new) if new.any() else None,
        bytes=how.stored_bytes(fitted.result),
        fit_cpu_seconds=fitted.cpu_seconds,
        rows=len(X),
        test_rows=len(X_test),
        new_rows=int(new.sum()),
        features=X.shape[1],
        nominal=len(nominal_columns(split.X)),
        version=how.version,
    )


@dataclass(frozen=True)
class Scores:
    """Predictions of the test rows of a split."""

    split: TableSplit
    predicted: np.ndarray

    def on(self, rows: np.ndarray) -> float:
        """Return the score of some test rows."""
        truth = self.split.y_test
        if self.split.regression:
            squares = np.square(self.predicted - truth)[rows]
            return float(np.sqrt(squares.mean()) / truth.std())
        return 100 * float(np.mean((self.predicted == truth)[rows]))


def plan(
    methods: Mapping[str, Method], tables: Sequence[str], seeds: Sequence[int], modes: Sequence[str]
) -> Iterator[tuple[str, str, str, int]]:
    """Yield all fits, one seed after the other, without methods that a table has no use for."""
    nominal = {name: bool(nominal_columns(load_table(name).frame)) for name in tables}
    for seed in seeds:
        for mode in modes:
            for table in tables:
                if mode == ALL_ROWS and table not in LARGEST:
                    continue
                for name, method in methods.items():
                    if mode in method.modes and (nominal[table] or not method.nominal_only):
                        yield mode, table, name, seed


def in_single_threads(options: BenchOptions) -> dict[str, Any]:
    """Return the options of a measurement in processes of one thread each, one by default."""
    workers = 0 if options.smoke else options.integer("workers", 1)
    return {"settings": {"threads": 1}, "workers": workers, "any_machine": True}


def run_methods(options: BenchOptions, file: str, methods: Mapping[str, Method]) -> None:
    """Measure what a file lacks. Options: methods, seeds (a list), modes, workers."""
    options.expect("methods", "seeds", "modes", "workers")
    chosen = {name: methods[name] for name in options.texts("methods", [*methods], [*methods])}
    for name, method in chosen.items():
        if not method.installed:
            print(f"{name} is skipped. {method.library} is not installed.")
    chosen = {name: method for name, method in chosen.items() if method.installed}
    if options.smoke:
        tables = list(SMOKE_TABLES)
    else:
        tables = available_tables(options.choose_datasets([*TABLES]))
    modes = options.texts("modes", [*MAX_TRAIN], [*MAX_TRAIN])
    options.measure(
        *(file, TableFit),
        plan(chosen, tables, options.integers("seeds", [0] if options.smoke else SEEDS), modes),
        partial(measure, methods),
        **in_single_threads(options),
    )
