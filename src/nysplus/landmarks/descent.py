"""Landmarks for values: centroids moved down the gradient of the squared error.

For given landmarks the best coefficients are a ridge solution. At the ridge solution the error
changes with the landmarks alone (the envelope theorem), so its gradient needs no derivative of
the solution. This is variable projection, on another batch of rows in every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nysplus._adam import Adam
from nysplus._holdout import Positions, best_of, split_positions
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import cholesky
from nysplus._rows.blocks import Block
from nysplus._typing import Float
from nysplus.kernels import Kernel

# Ridge of a fit to all rows with targets of unit variance, small beside the scatter of any kernel;
# and the share of the mean diagonal that is added first where a factorisation would fail.
RIDGE, JITTER = 1e-2, 1e-9


@dataclass(frozen=True)
class DescentRules:
    """Numbers of the gradient descent: batches, steps and validation rows."""

    # Rows of a batch: the larger of a number and a multiple of the landmarks, so that the ridge
    # solution of a batch is well determined.
    batch_rows: int = 2000
    batch_ratio: int = 4
    # Steps times landmarks. A step costs O(batch · n²), so more landmarks get fewer steps.
    work: int = 5000
    min_steps: int = 5
    max_steps: int = 50
    # From this number of landmarks on a step costs about as much as a fit to its batch; all steps
    # together then use every row at most once, so that they cost no more than one fit.
    many_landmarks: int = 250
    # Learning rate of the first step, in units of each feature, and the larger one for runs of
    # fewer than `few_steps` steps, which have to move as far.
    rate: float = 0.3
    few_steps_rate: float = 0.5
    few_steps: int = 10
    # Parameters of Adam: short memories, because there are at most 50 steps; a large epsilon, as
    # a share of the typical size of a gradient, keeps landmarks in place that do not matter.
    beta1: float = 0.5
    beta2: float = 0.9
    epsilon: float = 0.1
    # Validation rows: a fifth, at most 1000, because they are scored in every step.
    validation_share: int = 5
    max_validation_rows: int = 1000

    def batch(self, n: int, n_rows: int) -> int:
        """Return the rows of a batch for `n` landmarks, out of `n_rows` training rows."""
        return min(n_rows, max(self.batch_rows, self.batch_ratio * n))

    def steps(self, n: int, n_rows: int) -> int:
        """Return the number of steps for `n` landmarks and `n_rows` training rows."""
        steps = min(self.work // n, self.max_steps)
        if n >= self.many_landmarks:
            steps = min(steps, n_rows // self.batch(n, n_rows))
        return max(steps, self.min_steps)


DEFAULT_RULES = DescentRules()


def moved(
    kernel: Kernel,
    rows: Block,
    points: Float,
    rng: np.random.RandomState,
    rules: DescentRules = DEFAULT_RULES,
) -> tuple[Float, int, Positions]:
    """Move landmarks down the gradient of the squared error. O(batch · n²) for each step.

    Parameters
    ----------
    kernel : Kernel
        A differentiable one.
    rows : Block
        Dense, with values as targets.
    points : ndarray of shape (n, d)
        Landmarks to start from.
    rng : RandomState
    rules : DescentRules

    Returns
    -------
    points : ndarray of shape (n, d)
        The landmarks of the smallest error on validation rows: the start, or the landmarks after
        one of the steps. No step uses validation rows.
    n_kernel_evaluations : int
    validation : ndarray of int
        Positions of the validation rows.
    """
    n_validation = min(len(rows) // rules.validation_share, rules.max_validation_rows)
    validation, training = split_positions(len(rows), n_validation, rng)
    n, n_training = len(points), len(training)
    path = _path(kernel, rows, points.astype(np.float64), validation, training, rng, rules)
    best, _ = best_of(path, score=lambda step: -step[1])
    batch, n_steps = rules.batch(n, n_training), rules.steps(n, n_training)
    evaluations = (n_steps + 1) * n * (2 * batch + n_validation + n)
    return best.astype(points.dtype), evaluations, validation


def _path(
    kernel: Kernel,
    rows: Block,
    Z: Float,
    validation: Positions,
    training: Positions,
    rng: np.random.RandomState,
    rules: DescentRules,
) -> Iterator[tuple[Float, float]]:
    """Yield the landmarks before the first and after each step, with their validation error."""
    X, Y = rows.X.astype(np.float64, copy=False), _standardised(rows)
    size, n_steps = (f(len(Z), len(training)) for f in (rules.batch, rules.steps))
    rate = rules.rate if n_steps >= rules.few_steps else rules.few_steps_rate
    # the unit of each feature: its standard deviation, but no more than the kernel's length scale
    length_scale = 1.0 / np.sqrt(2.0 * float(kernel.get_params()["gamma"]))
    unit = np.minimum(X.std(axis=0), length_scale)
    adam = Adam(Z, rules.beta1, rules.beta2, rules.epsilon)
    for step in range(n_steps + 1):
        batch = rng.permutation(training)[:size]
        weight = rows.weight[batch]
        fit = _solve(kernel, X[batch], Y[batch], weight, Z, RIDGE * size / len(training))
        residuals = Y[validation] - kernel(X[validation], Z) @ fit.A - fit.b
        yield Z, float(rows.weight[validation] @ (residuals**2).sum(axis=1))
        if step < n_steps:
            gradient = _gradient(kernel, X[batch], Z, weight[:, None] * fit.residuals, fit.A)
            Z = Z - (1.0 - step / n_steps) * adam.step(gradient * unit, rate * unit)


def _standardised(rows: Block) -> Float:
    """Return the targets with a mean of zero, and unit variance unless they are constant."""
    moments = Moments.of(np.zeros((len(rows), 0)), rows.Y, rows.weight)
    deviation = np.sqrt(moments.target_scatter / moments.weight)
    Y: Float = (rows.Y - moments.target_mean) / np.where(deviation > 0, deviation, 1.0)
    return Y


@dataclass(frozen=True)
class _BatchFit:
    """Coefficients, intercept and residuals of the ridge solution of a batch."""

    A: Float
    b: Float
    residuals: Float


def _solve(kernel: Kernel, X: Float, Y: Float, weight: Float, Z: Float, ridge: float) -> _BatchFit:
    """Return the ridge solution of a batch, in the coefficients of the kernel itself."""
    K = kernel(X, Z)
    moments = Moments.of(K.copy(order="F"), Y, weight)
    S = moments.scatter + ridge * kernel(Z, Z)
    jitter = JITTER * float(np.trace(S)) / len(Z)
    while (found := cholesky(S, jitter)) is None:
        jitter *= 10.0
    A = found[0](moments.cross)
    b = moments.target_mean - moments.feature_mean @ A
    return _BatchFit(A, b, Y - K @ A - b)


def _gradient(kernel: Kernel, X: Float, Z: Float, residuals: Float, A: Float) -> Float:
    """Return ``∂/∂Z`` of half the squared error: ``Σ_i (R Aᵀ)_ij σ_ij (x_i − z_j)``."""
    H = kernel.slopes(X, Z)
    H *= residuals @ A.T
    gradient: Float = H.T @ X - H.sum(axis=0)[:, None] * Z
    return gradient
