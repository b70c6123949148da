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
from nysplus._bytes.budget import PartBits
from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.losses import Loss
from nysplus._learning.rounding import Rounding
from nysplus._typing import Float

# Parameters of Adam.
BETA1, EPSILON = 0.9, 1e-8
# Added to gradients: far from all rows of a batch they are so small that their squares would be
# subnormal numbers, which are slow. It is far below `EPSILON`, so it moves nothing.
LEAST_GRADIENT = 1e-14
# Learning rates rise from this share of the largest over the first fifth of a run, then fall to 0.
FIRST_SHARE, WARM_UP = 0.1, 0.2
# The map's learning rate, in units of the landmarks' rate, for rows whose absolute entries sum to
# one, and the number of rows that the typical sum is taken from.
MAP_RATE, MAP_RATE_ROWS = 1.5, 1000
# Continuing a trained model on all rows takes this share of the steps, at this share of the
# learning rates: as good as training on all rows from the start, and much faster.
CONTINUED_STEPS, CONTINUED_RATE = 0.2, 0.3
# The share of a run after which numbers of few bits are trained as they are stored: learning rates
# are small then; in earlier steps rounding would be in the way.
ROUNDED_FROM = 0.8
# Progress reports of a run.
REPORTS = 20


@dataclass(frozen=True)
class TrainingRows:
    """Rows in the form that training uses.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (N, d)
        Standardised. The mean is subtracted from dense rows only.
    shift : ndarray of shape (d,) or None
        The mean of sparse rows.
    loss : Loss
    weight : ndarray of shape (N,)
        With a mean of one.
    augmented : callable, optional
        From positions and random numbers to rows of a batch that are changed at random; by default
        they are used as they are.
    """

    X: Any
    shift: Float | None
    loss: Loss
    weight: Float
    augmented: Callable[[npt.NDArray[np.intp], np.random.RandomState], Float] | None = None

    def __len__(self) -> int:
        return len(self.weight)

    def batch(self, some: npt.NDArray[np.intp], rng: np.random.RandomState) -> Any:
        """Return the rows of a batch."""
        return self.X[some] if self.augmented is None else self.augmented(some, rng)

    def sums(self, used: npt.NDArray[np.intp]) -> float:
        """Return the mean over rows of the sum of absolute entries, about the mean row."""
        X = self.X[used[:: max(1, len(used) // MAP_RATE_ROWS)]]
        if sp.issparse(X):
            X = X.toarray()
        if self.shift is not None:
            X = X - self.shift
        return float(np.abs(X).sum(axis=1).mean())


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run.

    Attributes
    ----------
    n_steps : int
    batch_size : int
    learning_rate, coef_learning_rate : float
        Largest learning rates of landmarks and of coefficients.
    label_smoothing : float
        Between 0 and 1.
    weight_decay : float
        Of the coefficients, in units of their learning rate.
    map_decay : float
        Of the map, in units of the learning rate of landmarks: a smaller map makes a smoother
        function.
    beta2 : float
        Of Adam: the averages of squared gradients cover about 1 / (1 − β₂) steps. By default 100,
        since runs are short.
    bits : PartBits or None
        Bits that the numbers are trained in; None for floating numbers.
    """

    n_steps: int
    batch_size: int
    learning_rate: float = 0.04
    coef_learning_rate: float = 0.3
    label_smoothing: float = 0.05
    weight_decay: float = 0.003
    map_decay: float = 0.0
    beta2: float = 0.99
    bits: PartBits | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows that all steps use together, counted with repetition."""
        return self.n_steps * self.batch_size

    def scaled(self, steps: float, rate: float = 1.0) -> TrainingOptions:
        """Return the options with the number of steps and the learning rates multiplied."""
        return replace(
            self,
            n_steps=max(1, int(steps * self.n_steps)),
            learning_rate=rate * self.learning_rate,
            coef_learning_rate=rate * self.coef_learning_rate,
        )

    def continued(self) -> TrainingOptions:
        """Return the options of a run that continues from trained parameters."""
        return self.scaled(CONTINUED_STEPS, CONTINUED_RATE)


def train(
    rows: TrainingRows,
    used: npt.NDArray[np.intp],
    start: Parameters,
    b: Float,
    options: TrainingOptions,
    seed: int,
    seconds: float | None = None,
    advance: Callable[[int], None] | None = None,
    unit: Float | None = None,
) -> Parameters:
    """Return trained parameters; `start` is not changed.

    Parameters
    ----------
    rows : TrainingRows
    used : ndarray of int
        Positions of the rows to train on.
    start : Parameters
    b : ndarray of shape (L,)
        The intercept, which is not trained.
    options : TrainingOptions
    seed : int
        Of the order of the rows.
    seconds : float, optional
        Time limit. Learning rates fall faster under it, and results depend on the machine.
    advance : callable, optional
        Called about 20 times with the number of rows used since the last call, `options.n_rows`
        in total.
    unit : ndarray of shape (d,), optional
        Units of the features, by default 1, for numbers of few bits: the stored map is that of
        features in their units.
    """
    batch = min(options.batch_size, len(used))
    p = start.like(start.flat.copy())
    gradient, rounding = Gradient(p, b, batch, rows.shift), None
    unit = np.ones(p.d) if unit is None else unit
    rates = _rates(p, options, rows.sums(used))
    adam = Adam(p.flat, BETA1, options.beta2, EPSILON)
    rng = np.random.RandomState(seed)
    weight = (rows.weight / batch).astype(p.flat.dtype)[:, None]
    begin = time.perf_counter()
    order, position = rng.permutation(used), 0
    reported, every = 0, -(-options.n_steps // REPORTS)
    for step in range(options.n_steps):
        done = step / options.n_steps
        if seconds is not None:
            done = max(done, (time.perf_counter() - begin) / seconds)
            if done >= 1.0:
                break
        if advance is not None and step == reported + every:
            advance(every * options.batch_size)
            reported = step
        if position + batch > len(used):
            order, position = rng.permutation(used), 0
        some = order[position : position + batch]
        position += batch
        if options.bits is not None and done >= ROUNDED_FROM and rounding is None:
            rounding = Rounding(p, options.bits, unit)
            gradient = Gradient(rounding.rounded, b, batch, rows.shift)
        if rounding is not None:
            rounding.update(p)
        X = rows.batch(some, rng)
        g = gradient(X, rows.loss.take(some), weight[some], options.label_smoothing).flat
        g += LEAST_GRADIENT
        share = _share(done)
        adam.descend(p.flat, g, rates, share)
        p.A[:] *= 1.0 - share * options.coef_learning_rate * options.weight_decay
        if options.map_decay:
            p.P[:] *= 1.0 - share * options.learning_rate * options.map_decay
    if advance is not None:
        advance((options.n_steps - reported) * options.batch_size)
    if options.bits is None:
        return p
    rounding = rounding or Rounding(p, options.bits, unit)
    rounding.update(p)
    return rounding.result()


def _share(done: float) -> float:
    """Return the learning rate after a share of the run, as a share of the largest."""
    if done < WARM_UP:
        return FIRST_SHARE + (1.0 - FIRST_SHARE) * done / WARM_UP
    return float(0.5 + 0.5 * np.cos(np.pi * (done - WARM_UP) / (1.0 - WARM_UP)))


def _rates(p: Parameters, options: TrainingOptions, sums: float) -> Float:
    """Return the learning rate of each parameter.

    A step of the map moves a mapped row about as far as a step of the landmarks moves a landmark.
    """
    rates = p.like(np.empty_like(p.flat))
    rates.P[:] = MAP_RATE * options.learning_rate / (sums if sums > 0 else 1.0)
    rates.Z[:] = options.learning_rate
    rates.A[:] = options.coef_learning_rate
    return rates.flat
