"""Map rows to Nyström features: the maps of the paper's section 2 and appendix A.

Every map has the form ``Φ = K(X, Z) Â``. It is a tuple of experts, each with its own columns
of K and its own whitening matrix; the standard and the randomized map have one expert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpstrf, dtrtri
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import randomized_range_finder

from nysplus._ridge.path import smallest_eigenvalue
from nysplus._typing import Float, Rows
from nysplus._validation import check_count
from nysplus.kernels import Kernel

# Landmarks between which the rounding error of a kernel entry is measured: 256² pairs come close
# to the largest error and take milliseconds.
NOISE_LANDMARKS = 256
# Range of the largest kernel value: squares of sums of squares stay in the range of float64.
VALUES = (1e-70, 1e70)
# Largest relative error of features that may be computed in float32.
MAX_NOISE = 1.2e-5
# Panels in which a triangular matrix is multiplied: nearly half the work is saved, and the panels
# are still wide enough for BLAS.
PANELS = 8


@dataclass(frozen=True)
class Expert:
    """A group of landmarks with the whitening of its own kernel matrix.

    Attributes
    ----------
    columns : slice or ndarray of int
        Numbers of the landmarks, which are columns of ``K(X, Z)``.
    whitening : ndarray of shape (n_group, k_group)
        Â with ``ÂᵀBÂ = μI``: ``√μ U Σ^{-1/2}``, or ``√μ R⁻¹`` with ``B = RᵀR``.
    smallest : float
        The smallest kept eigenvalue of B, in units of `scale`.
    scale : float
        The mean of B's diagonal.
    triangular : bool
        Whether `whitening` is square and upper triangular.
    """

    columns: Rows
    whitening: Float
    smallest: float
    scale: float
    triangular: bool = False

    def apply(self, T: Float, K: Float, out: Float) -> None:
        """Write ``(K T)ᵀ`` into `out`, where T is the whitening in the type of K."""
        n, k = T.shape
        step = max(1, -(-k // PANELS) if self.triangular else k)
        for start in range(0, k, step):
            stop = min(start + step, k)
            used = stop if self.triangular else n
            np.matmul(T[:used, start:stop].T, K[:, :used].T, out=out[start:stop])

    def product(self, W: Float) -> Float:
        """Return ``ÂW`` for a float64 matrix with a row per feature of the group."""
        product: Float = dtrmm(1.0, self.whitening, W) if self.triangular else self.whitening @ W
        return product

    def transposed(self, G: Float) -> Float:
        """Return ``ÂᵀG`` for a float64 matrix with a row per landmark of the group."""
        if self.triangular:
            # dtrmm needs Fortran order, which the transpose of a C-ordered array has
            product: Float = dtrmm(1.0, self.whitening, G.T, side=1).T
            return product
        return self.whitening.T @ G


@dataclass(frozen=True)
class FeatureMap:
    """The map ``x ↦ k(x, Z) Â``.

    Attributes
    ----------
    kernel : Kernel
    landmarks : ndarray or CSR matrix of shape (n, d)
    experts : tuple of Expert
    n_kernel_evaluations : int
        Number of kernel entries that building the map took.
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

    @property
    def smallest(self) -> float:
        """Smallest kept eigenvalue of any expert's B, in units of `scale`."""
        return min(expert.smallest for expert in self.experts)

    @property
    def scale(self) -> float:
        """Mean of the kernel matrices' diagonals."""
        return sum(expert.scale for expert in self.experts) / len(self.experts)

    @cached_property
    def _float32_error(self) -> float:
        """Largest error ε of a float32 kernel entry, in units of the mean of B's diagonal.

        Measured between some landmarks: for narrow kernels it is far above the unit roundoff.
        """
        Z = self.landmarks[:NOISE_LANDMARKS].astype(np.float64)
        Z32 = Z.astype(np.float32)
        # landmarks of float32 rows are float32 numbers, so only the arithmetic differs
        exact = self.kernel(Z32.astype(np.float64), Z32.astype(np.float64))
        error = np.abs(self.kernel(Z32, Z32) - exact).max() / _scale(exact)
        return float(max(error, np.finfo(np.float32).eps))

    @property
    def float32_noise(self) -> float:
        """Relative error of features computed in float32, in the worst direction: ``ε / √λ_min``.

        The whitening enlarges the error ε of a kernel entry by at most 1/√λ_min; both are in
        units of the mean of B's diagonal.
        """
        return self._float32_error / float(np.sqrt(self.smallest))

    @property
    def allows_float32(self) -> bool:
        """Whether features in float32 can be exact enough, by the kernel matrix alone."""
        return self.rank > 0 and self.float32_noise < MAX_NOISE

    def columns(self, dtype: npt.DTypeLike) -> Callable[[Any], Float]:
        """Return ``X ↦ K(X, Z)`` of shape (b, n), computed in `dtype`."""
        bound = self.kernel.bind(self.landmarks.astype(dtype, copy=False))
        return lambda X: bound(X.astype(dtype, copy=False))

    def whitener(self, dtype: npt.DTypeLike) -> Callable[[Float], Float]:
        """Return ``K ↦ KÂ`` of shape (b, k) and Fortran order, for K of type `dtype`."""
        whitenings = [expert.whitening.astype(dtype, copy=False) for expert in self.experts]

        def whitened(K: Float) -> Float:
            transposed = np.empty((self.rank, K.shape[0]), dtype=dtype)
            stop = 0
            for expert, T in zip(self.experts, whitenings, strict=True):
                start, stop = stop, stop + T.shape[1]
                expert.apply(T, K[:, expert.columns], transposed[start:stop])
            return transposed.T

        return whitened

    def features(self, dtype: npt.DTypeLike = np.float64) -> Callable[[Any], Float]:
        """Return ``X ↦ Φ = K(X, Z) Â`` of shape (b, k) and Fortran order, computed in `dtype`."""
        columns, whitened = self.columns(dtype), self.whitener(dtype)
        return lambda X: whitened(columns(X))

    def transposed(self, G: Float) -> Float:
        """Return ``ÂᵀG`` for a float64 matrix with a row per landmark."""
        return np.concatenate([expert.transposed(G[expert.columns]) for expert in self.experts])

    def collapse(self, W: Float) -> Float:
        """Return ``A = Â W`` of shape (n, L): coefficients of the kernel itself (eq. 6)."""
        A = np.zeros((self.n_landmarks, W.shape[1]))
        stop = 0
        for expert in self.experts:
            start, stop = stop, stop + expert.whitening.shape[1]
            A[expert.columns] = expert.product(W[start:stop])
        return A


def _kernel_matrix(kernel: Kernel, Z: Any) -> Float:
    """Return ``B = K(Z, Z)`` in float64, or raise if its squares would overflow or vanish."""
    Z = Z.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        B = kernel(Z, Z)
        largest = np.abs(B).max(initial=0.0)
    if not (largest == 0 or VALUES[0] <= largest <= VALUES[1]):
        raise ValueError(
            f"The largest value of {kernel!r} between the landmarks is {largest:.3g}, and must be "
            f"between {VALUES[0]:g} and {VALUES[1]:g} to be computed with. Scale the features, "
            "for example with sklearn.preprocessing.StandardScaler, or choose another kernel."
        )
    return B


def _scale(B: Float) -> float:
    """Return the size of B's entries: the mean of its diagonal, of all where that is zero."""
    return float(max(np.abs(np.diag(B)).mean(), np.abs(B).mean(), np.finfo(np.float64).tiny))


def _expert(
    B: Float,
    whitening: Float,
    smallest: float,
    triangular: bool = False,
    columns: Rows = slice(None),
) -> Expert:
    """Return an expert; `smallest` is an eigenvalue of B."""
    scale = _scale(B)
    return Expert(columns, whitening, float(smallest / scale), scale, triangular)


def _principal(B: Float, vectors: Float, values: Float, rank: int) -> Expert:
    """Whiten by ``U |Σ|^{-1/2}`` of the `rank` largest eigenvalues that are not noise.

    Eigenvalues below ``n · eps · λ_max`` are rounding errors of B: dividing by their root would
    turn them into features. Kernels that are not positive semidefinite count by ``|λ|``.
    """
    sizes = np.abs(values)
    order = np.argsort(-sizes, kind="stable")[:rank]
    floor = len(B) * np.finfo(np.float64).eps * sizes.max(initial=0.0)
    kept = order[sizes[order] > floor]
    smallest = float(sizes[kept].min()) if len(kept) else _scale(B)
    return _expert(B, vectors[:, kept] / np.sqrt(sizes[kept]), smallest)


def _triangular(B: Float) -> Expert | None:
    """Whiten by ``R⁻¹`` with ``B = RᵀR``; None if B is not positive definite to working
    precision. O(n³/3).
    """
    R, info = dpotrf(B.T, lower=0, clean=1)  # the transpose has LAPACK's order already
    if info:
        return None
    T, _ = dtrtri(R, lower=0, overwrite_c=1)
    smallest = smallest_eigenvalue(lambda V: T @ (T.T @ V), len(B))
    if smallest <= len(B) * np.finfo(np.float64).eps * np.trace(B):
        return None
    return _expert(B, T, smallest, triangular=True)


def _pivoted(B: Float) -> Expert:
    """Whiten the leading landmarks of a pivoted Cholesky factorisation alone.

    Replaces the eigendecomposition if B is positive semidefinite and singular: the landmarks left
    out are within rounding errors of the span of the leading ones. O(n k²).
    """
    n = len(B)
    tolerance = n * np.finfo(np.float64).eps * np.diag(B).max(initial=0.0)
    R, order, k, _ = dpstrf(B.T, lower=0, tol=tolerance)
    # LAPACK prints an error for a matrix without rows
    T = dtrtri(np.triu(R[:k, :k]), lower=0, overwrite_c=1)[0] if k else np.zeros((0, 0))
    smallest = smallest_eigenvalue(lambda V: T @ (T.T @ V), k)
    # LAPACK counts from one
    return _expert(B, T, smallest, triangular=True, columns=order[:k].astype(np.intp) - 1)


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

    def build(
        self, kernel: Kernel, Z: Any, rng: np.random.RandomState, principal: bool = False
    ) -> FeatureMap:
        """Return the map with landmarks Z.

        At full rank any factor of B spans the same features, and the triangular factor is the
        cheapest. With `principal` the map uses the eigenvectors, by decreasing eigenvalue.
        """
        n = Z.shape[0]
        B = _kernel_matrix(kernel, Z)
        expert = None
        if self.rank is None and not principal:
            expert = _triangular(B)
            if expert is None and kernel.positive_semidefinite:
                expert = _pivoted(B)
        if expert is None:
            values, vectors = eigh(B, check_finite=False)
            expert = _principal(B, vectors, values, self.rank or n)
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

    def build(
        self, kernel: Kernel, Z: Any, rng: np.random.RandomState, principal: bool = False
    ) -> FeatureMap:
        """Return the map with landmarks Z. It always uses eigenvectors."""
        n = Z.shape[0]
        rank = self.rank or (n + 1) // 2
        B = _kernel_matrix(kernel, Z)
        Q = randomized_range_finder(
            B, size=min(rank + self.n_oversamples, n), n_iter=self.n_iter, random_state=rng
        )
        values, vectors = eigh(Q.T @ B @ Q, check_finite=False)
        return FeatureMap(kernel, Z, (_principal(B, Q @ vectors, values, rank),), n * n)


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

    def build(
        self, kernel: Kernel, Z: Any, rng: np.random.RandomState, principal: bool = False
    ) -> FeatureMap:
        """Return the map with landmarks Z; `principal` applies to each expert."""
        n = Z.shape[0]
        m = min(self.n_experts, n)
        rank = self.rank or n
        experts, evaluations = [], 0
        for i in range(m):
            columns = slice(i, n, m)
            share = None if rank == n else len(range(rank)[i::m])
            alone = StandardMap(share).build(kernel, Z[columns], rng, principal)
            (expert,) = alone.experts
            whitening = expert.whitening / np.sqrt(m)
            own = np.arange(n)[columns][expert.columns]
            experts.append(replace(expert, columns=own, whitening=whitening))
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
