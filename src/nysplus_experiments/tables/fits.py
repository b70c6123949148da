"""Fit a system to a table within a number of bytes, and score it: one record a fit.

All systems get the same frame: categories of strings, gaps as NaN, numbers as they are. The seed is
that of the split and of the system. Each fit has one thread, and its time is processor time, which
other processes hardly change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import (
    PAPER_SETS,
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
    TABLES,
    TableSplit,
    available_tables,
    load_table,
    nominal_columns,
)
from nysplus_experiments.harness.records import Row
from nysplus_experiments.tables.system import Model, NoModel, Rows, System
from nysplus_experiments.tables.systems import all_systems

#: Folder of the results, with one file a system.
FOLDER = "bytes"
UNLIMITED = "unlimited"
#: Bytes of each size.
SIZES = {f"{kb:g} kB": int(kb * 2**10) for kb in (0.25, 1, 4, 16, 64)} | {UNLIMITED: None}
SEEDS = (0, 1, 2, 3, 4)
#: Training and test rows of a split at most.
MAX_TRAIN, MAX_TEST = 10_000, 20_000
#: a9a is adult again, and left out.
BENCHMARK = tuple(name for name in (*TABLES, *PAPER_SETS) if name != "a9a")
SMOKE_TABLES = (SYNTHETIC, SYNTHETIC_REGRESSION)
#: Probabilities are clipped to this before their logarithm is taken.
SMALLEST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class TableFit(Row, key="table system size seed"):
    """One row of a file of results.

    ``score`` is the accuracy in percent, or the RMSE in standard deviations of the test target;
    ``new_score`` that of test rows that equal no training row. Without a score there is no model
    of this size, and ``detail`` has the reason.
    """

    table: str
    system: str
    size: str
    seed: int
    score: float | None
    new_score: float | None
    log_loss: float | None
    bytes: int | None
    fit_cpu_seconds: float
    predict_cpu_seconds: float | None
    fit_mb: float | None
    rows: int
    test_rows: int
    features: int
    nominal: int
    detail: str
    version: str


@lru_cache(maxsize=1)  # the fits of a split follow each other
def split_of(table: str, seed: int) -> TableSplit:
    """Return the rows of a fit."""
    return load_table(table).split(seed, MAX_TRAIN, MAX_TEST)


def training_rows(split: TableSplit, seed: int) -> tuple[Rows, np.ndarray]:
    """Return the training rows with class codes 0, 1, …, and the label of each code."""
    if split.regression:
        return Rows(split.X, split.y, True, seed), np.empty(0)
    labels, codes = np.unique(split.y, return_inverse=True)
    return Rows(split.X, codes, False, seed), labels


@lru_cache(maxsize=1)  # the sizes of a system follow each other
def prepared(system: str, table: str, seed: int) -> measurement.Measure[Any]:
    """Return the shared work of the models of limited sizes, with its time."""
    rows, _ = training_rows(split_of(table, seed), seed)
    return measurement.measure(all_systems()[system].prepare, rows)


def measure(table: str, system: str, size: str, seed: int) -> TableFit:
    """Fit one model, and predict the test rows."""
    how, split = all_systems()[system], split_of(table, seed)
    row = TableFit(
        *(table, system, size, seed),
        *(None, None, None, None),
        fit_cpu_seconds=0.0,
        predict_cpu_seconds=None,
        fit_mb=None,
        rows=len(split.y),
        test_rows=len(split.y_test),
        features=split.X.shape[1],
        nominal=len(nominal_columns(split.X)),
        detail="",
        version=how.version,
    )
    try:
        return _measured(row, how, split)
    except NoModel as reason:
        return replace(row, detail=" ".join(str(reason).split()))


def _measured(row: TableFit, how: System, split: TableSplit) -> TableFit:
    rows, labels = training_rows(split, row.seed)
    n_bytes = SIZES[row.size]
    nothing = measurement.Measure(None, 0.0, 0.0, None, 0.0)
    before = nothing if n_bytes is None else prepared(row.system, row.table, row.seed)
    fitted = measurement.measure(how.fit, rows, n_bytes, before.result)
    model: Model = fitted.result
    predicted = measurement.measure(model.predict, split.X_test)
    outputs = np.asarray(predicted.result)
    probabilities = outputs.ndim == 2 and not split.regression
    codes = outputs.argmax(axis=1) if probabilities else outputs
    scores = Scores(split, np.ravel(outputs) if split.regression else labels[codes])
    new = ~split.has_twin
    memory = [part.added_mb for part in (before, fitted) if part.added_mb is not None]
    return replace(
        row,
        score=scores.on(np.ones_like(new)),
        new_score=scores.on(new) if new.any() else None,
        log_loss=log_loss(outputs, labels, split.y_test) if probabilities else None,
        bytes=model.n_bytes,
        fit_cpu_seconds=before.cpu_seconds + fitted.cpu_seconds,
        predict_cpu_seconds=predicted.cpu_seconds,
        fit_mb=max(memory, default=None),
        detail=model.detail,
    )


def log_loss(probabilities: np.ndarray, labels: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean log-loss; classes without a training row have the smallest probability."""
    column = np.searchsorted(labels, truth).clip(max=len(labels) - 1)
    own = probabilities[np.arange(len(truth)), column]
    own = np.where(labels[column] == truth, own, 0.0)
    return float(-np.log(own.clip(SMALLEST_PROBABILITY, 1.0)).mean())


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


def in_single_threads(options: BenchOptions) -> dict[str, Any]:
    """Return the options of a measurement in processes of one thread each, one by default."""
    workers = 0 if options.smoke else options.integer("workers", 1)
    return {"settings": {"threads": 1}, "workers": workers, "any_machine": True}


def file_of(system: str) -> str:
    """Return the file of results of a system."""
    return f"{FOLDER}/{system}.csv"


def chosen_systems(options: BenchOptions) -> list[str]:
    """Return the systems of the option ``systems`` that are installed."""
    known = all_systems()
    found = []
    for name in options.texts("systems", [*known], [*known]):
        if known[name].installed:
            found.append(name)
        else:
            print(f"{name} is skipped. {known[name].library} is not installed.")
    return found


def chosen_tables(options: BenchOptions) -> list[str]:
    """Return the tables of the command line that can be loaded; synthetic ones in a smoke run."""
    if options.smoke:
        return list(SMOKE_TABLES)
    return available_tables(options.choose_datasets(BENCHMARK))


def run(options: BenchOptions) -> None:
    """Measure what is missing, seed by seed. Options: systems, sizes, seeds, workers."""
    options.expect("systems", "sizes", "seeds", "workers")
    sizes = options.texts("sizes", [*SIZES], [*SIZES])
    systems, tables, failures = chosen_systems(options), chosen_tables(options), []
    for seed in options.integers("seeds", SEEDS[:1] if options.smoke else SEEDS):
        for system in systems:
            tasks = [(table, system, size, seed) for table in tables for size in sizes]
            try:
                options.measure(
                    *(file_of(system), TableFit, tasks, measure),
                    **in_single_threads(options),
                )
            except SystemExit as failure:  # the other systems go on
                failures.append(f"{system}, seed {seed}: {failure}")
        options = replace(options, fresh=False)  # the first seed has put the old files aside
    if failures:
        raise SystemExit("\n".join(failures))
