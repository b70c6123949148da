"""Is every way to the solution the right one? Compare all of them with dense float64 on 200 draws.

Problems of all sizes, kernels, widths, ridges and precisions (`random_problem` of
tests/reference.py). Each is fitted as a user would, and then once more by every shortcut that its
own rule allows, whatever the cost model says: on small data that would always be `Direct`. A fit
is right if its objective is not above the dense one by more than 1e-6 of it, and if its scores
agree where they are well determined; a shortcut may also give up, after which the next way is
taken. Writes benchmarks/results/sweep.csv.

    python benchmarks/sweep.py [--problems 200]
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._blocks import Blocks
from nysplus._feature_map import StandardMap
from nysplus._solvers import Direct, GramFirst, Iterative, _ways
from nysplus._targets import ClassTargets, ValueTargets
from nysplus._tasks import Task

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import reference

RESULTS = Path(__file__).with_name("results") / "sweep.csv"
COLUMNS = ["problem", "kernel", "gamma", "alpha", "rows", "n", "dtype", "solver", "gap", "status"]
TOLERANCE = 1e-6
DOUBT = ", dense solution uncertain"


def fit(problem):
    """Fit as a user would."""
    estimator = NystroemClassifier if problem.discrete else NystroemRegressor
    return estimator(
        problem.n,
        kernel=problem.kernel,
        gamma=problem.gamma,
        alpha=problem.alpha,
        selection="uniform",
        random_state=problem.seed,
    ).fit(problem.X, problem.y)


def task_of(problem, model):
    """Return what the model's solver was given, with the same landmarks."""
    if problem.discrete:
        codes = np.searchsorted(model.classes_, problem.y)
        targets = ClassTargets(codes, len(model.classes_))
    else:
        targets = ValueTargets(problem.y)
    rng = np.random.RandomState(problem.seed)
    feature_map = StandardMap().build(model.expansion_.kernel, model.landmarks_, rng)
    return Task(Blocks(problem.X, targets), feature_map, (problem.alpha,), rng, "sweep")


def allowed_shortcuts(task):
    """Return every shortcut that its own rule allows, as if none of them cost anything."""
    with (
        patch.object(Direct, "cost", lambda way, *_: 0.0 if way.dtype is np.float32 else 1.0),
        patch.object(GramFirst, "cost", lambda *_: 0.0),
        patch.object(Iterative, "cost", lambda *_: 0.0),
    ):
        shortcuts = _ways(task)[:-1]
    if Iterative(np.float32) in shortcuts:
        shortcuts.append(Iterative(np.float64))
    return shortcuts


def judge(dense, A, b, scores=None):
    """Return the gap of a solution and whether that is right."""
    gap = dense.gap(A, b)
    # No more can be asked for than the digits of the dense solution itself.
    slack = TOLERANCE + dense.error
    if A.dtype == np.float32:
        # Storing the model in float32 moves scores by 1e-4 of the targets' spread at most, which
        # shows where rows are interpolated and the objective is next to nothing.
        slack += 1e-8 * ((dense.Y - dense.Y.mean(axis=0)) ** 2).sum() / dense.objective
    right = gap <= slack and (gap >= -slack or not dense.full_rank)
    if scores is not None and dense.well_posed:
        # What the objective allows, and what storing the model in float32 does.
        bound = np.sqrt(TOLERANCE * dense.objective) + 2e-4 * dense.Y.std()
        right = right and np.sqrt(((scores - dense.scores) ** 2).mean()) <= bound
    return gap, right


def sweep(problem):
    """Yield (solver, gap, status) of the fit and of each forced shortcut."""
    model = fit(problem)
    task = task_of(problem, model)
    dense = problem.dense(model.landmarks_)
    gap, right = judge(dense, model.dual_coef_, model.intercept_, model.expansion_(problem.X))
    first = _ways(task)[0].name
    if not right:
        status = "wrong"
    elif model.solver_ != first:
        status = f"fitted after {first} gave up"
    elif task.blocks.dtype == np.float32 and "float64" in model.solver_:
        status = "fitted, float32 refused"
    else:
        status = "fitted"
    # Rounding then decides what the landmarks span, in the dense solution as in any other.
    doubt = DOUBT if dense.error > TOLERANCE / 10 else ""
    yield model.solver_, gap, status + doubt
    for way in allowed_shortcuts(task):
        found, _ = way.solve(task)
        if found is None:
            yield way.name, float("nan"), "forced, gave up"
        else:
            W, b = found[1].W, found[1].b
            gap, right = judge(dense, task.feature_map.collapse(W), b)
            yield way.name, gap, ("forced" if right else "forced, wrong") + doubt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    args = parser.parse_args()
    rows = []
    for seed in range(args.first, args.first + args.problems):
        problem = reference.random_problem(seed)
        for solver, gap, status in sweep(problem):
            rows.append(
                {
                    "problem": seed,
                    "kernel": problem.kernel,
                    "gamma": f"{problem.gamma:.3g}",
                    "alpha": f"{problem.alpha:.3g}",
                    "rows": len(problem.X),
                    "n": problem.n,
                    "dtype": problem.X.dtype.name,
                    "solver": solver,
                    "gap": f"{gap:.3g}",
                    "status": status,
                }
            )
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for (solver, status), count in sorted(
        Counter((r["solver"], r["status"]) for r in rows).items()
    ):
        print(f"{solver:18s} {status:40s} {count:5d}")
    fallbacks = [r for r in rows if "gave up" in r["status"] or "refused" in r["status"]]
    print(f"{len(fallbacks)} times a shortcut was refused or gave up")
    sure = [r for r in rows if r["gap"] != "nan" and DOUBT not in r["status"]]
    worst = max(sure, key=lambda r: float(r["gap"]))
    print(f"largest gap {worst['gap']}: problem {worst['problem']}, {worst['solver']}")
    wrong = [r for r in rows if "wrong" in r["status"]]
    for row in wrong:
        print("WRONG", row)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
