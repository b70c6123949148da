"""Measure where the iterative solver overtakes the direct ones: time, memory and objective of each.

Every solver runs by itself on the same landmarks of MNIST, in a process of its own. The largest
size takes minutes and several gigabytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from nysplus._ridge.conjugate_gradients import conjugate_gradients
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.solvers import Direct, GramFirst, Iterative, solvers_to_try
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets
from nysplus.kernels import RBF
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import Split, load
from nysplus_experiments.harness.measurement import measure, run_in_child
from nysplus_experiments.harness.records import Row
from nysplus_experiments.speed.peers import RHO, Expansion

SIZES = (1000, 2000, 4000, 10000)
SOLVERS: dict[str, Any] = {
    "direct-float32": Direct(np.float32),
    "gram-float64": GramFirst(polished=False),
    "iterative-float32": Iterative(np.float32),
}
# Beyond this size the float64 solver takes twice the time of the others.
LARGEST_GRAM = 4000


@dataclass(frozen=True)
class Crossover(Row, key="n"):
    """One row of ``iterative.csv``: a fit; ``gap`` is relative to the lowest objective of ``n``."""

    n: int
    rows: int
    solver: str
    seconds: float
    peak_mb: float
    objective: float
    gap: float
    iterations: int
    chosen: str


def fit(split: Split, n: int, solver: str) -> dict[str, Any]:
    """Fit with one solver; return columns of `Crossover`."""
    X = split.X_train.astype(np.float32)
    codes = np.unique(split.y_train, return_inverse=True)[1]
    blocks = Blocks(X, ClassTargets(codes, int(codes.max()) + 1))
    Z = blocks.gather(blocks.sample(n, np.random.RandomState(0))).X

    def solve() -> tuple[RidgeProblem, Any]:
        feature_map = StandardMap().build(RBF(split.gamma), Z, np.random.RandomState(0))
        task = RidgeProblem(blocks, feature_map, (RHO,), np.random.RandomState(0), "ridge")
        return task, SOLVERS[solver].solve(task)[0]

    with _counted_iterations() as iterations:
        measured = measure(solve)
    task, answer = measured.result
    if answer is None:
        raise RuntimeError(f"{solver} did not pass its own check at n = {n}")
    _, solution = answer
    expansion = Expansion(Z, task.feature_map.collapse(solution.W), solution.b)
    return {
        "seconds": measured.seconds,
        "peak_mb": measured.added_mb or 0.0,
        "objective": expansion.objective(X, codes, split.gamma),
        "iterations": sum(iterations),
        "chosen": solvers_to_try(task)[0].name,
    }


@contextmanager
def _counted_iterations() -> Iterator[list[int]]:
    """Yield a list that every run of conjugate gradients appends its iterations to."""
    counts: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        found = conjugate_gradients(*args, **kwargs)
        counts.append(found.iterations)
        return found

    with patch.object(sys.modules[Iterative.__module__], "conjugate_gradients", counted):
        yield counts


def run(options: BenchOptions) -> None:
    """Measure all solvers at the sizes that are not in the file yet."""
    options.expect("sizes")
    split = load("digits" if options.smoke else "mnist")

    def compare(n: int) -> list[Crossover]:
        solvers = [name for name in SOLVERS if name != "gram-float64" or n <= LARGEST_GRAM]
        found = {solver: run_in_child(fit, split, n, solver) for solver in solvers}
        best = min(columns["objective"] for columns in found.values())
        return [
            Crossover(n, len(split.X_train), solver, gap=columns["objective"] / best - 1, **columns)
            for solver, columns in found.items()
        ]

    sizes = options.integers("sizes", (100,) if options.smoke else SIZES)
    options.measure("iterative.csv", Crossover, [(n,) for n in sizes], compare)
