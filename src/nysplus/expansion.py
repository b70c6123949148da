"""The fitted function and the one pipeline that fits it: map, fold, solve, collapse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._rows.projected import project
from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.kernels import Kernel
from nysplus.kernels.base import CACHED_VALUES

# Names of the types that numbers may be stored in, the largest first.
STORED_TYPES = ("float64", "float32", "float16", "int8")
# Symmetric about zero, which stays exact: −128 is not used.
LARGEST_INT8 = 127
# Fewer rows than this make products slow, whatever stays in cache.
MIN_BLOCK_ROWS = 128


@dataclass(frozen=True)
class PackedArray:
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
class PackedExpansion:
    """The stored numbers of an expansion ``k(xP, Z) A + b`` with dense landmarks.

    Attributes
    ----------
    landmarks, dual_coef, intercept : PackedArray
        Z, A and b.
    projection : PackedArray or None
        P.
    """

    landmarks: PackedArray
    dual_coef: PackedArray
    intercept: PackedArray
    projection: PackedArray | None = None

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


def pack(array: npt.NDArray[Any], dtype: str) -> PackedArray:
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
    return (
        PackedArray(rounded(numbers, checked), checked) if dtype == "int8" else PackedArray(checked)
    )


def stored_bytes(array: Any) -> int:
    """Return the bytes of an array, or of the three arrays of a CSR matrix."""
    if sp.issparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)


@dataclass(frozen=True)
class KernelExpansion:
    """``h(x) = k(xP, Z) A + b``, the standard form of every fitted model (eq. 6).

    Attributes
    ----------
    kernel : Kernel
        With all parameters as numbers.
    landmarks : ndarray or CSR matrix of shape (n, r)
        Z, in the coordinates of xP.
    dual_coef : ndarray of shape (n, L)
        A. Its type is the one that the kernel is evaluated in.
    intercept : ndarray of shape (L,)
        b.
    projection : ndarray of shape (d, r), or (d,) for a diagonal one, optional
        P; by default the rows are taken as they are.
    packed : PackedExpansion, optional
        The same numbers as they are stored, where that takes fewer bytes: Z, A, b and P are then
        what it unpacks to (see :meth:`unpacked`).
    """

    kernel: Kernel
    landmarks: Any
    dual_coef: Float
    intercept: Float
    projection: Float | None = None
    packed: PackedExpansion | None = None

    @classmethod
    def unpacked(cls, kernel: Kernel, storage: PackedExpansion) -> KernelExpansion:
        """Return the function whose numbers are stored this way."""
        P = None if storage.projection is None else storage.projection.unpacked()
        Z, A, b = storage.landmarks, storage.dual_coef, storage.intercept
        return cls(kernel, Z.unpacked(), A.unpacked(), b.unpacked(), P, storage)

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers Z, A, b and P as they are stored."""
        if self.packed is not None:
            return self.packed.n_bytes
        arrays = [self.landmarks, self.dual_coef, self.intercept]
        if self.projection is not None:
            arrays.append(self.projection)
        return sum(stored_bytes(array) for array in arrays)

    @cached_property
    def _columns(self) -> Callable[[Any], Float]:
        """``X ↦ k(XP, Z)``, with what depends on the landmarks alone computed once."""
        dtype = self.dual_coef.dtype
        bound = self.kernel.bind(self.landmarks.astype(dtype, copy=False))
        if self.projection is None:
            return bound
        P = self.projection.astype(dtype, copy=False)
        return lambda X: bound(project(X, P))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_columns"}

    def __call__(self, X: Any, block_rows: int | None = None) -> Float:
        """Return the scores of shape (rows, L). O(n (r + L)) a row, in blocks of `block_rows`."""
        n, r = self.landmarks.shape
        dtype = self.dual_coef.dtype
        width = n + 2 * r
        if self.projection is not None:
            width += X.shape[1]
        # by default K of one block stays in a core's cache between the product that makes it and
        # the product that uses it
        most = block_rows or max(MIN_BLOCK_ROWS, CACHED_VALUES // n)
        slices = row_slices(X.shape[0], width * dtype.itemsize, most)
        if len(slices) == 1:
            return self._block(X)
        scores = np.empty((X.shape[0], self.dual_coef.shape[1]), dtype=dtype)
        for rows, part in zip(
            slices, in_threads(lambda rows: self._block(X[rows]), slices), strict=True
        ):
            scores[rows] = part
        return scores

    def _block(self, X: Any) -> Float:
        scores: Float = self._columns(X.astype(self.dual_coef.dtype, copy=False)) @ self.dual_coef
        scores += self.intercept
        return scores
