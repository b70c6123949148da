"""What the estimators tune by themselves: the width, the metric, and how landmarks are chosen.

Three parts, each with a CSV file of its own; a part that was stopped goes on where it stopped.

- ``gamma``: ``gamma="auto"`` against a grid search with five folds over widths from 1/16 to 16
  times "scale", and against "scale" itself. One after the other in one process, so that times
  compare.
- ``metric``: no metric, a learned diagonal and a learned full one, against gradient boosting with
  its defaults on the same rows. Every fit is a process of its own.
- ``ablation``: "auto" landmarks, and class centroids with one idea changed at a time.

Rows are split and scaled as in ``selection.py``.

    python benchmarks/tuning.py gamma|metric|ablation [--datasets magic] [--trials 2] [--fresh]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import csv_rows
import numpy as np
from benchmark_runs import short, size, spread, table
from child_process import ChildError, environment, restart_with_fixed_threads, run_in_child
from measurement import RESULTS
from peers import SYSTEMS
from selection import (
    SIZES,
    SMOKE,
    SOURCES,
    Problem,
    accuracy,
    available,
    fit_and_predict,
    load_problem,
)
from selection_tables import Cell, Comparison, Lines, Observation, bounds, compare, points
from sklearn.model_selection import GridSearchCV

from nysplus import NystroemClassifier
from nysplus.experiments._runs import estimate
from nysplus.landmarks import ClassCentroids, make_selector

# -- the width -----------------------------------------------------------------------------------

GRID_POWERS = range(-4, 5)
GRID_FOLDS = 5
WIDTH_ROWS, WIDTH_SIZES = 5000, (100, 300)
WIDTH_DATASETS = (
    *("usps", "letter", "cod_rna", "ijcnn1-resplit", "mnist", "covtype", "magic", "susy"),
)
WAYS = ("auto", "grid", "scale")


@dataclass(frozen=True)
class WidthFit:
    """One row of ``tuning_gamma.csv``: accuracy in percent; seconds include the search."""

    n_key: ClassVar[int] = 4

    dataset: str
    n: int
    trial: int
    way: str
    accuracy: float
    seconds: float
    gamma: float


def plan_widths(datasets: Sequence[str], trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, n, trial and way; ways take turns."""
    for trial in range(trials):
        for dataset in datasets:
            for n in WIDTH_SIZES:
                for way in WAYS[:: -1 if trial % 2 else 1]:
                    yield dataset, n, trial, way


def fit_width(dataset: str, n: int, trial: int, way: str) -> WidthFit:
    """Fit with a width that is found in one of the ways."""
    problem = load_problem(dataset, trial, WIDTH_ROWS)
    if way == "grid":
        widths = [problem.scale * 2.0**power for power in GRID_POWERS]
        model = GridSearchCV(
            NystroemClassifier(n, random_state=trial), {"gamma": widths}, cv=GRID_FOLDS
        )
    else:
        model = NystroemClassifier(n, gamma=problem.width(way), random_state=trial)
    predicted, seconds = fit_and_predict(model, problem)
    gamma = float(getattr(model, "best_estimator_", model).gamma_)
    return WidthFit(dataset, n, trial, way, accuracy(predicted, problem), seconds, gamma)


def compare_widths(fits: Sequence[WidthFit]) -> Comparison | None:
    """Return the comparison of the ways."""
    return compare(
        Observation(Cell(fit.dataset, fit.n, ""), fit.way, fit.trial, fit.accuracy) for fit in fits
    )


def search_times(fits: Sequence[WidthFit]) -> list[float]:
    """Return the seconds of the grid search in units of those of "auto", fit by fit."""
    seconds = {(fit.dataset, fit.n, fit.trial, fit.way): fit.seconds for fit in fits}
    return [
        seconds[*key, "grid"] / seconds[*key, "auto"]
        for *key, way in seconds
        if way == "auto" and (*key, "grid") in seconds
    ]


def width_table(fits: Sequence[WidthFit]) -> Lines:
    """Return accuracies and time ratios, one line a dataset and size."""
    compared = compare_widths(fits)
    if compared is None:
        return []
    lines = []
    for cell in compared.cells:
        part = compared.part(**cell._asdict())
        own = [fit for fit in fits if (fit.dataset, fit.n) == (cell.dataset, cell.n)]
        lines.append(
            [
                *(SOURCES[cell.dataset].title, str(cell.n)),
                *(f"{part.mean(way).mean:.2f}" for way in ("scale", "auto", "grid")),
                f"{part.gain('auto', 'grid').mean:+.2f}",
                spread(search_times(own)),
            ]
        )
    header = ("data", "n", '`"scale"`, %', '`"auto"`, %', "grid search, %")
    return table((*header, "`auto` − grid, points", "time: grid / `auto`"), lines)


# -- the metric ----------------------------------------------------------------------------------

METRIC_SIZE = 300
SPARSE = "5 of 20 features"
SPARSE_FEATURES, SPARSE_ROWS, SPARSE_NOISE = 20, (15_000, 5000), 0.05
METRIC_DATASETS = ("magic", "covtype", "susy", SPARSE)
METRICS = {"no metric": None, "diagonal": "diagonal", "full": "full"}
TREES = tuple(system for system in SYSTEMS if system.trees)
METRIC_TITLES = {
    **{
        name: f"`metric={json.dumps(value)}`".replace("null", "None")
        for name, value in METRICS.items()
    },
    **{system.name: system.title for system in TREES},
}


@dataclass(frozen=True)
class MetricFit:
    """One row of ``tuning_metric.csv``; ``model_bytes`` is what has to be stored to predict."""

    n_key: ClassVar[int] = 3

    dataset: str
    system: str
    trial: int
    accuracy: float
    seconds: float
    model_bytes: int


def plan_metrics(datasets: Sequence[str], trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, system and trial; systems take turns."""
    names = [*METRICS, *(system.name for system in TREES if system.installed)]
    for trial in range(trials):
        for dataset in datasets:
            for name in names[:: -1 if trial % 2 else 1]:
                yield dataset, name, trial


def sparse_problem(trial: int) -> Problem:
    """Return rows in the unit cube whose two classes depend on the first five features only."""
    rng = np.random.RandomState(trial)
    n_train = SPARSE_ROWS[0]
    X = rng.uniform(size=(sum(SPARSE_ROWS), SPARSE_FEATURES))
    u = 2 * X - 1
    values = np.sin(3 * u[:, 0]) + 2 * u[:, 1] * u[:, 2] + 2 * u[:, 3] ** 2 - u[:, 4]
    y = (values > np.median(values)) ^ (rng.uniform(size=len(X)) < SPARSE_NOISE)
    y = y.astype(int)
    scale = 1 / (SPARSE_FEATURES * X[:n_train].var())
    return Problem(X[:n_train], y[:n_train], X[n_train:], y[n_train:], scale)


def fit_metric(dataset: str, name: str, trial: int) -> MetricFit:
    """Fit one system in a process of its own."""
    problem = sparse_problem(trial) if dataset == SPARSE else load_problem(dataset, trial)
    columns = run_in_child(
        measure_metric, problem, name, trial, library_waiting=name not in METRICS
    )
    return MetricFit(dataset, name, trial, *columns)


def measure_metric(problem: Problem, name: str, trial: int) -> tuple[float, float, int]:
    """Fit after a warm-up; return accuracy, seconds and bytes."""
    codes = np.unique(problem.y, return_inverse=True)[1]  # XGBoost wants classes from 0 on
    coded = {label: code for label, code in zip(problem.y, codes, strict=True)}
    test_codes = np.array([coded[label] for label in problem.y_test])
    problem = Problem(problem.X, codes, problem.X_test, test_codes, problem.scale)
    make, stored_bytes = _makers(name, trial)
    small = np.unique(codes, return_index=True)[1]
    small = np.union1d(small, np.arange(500))  # some rows of every class
    make(20).fit(problem.X[small], codes[small]).predict(problem.X_test[:500])
    model = make(METRIC_SIZE)
    predicted, seconds = fit_and_predict(model, problem)
    return accuracy(predicted, problem), seconds, stored_bytes(model)


def _makers(name: str, trial: int) -> tuple[Callable[[int], Any], Callable[[Any], int]]:
    """Return what makes a system of a size, and what counts its bytes."""
    if name not in METRICS:
        system = next(system for system in TREES if system.name == name)
        return lambda n: system.make(None, 0.0), system.stored_bytes
    settings = {"gamma": "auto", "metric": METRICS[name], "random_state": trial}
    return lambda n: NystroemClassifier(n, **settings), lambda model: int(model.model_bytes_)


def metric_table(fits: Sequence[MetricFit]) -> Lines:
    """Return accuracy, time and bytes, one line a dataset and system."""
    plain = {(f.dataset, f.trial): f.accuracy for f in fits if f.system == "no metric"}
    lines = []
    for dataset in dict.fromkeys(fit.dataset for fit in fits):
        for name, title in METRIC_TITLES.items():
            own = [fit for fit in fits if (fit.dataset, fit.system) == (dataset, name)]
            if not own:
                continue
            gains = [
                f.accuracy - plain[dataset, f.trial] for f in own if (dataset, f.trial) in plain
            ]
            compared = gains and name != "no metric"
            lines.append(
                [
                    *(SOURCES[dataset].title if dataset in SOURCES else dataset, title),
                    points(estimate(fit.accuracy for fit in own)),
                    points(estimate(gains), sign=True) if compared else "–",
                    spread([fit.seconds for fit in own]),
                    size(median(fit.model_bytes for fit in own)),
                ]
            )
    header = ("data", "system", "accuracy, %", "against no metric, points", "fit, s", "model")
    return table(header, lines)


# -- the landmarks -------------------------------------------------------------------------------

ABLATION_DATASETS = ("usps", "letter", "cod_rna", "ijcnn1-resplit", "a9a", "susy")
ABLATION_WIDTHS = ("scale", "4 scale")
BASE = "auto"


def variants(n: int) -> dict[str, Any]:
    """Return what "auto" is compared with at a size, by the words of the page."""
    return {
        BASE: make_selector("auto"),
        "one candidate, no choice": ClassCentroids(),
        "weight: hardness, not its root": ClassCentroids(power=1.0),
        "weight: all rows alike": ClassCentroids(power=0.0),
        "budget: number of rows": ClassCentroids(share="rows"),
        "budget: root of the number of rows": ClassCentroids(share="root"),
        "no pilot: rows alike, root of their number": ClassCentroids(power=0.0, share="root"),
        "pilot of n landmarks": ClassCentroids(n_initial=n),
    }


@dataclass(frozen=True)
class AblationFit:
    """One row of ``tuning_ablation.csv``; names of `variants`, accuracy in percent."""

    n_key: ClassVar[int] = 5

    dataset: str
    n: int
    width: str
    variant: str
    trial: int
    accuracy: float
    seconds: float


def plan_ablation(datasets: Sequence[str], trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, n, width, variant and trial, small fits first."""
    for trial in range(trials):
        for n in SIZES:
            for dataset in datasets:
                for width in ABLATION_WIDTHS:
                    for variant in variants(n):
                        yield dataset, n, width, variant, trial


def fit_ablation(dataset: str, n: int, width: str, variant: str, trial: int) -> AblationFit:
    """Fit with one variant of the selector."""
    problem = load_problem(dataset, trial)
    model = NystroemClassifier(
        n, gamma=problem.width(width), selection=variants(n)[variant], random_state=trial
    )
    predicted, seconds = fit_and_predict(model, problem)
    return AblationFit(dataset, n, width, variant, trial, accuracy(predicted, problem), seconds)


def ablation_table(fits: Sequence[AblationFit]) -> Lines:
    """Return one line a variant: accuracy, difference from "auto", time."""
    compared = compare(
        Observation(Cell(fit.dataset, fit.n, fit.width), fit.variant, fit.trial, fit.accuracy)
        for fit in fits
    )
    if compared is None or BASE not in compared.rules:
        return []
    seconds = {fit[:-2]: fit[-1] for fit in map(astuple, fits)}
    lines = []
    for name in compared.ranked():
        ratios = [
            taken / seconds[dataset, n, width, BASE, trial]
            for (dataset, n, width, variant, trial), taken in seconds.items()
            if variant == name and (dataset, n, width, BASE, trial) in seconds
        ]
        same = name == BASE
        gain, datasets = compared.gain(name, BASE), compared.gain_over_datasets(name, BASE)
        differences = (compared.of(name) - compared.of(BASE)).mean(axis=1)
        worst = compared.cells[int(differences.argmin())].words
        lines.append(
            [
                *(f"`{name}`" if same else name, points(compared.mean(name))),
                "–" if same else points(gain, sign=True),
                "–" if same else bounds(datasets),
                "–" if same else f"{differences.min():+.2f} ({worst})",
                short(median(ratios)),
            ]
        )
    header = ("landmarks", "accuracy, %", "against `auto`, points", "over datasets")
    return table((*header, "lowest cell, points", "time / `auto`"), lines)


# -- running -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One sub-command: its rows, what there is to do, and how one row is made."""

    row_class: type[Any]
    datasets: tuple[str, ...]
    trials: int
    plan: Callable[[Sequence[str], int], Iterator[tuple[Any, ...]]]
    measure: Callable[..., Any]


PARTS = {
    "gamma": Part(WidthFit, WIDTH_DATASETS, 2, plan_widths, fit_width),
    "metric": Part(MetricFit, METRIC_DATASETS, 3, plan_metrics, fit_metric),
    "ablation": Part(AblationFit, ABLATION_DATASETS, 3, plan_ablation, fit_ablation),
}


def csv_path(name: str, results: Path = RESULTS) -> Path:
    """Return the file of a part."""
    return results / f"tuning_{name}.csv"


def run(part: Part, options: argparse.Namespace) -> int:
    """Measure everything that is not in the file yet; return the number of failures."""
    rows = csv_rows.begin(options.out, part.row_class, environment(), options.fresh)
    done = {astuple(row)[: part.row_class.n_key] for row in rows}
    datasets = [name for name in options.datasets if name == SPARSE or available([name])]
    tasks = [task for task in part.plan(datasets, options.trials) if task not in done]
    failures = 0
    for count, task in enumerate(tasks, start=1):
        what = f"{count} of {len(tasks)}: {' '.join(map(str, task))}"
        try:
            row = part.measure(*task)
        except (ChildError, TypeError, ValueError) as error:
            failures += 1
            print(f"{what}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        csv_rows.append(options.out, row)
        print(f"{what}: {row.accuracy:.2f} %, {row.seconds:.2f} s", flush=True)
    return failures


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="part", required=True)
    for name, part in PARTS.items():
        command = commands.add_parser(name)
        known = [*part.datasets, SMOKE]
        command.add_argument("--datasets", nargs="+", choices=known, default=part.datasets)
        command.add_argument("--trials", type=int, default=part.trials)
        command.add_argument("--out", type=Path, default=csv_path(name))
        command.add_argument("--fresh", action="store_true", help="measure again what is there")
    return parser.parse_args(arguments)


def main() -> None:
    restart_with_fixed_threads()
    options = parse()
    try:
        failures = run(PARTS[options.part], options)
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")
    if failures:
        sys.exit(f"{failures} fits failed; the same command tries them again.")


if __name__ == "__main__":
    main()
