"""Time, memory, accuracy and model size of nysplus and of what a user would take instead.

Every measurement is a child process of its own: it warms up on a few rows, fits, predicts the
test rows, and is killed at the time limit. Repeats are the outermost loop, so that all systems
see the same drift of the machine. A run that was stopped goes on where it stopped. Needs the
datasets (NYSPLUS_DATA names their folder).

    python benchmarks/speed.py [--datasets letter usps] [--sizes 250 1000] [--repeats 5] [--fresh]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import csv_rows
import numpy as np
from blas_floor import measure_floor
from child_process import (
    ChildError,
    TimeLimit,
    environment,
    n_threads,
    resident_mb,
    restart_with_fixed_threads,
    run_in_child,
)
from measurement import RESULTS, Cell, Measurement
from objective import training_objective
from peers import RHO, SYSTEMS, System
from schedule import DATASETS, REPEATS_BY_SECONDS, Task, plan, wanted_repeats

from nysplus.experiments._measure import Measure, measure
from nysplus.experiments.datasets import DatasetNotFound, load

# A full kernel machine on more rows would take longer than all the rest together.
MAX_TRAIN_ROWS = 100_000
# Seconds up to which a prediction is repeated.
SHORT_PREDICT = 5.0
# scikit-learn's pipeline takes two N × n matrices to predict; this many rows bound its time.
MAX_TEST_ROWS = 20_000
WARM_UP_ROWS, WARM_UP_SIZE = 500, 50


@dataclass(frozen=True)
class Problem:
    """Rows of one dataset in both types, holding the same values, and classes as numbers."""

    name: str
    gamma: float
    X: dict[str, np.ndarray]
    codes: np.ndarray
    X_test: dict[str, np.ndarray]
    test_codes: np.ndarray


def load_problem(name: str) -> Problem:
    """Load a dataset, cut to the rows that are measured. Calls no BLAS."""
    split = load(name, public_split=name == "ijcnn1", dtype=np.float32)
    X, y = split.X_train[:MAX_TRAIN_ROWS], split.y_train[:MAX_TRAIN_ROWS]
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


def _spread(n_rows: int, wanted: int) -> np.ndarray:
    """Return at most ``wanted`` row numbers, evenly spread: files may be ordered by class."""
    return np.linspace(0, n_rows - 1, min(wanted, n_rows)).astype(int)


# -- in the child --------------------------------------------------------------------------------


def measure_system(problem: Problem, system: System, n: int | None, objective: bool) -> dict:
    """Warm up, fit, predict; return the columns of a `Measurement`."""
    X, X_test = problem.X[system.dtype], problem.X_test[system.dtype]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warm_up(problem, system, n)
        caught.clear()
        model = system.make(n, problem.gamma)
        before = resident_mb()
        fitted, fit_cpu, _ = _timed(model.fit, X, problem.codes)
        # A short call is timed three times: the median is what a server would see.
        calls = [_timed(model.predict, X_test)]
        if calls[0][0].seconds < SHORT_PREDICT:
            calls += [_timed(model.predict, X_test) for _ in range(2)]
        predicted, predict_cpu, codes = sorted(calls, key=lambda call: call[0].seconds)[
            len(calls) // 2
        ]
    columns = {
        "status": "ok",
        "note": " ".join(str(caught[0].message).split())[:120] if caught else "",
        "fit_seconds": fitted.seconds,
        "fit_cpu_seconds": fit_cpu,
        "predict_seconds": predicted.seconds,
        "predict_cpu_seconds": predict_cpu,
        "accuracy": 100 * float(np.mean(codes == problem.test_codes)),
        "model_bytes": system.stored_bytes(model),
        "peak_mb": _above(fitted, before),
        "predict_peak_mb": _above(predicted, before),
        "solver": getattr(model, "solver_", ""),
    }
    if objective and system.expansion is not None:
        columns["objective"] = training_objective(
            problem.X["float64"], problem.codes, system.expansion(model), problem.gamma, RHO
        )
    return columns


def load_and_measure_system(dataset: str, system: System) -> dict:
    """Measure in a child that shares no data with its parent."""
    return measure_system(load_problem(dataset), system, None, False)


def _warm_up(problem: Problem, system: System, n: int | None) -> None:
    """Import, start threads, touch the code: a small fit of the same system."""
    X, X_test = problem.X[system.dtype], problem.X_test[system.dtype]
    rows = _spread(len(X), WARM_UP_ROWS)
    # XGBoost wants classes without gaps, and a few rows may lack one.
    codes = np.unique(problem.codes[rows], return_inverse=True)[1]
    size = None if n is None else min(n, WARM_UP_SIZE)
    system.make(size, problem.gamma).fit(X[rows], codes).predict(X_test[:WARM_UP_ROWS])


def _timed(function: Any, *args: Any) -> tuple[Measure, float, Any]:
    with measure() as wall:
        cpu = time.process_time()
        result = function(*args)
        cpu = time.process_time() - cpu
    return wall, cpu, result


def _above(measured: Measure, before: float) -> float | None:
    return None if measured.peak_rss_mb is None else max(measured.peak_rss_mb - before, 0.0)


def measure_products(problem: Problem, dtype: str, n: int) -> dict:
    """Measure the BLAS floor; return the columns of a `Measurement`."""
    return {"status": "ok", "fit_seconds": measure_floor(problem.X[dtype], n).seconds}


# -- in the parent -------------------------------------------------------------------------------


def run_task(task: Task, problem: Problem, options: argparse.Namespace) -> Measurement:
    """Measure one task in a child; whatever happens there becomes a row."""
    X = problem.X[task.dtype]
    row = Measurement(
        *task.cell, *(len(X), len(problem.test_codes), X.shape[1]), task.repeat, "error"
    )
    try:
        if task.system is None:
            columns = run_in_child(measure_products, problem, task.dtype, task.n)
        elif task.system.trees and options.tree_waiting == "library":
            columns = run_in_child(
                load_and_measure_system,
                *(task.dataset, task.system),
                time_limit=options.time_limit,
                library_waiting=True,
            )
        else:
            columns = run_in_child(
                measure_system,
                *(problem, task.system, task.n, task.repeat == 0),
                time_limit=options.time_limit,
            )
    except TimeLimit as error:
        columns = {"status": "time limit", "note": str(error)}
    except ChildError as error:
        columns = {"note": " ".join(str(error).split())[:200]}
    return replace(row, threads=n_threads(), **columns)


def load_problems(names: list[str]) -> dict[str, Problem]:
    """Load the datasets that there are; say which there are not."""
    problems = {}
    for name in names:
        try:
            problems[name] = load_problem(name)
        except DatasetNotFound as error:
            print(f"{name} is left out. {error}")
    return problems


def run(options: argparse.Namespace) -> None:
    """Measure everything that is not in the file yet."""
    systems = [system for system in SYSTEMS if system.name in options.systems]
    for system in systems:
        if not system.installed:
            print(f"{system.title} is left out: pip install {system.package} to include it.")
    systems = [system for system in systems if system.installed]
    problems = load_problems(options.datasets)
    settings = {"time_limit": options.time_limit, "tree_waiting": options.tree_waiting}
    rows = csv_rows.begin(options.out, Measurement, environment() | settings, options.fresh)
    # An error may be mended by now; everything else stands.
    rows = [row for row in rows if row.status != "error"]
    done = {(row.cell, row.repeat) for row in rows}
    wanted = {row.cell: wanted_repeats(row) for row in rows}
    tasks = [
        task
        for task in plan(list(problems), options.sizes, options.repeats, systems)
        if (task.cell, task.repeat) not in done
    ]
    seconds: dict[Cell, float] = {}
    for number, task in enumerate(tasks):
        if task.repeat >= wanted.get(task.cell, options.repeats):
            continue
        start = time.perf_counter()
        row = run_task(task, problems[task.dataset], options)
        seconds[task.cell] = time.perf_counter() - start
        wanted[task.cell] = wanted_repeats(row)
        csv_rows.append(options.out, row)
        typical = statistics.mean(seconds.values())
        rest = sum(
            seconds.get(other.cell, typical)
            for other in tasks[number + 1 :]
            if other.repeat < wanted.get(other.cell, 1)
        )
        print(_line(row, rest), flush=True)
    print(f"{len(csv_rows.read(options.out, Measurement))} measurements are in {options.out}.")


def _line(row: Measurement, rest: float) -> str:
    size = "" if row.n is None else f"n={row.n}"
    what = f"{row.repeat + 1}. {row.dataset:8s}{row.system:19s}{row.dtype:8s} {size:7s}"
    if row.status != "ok":
        return f"{what}{row.status}: {row.note}; about {rest / 60:.0f} min left"
    fit = f"fit {row.fit_seconds:7.3f} s"
    if row.accuracy is not None:
        fit += f", predict {row.predict_seconds:6.3f} s, {row.accuracy:5.2f} %"
    return f"{what}{fit}; about {rest / 60:.0f} min left"


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = list(dict.fromkeys(system.name for system in SYSTEMS))
    parser.add_argument("--datasets", nargs="+", choices=list(DATASETS), default=list(DATASETS))
    parser.add_argument("--systems", nargs="+", choices=names, default=names)
    parser.add_argument("--sizes", nargs="+", type=int, help="default: by dataset")
    parser.add_argument("--repeats", type=int, default=REPEATS_BY_SECONDS[0][1], help="at most")
    parser.add_argument("--time-limit", type=float, default=240.0, help="seconds a measurement")
    parser.add_argument(
        "--tree-waiting",
        choices=("passive", "library"),
        default="passive",
        help="waiting threads of LightGBM and XGBoost sleep (as everywhere else here), or do what "
        "the library does by itself",
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "speed.csv")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    try:
        run(parser.parse_args())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")


if __name__ == "__main__":
    main()
