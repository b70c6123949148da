"""Measure the distance between an expansion and a smaller one, and minimise it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from nysplus._ridge.path import Solve, cholesky
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel
from nysplus.landmarks.pivoted_cholesky import kernel_diagonal

# ε in units of k(x, x), on landmarks alone, and on landmarks and rows.
SMOOTHNESS, ROW_SMOOTHNESS = 1e-4, 1e-5
# Added to the diagonal of a matrix before its factorisation, in units of k(x, x) ε; the factor up
# to which it may be raised; and the same for :func:`nysplus._compression.pruning.tamed`.
JITTER, MOST_JITTER, TAMED_JITTER = 1e-6, 1e6, 1e-3
# Steps of L-BFGS, at most, and the decrease of the distance at which they end, as a share of the
# mean square of the scores: many landmarks reproduce the scores before they move, and need few.
STEPS, TOLERANCE = 30, 1e-5


def indefinite_kernel(kernel: Kernel) -> ValueError:
    """Return the error of a kernel that is not positive semidefinite."""
    return ValueError(
        f"compress needs a positive semidefinite kernel, and {kernel!r} is not. Fit a smaller "
        "model instead, or choose another kernel."
    )


@dataclass(frozen=True)
class Parts:
    """The matrices of the equations ``(KᵀDK + εB) A' = KᵀDF + εC`` for landmarks Z'.

    Attributes
    ----------
    K : ndarray of shape (b, n)
        ``k(X, Z')``.
    B : ndarray of shape (n, n)
        ``k(Z', Z')``.
    C : ndarray of shape (n, L)
        ``k(Z', Z) A``: f without its intercept, at Z'.
    M : ndarray of shape (n, n)
        The left side, with the jitter on its diagonal.
    solve : callable
        ``R ↦ M⁻¹R``.
    jitter : float
        Added to the diagonal of the left side.
    """

    K: Float
    B: Float
    C: Float
    M: Float
    solve: Solve
    jitter: float


@dataclass(frozen=True)
class Misfit:
    """The distance between a given expansion f and expansions f' with other landmarks.

    Attributes
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (b, d)
    weight : ndarray of shape (b,)
        The diagonal of D; sums to one.
    F : ndarray of shape (b, L)
        Scores of the rows by f, without the intercept.
    Z, A, b : arrays
        Landmarks, coefficients and intercept of f.
    epsilon, jitter : float
        ε, and the number that keeps the equations positive definite.
    """

    kernel: Kernel
    X: Any
    weight: Float
    F: Float
    Z: Any
    A: Float
    b: Float
    epsilon: float
    jitter: float

    @classmethod
    def of(
        cls,
        expansion: KernelExpansion,
        X: Any,
        weight: Float,
        smoothness: float = SMOOTHNESS,
    ) -> Misfit:
        """Return the distance from an expansion without a projection."""
        kernel, Z = expansion.kernel, expansion.landmarks.astype(np.float64)
        X = X.astype(np.float64)
        F = expansion(X).astype(np.float64) - expansion.intercept
        scale = float(kernel_diagonal(kernel, Z)[0].mean())
        if scale < 0:
            raise indefinite_kernel(kernel)
        scale = scale or 1.0  # of a kernel that is zero
        epsilon = smoothness * scale
        A, b = (array.astype(np.float64) for array in (expansion.dual_coef, expansion.intercept))
        return cls(kernel, X, weight, F, Z, A, b, epsilon, JITTER * epsilon * scale)

    @property
    def cancels(self) -> bool:
        """Whether f is a small difference of large terms: ``ε ‖f‖²_H`` exceeds its variance."""
        own = KernelExpansion(self.kernel, self.Z, self.A, np.zeros(len(self.b)))(self.Z)
        spread = self.weight @ (self.F - self.weight @ self.F) ** 2
        return bool(self.epsilon * (self.A * own).sum() > spread.sum())

    def parts(self, points: Any) -> Parts:
        """Return the equations of the coefficients for given landmarks."""
        points = points.astype(np.float64, copy=False)
        K, B = self.kernel(self.X, points), self.kernel(points, points)
        weighted = np.sqrt(self.weight)[:, None] * K
        M = weighted.T @ weighted  # of one array: BLAS computes one half of it
        M += self.epsilon * B
        jitter = self.jitter
        while (found := cholesky(M, jitter)) is None:
            jitter *= 10.0
            if jitter > MOST_JITTER * self.jitter:
                raise indefinite_kernel(self.kernel)
        M.flat[:: len(M) + 1] += jitter
        return Parts(K, B, self.kernel(points, self.Z) @ self.A, M, found[0], jitter)

    def solve(self, points: Any) -> Float:
        """Return the best coefficients for given landmarks, of shape (n, L)."""
        return self.coefficients(self.parts(points))

    def coefficients(self, parts: Parts) -> Float:
        """Return the best coefficients for the landmarks of given equations."""
        cross = parts.K.T @ (self.weight[:, None] * self.F)
        return parts.solve(cross + self.epsilon * parts.C)

    def value_and_gradient(self, points: Float) -> tuple[float, Float]:
        """Return the distance at the best coefficients, up to a constant, and its gradient by Z'.

        At the best coefficients the derivative by the coefficients is zero.
        """
        parts = self.parts(points)
        A = self.coefficients(parts)
        left = self.F - parts.K @ A
        weighted = self.weight[:, None] * left
        value = float((weighted * left).sum() + parts.jitter * (A**2).sum())
        value += self.epsilon * float((A * (parts.B @ A - 2.0 * parts.C)).sum())
        # ∇_z k(x, z) = σ (z − x), summed over the rows, f' and f
        H = self.kernel.slopes(self.X, points)
        H *= weighted @ A.T
        gradient = (self.X.T @ H).T - H.sum(axis=0)[:, None] * points
        for others, coefficients, sign in ((points, A, 1.0), (self.Z, self.A, -1.0)):
            H = self.kernel.slopes(points, others)
            H *= A @ coefficients.T
            H *= sign * self.epsilon
            gradient += H.sum(axis=1)[:, None] * points - H @ others
        return value, 2.0 * gradient

    def moved(self, points: Any, seconds: float | None = None) -> Float:
        """Move landmarks so that the distance decreases.

        For dense landmarks and a kernel with gradients.

        Parameters
        ----------
        points : ndarray of shape (n, d)
        seconds : float, optional
            Time limit; the best landmarks so far are returned.
        """
        # in units of the kernel's length, and of the model's mean square, or one if it is zero
        unit = 1.0 / np.sqrt(2.0 * float(self.kernel.get_params()["gamma"]))
        size = float((self.weight @ self.F**2).sum()) or 1.0
        start, begin = points.astype(np.float64), time.perf_counter()
        best: tuple[float, Float] = np.inf, start

        def scaled(steps: Float) -> tuple[float, Float]:
            nonlocal best
            Z = unit * steps.reshape(start.shape)
            value, gradient = self.value_and_gradient(Z)
            best = min(best, (value, Z), key=lambda found: found[0])
            if seconds is not None and time.perf_counter() - begin >= seconds:
                raise _TimeIsUp
            return value / size, unit / size * gradient.ravel()

        options = {"maxiter": STEPS, "ftol": TOLERANCE}
        with suppress(_TimeIsUp):  # the best point so far is kept
            minimize(scaled, start.ravel() / unit, jac=True, method="L-BFGS-B", options=options)
        return best[1]


class _TimeIsUp(Exception):
    """The time limit of an optimisation is over."""
