"""Compare accuracies with those of an independent implementation of the paper.

A figure is "within" when it differs by no more than twice the two standard deviations together
plus rounding. Models of up to 20 landmarks vary widely, so they get at least 30 trials.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nysplus import NystroemClassifier
from nysplus.landmarks import NegativeMargin
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import load
from nysplus_experiments.speed.peers import RHO


@dataclass(frozen=True)
class Expected:
    """Mean accuracy and, where it was recorded, its standard deviation over trials."""

    data: str
    n: int
    selection: str
    mean: float
    deviation: float = 0.0
    n_initial: int | None = None
    gamma: float | None = None


FIGURES = records.read(Path(__file__).with_suffix(".csv"), Expected)


def accuracies(figure: Expected, trials: int) -> list[float]:
    """Return the test accuracy in percent of each trial."""
    split = load(figure.data)
    selection: Any = NegativeMargin(figure.n_initial) if figure.n_initial else figure.selection
    gamma = figure.gamma or split.gamma
    found = []
    for trial in range(trials):
        model = NystroemClassifier(
            figure.n, selection=selection, gamma=gamma, alpha=RHO, random_state=trial
        )
        model.fit(split.X_train, split.y_train)
        found.append(100 * model.score(split.X_test, split.y_test))
    return found


def run(options: BenchOptions) -> None:
    """Print a line per figure, and how many are within."""
    options.expect("trials")
    trials = max(2, options.integer("trials", 2 if options.smoke else 5))
    known = list(dict.fromkeys(figure.data for figure in FIGURES))
    names = options.choose_datasets(known)
    figures = [figure for figure in FIGURES if figure.data in names][: 1 if options.smoke else None]
    within = 0
    print("data     n     n_0   γ      selection         expected      here            trials")
    for figure in figures:
        got = accuracies(figure, max(trials, 30) if figure.n <= 20 else trials)
        mean, deviation = statistics.mean(got), statistics.stdev(got)
        slack = 2 * (figure.deviation + deviation) + 0.1
        inside = abs(mean - figure.mean) <= slack
        within += inside
        print(
            f"{figure.data:8s} {figure.n:<5d} {figure.n_initial or '':<5} {figure.gamma or '':<6} "
            f"{figure.selection:17s} {figure.mean:5.1f} ({figure.deviation:.1f})   "
            f"{mean:6.2f} ({deviation:.2f})  {len(got):4d}  "
            f"{'within' if inside else 'OUTSIDE'}",
            flush=True,
        )
    print(f"{within} of {len(figures)} within")
