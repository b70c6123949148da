"""Landmarks from the features alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import brentq

from nysplus._ridge.feature_map import Approximation
from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.kernels import Kernel
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Problem, rows_as_landmarks
from nysplus.landmarks.clustering import centroids
from nysplus.landmarks.pivoted_cholesky import (
    BLOCK,
    draw,
    find_pivots,
    kernel_diagonal,
    require_positive_semidefinite,
)

# Least number of rows that leverage scores are estimated from; fewer would save no time.
LEVERAGE_ROWS = 256
# Smallest ridge, as a share of the kernel's mean diagonal: with a smaller one the scores would be
# rounding errors.
LEAST_RIDGE = 1e-8


@dataclass(repr=False, eq=False)
class Uniform(LandmarkSelector):
    """Rows drawn uniformly without replacement, as scikit-learn's ``Nystroem`` draws them."""

    @property
    def by_kernel(self) -> bool:
        """True."""
        return True

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Draw `n` rows. O(N) time, no pass over the features."""
        return rows_as_landmarks(problem.blocks, problem.blocks.sample(n, rng))


@dataclass(repr=False, eq=False)
class KMeans(LandmarkSelector):
    """Centroids of k-means on a uniform subset of the rows (appendix A.3).

    Parameters
    ----------
    max_rows : int, default=20000
        Rows that are clustered, drawn uniformly, as in the paper's experiments.
    max_iter : int, default=20
        Lloyd iterations.
    """

    max_rows: int = 20_000
    max_iter: int = 20
    kind: ClassVar[str] = "centroids"

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense."""
        check_count("max_rows", self.max_rows)
        check_count("max_iter", self.max_iter)

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Cluster a sample of the rows. O(max_rows · n · d · max_iter), no pass over the rows."""
        pool = problem.blocks.gather(problem.blocks.sample(max(n, self.max_rows), rng))
        return Landmarks(centroids(pool, n, self.max_iter, rng)[0])


@dataclass(repr=False, eq=False)
class RPCholesky(LandmarkSelector):
    """Rows drawn by randomly pivoted Cholesky: in proportion to their residual.

    The residual of a row is the squared distance, in the kernel's feature space, from the span of
    the landmarks drawn before. Dense regions get no more landmarks than they need and small
    clusters are not missed; the trace of ``K − K̂`` is close to the smallest for `n` rows.

    Parameters
    ----------
    max_rows : int, default=20000
        Rows that landmarks are drawn from, a uniform sample of all rows; at least `n`.
    block : int, default=128
        Number of landmarks that are proposed at once. It affects the speed only.
    weight : callable, optional
        ``weight(X)`` returns a factor for each row of X, finite and not negative. The probability
        of a row is multiplied by its factor and by its sample weight.

    Notes
    -----
    Chen, Epperly, Tropp & Webber, *Randomly pivoted Cholesky*, 2023, in the blocks with rejection
    of Epperly, Tropp & Webber, *Embrace rejection*, 2024. Needs a positive semidefinite kernel.
    """

    max_rows: int = 20_000
    block: int = BLOCK
    weight: Callable[[Any], Any] | None = None

    @property
    def by_kernel(self) -> bool:
        """Whether there is no `weight` of features."""
        return self.weight is None

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense."""
        check_count("max_rows", self.max_rows)
        check_count("block", self.block)
        if self.weight is not None and not callable(self.weight):
            raise ValueError(
                f"weight={self.weight!r} must be None or a function that returns a factor for "
                "each row of a matrix. Weights of rows are the sample_weight of fit."
            )

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Draw `n` rows. O(max_rows · n · (d + n)) time, O(max_rows · n) memory, no pass over
        all rows.
        """
        require_positive_semidefinite(problem.kernel, type(self).__name__)
        rows = problem.blocks.sample(max(n, self.max_rows), rng)
        pool = problem.blocks.gather(rows)
        weight = pool.counts * self._factors(pool.X)
        pivots = find_pivots(problem.kernel, pool.X, n, weight, rng, block=self.block)
        chosen = pivots.positions
        return Landmarks(pool.X[chosen], rows[chosen], pivots.n_kernel_evaluations)

    def _factors(self, X: Any) -> Float:
        if self.weight is None:
            return np.ones(X.shape[0])
        factors = np.asarray(self.weight(X), dtype=np.float64)
        if factors.shape != X.shape[:1]:
            raise ValueError(
                f"weight returned shape {factors.shape} for {X.shape[0]} rows; it must return "
                f"{X.shape[:1]}, a factor for each."
            )
        return factors


@dataclass(repr=False, eq=False)
class LeverageScores(LandmarkSelector):
    """Rows drawn by their ridge leverage scores: by their influence on a ridge fit.

    The score of row i is the i-th diagonal entry of ``K (K + λI)⁻¹``; the sum of the scores is the
    effective dimension of the rows at the ridge λ. Landmarks are drawn one after the other in
    proportion to the scores, without replacement.

    Parameters
    ----------
    max_rows : int, default=20000
        Rows that landmarks are drawn from, a uniform sample of all rows; at least `n`.
    alpha : float, optional
        The ridge λ. By default the ridge with the effective dimension ``n / log n``, or ``n / 2``
        below eight landmarks: sampling by leverage needs a logarithmic number of landmarks for
        each dimension. At least 1e-8 of the mean of the kernel's diagonal, below which scores
        would be rounding errors.

    Notes
    -----
    Scores are estimated by the recursion of Musco & Musco, *Recursive sampling for the Nyström
    method*, 2017: the scores of a random half of the rows give the sample from which the scores of
    all rows are estimated. A sample has `n` rows, at least 256. Needs a positive semidefinite
    kernel.
    """

    max_rows: int = 20_000
    alpha: float | None = None

    @property
    def by_kernel(self) -> bool:
        """True."""
        return True

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense."""
        check_count("max_rows", self.max_rows)
        alpha: Any = self.alpha
        if alpha is not None and not (isinstance(alpha, Real) and 0 < float(alpha) < np.inf):
            raise ValueError(
                f"alpha={alpha!r} must be a positive finite number, or None for a ridge that "
                "suits the number of landmarks."
            )

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Draw `n` rows. O(max_rows · m · (d + m)) time with m the larger of n and 256, O(m²)
        memory beside the rows, no pass over all rows.
        """
        require_positive_semidefinite(problem.kernel, type(self).__name__)
        rows = problem.blocks.sample(max(n, self.max_rows), rng)
        pool = problem.blocks.gather(rows)
        scores, evaluations = leverage_scores(
            problem.kernel, pool.X, pool.counts, n, self.alpha, rng
        )
        chosen = draw(scores, n, rng)
        return Landmarks(pool.X[chosen], rows[chosen], evaluations)


def leverage_scores(
    kernel: Kernel,
    X: Any,
    counts: Float,
    n: int,
    alpha: float | None,
    rng: np.random.RandomState,
) -> tuple[Float, int]:
    """Estimate the ridge leverage scores of rows with sample weights `counts`.

    The other parameters are those of :class:`LeverageScores`. Returns the scores, of shape
    (rows,), and the number of kernel values they took. Exact if the sample holds all rows.
    """
    n_rows, size = X.shape[0], max(n, LEVERAGE_ROWS)
    diagonal, evaluations = kernel_diagonal(kernel, X)
    least = LEAST_RIDGE * float(np.average(diagonal, weights=counts))
    if least <= 0:
        return counts, evaluations  # the kernel is zero everywhere
    # each level has twice the rows of the level before; the first has no more than a sample
    order = rng.permutation(n_rows)
    levels = [n_rows]
    while levels[-1] > size:
        levels.append(-(-levels[-1] // 2))
    sample, chance = order[: levels[-1]], np.ones(levels[-1])
    for n_level in reversed(levels):
        level, Z = order[:n_level], X[sample].astype(np.float64)
        # diag(K − C (B + λD⁻¹)⁻¹ Cᵀ) / λ with C the kernel between rows and sample, B the kernel
        # within the sample, D = counts / chance, and (B + λD⁻¹)⁻¹ = TTᵀ
        root = np.sqrt(counts[sample] / chance)
        values, vectors = eigh(root[:, None] * kernel(Z, Z) * root, check_finite=False)
        values = np.maximum(values, 0.0)
        ridge = max(_suiting_ridge(values, n, least) if alpha is None else alpha, least)
        T = root[:, None] * vectors / np.sqrt(values + ridge)
        residual = diagonal[level] - _squares(kernel, X, level, Z, T)
        scores = np.clip(counts[level] * residual / ridge, 0.0, 1.0)
        evaluations += (n_level + len(sample)) * len(sample)
        if n_level < n_rows and scores.any():  # all scores are zero if the kernel is
            chances = _inclusion(scores, size)
            drawn = rng.random_sample(n_level) < chances
            sample, chance = level[drawn], chances[drawn]
    found = np.empty(n_rows)
    found[order] = scores
    return found, evaluations


def _squares(kernel: Kernel, X: Any, rows: npt.NDArray[np.intp], Z: Any, T: Float) -> Float:
    """Return the squared norms of ``k(x, Z) T`` for some rows."""
    columns = kernel.bind(Z)

    def part(some: slice) -> Float:
        features = columns(X[rows[some]].astype(np.float64, copy=False)) @ T
        squares: Float = np.einsum("ij,ij->i", features, features)
        return squares

    slices = row_slices(len(rows), 8 * (X.shape[1] + 2 * len(T)))
    return np.concatenate(list(in_threads(part, slices)))


def _suiting_ridge(values: Float, n: int, least: float) -> float:
    """Return the ridge at which eigenvalues have the effective dimension ``n / log n``."""
    target = n / max(float(np.log(n)), 2.0)

    def excess(log_ridge: float) -> float:
        return float((values / (values + np.exp(log_ridge))).sum()) - target

    low = float(np.log(least))
    if excess(low) <= 0:
        return least  # the rank of the kernel matrix is below the target
    # at Σσ / target the effective dimension is below the target
    high = float(np.log(values.sum() / target))
    return float(np.exp(brentq(excess, low, high)))


def _inclusion(scores: Float, size: int) -> Float:
    """Return probabilities in proportion to the scores, at most 1 each, that sum to `size`.

    The sum is smaller if fewer than `size` rows have a positive score.
    """
    certain = np.zeros(len(scores), dtype=bool)
    while True:
        remaining, rest = size - np.count_nonzero(certain), scores[~certain].sum()
        chances = np.where(certain, 1.0, scores * (remaining / rest) if rest > 0 else 0.0)
        if not (chances > 1.0).any():
            return chances
        certain |= chances > 1.0
