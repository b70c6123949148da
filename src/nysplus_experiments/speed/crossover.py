"""Where does the iterative solver overtake the direct one? Time, memory and objective of both.

Every solver that the spectrum allows is run by itself on the same landmarks of MNIST, each in a
process of its own; the objective is then computed in float64. The largest size takes minutes and
several gigabytes. Needs the datasets (NYSPLUS_DATA names their folder).

    python benchmarks/crossover.py [--sizes N ...] [--out FILE] [--fresh]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import csv_rows
import numpy as np
from child_process import environment, resident_mb, restart_with_fixed_threads, run_in_child
from objective import training_objective
from peers import Expansion

from nysplus import _iterative, _solvers
from nysplus._blocks import Blocks
from nysplus._feature_map import StandardMap
from nysplus._targets import ClassTargets
from nysplus.experiments._measure import measure
from nysplus.experiments.datasets import Split, load
from nysplus.kernels import RBF

RHO = 1e-5
SIZES = (1000, 2000, 4000, 10000)
SOLVERS = {
    "direct-float32": _solvers.Direct(np.float32),
    "gram-float64": _solvers.GramFirst(polished=False),
    "iterative-float32": _solvers.Iterative(np.float32),
}
# Beyond this size the float64 way takes twice the time of the other two and teaches nothing.
LARGEST_GRAM = 4000


@dataclass(frozen=True)
class Row:
    """One fit; `gap` is relative to the lowest objective of the same size."""

    n: int
    rows: int
    solver: str
    seconds: float
    peak_mb: float
    objective: float
    gap: float
    iterations: int
    chosen: str


def fit(split: Split, n: int, solver: str) -> dict[str, float | str]:
    """Fit with one solver; return what it took and the objective it reached."""
    X = split.X_train.astype(np.float32)
    codes = np.unique(split.y_train, return_inverse=True)[1]
    blocks = Blocks(X, ClassTargets(codes, int(codes.max()) + 1))
    Z = blocks.gather(blocks.sample(n, np.random.RandomState(0))).X
    iterations = _count_iterations()
    before = resident_mb()
    with measure() as step:
        start = time.perf_counter()
        feature_map = StandardMap().build(RBF(split.gamma), Z, np.random.RandomState(0))
        task = _solvers.Task(blocks, feature_map, (RHO,), np.random.RandomState(0), "ridge")
        answer, _ = SOLVERS[solver].solve(task)
        seconds = time.perf_counter() - start
    if answer is None:
        raise RuntimeError(f"{solver} did not pass its own check at n = {n}")
    _, W, b = answer
    expansion = Expansion(Z, feature_map.collapse(W), b)
    return {
        "seconds": seconds,
        "peak_mb": (step.peak_rss_mb or 0.0) - before,
        "objective": training_objective(X, codes, expansion, split.gamma, RHO),
        "iterations": sum(iterations),
        "chosen": _solvers._ways(task)[0].name,
    }


def _count_iterations() -> list[int]:
    """Return a list that every run of conjugate gradients appends its iterations to."""
    counts: list[int] = []
    original = _iterative.conjugate_gradients

    def counted(*args, **kwargs):
        found = original(*args, **kwargs)
        counts.append(found.iterations)
        return found

    _solvers.conjugate_gradients = counted
    return counts


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/iterative.csv"))
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    args = parser.parse_args()
    done = csv_rows.begin(args.out, Row, environment(), args.fresh)
    split = load("mnist")
    for n in args.sizes:
        if any(row.n == n for row in done):
            continue
        found = {}
        for solver in SOLVERS:
            if solver == "gram-float64" and n > LARGEST_GRAM:
                continue
            found[solver] = run_in_child(fit, split, n, solver)
            print(f"n = {n:5d}  {solver:18s} {found[solver]['seconds']:6.1f} s", flush=True)
        best = min(result["objective"] for result in found.values())
        for solver, result in found.items():
            gap = result["objective"] / best - 1.0
            rows = len(split.X_train)
            csv_rows.append(args.out, Row(n=n, rows=rows, solver=solver, gap=gap, **result))
    print(
        f"{'n':>6s} {'solver':18s} {'seconds':>8s} {'peak MB':>8s} {'gap':>8s} iterations  chosen"
    )
    for row in csv_rows.read(args.out, Row):
        print(
            f"{row.n:6d} {row.solver:18s} {row.seconds:8.1f} {row.peak_mb:8.0f} {row.gap:8.1e} "
            f"{row.iterations:10d}  {row.chosen}"
        )


if __name__ == "__main__":
    main()
