"""Count the bytes of a model before it is fitted, and list the sizes within a budget.

The bytes of a fitted model are its `n_bytes` (:class:`~nysplus.expansion.KernelExpansion`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nysplus._typing import Float
from nysplus._validation import is_count
from nysplus.expansion import MAX_BITS, bits_in_bytes, stored_bytes

Built = TypeVar("Built")

# Bytes of a unit, which may be written in any case.
UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
# A float32 number (a scale of a column of integers, an intercept), or an index of a CSR matrix.
NUMBER_BYTES = 4
# Sizes that are compared differ by this factor at least.
MIN_GROWTH = 1.25
# More landmarks cost minutes, whatever the budget.
MAX_LANDMARKS = 2000
# Landmarks per row at most: one for eight rows; one for two up to a number that costs little.
LANDMARK_SHARE, FEW_LANDMARKS, FEW_LANDMARKS_SHARE = 0.125, 500, 0.5


class NoRoomError(ValueError):
    """A budget has no room for the smallest model of a kind."""


class PartBits(NamedTuple):
    """The bits of each number of the parts of a model.

    2 to 8 bits are integers with a scale for each column; 16, 32 and 64 bits are floating numbers.
    """

    map: int = 8
    landmarks: int = 8
    coefficients: int = 8


class ScaleTypes(NamedTuple):
    """The floating types of scales, offsets and intercepts beside integers.

    Attributes
    ----------
    features : str
        Of the scales of the map, and of the scales and offsets of the landmarks.
    scores : str
        Of the scales of the coefficients, and of the intercept.
    """

    features: str = "float32"
    scores: str = "float32"


# Features and targets may have any unit.
ANY_UNIT = ScaleTypes()
# Storage types of a model, the smallest first. An integer type is named after its landmarks, which
# are most of the numbers. The coefficients of many landmarks are large numbers that cancel: below 6
# bits, scores are lost faster than landmarks are gained. A linear term has the bits of the map.
STORAGE = {
    "int4": PartBits(map=6, landmarks=4, coefficients=6),
    "int5": PartBits(map=8, landmarks=5, coefficients=6),
    "int8": PartBits(8, 8, 8),
    "float16": PartBits(16, 16, 16),
    "float32": PartBits(32, 32, 32),
    "float64": PartBits(64, 64, 64),
}
# Storage types beside few bits: float64 is never worth its bytes.
TYPES = ("int8", "float16", "float32")
# Columns of a landmark beyond which 4 bits are enough: errors of many columns average out.
FEW_COLUMNS = 32


def scale_type(dtype: str) -> str:
    """Return the type of the scales of landmarks: beside few bits, float32 would be too large.

    The scales of all other parts have float32: targets and features may have any unit.
    """
    return "float16" if STORAGE[dtype].landmarks < MAX_BITS else "float32"


@dataclass(frozen=True)
class Size:
    """The size of a model.

    Attributes
    ----------
    n : int
        Number of landmarks.
    rank : int or None
        Columns of the linear map; None without a map.
    dtypes : tuple of str
        Storage types to choose from, the smallest first. Empty: numbers keep the type in which
        they were computed.
    bits : PartBits or None
        Bits that the numbers of a learned model are trained in; None where they are rounded to
        one of `dtypes` afterwards.
    """

    n: int
    rank: int | None = None
    dtypes: tuple[str, ...] = ()
    bits: PartBits | None = None


@dataclass(frozen=True)
class ModelShape:
    """The shape of a model without its number of landmarks; the bytes follow from both.

    Attributes
    ----------
    r, L : int
        Columns of a landmark, and outputs.
    map_shape : tuple of int
        (d, r) for a linear map from d features, (d,) for a diagonal one, () without a map.
    csr_bytes : float or None
        Bytes of a typical CSR landmark in float32, with its indices; None for dense landmarks.
    scales : ScaleTypes
        Of a model that is trained in few bits.
    """

    r: int
    L: int
    map_shape: tuple[int, ...] = ()
    csr_bytes: float | None = None
    scales: ScaleTypes = ANY_UNIT

    @property
    def rank(self) -> int | None:
        """Columns of a linear map that is not diagonal."""
        return self.r if len(self.map_shape) == 2 else None

    @property
    def map_size(self) -> int:
        """Numbers of the map."""
        return math.prod(self.map_shape) if self.map_shape else 0

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The available storage types: CSR landmarks have float32 only."""
        if self.csr_bytes is not None:
            return ("float32",)
        return ("int5" if self.r <= FEW_COLUMNS else "int4", *TYPES)

    def n_bytes(self, dtype: str, n: int) -> float:
        """Return the bytes of a model with `n` landmarks, rounded to a storage type."""
        if self.csr_bytes is not None:  # row pointers are one more than rows
            fixed = NUMBER_BYTES * (self.L + 1 + self.map_size)
            return fixed + n * (self.csr_bytes + NUMBER_BYTES * self.L)
        bits = STORAGE[dtype]
        n_bytes = self._number_bytes(bits, n) + NUMBER_BYTES * self.L  # the intercept
        if bits.landmarks <= MAX_BITS:
            n_bytes += np.dtype(scale_type(dtype)).itemsize * self.r + NUMBER_BYTES * self.L
            n_bytes += NUMBER_BYTES * self.r if len(self.map_shape) == 2 else 0
        return n_bytes

    def _number_bytes(self, bits: PartBits, n: int) -> int:
        """Return the bytes of P, Z and A without scales."""
        if len(self.map_shape) == 1:  # counted in float32, its type beside integers
            bits = bits._replace(map=8 * NUMBER_BYTES)
        sizes = self.map_size, n * self.r, n * self.L
        return sum(bits_in_bytes(*part) for part in zip(sizes, bits, strict=True))

    def bytes_in(self, bits: PartBits, n: int) -> int:
        """Return the bytes of a model with a dense map and `n` landmarks, trained in few bits.

        Columns of the map, the landmarks and the coefficients have scales, those of the landmarks
        offsets as well.
        """
        features, scores = (np.dtype(name).itemsize for name in self.scales)
        return self._number_bytes(bits, n) + 3 * self.r * features + 2 * self.L * scores

    def least_bytes(self) -> int:
        """Return the bytes of a model with one landmark in its smallest storage type."""
        return int(min(self.n_bytes(dtype, 1) for dtype in self.dtypes))


@dataclass(frozen=True)
class Budget:
    """A number of bytes for the numbers of a model.

    Attributes
    ----------
    n_bytes : int
    reserved : int
        Bytes that are taken already, by the centre and the encoder.
    """

    n_bytes: int
    reserved: int = 0

    @property
    def available(self) -> int:
        """Bytes that are left."""
        return self.n_bytes - self.reserved

    def reserving(self, n_bytes: int) -> Budget:
        """Return the budget of everything but a part that takes a number of bytes."""
        return replace(self, reserved=self.reserved + n_bytes)

    def landmarks(self, shape: ModelShape, dtype: str) -> int:
        """Return the number of landmarks within the budget; 0 if there is no room for one."""
        return self._most(lambda n: shape.n_bytes(dtype, n))

    def landmarks_in(self, shape: ModelShape, bits: PartBits) -> int:
        """Return the number of landmarks within the budget, in few bits; 0 without room for one."""
        return self._most(lambda n: shape.bytes_in(bits, n))

    def _most(self, n_bytes: Callable[[int], float]) -> int:
        """Return the largest number of landmarks whose bytes are available."""
        each = (n_bytes(8) - n_bytes(0)) / 8  # eight landmarks end with whole bytes
        n = int((self.available - n_bytes(0)) // each)
        while n > 0 and n_bytes(n) > self.available:
            n -= 1
        return max(n, 0)

    def sizes(self, shape: ModelShape, most: int) -> list[Size]:
        """Return the largest size of each storage type, with at most `most` landmarks."""
        room = {dtype: self.landmarks(shape, dtype) for dtype in shape.dtypes}
        counts = sorted({min(n, most) for n in room.values()} - {0})
        return [
            Size(n, shape.rank, tuple(dtype for dtype in room if room[dtype] >= n)) for n in counts
        ]

    def checked_sizes(self, shape: ModelShape, most: int) -> list[Size]:
        """Return :meth:`sizes` that differ, or raise if there is no room for a single landmark."""
        sizes = self.sizes(shape, most)
        if not sizes:
            raise self._no_room(shape, shape.least_bytes())
        different = sizes[:1]
        for size in sizes[1:]:
            if size.n >= MIN_GROWTH * different[-1].n:
                different.append(size)
        return different

    def largest_within(
        self,
        n: int,
        shape: ModelShape,
        build: Callable[[int], Built],
        n_bytes: Callable[[Built], int],
    ) -> Built:
        """Build a model of `n` landmarks, and again of fewer until it is within the budget.

        For CSR landmarks, whose bytes are known only once they are chosen.

        Parameters
        ----------
        n : int
        shape : ModelShape
            Named in the error if one landmark is too much.
        build : callable
            From a number of landmarks to a model, or the landmarks of a model.
        n_bytes : callable
            From a model to its bytes.
        """
        while True:
            built = build(n)
            needed = n_bytes(built)
            if needed <= self.available:
                return built
            if n == 1:
                raise self._no_room(shape, needed)
            n = max(1, min(n - 1, n * self.available // needed))

    def _no_room(self, shape: ModelShape, needed: int) -> NoRoomError:
        return NoRoomError(
            f"budget={self.n_bytes} has no room for a single landmark of {shape.r} columns and "
            f"{shape.L} outputs: a model with one takes {needed + self.reserved} bytes. Raise the "
            "budget, or reduce the features."
        )

    def __str__(self) -> str:
        return f"{self.n_bytes:,} bytes"


def csr_bytes(Z: Any) -> int:
    """Return the bytes of a CSR matrix with its data in float32."""
    return stored_bytes(Z.indices, Z.indptr) + NUMBER_BYTES * int(Z.data.size)


def csr_model_bytes(Z: Any, L: int, projection: Float | None) -> int:
    """Return the bytes of a float32 model with CSR landmarks Z, L outputs and a map."""
    map_size = 0 if projection is None else int(projection.size)
    return csr_bytes(Z) + NUMBER_BYTES * (L * (int(Z.shape[0]) + 1) + map_size)


def make_budget(budget: Any) -> Budget | None:
    """Return the budget of the parameter `budget`; None without one."""
    if budget is None:
        return None
    n_bytes, meant = 0.0, ""
    if is_count(budget):
        n_bytes = float(budget)
    elif isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)(b|ib|)\s*", budget.lower())
        if found and found[3] == "b":
            n_bytes = float(found[1]) * UNITS[found[2] + "b"]
        elif found:
            prefix = {"k": "k", "m": "M", "g": "G", "": ""}[found[2]]
            meant = f" Did you mean '{found[1]}{prefix}B'?"
    if n_bytes < 1:
        raise ValueError(
            f"budget={budget!r} is not a size. Allowed are None, a number of bytes, or a text "
            f"such as '64kB' or '1.5MB', where 1 kB is 1024 bytes.{meant}"
        )
    return Budget(int(n_bytes))


def most_landmarks(n_rows: int) -> int:
    """Return the largest number of landmarks that is tried for a number of rows."""
    few = min(FEW_LANDMARKS, FEW_LANDMARKS_SHARE * n_rows)
    return int(max(1, few, min(MAX_LANDMARKS, LANDMARK_SHARE * n_rows)))
