"""The fitted function ``h(x) = k((E(x) − c)P, Z) A + E(x)B + b``, and its numbers in few bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._rows.projected import project
from nysplus._rows.slicing import float_dtype, row_slices
from nysplus._runtime.threads import in_threads, one_blas_thread
from nysplus._typing import Float
from nysplus.encoding.code import Code
from nysplus.kernels import Kernel
from nysplus.kernels.base import CACHED_VALUES

# Bits of a stored integer, at least and at most.
MIN_BITS, MAX_BITS = 2, 8
# Storage types of an array, the largest first.
FLOATING_TYPES = ("float64", "float32", "float16")
STORED_TYPES = (*FLOATING_TYPES, *(f"int{bits}" for bits in range(MAX_BITS, MIN_BITS - 1, -1)))
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


def largest_integer(bits: int) -> int:
    """Return the largest integer of `bits` bits: they are −m … m with ``m = 2^(bits − 1) − 1``.

    The range is symmetric, so that zero is stored exactly.
    """
    return int(2 ** (bits - 1)) - 1


def bits_in_bytes(size: int, bits: int) -> int:
    """Return the bytes of `size` values of `bits` bits without gaps: ``⌈size · bits / 8⌉``."""
    return -(-size * bits // 8)


@dataclass(frozen=True)
class PackedArray:
    """An array in its storage type: floating numbers, or integers with a scale for each column.

    A number of integers is ``value · scale + offset``, in float32.

    Attributes
    ----------
    values : ndarray of float64, float32, float16 or int8
        Integers of fewer than 8 bits are int8 in memory, and packed in files and exports.
    scale : ndarray of float32 or float16, of the shape of a row, or None
        The factor of each column of integers; None for floating values.
    bits : int, default=8
        Bits of an integer, 2 to 8: the values are in −m … m, ``m = 2^(bits − 1) − 1``. It stays 8
        for floating values.
    offset : ndarray of float32 or float16, of the shape of a row, or None
        The number that is added to each column of integers; None for zero.
    """

    values: npt.NDArray[Any]
    scale: npt.NDArray[Any] | None = None
    bits: int = 8
    offset: npt.NDArray[Any] | None = None

    @property
    def type_name(self) -> str:
        """The storage type of the values, such as "float16" or "int4"."""
        return f"int{self.bits}" if self.values.dtype == np.int8 else str(self.values.dtype.name)

    @property
    def n_bytes(self) -> int:
        """Bytes of the values, the scales and the offsets."""
        bits = self.bits if self.values.dtype == np.int8 else 8 * self.values.itemsize
        return bits_in_bytes(self.values.size, bits) + stored_bytes(self.scale, self.offset)

    @property
    def factor(self) -> npt.NDArray[Any] | None:
        """The scale, if the numbers are just the values times the scale; otherwise None."""
        return self.scale if self.offset is None else None

    def unpacked(self) -> Float:
        """Return the numbers to compute with: float64 unchanged, every other type in float32."""
        if self.values.dtype == np.float64:
            return self.values
        numbers: Float = self.values.astype(np.float32)
        if self.scale is not None:
            numbers *= self.scale
        if self.offset is not None:
            numbers += self.offset
        return numbers


@dataclass(frozen=True)
class PackedExpansion:
    """The stored numbers of an expansion ``k((x − c)P, Z) A + xB + b`` with dense landmarks.

    Attributes
    ----------
    landmarks, dual_coef, intercept : PackedArray
        Z, A and b.
    projection, center, linear : PackedArray or None
        P, c and B.
    """

    landmarks: PackedArray
    dual_coef: PackedArray
    intercept: PackedArray
    projection: PackedArray | None = None
    center: PackedArray | None = None
    linear: PackedArray | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of all numbers and scales."""
        parts = (getattr(self, part.name) for part in fields(self))
        return sum(part.n_bytes for part in parts if part is not None)


def integer_bits(dtype: str) -> int | None:
    """Return the bits of an integer type such as "int4"; None for a floating type."""
    return None if dtype in FLOATING_TYPES else int(dtype.removeprefix("int"))


def column_scale(array: Float, bits: int, scale_type: str = "float32") -> npt.NDArray[Any]:
    """Return ``max|v| / m`` of every column; 0 for a column of zeros."""
    return np.asarray(np.abs(array).max(axis=0) / largest_integer(bits), dtype=scale_type)


def rounded(array: Float, scale: npt.NDArray[Any], bits: int) -> npt.NDArray[np.int8]:
    """Return ``array / scale`` rounded half to even, and clipped to −m … m."""
    steps, m = np.zeros(array.shape), largest_integer(bits)
    np.divide(array, scale, out=steps, where=scale > 0)
    return np.rint(steps).clip(-m, m).astype(np.int8)


def pack_array(array: npt.NDArray[Any], dtype: str, scale_type: str = "float32") -> PackedArray:
    """Return an array in the storage type `dtype`. O(size).

    Parameters
    ----------
    array : ndarray of one or two axes
        Finite numbers.
    dtype : {"float64", "float32", "float16", "int8", "int7", …, "int2"}
        For integers every column has its own scale, ``max|v| / m``, and an error of at most half
        the scale.
    scale_type : {"float32", "float16"}, default="float32"
        Type of the scales of integers.
    """
    if dtype not in STORED_TYPES:
        raise ValueError(f"dtype={dtype!r} is not known. Allowed are {list(STORED_TYPES)}.")
    numbers, bits = np.ascontiguousarray(array, dtype=np.float64), integer_bits(dtype)
    with np.errstate(over="ignore"):
        checked = numbers.astype(dtype) if bits is None else column_scale(numbers, bits, scale_type)
    if not np.isfinite(checked).all():
        raise ValueError(
            f"Numbers up to {np.abs(numbers).max():g} do not fit in {dtype}. Scale the features, "
            "or use a larger type."
        )
    if bits is None:
        return PackedArray(checked)
    return PackedArray(rounded(numbers, checked, bits), checked, bits)


def _rounded(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows in a floating type, with its largest number in place of larger ones."""
    with np.errstate(over="ignore"):
        rows = X.astype(dtype, copy=False)
    stored = rows.data if sp.issparse(rows) else rows
    if X.dtype != dtype and not np.isfinite(stored).all():
        np.nan_to_num(stored, copy=False)
    return rows


@dataclass(frozen=True)
class KernelExpansion:
    """``h(x) = k((E(x) − c)P, Z) A + E(x)B + b``, the form of every fitted model (eq. 6).

    Attributes
    ----------
    kernel : Kernel
        With all parameters as numbers.
    landmarks : ndarray or CSR matrix of shape (n, r)
        Z, in the coordinates of (E(x) − c)P. There may be none beside a linear term.
    dual_coef : ndarray of shape (n, L)
        A. The kernel is evaluated in its floating type.
    intercept : ndarray of shape (L,)
        b.
    projection : ndarray of shape (d, r), or (d,) for a diagonal one, optional
        P; by default rows are not mapped.
    packed : PackedExpansion, optional
        The same numbers in their storage types: Z, A, b, P and B are then the unpacked numbers
        (see :meth:`unpacked`).
    center : ndarray of shape (d,), optional
        c, by default zero. It is subtracted in the type of the rows, before they are rounded to
        the type of A, so that features far from zero keep their digits. Only kernels of
        differences x − z have one.
    encoder : Code, optional
        E, from the raw numbers of a table or an image to code columns; by default rows are used as
        given.
    linear : ndarray of shape (d, L), optional
        B, by default zero.
    """

    kernel: Kernel
    landmarks: Any
    dual_coef: Float
    intercept: Float
    projection: Float | None = None
    packed: PackedExpansion | None = None
    center: Float | None = None
    encoder: Code | None = None
    linear: Float | None = None

    @classmethod
    def unpacked(cls, kernel: Kernel, packed: PackedExpansion) -> KernelExpansion:
        """Return the function of stored numbers."""
        parts = {part.name: getattr(packed, part.name) for part in fields(packed)}
        numbers = {name: part.unpacked() for name, part in parts.items() if part is not None}
        return cls(kernel, packed=packed, **numbers)

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers Z, A, b, P, c, B and E in their storage types."""
        code = 0 if self.encoder is None else self.encoder.n_bytes
        if self.packed is not None:
            return code + self.packed.n_bytes
        return code + stored_bytes(*(getattr(self, part.name) for part in fields(PackedExpansion)))

    def moved(self, center: Float) -> KernelExpansion:
        """Return the same function, without a map, with a centre and landmarks about it."""
        Z = self.landmarks.astype(np.float64) - center.astype(np.float64)
        Z = Z.astype(self.landmarks.dtype)
        return replace(self, landmarks=Z, packed=None, center=center)

    def with_center(self, center: Float | None) -> KernelExpansion:
        """Return ``x ↦ h(x − c)`` for a function h without a centre."""
        if center is None:
            return self
        assert self.center is None
        packed = self.packed
        if packed is not None:
            packed = replace(packed, center=PackedArray(center))
        return replace(self, center=center, packed=packed)._raised(-center)

    def without_center(self) -> KernelExpansion:
        """Return the function of rows from which the centre is already subtracted."""
        if self.center is None:
            return self
        packed = None if self.packed is None else replace(self.packed, center=None)
        return replace(self, center=None, packed=packed)._raised(self.center)

    def _raised(self, step: Float) -> KernelExpansion:
        """Return the function with the linear term of a row added to the intercept."""
        if self.linear is None:
            return self
        b = self.intercept + step.astype(np.float64) @ self.linear.astype(np.float64)
        b = b.astype(self.intercept.dtype)
        packed = self.packed
        if packed is not None:
            packed = replace(packed, intercept=PackedArray(b))
        return replace(self, intercept=b, packed=packed)

    def given_landmarks(self) -> Any:
        """Return the landmarks in the coordinates of xP, without a centre: ``Z + cP``."""
        if self.center is None:
            return self.landmarks
        return self.landmarks + project(self.center.astype(np.float64)[None], self.projection)

    def origins(self) -> Any:
        """Return rows that are mapped to the landmarks, or close to them; c is not added."""
        Z, P = self.landmarks, self.projection
        if P is None:
            return Z.astype(float_dtype(Z.dtype), copy=False)
        if P.ndim == 2:
            return Z @ np.linalg.pinv(P)
        return project(Z, np.divide(1.0, P, out=np.zeros(len(P)), where=P != 0))

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
        return self._in_blocks(X, self._block, (self.dual_coef.shape[1],), block_rows)

    @property
    def measures_similarity(self) -> bool:
        """Whether the largest kernel value of a row tells how close the nearest landmark is."""
        return self.kernel.unit_diagonal and self.landmarks.shape[0] > 0

    def similarity(self, X: Any) -> Float:
        """Return the largest kernel value of each row, ``max_j k((E(x) − c)P, z_j)``."""
        return self._in_blocks(X, self._largest_value, ())

    def _in_blocks(
        self,
        X: Any,
        function: Callable[[Any], Float],
        shape: tuple[int, ...],
        block_rows: int | None = None,
    ) -> Float:
        """Return a function of rows that has results of a shape, in blocks and in threads."""
        n, r = self.landmarks.shape
        dtype = self.dual_coef.dtype
        d = X.shape[1] if self.encoder is None else self.encoder.n_columns
        width = n + 2 * r
        if self.projection is not None:
            width += d
        if self.center is not None:
            width += 2 * d  # in float64
        if self.encoder is not None:
            width += d
        # by default the kernel matrix of a block stays in a core's cache until it meets A
        most = block_rows or max(MIN_BLOCK_ROWS, CACHED_VALUES // max(n, 1))
        slices = row_slices(X.shape[0], width * dtype.itemsize, most)
        if len(slices) == 1:
            with one_blas_thread():  # as in the threads of more than one block
                return function(X)
        results = np.empty((X.shape[0], *shape), dtype=dtype)
        for rows, part in zip(
            slices, in_threads(lambda rows: function(X[rows]), slices), strict=True
        ):
            results[rows] = part
        return results

    def _block(self, X: Any) -> Float:
        dtype = self.dual_coef.dtype
        if self.encoder is not None:
            X = self.encoder(X, dtype)
        scores = self._kernel_part(X)
        if self.linear is not None:
            scores += _rounded(X, dtype) @ self.linear.astype(dtype, copy=False)
        scores += self.intercept
        return scores

    def _largest_value(self, X: Any) -> Float:
        if self.encoder is not None:
            X = self.encoder(X, self.dual_coef.dtype)
        largest: Float = self._kernel_values(X).max(axis=1)
        return largest

    def _kernel_part(self, X: Any) -> Float:
        """Return ``k((X − c)P, Z) A`` for rows that are encoded."""
        (n, L), dtype = self.dual_coef.shape, self.dual_coef.dtype
        if n == 0:
            return np.zeros((X.shape[0], L), dtype=dtype)
        return self._kernel_values(X) @ self.dual_coef

    def _kernel_values(self, X: Any) -> Float:
        """Return ``k((X − c)P, Z)`` for rows that are encoded."""
        dtype = self.dual_coef.dtype
        if self.center is not None:
            wide = np.result_type(float_dtype(X.dtype), dtype)
            X = project(X.astype(wide, copy=False), None, self.center)
        return self._columns(_rounded(X, dtype))
