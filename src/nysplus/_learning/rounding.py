"""Train numbers of few bits: gradients are those of the rounded numbers, which are stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nysplus._bytes.budget import PartBits
from nysplus._learning.gradients import Parameters, Scales
from nysplus._typing import Float
from nysplus.expansion import largest_integer

# Scales that are tried for a column, as shares of the one without clipping: clipping a few large
# numbers leaves finer steps to the others.
SHARES = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
# Scales of columns of zeros.
TINY = float(np.finfo(np.float32).tiny)


class Rounding:
    """Round parameters again and again while they are trained.

    A scale is a fixed multiple of the root mean square of its column, the one of the smallest
    rounding error at the start. The gradient at the rounded numbers is used for the exact ones
    (a straight-through estimator).

    Parameters
    ----------
    parameters : Parameters
        The exact ones at the start.
    bits : PartBits
    unit : ndarray of shape (d,)
        Units of the features: the map that is stored is ``P / unit``.
    """

    def __init__(self, parameters: Parameters, bits: PartBits, unit: Float) -> None:
        self.bits, self._unit = bits, unit.astype(parameters.flat.dtype)[:, None]
        self._ratios = [
            closest_scales(part, n_bits) / _size(part)
            for part, n_bits in zip(self._parts(parameters), bits, strict=True)
        ]
        self.rounded = parameters.like(parameters.flat.copy())
        self._scales: list[Float] = []

    def update(self, parameters: Parameters) -> None:
        """Round the present parameters."""
        q = self.rounded
        found = self._parts(parameters)
        self._scales = [
            (ratio * _size(part)).astype(np.float32)
            for ratio, part in zip(self._ratios, found, strict=True)
        ]
        outs = (q.P, q.Z, q.A)
        for part, scale, n_bits, out in zip(found, self._scales, self.bits, outs, strict=True):
            round_columns(part, scale, n_bits, out)
        q.P[:] *= self._unit

    def result(self) -> Parameters:
        """Return the numbers of the last update, with their scales."""
        return replace(self.rounded, scales=Scales(self.bits, *self._scales))

    def _parts(self, p: Parameters) -> tuple[Float, Float, Float]:
        return p.P / self._unit, p.Z, p.A


def closest_scales(columns: Float, bits: int) -> Float:
    """Return the scale of each column for which rounding changes the column least."""
    least = np.abs(columns).max(axis=0) / largest_integer(bits)
    scales = [np.maximum(share * least, TINY) for share in SHARES]
    rounded = (round_columns(columns, scale, bits, np.empty_like(columns)) for scale in scales)
    errors = np.stack([((one - columns) ** 2).sum(axis=0) for one in rounded])
    found: Float = np.stack(scales)[errors.argmin(axis=0), np.arange(columns.shape[1])]
    return found


def round_columns(columns: Float, scale: Float, bits: int, out: Float) -> Float:
    """Write the nearest multiples of the scales that integers of `bits` bits can have to `out`."""
    most = largest_integer(bits)
    np.divide(columns, scale, out=out)
    np.rint(out, out=out)
    np.clip(out, -most, most, out=out)
    out *= scale
    return out


def _size(columns: Float) -> Float:
    """Return the root mean square of each column, above zero."""
    size: Float = np.sqrt((columns**2).mean(axis=0)) + TINY
    return size
