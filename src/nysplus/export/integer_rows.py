"""Rows of integers: their type, the real number of a step, and their range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.export.fixed_point import MAX_SHORT, Reals

# Types of the numbers of a row.
INPUT_TYPES = ("int16", "int8", "uint8")
# Features whose ranges differ by a larger factor have steps of their own.
COMMON_STEP = 16.0
# Rows of a model are at most this many times as far from zero as rows at its landmarks.
WIDER = 2.0


@dataclass(frozen=True)
class IntegerRows:
    """The integers that a header takes.

    Attributes
    ----------
    type_name : {"int16", "int8", "uint8"}
    scale : ndarray of shape (d,)
        A feature is its integer times this number.
    low, high : ndarray of int64, of shape (d,)
        The range of each integer: the stated range, or the range of the type.
    """

    type_name: str
    scale: Reals
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    @property
    def limits(self) -> tuple[int, int]:
        """The range of the type."""
        limits = np.iinfo(self.type_name)
        return int(limits.min), int(limits.max)

    @property
    def common_scale(self) -> float | None:
        """The scale, if all features have the same; otherwise None."""
        return float(self.scale[0]) if (self.scale == self.scale[0]).all() else None

    def integers(self, X: Float) -> npt.NDArray[np.int64]:
        """Return rows of features as integers: rounded, and clipped to the type."""
        low, high = self.limits
        rounded: npt.NDArray[np.int64] = np.rint(X / self.scale).clip(low, high).astype(np.int64)
        return rounded


def integer_rows(
    n_features: int,
    input_type: str,
    input_range: Any,
    input_scale: Any,
    X: Float | None,
    landmark_rows: Float,
) -> IntegerRows:
    """Return the integers of a model's rows, or raise if they are not defined.

    Parameters
    ----------
    n_features : int
    input_type, input_range, input_scale
        Of :func:`~nysplus.export.to_c`.
    X : ndarray of shape (N, d) or None
        Rows like those that will be predicted.
    landmark_rows : ndarray of shape (N, d)
        Rows near the landmarks, for a range where nothing else tells one.
    """
    if input_type not in INPUT_TYPES:
        raise ValueError(
            f"input_type={input_type!r} is not allowed. Pass one of {', '.join(INPUT_TYPES)}."
        )
    stated = _stated_range(input_range, n_features)
    if stated is None and X is not None:
        stated = X.min(axis=0), X.max(axis=0)
    scale = _scale(input_scale, n_features)
    if scale is None:
        whole = X is not None and bool((np.rint(X) == X).all()) and _fits(X, input_type)
        if input_type != "int16" or whole:
            scale = np.ones(n_features)
        else:
            scale = _powers_of_two(*(stated or _widened(landmark_rows)))
    rows = IntegerRows(input_type, scale, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    least, most = rows.limits
    if stated is None:
        ends = np.full(n_features, least), np.full(n_features, most)
    else:
        ends = rows.integers(stated[0]), rows.integers(stated[1])
    return IntegerRows(input_type, scale, ends[0].astype(np.int64), ends[1].astype(np.int64))


def _fits(X: Float, input_type: str) -> bool:
    limits = np.iinfo(input_type)
    return bool(X.min() >= limits.min and X.max() <= limits.max)


def _stated_range(input_range: Any, n_features: int) -> tuple[Reals, Reals] | None:
    """Return the lower and the upper end for each feature."""
    if input_range is None:
        return None
    try:
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=np.float64), (n_features,)) for end in input_range
        )
    except (TypeError, ValueError):
        low = high = np.full(n_features, np.nan)
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        raise ValueError(
            f"input_range={input_range!r} is not allowed. Pass (low, high), two numbers or two "
            f"arrays of {n_features} numbers."
        )
    return low, high


def _scale(input_scale: Any, n_features: int) -> Reals | None:
    if isinstance(input_scale, str) and input_scale == "auto":
        return None
    try:
        scale = np.broadcast_to(np.asarray(input_scale, dtype=np.float64), (n_features,))
    except (TypeError, ValueError):
        scale = np.zeros(n_features)
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(
            f"input_scale={input_scale!r} is not allowed. Pass 'auto', or the number that a step "
            f"of the integers stands for, one or {n_features} of them, larger than zero."
        )
    return np.array(scale)


def _widened(rows: Float) -> tuple[Reals, Reals]:
    largest = np.full(rows.shape[1], WIDER * float(np.abs(rows).max()))
    return -largest, largest


def _powers_of_two(low: Reals, high: Reals) -> Reals:
    """Return the smallest powers of two with which the ranges are in 16 bits."""
    largest = np.maximum(np.abs(low), np.abs(high))
    all_features = largest.max() or 1.0
    largest = np.where(largest > 0, largest, all_features)
    if largest.max() <= COMMON_STEP * largest.min():
        largest = np.full(len(largest), largest.max())
    scale: Reals = 2.0 ** np.ceil(np.log2(largest / MAX_SHORT))
    return scale
