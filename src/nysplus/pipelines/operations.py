"""Functions of one number that the steps of scikit-learn's pipelines apply to a column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from nysplus._typing import Float
from nysplus.encoding.code import Power

# How near to the ends of its range QuantileTransformer takes numbers for the ends, and the largest
# number that it gives a normal distribution.
NEAR_END = 1e-7
LARGEST_NORMAL = float(stats.norm.ppf(1.0 - (NEAR_END - np.spacing(1))))
# Largest error of straight lines between the knots of a normal distribution: 1e-6 with the rounding
# of values to float32. A column has about 5.6 / sqrt(error) knots.
NORMAL_ERROR = 7e-7
# Numbers are taken for a knot where the function jumps if they differ by this share of its size:
# the rounding errors of steps before.
JUMP_WIDTH = 8 * np.finfo(np.float64).eps


class Operation(ABC):
    """An increasing function of one number; gaps stay gaps."""

    @abstractmethod
    def __call__(self, x: Float) -> Float:
        """Return the function of numbers."""


@dataclass(frozen=True)
class Shift(Operation):
    """``(x − offset) · scale``, with a positive scale."""

    offset: float
    scale: float

    def __call__(self, x: Float) -> Float:
        """Return the function of numbers."""
        return (x - self.offset) * self.scale

    def inverse(self, y: Any) -> Any:
        """Return the numbers of which the function is y."""
        return y / self.scale + self.offset

    def then(self, other: Shift) -> Shift:
        """Return the other function of this one."""
        return Shift(self.inverse(other.offset), self.scale * other.scale)


IDENTITY = Shift(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Broken(Operation):
    """A piecewise-linear function, constant beyond its knots.

    Attributes
    ----------
    knots, values : ndarray of shape (m,)
    """

    knots: Float
    values: Float

    def __call__(self, x: Float) -> Float:
        """Return the function of numbers."""
        y: Float = np.interp(x, self.knots, self.values)
        return y


@dataclass(frozen=True)
class PowerTransform(Operation):
    """The transform of Box and Cox or, `signed`, of Yeo and Johnson, with the exponent λ."""

    exponent: float
    signed: bool

    def __call__(self, x: Float) -> Float:
        """Return the function of numbers."""
        y: Float = Power(0, self.exponent, self.signed, 0.0, 1.0, 0.0, 1.0, np.nan).of(x)[:, 0]
        return y


def clip(low: float, high: float) -> Broken:
    """Return the function that limits numbers to an interval."""
    ends = np.array([low, high], dtype=np.float64)
    return Broken(ends, ends)


def quantile_curve(quantiles: Float, references: Float, normal: bool, noise: float) -> Broken:
    """Return the function of a column by QuantileTransformer.

    Parameters
    ----------
    quantiles, references : ndarray of shape (n_quantiles,)
        Its attributes ``quantiles_``, of the column, and ``references_``.
    normal : bool
        Whether its output is normally distributed.
    noise : float
        Largest number of which `quantiles` have rounding errors.
    """
    places, counts = np.unique(quantiles, return_counts=True)
    jumps, knots = places[counts > 1], places
    if normal:
        jumps = np.unique([*jumps, places[0] + NEAR_END, places[-1] - NEAR_END])
        knots = np.concatenate([places, _between(places, quantiles, references)])
    width = JUMP_WIDTH * max(noise, float(np.abs(quantiles).max()), np.finfo(np.float64).tiny)

    def function(x: Float) -> Float:
        return _quantile_function(x, quantiles, references, normal)

    apart = np.abs(knots[:, None] - jumps).min(axis=1, initial=np.inf) > 2 * width
    knots = knots[apart]
    all_knots = [knots, *(jumps + step * width for step in (-2, -1, 1, 2))]
    values = [function(knots), function(all_knots[1]), *2 * [function(jumps)]]
    values.append(function(all_knots[4]))
    t, first = np.unique(np.concatenate(all_knots), return_index=True)
    v = np.concatenate(values)[first]
    if len(t) == 1:  # a constant column without ties
        t, v = np.append(t, t + 1.0), np.append(v, v)
    return Broken(t, v)


def _quantile_function(x: Float, quantiles: Float, references: Float, normal: bool) -> Float:
    """Return the function of QuantileTransformer, exactly."""
    up = np.interp(x, quantiles, references)
    # of equal quantiles the first as well as the last count
    down = -np.interp(-x, -quantiles[::-1], -references[::-1])
    p = 0.5 * (up + down)
    near = NEAR_END if normal else 0.0
    above = x + near > quantiles[-1] if normal else x == quantiles[-1]
    below = x - near < quantiles[0] if normal else x == quantiles[0]
    p = np.where(below, 0.0, np.where(above, 1.0, p))
    p = np.where(np.isnan(x), np.nan, p)
    return np.clip(stats.norm.ppf(p), -LARGEST_NORMAL, LARGEST_NORMAL) if normal else p


def _between(places: Float, quantiles: Float, references: Float) -> Float:
    """Return further knots, between which the normal quantile function is nearly straight.

    A chord from z to z + h is off by ``h² |z| / 8``, so that knots are equally spaced in
    ``∫ sqrt(|z|) dz``.
    """
    unit = 1.5 * np.sqrt(8.0 * NORMAL_ERROR)
    found = []
    for x0, x1 in pairwise(places):
        p0 = np.interp(x0, quantiles, references)
        p1 = -np.interp(-x1, -quantiles[::-1], -references[::-1])
        z = np.clip(stats.norm.ppf([p0, p1]), -LARGEST_NORMAL, LARGEST_NORMAL)
        s = np.sign(z) * np.abs(z) ** 1.5 / unit
        n = int(np.ceil(s[1] - s[0]))
        if n > 1:
            between = np.linspace(s[0], s[1], n + 1)[1:-1]
            p = stats.norm.cdf(np.sign(between) * (np.abs(between) * unit) ** (2.0 / 3.0))
            found.append(x0 + (x1 - x0) * (p - p0) / (p1 - p0))
    return np.concatenate([np.empty(0), *found])
