"""Features of rows of integers: as given, scaled, or the cosines of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nysplus.encoding.image_code import ImageCode
from nysplus.export.fixed_point import (
    MAX_SHORT,
    MAX_SUM,
    Factors,
    Integers,
    RangeError,
    Reals,
    product,
)
from nysplus.export.integer_rows import IntegerRows

# Bits of a cosine at most and at least: with 12 bits, intermediate sums keep 13.
COSINE_BITS, MIN_COSINE_BITS = 12, 7


class IntegerFeatures(Protocol):
    """Integers f of a row: the features of the model are ``f · unit + bias``."""

    @property
    def unit(self) -> Reals:
        """The real number of a step, of shape (D,)."""

    @property
    def bias(self) -> Reals:
        """Summand of shape (D,)."""

    @property
    def largest(self) -> npt.NDArray[np.int64]:
        """Largest absolute values, of shape (D,)."""

    def of(self, rows: Integers) -> npt.NDArray[np.int64]:
        """Return the features of rows of integers of shape (N, d)."""


@dataclass(frozen=True)
class GivenFeatures:
    """The integers of a row: clipped, minus an offset, times a factor; all three are optional.

    Attributes
    ----------
    unit, bias, largest
        See :class:`IntegerFeatures`.
    clip : tuple of int or None
        Ends of the range that rows are clipped to.
    offset : ndarray of int16 or None
    factors : Factors or None
    bound : int
        Products with factors are clipped to ± this number.
    """

    unit: Reals
    bias: Reals
    largest: npt.NDArray[np.int64]
    clip: tuple[int, int] | None = None
    offset: npt.NDArray[np.int16] | None = None
    factors: Factors | None = None
    bound: int = 0

    def of(self, rows: Integers) -> npt.NDArray[np.int64]:
        """Return the features of rows of integers."""
        found = rows.astype(np.int64)
        if self.clip is not None:
            found = found.clip(*self.clip)
        if self.offset is not None:
            found = found - self.offset
        if self.factors is not None:
            found = self.factors.times(found).clip(-self.bound, self.bound)
        return found


def given_features(
    rows: IntegerRows, slope: Reals, start: Reals, weights: Integers | None
) -> GivenFeatures:
    """Return features ``x · slope + start`` of integers x.

    Parameters
    ----------
    rows : IntegerRows
    slope, start : ndarray of shape (d,)
    weights : ndarray of shape (d, r) or None
        The integers of a map that features are multiplied by: sums of products must fit in 32 bits,
        and the features need a common unit. None without a map.
    """
    offset = None
    if start.any():
        offset = np.rint(-start / slope).clip(-MAX_SHORT, MAX_SHORT).astype(np.int16)
    moved = start if offset is None else start + slope * offset
    away = np.zeros(len(slope)) if offset is None else offset.astype(np.float64)

    def largest(low: Reals, high: Reals) -> npt.NDArray[np.int64]:
        ends = np.maximum(np.abs(low - away), np.abs(high - away))
        return np.broadcast_to(ends, slope.shape).astype(np.int64)

    if weights is None:
        return GivenFeatures(slope, moved, largest(*_ends(rows.limits)), offset=offset)
    total = np.abs(weights.astype(np.int64))
    if (slope == slope[0]).all():
        own = int(rows.low.min()), int(rows.high.max())
        for ends, clip in ((rows.limits, None), (own, own)):
            most = largest(*_ends(ends))
            if (most @ total).max() <= MAX_SUM:
                return GivenFeatures(slope, moved, most, clip, offset)
    # in a common unit, in which the stated ranges, and the sums of the map, fit
    far = np.abs(slope) * np.maximum(np.abs(rows.low - away), np.abs(rows.high - away))
    bound = min(MAX_SHORT, MAX_SUM // max(int(total.sum(axis=0).max()), 1))
    unit = float(far.max()) / bound or 1.0
    factors = Factors.of(slope / unit)
    d = len(slope)
    # products are rounded down, by half a step on average
    return GivenFeatures(
        np.full(d, unit), moved + unit / 2.0, np.full(d, bound), None, offset, factors, bound
    )


def _ends(ends: tuple[int, int]) -> tuple[Reals, Reals]:
    return np.array(float(ends[0])), np.array(float(ends[1]))


@dataclass(frozen=True)
class CosineFeatures:
    """The first cosines of images in integers: along the height, then along the width.

    Attributes
    ----------
    unit, bias, largest
        See :class:`IntegerFeatures`.
    code : ImageCode
    bits : int
        Cosines are integers, of ``2^bits`` for the number one.
    shifts : tuple of int
        Of the sums along the height and along the width, which are rounded.
    clip : tuple of int or None
        Ends of the range that rows are clipped to.
    """

    unit: Reals
    bias: Reals
    largest: npt.NDArray[np.int64]
    code: ImageCode
    bits: int
    shifts: tuple[int, int]
    clip: tuple[int, int] | None = None

    @property
    def tables(self) -> dict[int, npt.NDArray[np.int16]]:
        """The cosines of a quarter turn, for each number of pixels along an axis."""
        return {n: quarter_turn(n, self.bits) for n in self.code.shape[:2]}

    def of(self, rows: Integers) -> npt.NDArray[np.int64]:
        """Return the cosines of images."""
        first, second = axis_cosines(self.code, self.bits)
        clipped = rows if self.clip is None else rows.clip(*self.clip)
        images = clipped.reshape(-1, *self.code.shape)
        # axes: image, width, channel, cosine along the height
        high = _rounded(product(images.transpose(0, 2, 3, 1), first), self.shifts[0])
        # axes: image, channel, cosine along the height, cosine along the width
        both = _rounded(product(high.transpose(0, 2, 3, 1), second), self.shifts[1])
        return both.transpose(0, 2, 3, 1).reshape(len(rows), -1)


def _rounded(sums: npt.NDArray[np.int64], shift: int) -> npt.NDArray[np.int64]:
    return (sums + ((1 << shift) >> 1)) >> shift


def quarter_turn(n: int, bits: int) -> npt.NDArray[np.int16]:
    """Return ``cos(π t / 2n)`` for t = 0, …, n, and last the root of ½."""
    cosines = np.append(np.cos(np.pi * np.arange(n + 1) / (2 * n)), math.sqrt(0.5))
    return np.rint(2.0**bits * cosines).astype(np.int16)


def axis_cosines(code: ImageCode, bits: int) -> tuple[Integers, Integers]:
    """Return the integers of the cosines along both axes, without their norm ``√(2 / n)``."""
    found = []
    for n, k in zip(code.shape[:2], code.code_shape[:2], strict=True):
        table = quarter_turn(n, bits).astype(np.int64)
        turn = (2 * np.arange(n)[:, None] + 1) * np.arange(k) % (4 * n)
        turn = np.minimum(turn, 4 * n - turn)
        cosines = np.where(
            turn > n, -table[np.minimum(2 * n - turn, n)], table[np.minimum(turn, n)]
        )
        cosines[:, 0] = table[-1]
        found.append(cosines)
    return found[0], found[1]


def cosine_features(
    code: ImageCode, rows: IntegerRows, center: Reals, weights: Integers | None
) -> CosineFeatures:
    """Return the cosines of images whose pixels are integers, minus a centre.

    Parameters
    ----------
    code : ImageCode
    rows : IntegerRows
    center : ndarray of shape (D,)
    weights : ndarray of shape (D, r) or None
        See :func:`given_features`.
    """
    scale = rows.common_scale
    if scale is None:
        raise ValueError("input_scale must be one number for images, whose pixels have one unit.")
    own = int(rows.low.min()), int(rows.high.max())
    # sums keep fewer bits of a narrow range, unless rows are clipped to it
    clip = own if 2 * max(map(abs, own)) <= max(map(abs, rows.limits)) else None
    pixel = max(map(abs, clip or rows.limits))
    for bits in range(COSINE_BITS, MIN_COSINE_BITS - 1, -1):
        first, second = (np.abs(M).sum(axis=0) for M in axis_cosines(code, bits))
        if int(first.max()) * pixel <= MAX_SUM:
            break
    else:
        raise RangeError(
            f"Images of {code.shape} with pixels up to {pixel} do not fit in 32-bit sums. Pass a "
            "smaller input_range, or a larger input_scale."
        )
    inner = min(MAX_SHORT, MAX_SUM // int(second.max()))
    along_height = _shift(int(first.max()) * pixel, inner)
    most = _rounded(first * pixel, along_height)
    bound = np.outer(most, second).repeat(code.shape[2])
    totals = np.abs(weights.astype(np.int64)) if weights is not None else np.ones((bound.size, 1))
    along_width = _shift(int(bound.max()), MAX_SHORT)
    while int((_rounded(bound, along_width) @ totals).max()) > MAX_SUM:
        along_width += 1
    norm = 2.0 / math.sqrt(code.shape[0] * code.shape[1])
    unit = scale * norm * 2.0 ** (along_height + along_width - 2 * bits)
    largest = _rounded(bound, along_width)
    shifts = (along_height, along_width)
    return CosineFeatures(np.full(bound.size, unit), -center, largest, code, bits, shifts, clip)


def _shift(bound: int, most: int) -> int:
    """Return the least shift that makes a rounded number at most `most`."""
    shift = 0
    while (bound + ((1 << shift) >> 1)) >> shift > most:
        shift += 1
    return shift
