"""Rows of libsvm (svmlight) text."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.datasets import load_svmlight_file

from nysplus._rows.readers.base import Chunk, Source, reading

# A fit has vectors of one number for every feature. More features than this must be a multiple of
# the entries at most: a larger number of a feature is most likely a mistake, and takes gigabytes.
MANY_FEATURES, FEATURES_PER_ENTRY = 2**24, 16

# Of a row with millions of entries: a longer one is no text.
MAX_LINE_BYTES = 2**26

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


class LibsvmRows(Source):
    """Rows of libsvm (svmlight) text, as CSR.

    Parameters
    ----------
    files : dict of paths
        Paths by name; compressed files end in .gz or .bz2.
    n_features : int, optional
        By default the largest number of a feature, which takes one pass to find.
    zero_based : bool or "auto"
        Whether the first feature has the number 0, or 1. "auto" takes one pass to find out whether
        0 occurs; the attribute is then a bool, to be passed on for files that belong together.
    read_bytes : int
        Bytes of text that are parsed at a time, about: enough to make the calls few.
    """

    sparse = True
    dtype = np.dtype(np.float64)
    has_targets = True

    def __init__(
        self,
        files: dict[str, Path],
        n_features: int | None = None,
        zero_based: bool | Literal["auto"] = "auto",
        read_bytes: int = 2**20,
    ) -> None:
        self._files = files
        self._read_bytes = read_bytes
        # "auto" counts from 0 until the survey, which allows any number of features, has found out.
        self._limit, self.zero_based = None, bool(zero_based)
        if n_features is None or zero_based == "auto":
            width = self._survey(zero_based == "auto")
        self._limit = self.n_features = width if n_features is None else n_features

    def _survey(self, find_base: bool) -> int:
        """Count rows and features, and find the number of the first feature."""
        self.n_rows = width = n_entries = 0
        lowest, place = 1, ""
        for part in self._parts(0):
            self.n_rows += part.n_rows
            n_entries += part.X.nnz
            if part.X.nnz:
                lowest = min(lowest, part.X.indices.min())
                last = int(part.X.indices.argmax())
                if part.X.indices[last] >= width:
                    width = int(part.X.indices[last]) + 1
                    row = int(np.searchsorted(part.X.indptr, last, side="right")) - 1
                    place = f"Row {part.first + row} of {part.name} (counted from 0)"
        if width == 0:
            raise ValueError(f"No row of {', '.join(self._files)} has a feature.")
        if width > max(MANY_FEATURES, FEATURES_PER_ENTRY * n_entries):
            raise ValueError(
                f"{place} has a feature with the number {width - self.zero_based}, but all rows "
                f"together have {n_entries} entries only. Correct the number. If it is right, read "
                "the file with sklearn.datasets.load_svmlight_file(path, n_features=...) and pass "
                "its matrix."
            )
        if find_base and lowest > 0:
            self.zero_based, width = False, width - 1
        return width

    def _parts(self, most: int) -> Iterator[Chunk]:
        for name, path in self._files.items():
            first = 0
            opener = OPENERS.get(path.suffix.lower(), open)
            with reading(name, OSError, EOFError, zlib.error), opener(path, "rb") as file:
                while text := self._whole_lines(file, name):
                    X, y = self._parse(text, name, first)
                    if len(y):
                        yield Chunk(X, y, None, 0, name, first)
                    first += len(y)

    def _whole_lines(self, file: Any, name: str) -> bytes:
        """Return the next lines of a file, not split: an empty line takes a byte, not an object."""
        text: bytes = file.read(self._read_bytes)
        rest: bytes = b"" if text.endswith(b"\n") else file.readline(MAX_LINE_BYTES)
        if len(rest) == MAX_LINE_BYTES:
            raise ValueError(
                f"{name} has a line of more than {MAX_LINE_BYTES} bytes: it is no text."
            )
        return text + rest

    def _load(self, text: bytes) -> Any:
        """Return rows and targets of some lines, or the error of the first bad line."""
        try:
            return load_svmlight_file(
                BytesIO(text), n_features=self._limit, zero_based=self.zero_based
            )
        except (ValueError, OverflowError) as error:
            return error

    def _parse(self, text: bytes, name: str, first: int) -> Any:
        loaded = self._load(text)
        if isinstance(loaded, Exception):
            row, line = self._first_bad(text)
            raise ValueError(
                f"Row {first + row} of {name} (counted from 0) cannot be read: {loaded}. It begins "
                f"with {line[:60]!r}; 'target number:value number:value' is expected, numbers "
                "of features going up."
            ) from loaded
        return loaded

    def _first_bad(self, text: bytes) -> tuple[int, bytes]:
        """Return the number of the first row that cannot be read, and its line, by bisection."""
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
        starts = np.concatenate([[0], ends])
        low, high, row = 0, len(starts), 0  # the line is one of these
        while high - low > 1:
            middle = (low + high) // 2
            loaded = self._load(text[starts[low] : starts[middle]])
            if isinstance(loaded, Exception):
                high = middle
            else:
                low, row = middle, row + len(loaded[1])
        return row, text[starts[low] :].partition(b"\n")[0]
