"""Time and scores of `landmark_curve` against fits of every size, on the same held-out rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from nysplus import NystroemClassifier
from nysplus._rows.blocks import Blocks
from nysplus._rows.target_codes import ClassCode
from nysplus.curve import held_out, landmark_curve
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import DATASETS as KNOWN
from nysplus_experiments.harness.datasets import load
from nysplus_experiments.harness.problems import chosen_datasets
from nysplus_experiments.harness.records import Row
from nysplus_experiments.harness.tables import markdown

FILE = "curve.csv"
DATASETS = ("letter", "usps", "cod_rna", "covtype")
SERIES = {
    "doubling": (10, 20, 40, 80, 160, 320, 640, 1000),
    "even": (300, 400, 500, 600, 700, 800, 900, 1000),
}
REPEATS = 3
# Training and held-out rows together; a repeat then takes half a minute at most.
MAX_ROWS = 10_000


@dataclass(frozen=True)
class CurvePoint(Row, key="series dataset repeat"):
    """One row of ``curve.csv``: one size in one repeat.

    Accuracies on held-out rows, which ``rows`` includes; ``error`` is the standard error. Seconds
    are processor time; the curve's is for all sizes together.
    """

    series: str
    dataset: str
    rows: int
    repeat: int
    n: int
    curve: float
    refit: float
    error: float
    refit_seconds: float
    curve_seconds: float


def run_curve(series: str, dataset: str, repeat: int) -> list[CurvePoint]:
    """Return one point a size."""
    split = load(dataset)
    some = np.random.RandomState(repeat).permutation(len(split.X_train))[:MAX_ROWS]
    X, y = split.X_train[some], split.y_train[some]
    model = NystroemClassifier(gamma=split.gamma, random_state=repeat)
    start = time.process_time()
    curve = landmark_curve(X, y, SERIES[series], estimator=model)
    curve_seconds = time.process_time() - start
    blocks = Blocks(X, ClassCode(np.unique(y)).encode(y))
    rows: Any = held_out(blocks, len(y) // 5, np.random.RandomState(repeat))
    training, held = rows
    y_training, y_held = training.targets.codes, held.targets.codes
    points = []
    for n, score, error in zip(SERIES[series], curve.scores, curve.errors, strict=True):
        start = time.process_time()
        refit = model.set_params(n_components=n).fit(training.X, y_training).score(held.X, y_held)
        columns = float(score), refit, float(error), time.process_time() - start, curve_seconds
        points.append(CurvePoint(series, dataset, len(y), repeat, n, *columns))
    return points


def run(options: BenchOptions) -> None:
    """Measure the curves. Options of this step: series, repeats."""
    options.expect("series", "repeats")
    series = options.texts("series", list(SERIES)[: 1 if options.smoke else None], list(SERIES))
    repeats = range(options.integer("repeats", 1 if options.smoke else REPEATS))
    tasks = product(series, chosen_datasets(options, DATASETS), repeats)
    options.measure(FILE, CurvePoint, tasks, run_curve)


def curve_table(points: pd.DataFrame, series: str) -> str:
    """Return the curve minus fits of each size, in points of accuracy, and the times."""
    points = points[points["series"] == series]
    gains = (
        100 * (points["curve"] - points["refit"]).groupby([points["dataset"], points["n"]]).mean()
    )
    times = points.groupby(["dataset", "repeat"]).agg(
        curve=("curve_seconds", "first"), fits=("refit_seconds", "sum")
    )
    sizes = sorted(points["n"].unique())
    lines = []
    for name in points["dataset"].unique():
        curve, fits = times.loc[name].median()
        # Adding zero turns minus zero into zero.
        cells = [f"{round(gains[name, n], 1) + 0.0:+.1f}" for n in sizes]
        lines.append(
            [KNOWN[name].title, *cells, f"{curve:.1f}", f"{fits:.1f}", f"{fits / curve:.1f}"]
        )
    return markdown(("data", *(f"n = {n}" for n in sizes), "curve, s", "fits, s", "ratio"), lines)
