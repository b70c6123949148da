"""Numbers that decide which solver of the ridge problem is tried, and when its solution is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverRules:
    """Tolerances, sizes and costs of the solvers; `docs/background/numerics.md` derives them.

    A *gap* is the distance of the objective from its minimum, relative to the minimum.
    """

    # ---- accuracy ----
    # Largest gap of a solution: too small to change a score visibly.
    tolerance: float = 1e-6
    # A gap estimated from error bounds may be wrong by two orders of magnitude, so it has to be
    # this factor below the tolerance.
    safety: float = 100.0
    # Gap at which conjugate gradients stop: below the tolerance, since the gap is itself estimated
    # with an approximate preconditioner.
    fine_tolerance: float = 3e-8
    # The same for solutions that only serve to compare ridges.
    rough_tolerance: float = 1e-4
    # Largest gap expected of float32 sums for which float32 is tried.
    max_float32_gap: float = 1e-7
    # The same where a residual in float64 corrects the solution, and the largest gap that this
    # residual may show.
    max_corrected_gap: float = 1e-5
    max_correction: float = 1e-4
    # Largest leverage with float32 sums: leave-one-out scores divide by what is left to 1, which
    # then has three digits or more.
    max_float32_leverage: float = 0.999
    # Largest worst-case error of the whitened gram matrix, in units of its smallest eigenvalue,
    # that polishing removes: actual errors are far below the worst case.
    max_gram_error: float = 10.0
    # Iterations after which polishing is given up: it needs one or two, or it fails.
    max_polish: int = 4

    # ---- conjugate gradients ----
    # Sketched rows for each feature: fewer need more iterations, more cost more than they save.
    sketch_ratio: int = 2
    # A sketch of twice the features needs about 30 iterations; many more mean that it failed.
    max_iterations: int = 150
    # Rows for each feature below which the sketch is nearly as large as all rows.
    min_iterative_ratio: int = 4

    # ---- choice of the ridge ----
    # Validation rows: the standard error of an accuracy of 95 % is .22 points.
    validation_rows: int = 10_000
    # Where leave-one-out is not available, at most one row in this number is held out.
    validation_share: int = 5

    # ---- cost, in float64 operations of a matrix product ----
    # Rounded so that the solvers come in the order of their measured times.
    exponential_cost: float = 50.0  # a kernel value beyond its product
    stored_value_cost: float = 150.0  # a kernel value that is read from memory and used twice
    sketched_value_cost: float = 150.0  # a kernel value that enters the sketch
    typical_iterations: int = 28

    # ---- tests and measurements ----
    # Names of the solvers to try in turn, whatever the other rules say.
    solvers: tuple[str, ...] | None = None


DEFAULT_RULES = SolverRules()
