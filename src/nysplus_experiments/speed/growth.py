"""Measure how the cost of a fit to synthetic rows grows with the rows N and the landmarks n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.measurement import measure, n_threads, run_in_child
from nysplus_experiments.harness.records import Row
from nysplus_experiments.speed.peers import SEED, SYSTEMS

FEATURES = 20
# Half decades of rows at a fixed n, doublings of n at a fixed N.
ROWS, LANDMARKS = (10_000, 31_623, 100_000, 316_228, 1_000_000), 300
SIZES, ROWS_FOR_SIZES = (250, 500, 1000, 2000, 4000), 20_000
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Growth(Row, key="against rows n dtype repeat"):
    """One row of ``growth.csv``; "N" or "n" varies, memory in MiB is beyond the data."""

    against: str
    rows: int
    n: int
    dtype: str
    repeat: int
    fit_seconds: float
    peak_mb: float | None
    solver: str
    threads: int


def make_rows(n_rows: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return normal rows, and two classes that no plane separates. Calls no BLAS."""
    X = np.random.RandomState(SEED).standard_normal((n_rows, FEATURES)).astype(dtype)
    return X, (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


def fit_once(X: np.ndarray, y: np.ndarray, n: int) -> dict[str, Any]:
    """Fit after a warm-up; return columns of `Growth`."""
    system = next(each for each in SYSTEMS if each.name == "nysplus")
    system.make(50, 1 / FEATURES).fit(X[:500], y[:500])
    model = system.make(n, 1 / FEATURES)
    fitted = measure(model.fit, X, y)
    return {
        "fit_seconds": fitted.seconds,
        "peak_mb": fitted.added_mb,
        "solver": model.solver_,
    }


def run(options: BenchOptions) -> None:
    """Measure the fits that are not in the file yet; three sizes in a smoke run."""
    options.expect("repeats")
    rows, sizes = (ROWS[:3], SIZES[:3]) if options.smoke else (ROWS, SIZES)
    series = [("N", n_rows, LANDMARKS) for n_rows in rows]
    series += [("n", ROWS_FOR_SIZES, n) for n in sizes]
    repeats = options.integer("repeats", 1 if options.smoke else 3)
    tasks = [
        (*cell, dtype, repeat) for repeat in range(repeats) for cell in series for dtype in DTYPES
    ]
    data = {dtype: make_rows(max(rows), dtype) for dtype in DTYPES}

    def fit(against: str, n_rows: int, n: int, dtype: str, repeat: int) -> Growth:
        X, y = (array[:n_rows] for array in data[dtype])
        columns = run_in_child(fit_once, X, y, n)
        return Growth(against, n_rows, n, dtype, repeat, threads=n_threads(), **columns)

    options.measure("growth.csv", Growth, tasks, fit)
