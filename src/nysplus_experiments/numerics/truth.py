"""Compare kernels, fits and probabilities with solutions in extended precision.

The problems are small and badly conditioned (`random_problem` of tests/extended.py). Each is solved
with 80 digits, by every solver that can take its rows, and by an estimator as a user would fit it.
Solvers are also run where their own rule says that they are likely to fail: they may give up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.solvers import SOLVERS, SURE, shortcuts
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus.kernels import make_kernel
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions, load_from_tests
from nysplus_experiments.harness.records import Row

PROBLEMS = 500
# The iterative solver estimates the leverage of a row from a sketch.
EXACT_LEVERAGE = ("direct-float32", "direct-float64", "gram-float64")


@dataclass(frozen=True)
class Error(Row, key="problem"):
    """One row of ``truth.csv``: the error of one result of one problem.

    ``error`` is the largest absolute error. It is divided by the spread (largest minus smallest) of
    the exact scores or of the targets for scores, by the largest exact value for kernels, and by
    nothing for probabilities. ``gap`` is the distance of the objective from its minimum, relative
    to it. Both are missing where a solver gave up. ``allowed`` tells whether a fit would try the
    solver.
    """

    problem: int
    kernel: str
    condition: str
    rows: int
    n: int
    alpha: float
    dtype: str
    result: str
    allowed: bool
    error: float | None
    gap: float | None


def measure(seed: int) -> list[Error]:
    """Return the errors of one problem."""
    problem = load_from_tests("extended").random_problem(seed)
    truth = problem.solve()
    sizes = (len(problem.X), len(problem.Z), float(f"{problem.alpha:.3g}"), problem.X.dtype.name)
    known = (seed, problem.kernel, problem.condition, *sizes)
    return [
        Error(*known, result, allowed, _rounded(error), _rounded(gap))
        for result, allowed, error, gap in _results(problem, truth)
    ]


Result = tuple[str, bool, float | None, float | None]
Found = tuple[str, float | None, float | None]


def _results(problem: Any, truth: Any) -> Iterator[Result]:
    """Yield name, whether a fit would use it, error and gap of every result of a problem."""
    kernel = make_kernel(problem.kernel, **problem.params)
    exact = truth.K.astype(np.float64)
    error = np.abs(kernel(problem.X, problem.Z).astype(np.float64) - exact).max()
    yield "kernel", True, float(error / np.abs(exact).max()), None
    task = _task(problem, kernel)
    allowed = {solver.name for solver in [*shortcuts(task), SURE]}
    for name in _solvers(task):
        for result, error, gap in _solver_results(problem, truth, task, name):
            yield result, name in allowed, error, gap
    for result, error, gap in _estimator_results(problem, truth, kernel):
        yield result, True, error, gap


def _solvers(task: RidgeProblem) -> list[str]:
    """Return the solvers that can be run: float32 needs float32 rows, a sketch needs features."""
    single = task.blocks.dtype == np.float32
    names = [name for name in SOLVERS if single or "float32" not in name]
    return [name for name in names if task.feature_map.rank or not name.startswith("iterative")]


def _task(problem: Any, kernel: Any) -> RidgeProblem:
    if problem.discrete:
        classes, codes = np.unique(problem.y, return_inverse=True)
        targets: Any = ClassTargets(codes, len(classes))
    else:
        targets = ValueTargets(problem.y)
    rng = np.random.RandomState(problem.seed)
    feature_map = StandardMap().build(kernel, problem.Z, rng)
    blocks = Blocks(problem.X, targets, sample_weight=problem.weight)
    return RidgeProblem(blocks, feature_map, (problem.alpha,), rng, "truth")


def _solver_results(problem: Any, truth: Any, task: RidgeProblem, name: str) -> Iterator[Found]:
    found, _ = SOLVERS[name].solve(task)
    if found is None:
        yield name, None, None
        return
    left_out = found[1]
    A = task.feature_map.collapse(left_out.W)
    K = task.feature_map.columns(np.float64)(np.vstack([problem.X, problem.more]))
    yield name, _relative(K @ A + left_out.b, truth.scores, problem.Y), truth.gap(A, left_out.b)
    if name in EXACT_LEVERAGE:
        scores = left_out.scores(len(problem.X)).scores
        yield f"leave-one-out, {name}", _relative(scores, truth.left_out, problem.Y), None


def _estimator_results(problem: Any, truth: Any, kernel: Any) -> Iterator[Found]:
    estimator = NystroemClassifier if problem.discrete else NystroemRegressor
    model = estimator(kernel=kernel, alpha=problem.alpha, selection=problem.Z).fit(
        problem.X, problem.y, problem.weight
    )
    rows = np.vstack([problem.X, problem.more])
    gap = truth.gap(model.dual_coef_, model.intercept_)
    yield "estimator", _relative(model.expansion_(rows), truth.scores, problem.Y), gap
    if problem.discrete:
        found = model.predict_proba(rows)
        error = np.abs(found - truth.probabilities.astype(np.float64)).max()
        yield "probability", float(error), None


def _relative(found: np.ndarray, exact: np.ndarray, targets: np.ndarray) -> float:
    """Return the largest error in units of the spread of the exact scores, or of the targets.

    The larger spread counts: with a large ridge all scores are nearly equal.
    """
    spread = max(np.ptp(values, axis=0).max() for values in (exact, targets))
    return float(np.abs(found - exact).max() / spread)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def run(options: BenchOptions) -> None:
    """Solve the problems that are not in the file yet; print the errors."""
    options.expect("problems", "first")
    first = options.integer("first", 0)
    count = options.integer("problems", 9 if options.smoke else PROBLEMS)
    tasks = [(seed,) for seed in range(first, first + count)]
    options.measure("truth.csv", Error, tasks, measure)
    frame = records.frame(options.path("truth.csv"), Error)
    errors = frame.groupby(["result", "dtype"])[["error", "gap"]]
    print(errors.agg(["count", "median", "max"]).to_string())
