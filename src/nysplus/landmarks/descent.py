"""Landmarks for values: centroids that are moved to where they lower the squared error.

For given landmarks the best coefficients are a ridge solution. Where they are the best, the error
changes with the landmarks alone (the envelope theorem), so that its gradient needs no derivative
of the solution: variable projection, on another batch of rows in every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nysplus._ridge.moments import Moments
from nysplus._ridge.path import cholesky
from nysplus._rows.blocks import Block
from nysplus._typing import Float
from nysplus.kernels import Kernel

# Rows of a batch: this many, or this many for each landmark.
BATCH_ROWS, BATCH_RATIO = 2000, 4
# Steps: so many for one landmark, and the fewest and the most. A step costs as much as a fit to
# its batch, so with many landmarks all of them together may cost as much as a fit to all rows.
WORK, FEWEST_STEPS, MOST_STEPS = 5000, 5, 50
MANY_LANDMARKS = 250
# Length of the first step, in the units of each feature: longer where there are few.
RATE, LONG_RATE, LONG_STEPS = 0.3, 0.5, 10
# Ridge for all rows, of targets of unit variance, and what keeps the factorisation alive.
RIDGE, JITTER = 1e-2, 1e-9
# Adam: how much of the last steps' direction and size is kept, and the least size of all, as a
# share of the mean.
DIRECTION_MEMORY, SIZE_MEMORY, LEAST_SIZE = 0.5, 0.9, 0.1
# Rows that only judge: a fifth, at most this many.
JUDGED_ROWS = 1000


def moved(
    kernel: Kernel, rows: Block, points: Float, rng: np.random.RandomState
) -> tuple[Float, int]:
    """Move landmarks down the gradient of the squared error.

    Returns the best landmarks on the way, the start included, by the error of rows that no step
    has seen, and the kernel evaluations that took. O(batch · n²) for each step.

    Parameters
    ----------
    kernel : Kernel
        One with slopes.
    rows : Block
        Dense, with values as targets.
    points : ndarray of shape (n, d)
        Where to start.
    rng : RandomState
    """
    Y = rows.Y
    total = Moments.of(np.zeros((len(rows), 0)), Y, rows.weight)
    spread = np.sqrt(total.target_scatter / total.weight)
    Y = (Y - total.target_mean) / np.where(spread > 0, spread, 1.0)
    order = rng.permutation(len(rows))
    n_judged = min(len(rows) // 5, JUDGED_ROWS)
    judged, others = order[:n_judged], order[n_judged:]
    X = rows.X.astype(np.float64, copy=False)
    n = len(points)
    size = min(len(others), max(BATCH_ROWS, BATCH_RATIO * n))
    n_steps = min(WORK // n, MOST_STEPS)
    if n >= MANY_LANDMARKS:
        n_steps = min(n_steps, len(others) // size)
    n_steps = max(n_steps, FEWEST_STEPS)
    # a step of one in each feature: no farther than the kernel reaches
    reach = 1.0 / np.sqrt(2.0 * float(kernel.get_params()["gamma"]))
    adam = _Adam(np.minimum(X.std(axis=0), reach), RATE if n_steps >= LONG_STEPS else LONG_RATE)
    Z = best = points.astype(np.float64)
    least = np.inf
    for step in range(n_steps + 1):
        batch = rng.permutation(others)[:size]
        weight = rows.weight[batch]
        fit = _solve(kernel, X[batch], Y[batch], weight, Z, RIDGE * size / len(others))
        left = Y[judged] - kernel(X[judged], Z) @ fit.A - fit.b
        error = float(rows.weight[judged] @ (left**2).sum(axis=1))
        if error < least:
            least, best = error, Z
        if step < n_steps:
            gradient = _gradient(kernel, X[batch], Z, weight[:, None] * fit.left, fit.A)
            Z = Z - (1.0 - step / n_steps) * adam.step(gradient)
    evaluations = (n_steps + 1) * n * (2 * size + n_judged + n)
    return best.astype(points.dtype), evaluations


@dataclass(frozen=True)
class _Fit:
    """Coefficients, intercept, and what they leave of the targets of the batch."""

    A: Float
    b: Float
    left: Float


def _solve(kernel: Kernel, X: Float, Y: Float, weight: Float, Z: Float, ridge: float) -> _Fit:
    """Return the ridge solution of a batch, in the coefficients of the kernel itself."""
    K = kernel(X, Z)
    moments = Moments.of(K.copy(order="F"), Y, weight)
    S = moments.scatter + ridge * kernel(Z, Z)
    jitter = JITTER * float(np.trace(S)) / len(Z)
    while (found := cholesky(S, jitter)) is None:
        jitter *= 10.0
    A = found[0](moments.cross)
    b = moments.target_mean - moments.feature_mean @ A
    return _Fit(A, b, Y - K @ A - b)


def _gradient(kernel: Kernel, X: Float, Z: Float, left: Float, A: Float) -> Float:
    """Return ``∂/∂Z`` of half the squared error: ``Σ_i (R Aᵀ)_ij σ_ij (x_i − z_j)``."""
    H = kernel.slopes(X, Z)
    H *= left @ A.T
    gradient: Float = H.T @ X - H.sum(axis=0)[:, None] * Z
    return gradient


@dataclass
class _Adam:
    """Steps of about the same size in every coordinate (Kingma & Ba 2015).

    Attributes
    ----------
    unit : ndarray of shape (d,)
        What one is in each feature.
    rate : float
        Length of a step, in these units.
    """

    unit: Float
    rate: float
    _count: int = 0
    _direction: Float = field(default_factory=lambda: np.zeros(1))
    _square: Float = field(default_factory=lambda: np.zeros(1))

    def step(self, gradient: Float) -> Float:
        """Return what to take off."""
        G = gradient * self.unit
        self._count += 1
        self._direction = DIRECTION_MEMORY * self._direction + (1 - DIRECTION_MEMORY) * G
        self._square = SIZE_MEMORY * self._square + (1 - SIZE_MEMORY) * G**2
        size = np.sqrt(self._square / (1 - SIZE_MEMORY**self._count))
        size = size + LEAST_SIZE * np.sqrt((size**2).mean()) + 1e-300
        direction = self._direction / (1 - DIRECTION_MEMORY**self._count)
        step: Float = self.rate * self.unit * direction / size
        return step
