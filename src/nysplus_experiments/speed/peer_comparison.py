"""Measure time, memory, accuracy and model size of nysplus and of other libraries.

Every measurement is a child process: it warms up on a few rows, fits, predicts the test rows, and
is killed at the time limit. Repeats are the outermost loop, so that all systems see the same drift
of the machine. ``tree-waiting`` "passive" lets waiting threads of LightGBM and XGBoost sleep, as
those of all other systems do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus_experiments.harness import measurement, records
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import DatasetNotFound, load
from nysplus_experiments.speed.blas_floor import measure_floor
from nysplus_experiments.speed.peers import FLOOR, SYSTEMS, System
from nysplus_experiments.speed.schedule import (
    DATASETS,
    REPEATS_BY_SECONDS,
    Cell,
    Measurement,
    plan,
    wanted_repeats,
)

# A full kernel machine on more rows would take longer than all other measurements together.
MAX_TRAIN_ROWS = 100_000
# Seconds up to which a prediction is repeated.
SHORT_PREDICT = 5.0
# scikit-learn's pipeline takes two N × n matrices to predict; this many rows bound its time.
MAX_TEST_ROWS = 20_000
WARM_UP_ROWS, WARM_UP_SIZE = 500, 50
TIME_LIMIT = 170.0
SMOKE, SMOKE_SIZES = "letter", (100,)
_SYSTEMS = {(system.name, system.dtype): system for system in SYSTEMS}


@dataclass(frozen=True)
class Problem:
    """Rows of one dataset in both types, holding the same values, and classes as numbers."""

    name: str
    gamma: float
    X: dict[str, np.ndarray]
    codes: np.ndarray
    X_test: dict[str, np.ndarray]
    test_codes: np.ndarray


def load_problem(name: str, max_rows: int = MAX_TRAIN_ROWS) -> Problem:
    """Load at most ``max_rows`` training rows of a dataset. Calls no BLAS."""
    split = load(name, public_split=name == "ijcnn1", dtype=np.float32)
    X, y = split.X_train[:max_rows], split.y_train[:max_rows]
    test = _spread(len(split.X_test), MAX_TEST_ROWS)
    X_test = split.X_test[test]
    classes, codes = np.unique(y, return_inverse=True)
    return Problem(
        name,
        split.gamma,
        {"float32": X, "float64": X.astype(np.float64)},
        codes,
        {"float32": X_test, "float64": X_test.astype(np.float64)},
        np.searchsorted(classes, split.y_test[test]),
    )


def _spread(n_rows: int, requested: int) -> np.ndarray:
    """Return at most ``requested`` row numbers, evenly spread: files may be ordered by class."""
    return np.linspace(0, n_rows - 1, min(requested, n_rows)).astype(int)


def measure_system(
    problem: Problem, system: System, n: int | None, objective: bool
) -> dict[str, Any]:
    """Warm up, fit, predict; return the columns of a `Measurement`."""
    X, X_test = problem.X[system.dtype], problem.X_test[system.dtype]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warm_up(problem, system, n)
        caught.clear()
        model = system.make(n, problem.gamma)
        fitted = measurement.measure(model.fit, X, problem.codes)
        # A short call is timed three times: the median is what a server would see.
        calls = [measurement.measure(model.predict, X_test)]
        if calls[0].seconds < SHORT_PREDICT:
            calls += [measurement.measure(model.predict, X_test) for _ in range(2)]
        predicted = sorted(calls, key=lambda call: call.seconds)[len(calls) // 2]
    columns = {
        "status": "ok",
        "note": " ".join(str(caught[0].message).split())[:120] if caught else "",
        "fit_seconds": fitted.seconds,
        "fit_cpu_seconds": fitted.cpu_seconds,
        "predict_seconds": predicted.seconds,
        "predict_cpu_seconds": predicted.cpu_seconds,
        "accuracy": 100 * float(np.mean(predicted.result == problem.test_codes)),
        "model_bytes": system.stored_bytes(model),
        "peak_mb": fitted.added_mb,
        "predict_peak_mb": replace(predicted, before_mb=fitted.before_mb).added_mb,
        "solver": getattr(model, "solver_", ""),
    }
    if objective and system.expansion is not None:
        found = system.expansion(model)
        columns["objective"] = found.objective(problem.X["float64"], problem.codes, problem.gamma)
    return columns


def load_and_measure_system(dataset: str, max_rows: int, system: System) -> dict[str, Any]:
    """Measure in a child that shares no data with its parent."""
    return measure_system(load_problem(dataset, max_rows), system, None, False)


def _warm_up(problem: Problem, system: System, n: int | None) -> None:
    """Fit a small model of the same system, which imports libraries and starts threads."""
    X, X_test = problem.X[system.dtype], problem.X_test[system.dtype]
    rows = _spread(len(X), WARM_UP_ROWS)
    # XGBoost wants classes without gaps, and a few rows may lack one.
    codes = np.unique(problem.codes[rows], return_inverse=True)[1]
    size = None if n is None else min(n, WARM_UP_SIZE)
    system.make(size, problem.gamma).fit(X[rows], codes).predict(X_test[:WARM_UP_ROWS])


def measure_products(problem: Problem, dtype: str, n: int) -> dict[str, Any]:
    """Measure the BLAS floor; return the columns of a `Measurement`."""
    return {"status": "ok", "fit_seconds": measure_floor(problem.X[dtype], n)["floor"]}


def measure_cell(
    cell: Cell, repeat: int, problem: Problem, settings: dict[str, Any]
) -> Measurement:
    """Measure one cell in a child; errors and time limits become a row, too."""
    dataset, name, dtype, n = cell
    X = problem.X[dtype]
    row = Measurement(*cell, len(X), len(problem.test_codes), X.shape[1], repeat, "error")
    limit, library_waiting = settings["time_limit"], False
    call: tuple[Any, ...]
    if name == FLOOR:
        call, limit = (measure_products, problem, dtype, n), None
    else:
        system = _SYSTEMS[name, dtype]
        call = (measure_system, problem, system, n, repeat == 0)
        if system.trees and settings["tree_waiting"] == "library":
            library_waiting = True
            call = (load_and_measure_system, dataset, len(X), system)
    try:
        columns = measurement.run_in_child(*call, time_limit=limit, library_waiting=library_waiting)
    except measurement.TimeLimit as error:
        columns = {"status": "time limit", "note": str(error)}
    except measurement.ChildError as error:
        columns = {"note": " ".join(str(error).split())[:200]}
    return replace(row, threads=measurement.n_threads(), **columns)


def run(options: BenchOptions) -> None:
    """Measure everything that is not in the file yet."""
    options.expect("systems", "sizes", "repeats", "time-limit", "tree-waiting")
    names = list(dict.fromkeys(system.name for system in SYSTEMS))
    systems = _installed(options.texts("systems", names, names))
    datasets = options.choose_datasets(list(DATASETS), (SMOKE,) if options.smoke else ())
    problems = _load_problems(datasets, 2000 if options.smoke else MAX_TRAIN_ROWS)
    sizes = options.integers("sizes", SMOKE_SIZES if options.smoke else ())
    repeats = options.integer("repeats", 1 if options.smoke else REPEATS_BY_SECONDS[0][1])
    settings = {
        "time_limit": options.number("time-limit", TIME_LIMIT),
        "tree_waiting": options.texts("tree-waiting", ["library"], ("passive", "library"))[0],
    }
    requested: dict[Cell, int] = {}
    for repeat in range(repeats):
        cells = plan(list(problems), sizes, systems, repeat)
        options.measure(
            "speed.csv",
            Measurement,
            [(*cell, repeat) for cell in cells if repeat < requested.get(cell, repeats)],
            lambda *task: measure_cell(task[:4], task[4], problems[task[0]], settings),
            settings=settings,
            valid=lambda row: row.status != "error",  # an error may be mended by now
        )
        options = replace(options, fresh=False)
        rows = records.read(options.path("speed.csv"), Measurement)
        requested = {row.cell: wanted_repeats(row) for row in rows}


def _installed(names: Sequence[str]) -> list[System]:
    systems = [system for system in SYSTEMS if system.name in names]
    for system in systems:
        if not system.installed:
            print(f"{system.title} is left out: pip install {system.package} to include it.")
    return [system for system in systems if system.installed]


def _load_problems(names: Sequence[str], max_rows: int) -> dict[str, Problem]:
    """Load the datasets that are available; print a line for each missing one."""
    problems = {}
    for name in names:
        try:
            problems[name] = load_problem(name, max_rows)
        except DatasetNotFound as error:
            print(f"{name} is left out. {error}")
    return problems
