"""Three ways to the ridge solution on Nyström features, and which one to take.

- `Direct`: whiten every block, sum the moments of the features, factorise. Right for every
  spectrum in float64; in float32 where the landmarks' kernel matrix allows it.
- `GramFirst`: sum the moments of the kernel values and whiten them at the end, which saves a
  product of n² for every row but loses twice the digits; conjugate gradients bring them back.
- `Iterative`: conjugate gradients from a sketch of the rows. No n² for every row at all.

Every way checks its own result; `solve_ridge` goes on to the next one where the check fails.
`docs/numerics.md` derives the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._ridge.conjugate_gradients import (
    SKETCH_RATIO,
    NormalEquations,
    conjugate_gradients,
    preconditioner,
    sketched_scatter,
)
from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.path import RidgePath, Solution, Solve
from nysplus._ridge.problem import (
    VALIDATION_ROWS,
    ChosenAlpha,
    RidgeProblem,
    best_on,
    choose_alpha,
    sum_moments,
)
from nysplus._rows.blocks import Blocks
from nysplus._runtime.memory import working_bytes
from nysplus._typing import Float

# The objective is to be within this share of its minimum.
TOLERANCE = 1e-6
# Estimates of the gap are orders of magnitude: they have to stay this far below the tolerance.
SAFETY = 100.0
# The same where the gap is measured rather than estimated: what conjugate gradients stop at.
FINE_TOLERANCE = 3e-8
# Enough to compare ridges by.
ROUGH_TOLERANCE = 1e-4
# Expected share of the objective by which float32 may miss the minimum for it to be tried.
MAX_FLOAT32_GAP = 1e-7
# The same where a residual in float64 corrects the result, and what that may find missing.
MAX_CORRECTED_GAP = 1e-5
MAX_CORRECTION = 1e-4
# A worst-case error of the whitened gram matrix this many times its smallest eigenvalue is still
# polished away: the worst case is far above what happens.
MAX_GRAM_ERROR = 10.0
# With fewer rows than this for each feature the sketch is nearly as large as what it stands for.
MIN_ITERATIVE_RATIO = 4
# Iterations after which a polished solution is given up.
MAX_POLISH = 4
# The cost model, in float64 operations of a matrix product: rounded so that the order of the
# solvers is the one that benchmarks/crossover.py finds.
EXPONENTIAL = 50.0  # a kernel value beyond its product
KEPT_VALUE = 150.0  # a kernel value that is read from memory and used twice
SKETCHED_VALUE = 150.0  # a kernel value that enters the sketch
TYPICAL_ITERATIONS = 28
# Matrices of n × n numbers that the direct solver holds at its peak.
DIRECT_MATRICES = 6


@dataclass(frozen=True)
class Answer:
    """A certified solution.

    Attributes
    ----------
    solver : str
    choice : ChosenAlpha
        The ridge.
    left_out : LeaveOneOut
        Weights of the features and the intercept, and what leaving rows out makes of them.
    n_rows : int
        Rows whose kernel values were computed, counted as often as that was done.
    """

    solver: str
    choice: ChosenAlpha
    left_out: LeaveOneOut
    n_rows: int


def direct_bytes(n: int) -> int:
    """Return what a fit with `n` landmarks needs beside its blocks, whatever their number."""
    return DIRECT_MATRICES * 8 * n * n


def solve_ridge(problem: RidgeProblem) -> Answer:
    """Take the cheapest way that the spectrum allows, and the next one if its check fails."""
    spent = 0
    for solver in _ways(problem):
        answer, n_rows = solver.solve(problem)
        spent += n_rows
        if answer is not None:
            return Answer(solver.name, *answer, spent)
    raise AssertionError("the direct solver in float64 has no check to fail")


Found = tuple[ChosenAlpha, LeaveOneOut]


@dataclass(frozen=True)
class Direct:
    """Moments of the whitened features, one product of n² more for every row than `GramFirst`."""

    dtype: Any

    @property
    def name(self) -> str:
        """What `solver_` says."""
        return f"direct-{np.dtype(self.dtype).name}"

    def cost(self, N: int, n: int, d: int) -> float:
        """Return the work in units of a float64 operation in a matrix product."""
        return _speed(self.dtype) * N * n * (2 * d + 2.2 * n)

    def solve(self, problem: RidgeProblem) -> tuple[Found | None, int]:
        """Return the solution, or None if float32 was not enough; and the rows evaluated."""
        feature_map = problem.feature_map
        path = RidgePath(sum_moments(problem, feature_map.features(self.dtype), feature_map.rank))
        choice = choose_alpha(problem, path, self.dtype)
        found = path.solve(choice.alpha)
        single = self.dtype is np.float32
        error = feature_map.float32_noise * feature_map.scale if single else 0.0
        n_rows = problem.blocks.n_rows + choice.n_rows
        if _certified(error, found):
            return _found(problem, path, choice, found), n_rows
        polished, more = _polish(problem, path, choice, found)
        return polished, n_rows + more


@dataclass(frozen=True)
class GramFirst:
    """Moments of the kernel values, whitened at the end and polished where that is needed.

    Attributes
    ----------
    polished : bool
        Whether polishing is expected.
    """

    polished: bool
    name = "gram-float64"

    @classmethod
    def where_allowed(cls, problem: RidgeProblem) -> list[GramFirst]:
        """Return this way if, by the landmarks alone, its result is likely to be good enough.

        Typical sizes: ‖G‖ is a hundredth of N·n, and the smallest eigenvalue of the features'
        scatter is 20 N/n times that of B (docs/numerics.md has the range on five datasets).
        """
        N, n, feature_map = (
            problem.blocks.n_rows,
            problem.feature_map.n_landmarks,
            problem.feature_map,
        )
        smallest = feature_map.smallest * feature_map.scale
        expected = 20.0 * smallest * N / n + min(problem.alphas)
        error = gram_error(feature_map, 0.01 * N * n * feature_map.scale**2)
        if error > MAX_GRAM_ERROR * expected:
            return []
        # with ‖W‖² of the order of the objective
        return [cls(polished=SAFETY * error**2 > TOLERANCE * expected * feature_map.scale)]

    def cost(self, N: int, n: int, d: int) -> float:
        """Return the work in units of a float64 operation in a matrix product."""
        polish = 2 * (2 * d + EXPONENTIAL + KEPT_VALUE) if self.polished else 0
        return N * n * (2 * d + n + polish)

    def solve(self, problem: RidgeProblem) -> tuple[Found | None, int]:
        """Return the solution, or None if too many digits were lost; and the rows evaluated."""
        feature_map = problem.feature_map
        moments = sum_moments(problem, feature_map.columns(np.float64), feature_map.n_landmarks)
        path = RidgePath(moments.mapped(feature_map.transposed))
        choice = choose_alpha(problem, path, np.float64)
        found = path.solve(choice.alpha)
        error = gram_error(feature_map, float(np.linalg.norm(moments.scatter)))
        n_rows = problem.blocks.n_rows + choice.n_rows
        if error > MAX_GRAM_ERROR * found.smallest:
            return None, n_rows
        if _certified(error, found):
            return _found(problem, path, choice, found), n_rows
        polished, more = _polish(problem, path, choice, found)
        return polished, n_rows + more


@dataclass(frozen=True)
class Iterative:
    """Conjugate gradients, preconditioned by a sketch of the rows."""

    dtype: Any

    @property
    def name(self) -> str:
        """What `solver_` says."""
        return f"iterative-{np.dtype(self.dtype).name}"

    def _keeps(self, N: int, n: int) -> bool:
        """Tell whether K is kept: if it takes no more than the direct solver's n × n matrices."""
        budget = max(working_bytes(), direct_bytes(n))
        return bool(N * n * np.dtype(self.dtype).itemsize <= budget)

    def cost(self, N: int, n: int, d: int) -> float:
        """Return the work in units of a float64 operation in a matrix product."""
        speed = _speed(self.dtype)
        values = N * n * (speed * 2 * d + EXPONENTIAL)
        visit = speed * N * n * KEPT_VALUE
        if not self._keeps(N, n):
            visit += values
        sketch = speed * SKETCH_RATIO * n * (2.2 * n * n) + N * n * SKETCHED_VALUE
        exact = N * n * (2 * d + EXPONENTIAL + KEPT_VALUE) if self.dtype is np.float32 else 0.0
        return values + sketch + exact + TYPICAL_ITERATIONS * visit

    def solve(self, problem: RidgeProblem) -> tuple[Found | None, int]:
        """Return the solution, or None if it did not converge; and the rows evaluated."""
        blocks, feature_map = problem.blocks, problem.feature_map
        keep = self._keeps(blocks.n_rows, feature_map.n_landmarks)
        equations = NormalEquations(blocks, feature_map, self.dtype, problem.stage, keep)
        scatter = sketched_scatter(equations.sketch(problem.rng))
        choice, n_rows = ChosenAlpha(problem.alphas[0], None, 0), 0
        W: Float = np.zeros((feature_map.rank, len(equations.target_mean)))
        if len(problem.alphas) > 1 or problem.with_score:
            choice, W, n_rows = self._choose(problem, equations, scatter)
        alpha = choice.alpha
        solve = preconditioner(scatter, alpha)
        if solve is None:
            return None, n_rows + equations.evaluated
        start = equations.start(W, alpha)
        if self.dtype is np.float32:
            rough = conjugate_gradients(equations, solve, start, alpha, TOLERANCE)
            # One residual in float64 shows what float32 has missed; the same share of that is
            # missed again when it is made up for.
            exact = NormalEquations(blocks, feature_map, np.float64, problem.stage)
            exact.feature_mean = equations.feature_mean
            start = exact.start(rough.W, alpha)
            equations.feature_mean = exact.feature_mean
            n_rows += exact.evaluated
            if float((start.R * solve(start.R)).sum()) > MAX_CORRECTION * start.objective:
                return None, n_rows + equations.evaluated
        found = conjugate_gradients(equations, solve, start, alpha, FINE_TOLERANCE)
        n_rows += equations.evaluated
        if not found.converged:
            return None, n_rows
        mean, weight = equations.feature_mean, equations.weight
        return (
            choice,
            LeaveOneOut(problem, found.W, found.b, mean, weight, _unbiased(solve)),
        ), n_rows

    def _choose(
        self, problem: RidgeProblem, equations: NormalEquations, scatter: Float
    ) -> tuple[ChosenAlpha, Float, int]:
        """Choose α on rows that are left out of all fits.

        Leave-one-out needs the leverage of every row, which a sketch gives but roughly. Returns
        the choice, weights to start from, and the rows evaluated.
        """
        assert isinstance(problem.blocks, Blocks)
        most = min(VALIDATION_ROWS, problem.blocks.n_candidates // 5)
        trials = np.sort(problem.blocks.sample(most, problem.rng))
        training = equations.reweighted(problem.blocks.without(trials))
        W: Float = np.zeros((problem.feature_map.rank, len(equations.target_mean)))
        models: dict[float, tuple[Float, Float]] = {}
        for alpha in reversed(problem.alphas):  # a large ridge is easy, and a start for the next
            solve = preconditioner(scatter, alpha)
            if solve is not None:
                start = training.start(W, alpha)
                W = conjugate_gradients(training, solve, start, alpha, ROUGH_TOLERANCE).W
            models[alpha] = W, training.intercept(W)
        choice = best_on(problem, problem.blocks.some(trials), self.dtype, models)
        return choice, models[choice.alpha][0], training.evaluated + choice.n_rows


def _unbiased(solve: Solve) -> Solve:
    """Return the inverse of a sketched scatter less what inverting a random matrix adds."""
    return lambda R: (1.0 - 1.0 / SKETCH_RATIO) * solve(R)


Solver = Direct | GramFirst | Iterative


def _ways(problem: RidgeProblem) -> list[Solver]:
    """Return the solvers to try in turn, the cheapest first; the last one never fails."""
    blocks, feature_map = problem.blocks, problem.feature_map
    sure = Direct(np.float64)
    expected = _float32_gap(problem)
    shortcuts: list[Solver] = [Direct(np.float32)] if expected <= MAX_FLOAT32_GAP else []
    shortcuts += GramFirst.where_allowed(problem)
    enough = blocks.n_candidates >= MIN_ITERATIVE_RATIO * feature_map.rank > 0
    if enough and blocks.local:  # the sketch and the kernel values stay where they are made
        shortcuts.append(Iterative(np.float32 if expected <= MAX_CORRECTED_GAP else np.float64))
    size = (blocks.n_rows, feature_map.n_landmarks, blocks.n_features)
    shortcuts = [way for way in shortcuts if way.cost(*size) < sure.cost(*size)]
    return [*sorted(shortcuts, key=lambda way: way.cost(*size)), sure]


def _float32_gap(problem: RidgeProblem) -> float:
    """Estimate by the landmarks alone how far float32 would miss the minimum, relative to it.

    The smallest eigenvalue of the features' scatter is N/n times that of B or more, and ‖W‖² in
    units of B is of the order of the objective or below.
    """
    blocks, feature_map = problem.blocks, problem.feature_map
    if blocks.dtype != np.float32 or feature_map.rank == 0:
        return np.inf
    ridge = min(problem.alphas) / feature_map.scale
    least = feature_map.smallest * blocks.n_rows / feature_map.n_landmarks + ridge
    return feature_map.float32_noise**2 / least


def _speed(dtype: Any) -> float:
    """Return the time of an operation in a matrix product, in units of one in float64."""
    return 0.5 if dtype is np.float32 else 1.0


def gram_error(feature_map: FeatureMap, size: float) -> float:
    """Return the error of the whitened scatter when that of K, of norm `size`, was summed."""
    smallest = feature_map.smallest * feature_map.scale
    # bounded, so that its square is a number too
    return float(min(np.finfo(np.float64).eps * size / max(smallest, 1e-300), 1e100))


def _certified(error: float, found: Solution) -> bool:
    """Tell whether an error of the features or of their scatter leaves the objective minimal.

    It moves the solution by about ``error ‖W‖ / (s_min + α)``, and the objective, which is flat
    at its minimum, by the square of that times the curvature.
    """
    gap = error**2 * float((found.W**2).sum()) / max(found.smallest, 1e-300)
    return bool(SAFETY * gap <= TOLERANCE * found.objective)


def _found(problem: RidgeProblem, path: RidgePath, choice: ChosenAlpha, found: Solution) -> Found:
    moments = path.moments
    left_out = LeaveOneOut(
        problem, found.W, found.b, moments.feature_mean, moments.weight, found.inverse
    )
    return choice, left_out


def _polish(
    problem: RidgeProblem, path: RidgePath, choice: ChosenAlpha, rough: Solution
) -> tuple[Found | None, int]:
    """Improve a solution by conjugate gradients in float64; return the rows evaluated as well.

    The factor of what was summed with too few digits is an excellent preconditioner.
    """
    equations = NormalEquations(problem.blocks, problem.feature_map, np.float64, problem.stage)
    equations.feature_mean = path.moments.feature_mean
    start = equations.start(rough.W, choice.alpha)
    better = conjugate_gradients(
        equations, rough.inverse, start, choice.alpha, FINE_TOLERANCE, MAX_POLISH
    )
    if not better.converged:
        return None, equations.evaluated
    found = _found(problem, path, choice, replace(rough, W=better.W, b=better.b))
    return found, equations.evaluated
