"""Accuracy of every landmark selector on many datasets, sizes and kernel widths.

In each trial every rule is fitted to the same random subset of the training rows. The width is
``1 / (d Var(X))`` ("scale"), four times that ("4 scale"), or chosen by the estimator ("auto").
Trials are the outermost loop, so that an interrupted run is balanced. Single-threaded processes
share the fits: the measurement is the accuracy, and seconds are only indicative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sklearn.metrics import root_mean_squared_error

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.landmarks import SELECTORS
from nysplus_experiments.harness import problems
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.selection.comparison import WIDTHS

FILE = "selection.csv"
DATASETS = tuple(name for name in problems.SOURCES if name != problems.SMOKE)
SIZES = (20, 100, 500)
TRIALS = 5


@dataclass(frozen=True)
class SelectionFit(Row, key="dataset n width selector trial"):
    """One row of ``selection.csv``: accuracy in percent, RMSE in deviations of the target.

    ``gamma`` and ``alpha`` are those of the fitted model; the trial is the seed.
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


def selectors(regression: bool) -> list[str]:
    """Return the names of the rules for a kind of target, "auto" last."""
    names = SELECTORS.keys() - {"auto"}
    if regression:
        allowed = {name for name in names if SELECTORS[name].targets != "classes"}
    else:
        allowed = names - {"residual"}  # designed for regression
    return [*sorted(allowed), "auto"]


def plan(
    datasets: Sequence[str],
    sizes: Sequence[int],
    widths: Sequence[str],
    rules: Sequence[str],
    trials: int,
) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, n, width, selector and trial, trial by trial and small sizes first."""
    for trial, n, dataset, width in product(range(trials), sizes, datasets, widths):
        for rule in selectors(problems.SOURCES[dataset].regression):
            if rule in rules:
                yield dataset, n, width, rule, trial


def run_fit(dataset: str, n: int, width: str, selector: str, trial: int) -> SelectionFit:
    """Fit one rule and score it on the test rows."""
    problem = problems.load_problem(dataset, trial)
    regression = problems.SOURCES[dataset].regression
    estimator: Any = NystroemRegressor if regression else NystroemClassifier
    model = estimator(n, gamma=problem.width(width), selection=selector, random_state=trial)
    predicted, seconds = problems.fit_and_predict(model, problem)
    error = root_mean_squared_error(problem.y_test, predicted) if regression else None
    return SelectionFit(
        *(dataset, n, width, selector, trial),
        accuracy=None if regression else problems.accuracy(predicted, problem),
        rmse=error,
        seconds=seconds,
        gamma=float(model.gamma_),
        alpha=float(model.alpha_),
    )


def run(options: BenchOptions) -> None:
    """Measure every rule. Options: sizes, widths, selectors, trials, workers (0: none)."""
    options.expect("sizes", "widths", "selectors", "trials", "workers")
    every_rule = sorted({*selectors(True), *selectors(False)})
    tasks = plan(
        problems.chosen_datasets(options, DATASETS),
        options.integers("sizes", SIZES[:1] if options.smoke else SIZES),
        options.texts("widths", WIDTHS, WIDTHS),
        options.texts("selectors", every_rule, every_rule),
        options.integer("trials", 1 if options.smoke else TRIALS),
    )
    settings = {
        "threads": 1,
        "max_train_rows": problems.MAX_TRAIN_ROWS,
        "max_test_rows": problems.MAX_TEST_ROWS,
    }
    workers = options.integer("workers", 2)
    options.measure(FILE, SelectionFit, tasks, run_fit, settings=settings, workers=workers)
