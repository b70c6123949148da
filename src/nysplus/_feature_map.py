"""From landmarks to features: the Nyström maps of the paper's section 2 and appendix A.

Every map has the form ``Φ = K(X, Z) Â``. It is a tuple of experts, each with its own columns
of K and its own whitening matrix; the standard and the randomized map have one expert.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import randomized_range_finder

from nysplus._checks import check_count
from nysplus._targets import Float
from nysplus.kernels import Kernel

# Enough pairs to meet the largest rounding error of a kernel entry, for next to no time.
NOISE_LANDMARKS = 256
# Beyond this error of the features a float32 pass is not worth trying (docs/numerics.md).
MAX_NOISE = 1.2e-5


@dataclass(frozen=True)
class Expert:
    """A group of landmarks with the whitening of its own kernel matrix.

    Attributes
    ----------
    columns : slice
        Which landmarks, and so which columns of ``K(X, Z)``.
    whitening : ndarray of shape (n_group, k_group)
        ``√μ U Σ^{-1/2}``.
    eigenvalues : ndarray of shape (k_group,)
        The kept part of Σ, descending.
    """

    columns: slice
    whitening: Float
    eigenvalues: Float


@dataclass(frozen=True)
class FeatureMap:
    """The map ``x ↦ k(x, Z) Â``.

    Attributes
    ----------
    kernel : Kernel
    landmarks : ndarray or CSR matrix of shape (n, d)
    experts : tuple of Expert
    n_kernel_evaluations : int
        Kernel entries that were needed to build the map.
    """

    kernel: Kernel
    landmarks: Any
    experts: tuple[Expert, ...]
    n_kernel_evaluations: int

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks n."""
        return int(self.landmarks.shape[0])

    @property
    def rank(self) -> int:
        """Number of features k."""
        return sum(expert.whitening.shape[1] for expert in self.experts)

    @cached_property
    def float32_noise(self) -> float:
        """Relative error of features computed in float32, in the worst direction: ``ε / √λ_min``.

        ε is the largest error of a float32 kernel entry, measured between some landmarks: for
        narrow kernels it is far above the unit roundoff. The whitening enlarges it by at most
        1/√λ_min. Both are in units of the mean of B's diagonal.
        """
        Z = self.landmarks[:NOISE_LANDMARKS].astype(np.float64)
        Z32 = Z.astype(np.float32)
        # Landmarks of float32 rows are float32 numbers: what differs is the arithmetic.
        exact = self.kernel(Z32.astype(np.float64), Z32.astype(np.float64))
        error = np.abs(self.kernel(Z32, Z32) - exact).max() / np.abs(np.diag(exact)).mean()
        worst = min(
            expert.eigenvalues[-1] * len(expert.whitening) / expert.eigenvalues.sum()
            for expert in self.experts
        )
        return float(max(error, np.finfo(np.float32).eps) / np.sqrt(worst))

    @property
    def allows_float32(self) -> bool:
        """Whether features in float32 can be exact enough, by the kernel matrix alone."""
        return self.rank > 0 and self.float32_noise < MAX_NOISE

    def features(self, X: Any, dtype: npt.DTypeLike = np.float64) -> Float:
        """Return ``Φ = K(X, Z) Â`` of shape (b, k), computed in `dtype`."""
        K = self.kernel(X.astype(dtype, copy=False), self.landmarks.astype(dtype, copy=False))
        parts = [
            K[:, expert.columns] @ expert.whitening.astype(dtype, copy=False)
            for expert in self.experts
        ]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def collapse(self, W: Float) -> Float:
        """Return ``A = Â W`` of shape (n, L): coefficients of the kernel itself (eq. 6)."""
        A = np.zeros((self.n_landmarks, W.shape[1]))
        stop = 0
        for expert in self.experts:
            start, stop = stop, stop + expert.whitening.shape[1]
            A[expert.columns] = expert.whitening @ W[start:stop]
        return A


def _whiten(vectors: Float, values: Float, rank: int, n: int) -> tuple[Float, Float]:
    """Return ``U |Σ|^{-1/2}`` and ``|Σ|`` for the `rank` largest eigenvalues that are not noise.

    Eigenvalues below ``n · eps · λ_max`` are rounding errors of B: dividing by their root would
    turn them into features. Kernels that are not positive semidefinite count by ``|λ|``.
    """
    sizes = np.abs(values)
    order = np.argsort(-sizes, kind="stable")[:rank]
    floor = n * np.finfo(np.float64).eps * sizes.max(initial=0.0)
    kept = order[sizes[order] > floor]
    return vectors[:, kept] / np.sqrt(sizes[kept]), sizes[kept]


def _check_rank(rank: int | None, n: int) -> None:
    check_count("rank", rank, optional=True)
    if rank is not None and rank > n:
        raise ValueError(
            f"rank={rank} exceeds the {n} landmarks it is taken from. Lower rank, or raise the "
            "number of landmarks (n_components; n_initial for the first stage of a selector)."
        )


@dataclass(repr=False, eq=False)
class StandardMap(BaseEstimator):
    """Standard Nyström: the rank-k eigendecomposition of ``B = K(Z, Z)``. O(n³).

    Parameters
    ----------
    rank : int, optional
        The paper's k; by default n, all directions that the landmarks span.
    """

    rank: int | None = None

    def check(self, n: int) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        _check_rank(self.rank, n)

    def build(self, kernel: Kernel, Z: Any, rng: np.random.RandomState) -> FeatureMap:
        """Return the map with landmarks Z."""
        n = Z.shape[0]
        Z64 = Z.astype(np.float64, copy=False)
        values, vectors = eigh(kernel(Z64, Z64), overwrite_a=True, check_finite=False)
        expert = Expert(slice(0, n), *_whiten(vectors, values, self.rank or n, n))
        return FeatureMap(kernel, Z, (expert,), n * n)


@dataclass(repr=False, eq=False)
class RandomizedMap(BaseEstimator):
    """Nyström with a randomized eigendecomposition (appendix A.2). O(n²k + k³).

    Parameters
    ----------
    rank : int, optional
        The paper's k; by default half the landmarks, as in its experiments.
    n_oversamples : int, default=10
        Extra random directions.
    n_iter : int, default=2
        Power iterations.
    """

    rank: int | None = None
    n_oversamples: int = 10
    n_iter: int = 2

    def check(self, n: int) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        _check_rank(self.rank, n)
        check_count("n_oversamples", self.n_oversamples, at_least=0)
        check_count("n_iter", self.n_iter, at_least=0)

    def build(self, kernel: Kernel, Z: Any, rng: np.random.RandomState) -> FeatureMap:
        """Return the map with landmarks Z."""
        n = Z.shape[0]
        rank = self.rank or (n + 1) // 2
        Z64 = Z.astype(np.float64, copy=False)
        B = kernel(Z64, Z64)
        Q = randomized_range_finder(
            B, size=min(rank + self.n_oversamples, n), n_iter=self.n_iter, random_state=rng
        )
        values, vectors = eigh(Q.T @ B @ Q, check_finite=False)
        expert = Expert(slice(0, n), *_whiten(Q @ vectors, values, rank, n))
        return FeatureMap(kernel, Z, (expert,), n * n)


@dataclass(repr=False, eq=False)
class EnsembleMap(BaseEstimator):
    """Ensemble Nyström: m maps on disjoint groups of landmarks (appendix A.1). O(n³/m²).

    Expert i takes every m-th landmark, starting at the i-th, and has the weight ``μ = 1/m``.

    Parameters
    ----------
    n_experts : int, default=5
        The paper's m. There are never more experts than landmarks.
    rank : int, optional
        The rank k of the whole map, shared evenly by the experts; by default n.
    """

    n_experts: int = 5
    rank: int | None = None

    def check(self, n: int) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        _check_rank(self.rank, n)
        check_count("n_experts", self.n_experts)
        if self.rank is not None and self.rank < min(self.n_experts, n):
            raise ValueError(
                f"rank={self.rank} leaves some of the {self.n_experts} experts without a feature. "
                "Raise rank or lower n_experts."
            )

    def build(self, kernel: Kernel, Z: Any, rng: np.random.RandomState) -> FeatureMap:
        """Return the map with landmarks Z."""
        n = Z.shape[0]
        m = min(self.n_experts, n)
        rank = self.rank or n
        experts, evaluations = [], 0
        for i in range(m):
            columns = slice(i, n, m)
            alone = StandardMap(rank=len(range(rank)[i::m])).build(kernel, Z[columns], rng)
            (expert,) = alone.experts
            experts.append(Expert(columns, expert.whitening / np.sqrt(m), expert.eigenvalues))
            evaluations += alone.n_kernel_evaluations
        return FeatureMap(kernel, Z, tuple(experts), evaluations)


Approximation = StandardMap | RandomizedMap | EnsembleMap

APPROXIMATIONS: dict[str, type[Approximation]] = {
    "ensemble": EnsembleMap,
    "randomized": RandomizedMap,
    "standard": StandardMap,
}


def make_approximation(approximation: Any) -> Approximation:
    """Return the map that the parameter `approximation` names, or is."""
    if isinstance(approximation, Approximation):
        return approximation
    if isinstance(approximation, str) and approximation in APPROXIMATIONS:
        return APPROXIMATIONS[approximation]()
    raise ValueError(
        f"approximation={approximation!r} is not known. Allowed are {sorted(APPROXIMATIONS)}, "
        "or a StandardMap, RandomizedMap or EnsembleMap object."
    )
