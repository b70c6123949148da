"""Mini-batch training of landmarks, coefficients and a linear map."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._adam import Adam
from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.losses import Loss
from nysplus._typing import Float

# Parameters of Adam: the averages of the squares cover about 100 steps, since runs are short.
BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-8
# Added to gradients: far from all rows of a batch they are so small that their squares would be
# subnormal numbers, which are slow. It is far below `EPSILON`, so it moves nothing.
LEAST_GRADIENT = 1e-14
# Steps grow from this share of the full size over the first fifth of a run, then fall to nothing.
FIRST_SHARE, WARM_UP = 0.1, 0.2
# The map's steps, in units of the landmarks' steps, for rows whose entries sum to one.
MAP_RATE = 1.5
# Rows whose entries are summed for that.
MAP_RATE_ROWS = 1000
# How often a run tells how far it is.
REPORTS = 20


@dataclass(frozen=True)
class TrainingRows:
    """Rows as training wants them.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (N, d)
        Dense rows about their mean, sparse rows as they are.
    shift : ndarray of shape (d,) or None
        The mean of sparse rows.
    loss : Loss
    weight : ndarray of shape (N,)
        With a mean of one.
    """

    X: Any
    shift: Float | None
    loss: Loss
    weight: Float

    def sums(self, used: npt.NDArray[np.intp]) -> float:
        """Return the typical sum of the entries' sizes of a row about the mean."""
        X = self.X[used[:: max(1, len(used) // MAP_RATE_ROWS)]]
        if sp.issparse(X):
            X = X.toarray()
        if self.shift is not None:
            X = X - self.shift
        return float(np.abs(X).sum(axis=1).mean())


@dataclass(frozen=True)
class Recipe:
    """How parameters are trained.

    Attributes
    ----------
    n_steps : int
    batch : int
        Rows of a step.
    rate, coef_rate : float
        Size of the largest steps of landmarks and of coefficients.
    smoothing : float
        Share of each target that is spread over all outputs.
    decay : float
        Share of the coefficients that a step of size one would take away.
    """

    n_steps: int
    batch: int
    rate: float = 0.04
    coef_rate: float = 0.3
    smoothing: float = 0.05
    decay: float = 0.003

    @property
    def n_rows(self) -> int:
        """How many rows all steps use together."""
        return self.n_steps * self.batch

    def scaled(self, steps: float, rate: float) -> Recipe:
        """Return the same with a share of the steps, at a share of their size."""
        return replace(
            self,
            n_steps=max(1, int(steps * self.n_steps)),
            rate=rate * self.rate,
            coef_rate=rate * self.coef_rate,
        )


def train(
    rows: TrainingRows,
    used: npt.NDArray[np.intp],
    start: Parameters,
    b: Float,
    recipe: Recipe,
    seed: int,
    seconds: float | None = None,
    advance: Callable[[int], None] | None = None,
) -> Parameters:
    """Return trained parameters; `start` stays as it is.

    Parameters
    ----------
    rows : TrainingRows
    used : ndarray of int
        The rows to train on.
    start : Parameters
    b : ndarray of shape (L,)
    recipe : Recipe
    seed : int
        Of the order of the rows.
    seconds : float, optional
        When the steps have to end; they shrink the faster, and results depend on the machine.
    advance : callable, optional
        Told now and then of how many rows have been used since; of `recipe.n_rows` in all.
    """
    batch = min(recipe.batch, len(used))
    p = start.like(start.flat.copy())
    gradient = Gradient(p, b, batch, rows.shift)
    rates = _rates(p, recipe, rows.sums(used))
    adam = Adam(p.flat, BETA1, BETA2, EPSILON)
    rng = np.random.RandomState(seed)
    weight = (rows.weight / batch).astype(p.flat.dtype)[:, None]
    begin = time.perf_counter()
    order, position = rng.permutation(used), 0
    told, every = 0, -(-recipe.n_steps // REPORTS)
    for step in range(recipe.n_steps):
        done = step / recipe.n_steps
        if seconds is not None:
            done = max(done, (time.perf_counter() - begin) / seconds)
            if done >= 1.0:
                break
        if advance is not None and step == told + every:
            advance(every * recipe.batch)
            told = step
        if position + batch > len(used):
            order, position = rng.permutation(used), 0
        some = order[position : position + batch]
        position += batch
        g = gradient(rows.X[some], rows.loss.take(some), weight[some], recipe.smoothing).flat
        g += LEAST_GRADIENT
        share = _share(done)
        adam.descend(p.flat, g, rates, share)
        p.A[:] *= 1.0 - share * recipe.coef_rate * recipe.decay
    if advance is not None:
        advance((recipe.n_steps - told) * recipe.batch)
    return p


def _share(done: float) -> float:
    """Return the size of a step after a share of the run, as a share of the largest."""
    if done < WARM_UP:
        return FIRST_SHARE + (1.0 - FIRST_SHARE) * done / WARM_UP
    return float(0.5 + 0.5 * np.cos(np.pi * (done - WARM_UP) / (1.0 - WARM_UP)))


def _rates(p: Parameters, recipe: Recipe, sums: float) -> Float:
    """Return the step of each parameter. A step of the map moves a row as far as a landmark's."""
    rates = p.like(np.empty_like(p.flat))
    rates.P[:] = MAP_RATE * recipe.rate / (sums if sums > 0 else 1.0)
    rates.Z[:] = recipe.rate
    rates.A[:] = recipe.coef_rate
    return rates.flat
