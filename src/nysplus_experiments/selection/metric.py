"""Learned metrics against none, and against gradient boosting with its defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from nysplus import NystroemClassifier
from nysplus_experiments.harness import problems
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.measurement import run_in_child
from nysplus_experiments.harness.records import Row
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.harness.tables import MISSING, markdown, size, spread
from nysplus_experiments.selection.tables import points
from nysplus_experiments.speed.peers import SYSTEMS

FILE = "tuning_metric.csv"
SPARSE = "5 of 20 features"
SPARSE_FEATURES, SPARSE_ROWS, SPARSE_NOISE = 20, (15_000, 5000), 0.05
DATASETS = ("magic", "covtype", "susy", SPARSE)
LANDMARKS, TRIALS = 300, 3
PLAIN = "no metric"
METRICS = {PLAIN: None, "diagonal": "diagonal", "full": "full"}
TREES = {system.name: system for system in SYSTEMS if system.trees}
TITLES = {
    **{PLAIN: "`metric=None`", "diagonal": '`metric="diagonal"`', "full": '`metric="full"`'},
    **{name: system.title for name, system in TREES.items()},
}


@dataclass(frozen=True)
class MetricFit(Row, key="dataset system trial"):
    """One row of ``tuning_metric.csv``; ``model_bytes`` is the size of the stored model."""

    dataset: str
    system: str
    trial: int
    accuracy: float
    seconds: float
    model_bytes: int


def plan(datasets: Sequence[str], trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, system and trial; the order of the systems alternates."""
    names = [*METRICS, *(name for name, system in TREES.items() if system.installed)]
    for trial, dataset in product(range(trials), datasets):
        yield from ((dataset, name, trial) for name in names[:: -1 if trial % 2 else 1])


def sparse_problem(trial: int, rows: tuple[int, int] = SPARSE_ROWS) -> problems.Problem:
    """Return rows in the unit cube whose two classes depend on the first five features only."""
    rng = np.random.RandomState(trial)
    n_train = rows[0]
    X = rng.uniform(size=(sum(rows), SPARSE_FEATURES))
    u = 2 * X - 1
    values = np.sin(3 * u[:, 0]) + 2 * u[:, 1] * u[:, 2] + 2 * u[:, 3] ** 2 - u[:, 4]
    y = (values > np.median(values)) ^ (rng.uniform(size=len(X)) < SPARSE_NOISE)
    y = y.astype(int)
    scale = 1 / (SPARSE_FEATURES * X[:n_train].var())
    return problems.Problem(X[:n_train], y[:n_train], X[n_train:], y[n_train:], scale)


def run_fit(dataset: str, system: str, trial: int) -> MetricFit:
    """Fit one system in a process of its own."""
    problem = sparse_problem(trial) if dataset == SPARSE else problems.load_problem(dataset, trial)
    columns = run_in_child(measure, problem, system, trial, library_waiting=system in TREES)
    return MetricFit(dataset, system, trial, *columns)


def measure(problem: problems.Problem, name: str, trial: int) -> tuple[float, float, int]:
    """Fit after a warm-up; return accuracy, seconds and bytes."""
    classes, codes = np.unique(problem.y, return_inverse=True)  # XGBoost needs classes 0 to L − 1
    problem = replace(problem, y=codes, y_test=np.searchsorted(classes, problem.y_test))
    make, stored_bytes = _maker(name, trial)
    # Some rows of every class.
    small = np.union1d(np.unique(codes, return_index=True)[1], np.arange(500))
    make(20).fit(problem.X[small], codes[small]).predict(problem.X_test[:500])
    model = make(LANDMARKS)
    return *problems.fit_and_score(model, problem), stored_bytes(model)


def _maker(name: str, trial: int) -> tuple[Callable[[int], Any], Callable[[Any], int]]:
    """Return a function that makes a system of a size, and one that counts its bytes."""
    if name in TREES:
        return lambda n: TREES[name].make(None, 0.0), TREES[name].stored_bytes
    settings: dict[str, Any] = {"gamma": "auto", "metric": METRICS[name], "random_state": trial}
    return lambda n: NystroemClassifier(n, **settings), lambda model: int(model.model_bytes_)


def run(options: BenchOptions) -> None:
    """Measure metrics and gradient boosting. Option of this step: trials."""
    options.expect("trials")
    names = (
        [problems.SMOKE]
        if options.smoke
        else options.choose_datasets((*DATASETS, problems.SMOKE), DATASETS)
    )
    datasets = [name for name in names if name == SPARSE or problems.available([name])]
    tasks = plan(datasets, options.integer("trials", 1 if options.smoke else TRIALS))
    options.measure(FILE, MetricFit, tasks, run_fit)


def metric_table(fits: pd.DataFrame) -> str:
    """Return accuracy, time and bytes, one line a dataset and system."""
    plain = fits[fits["system"] == PLAIN].set_index(["dataset", "trial"])["accuracy"]
    fits = fits.join(plain.rename("plain"), on=["dataset", "trial"])
    groups = dict(list(fits.groupby(["dataset", "system"])))
    lines = []
    for dataset, name in product(fits["dataset"].unique(), TITLES):
        if (dataset, name) in groups:
            own = groups[dataset, name]
            gains = (own["accuracy"] - own["plain"]).dropna()
            compared = len(gains) and name != PLAIN
            title = problems.SOURCES[dataset].title if dataset in problems.SOURCES else dataset
            accuracy = points(estimate(own["accuracy"]))
            gain = points(estimate(gains), sign=True) if compared else MISSING
            costs = (spread(own["seconds"]), size(own["model_bytes"].median()))
            lines.append([title, TITLES[name], accuracy, gain, *costs])
    header = ("data", "system", "accuracy, %", "against no metric, points", "fit, s", "model")
    return markdown(header, lines)
