"""Distance in the kernel's space between an expansion and a smaller one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from nysplus._ridge.path import Solve, cholesky
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel
from nysplus.landmarks.pivoted_cholesky import kernel_diagonal

# ε, in units of k(x, x), where landmarks alone stand for rows, and where there are rows.
SMOOTHNESS, ROW_SMOOTHNESS = 1e-4, 1e-5
# What keeps a factorisation alive, in units of k(x, x) ε; and how far it may be raised.
JITTER, MOST_JITTER, TAMED_JITTER = 1e-6, 1e6, 1e-3
# Steps that landmarks move: later ones change the last digits.
STEPS = 30


def _indefinite(kernel: Kernel) -> ValueError:
    return ValueError(
        f"compress needs a positive semidefinite kernel, {kernel!r} is none. Fit a smaller model "
        "instead, or choose another kernel."
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
        ``k(Z', Z) A``: f less its intercept, at Z'.
    M : ndarray of shape (n, n)
        The left side, and what keeps it positive definite.
    solve : callable
        ``R ↦ M⁻¹R``.
    jitter : float
        What was added to the diagonal of the left side.
    """

    K: Float
    B: Float
    C: Float
    M: Float
    solve: Solve
    jitter: float


@dataclass(frozen=True)
class Misfit:
    """How far an expansion with other landmarks is from a given one, and how to come closer.

    Attributes
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (b, d)
    weight : ndarray of shape (b,)
        D; sums to one.
    F : ndarray of shape (b, L)
        Scores of the rows, less the intercept.
    Z : ndarray or CSR matrix of shape (n_given, d)
    A : ndarray of shape (n_given, L)
    b : ndarray of shape (L,)
    epsilon, jitter : float
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
            raise _indefinite(kernel)
        scale = scale or 1.0  # a kernel that is zero has no size
        epsilon = smoothness * scale
        A, b = (array.astype(np.float64) for array in (expansion.dual_coef, expansion.intercept))
        return cls(kernel, X, weight, F, Z, A, b, epsilon, JITTER * epsilon * scale)

    @property
    def cancels(self) -> bool:
        """Whether the function is a small difference of large terms: ``ε ‖f‖²_H`` says so."""
        own = KernelExpansion(self.kernel, self.Z, self.A, np.zeros(len(self.b)))(self.Z)
        spread = self.weight @ (self.F - self.weight @ self.F) ** 2
        return bool(self.epsilon * (self.A * own).sum() > spread.sum())

    def parts(self, points: Any) -> Parts:
        """Return the equations of the coefficients of landmarks."""
        points = points.astype(np.float64, copy=False)
        K, B = self.kernel(self.X, points), self.kernel(points, points)
        M = K.T @ (self.weight[:, None] * K)
        M += self.epsilon * B
        jitter = self.jitter
        while (found := cholesky(M, jitter)) is None:
            jitter *= 10.0
            if jitter > MOST_JITTER * self.jitter:
                raise _indefinite(self.kernel)
        M.flat[:: len(M) + 1] += jitter
        return Parts(K, B, self.kernel(points, self.Z) @ self.A, M, found[0], jitter)

    def solve(self, points: Any) -> Float:
        """Return the best coefficients for landmarks, of shape (n, L)."""
        return self._coefficients(self.parts(points))

    def _coefficients(self, parts: Parts) -> Float:
        cross = parts.K.T @ (self.weight[:, None] * self.F)
        return parts.solve(cross + self.epsilon * parts.C)

    def value_and_gradient(self, points: Float) -> tuple[float, Float]:
        """Return the distance at the best coefficients, up to a constant, and ``∂/∂Z'``.

        At the best coefficients the distance changes with the landmarks alone.
        """
        parts = self.parts(points)
        A = self._coefficients(parts)
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

    def moved(self, points: Any) -> Float:
        """Move landmarks to where the distance is smaller; they never end up farther.

        For a kernel with slopes and dense landmarks.
        """
        # the kernel's own length, and a distance of one for a model that is zero
        unit = 1.0 / np.sqrt(2.0 * float(self.kernel.get_params()["gamma"]))
        size = float((self.weight @ self.F**2).sum()) or 1.0
        start = points.astype(np.float64)

        def scaled(steps: Float) -> tuple[float, Float]:
            value, gradient = self.value_and_gradient(unit * steps.reshape(start.shape))
            return value / size, unit / size * gradient.ravel()

        found = minimize(
            scaled, start.ravel() / unit, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
        )
        best: Float = unit * found.x.reshape(start.shape)
        return best
