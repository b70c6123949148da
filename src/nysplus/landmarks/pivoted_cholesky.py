"""Partial pivoted Cholesky factorisation of a kernel matrix, with random or greedy pivots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrsm

from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.kernels import Kernel

# Rows of a block whose kernel matrix is evaluated for its diagonal: few enough for the entries
# beside the diagonal to cost little, many enough for calls to cost little.
DIAGONAL_ROWS = 32
# A residual below this share of k(x, x) is rounding error.
RESIDUAL_FLOOR = 1e-11
# A residual below minus this share of k(x, x) is no rounding error: the kernel is indefinite.
INDEFINITE = 1e-6
# Scores that differ by less than this share are equal: equal rows have equal residuals only up to
# rounding.
TIE = 1e-9
# Pivots proposed at once: enough for BLAS, few enough for most of them to be accepted.
BLOCK = 128

Positions = npt.NDArray[np.intp]


def require_positive_semidefinite(kernel: Kernel, rule: str) -> None:
    """Raise for a kernel that is known not to be positive semidefinite.

    For a kernel that is a function, :func:`pivoted_cholesky` raises at the first negative residual.
    """
    if not kernel.may_be_positive_semidefinite:
        raise _indefinite(kernel, rule)


def _indefinite(kernel: Kernel, rule: str) -> ValueError:
    return ValueError(
        f"{rule} needs a positive semidefinite kernel, and {kernel!r} is not. Choose rows without "
        "the kernel (selection='uniform' or 'kmeans', picker 'farthest'), or another kernel."
    )


def kernel_diagonal(kernel: Kernel, X: Any) -> tuple[Float, int]:
    """Return ``k(x, x)`` of every row in float64, and the number of kernel values it took."""
    n_rows = X.shape[0]
    if kernel.unit_diagonal:
        return np.ones(n_rows), 0
    diagonal, evaluations = np.empty(n_rows), 0
    for start in range(0, n_rows, DIAGONAL_ROWS):
        rows = X[start : start + DIAGONAL_ROWS].astype(np.float64)
        diagonal[start : start + DIAGONAL_ROWS] = np.diagonal(kernel(rows, rows))
        evaluations += rows.shape[0] ** 2
    return diagonal, evaluations


def draw(weight: Float, n: int, rng: np.random.RandomState) -> Positions:
    """Draw `n` distinct positions, one after the other in proportion to the weights.

    Positions without weight come last, in order. O(rows log rows).
    """
    # independent exponential times with the weights as rates come in the order of the draws
    times = np.full(len(weight), np.inf)
    np.divide(rng.standard_exponential(len(weight)), weight, out=times, where=weight > 0)
    return np.argsort(times, kind="stable")[:n]


def first_largest(score: Float) -> int:
    """Return the first position of the largest score; scores that differ by rounding are equal."""
    return int(np.argmax(score >= (1.0 - TIE) * score.max()))


def check_pool(n_rows: int, n: int, weight: Float) -> None:
    """Raise unless `n` rows can be chosen from a pool of `n_rows` rows with these weights."""
    if n > n_rows:
        raise ValueError(
            f"n={n} exceeds the {n_rows} rows of the pool. Lower n or enlarge the pool."
        )
    if len(weight) != n_rows or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            f"Got {len(weight)} weights from {np.min(weight, initial=np.inf):g} to "
            f"{np.max(weight, initial=-np.inf):g} for {n_rows} rows; every row needs one, finite "
            "and not negative. Clip or shift the scores."
        )


def completed(
    chosen: Positions, n: int, weight: Float, rng: np.random.RandomState | None
) -> Positions:
    """Add positions up to `n`: of the largest weights or, with `rng`, drawn by weight."""
    rest = np.delete(np.arange(len(weight)), chosen)
    missing = n - len(chosen)
    if rng is None:
        more = np.argsort(-weight[rest], kind="stable")[:missing]
    else:
        more = draw(weight[rest], missing, rng)
    return np.concatenate([chosen, rest[more]])


@dataclass
class _Factor:
    """F with ``FFᵀ`` equal to ``K(X, X)`` in the pivots' rows, extended by blocks of columns.

    Attributes
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (rows, d)
    F : ndarray of shape (rows, n)
        One column for each pivot so far; the other columns are not set.
    diagonal, residual : ndarray of shape (rows,)
        Diagonals of ``K`` and of ``K − FFᵀ``; rounding errors of the residual are set to zero.
    pivots : ndarray of int
    n_kernel_evaluations : int
    """

    kernel: Kernel
    X: Any
    F: Float
    diagonal: Float
    n_kernel_evaluations: int
    residual: Float = field(init=False)
    pivots: Positions = field(init=False)

    def __post_init__(self) -> None:
        self.residual = self.diagonal.copy()
        self.pivots = np.zeros(0, dtype=np.intp)
        self._drop_rounding()

    @property
    def rank(self) -> int:
        """Number of pivots so far."""
        return len(self.pivots)

    def within(self, rows: Positions) -> Float:
        """Return ``K − FFᵀ`` among some rows, with the known residuals on the diagonal."""
        Z = self.X[rows].astype(np.float64)
        F = self.F[rows, : self.rank]
        H: Float = self.kernel(Z, Z) - F @ F.T
        np.fill_diagonal(H, self.residual[rows])
        self.n_kernel_evaluations += len(rows) ** 2
        return H

    def extend(self, pivots: Positions, L: Float) -> None:
        """Add pivots, whose residual among themselves is ``LLᵀ``. O(rows · pivots · (d + rank))."""
        start, stop = self.rank, self.rank + len(pivots)
        columns = self.kernel.bind(self.X[pivots].astype(np.float64))
        known = self.F[pivots, :start].T

        def part(rows: slice) -> None:
            G = columns(self.X[rows].astype(np.float64, copy=False))
            G -= self.F[rows, :start] @ known
            # G L⁻ᵀ; the transpose of a C-ordered array has the order of BLAS
            added = dtrsm(1.0, L, G.T, lower=1, overwrite_b=1).T
            self.F[rows, start:stop] = added
            self.residual[rows] -= np.einsum("ij,ij->i", added, added)

        row_bytes = 8 * (self.X.shape[1] + 3 * len(pivots))
        for _ in in_threads(part, row_slices(len(self.F), row_bytes)):
            pass
        self.pivots = np.concatenate([self.pivots, pivots])
        self.residual[self.pivots] = 0.0
        self.n_kernel_evaluations += len(self.F) * len(pivots)
        self._drop_rounding()

    def _drop_rounding(self) -> None:
        if not self.kernel.positive_semidefinite:
            scale = np.abs(self.diagonal).max(initial=0.0)
            if (self.residual < -INDEFINITE * scale).any():
                raise _indefinite(self.kernel, "A Cholesky factorisation")
        self.residual[self.residual <= RESIDUAL_FLOOR * self.diagonal] = 0.0


def _random_block(
    factor: _Factor, weight: Float, block: int, rng: np.random.RandomState, most: int
) -> tuple[Positions, Float]:
    """Draw pivots in proportion to weight times residual, one after the other, `block` at once.

    All pivots of a block are proposed by the residuals before the block. A proposal is accepted
    with the probability (residual after the accepted pivots) / (residual before the block), which
    gives the accepted pivots the distribution of single draws.
    """
    mass = np.cumsum(weight * factor.residual)
    at = np.searchsorted(mass, rng.random_sample(block) * mass[-1], side="right")
    # rounding may lead past the last row with a positive mass
    rows = np.minimum(at, np.searchsorted(mass, mass[-1]))
    H = factor.within(rows)
    threshold = rng.random_sample(block) * factor.residual[rows]
    floor = RESIDUAL_FLOOR * factor.diagonal[rows]
    accepted: list[int] = []
    L = np.zeros((block, min(block, most)))
    for j in range(block):
        if len(accepted) == L.shape[1]:
            break
        if H[j, j] > max(threshold[j], floor[j]) and rows[j] not in rows[accepted]:
            _eliminate(H, j, L[:, len(accepted)])
            accepted.append(j)
    return rows[accepted], L[accepted, : len(accepted)]


def _greedy_block(factor: _Factor, weight: Float, block: int, most: int) -> tuple[Positions, Float]:
    """Take pivots of largest weight times residual, one after the other.

    Residuals only shrink. The best of the rows that had the largest scores before the block is
    therefore the best of all rows, as long as its score exceeds those of the other rows before.
    """
    score = weight * factor.residual
    rows = np.flatnonzero(score >= (1.0 - TIE) * score.max())
    if len(rows) > block:  # of equal scores the first is chosen, so later rows cannot matter
        rows = rows[:block]
        threshold = (1.0 - TIE) * score.max()
    else:
        top = np.argpartition(-score, min(block, len(score)) - 1)[:block]
        rows = np.sort(top[score[top] > 0])
        others = score.copy()
        others[rows] = 0.0
        threshold = (1.0 + TIE) * others.max()
    H = factor.within(rows)
    floor = RESIDUAL_FLOOR * factor.diagonal[rows]
    accepted: list[int] = []
    L = np.zeros((len(rows), min(len(rows), most)))
    j = first_largest(score[rows])
    while True:
        _eliminate(H, j, L[:, len(accepted)])
        accepted.append(j)
        current = np.where(H.diagonal() > floor, weight[rows] * H.diagonal(), 0.0)
        current[accepted] = 0.0
        j = first_largest(current)
        if len(accepted) == L.shape[1] or current[j] <= threshold:
            return rows[accepted], L[accepted, : len(accepted)]


def _eliminate(H: Float, j: int, column: Float) -> None:
    """Write the Cholesky column of pivot j to `column`, and subtract its outer product from H."""
    np.divide(H[:, j], np.sqrt(H[j, j]), out=column)
    H -= np.outer(column, column)


@dataclass(frozen=True)
class Pivots:
    """The pivots of a partial Cholesky factorisation.

    Attributes
    ----------
    positions : ndarray of shape (n,)
        Positions of the chosen rows, in the order of choice.
    rank : int
        Number of pivots; the rows after the first `rank` ones are in their span.
    n_kernel_evaluations : int
    """

    positions: Positions
    rank: int
    n_kernel_evaluations: int


def find_pivots(
    kernel: Kernel,
    X: Any,
    n: int,
    weight: Float,
    rng: np.random.RandomState,
    greedy: bool = False,
    block: int = BLOCK,
) -> Pivots:
    """Return the pivots of :func:`pivoted_cholesky` with their rank and cost."""
    require_positive_semidefinite(kernel, "A Cholesky factorisation")
    n_rows = X.shape[0]
    check_pool(n_rows, n, weight)
    factor = _Factor(kernel, X, np.empty((n_rows, n)), *kernel_diagonal(kernel, X))
    while factor.rank < n and (weight * factor.residual).any():
        most = n - factor.rank
        if greedy:
            pivots, L = _greedy_block(factor, weight, block, most)
        else:
            pivots, L = _random_block(factor, weight, block, rng, most)
        factor.extend(pivots, L)
    positions = completed(factor.pivots, n, weight, None if greedy else rng)
    return Pivots(positions, factor.rank, factor.n_kernel_evaluations)


def pivoted_cholesky(
    kernel: Kernel,
    X: Any,
    n: int,
    weight: Float,
    rng: np.random.RandomState,
    greedy: bool = False,
    block: int = BLOCK,
) -> Positions:
    """Return the pivots of a partial Cholesky factorisation of ``K(X, X)``.

    A pivot is drawn in proportion to weight times the diagonal of the residual ``K − FFᵀ`` that
    the pivots before it leave, or has the largest such product. O(rows · n · (d + n)) time, nearly
    all of it in matrix products, O(rows · n) memory.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite. For a function, an error is raised if it turns out to be indefinite.
    X : ndarray or CSR matrix of shape (rows, d)
    n : int
        At most the number of rows.
    weight : ndarray of shape (rows,)
        Not negative. Rows of weight zero are chosen only after all other rows.
    rng : RandomState
        Ignored if `greedy`.
    greedy : bool
        Whether to take the row of the largest product, of equal ones the first, instead of drawing.
    block : int
        Number of pivots that are proposed at once. The distribution of random pivots and the
        greedy pivots do not depend on it.

    Returns
    -------
    positions : ndarray of shape (n,)
        Distinct. If the kernel matrix has a smaller rank than `n`, the last rows are those of the
        largest weight, or are drawn by weight.

    Notes
    -----
    Random pivots: Chen, Epperly, Tropp & Webber, *Randomly pivoted Cholesky*, 2023. Blocks with
    rejection: Epperly, Tropp & Webber, *Embrace rejection*, 2024.
    """
    return find_pivots(kernel, X, n, weight, rng, greedy, block).positions
