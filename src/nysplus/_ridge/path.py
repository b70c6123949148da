"""Solve the ridge problem ``min ‖ΦW + 1bᵀ − Y‖² + α‖W‖²`` (eq. 5) from the moments of the rows.

:class:`RidgePath` factorises by Cholesky for one α, or by eigenvalues once for any number of α.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from nysplus._ridge.moments import Moments
from nysplus._typing import Float

Solve = Callable[[Float], Float]


def smallest_eigenvalue(inverse: Callable[[Float], Float], k: int) -> float:
    """Estimate the smallest eigenvalue of a positive definite k × k matrix, from above.

    Six steps of block power iteration; `inverse` multiplies by the inverse of the matrix. The
    estimate is within some per cent, which is enough to bound rounding errors. O(k²).
    """
    if k == 0:
        return np.inf
    V: Float = np.random.RandomState(0).standard_normal((k, min(k, 2)))
    for _ in range(6):
        V, _ = np.linalg.qr(V)
        V = inverse(V)
    size = float(np.linalg.norm(V, 2))
    return 1.0 / size if size > 0 and np.isfinite(size) else 0.0


def cholesky(S: Float, alpha: float) -> tuple[Solve, float] | None:
    """Return the solver of ``(S + α) Z = R`` and the smallest eigenvalue of ``S + α``.

    None if ``S + α`` is singular to working precision. O(k³/3).
    """
    if S.size == 0:
        return None
    H = S.copy()
    H.flat[:: len(H) + 1] += alpha
    floor = len(H) * np.finfo(np.float64).eps * np.trace(H)
    try:
        factor = cho_factor(H, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None

    def solve(R: Float) -> Float:
        Z: Float = cho_solve(factor, R, check_finite=False)
        return Z

    smallest = smallest_eigenvalue(solve, len(H))
    return (solve, smallest) if smallest > floor else None


@dataclass(frozen=True)
class Solution:
    """A ridge solution and the numbers that bound its error.

    Attributes
    ----------
    W : ndarray of shape (k, L)
        Weights.
    b : ndarray of shape (L,)
        The unpenalised intercept.
    objective : float
        ``‖ΦW + 1bᵀ − Y‖² + α‖W‖²``.
    smallest : float
        The smallest eigenvalue of ``S + α`` among the directions above rounding error.
    inverse : callable
        ``R ↦ (S + α)⁻¹ R``.
    """

    W: Float
    b: Float
    objective: float
    smallest: float
    inverse: Solve


@dataclass(frozen=True)
class RidgePath:
    """Ridge solutions from the moments, for one α or for many.

    Attributes
    ----------
    moments : Moments
    """

    moments: Moments

    @cached_property
    def _eigen(self) -> tuple[Float, Float, Float]:
        """``s, V, Vᵀ cross`` with the scatter ``S = V diag(s) Vᵀ``, s clipped at 0. O(k³)."""
        moments = self.moments
        if moments.scatter.size == 0:  # not every LAPACK takes an empty matrix
            return np.zeros(0), np.zeros((0, 0)), moments.cross
        values, vectors = eigh(moments.scatter, driver="evd", check_finite=False)
        return np.maximum(values, 0.0), vectors, vectors.T @ moments.cross

    @property
    def vectors(self) -> Float:
        """Eigenvectors V of the scatter."""
        return self._eigen[1]

    def _inverse(self, alpha: float) -> Float:
        """Return ``1 / (s + α)``, and 0 in directions that hold nothing but rounding errors."""
        s = self._eigen[0]
        floor = len(s) * np.finfo(np.float64).eps * s.max(initial=0.0)
        inverse: Float = np.divide(1.0, s + alpha, out=np.zeros_like(s), where=s + alpha > floor)
        return inverse

    def factor(self, alpha: float) -> tuple[Solve, float]:
        """Return the solver of ``(S + α) Z = R`` and the smallest eigenvalue of ``S + α``.

        By Cholesky, O(k³/3), unless the eigenvalues are known already or ``S + α`` is singular
        to working precision; directions that hold nothing but rounding errors are then left out.
        """
        found = None if "_eigen" in self.__dict__ else cholesky(self.moments.scatter, alpha)
        if found is not None:
            return found
        s, vectors, _ = self._eigen
        inverse = self._inverse(alpha)
        kept = inverse > 0
        smallest = float((s[kept] + alpha).min()) if kept.any() else np.inf
        return lambda R: vectors @ (inverse[:, None] * (vectors.T @ R)), smallest

    def solve(self, alpha: float) -> Solution:
        """Solve for one α."""
        moments = self.moments
        inverse, smallest = self.factor(alpha)
        W = inverse(moments.cross)
        b = moments.target_mean - moments.feature_mean @ W
        # at the solution, ‖residuals‖² + α‖W‖² = ‖Y − ȳ‖² − ⟨cross, W⟩
        explained = float((moments.cross * W).sum())
        objective = max(float(moments.target_scatter.sum()) - explained, 0.0)
        return Solution(W, b, objective, smallest, inverse)

    def generalized_cross_validation(self, alpha: float) -> float:
        """Return Golub, Heath and Wahba's criterion ``N · RSS / (N − df)²``, without a pass."""
        s, _, rotated = self._eigen
        shrink = self._inverse(alpha)
        explained = (2.0 - s * shrink) * shrink @ (rotated**2)
        residual = float(np.maximum(self.moments.target_scatter - explained, 0.0).sum())
        N = self.moments.count
        freedom = N - 1.0 - float(s @ shrink)
        return N * residual / freedom**2 if freedom > 0 else np.inf

    def leave_one_out(
        self, Q: Float, Y: Float, unit_weight: Float, alphas: tuple[float, ...]
    ) -> list[Float]:
        """Return the leave-one-out scores of every row, for each α.

        ``f_i − (y_i − f_i) h_i / (1 − h_i)`` with the leverage
        ``h_i = w_i (1/Σw + q_i (S + α)⁻¹ q_iᵀ)``, ``q_i = (φ_i − φ̄) V``. O(b k L) for each α.

        Parameters
        ----------
        Q : ndarray of shape (b, k)
            Centred features in the basis V.
        """
        rotated = self._eigen[2]
        inverses = np.array([self._inverse(alpha) for alpha in alphas])
        fits = [
            self.moments.target_mean + Q @ (inverse[:, None] * rotated).astype(Q.dtype)
            for inverse in inverses
        ]
        leverages = np.square(Q, out=Q) @ inverses.T.astype(Q.dtype)
        scores: list[Float] = []
        for f, squares in zip(fits, leverages.T, strict=True):
            leverage = unit_weight * (1.0 / self.moments.weight + squares)
            scores.append(left_out_scores(f, Y, leverage))
        return scores


def left_out_scores(f: Float, Y: Float, leverage: Float) -> Float:
    """Return the leave-one-out scores of rows, from their scores f in the fit to all rows."""
    # a row of leverage 1 is interpolated, and its leave-one-out score is not defined
    leverage = np.minimum(leverage, 1.0 - 1e-10)
    return f - (Y - f) * (leverage / (1.0 - leverage))[:, None]
