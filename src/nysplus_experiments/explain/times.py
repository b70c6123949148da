"""Measure the time of Shapley values by the numbers of landmarks, columns and background rows.

Rows are random normal numbers, and so are the targets of a regression. Times are those of the
process's own CPU in one thread, the shortest of several calls, so that other programs on the
machine disturb them less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from nysplus import NystroemRegressor
from nysplus._runtime.threads import using_threads
from nysplus.explain import shapley_values
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row

# Form of the model, landmarks, columns, background rows, and rows of a call.
CASES = [
    ("product", 100, 30, 100, 100),
    ("product", 100, 30, 100, 1),
    ("product", 100, 30, 10, 100),
    ("product", 100, 10, 100, 100),
    ("product", 100, 100, 100, 20),
    ("product", 1000, 30, 100, 20),
    ("product", 100, 784, 10, 2),
    ("dense map", 100, 30, 100, 20),
]
REPEATS = 7


@dataclass(frozen=True)
class Time(Row, key="form landmarks columns background rows"):
    """One row of ``times.csv``."""

    form: str
    landmarks: int
    columns: int
    background: int
    rows: int
    cpu_ms_per_row: float
    wall_ms_per_row: float


def measure(form: str, landmarks: int, columns: int, background: int, rows: int) -> Time:
    """Return the shortest time of several calls."""
    rng = np.random.RandomState(0)
    X = rng.randn(max(landmarks, background, rows, 300), columns)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    metric = None if form == "product" else 10
    model = NystroemRegressor(landmarks, selection="uniform", metric=metric, random_state=0)
    model.fit(X, y)
    cpu, wall = [], []
    with using_threads(1):
        for _ in range(REPEATS):
            begin, start = time.process_time(), time.perf_counter()
            found = shapley_values(model, X[:rows], X[:background], random_state=0)
            cpu.append(time.process_time() - begin)
            wall.append(time.perf_counter() - start)
    if found.exact != (form == "product"):
        raise AssertionError("The form of the model is not the one that is measured.")
    per_row = (float(f"{1e3 * min(times) / rows:.3g}") for times in (cpu, wall))
    return Time(form, landmarks, columns, background, rows, *per_row)


def run(options: BenchOptions) -> None:
    """Measure the cases that are not in the file yet; print the times."""
    options.expect()
    options.measure("times.csv", Time, CASES[3:4] if options.smoke else CASES, measure)
    print(records.frame(options.path("times.csv"), Time).to_string(index=False))
