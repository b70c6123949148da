"""Kernels of integer distances, by tables.

The coordinates of rows and landmarks are integers in a unit δ. The unit of each kernel makes the
table's index a shift of the distance: ``sum`` is ``|u − z|² / δ²`` (or ``|u − z|₁ / δ``), and a
landmark whose ``sum`` reaches `limit` has the kernel value 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from nysplus._typing import Float
from nysplus.export.fixed_point import MAX_SHORT, Integers, Reals
from nysplus.kernels import RBF, Kernel, Laplacian, Matern

# Steps of the table of powers of two, as a power of two: linear interpolation is then exact to
# 1.5e-5, half a step of 15 bits.
OCTAVE_BITS = 6
# Steps of each octave of the tables of other functions, as a power of two, and octaves of distances
# that are told apart. A kernel with a peak at distance zero needs more octaves.
STEP_BITS, OCTAVES, PEAK_OCTAVES = 4, 12, 20
# The largest power of two of a sum, and bits that an interpolation multiplies by.
MAX_LEVEL, REST_BITS = 30, 15
# The largest difference that is not squared: finer coordinates would not change scores.
MAX_DIFFERENCE = 2**18 - 1


@dataclass(frozen=True)
class IntegerKernel:
    """A kernel as a function of integer distances.

    Attributes
    ----------
    formula : str
        For the comment at the top of the header.
    squares : bool
        Whether the distance is a sum of squares; otherwise of absolute values.
    unit : float
        δ, the unit of coordinates.
    limit : int
        The first sum with the value 0.
    table : ndarray of uint16
    template : str
    words : dict
        Integers that the template is filled with.
    values : callable
        From sums below `limit` to kernel values, integers of at most 15 bits.
    """

    formula: str
    squares: bool
    unit: float
    limit: int
    table: npt.NDArray[np.uint16]
    template: str
    words: dict[str, int]
    values: Callable[[npt.NDArray[np.int32]], npt.NDArray[np.int32]]

    @property
    def room(self) -> int:
        """The largest difference of a coordinate: squares have 32 bits."""
        return MAX_SHORT if self.squares else MAX_DIFFERENCE

    @property
    def reach(self) -> int:
        """The first difference of one coordinate that makes the value 0."""
        return math.isqrt(self.limit - 1) + 1 if self.squares else self.limit

    def sums(self, U: Integers, Z: Integers) -> Reals:
        """Return the distances between rows of coordinates: integers, all exact."""
        U, Z = U.astype(np.float64), Z.astype(np.float64)  # products of 2^15 in sums below 2^53
        if self.squares:
            D: Reals = (U**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2.0 * (U @ Z.T)
        else:
            D = np.zeros((len(U), len(Z)))
            for u, z in zip(U.T, Z.T, strict=True):
                D += np.abs(u[:, None] - z)
        return D

    def matrix(self, U: Integers, Z: Integers) -> npt.NDArray[np.int32]:
        """Return the kernel values between rows of coordinates."""
        sums = self.sums(U, Z)
        near = sums < self.limit
        np.minimum(sums, self.limit - 1, out=sums)
        K = self.values(sums.astype(np.int32))
        K *= near
        return K


def _exponential(rate: float, squares: bool, formula: str, level: int, bits: int) -> IntegerKernel:
    """Return ``exp(−rate · distance)`` by powers of two: ``2^(−sum / 2^g)``."""
    largest, rest_bits = 2**bits - 1, level - OCTAVE_BITS
    steps = np.arange(2**OCTAVE_BITS + 1) / 2**OCTAVE_BITS
    table = np.rint(largest * 2.0**-steps).astype(np.uint16)

    entries = table.astype(np.int32)
    falls = -np.diff(entries)

    def values(sums: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        octave, step = sums >> level, (sums >> rest_bits) & (2**OCTAVE_BITS - 1)
        rest = sums & (2**rest_bits - 1)
        rest *= falls[step]
        rest >>= rest_bits
        value: npt.NDArray[np.int32] = entries[step]
        value -= rest
        value += (np.int32(1) << octave) >> 1
        value >>= octave
        return value

    unit = math.log(2.0) / (rate * 2.0**level)
    words = {
        "largest": largest,
        "level": level,
        "rest_bits": rest_bits,
        "rest_mask": 2**rest_bits - 1,
        "step_mask": 2**OCTAVE_BITS - 1,
    }
    limit = (bits + 1) << level
    unit = math.sqrt(unit) if squares else unit
    return IntegerKernel(formula, squares, unit, limit, table, "int_exponential", words, values)


def _tabled(
    function: Callable[[Float], Float],
    end: float,
    octaves: int,
    formula: str,
    level: int,
    bits: int,
) -> IntegerKernel:
    """Return a falling function of the distance by a table with equal steps in each octave.

    Parameters
    ----------
    function : callable
        Of the squared distance, over that of the limit.
    end : float
        The distance of the limit.
    """
    octaves = min(octaves, level - STEP_BITS)
    first = level - octaves  # sums below 2^first have equal steps
    starts = 2.0 ** np.arange(-octaves, 0)
    steps = np.arange(2**STEP_BITS) / 2**STEP_BITS
    knots = np.concatenate([starts[0] * steps, *(s * (1.0 + steps) for s in starts), [1.0]])
    table = np.rint((2**bits - 1) * function(knots)).astype(np.uint16)

    entries = table.astype(np.int32)
    falls = -np.diff(entries)

    def values(sums: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        n_bits = np.frexp(sums.astype(np.float64))[1]
        octave = np.maximum(n_bits - (first + 1), 0)  # beyond the first one
        shift = octave + (first - STEP_BITS)
        # the steps of an octave follow those of the octaves below it
        step = (sums >> shift) + (octave << STEP_BITS)
        cut = np.maximum(shift - REST_BITS, 0)
        rest = (sums & ((np.int32(1) << shift) - 1)) >> cut
        value: npt.NDArray[np.int32] = entries[step] - ((rest * falls[step]) >> (shift - cut))
        return value

    words = {
        "largest": 2**bits - 1,
        "least_shift": first - STEP_BITS,
        "above": first + 1,
        "steps": 2**STEP_BITS,
        "rest_bits": REST_BITS,
    }
    unit = end / 2.0 ** (level / 2)
    return IntegerKernel(formula, True, unit, 2**level, table, "int_tabled", words, values)


def _rbf(kernel: RBF, level: int, bits: int) -> IntegerKernel:
    # the limit is (bits + 1) 2^level, and must be below 2^31
    return _exponential(kernel.width, True, "exp(-g |u - z|^2)", level - 4, bits)


def _laplacian(kernel: Laplacian, level: int, bits: int) -> IntegerKernel:
    return _exponential(kernel.width, False, "exp(-g |u - z|_1)", level - 4, bits)


def _matern(kernel: Matern, level: int, bits: int) -> IntegerKernel:
    polynomials: dict[float, Callable[[Any], Any]] = {
        0.5: lambda s: 1.0,
        1.5: lambda s: 1.0 + s,
        2.5: lambda s: 1.0 + s + s * s / 3.0,
    }

    def of_s(s: Any) -> Any:
        return polynomials[kernel.nu](s) * np.exp(-s)

    # beyond this the values round to zero
    end = brentq(lambda s: of_s(s) - 2.0 ** -(bits + 1), 1.0, 100.0)
    octaves = PEAK_OCTAVES if kernel.nu == 0.5 else OCTAVES
    formula = {0.5: "", 1.5: "(1 + s) ", 2.5: "(1 + s + s^2 / 3) "}[kernel.nu]
    rate = math.sqrt(4.0 * kernel.nu * kernel.width)
    return _tabled(
        lambda share: of_s(end * np.sqrt(share)),
        end / rate,
        octaves,
        f"{formula}exp(-s), s = sqrt({4 * kernel.nu:g} g) |u - z|",
        level,
        bits,
    )


# With the least level that their tables have room for.
_KERNELS: dict[type[Kernel], tuple[Callable[[Any, int, int], IntegerKernel], int]] = {
    RBF: (_rbf, OCTAVE_BITS + 4),
    Laplacian: (_laplacian, OCTAVE_BITS + 4),
    Matern: (_matern, OCTAVES),
}


def check_kernel(kernel: Kernel) -> None:
    """Raise if a kernel has no integer arithmetic."""
    if type(kernel) not in _KERNELS:
        raise ValueError(
            f"kernel={kernel!r} has no integer arithmetic. Kernels that have it: "
            f"{', '.join(sorted(known.__name__ for known in _KERNELS))}. Fit with one of them, or "
            "pass arithmetic='float'."
        )


def integer_kernels(kernel: Kernel, bits: int) -> list[IntegerKernel]:
    """Return a kernel in integers of `bits` bits, in finer and coarser units, the finest first."""
    make, least = _KERNELS[type(kernel)]
    return [make(kernel, level, bits) for level in range(MAX_LEVEL, least - 1, -1)]
