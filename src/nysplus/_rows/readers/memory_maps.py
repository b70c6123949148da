"""Rows of memory-mapped arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nysplus._rows.readers.base import Chunk, Numbers, Source, copied, join_chunks

# Rows that are copied at a time: each of them loads the pages around it into memory.
LOOKED_UP_ROWS = 128


class MemmapRows(Source):
    """Rows of a memory-mapped array; pages are given back once they were read.

    Parameters
    ----------
    X : memmap of shape (n_rows, n_features)
        A memory map, or a view of one.
    y, sample_weight : array-like or memmap, optional
    is_table : bool
    """

    n_rows: int

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, is_table: bool = False
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.dtype, self.has_targets = X.dtype, y is not None
        if is_table:
            self.is_table, self.dtype = True, np.dtype(np.float64)
        self._X = X
        self._y, self._weight = self._attach("y", y), self._attach("sample_weight", sample_weight)

    def take(self, rows: Numbers) -> Chunk:
        """Return the rows with the numbers `rows`, in that order."""
        portions = range(0, max(len(rows), 1), LOOKED_UP_ROWS)
        copies = [self._copy(rows[first : first + LOOKED_UP_ROWS]) for first in portions]
        return self.reading(join_chunks(copies), rows)

    def _parts(self, most: int) -> Iterator[Chunk]:
        for first in range(0, self.n_rows, most):
            yield self._copy(slice(first, first + most), first)

    def _copy(self, rows: slice | Numbers, first: int = 0) -> Chunk:
        X, y = copied(self._X, rows), copied(self._y, rows)
        weight = copied(self._weight, rows, np.float64)
        return Chunk(X, y, weight, 0, "the memory map", first)
