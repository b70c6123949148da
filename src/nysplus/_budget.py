"""How many landmarks fit in a number of bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus._checks import is_count

# Bytes of a unit, which may be written in any case.
UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
# The types that a model may be stored in, the largest first: float64 is never worth its bytes.
TYPES = ("float32", "float16", "int8")
# A scale of a column of int8, or an intercept.
NUMBER_BYTES = 4


@dataclass(frozen=True)
class Budget:
    """A number of bytes for the numbers of a model.

    Attributes
    ----------
    n_bytes : int
    """

    n_bytes: int

    def landmarks(self, dtype: str, r: int, L: int, d: int | None = None) -> int:
        """Return how many dense landmarks fit beside everything else; 0 if none does.

        Parameters
        ----------
        dtype : {"float32", "float16", "int8"}
            Of landmarks, coefficients and map.
        r, L : int
            Columns of a landmark, and outputs.
        d : int, optional
            Features, if a map leads from them to the columns of landmarks.
        """
        size = np.dtype(dtype).itemsize
        fixed = NUMBER_BYTES * L
        if dtype == "int8":
            fixed += NUMBER_BYTES * (r + L)
        if d is not None:
            fixed += size * d * r + (NUMBER_BYTES * r if dtype == "int8" else 0)
        return max(0, (self.n_bytes - fixed) // (size * (r + L)))

    def __str__(self) -> str:
        return f"{self.n_bytes:,} bytes"


def make_budget(budget: Any) -> Budget | None:
    """Return the budget that the parameter `budget` states; None for none."""
    if budget is None:
        return None
    n_bytes = 0.0
    if is_count(budget):
        n_bytes = float(budget)
    elif isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?b)\s*", budget.lower())
        n_bytes = float(found[1]) * UNITS[found[2]] if found else 0.0
    if n_bytes < 1:
        raise ValueError(
            f"budget={budget!r} is not a size. Allowed are None, a number of bytes, or a text "
            "such as '64kB' or '1.5MB', where 1 kB is 1024 bytes."
        )
    return Budget(int(n_bytes))
