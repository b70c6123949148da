"""Compare accuracies with those of an independent implementation of the paper.

The expected figures were measured with other code at the paper's γ and ρ = 1e-5. A figure is
"within" when it differs by no more than twice the two standard deviations together plus rounding.
Models of up to 20 landmarks vary widely from draw to draw, so they get at least 30 trials.
``trials`` can be set.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from nysplus import NystroemClassifier
from nysplus.landmarks import NegativeMargin
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


U, M = "uniform", "negative-margin"
FIGURES = [
    Expected("usps", 100, U, 88.5, 0.3), Expected("usps", 250, U, 92.3, 0.3),
    Expected("usps", 100, M, 88.5, 0.2), Expected("usps", 250, M, 92.3, 0.3),
    Expected("usps", 500, U, 93.8, 0.2), Expected("usps", 500, M, 93.9, 0.3),
    Expected("usps", 1000, U, 94.4, 0.1), Expected("usps", 1000, M, 95.1, 0.2),
    Expected("usps", 1750, U, 94.9, 0.1), Expected("usps", 1750, M, 95.3, 0.1),
    Expected("letter", 500, U, 90.7, 0.3), Expected("letter", 500, M, 91.0, 0.1),
    Expected("letter", 1250, U, 95.1, 0.1), Expected("letter", 1250, M, 95.2, 0.2),
    Expected("letter", 2000, U, 96.3, 0.1), Expected("letter", 2000, M, 96.4, 0.0),
    Expected("cod_rna", 10, U, 87.7, 5.8), Expected("cod_rna", 10, M, 92.2),
    Expected("cod_rna", 10, M, 94.7, 0.1, n_initial=500),
    Expected("cod_rna", 20, U, 94.6, 0.8), Expected("cod_rna", 20, M, 95.9),
    Expected("cod_rna", 20, M, 96.0, 0.2, n_initial=500),
    Expected("cod_rna", 50, U, 96.1, 0.1), Expected("cod_rna", 50, M, 96.2),
    Expected("cod_rna", 300, U, 96.4, 0.0), Expected("cod_rna", 300, M, 96.6),
    Expected("shuttle", 50, U, 98.9, 0.1), Expected("shuttle", 50, M, 98.6, 0.1),
    Expected("shuttle", 200, U, 99.5, 0.0), Expected("shuttle", 200, M, 99.4, 0.0),
    Expected("mnist", 100, U, 89.1), Expected("mnist", 100, M, 87.3),
    Expected("mnist", 500, U, 95.0), Expected("mnist", 500, M, 94.6),
    Expected("letter", 250, U, 67.4, gamma=16.0), Expected("letter", 250, M, 45.2, gamma=16.0),
]  # fmt: skip


def accuracies(figure: Expected, trials: int) -> list[float]:
    """Return the test accuracy in percent of each trial."""
    split = load(figure.data)
    selection: Any = NegativeMargin(figure.n_initial) if figure.selection == M else U
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
