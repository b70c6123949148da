"""``gamma="auto"`` against a grid search (1/16 to 16 times "scale", five folds) and "scale".

Fits run one after the other in one process, so that their times can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd
from sklearn.model_selection import GridSearchCV

from nysplus import NystroemClassifier
from nysplus_experiments.harness import problems
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.harness.tables import markdown, spread
from nysplus_experiments.selection.comparison import compare
from nysplus_experiments.selection.tables import points

FILE = "tuning_gamma.csv"
DATASETS = ("usps", "letter", "cod_rna", "ijcnn1-resplit", "mnist", "covtype", "magic", "susy")
SIZES, TRIALS, TRAIN_ROWS = (100, 300), 2, 5000
WAYS = ("auto", "grid", "scale")
GRID_POWERS, GRID_FOLDS = range(-4, 5), 5


@dataclass(frozen=True)
class WidthFit(Row, key="dataset n trial way"):
    """One row of ``tuning_gamma.csv``: accuracy in percent; seconds include the search."""

    dataset: str
    n: int
    trial: int
    way: str
    accuracy: float
    seconds: float
    gamma: float


def plan(datasets: Sequence[str], sizes: Sequence[int], trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, n, trial and way; the order of the ways alternates."""
    for trial, dataset, n in product(range(trials), datasets, sizes):
        yield from ((dataset, n, trial, way) for way in WAYS[:: -1 if trial % 2 else 1])


def run_fit(dataset: str, n: int, trial: int, way: str) -> WidthFit:
    """Fit with a width that is found in one of the ways."""
    problem = problems.load_problem(dataset, trial, TRAIN_ROWS)
    model: Any
    if way == "grid":
        grid = {"gamma": [problem.scale * 2.0**power for power in GRID_POWERS]}
        model = GridSearchCV(NystroemClassifier(n, random_state=trial), grid, cv=GRID_FOLDS)
    else:
        model = NystroemClassifier(n, gamma=problem.width(way), random_state=trial)
    scores = problems.fit_and_score(model, problem)
    gamma = float(getattr(model, "best_estimator_", model).gamma_)
    return WidthFit(dataset, n, trial, way, *scores, gamma)


def run(options: BenchOptions) -> None:
    """Measure the ways to a width. Options of this step: sizes, trials."""
    options.expect("sizes", "trials")
    sizes = options.integers("sizes", (20,) if options.smoke else SIZES)
    trials = options.integer("trials", 1 if options.smoke else TRIALS)
    tasks = plan(problems.chosen_datasets(options, DATASETS), sizes, trials)
    options.measure(FILE, WidthFit, tasks, run_fit)


def search_times(fits: pd.DataFrame) -> pd.Series:
    """Return the seconds of the grid search divided by those of "auto", one value a fit."""
    seconds = fits.set_index(["dataset", "n", "trial", "way"])["seconds"].unstack("way")
    return (seconds["grid"] / seconds["auto"]).dropna()


def width_table(fits: pd.DataFrame) -> str:
    """Return accuracies and time ratios, one line a dataset and size, and their means."""
    compared = compare(fits, "way")
    if compared is None:
        return ""
    times = search_times(fits)
    parts = [
        ((problems.SOURCES[cell.dataset].title, str(cell.n)), compared.part(**cell._asdict()))
        for cell in compared.cells
    ]
    lines = []
    for title, part in [*parts, (("**all**", ""), compared)]:
        accuracies = (f"{part.mean(way).mean:.2f}" for way in ("scale", "auto", "grid"))
        gains = (part.gain_over_datasets("auto", over) for over in ("scale", "grid"))
        own = times if part is compared else times.loc[part.cells[0].dataset, part.cells[0].n]
        lines.append([*title, *accuracies, *(points(x, sign=True) for x in gains), spread(own)])
    header = ("data", "n", '`"scale"`, %', '`"auto"`, %', "grid search, %")
    differences = ('`auto` − `"scale"`, points', "`auto` − grid, points")
    return markdown((*header, *differences, "time: grid / `auto`"), lines)
