"""Measure fits to rows on disk: seconds, memory and passes, up to ten million rows.

Synthetic rows of 20 features as Parquet files, as a memory map, and in memory for comparison; and
CovType as a memory map (``--datasets synthetic`` leaves it out). Every fit is a child process that
has never held the data; the files are dropped from the system's cache before each fit. The largest
size takes 3.5 GB of disk; ``folder`` can be set to a place for it.
"""

from __future__ import annotations

import math
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import sklearn

from nysplus import NystroemClassifier
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.measurement import n_threads, run_in_child
from nysplus_experiments.harness.records import Row
from nysplus_experiments.scale import row_files
from nysplus_experiments.scale.stages import undisturbed, watched_fit
from nysplus_experiments.speed.peers import SEED

LANDMARKS = 500
SELECTIONS = ("negative-margin", "kmeans")
SOURCES = ("parquet", "memmap", "array")
ROWS = (1_000_000, 3_000_000, 10_000_000)
# The rows in memory show the cost of reading; more of them would show nothing else.
MOST_IN_MEMORY = 1_000_000
WORKING_MEMORY = 256  # MiB
COVTYPE_ROWS, COVTYPE_LANDMARKS = 500_000, 2000
SMOKE_ROWS, SMOKE_LANDMARKS = 20_000, 50

Key = tuple[str, str, str, int, int, int]


@dataclass(frozen=True)
class OutOfCore(Row, key="data source selection rows n repeat"):
    """One row of ``out_of_core.csv``: a fit.

    ``peak_mb`` is the peak resident memory of the process in MiB. ``others`` is the CPU time of
    other processes in percent of all cores; disturbed fits are measured again by the next run.
    """

    data: str
    source: str
    selection: str
    rows: int
    n: int
    repeat: int
    fit_seconds: float
    peak_mb: float
    passes: int
    solver: str
    accuracy: float
    threads: int
    others: float | None
    stages: str


def fit_once(folder: Path, source: str, selection: str, n_rows: int, n: int) -> dict[str, Any]:
    """Fit with the defaults; return columns of `OutOfCore`."""
    X, y = row_files.open_rows(folder, source, n_rows)
    model = NystroemClassifier(n, selection=selection, random_state=SEED, verbose=2)
    with sklearn.config_context(working_memory=WORKING_MEMORY):
        columns = watched_fit(model, X, y)
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with np.load(folder / "test.npz") as test:
            names = getattr(model, "feature_names_in_", None)
            rows = test["X"] if names is None else pd.DataFrame(test["X"], columns=names)
            accuracy = 100 * model.score(rows, test["y"])
    sizes = {"peak_mb": round(peak_kb / 1024, 1), "accuracy": round(accuracy, 3)}
    return columns | sizes | {"threads": n_threads()}


def plan(rows: Sequence[int], n: int, repeats: int) -> Iterator[Key]:
    """Yield the fits to synthetic rows; sources take turns."""
    for repeat, n_rows, selection in product(range(repeats), sorted(rows), SELECTIONS):
        for source in SOURCES[:: -1 if repeat % 2 else 1]:
            if source != "array" or n_rows <= MOST_IN_MEMORY:
                yield "synthetic", source, selection, n_rows, n, repeat


def run(options: BenchOptions) -> None:
    """Measure the fits that are not in the file yet: synthetic rows, then CovType."""
    options.expect("rows", "landmarks", "repeats", "covtype-rows", "covtype-landmarks", "folder")
    data = options.choose_datasets(("synthetic", "covtype"))
    smoke = options.smoke
    if "synthetic" in data:
        rows = options.integers("rows", (SMOKE_ROWS,) if smoke else ROWS)
        n = options.integer("landmarks", SMOKE_LANDMARKS if smoke else LANDMARKS)
        tasks = list(plan(rows, n, options.integer("repeats", 1 if smoke else 2)))
        file_rows = math.gcd(row_files.FILE_ROWS, *rows)
        _measure(options, tasks, row_files.write_rows, max(rows), file_rows)
        options = replace(options, fresh=False)
    if "covtype" in data:
        n_rows = options.integer("covtype-rows", SMOKE_ROWS if smoke else COVTYPE_ROWS)
        n = options.integer("covtype-landmarks", SMOKE_LANDMARKS if smoke else COVTYPE_LANDMARKS)
        tasks = [("covtype", s, "negative-margin", n_rows, n, 0) for s in ("memmap", "array")]
        _measure(options, tasks, row_files.write_covtype, n_rows)


def _measure(
    options: BenchOptions, tasks: Sequence[Key], write: Callable[..., None], *args: int
) -> None:
    """Write the rows into a temporary folder and fit to them."""
    with tempfile.TemporaryDirectory(dir=options.extra.get("folder")) as name:
        folder = Path(name)

        def fit(*key: Any) -> OutOfCore:
            row_files.drop_from_cache(folder)
            return OutOfCore(*key, **run_in_child(fit_once, folder, *key[1:5]))

        options.measure(
            "out_of_core.csv",
            OutOfCore,
            tasks,
            fit,
            settings={"working_memory": WORKING_MEMORY, "pyarrow": pa.__version__},
            prepare=lambda: run_in_child(write, folder, *args),
            valid=undisturbed,
        )
