"""Accuracy of every landmark selector, on many datasets, sizes and kernel widths.

In each trial a random subset of the training rows, at most 20,000, is fitted with every rule;
the trial's number is the seed of the split and of the fit. Public splits are kept where there are
any, other data are split 2 : 1 at random. Features are scaled to [0, 1] by the training rows, one
range a feature (images: one range in all); for regression features and target are standardised.
The width is ``1 / (d Var(X))`` of the training subset ("scale"), four times that ("4 scale"), or
left to the estimator ("auto").

Trials are the outermost loop and sizes the next, so that a file of a run that was stopped is
already balanced; the same command goes on from there. Worker processes of one thread each share
the list: accuracy is what is measured, and seconds are only indicative. Data that nysplus has no
loader for are read from the folder that NYSPLUS_DATA names.

    python benchmarks/selection.py [--workers 2] [--datasets usps letter] [--selectors uniform auto]
        [--trials 5] [--smoke] [--fresh]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import astuple, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import csv_rows
import numpy as np
from child_process import environment, restart_with_fixed_threads
from measurement import RESULTS
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.experiments.datasets import DatasetNotFound, load
from nysplus.landmarks import SELECTORS

MAX_TRAIN_ROWS, MAX_TEST_ROWS = 20_000, 10_000
SIZES = (20, 100, 500)
WIDTHS = ("scale", "4 scale", "auto")
TRIALS = 5
SMOKE = "digits"


# -- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Where the rows of a dataset come from.

    Attributes
    ----------
    title : str
    loader : str
        Name in `nysplus.experiments.datasets`, or empty.
    file : str
        Name of the ``.npz`` file in the folder of data, where there is no loader.
    public_split : bool
        Passed to the loader.
    regression : bool
    """

    title: str
    loader: str = ""
    file: str = ""
    public_split: bool = False
    regression: bool = False


SOURCES = {
    "usps": Source("USPS", "usps"),
    "letter": Source("Letter", "letter"),
    "cod_rna": Source("COD-RNA", "cod_rna"),
    "ijcnn1": Source("IJCNN, public split", "ijcnn1", public_split=True),
    "ijcnn1-resplit": Source("IJCNN, split anew", "ijcnn1"),
    "mnist": Source("MNIST", "mnist"),
    "covtype": Source("CovType", "covtype"),
    "shuttle": Source("Shuttle", "shuttle"),
    "pendigits": Source("Pendigits", file="pendigits"),
    "a9a": Source("a9a", file="a9a"),
    "magic": Source("Magic", file="magic_gamma"),
    "susy": Source("SUSY, 30,000 rows", file="susy_30k_subset"),
    "skin": Source("Skin", file="skin_nonskin"),
    "california": Source("California housing", file="california_housing", regression=True),
    "kin40k": Source("kin40k", file="kin40k_regression", regression=True),
    SMOKE: Source("digits", SMOKE),
}
DATASETS = tuple(name for name in SOURCES if name != SMOKE)


@dataclass(frozen=True)
class Problem:
    """Rows of one trial; ``scale`` is the width that scikit-learn calls "scale"."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    scale: float

    def width(self, name: str) -> float | str:
        """Return what to pass as gamma for a name in `WIDTHS`."""
        return {"scale": self.scale, "4 scale": 4 * self.scale, "auto": "auto"}[name]


# Every dataset of a trial stays: sizes are an outer loop, and come back to all of them.
@lru_cache(maxsize=len(SOURCES))
def load_problem(
    name: str, trial: int, max_train: int = MAX_TRAIN_ROWS, max_test: int = MAX_TEST_ROWS
) -> Problem:
    """Split, scale and draw the rows of a trial."""
    source = SOURCES[name]
    if source.loader:
        split = load(source.loader, trial, public_split=source.public_split)
        X, y, X_test, y_test = split.X_train, split.y_train, split.X_test, split.y_test
    else:
        X, X_test, y, y_test = _read_split(source.file, trial)
        scaler = StandardScaler() if source.regression else MinMaxScaler()
        X, X_test = scaler.fit_transform(X), scaler.transform(X_test)
        if source.regression:  # so that errors are in units of the target's own spread
            mean, deviation = y.mean(), y.std()
            y, y_test = (y - mean) / deviation, (y_test - mean) / deviation
    rng = np.random.RandomState(trial)
    train, test = rng.permutation(len(X))[:max_train], rng.permutation(len(X_test))[:max_test]
    X = np.ascontiguousarray(X[train])
    return Problem(X, y[train], X_test[test], y_test[test], 1 / (X.shape[1] * X.var()))


def _read_split(file: str, trial: int) -> list[np.ndarray]:
    """Return X, X_test, y and y_test as float64 and as stored, split 2 : 1 unless published so."""
    path = Path(os.environ.get("NYSPLUS_DATA", ".")).expanduser() / f"{file}.npz"
    if not path.is_file():
        raise DatasetNotFound(f"{path} is not there. NYSPLUS_DATA names the folder that holds it.")
    with np.load(path) as arrays:
        if "X_train" in arrays:
            rows = [arrays[key] for key in ("X_train", "X_test", "y_train", "y_test")]
        else:
            rows = train_test_split(arrays["X"], arrays["y"], test_size=1 / 3, random_state=trial)
    return [rows[0].astype(np.float64), rows[1].astype(np.float64), *rows[2:]]


# -- what is run ---------------------------------------------------------------------------------


class Key(NamedTuple):
    """What a fit is about."""

    dataset: str
    n: int
    width: str
    selector: str
    trial: int


@dataclass(frozen=True)
class SelectionFit:
    """One row of ``selection.csv``.

    Attributes
    ----------
    dataset, n, width, selector, trial
        What was fitted; names of `SOURCES`, `WIDTHS` and of ``selection``.
    accuracy : float or None
        Test rows classified right, in percent; None for regression.
    rmse : float or None
        Root mean squared error of the test rows, in standard deviations of the training rows'
        target; None for classification.
    seconds : float
        Of the fit, with other fits running beside it.
    gamma, alpha : float
        As used.
    """

    dataset: str
    n: int
    width: str
    selector: str
    trial: int
    accuracy: float | None
    rmse: float | None
    seconds: float
    gamma: float
    alpha: float

    @property
    def key(self) -> Key:
        """What the row is about."""
        return Key(*astuple(self)[:5])


def selectors(regression: bool) -> list[str]:
    """Return the names of the rules that are made for a kind of target, "auto" last."""
    names = SELECTORS.keys() - {"auto"}
    if regression:
        allowed = {name for name in names if SELECTORS[name].targets != "classes"}
    else:
        allowed = names - {"residual"}  # made for numbers, not for classes
    return [*sorted(allowed), "auto"]


def plan(
    datasets: Sequence[str], sizes: Sequence[int], widths: Sequence[str], rules: Sequence[str],
    trials: int,
) -> Iterator[Key]:  # fmt: skip
    """Yield all fits, trial by trial and small ones first."""
    for trial in range(trials):
        for n in sizes:
            for dataset in datasets:
                for width in widths:
                    for rule in selectors(SOURCES[dataset].regression):
                        if rule in rules:
                            yield Key(dataset, n, width, rule, trial)


def fit_and_predict(model: Any, problem: Problem) -> tuple[np.ndarray, float]:
    """Return what a model predicts for the test rows, and the seconds of its fit."""
    start = time.perf_counter()
    model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    return model.predict(problem.X_test), seconds


def accuracy(predicted: np.ndarray, problem: Problem) -> float:
    """Return the test rows classified right, in percent."""
    return 100 * float(np.mean(predicted == problem.y_test))


def run_fit(key: Key) -> SelectionFit | str:
    """Return the row of a fit, or what went wrong."""
    problem = load_problem(key.dataset, key.trial)
    regression = SOURCES[key.dataset].regression
    estimator = NystroemRegressor if regression else NystroemClassifier
    model = estimator(
        key.n, gamma=problem.width(key.width), selection=key.selector, random_state=key.trial
    )
    try:
        predicted, seconds = fit_and_predict(model, problem)
    except Exception as error:  # one rule that fails must not end a run of an hour
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if regression:
        scores = None, float(root_mean_squared_error(problem.y_test, predicted))
    else:
        scores = accuracy(predicted, problem), None
    return SelectionFit(*key, *scores, seconds, float(model.gamma_), float(model.alpha_))


def results(tasks: Sequence[Key], workers: int) -> Iterator[tuple[Key, SelectionFit | str]]:
    """Yield fits as they finish."""
    if workers == 1:
        yield from ((task, run_fit(task)) for task in tasks)
        return
    # An interrupt is the parent's to handle.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, ignore)
    try:
        running = {pool.submit(run_fit, task): task for task in tasks}
        for future in as_completed(running):
            yield running[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def available(names: Sequence[str]) -> list[str]:
    """Return the datasets that there are; say which there are not."""
    found = []
    for name in names:
        try:
            load_problem(name, 0)
            found.append(name)
        except DatasetNotFound as error:
            print(f"{name} is left out. {error}")
    load_problem.cache_clear()  # workers load their own
    return found


def run(options: argparse.Namespace) -> int:
    """Run everything that is not in the file yet; return the number of failures."""
    settings = {"max_train_rows": MAX_TRAIN_ROWS, "max_test_rows": MAX_TEST_ROWS}
    fits = csv_rows.begin(options.out, SelectionFit, environment() | settings, options.fresh)
    done = {fit.key for fit in fits}
    wanted = plan(
        *(available(options.datasets), options.sizes, options.widths), options.selectors,
        options.trials,
    )  # fmt: skip
    tasks = [task for task in wanted if task not in done]
    show = sys.stderr.isatty()
    start, work, all_work, failures = time.perf_counter(), 0, sum(task.n for task in tasks), 0
    for count, (task, result) in enumerate(results(tasks, options.workers), start=1):
        if isinstance(result, str):
            failures += 1
            print(f"{' '.join(map(str, task))}: {result}", flush=True)
        else:
            csv_rows.append(options.out, result)
        work += task.n  # time grows roughly with n
        if show:
            left = (time.perf_counter() - start) * (all_work - work) / work / 60
            line = f"{count} of {len(tasks)} fits, about {left:.0f} min left; {task.dataset}"
            print(f"\r{line:78s}", end="", file=sys.stderr, flush=True)
    if show and tasks:
        print(file=sys.stderr)
    print(f"{len(csv_rows.read(options.out, SelectionFit))} fits are in {options.out}.")
    return failures


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    rules = sorted({*selectors(True), *selectors(False)})
    parser.add_argument("--datasets", nargs="+", choices=[*DATASETS, SMOKE], default=DATASETS)
    parser.add_argument("--selectors", nargs="+", choices=rules, default=rules)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--widths", nargs="+", choices=WIDTHS, default=WIDTHS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--smoke", action="store_true", help="seconds: digits, n = 20, one trial")
    parser.add_argument("--out", type=Path, help="default: results/selection.csv; build/ for smoke")
    parser.add_argument("--fresh", action="store_true", help="run again what is there")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.datasets, options.sizes, options.trials = (SMOKE,), SIZES[:1], 1
    folder = RESULTS.parents[1] / "build" if options.smoke else RESULTS
    options.out = options.out or folder / "selection.csv"
    return options


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    restart_with_fixed_threads()
    try:
        failures = run(parse())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")
    except BrokenProcessPool:
        sys.exit("A worker died, perhaps for want of memory. The same command goes on from here.")
    if failures:
        sys.exit(f"{failures} fits failed; the same command tries them again.")


if __name__ == "__main__":
    main()
