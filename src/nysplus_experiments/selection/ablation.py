"""Ablation of "auto" landmarks: class centroids with one idea changed at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from nysplus import NystroemClassifier
from nysplus.landmarks import ClassCentroids, make_selector
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.problems import chosen_datasets, fit_and_score, load_problem
from nysplus_experiments.harness.records import Row
from nysplus_experiments.harness.tables import MISSING, markdown, short
from nysplus_experiments.selection.comparison import compare
from nysplus_experiments.selection.tables import bounds, points

FILE = "tuning_ablation.csv"
DATASETS = ("usps", "letter", "cod_rna", "ijcnn1-resplit", "a9a", "susy")
SIZES, WIDTHS, TRIALS = (20, 100, 500), ("scale", "4 scale"), 3
BASE = "auto"


def variants(n: int) -> dict[str, Any]:
    """Return the selectors to compare at a size, by the names of the CSV file."""
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
class AblationFit(Row, key="dataset n width variant trial"):
    """One row of ``tuning_ablation.csv``; names of `variants`, accuracy in percent."""

    dataset: str
    n: int
    width: str
    variant: str
    trial: int
    accuracy: float
    seconds: float


def plan(datasets: Sequence[str], sizes: Sequence[int], trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield dataset, n, width, variant and trial, small sizes first."""
    for trial, n, dataset, width in product(range(trials), sizes, datasets, WIDTHS):
        yield from ((dataset, n, width, variant, trial) for variant in variants(n))


def run_fit(dataset: str, n: int, width: str, variant: str, trial: int) -> AblationFit:
    """Fit with one variant of the selector."""
    problem = load_problem(dataset, trial)
    model = NystroemClassifier(
        n, gamma=problem.width(width), selection=variants(n)[variant], random_state=trial
    )
    return AblationFit(dataset, n, width, variant, trial, *fit_and_score(model, problem))


def run(options: BenchOptions) -> None:
    """Measure the variants. Options of this step: sizes, trials."""
    options.expect("sizes", "trials")
    sizes = options.integers("sizes", SIZES[:1] if options.smoke else SIZES)
    trials = options.integer("trials", 1 if options.smoke else TRIALS)
    tasks = plan(chosen_datasets(options, DATASETS), sizes, trials)
    options.measure(FILE, AblationFit, tasks, run_fit)


def ablation_table(fits: pd.DataFrame) -> str:
    """Return one line a variant: accuracy, difference from "auto", time."""
    compared = compare(fits, "variant")
    if compared is None or BASE not in compared.rules:
        return ""
    keys = ["dataset", "n", "width", "trial", "variant"]
    seconds = fits.set_index(keys)["seconds"].unstack("variant")
    ratios = seconds.div(seconds[BASE], axis="index").median()
    lines = []
    for name in compared.ranked():
        if name == BASE:
            differences = [MISSING] * 3
        else:
            by_cell = compared.differences(name, BASE)
            worst = compared.cells[int(by_cell.argmin())].title
            differences = [
                points(compared.gain(name, BASE), sign=True),
                bounds(compared.gain_over_datasets(name, BASE)),
                f"{by_cell.min():+.2f} ({worst})",
            ]
        title = f"`{name}`" if name == BASE else name
        lines.append([title, points(compared.mean(name)), *differences, short(ratios[name])])
    header = ("landmarks", "accuracy, %", "against `auto`, points", "over datasets")
    return markdown((*header, "lowest cell, points", "time / `auto`"), lines)
