"""How accurate models of a few kilobytes are: ours, a full SVM, gradient boosting, scikit-learn.

- ``targets``: refined models of a size, with a number to reach
- ``svc``: support vector machines in turn with refined models whose settings are not searched for,
  so that times can be compared
- ``tabular``: refined and unrefined models of 16 kB against gradient boosting
- ``flipped``: training rows of which a tenth have a wrong label
- ``draws``: few training rows, with and without refinement: does the guard hold?
- ``peers`` and ``sizes``: what the figure needs beside the targets
- ``regression``: numbers instead of classes

A seed is that of the split, of the order of the rows and of the fit. Rows are read, split and
scaled as for `selection`, but all of them are used. Settings are the defaults of each library;
nothing is set for a dataset. Everything is fitted one after the other with the threads of
OMP_NUM_THREADS, gradient boosting in a process of its own, where its threads wait as they like.
A run that was stopped goes on with the same command. NYSPLUS_DATA names the folder of the data.

    python benchmarks/kilobytes.py [--only targets sizes] [--datasets letter usps] [--seeds 5]
        [--smoke] [--fresh]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import csv_rows
import numpy as np
from child_process import environment, n_threads, restart_with_fixed_threads, run_in_child
from measurement import RESULTS
from peers import SYSTEMS, System
from selection import SMOKE, SOURCES, Problem, accuracy, load_problem
from sklearn.metrics import root_mean_squared_error

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus.experiments.datasets import DatasetNotFound

SEEDS = 5
ALL_ROWS = sys.maxsize
# -- methods
SELECTED, REFINED, QUICK = "selected", "refined", "quick"
SVC, NYSTROEM, TREES = "sklearn-svc", "sklearn-nystroem", ("lightgbm", "xgboost")
REFINE = {SELECTED: False, REFINED: True, QUICK: Refinement(search=False)}
PEERS = {
    name: next(s for s in SYSTEMS if s.name == name and s.dtype == dtype)
    for name, dtype in ((SVC, "float64"), (NYSTROEM, "float32"), *((t, "float32") for t in TREES))
}
# -- data, the quickest first
FIGURE_DATASETS = ("pendigits", "usps", "letter", "ijcnn1", "covtype", "mnist")
TABULAR_DATASETS, TABULAR_SETTING = ("magic", "susy", "a9a", "skin"), "16kB"
FLIPPED_DATASET, FLIPPED_SETTING, FLIPPED_SHARE = "letter", "64kB", 0.1
DRAW_DATASETS = ("pendigits", "letter", "usps", "magic", "susy", "a9a")
DRAWS, DRAW_ROWS, DRAW_SETTING = 20, 500, "100"
REGRESSION_DATASETS, REGRESSION_SETTING = ("california", "kin40k"), "16kB"
# How many seeds a support vector machine is worth; on MNIST one fit takes many minutes.
SVC_SEEDS, QUICK_SETTING = {"usps": SEEDS, "letter": SEEDS, "mnist": 1}, "250"
# Beside them in the figure. 500,000 rows of CovType are too many for it.
SVC_FIGURE_DATASETS = ("pendigits", "ijcnn1")
NYSTROEM_SIZES = ("30", "100", "500")
CURVE_BUDGETS, CURVE_SIZES = ("4kB", "16kB", "64kB"), ("20", "100", "500")
# 500,000 rows take minutes for each.
CURVES = {"covtype": ("16kB", "20", "100", "500")}
# Where fits are quick, and where they are not.
CURVE_SEEDS = {"pendigits": 3, "usps": 3, "letter": 3, "ijcnn1": 1, "covtype": 1, "mnist": 1}
# Boosting on MNIST takes minutes; more than this is given up.
TREE_SECONDS = 1200
# Predictions that are quicker than a second are timed three times, and the median counts.
SHORT_PREDICT = 1.0


class Target(NamedTuple):
    """An accuracy in percent that a refined model of a size is to reach."""

    dataset: str
    setting: str
    wanted: float


TARGETS = (
    Target("pendigits", "100", 98.0),
    Target("pendigits", "500", 98.0),
    Target("usps", "64kB", 95.5),
    Target("usps", "16kB", 95.2),
    Target("letter", "64kB", 98.4),
    Target("letter", "16kB", 98.0),
    Target("ijcnn1", "100", 97.8),
    Target("ijcnn1", "500", 98.2),
    Target("ijcnn1-resplit", "100", 99.0),
    Target("ijcnn1-resplit", "500", 99.2),
    Target("mnist", "64kB", 98.2),
    Target("mnist", "16kB", 97.2),
    Target("mnist", "4kB", 88.0),
    Target("mnist", "1MB", 98.6),
    Target("covtype", "500", 90.0),
)


class Key(NamedTuple):
    """What a fit is about.

    Attributes
    ----------
    method : str
        A name in `REFINE` or in `PEERS`.
    setting : str
        A budget such as "16kB", a number of landmarks such as "100", or empty.
    """

    part: str
    dataset: str
    method: str
    setting: str
    seed: int


@dataclass(frozen=True)
class CompactFit:
    """One row of ``kilobytes.csv``.

    Attributes
    ----------
    part, dataset, method, setting, seed
        As in `Key`.
    accuracy, rmse : float or None
        Of the test rows: percent classified right, or the error in standard deviations of the
        training rows' target.
    bytes : int
        What has to be stored to predict.
    landmarks, rank : int or None
        Landmarks, and columns of the learned map; None where there are none.
    storage : str
        Type of the stored landmarks; empty for the other libraries.
    refined : int or None
        1 where refinement was kept, 0 where not.
    rows, test_rows : int
    """

    part: str
    dataset: str
    method: str
    setting: str
    seed: int
    accuracy: float | None
    rmse: float | None
    bytes: int
    landmarks: int | None
    rank: int | None
    storage: str
    refined: int | None
    fit_seconds: float
    predict_seconds: float
    rows: int
    test_rows: int
    threads: int

    @property
    def key(self) -> Key:
        """What the row is about."""
        return Key(*astuple(self)[:5])


# -- what is run ---------------------------------------------------------------------------------


def in_bytes(setting: str) -> bool:
    """Tell a budget from a number of landmarks."""
    return setting.endswith("B")


def _targets(dataset: str, seeds: int) -> Iterator[Key]:
    own = [target for target in TARGETS if target.dataset == dataset]
    for seed in range(seeds):
        for target in own:
            yield Key("targets", dataset, REFINED, target.setting, seed)


def _svc(dataset: str, seeds: int) -> Iterator[Key]:
    for seed in range(min(SVC_SEEDS[dataset], seeds)):
        yield Key("svc", dataset, QUICK, QUICK_SETTING, seed)
        yield Key("svc", dataset, SVC, "", seed)


def _tabular(dataset: str, seeds: int) -> Iterator[Key]:
    for seed in range(seeds):
        for method in (REFINED, SELECTED):
            yield Key("tabular", dataset, method, TABULAR_SETTING, seed)
        for method in TREES:
            yield Key("tabular", dataset, method, "", seed)


def _flipped(dataset: str, seeds: int) -> Iterator[Key]:
    for seed in range(seeds):
        for method in (REFINED, SELECTED):
            yield Key("flipped", dataset, method, FLIPPED_SETTING, seed)


def _draws(dataset: str, seeds: int) -> Iterator[Key]:
    for seed in range(DRAWS):
        for method in (SELECTED, REFINED):
            yield Key("draws", dataset, method, DRAW_SETTING, seed)


def _peers(dataset: str, seeds: int) -> Iterator[Key]:
    yield from (Key("peers", dataset, NYSTROEM, n, 0) for n in NYSTROEM_SIZES)
    if dataset in SVC_FIGURE_DATASETS:
        yield Key("peers", dataset, SVC, "", 0)
    yield from (Key("peers", dataset, method, "", 0) for method in TREES[::-1])


def _sizes(dataset: str, seeds: int) -> Iterator[Key]:
    known = {target.setting for target in TARGETS if target.dataset == dataset}
    for seed in range(min(CURVE_SEEDS[dataset], seeds)):
        for setting in CURVES.get(dataset, (*CURVE_BUDGETS, *CURVE_SIZES)):
            if setting not in known:
                yield Key("sizes", dataset, REFINED, setting, seed)
            if in_bytes(setting):
                yield Key("sizes", dataset, SELECTED, setting, seed)


def _regression(dataset: str, seeds: int) -> Iterator[Key]:
    for seed in range(seeds):
        for method in (REFINED, SELECTED):
            yield Key("regression", dataset, method, REGRESSION_SETTING, seed)
        yield Key("regression", dataset, TREES[0], "", seed)


class Part(NamedTuple):
    """A part of the run: its data, and ``plan(dataset, seeds)``, the fits of one."""

    datasets: tuple[str, ...]
    plan: Callable[[str, int], Iterator[Key]]


# The most important ones first.
PARTS = {
    "targets": Part(tuple(dict.fromkeys(target.dataset for target in TARGETS)), _targets),
    "svc": Part(tuple(SVC_SEEDS), _svc),
    "tabular": Part(TABULAR_DATASETS, _tabular),
    "flipped": Part((FLIPPED_DATASET,), _flipped),
    "draws": Part(DRAW_DATASETS, _draws),
    "peers": Part(FIGURE_DATASETS, _peers),
    "sizes": Part(FIGURE_DATASETS, _sizes),
    "regression": Part(REGRESSION_DATASETS, _regression),
}
DATASETS = tuple(dict.fromkeys(name for part in PARTS.values() for name in part.datasets))
# A fit of each kind on data that come with scikit-learn.
SMOKE_PLAN = (
    Key("targets", SMOKE, REFINED, "20", 0),
    Key("svc", SMOKE, QUICK, "20", 0),
    Key("svc", SMOKE, SVC, "", 0),
    Key("flipped", SMOKE, SELECTED, "20", 0),
    Key("draws", SMOKE, REFINED, "20", 1),
    Key("peers", SMOKE, NYSTROEM, "20", 0),
)


def plan(parts: Sequence[str], datasets: Sequence[str], seeds: int) -> Iterator[Key]:
    """Yield all fits, part by part in the order of `PARTS`; no peer that is not installed."""
    for name, part in PARTS.items():
        if name in parts:
            for dataset in part.datasets:
                if dataset in datasets:
                    for key in part.plan(dataset, seeds):
                        if key.method not in PEERS or PEERS[key.method].installed:
                            yield key


# -- rows ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)  # the fits of a seed follow each other, and MNIST is large
def rows_of(part: str, dataset: str, seed: int) -> Problem:
    """Return the rows of a fit, with classes as numbers from 0 on."""
    load_problem.cache_clear()
    few = DRAW_ROWS if part == "draws" else ALL_ROWS
    problem = load_problem(dataset, seed, few, ALL_ROWS)
    if SOURCES[dataset].regression:
        return problem
    classes, codes = np.unique(problem.y, return_inverse=True)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    # A class that no training row has is never right.
    test_codes = np.array([code_of.get(label, -1) for label in problem.y_test.tolist()])
    if part == "flipped":
        codes = flipped(codes, len(classes), seed)
    return replace(problem, y=codes, y_test=test_codes)


def flipped(codes: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """Return codes of which a share, drawn at random, is any of the other classes."""
    rng = np.random.RandomState(seed)
    chosen = rng.permutation(len(codes))[: round(FLIPPED_SHARE * len(codes))]
    wrong = codes.copy()
    wrong[chosen] += rng.randint(1, n_classes, size=len(chosen))
    return wrong % n_classes


# -- one fit -------------------------------------------------------------------------------------


def make_model(key: Key, problem: Problem) -> Any:
    """Return the unfitted model of a fit."""
    regression = SOURCES[key.dataset].regression
    if key.method not in PEERS:
        estimator = NystroemRegressor if regression else NystroemClassifier
        size = (
            {"budget": key.setting} if in_bytes(key.setting) else {"n_components": int(key.setting)}
        )
        return estimator(**size, refine=REFINE[key.method], random_state=key.seed)
    if regression:
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_jobs=n_threads(), random_state=key.seed, verbose=-1)
    return PEERS[key.method].make(int(key.setting) if key.setting else None, problem.scale)


def measure(key: Key) -> CompactFit:
    """Fit, and predict the test rows."""
    problem = rows_of(key.part, key.dataset, key.seed)
    system = PEERS.get(key.method)
    dtype = system.dtype if system else "float32"
    X, X_test = problem.X.astype(dtype), problem.X_test.astype(dtype)
    model = make_model(key, problem)
    start = time.perf_counter()
    model.fit(X, problem.y)
    fit_seconds = time.perf_counter() - start
    seconds: list[float] = []
    while not seconds or (seconds[0] < SHORT_PREDICT and len(seconds) < 3):
        start = time.perf_counter()
        predicted = model.predict(X_test)
        seconds.append(time.perf_counter() - start)
    if SOURCES[key.dataset].regression:
        scores = None, float(root_mean_squared_error(problem.y_test, predicted))
    else:
        scores = accuracy(predicted, problem), None
    return CompactFit(
        *key,
        *scores,
        *_size(model, system),
        fit_seconds,
        median(seconds),
        rows=len(X),
        test_rows=len(X_test),
        threads=n_threads(),
    )


def _size(model: Any, system: System | None) -> tuple[Any, ...]:
    """Return bytes, landmarks, rank, type of the stored landmarks and whether it is refined."""
    if system is not None:
        return system.stored_bytes(model), None, None, "", None
    P, storage = model.projection_, model.expansion_.storage
    landmarks = model.landmarks_ if storage is None else storage.landmarks.values
    return (
        *(int(model.model_bytes_), len(landmarks), None if P is None else P.shape[1]),
        *(landmarks.dtype.name, int(model.refined_)),
    )


def run_fit(key: Key) -> CompactFit:
    """Measure here, or in a new process where threads must wait differently."""
    if key.method in TREES:
        found: CompactFit = run_in_child(
            measure, key, time_limit=TREE_SECONDS, library_waiting=True
        )
        return found
    return measure(key)


# -- the run -------------------------------------------------------------------------------------


def _present(dataset: str) -> bool:
    """Tell whether there are rows; say so where there are none."""
    try:
        load_problem(dataset, 0, 1, 1)
    except DatasetNotFound as error:
        print(f"{dataset} is left out. {error}")
        return False
    return True


def warm_up() -> None:
    """Import what is measured in this process, and start its threads."""
    for key in SMOKE_PLAN:
        measure(key)


def run(options: argparse.Namespace) -> int:
    """Run everything that is not in the file yet; return the number of failures."""
    fits = csv_rows.begin(options.out, CompactFit, environment(), options.fresh)
    done = {fit.key for fit in fits}
    if options.smoke:
        wanted = SMOKE_PLAN
    else:
        present = [name for name in options.datasets if _present(name)]
        wanted = tuple(plan(options.only, present, options.seeds))
    tasks = [key for key in wanted if key not in done]
    if tasks:
        warm_up()
    start, failures = time.perf_counter(), 0
    for count, key in enumerate(tasks, start=1):
        try:
            row = run_fit(key)
        except Exception as error:  # one fit that fails must not end a run of an hour
            failures += 1
            what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        else:
            csv_rows.append(options.out, row)
            score = f"{row.accuracy:.2f} %" if row.accuracy is not None else f"{row.rmse:.4f}"
            what = f"{score}, {row.bytes:,} bytes, fit {row.fit_seconds:.1f} s"
        minutes = (time.perf_counter() - start) / 60
        print(
            f"{count}/{len(tasks)} {minutes:.1f} min: {' '.join(map(str, key))}: {what}", flush=True
        )
    return failures


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--smoke", action="store_true", help="seconds: a few fits of digits")
    parser.add_argument("--out", type=Path, help="default: results/kilobytes.csv; build/ for smoke")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    options = parser.parse_args(arguments)
    folder = RESULTS.parents[1] / "build" if options.smoke else RESULTS
    options.out = options.out or folder / "kilobytes.csv"
    return options


def main() -> None:
    restart_with_fixed_threads()
    try:
        failures = run(parse())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")
    if failures:
        sys.exit(f"{failures} fits failed; the same command tries them again.")


if __name__ == "__main__":
    main()
