"""Compare every solver with dense float64 solutions of random problems.

Problems of all sizes, kernels, widths, ridges and precisions (`random_problem` of
tests/reference.py). Each is fitted as a user would, and once more by every solver that its own
rule allows. A fit is correct if its objective is not above the dense one by more than 1e-6 of it,
and if its scores agree where they are well determined; a solver may also give up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.solvers import Iterative, shortcuts, solvers_to_try
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions, load_from_tests
from nysplus_experiments.harness.records import Row

TOLERANCE = 1e-6
DOUBT = ", dense solution uncertain"


@dataclass(frozen=True)
class Sweep(Row, key="problem"):
    """One row of ``sweep.csv``: a fit, and how far its objective is above the dense one."""

    problem: int
    kernel: str
    gamma: float
    alpha: float
    rows: int
    n: int
    dtype: str
    solver: str
    gap: float
    status: str


def fit(problem: Any) -> Any:
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


def task_of(problem: Any, model: Any) -> RidgeProblem:
    """Return the task that the model's solver was given, with the same landmarks."""
    if problem.discrete:
        codes = np.searchsorted(model.classes_, problem.y)
        targets: Any = ClassTargets(codes, len(model.classes_))
    else:
        targets = ValueTargets(problem.y)
    rng = np.random.RandomState(problem.seed)
    feature_map = StandardMap().build(model.expansion_.kernel, model.landmarks_, rng)
    return RidgeProblem(Blocks(problem.X, targets), feature_map, (problem.alpha,), rng, "sweep")


def allowed_shortcuts(task: RidgeProblem) -> list[Any]:
    """Return every solver that its own rule allows, as if none of them cost anything."""
    found = shortcuts(task)
    if Iterative(np.float32) in found:
        found.append(Iterative(np.float64))
    return found


def judge(dense: Any, A: np.ndarray, b: np.ndarray, scores: Any = None) -> tuple[float, bool]:
    """Return the gap of a solution and whether the solution is correct."""
    gap = dense.gap(A, b)
    # No solution can be more exact than the dense solution itself.
    slack = TOLERANCE + dense.error
    if A.dtype == np.float32:
        # Storing the model in float32 moves scores by 1e-4 of the targets' spread at most, which
        # shows where rows are interpolated and the objective is close to zero.
        slack += 1e-8 * ((dense.Y - dense.Y.mean(axis=0)) ** 2).sum() / dense.objective
    right = gap <= slack and (gap >= -slack or not dense.full_rank)
    if scores is not None and dense.well_posed:
        # The objective allows the first term, float32 storage the second.
        bound = np.sqrt(TOLERANCE * dense.objective) + 2e-4 * dense.Y.std()
        right = right and np.sqrt(((scores - dense.scores) ** 2).mean()) <= bound
    return float(gap), bool(right)


def fits(problem: Any) -> Iterator[tuple[str, float, str]]:
    """Yield solver, gap and status of the fit and of each forced solver."""
    model = fit(problem)
    task = task_of(problem, model)
    dense = problem.dense(model.landmarks_)
    gap, right = judge(dense, model.dual_coef_, model.intercept_, model.expansion_(problem.X))
    first = solvers_to_try(task)[0].name
    if not right:
        status = "wrong"
    elif model.solver_ != first:
        status = f"fitted after {first} gave up"
    elif task.blocks.dtype == np.float32 and "float64" in model.solver_:
        status = "fitted, float32 refused"
    else:
        status = "fitted"
    # Rounding then decides the span of the landmarks, in the dense solution as in any other.
    doubt = DOUBT if dense.error > TOLERANCE / 10 else ""
    yield model.solver_, gap, status + doubt
    for way in allowed_shortcuts(task):
        found, _ = way.solve(task)
        if found is None:
            yield way.name, float("nan"), "forced, gave up"
        else:
            gap, right = judge(dense, task.feature_map.collapse(found[1].W), found[1].b)
            yield way.name, gap, ("forced" if right else "forced, wrong") + doubt


def measure(seed: int) -> list[Sweep]:
    """Return the fits of one problem."""
    problem = load_from_tests("reference").random_problem(seed)
    gamma, alpha = _rounded(problem.gamma), _rounded(problem.alpha)
    known = (problem.kernel, gamma, alpha, len(problem.X), problem.n, problem.X.dtype.name)
    return [
        Sweep(seed, *known, solver, _rounded(gap), status) for solver, gap, status in fits(problem)
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def run(options: BenchOptions) -> None:
    """Fit the problems that are not in the file yet; raise if a solution is wrong."""
    options.expect("problems", "first")
    first = options.integer("first", 0)
    count = options.integer("problems", 3 if options.smoke else 200)
    tasks = [(seed,) for seed in range(first, first + count)]
    options.measure("sweep.csv", Sweep, tasks, measure)
    rows = records.frame(options.path("sweep.csv"), Sweep)
    print(rows.groupby(["solver", "status"]).size().to_string())
    wrong = rows[rows.status.str.contains("wrong")]
    if len(wrong):
        raise SystemExit(f"Wrong solutions:\n{wrong.to_string()}")
