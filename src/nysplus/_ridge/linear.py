"""Fit linear functions ``x ↦ xB + b``: ridge regression of values, logistic regression of classes.

Logistic regression is worth its iterations here: least squares to the codes ±1 of classes costs
half a point of accuracy where rows far from the boundary are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit

from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._rows.blocks import Block
from nysplus._typing import Float


@dataclass(frozen=True)
class LinearFitRules:
    """Numbers that steer the fit of a linear function.

    Attributes
    ----------
    class_alphas : tuple of float
        Ridges of logistic regression, the largest first: each fit starts from the one before.
    value_alphas : tuple of float
        Ridges of squared errors.
    tolerance : float
        Relative decrease of the loss at which the minimisation stops: far below the differences
        that held-out rows can tell apart.
    max_iterations : int
        Iterations of each fit: more are needed only where classes are separable.
    """

    class_alphas: tuple[float, ...] = (10.0, 1.0, 0.1, 0.01)
    value_alphas: tuple[float, ...] = (1e3, 1e2, 10.0, 1.0, 0.1, 1e-2, 1e-3)
    tolerance: float = 1e-6
    max_iterations: int = 30


DEFAULT_RULES = LinearFitRules()


@dataclass(frozen=True)
class LinearFunction:
    """``x ↦ xB + b``.

    Attributes
    ----------
    B : ndarray of shape (d, L)
    b : ndarray of shape (L,)
    alpha : float
        The ridge of the fit.
    """

    B: Float
    b: Float
    alpha: float

    def __call__(self, X: Any) -> Float:
        """Return the scores of rows."""
        scores: Float = X @ self.B + self.b
        return scores

    def in_unit(self, unit: float) -> LinearFunction:
        """Return the function with scores divided by a unit."""
        return replace(self, B=self.B / unit, b=self.b / unit)


@dataclass(frozen=True)
class LinearPath:
    """Linear functions fitted to rows, one for each ridge.

    The intercept has no penalty. O(N d²) for the first function, O(N d L) for each iteration.

    Attributes
    ----------
    rows : Block
        Dense.
    rules : LinearFitRules
    """

    rows: Block
    rules: LinearFitRules = DEFAULT_RULES

    @property
    def alphas(self) -> tuple[float, ...]:
        """The ridges that suit the targets, the largest first."""
        assert self.rows.targets is not None
        discrete = self.rows.targets.discrete
        return self.rules.class_alphas if discrete else self.rules.value_alphas

    def functions(self, alphas: tuple[float, ...] | None = None) -> Iterator[LinearFunction]:
        """Yield the function of each ridge."""
        assert self.rows.targets is not None
        alphas = self.alphas if alphas is None else alphas
        if not self.rows.targets.discrete:
            path = RidgePath(self.moments)
            for alpha in alphas:
                solution = path.solve(alpha)
                yield LinearFunction(solution.W, solution.b, alpha)
            return
        start = LinearFunction(np.zeros_like(self.moments.cross), self._log_odds(), np.inf)
        for alpha in alphas:
            start = self._logistic(start, alpha)
            yield start

    @cached_property
    def moments(self) -> Moments:
        """Moments of the rows."""
        rows = self.rows
        return Moments.of(np.array(rows.X, dtype=np.float64, order="F"), rows.Y, rows.weight)

    def _log_odds(self) -> Float:
        """Return the best scores of a function that is constant."""
        mean = self.moments.target_mean.clip(-0.999, 0.999)
        shares = (1.0 + mean) / 2.0
        if self.rows.labels.kind == "classes" and len(shares) > 1:
            return np.log(shares)
        return np.log(shares) - np.log1p(-shares)

    def _logistic(self, start: LinearFunction, alpha: float) -> LinearFunction:
        """Minimise ``Σ w loss(xB + b, y) + α/2 ‖B‖²`` from a start.

        L-BFGS in coordinates in which the largest possible Hessian is the identity.
        """
        moments, X = self.moments, self.rows.X
        H = 0.25 * moments.scatter
        H.flat[:: len(H) + 1] += alpha
        R = cholesky(H)
        unit = np.sqrt(max(0.25 * moments.weight, 1.0))
        mean, shape = moments.feature_mean, (len(H) + 1, len(start.b))
        weight, loss = self.rows.weight[:, None], _loss_of(self.rows)

        def function(v: Float) -> tuple[Float, Float]:
            """Return B and the intercept of centred rows."""
            V = v.reshape(shape)
            return solve_triangular(R, V[:-1]), V[-1] / unit

        def objective(v: Float) -> tuple[float, Float]:
            B, b = function(v)
            F = (X @ B.astype(X.dtype)).astype(np.float64) + (b - mean @ B)
            value, G = loss(F)
            G *= weight
            total = G.sum(axis=0)
            gradient = (X.T @ G.astype(X.dtype)).astype(np.float64) - np.outer(mean, total)
            gradient = solve_triangular(R, gradient + alpha * B, trans="T")
            penalty = 0.5 * alpha * float((B**2).sum())
            return float(weight[:, 0] @ value) + penalty, np.vstack(
                [gradient, total / unit]
            ).ravel()

        first = np.vstack([R @ start.B, unit * (start.b + mean @ start.B)])
        rules = self.rules
        options = {"ftol": rules.tolerance, "gtol": 0.0, "maxiter": rules.max_iterations}
        found = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options)
        B, b = function(found.x)
        return LinearFunction(B, b - mean @ B, alpha)


Loss = Callable[[Float], tuple[Float, Float]]


def _loss_of(rows: Block) -> Loss:
    """Return the function from scores to the loss of each row and its derivatives."""
    codes = rows.labels.class_codes
    if codes is None or rows.Y.shape[1] == 1:
        return partial(_binary_loss, Y=np.sign(rows.Y))
    return partial(_class_loss, codes=codes)


def _binary_loss(F: Float, Y: Float) -> tuple[Float, Float]:
    """Return the logistic loss of each row, summed over labels ±1, and its derivatives."""
    margins = Y * F
    return np.logaddexp(0.0, -margins).sum(axis=1), -Y * expit(-margins)


def _class_loss(F: Float, codes: Any) -> tuple[Float, Float]:
    """Return the cross-entropy of each row, and its derivatives."""
    rows = np.arange(len(F))
    P = F - F.max(axis=1, keepdims=True)
    loss = -P[rows, codes]
    np.exp(P, out=P)
    total = P.sum(axis=1)
    P /= total[:, None]
    P[rows, codes] -= 1.0
    return loss + np.log(total), P


def row_losses(scores: Float, rows: Block) -> Float:
    """Return the loss of each row: logistic for classes, the squared error for values."""
    assert rows.targets is not None
    if not rows.targets.discrete:
        return -rows.targets.row_scores(scores)
    return _loss_of(rows)(scores.astype(np.float64))[0]
