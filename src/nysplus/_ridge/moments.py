"""Additive sufficient statistics of a ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nysplus._typing import Float


@dataclass
class Moments:
    """Weighted moments of features φ and targets y about their means.

    Sums are kept about the mean, and two of them are added by the pairwise update of Chan,
    Golub and LeVeque, because raw sums lose all digits if features hardly vary (a kernel so wide
    that K ≈ 1). Sums of several blocks are float64, whatever the type of the features.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    count : float
        Number of observations: a weight of three counts as three, a weight below one as one.
    feature_mean : ndarray of shape (k,)
    target_mean : ndarray of shape (L,)
    scatter : ndarray of shape (k, k)
    cross : ndarray of shape (k, L)
    target_scatter : ndarray of shape (L,)
    """

    weight: float
    count: float
    feature_mean: Float
    target_mean: Float
    scatter: Float
    cross: Float
    target_scatter: Float

    @classmethod
    def zero(cls, k: int, n_outputs: int) -> Moments:
        """Return the moments of no rows, to which the moments of blocks are added."""
        return cls(
            weight=0.0,
            count=0.0,
            feature_mean=np.zeros(k),
            target_mean=np.zeros(n_outputs),
            scatter=np.zeros((k, k)),
            cross=np.zeros((k, n_outputs)),
            target_scatter=np.zeros(n_outputs),
        )

    @classmethod
    def of(cls, features: Float, Y: Float, weight: Float) -> Moments:
        """Return the moments of one block; `features` is overwritten. O(b k²).

        Products are formed, and stored, in the precision of `features`.
        """
        total = float(weight.sum())
        share = weight / total if total > 0 else weight
        dtype = features.dtype
        transposed = features.T
        # the mean of the centred features is the rounding error of the mean
        shift = transposed @ share.astype(dtype)
        transposed -= shift[:, None]
        feature_mean = shift + (transposed @ share.astype(dtype)).astype(np.float64)
        target_mean = share @ Y
        residue = Y - target_mean
        if not (weight == 1.0).all():
            root = np.sqrt(weight)
            transposed *= root.astype(dtype)
            residue *= root[:, None]
        return cls(
            weight=total,
            count=float(np.maximum(weight, weight > 0).sum()),
            feature_mean=feature_mean,
            target_mean=target_mean,
            scatter=transposed @ transposed.T,
            cross=transposed @ residue.astype(dtype),
            target_scatter=(residue**2).sum(axis=0),
        )

    def __iadd__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        share = other.weight / weight
        step = other.feature_mean - self.feature_mean
        target_step = other.target_mean - self.target_mean
        mass = self.weight * share
        self.scatter += other.scatter
        self.cross += other.cross
        self.target_scatter += other.target_scatter
        if mass > 0:
            _add_outer(self.scatter, mass * step, step)
            self.cross += np.outer(mass * step, target_step)
            self.target_scatter += mass * target_step**2
        self.feature_mean += share * step
        self.target_mean += share * target_step
        self.weight = weight
        self.count += other.count
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the large arrays."""
        return int(self.scatter.nbytes + self.cross.nbytes + self.feature_mean.nbytes)

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes

    def mapped(self, transposed: Callable[[Float], Float]) -> Moments:
        """Return the moments of the features ``φÂ``, where ``transposed(G) = ÂᵀG``."""
        return Moments(
            weight=self.weight,
            count=self.count,
            feature_mean=transposed(self.feature_mean[:, None])[:, 0],
            target_mean=self.target_mean,
            scatter=transposed(transposed(self.scatter).T),
            cross=transposed(self.cross),
            target_scatter=self.target_scatter,
        )


def _add_outer(S: Float, u: Float, v: Float) -> None:
    """Add ``uvᵀ`` to S in place, a few rows at a time, so that the product stays in cache."""
    step = max(1, 2**16 // max(len(v), 1))
    for start in range(0, len(u), step):
        S[start : start + step] += np.outer(u[start : start + step], v)
