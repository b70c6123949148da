"""Sources of rows: checked chunks in a fixed order."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._validation import MAX_WEIGHT
from nysplus.encoding.schema import TableSchema

Array = npt.NDArray[Any]

Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source. The arrays may be views: do not write to them.

    Attributes
    ----------
    X : ndarray or CSR of shape (b, d)
        As stored: any type of number. A table, of any library, as long as its columns are unknown.
    y : ndarray of shape (b,) or (b, L), or None
        Labels or values, as stored.
    sample_weight : ndarray of shape (b,), or None
        float64.
    start : int
        Number of the first row among all rows of the source; negative where it is not known.
    name : str
        Name of the file or block, such as "block 3".
    first : int
        Number of the first row inside `name`.
    """

    X: Any
    y: Array | None
    sample_weight: Array | None
    start: int
    name: str
    first: int

    @property
    def n_rows(self) -> int:
        """Number of rows b."""
        return int(self.X.shape[0])

    @property
    def arrays(self) -> dict[str, Any]:
        """X, y and sample_weight by name, without those that are None."""
        named = {"X": self.X, "y": self.y, "sample_weight": self.sample_weight}
        return {what: values for what, values in named.items() if values is not None}

    def __sizeof__(self) -> int:
        stored = [a.data if sp.issparse(a) else a for a in self.arrays.values()]
        return super().__sizeof__() + sum(int(array.nbytes) for array in stored)

    def take(self, rows: slice | Numbers) -> Chunk:
        """Return some of the rows; `start` and `first` are 0 if they do not follow each other."""
        begin = rows.indices(self.n_rows)[0] if isinstance(rows, slice) else None
        return replace(
            self,
            start=0 if begin is None else self.start + begin,
            first=0 if begin is None else self.first + begin,
            **{what: values[rows] for what, values in self.arrays.items()},
        )


@dataclass(frozen=True)
class Reading:
    """How rows as given become checked rows of numbers.

    Attributes
    ----------
    names : sequence of str or None
        Names of the columns, for messages.
    is_table : bool
        Whether columns may have gaps, texts and dates.
    schema : TableSchema or None
        How the columns of a table become numbers; None leaves them as they are.
    """

    names: Sequence[str] | None = None
    is_table: bool = False
    schema: TableSchema | None = None

    def __call__(self, chunk: Chunk, rows: Numbers | None = None) -> Chunk:
        """Return checked rows; `rows` are their numbers where they are not consecutive."""
        return self.numbers(check_chunk(chunk, self.names, rows, self.is_table))

    def numbers(self, chunk: Chunk) -> Chunk:
        """Return the raw numbers of a table; other rows are numbers already."""
        return chunk if self.schema is None else replace(chunk, X=self.schema.read(chunk.X))


class Source(ABC):
    """Rows that are read chunk by chunk, in the same order every time.

    Attributes
    ----------
    n_features : int
        Number of columns as given.
    dtype : dtype
        Type of X in all chunks.
    sparse : bool
        Whether X comes as CSR.
    feature_names : tuple of str, or None
    has_targets : bool
    n_rows : int or None
        None before the end of the first pass, where only a pass can count them.
    is_table : bool
        Whether columns may have gaps, texts and dates, which `schema` turns into numbers.
    schema : TableSchema or None
        None for rows that are numbers, and before the first look at a table.
    """

    n_features: int
    dtype: np.dtype[Any]
    sparse: bool = False
    feature_names: tuple[str, ...] | None = None
    has_targets: bool
    n_rows: int | None = None
    is_table: bool = False
    schema: TableSchema | None = None

    # Whether a chunk may have rows of several files or blocks.
    _joins_names: ClassVar[bool] = False
    # Origin of `n_rows`, for the message when a pass gives more or fewer rows.
    _counted_by: str = "the first one gave"

    def chunks(self, most: int) -> Iterator[Chunk]:
        """Yield all rows, checked, in chunks of `most` rows; the last one (of a file) has fewer."""
        return _regroup(self._checked(most), most, self._joins_names)

    def unread(self, most: int) -> Iterator[Chunk]:
        """Yield all rows of a table as they are given, in portions of any size."""
        return self._checked(most)

    @property
    def reading(self) -> Reading:
        """How rows become numbers."""
        return Reading(self.feature_names, self.is_table, self.schema)

    def take(self, rows: Numbers) -> Chunk | None:
        """Return the rows with the numbers `rows`, or None where only a whole pass finds them."""
        return None

    def first_targets(self, n: int) -> Array | None:
        """Return the targets of the first rows."""
        return next(self.chunks(n)).y

    @abstractmethod
    def _parts(self, most: int) -> Iterator[Chunk]:
        """Yield all rows in portions of any size but 0; `start` is not set yet."""

    def _checked(self, most: int) -> Iterator[Chunk]:
        start = 0
        for part in self._parts(most):
            stop = start + part.n_rows
            if self.n_rows is not None and stop > self.n_rows:
                raise self._miscounted(f"at least {stop}")
            yield self.reading(replace(part, start=start))
            start = stop
        if start == 0:
            raise ValueError("X has no rows. Pass at least one.")
        if self.n_rows is not None and start < self.n_rows:
            raise self._miscounted(str(start))
        self.n_rows = start

    def _miscounted(self, count: str) -> ValueError:
        return ValueError(
            f"This pass over X gave {count} rows, {self._counted_by} {self.n_rows}. Every pass "
            "must give the same rows in the same order, one for each entry of y and sample_weight."
        )

    def _attach(self, what: str, values: Any) -> Array | None:
        """Return targets or weights that were passed apart from the rows, as an array."""
        if values is None:
            return None
        array = values if isinstance(values, np.ndarray) else np.asarray(values)
        if array.ndim == 0:
            raise ValueError(
                f"{what}={values!r} is not an array with one entry for each row of X. (Only the "
                "columns of a table have names.)"
            )
        if self.n_rows is None:
            self.n_rows, self._counted_by = len(array), f"{what} has"
        if len(array) != self.n_rows:
            raise ValueError(
                f"X has {self.n_rows} rows, {what} has {len(array)}. Pass one entry for each row."
            )
        return array


def _regroup(parts: Iterable[Chunk], most: int, join_names: bool) -> Iterator[Chunk]:
    """Join and cut parts of any size into chunks of `most` rows."""
    waiting: list[Chunk] = []
    room = most
    for part in parts:
        if waiting and not join_names and part.name != waiting[0].name:
            yield join_chunks(waiting)
            waiting, room = [], most
        begin = 0
        while part.n_rows - begin >= room:
            yield join_chunks([*waiting, part.take(slice(begin, begin + room))])
            begin += room
            waiting, room = [], most
        if begin < part.n_rows:
            waiting.append(part.take(slice(begin, part.n_rows)))
            room -= part.n_rows - begin
    if waiting:
        yield join_chunks(waiting)


def join_chunks(chunks: list[Chunk]) -> Chunk:
    """Return the rows of all chunks as one chunk with the name of the first."""
    if len(chunks) == 1:
        return chunks[0]
    joined: dict[str, Any] = {}
    for what, first in chunks[0].arrays.items():
        arrays = [getattr(chunk, what) for chunk in chunks]
        if len({array.dtype.kind in "biuf" for array in arrays}) > 1:
            # numbers and text: concatenation would make all of them text
            arrays = [array.astype(object) for array in arrays]
        dense = not sp.issparse(first)
        joined[what] = np.concatenate(arrays) if dense else sp.vstack(arrays, format="csr")
    return replace(chunks[0], **joined)


def check_chunk(
    chunk: Chunk,
    feature_names: Sequence[str] | None = None,
    rows: Numbers | None = None,
    is_table: bool = False,
) -> Chunk:
    """Return the chunk, or raise a ValueError that names its first invalid entry.

    Parameters
    ----------
    chunk : Chunk
    feature_names : sequence of str, optional
    rows : ndarray of shape (b,), optional
        The numbers of the rows, where they are not consecutive.
    is_table : bool
        Whether X may contain anything.
    """
    for what, values in chunk.arrays.items():
        if what == "X" and is_table:
            continue
        if what == "X" and values.dtype.kind not in "biuf":
            raise ValueError(
                f"{chunk.name} holds {values.dtype} in X, which is no type of number. Pass "
                "encoder='auto', which takes tables with texts and dates, or encode them first."
            )
        if values.shape[:1] != (chunk.n_rows,) or values.ndim > 2 - (what == "sample_weight"):
            raise ValueError(
                f"{chunk.name} has {chunk.n_rows} rows in X, and {what} of shape {values.shape}. "
                "Pass one entry for each row."
            )
        found = _first_bad(values, weights=what == "sample_weight")
        if found is not None:
            row, column, value = found
            number = row if rows is None else int(rows[row])
            label = column if feature_names is None else repr(feature_names[column])
            place = f"row {chunk.first + number} of {chunk.name}; counted from 0"
            if chunk.start >= 0:
                place = f"row {chunk.start + number} ({place})"
            raise ValueError(
                f"{what} contains {value} in {place}"
                f"{f', column {label}' if what == 'X' else ''}. Remove such rows, or replace such "
                f"values, beforehand{_advice(values, what, value)}."
            )
    return chunk


def _advice(values: Any, what: str, value: str) -> str:
    """Return advice where dense rows are refused because of a gap."""
    if what != "X" or value != "NaN" or sp.issparse(values):
        return ""
    return ", or pass encoder='auto', which takes tables with gaps"


def _first_bad(values: Any, weights: bool) -> tuple[int, int, str] | None:
    """Return row, column and name of the first value that is missing, infinite or no weight."""
    stored = values.data if sp.issparse(values) else values
    if stored.dtype.kind == "O":
        bad = np.frompyfunc(lambda value: value is None or bool(value != value), 1, 1)(stored)
        bad = bad.astype(bool)
    elif stored.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(stored.sum()) and not weights:
                return None
        bad = ~np.isfinite(stored)
        if weights:
            bad |= (stored < 0) | (stored.astype(np.float64) > MAX_WEIGHT)
    else:
        return None
    if not bad.any():
        return None
    at = np.unravel_index(int(bad.argmax()), bad.shape)
    value = "a missing value" if stored.dtype.kind == "O" else f"{stored[at]:g}"
    if sp.issparse(values):
        entries = values.tocoo()
        row, column = entries.row[at], entries.col[at]
    else:
        row, column = (*at, 0)[:2]
    return int(row), int(column), value.replace("nan", "NaN").replace("inf", "infinity")


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the memory map that an array is a view of."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def copied(array: Any, rows: slice | Numbers, dtype: Any = None) -> Any:
    """Copy some rows into ordinary memory, and give the pages of a memory map back."""
    if array is None:
        return None
    copy = np.array(array[rows], dtype=dtype)
    # In mode "c" (copy on write) changes exist in the pages only, which must then be kept.
    mapping = mapping_of(array) if getattr(array, "mode", "c") != "c" else None
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
    return copy


@contextmanager
def reading(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors while a file is read into a ValueError that names the file."""
    try:
        yield
    except errors as error:
        raise ValueError(
            f"{name} cannot be read: {error}. Write it again or leave it out; all files must be "
            "whole and have the same columns of the same types."
        ) from error
