"""How many landmarks fit in a number of bytes, and which sizes are worth a trial."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus._validation import is_count

# Bytes of a unit, which may be written in any case.
UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
# The types that a model may be stored in, the smallest first: float64 is never worth its bytes.
TYPES = ("int8", "float16", "float32")
# A scale of a column of int8, an intercept, or an index of a sparse row.
NUMBER_BYTES = 4
# More landmarks than this cost minutes, whatever there is room for.
MOST_LANDMARKS = 2000
# Ranks of a learned map that are tried, and the shares of the budget that it may take. One with
# all features is taken as it is where it is small.
RANKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SHARES = (0.1, 0.2, 0.38, 0.57, 0.77)
SMALL_RANK, SMALL_SHARE = 32, 0.25
# Landmarks for each row, at most; more up to a number that costs little.
LANDMARK_SHARE, FEW_LANDMARKS, FEW_LANDMARKS_SHARE = 0.125, 500, 0.5


@dataclass(frozen=True)
class Size:
    """How large a model is.

    Attributes
    ----------
    n : int
        Landmarks.
    rank : int or None
        Columns of the learned map; None for no map.
    dtypes : tuple of str
        The types it may be stored in, the smallest first; none where nothing limits it, and
        numbers stay as they were computed.
    """

    n: int
    rank: int | None = None
    dtypes: tuple[str, ...] = ()


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
        fixed, each = _bytes(dtype, r, L, d)
        return max(0, (self.n_bytes - fixed) // each)

    def sizes(self, r: int, L: int, most: int, d: int | None = None) -> list[Size]:
        """Return one size for each type, that has as many landmarks as it allows, at most `most`.

        Parameters
        ----------
        r, L, d : int
            As for :meth:`landmarks`.
        most : int
        """
        rank = None if d is None else r
        room = {dtype: self.landmarks(dtype, r, L, d) for dtype in TYPES}
        counts = sorted({min(n, most) for n in room.values()} - {0})
        return [Size(n, rank, tuple(dtype for dtype in TYPES if room[dtype] >= n)) for n in counts]

    def learned_sizes(self, d: int, L: int, most: int, most_rank: int) -> list[Size]:
        """Return the largest size for each rank of the map that is worth a trial.

        Parameters
        ----------
        d, L : int
            Features and outputs.
        most, most_rank : int
            Landmarks and columns of the map, at most.
        """
        if most_rank == d <= SMALL_RANK and d * d <= SMALL_SHARE * self.n_bytes:
            ranks = {d}
        else:
            known = [rank for rank in RANKS if rank <= most_rank]
            ranks = {
                min(known, key=lambda rank: abs(rank * d - share * self.n_bytes), default=1)
                for share in SHARES
            }
        sizes = [self.sizes(rank, L, most, d) for rank in sorted(ranks)]
        return [largest for *_, largest in filter(None, sizes) if largest.n > 1]

    def __str__(self) -> str:
        return f"{self.n_bytes:,} bytes"


def _bytes(dtype: str, r: int, L: int, d: int | None) -> tuple[int, int]:
    """Return the bytes of everything but the landmarks, and of each landmark."""
    size = np.dtype(dtype).itemsize
    fixed = NUMBER_BYTES * L
    if dtype == "int8":
        fixed += NUMBER_BYTES * (r + L)
    if d is not None:
        fixed += size * d * r + (NUMBER_BYTES * r if dtype == "int8" else 0)
    return fixed, size * (r + L)


def least_bytes(r: int, L: int, d: int | None = None) -> int:
    """Return what a model with one landmark takes in the type that suits it best."""
    return min(sum(_bytes(dtype, r, L, d)) for dtype in TYPES)


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


def most_landmarks(n_rows: int) -> int:
    """Return how many landmarks are worth a trial."""
    few = min(FEW_LANDMARKS, FEW_LANDMARKS_SHARE * n_rows)
    return int(max(1, few, min(MOST_LANDMARKS, LANDMARK_SHARE * n_rows)))


def no_room(budget: Budget, r: int, L: int, least: int) -> ValueError:
    """Return the error of a budget that is too small for one landmark."""
    return ValueError(
        f"budget={budget.n_bytes} has no room for a single landmark of {r} columns and {L} "
        f"outputs, which takes {least} bytes. Raise it, or reduce the features."
    )


@dataclass(frozen=True)
class Limit:
    """How many bytes a learned model may take.

    Attributes
    ----------
    budget : Budget
    n_features : int
        Of the rows as given, which the learned map leads from.
    dtype : str
        What the numbers of the unrefined model are stored in.
    """

    budget: Budget
    n_features: int
    dtype: str
