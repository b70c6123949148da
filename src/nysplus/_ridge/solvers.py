"""Three solvers of the ridge problem on Nyström features, and the choice between them.

- `Direct`: whiten every block, sum the moments of the features, factorise. Right for every
  spectrum in float64; in float32 where the landmarks' kernel matrix allows it.
- `GramFirst`: sum the moments of the kernel values and whiten them at the end, which saves a
  product of n² for every row but loses twice the digits; conjugate gradients bring them back.
- `Iterative`: conjugate gradients from a sketch of the rows. No n² for every row at all.

Every solver checks its own result; `solve_ridge` goes on to the next solver if the check fails.
`docs/background/numerics.md` derives the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._holdout import mask_out
from nysplus._ridge.conjugate_gradients import (
    NormalEquations,
    conjugate_gradients,
    preconditioner,
    sketched_scatter,
)
from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath, Solution
from nysplus._ridge.problem import ChosenAlpha, RidgeProblem, best_on, choose_alpha, sum_moments
from nysplus._ridge.rules import DEFAULT_RULES, SolverRules
from nysplus._rows.blocks import Blocks
from nysplus._runtime.memory import working_bytes
from nysplus._typing import Float

# Matrices of n × n numbers that the direct solver holds at its peak.
DIRECT_MATRICES = 6
# Random vectors that estimate a trace: its order of magnitude is enough.
TRACE_VECTORS = 4


@dataclass(frozen=True)
class Answer:
    """A solution that passed its solver's check.

    Attributes
    ----------
    solver : str
        Name of the solver.
    choice : ChosenAlpha
        The ridge.
    left_out : LeaveOneOut
        Weights of the features and the intercept, and their leave-one-out scores.
    n_rows : int
        Number of rows whose kernel values were computed, counted in every pass.
    """

    solver: str
    choice: ChosenAlpha
    left_out: LeaveOneOut
    n_rows: int


def direct_bytes(n: int) -> int:
    """Return the bytes that a fit with `n` landmarks needs beside its blocks of rows."""
    return DIRECT_MATRICES * 8 * n * n


def solve_ridge(problem: RidgeProblem) -> Answer:
    """Solve with the cheapest solver that the spectrum allows, with the next if its check fails."""
    spent = 0
    for solver in solvers_to_try(problem):
        found, n_rows = solver.solve(problem)
        spent += n_rows
        if found is not None:
            return Answer(solver.name, *found, spent)
    raise AssertionError("the direct solver in float64 has no check to fail")


Found = tuple[ChosenAlpha, LeaveOneOut]


@dataclass(frozen=True)
class Direct:
    """Moments of the whitened features: one product of n² more for every row than `GramFirst`."""

    dtype: type[np.floating[Any]]

    @property
    def name(self) -> str:
        """Name of the solver, for the attribute `solver_` of estimators."""
        return f"direct-{np.dtype(self.dtype).name}"

    def cost(self, N: int, n: int, d: int, rules: SolverRules = DEFAULT_RULES) -> float:
        """Return the work, in float64 operations of a matrix product."""
        return _speed(self.dtype) * N * n * (2 * d + rules.exponential_cost + 2.2 * n)

    def solve(self, problem: RidgeProblem) -> tuple[Found | None, int]:
        """Return the solution, or None if float32 is not enough; and the rows evaluated."""
        feature_map = problem.feature_map
        path = RidgePath(sum_moments(problem, feature_map.features(self.dtype), feature_map.rank))
        choice = choose_alpha(problem, path, self.dtype)
        found = path.solve(choice.alpha)
        error, rounding = 0.0, 0.0
        if self.dtype is np.float32:
            error = feature_map.float32_noise * feature_map.scale
            rounding = rounding_gap(path.moments, found)
        n_rows = problem.blocks.n_rows + choice.n_rows
        if _certified(error, found, problem.rules, rounding):
            return self._checked(_with_leave_one_out(problem, path, choice, found)), n_rows
        polished, more = _polish(problem, path, choice, found)
        return None if polished is None else self._checked(polished), n_rows + more

    def _checked(self, found: Found) -> Found:
        """Return the solution; its leave-one-out scores fall back on float64 sums if necessary."""
        choice, left_out = found
        if self.dtype is np.float64:
            return found
        problem = replace(left_out.problem, alphas=(choice.alpha,), with_score=False)

        def in_float64() -> LeaveOneOut:
            again, _ = SURE.solve(problem)
            assert again is not None
            return again[1]

        most = problem.rules.max_float32_leverage
        return choice, replace(left_out, max_leverage=most, in_float64=in_float64)


@dataclass(frozen=True)
class GramFirst:
    """Moments of the kernel values, whitened at the end and polished if necessary.

    Attributes
    ----------
    polished : bool
        Whether polishing is expected, which enters the cost.
    """

    polished: bool
    name = "gram-float64"

    @classmethod
    def where_allowed(cls, problem: RidgeProblem) -> list[GramFirst]:
        """Return this solver if, by the landmarks alone, its solution is likely to pass.

        Typical sizes: ‖G‖ is a hundredth of N·n, and the smallest eigenvalue of the features'
        scatter is 20 N/n times that of B (docs/background/numerics.md has the range on five
        datasets).
        """
        rules, feature_map = problem.rules, problem.feature_map
        N, n = problem.blocks.n_rows, feature_map.n_landmarks
        smallest = feature_map.smallest * feature_map.scale
        expected = 20.0 * smallest * N / n + min(problem.alphas)
        error = gram_error(feature_map, 0.01 * N * n * feature_map.scale**2)
        if error > rules.max_gram_error * expected:
            return []
        # with ‖W‖² of the order of the objective
        allowed = rules.tolerance * expected * feature_map.scale
        return [cls(polished=rules.safety * error**2 > allowed)]

    def cost(self, N: int, n: int, d: int, rules: SolverRules = DEFAULT_RULES) -> float:
        """Return the work, in float64 operations of a matrix product."""
        values = 2 * d + rules.exponential_cost
        polish = 2 * (values + rules.stored_value_cost) if self.polished else 0.0
        return N * n * (values + n + polish)

    def solve(self, problem: RidgeProblem) -> tuple[Found | None, int]:
        """Return the solution, or None if too many digits were lost; and the rows evaluated."""
        feature_map, rules = problem.feature_map, problem.rules
        moments = sum_moments(problem, feature_map.columns(np.float64), feature_map.n_landmarks)
        path = RidgePath(moments.mapped(feature_map.transposed))
        choice = choose_alpha(problem, path, np.float64)
        found = path.solve(choice.alpha)
        error = gram_error(feature_map, float(np.linalg.norm(moments.scatter)))
        n_rows = problem.blocks.n_rows + choice.n_rows
        if error > rules.max_gram_error * found.smallest:
            return None, n_rows
        if _certified(error, found, rules):
            return _with_leave_one_out(problem, path, choice, found), n_rows
        polished, more = _polish(problem, path, choice, found)
        return polished, n_rows + more


@dataclass(frozen=True)
class Iterative:
    """Conjugate gradients, preconditioned by a sketch of the rows."""

    dtype: type[np.floating[Any]]

    @property
    def name(self) -> str:
        """Name of the solver, for the attribute `solver_` of estimators."""
        return f"iterative-{np.dtype(self.dtype).name}"

    def _stores_kernel(self, N: int, n: int) -> bool:
        """Return whether K is stored: if it takes no more than the direct solver's matrices."""
        budget = max(working_bytes(), direct_bytes(n))
        return bool(N * n * np.dtype(self.dtype).itemsize <= budget)

    def cost(self, N: int, n: int, d: int, rules: SolverRules = DEFAULT_RULES) -> float:
        """Return the work, in float64 operations of a matrix product."""
        speed = _speed(self.dtype)
        values = N * n * (speed * 2 * d + rules.exponential_cost)
        visit = speed * N * n * rules.stored_value_cost
        if not self._stores_kernel(N, n):
            visit += values
        sketch = speed * rules.sketch_ratio * n * (2.2 * n * n) + N * n * rules.sketched_value_cost
        residual = N * n * (2 * d + rules.exponential_cost + rules.stored_value_cost)
        exact = residual if self.dtype is np.float32 else 0.0
        return values + sketch + exact + rules.typical_iterations * visit

    def solve(self, problem: RidgeProblem) -> tuple[Found | None, int]:
        """Return the solution, or None if it did not converge; and the rows evaluated."""
        blocks, feature_map, rules = problem.blocks, problem.feature_map, problem.rules
        store = self._stores_kernel(blocks.n_rows, feature_map.n_landmarks)
        equations = NormalEquations(blocks, feature_map, self.dtype, problem.stage, store)
        scatter = sketched_scatter(equations.sketch(problem.rng, rules.sketch_ratio))
        choice, n_rows = ChosenAlpha(problem.alphas[0], None, 0), 0
        W: Float = np.zeros((feature_map.rank, len(equations.target_mean)))
        if len(problem.alphas) > 1 or problem.with_score:
            choice, W, n_rows = self._choose(problem, equations, scatter)
        alpha = choice.alpha
        solve = preconditioner(scatter, alpha)
        if solve is None:
            return None, n_rows + equations.evaluated
        start, most = equations.start(W, alpha), rules.max_iterations
        if self.dtype is np.float32:
            rough = conjugate_gradients(equations, solve, start, alpha, rules.tolerance, most)
            # A residual in float64 shows the error of float32. A correction in float32 leaves the
            # same share of this error.
            exact = NormalEquations(blocks, feature_map, np.float64, problem.stage)
            exact.feature_mean = equations.feature_mean
            start = exact.start(rough.W, alpha)
            equations.feature_mean = exact.feature_mean
            n_rows += exact.evaluated
            if float((start.R * solve(start.R)).sum()) > rules.max_correction * start.objective:
                return None, n_rows + equations.evaluated
        found = conjugate_gradients(equations, solve, start, alpha, rules.fine_tolerance, most)
        n_rows += equations.evaluated
        if not found.converged:
            return None, n_rows
        mean, weight = equations.feature_mean, equations.weight
        # the inverse of a random matrix is too large by this factor on average
        bias = 1.0 - 1.0 / rules.sketch_ratio
        left_out = LeaveOneOut(problem, found.W, found.b, mean, weight, lambda R: bias * solve(R))
        return (choice, left_out), n_rows

    def _choose(
        self, problem: RidgeProblem, equations: NormalEquations, scatter: Float
    ) -> tuple[ChosenAlpha, Float, int]:
        """Choose α on held-out rows.

        Leave-one-out needs the leverage of every row, which a sketch gives only roughly. Returns
        the choice, weights to start from, and the number of rows evaluated.
        """
        assert isinstance(problem.blocks, Blocks)
        rules = problem.rules
        most = min(rules.validation_rows, problem.blocks.n_candidates // rules.validation_share)
        validation, others = mask_out(problem.blocks, most, problem.rng)
        training = equations.reweighted(others)
        W: Float = np.zeros((problem.feature_map.rank, len(equations.target_mean)))
        models: dict[float, tuple[Float, Float]] = {}
        for alpha in reversed(problem.alphas):  # a large ridge is easy, and a start for the next
            solve = preconditioner(scatter, alpha)
            if solve is not None:
                start = training.start(W, alpha)
                W = conjugate_gradients(
                    training, solve, start, alpha, rules.rough_tolerance, rules.max_iterations
                ).W
            models[alpha] = W, training.intercept(W)
        choice = best_on(problem, validation, self.dtype, models)
        return choice, models[choice.alpha][0], training.evaluated + choice.n_rows


Solver = Direct | GramFirst | Iterative

# The solver that is right for every spectrum.
SURE = Direct(np.float64)
SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Direct(np.float32),
        SURE,
        GramFirst(polished=False),
        Iterative(np.float32),
        Iterative(np.float64),
    )
}


def solvers_to_try(problem: RidgeProblem) -> list[Solver]:
    """Return the solvers to try in turn: the cheapest first, the sure solver last."""
    if problem.rules.solvers is not None:
        return [SOLVERS[name] for name in problem.rules.solvers]
    blocks = problem.blocks
    size = (blocks.n_rows, problem.feature_map.n_landmarks, blocks.n_features)
    return cheapest_first(shortcuts(problem), *size, problem.rules)


def shortcuts(problem: RidgeProblem) -> list[Solver]:
    """Return the solvers that are likely to pass their own check, by the landmarks alone."""
    blocks, feature_map, rules = problem.blocks, problem.feature_map, problem.rules
    expected = _float32_gap(problem)
    found: list[Solver] = [Direct(np.float32)] if expected <= rules.max_float32_gap else []
    found += GramFirst.where_allowed(problem)
    enough = blocks.n_candidates >= rules.min_iterative_ratio * feature_map.rank > 0
    if enough and blocks.local:  # the sketch and the kernel values are not sent around
        single = expected <= rules.max_corrected_gap
        found.append(Iterative(np.float32 if single else np.float64))
    return found


def cheapest_first(
    candidates: Iterable[Solver], N: int, n: int, d: int, rules: SolverRules = DEFAULT_RULES
) -> list[Solver]:
    """Return the candidates that cost less than the sure solver, sorted by cost; then that one."""
    costs = {solver: solver.cost(N, n, d, rules) for solver in candidates}
    most = SURE.cost(N, n, d, rules)
    cheaper = [solver for solver, cost in costs.items() if cost < most]
    return [*sorted(cheaper, key=costs.__getitem__), SURE]


def _float32_gap(problem: RidgeProblem) -> float:
    """Estimate by the landmarks alone the relative gap that float32 would leave.

    The smallest eigenvalue of the features' scatter is N/n times that of B or more, and ‖W‖² in
    units of B is of the order of the objective or below.
    """
    blocks, feature_map = problem.blocks, problem.feature_map
    if blocks.dtype != np.float32 or feature_map.rank == 0:
        return np.inf
    ridge = min(problem.alphas) / feature_map.scale
    least = feature_map.smallest * blocks.n_rows / feature_map.n_landmarks + ridge
    return feature_map.float32_noise**2 / least


def _speed(dtype: type[np.floating[Any]]) -> float:
    """Return the time of an operation in a matrix product, in units of one in float64."""
    return 0.5 if dtype is np.float32 else 1.0


def gram_error(feature_map: FeatureMap, size: float) -> float:
    """Return the error of the whitened scatter if the scatter of K, of norm `size`, was summed."""
    smallest = feature_map.smallest * feature_map.scale
    # bounded, so that its square is finite
    return float(min(np.finfo(np.float64).eps * size / max(smallest, 1e-300), 1e100))


def rounding_gap(moments: Moments, found: Solution) -> float:
    """Estimate by how much float32 sums of products move the objective from its minimum. O(k²).

    An entry of the scatter S has an error of about ``ε √(S_ii S_jj)``. In the right-hand side this
    is ``ε √S_ii`` times the size of ``√S_jj W_j``, and likewise of the targets. With
    ``D = diag(S)``, the objective moves by ``ε² (‖√D W‖² + ‖Y − ȳ‖²) tr(√D (S + α)⁻¹ √D)``; random
    signs estimate the trace.
    """
    diagonal = np.diag(moments.scatter)
    signs = np.random.RandomState(0).choice([-1.0, 1.0], (len(diagonal), TRACE_VECTORS))
    probes = np.sqrt(diagonal)[:, None] * signs
    trace = float((probes * found.inverse(probes)).sum()) / TRACE_VECTORS
    size = float((diagonal @ found.W**2).sum() + moments.target_scatter.sum())
    return float(np.finfo(np.float32).eps) ** 2 * size * trace


def _certified(error: float, found: Solution, rules: SolverRules, rounding: float = 0.0) -> bool:
    """Return whether the objective is within the tolerance, given an error of the features.

    An error of the features or of their scatter moves the solution by about
    ``error ‖W‖ / (s_min + α)``, and the objective, which is flat at its minimum, by the square of
    that times the curvature. `rounding` is added to the distance of the objective.
    """
    gap = error**2 * float((found.W**2).sum()) / max(found.smallest, 1e-300) + rounding
    return bool(rules.safety * gap <= rules.tolerance * found.objective)


def _with_leave_one_out(
    problem: RidgeProblem, path: RidgePath, choice: ChosenAlpha, found: Solution
) -> Found:
    moments = path.moments
    left_out = LeaveOneOut(
        problem, found.W, found.b, moments.feature_mean, moments.weight, found.inverse
    )
    return choice, left_out


def _polish(
    problem: RidgeProblem, path: RidgePath, choice: ChosenAlpha, rough: Solution
) -> tuple[Found | None, int]:
    """Improve a solution by conjugate gradients in float64; return the rows evaluated as well.

    The factorisation of sums with too few digits is an excellent preconditioner.
    """
    rules = problem.rules
    equations = NormalEquations(problem.blocks, problem.feature_map, np.float64, problem.stage)
    equations.feature_mean = path.moments.feature_mean
    start = equations.start(rough.W, choice.alpha)
    better = conjugate_gradients(
        equations, rough.inverse, start, choice.alpha, rules.fine_tolerance, rules.max_polish
    )
    if not better.converged:
        return None, equations.evaluated
    solution = replace(rough, W=better.W, b=better.b)
    return _with_leave_one_out(problem, path, choice, solution), equations.evaluated
