"""Numbers of a model as they are stored: float64, float32, float16, or int8 with a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._targets import Float

# Names of the types that numbers may be stored in, the largest first.
STORED_TYPES = ("float64", "float32", "float16", "int8")
# Symmetric about zero, which stays exact: −128 is not used.
LARGEST_INT8 = 127


@dataclass(frozen=True)
class Stored:
    """An array as it is stored.

    Attributes
    ----------
    values : ndarray of float64, float32, float16 or int8
    scale : ndarray of float32, of the shape of a row, or None
        What a one is in each column of int8 values; None for the other types.
    """

    values: npt.NDArray[Any]
    scale: npt.NDArray[np.float32] | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of the values and their scales."""
        return int(self.values.nbytes + (0 if self.scale is None else self.scale.nbytes))

    def unpacked(self) -> Float:
        """Return the numbers to compute with: float64 as they are, all others in float32."""
        if self.values.dtype == np.float64:
            return self.values
        numbers: Float = self.values.astype(np.float32)
        return numbers if self.scale is None else numbers * self.scale


@dataclass(frozen=True)
class Storage:
    """The stored numbers of an expansion ``k(xP, Z) A + b`` with dense landmarks.

    Attributes
    ----------
    landmarks, dual_coef, intercept : Stored
        Z, A and b.
    projection : Stored or None
        P.
    """

    landmarks: Stored
    dual_coef: Stored
    intercept: Stored
    projection: Stored | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of all numbers and scales."""
        parts = [self.landmarks, self.dual_coef, self.intercept]
        if self.projection is not None:
            parts.append(self.projection)
        return sum(part.n_bytes for part in parts)


def int8_scale(array: Float) -> npt.NDArray[np.float32]:
    """Return ``max|v| / 127`` of every column in float32; 0 for a column of zeros."""
    return np.asarray(np.abs(array).max(axis=0) / LARGEST_INT8, dtype=np.float32)


def rounded(array: Float, scale: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Return the nearest multiples of the scales, halves to even, at most 127 of them."""
    steps = np.zeros(array.shape)
    np.divide(array, scale, out=steps, where=scale > 0)
    return np.rint(steps).clip(-LARGEST_INT8, LARGEST_INT8).astype(np.int8)


def pack(array: npt.NDArray[Any], dtype: str) -> Stored:
    """Return an array stored in the type `dtype`. O(size).

    Parameters
    ----------
    array : ndarray of one or two axes
        Finite numbers.
    dtype : {"float64", "float32", "float16", "int8"}
        For int8 every column has its own scale, ``max|v| / 127``, and an error of at most half
        of it.
    """
    if dtype not in STORED_TYPES:
        raise ValueError(f"dtype={dtype!r} is not known. Allowed are {list(STORED_TYPES)}.")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    with np.errstate(over="ignore"):
        checked = int8_scale(numbers) if dtype == "int8" else numbers.astype(dtype)
    if not np.isfinite(checked).all():
        raise ValueError(
            f"Numbers up to {np.abs(numbers).max():g} do not fit in {dtype}. Scale the features, "
            "or use a larger type."
        )
    return Stored(rounded(numbers, checked), checked) if dtype == "int8" else Stored(checked)
