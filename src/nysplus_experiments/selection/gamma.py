"""``gamma="auto"`` against a grid search (1/16 to 16 times "scale", five folds) and "scale".

Fits run one after the other in one process, so that their times can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.model_selection import GridSearchCV

from nysplus import NystroemClassifier
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.problems import (
    SOURCES,
    chosen_datasets,
    fit_and_score,
    load_problem,
)
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
    for trial in range(trials):
        for dataset in datasets:
            for n in sizes:
                for way in WAYS[:: -1 if trial % 2 else 1]:
                    yield dataset, n, trial, way


def run_fit(dataset: str, n: int, trial: int, way: str) -> WidthFit:
    """Fit with a width that is found in one of the ways."""
    problem = load_problem(dataset, trial, TRAIN_ROWS)
    model: Any
    if way == "grid":
        grid = {"gamma": [problem.scale * 2.0**power for power in GRID_POWERS]}
        model = GridSearchCV(NystroemClassifier(n, random_state=trial), grid, cv=GRID_FOLDS)
    else:
        model = NystroemClassifier(n, gamma=problem.width(way), random_state=trial)
    scores = fit_and_score(model, problem)
    gamma = float(getattr(model, "best_estimator_", model).gamma_)
    return WidthFit(dataset, n, trial, way, *scores, gamma)


def run(options: BenchOptions) -> None:
    """Measure the ways to a width. Options of this step: sizes, trials."""
    options.expect("sizes", "trials")
    sizes = options.integers("sizes", (20,) if options.smoke else SIZES)
    trials = options.integer("trials", 1 if options.smoke else TRIALS)
    tasks = plan(chosen_datasets(options, DATASETS), sizes, trials)
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
    lines = []
    for cell in compared.cells:
        part = compared.part(**cell._asdict())
        lines.append(
            [
                *(SOURCES[cell.dataset].title, str(cell.n)),
                *(f"{part.mean(way).mean:.2f}" for way in ("scale", "auto", "grid")),
                f"{part.gain('auto', 'scale').mean:+.2f}",
                f"{part.gain('auto', 'grid').mean:+.2f}",
                spread(times.loc[cell.dataset, cell.n]),
            ]
        )
    lines.append(
        [
            *("**all**", ""),
            *(f"{compared.mean(way).mean:.2f}" for way in ("scale", "auto", "grid")),
            *(
                points(compared.gain_over_datasets("auto", over), sign=True)
                for over in WAYS[2:0:-1]
            ),
            spread(times),
        ]
    )
    header = ("data", "n", '`"scale"`, %', '`"auto"`, %', "grid search, %")
    differences = ('`auto` − `"scale"`, points', "`auto` − grid, points")
    return markdown((*header, *differences, "time: grid / `auto`"), lines)
