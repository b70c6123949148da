"""The fitted function ``h(x) = k(xP, Z) A + b``, and its numbers packed in few bits."""

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
from nysplus._runtime.threads import in_threads, one_blas_thread
from nysplus._typing import Float
from nysplus.kernels import Kernel
from nysplus.kernels.base import CACHED_VALUES

# Storage types, the largest first.
STORED_TYPES = ("float64", "float32", "float16", "int8")
# The range is symmetric, so that zero is stored exactly: −128 is not used.
LARGEST_INT8 = 127
# Fewer rows than this make products slow, whatever stays in cache.
MIN_BLOCK_ROWS = 128


def stored_bytes(*arrays: Any) -> int:
    """Return the bytes of arrays; CSR matrices count their three arrays, None counts nothing."""
    parts: list[npt.NDArray[Any]] = []
    for array in arrays:
        if sp.issparse(array):
            parts += [array.data, array.indices, array.indptr]
        elif array is not None:
            parts.append(array)
    return sum(int(part.nbytes) for part in parts)


@dataclass(frozen=True)
class PackedArray:
    """An array in its storage type.

    Attributes
    ----------
    values : ndarray of float64, float32, float16 or int8
    scale : ndarray of float32, of the shape of a row, or None
        The factor of each column of int8 values; None for the other types.
    """

    values: npt.NDArray[Any]
    scale: npt.NDArray[np.float32] | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of the values and the scales."""
        return stored_bytes(self.values, self.scale)

    def unpacked(self) -> Float:
        """Return the numbers to compute with: float64 unchanged, every other type in float32."""
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
        parts = (self.landmarks, self.dual_coef, self.intercept, self.projection)
        return sum(part.n_bytes for part in parts if part is not None)


def int8_scale(array: Float) -> npt.NDArray[np.float32]:
    """Return ``max|v| / 127`` of every column in float32; 0 for a column of zeros."""
    return np.asarray(np.abs(array).max(axis=0) / LARGEST_INT8, dtype=np.float32)


def rounded(array: Float, scale: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Return ``array / scale`` rounded half to even, and clipped to −127 … 127."""
    steps = np.zeros(array.shape)
    np.divide(array, scale, out=steps, where=scale > 0)
    return np.rint(steps).clip(-LARGEST_INT8, LARGEST_INT8).astype(np.int8)


def pack_array(array: npt.NDArray[Any], dtype: str) -> PackedArray:
    """Return an array in the storage type `dtype`. O(size).

    Parameters
    ----------
    array : ndarray of one or two axes
        Finite numbers.
    dtype : {"float64", "float32", "float16", "int8"}
        For int8 every column has its own scale, ``max|v| / 127``, and an error of at most half
        the scale.
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
        A. The kernel is evaluated in its floating type.
    intercept : ndarray of shape (L,)
        b.
    projection : ndarray of shape (d, r), or (d,) for a diagonal one, optional
        P; by default rows are not mapped.
    packed : PackedExpansion, optional
        The same numbers in their storage types: Z, A, b and P are then the unpacked numbers (see
        :meth:`unpacked`).
    """

    kernel: Kernel
    landmarks: Any
    dual_coef: Float
    intercept: Float
    projection: Float | None = None
    packed: PackedExpansion | None = None

    @classmethod
    def unpacked(cls, kernel: Kernel, packed: PackedExpansion) -> KernelExpansion:
        """Return the function of stored numbers."""
        P = None if packed.projection is None else packed.projection.unpacked()
        Z, A, b = packed.landmarks, packed.dual_coef, packed.intercept
        return cls(kernel, Z.unpacked(), A.unpacked(), b.unpacked(), P, packed)

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers Z, A, b and P in their storage types."""
        if self.packed is not None:
            return self.packed.n_bytes
        return stored_bytes(self.landmarks, self.dual_coef, self.intercept, self.projection)

    @cached_property
    def _columns(self) -> Callable[[Any], Float]:
        """``X ↦ k(XP, Z)``, with every term of the landmarks alone computed once."""
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
        # by default the kernel matrix of a block stays in a core's cache until it meets A
        most = block_rows or max(MIN_BLOCK_ROWS, CACHED_VALUES // n)
        slices = row_slices(X.shape[0], width * dtype.itemsize, most)
        if len(slices) == 1:
            with one_blas_thread():  # as in the threads of more than one block
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
