"""Means with Student intervals, medians with their range."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Estimate:
    """A mean over trials with its 95 % interval; the interval is NaN for a single trial."""

    mean: float
    low: float
    high: float
    trials: int

    @property
    def has_interval(self) -> bool:
        """Whether there were two trials or more."""
        return self.trials > 1

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Return the estimate on another, increasing scale."""
        return Estimate(function(self.mean), function(self.low), function(self.high), self.trials)


def estimate(values: Iterable[float]) -> Estimate:
    """Return the mean of ``values`` with its 95 % interval by Student's t."""
    x = np.fromiter(values, dtype=np.float64)
    if len(x) == 0:
        raise ValueError("estimate() got no value. Pass at least one.")
    mean = float(x.mean())
    if len(x) == 1:
        return Estimate(mean, math.nan, math.nan, 1)
    half = float(stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x)))
    return Estimate(mean, mean - half, mean + half, len(x))


def median_range(values: Iterable[float]) -> tuple[float, float, float]:
    """Return the median, the smallest and the largest value; NaN where there is none."""
    x = list(values) or [math.nan]
    return statistics.median(x), min(x), max(x)
