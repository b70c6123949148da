"""Ridge regression from additive statistics: ``min ‖ΦW + 1bᵀ − Y‖² + α‖W‖²`` (eq. 5).

:class:`Moments` is all that a fit needs from the rows; it adds over blocks, files and machines.
:class:`RidgePath` factorises it once and then serves any number of ridges.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import eigh

from nysplus._targets import Float

# Decades from "hardly any" to "hardly anything left": wide enough for noisy labels.
AUTO_ALPHAS = tuple(10.0**power for power in range(-7, 4))


@dataclass(frozen=True)
class Moments:
    """Weighted moments of features φ and targets y about their means.

    Sums are kept about the mean, and two of them are joined by the pairwise update of Chan,
    Golub and LeVeque, because raw sums lose all digits where features hardly vary (a kernel
    so wide that K ≈ 1). Everything is float64, whatever the features are.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    count : float
        Number of observations: a weight of three counts three, one below one counts one.
    feature_mean : ndarray of shape (k,)
    target_mean : ndarray of shape (L,)
    scatter : ndarray of shape (k, k)
    cross : ndarray of shape (k, L)
    target_scatter : ndarray of shape (L,)
    """

    weight: float
    count: float
    feature_mean: Float
    target_mean: Float
    scatter: Float
    cross: Float
    target_scatter: Float

    @classmethod
    def of(cls, features: Float, Y: Float, weight: Float) -> Moments:
        """Return the moments of one block. O(b k²).

        Products are formed in the precision of `features`, then held in float64.
        """
        total = float(weight.sum())
        share = weight / total if total > 0 else weight
        feature_mean = share @ features.astype(np.float64, copy=False)
        target_mean = share @ Y
        root = np.sqrt(weight)[:, None]
        centred = (features - feature_mean.astype(features.dtype)) * root.astype(features.dtype)
        residue = (Y - target_mean) * root
        return cls(
            weight=total,
            count=float(np.maximum(weight, weight > 0).sum()),
            feature_mean=feature_mean,
            target_mean=target_mean,
            scatter=(centred.T @ centred).astype(np.float64, copy=False),
            cross=(centred.T @ residue.astype(features.dtype)).astype(np.float64, copy=False),
            target_scatter=(residue**2).sum(axis=0),
        )

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        share = other.weight / weight
        step, target_step = (
            other.feature_mean - self.feature_mean,
            other.target_mean - self.target_mean,
        )
        mass = self.weight * share
        return Moments(
            weight=weight,
            count=self.count + other.count,
            feature_mean=self.feature_mean + share * step,
            target_mean=self.target_mean + share * target_step,
            scatter=self.scatter + other.scatter + mass * np.outer(step, step),
            cross=self.cross + other.cross + mass * np.outer(step, target_step),
            target_scatter=self.target_scatter + other.target_scatter + mass * target_step**2,
        )


@dataclass(frozen=True)
class RidgePath:
    """Ridge solutions for every α from one eigendecomposition ``V diag(s) Vᵀ`` of the scatter.

    Attributes
    ----------
    moments : Moments
    values : ndarray of shape (k,)
        s, clipped at 0.
    vectors : ndarray of shape (k, k)
        V.
    rotated : ndarray of shape (k, L)
        ``Vᵀ cross``.
    """

    moments: Moments
    values: Float
    vectors: Float
    rotated: Float

    @classmethod
    def of(cls, moments: Moments) -> RidgePath:
        """Factorise. O(k³)."""
        if moments.scatter.size == 0:  # no features at all, which not every LAPACK takes
            return cls(moments, np.zeros(0), np.zeros((0, 0)), moments.cross)
        values, vectors = eigh(moments.scatter, check_finite=False)
        return cls(moments, np.maximum(values, 0.0), vectors, vectors.T @ moments.cross)

    def _inverse(self, alpha: float) -> Float:
        """Return ``1 / (s + α)``, and 0 in directions that are rounding error throughout."""
        s = self.values
        floor = len(s) * np.finfo(np.float64).eps * s.max(initial=0.0)
        inverse: Float = np.divide(1.0, s + alpha, out=np.zeros_like(s), where=s + alpha > floor)
        return inverse

    def solve(self, alpha: float) -> tuple[Float, Float]:
        """Return the weights W (k × L) and the unpenalised intercept b (L)."""
        W = self.vectors @ (self._inverse(alpha)[:, None] * self.rotated)
        return W, self.moments.target_mean - self.moments.feature_mean @ W

    def residual(self, alpha: float) -> float:
        """Return the residual sum of squares over all outputs."""
        shrink = self._inverse(alpha)
        explained = (2.0 - self.values * shrink) * shrink @ (self.rotated**2)
        return float(np.maximum(self.moments.target_scatter - explained, 0.0).sum())

    def generalized_cross_validation(self, alpha: float) -> float:
        """Return Golub, Heath and Wahba's criterion ``N · RSS / (N − df)²``; no pass needed."""
        N = self.moments.count
        freedom = N - 1.0 - float(self.values @ self._inverse(alpha))
        return N * self.residual(alpha) / freedom**2 if freedom > 0 else np.inf

    def leave_one_out(
        self, features: Float, Y: Float, unit_weight: Float, alphas: tuple[float, ...]
    ) -> list[Float]:
        """Return the scores of every row by the model fitted without it, for each α.

        ``f_i − (y_i − f_i) h_i / (1 − h_i)`` with the leverage
        ``h_i = w_i (1/Σw + q_i (S + α)⁻¹ q_iᵀ)``, ``q_i = (φ_i − φ̄) V``. O(b k (k + L)).
        """
        Q = (features.astype(np.float64, copy=False) - self.moments.feature_mean) @ self.vectors
        squares = Q**2
        scores: list[Float] = []
        for alpha in alphas:
            inverse = self._inverse(alpha)
            f = self.moments.target_mean + Q @ (inverse[:, None] * self.rotated)
            leverage = unit_weight * (1.0 / self.moments.weight + squares @ inverse)
            # A row that the model has to interpolate has no opinion about itself.
            leverage = np.minimum(leverage, 1.0 - 1e-10)
            scores.append(f - (Y - f) * (leverage / (1.0 - leverage))[:, None])
        return scores


def largest_within_noise(alphas: tuple[float, ...], accuracies: Float, count: float) -> float:
    """Return the largest α whose accuracy is within a quarter standard error of the best.

    More ridge is the safer of two equals: landmarks that were chosen with the labels make
    leave-one-out slightly optimistic.
    """
    best = min(1.0, float(accuracies.max()))  # sums of weights may round to just above
    slack = 0.25 * np.sqrt(best * (1.0 - best) / count)
    return max(a for a, got in zip(alphas, accuracies, strict=True) if got >= best - slack)


def make_alphas(alpha: Any) -> tuple[float, ...]:
    """Return the ridges that the parameter `alpha` asks to choose from; one means no choice."""
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(
                f"alpha={alpha!r} is not known. Allowed are 'auto', a number or a sequence of them."
            )
        return AUTO_ALPHAS
    values: list[Any] = [alpha] if not np.iterable(alpha) else list(alpha)
    valid = [isinstance(v, Real) and np.isfinite(float(v)) and float(v) >= 0 for v in values]
    if not values or not all(valid):
        raise ValueError(
            f"alpha={alpha!r} must be 'auto', a finite number of at least 0, or a non-empty "
            "sequence of such numbers."
        )
    return tuple(sorted({float(v) for v in values}))
