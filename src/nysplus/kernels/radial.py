"""Kernels of the Euclidean distance: RBF and Matérn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from nysplus._rows.blocks import RowBlocks
from nysplus._typing import Float
from nysplus.kernels.base import (
    CACHED_VALUES,
    Kernel,
    _median_distance,
    _Width,
    feature_pairs,
    squared_distances,
)

# The exponential of minus this number is zero in every floating type.
ZERO_EXPONENT = 1e4


@dataclass(repr=False, eq=False)
class _Radial(_Width):
    """A kernel of the Euclidean distance; a length scale ℓ is ``gamma = 1 / (2ℓ²)``."""

    @property
    def unit_diagonal(self) -> bool:
        """True."""
        return True

    @property
    def of_differences(self) -> bool:
        """True."""
        return True

    def _is_narrow(self, Z: Any) -> bool:
        """Return whether rounding ``‖x‖² + ‖z‖² − 2xz`` changes kernel values by more than √ε.

        The kernel is then so narrow that nearly all values between landmarks are zero.
        """
        if sp.issparse(Z):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            largest = ((Z - Z.mean(axis=0)) ** 2).sum(axis=1).max(initial=0.0)
            return not self.width * largest <= np.finfo(Z.dtype).eps ** -0.5

    def _median(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        length = _median_distance(blocks, rng, "euclidean")
        return 1.0 / (2.0 * length**2) if length > 0 else 1.0


@dataclass(repr=False, eq=False)
class RBF(_Radial):
    """Gaussian kernel ``exp(−γ‖x − z‖²)``.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        "scale": ``1 / (d · Var(X))``; "median": ``1 / (2 m²)`` with m the median distance;
        None: ``1 / d``.

    Examples
    --------
    >>> from nysplus.kernels import RBF
    >>> RBF(gamma=0.5)([[0.0], [1.0]], [[0.0]]).round(3).tolist()
    [[1.0], [0.607]]
    """

    @property
    def differentiable(self) -> bool:
        """True."""
        return True

    @property
    def separable(self) -> Literal["product", "sum"] | None:
        """A product over the features."""
        return "product"

    def per_feature(self, X: Any, Z: Any) -> Float:
        """Return ``exp(−γ(x − z)²)`` of each feature."""
        x, z = feature_pairs(X, Z)
        with np.errstate(over="ignore"):
            factors: Float = np.exp(-self.width * (x - z) ** 2)
        return factors

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        return self.bind(Z)(X)

    def slopes(self, X: Any, Z: Any) -> Float:
        """Return ``−2γK``."""
        K = self.evaluate(X, Z)
        K *= -2.0 * self.width
        return K

    def bind(self, Z: Any, cached_values: int = CACHED_VALUES) -> Callable[[Any], Float]:
        """Return ``X ↦ K(X, Z)``; for dense rows one product and one exponential.

        A block is computed in pieces of `cached_values` kernel values.
        """
        if sp.issparse(Z):
            return lambda X: self._of_distances(squared_distances(X, Z))
        if self._is_narrow(Z):
            return lambda X: self._of_distances(squared_distances(X, Z, not sp.issparse(X)))
        gamma, (n, d) = self.width, Z.shape
        # −γ‖x − z‖² = [x, ‖x‖², 1] · [2γz, −γ, −γ‖z‖²], both sides moved to the mean of Z
        # (see squared_distances): the product alone gives the exponents
        shift = Z.mean(axis=0)
        columns = np.empty((d + 2, n), dtype=Z.dtype)
        columns[:d] = (Z - shift).T
        columns[d + 1] = -gamma * np.einsum("ij,ij->j", columns[:d], columns[:d])
        columns[d] = -gamma
        columns[:d] *= 2.0 * gamma
        # a squared norm from which all kernel values are zero
        farthest = min(ZERO_EXPONENT / gamma, float(np.finfo(Z.dtype).max))

        def bound(X: Any) -> Float:
            if sp.issparse(X):
                return self._of_distances(squared_distances(X, Z))
            rows = np.empty((X.shape[0], d + 2), dtype=Z.dtype)
            np.subtract(X, shift, out=rows[:, :d])
            with np.errstate(over="ignore"):
                np.einsum("ij,ij->i", rows[:, :d], rows[:, :d], out=rows[:, d])
            far = ~np.isfinite(rows[:, d])
            if far.any():  # infinities would cancel to NaN
                rows[far, :d], rows[far, d] = 0.0, farthest
            rows[:, d + 1] = 1.0
            K = np.empty((X.shape[0], n), dtype=Z.dtype)
            step = max(1, cached_values // n)
            for start in range(0, len(K), step):
                piece = K[start : start + step]
                np.matmul(rows[start : start + step], columns, out=piece)
                np.minimum(piece, 0.0, out=piece)
                np.exp(piece, out=piece)
            return K

        return bound

    def _of_distances(self, D: Float) -> Float:
        D *= -self.width
        return np.exp(D, out=D)


@dataclass(repr=False, eq=False)
class Matern(_Radial):
    """Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2.

    With ``r = ‖x − z‖ / ℓ`` and ``ℓ = 1 / √(2γ)``: ``exp(−r)``, ``(1 + √3 r) exp(−√3 r)`` or
    ``(1 + √5 r + 5r²/3) exp(−√5 r)``. It tends to ``RBF(gamma)`` as ν grows.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        As for :class:`RBF`. Equals scikit-learn's ``Matern(length_scale=(2γ) ** -0.5)``.
    nu : {0.5, 1.5, 2.5}, default=1.5
    """

    nu: float = 1.5

    def resolve(self, blocks: RowBlocks, rng: np.random.RandomState) -> Kernel:
        """Return this kernel with ``gamma`` as a number, after checking ``nu``."""
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu={self.nu!r} is not available. Allowed are 0.5, 1.5 and 2.5.")
        return super().resolve(blocks, rng)

    @property
    def differentiable(self) -> bool:
        """Whether ν is above 1/2: with ν = 1/2 the kernel has a kink at the landmark."""
        return self.nu in (1.5, 2.5)

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        s = self._scaled_distances(X, Z)
        K = np.exp(-s)
        if self.nu == 1.5:
            K *= 1.0 + s
        elif self.nu == 2.5:
            K *= 1.0 + s + s**2 / 3.0
        return K

    def slopes(self, X: Any, Z: Any) -> Float:
        """Return ``−4νγ exp(−s)``, for ν = 5/2 times ``(1 + s) / 3``, with ``s = √(2ν) r``."""
        if not self.differentiable:
            return super().slopes(X, Z)
        s = self._scaled_distances(X, Z)
        # k'(s) is −s exp(−s), times (1 + s) / 3 for ν = 5/2; ∇s is 4νγ (x − z) / s
        slopes = np.exp(-s)
        slopes *= -4.0 * self.nu * self.width
        if self.nu == 2.5:
            slopes *= (1.0 + s) / 3.0
        return slopes

    def _scaled_distances(self, X: Any, Z: Any) -> Float:
        """Return ``√(2ν) r``, where ``r² = 2γ‖x − z‖²``, or a number from which k is zero."""
        D = squared_distances(X, Z, not sp.issparse(X) and self._is_narrow(Z))
        with np.errstate(over="ignore"):
            D *= 4.0 * self.nu * self.width
        np.sqrt(D, out=D)
        return np.minimum(D, ZERO_EXPONENT, out=D)
