"""Arithmetic of 32-bit integers: factors with a common shift, and their products.

Real factors become integers of 15 bits and a sign, with a shift that all of them share:
``v · factor ≈ (v · m) >> shift``. The header computes the product in two parts, so that no product
has more than 32 bits (``c_templates/int_scaled.h``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer[Any]]
Reals = npt.NDArray[np.float64]

# The largest integer of a sum, of a factor and of a 16-bit number.
MAX_SUM, MAX_FACTOR, MAX_SHORT = 2**30, 2**15 - 1, 2**15 - 1
# The largest shift of a 32-bit number after the 15 bits that a factor has.
MAX_SHIFT = 15 + 31


class RangeError(ValueError):
    """The numbers of a model, or of its rows, do not fit in 32-bit arithmetic."""


@dataclass(frozen=True)
class Factors:
    """Real factors as integers m with a common shift: ``m / 2^shift``.

    Attributes
    ----------
    values : ndarray of int16
    shift : int
        0 to 46.
    """

    values: npt.NDArray[np.int16]
    shift: int

    @classmethod
    def of(cls, factors: Reals) -> Factors:
        """Return the integers of factors below `MAX_FACTOR`, the largest with 15 bits."""
        largest = float(np.abs(factors).max(initial=0.0))
        shift = MAX_SHIFT if largest == 0 else int(np.floor(np.log2(MAX_FACTOR / largest)))
        shift = min(shift, MAX_SHIFT)
        return cls(np.rint(factors * 2.0**shift).astype(np.int16), shift)

    @property
    def limit(self) -> int:
        """The largest number that may be multiplied: ``c_templates/int_scaled.h`` says why."""
        return int(min(MAX_SUM, 2 ** (15 + self.shift)))

    def times(self, v: Integers) -> npt.NDArray[np.int64]:
        """Return the products of numbers with the factors of their columns, rounded down."""
        product: npt.NDArray[np.int64] = v.astype(np.int64) * self.values
        return product >> self.shift


def product(V: Integers, M: Integers) -> npt.NDArray[np.int64]:
    """Return the matrix product of integers whose sums float64 represents exactly."""
    sums: npt.NDArray[np.int64] = (V.astype(np.float64) @ M.astype(np.float64)).astype(np.int64)
    return sums
