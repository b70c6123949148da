"""Rows that stay where they are: readers that hand them out chunk by chunk, as stored, checked.

A `Source` is read any number of times, always in the same order, and never holds more than a few
chunks: memory maps, tables (Parquet, Arrow, CSV), libsvm text, blocks that the user's code gives.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import mmap
import os
import posixpath
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.intp]

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "ipc": (".arrow", ".feather", ".ipc"),
    "csv": (".csv", ".csv.gz", ".csv.bz2"),
    "tsv": (".tsv", ".tsv.gz", ".tsv.bz2"),
    "libsvm": tuple(s + p for s in (".svm", ".libsvm", ".svmlight") for p in ("", ".gz", ".bz2")),
}
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
# Bytes of text, or of one column of a Parquet file, that are read at a time.
READ_BYTES = 2**20
# Rows at each end of an array that stand for all of it in a fingerprint.
END_ROWS = 64


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source. The arrays may be views: do not write to them.

    Attributes
    ----------
    X : ndarray or CSR of shape (b, d)
        As stored: any type of number.
    y : ndarray of shape (b,) or (b, L), or None
        Labels or values, as stored.
    sample_weight : ndarray of shape (b,), or None
        float64.
    start : int
        Number of the first row among all rows of the source.
    name : str
        Where the rows are from: a file, or "block 3".
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
        """Those of X, y and sample_weight that there are."""
        named = {"X": self.X, "y": self.y, "sample_weight": self.sample_weight}
        return {what: values for what, values in named.items() if values is not None}

    def take(self, rows: slice | Numbers) -> Chunk:
        """Return some of the rows; `start` and `first` are 0 if they do not follow each other."""
        begin = rows.indices(self.n_rows)[0] if isinstance(rows, slice) else None
        return replace(
            self,
            start=0 if begin is None else self.start + begin,
            first=0 if begin is None else self.first + begin,
            **{what: values[rows] for what, values in self.arrays.items()},
        )


class Source(ABC):
    """Rows that are read chunk by chunk, in the same order every time.

    Attributes
    ----------
    n_features : int
    dtype : dtype
        Type of X in all chunks.
    sparse : bool
        Whether X comes as CSR.
    feature_names : tuple of str, or None
    has_targets : bool
    n_rows : int or None
        None where that takes a whole pass to know, until the end of the first one.
    """

    n_features: int
    dtype: np.dtype[Any]
    sparse: bool = False
    feature_names: tuple[str, ...] | None = None
    has_targets: bool
    n_rows: int | None = None

    # Whether a chunk may hold rows of several names.
    _joins_names: ClassVar[bool] = False
    # Who says how many rows there are, for the message when there are more or fewer.
    _counted_by: str = "the first one gave"

    def chunks(self, most: int) -> Iterator[Chunk]:
        """Yield all rows, checked, `most` at a time and fewer only at the end (of each file)."""
        return _regroup(self._checked(most), most, self._joins_names)

    def take(self, rows: Numbers) -> Chunk | None:
        """Return the rows with the numbers `rows`, or None where only a whole pass finds them."""
        return None

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash, cheap to compute, that changes when the data change."""

    @abstractmethod
    def _parts(self, most: int) -> Iterator[Chunk]:
        """Yield all rows in portions of any size but 0; `start` is not set yet."""

    def _checked(self, most: int) -> Iterator[Chunk]:
        start = 0
        for part in self._parts(most):
            stop = start + part.n_rows
            if self.n_rows is not None and stop > self.n_rows:
                raise self._miscounted(f"at least {stop}")
            yield check_chunk(replace(part, start=start), self.feature_names)
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
        """Return what stands beside the rows, not among them, as an array of their number."""
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
    """Return the rows of all chunks as one that bears the name of the first."""
    if len(chunks) == 1:
        return chunks[0]
    joined: dict[str, Any] = {}
    for what, first in chunks[0].arrays.items():
        arrays = [getattr(chunk, what) for chunk in chunks]
        dense = not sp.issparse(first)
        joined[what] = np.concatenate(arrays) if dense else sp.vstack(arrays, format="csr")
    return replace(chunks[0], **joined)


def check_chunk(
    chunk: Chunk, feature_names: Sequence[str] | None = None, rows: Numbers | None = None
) -> Chunk:
    """Return the chunk, or raise a ValueError that names the first entry that will not do.

    Parameters
    ----------
    chunk : Chunk
    feature_names : sequence of str, optional
    rows : ndarray of shape (b,), optional
        The numbers of the rows, where they do not simply follow each other.
    """
    for what, values in chunk.arrays.items():
        if what == "X" and values.dtype.kind not in "biuf":
            raise ValueError(
                f"{chunk.name} holds {values.dtype} in X, which is no type of number. Encode text "
                "and dates as numbers first."
            )
        if values.shape[:1] != (chunk.n_rows,) or values.ndim > 2 - (what == "sample_weight"):
            raise ValueError(
                f"{chunk.name} has {chunk.n_rows} rows in X, and {what} of shape {values.shape}. "
                "Pass one entry for each row."
            )
        found = _first_bad(values, negative=what == "sample_weight")
        if found is not None:
            row, column, value = found
            number = row if rows is None else int(rows[row])
            label = column if feature_names is None else repr(feature_names[column])
            raise ValueError(
                f"{what} contains {value} in row {chunk.start + number} (row "
                f"{chunk.first + number} of {chunk.name}; counted from 0)"
                f"{f', column {label}' if what == 'X' else ''}. Remove such rows, or replace such "
                "values, beforehand."
            )
    return chunk


def _first_bad(values: Any, negative: bool) -> tuple[int, int, str] | None:
    """Return row, column and name of the first missing, infinite or unwanted negative value."""
    stored = values.data if sp.issparse(values) else values
    if stored.dtype.kind == "O":
        bad = np.frompyfunc(lambda value: value is None or bool(value != value), 1, 1)(stored)
        bad = bad.astype(bool)
    elif stored.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(stored.sum()) and not negative:
                return None
        bad = ~np.isfinite(stored) | (negative & (stored < 0))
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


def _digest(*parts: Any) -> str:
    """Hash arrays by type, shape and bytes, anything else by its text."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind != "O":
            hashed.update(f"{part.dtype}{part.shape}".encode() + part.tobytes())
        else:
            hashed.update(repr(part.tolist() if isinstance(part, np.ndarray) else part).encode())
    return hashed.hexdigest()


def _end_rows(n_rows: int) -> Numbers:
    return np.unique(np.r_[: min(END_ROWS, n_rows), max(0, n_rows - END_ROWS) : n_rows])


def _mapping(array: Any) -> mmap.mmap | None:
    """Return the memory map that an array is a view of."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def _copied(array: Any, rows: slice | Numbers, dtype: Any = None) -> Any:
    """Copy some rows into ordinary memory, and give the pages of a memory map back."""
    if array is None:
        return None
    copy = np.array(array[rows], dtype=dtype)
    # In mode "c" (copy on write) the pages are all there is of what was written.
    mapping = _mapping(array) if getattr(array, "mode", "c") != "c" else None
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
    return copy


class MemmapRows(Source):
    """Rows of a memory-mapped array, of which no page stays in memory once it was read.

    Parameters
    ----------
    X : memmap of shape (n_rows, n_features)
        Also a view of one.
    y, sample_weight : array-like or memmap, optional
    """

    n_rows: int

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        self.n_rows, self.n_features = X.shape
        self.dtype, self.has_targets = X.dtype, y is not None
        self._X = X
        self._y, self._weight = self._attach("y", y), self._attach("sample_weight", sample_weight)

    def take(self, rows: Numbers) -> Chunk:
        """Return the rows with the numbers `rows`, in that order."""
        return check_chunk(self._copy(rows), rows=rows)

    def fingerprint(self) -> str:
        """Hash the shape, and type and bytes of the rows at both ends."""
        return _digest(self._X.shape, *self._copy(_end_rows(self.n_rows)).arrays.values())

    def _parts(self, most: int) -> Iterator[Chunk]:
        for first in range(0, self.n_rows, most):
            yield self._copy(slice(first, first + most), first)

    def _copy(self, rows: slice | Numbers, first: int = 0) -> Chunk:
        X, y = _copied(self._X, rows), _copied(self._y, rows)
        weight = _copied(self._weight, rows, np.float64)
        return Chunk(X, y, weight, 0, "the memory map", first)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Tables are read with pyarrow. Install it with: pip install "nysplus[table]"'
        ) from error
    return pyarrow


@contextmanager
def _reading(name: str, *errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise ValueError(
            f"{name} cannot be read: {error}. Write it again or leave it out; all files must be "
            "whole and have the same columns of the same types."
        ) from error


class TableRows(Source):
    """Rows of a table: Parquet, Arrow or CSV files, or a table in memory.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset or pyarrow.Table
    y : str, list of str, or array-like, optional
        Column or columns of the targets, or the targets themselves.
    sample_weight : str or array-like, optional
    features : sequence of str, optional
        The columns of X in order; all but those of y and sample_weight by default.

    Notes
    -----
    Whole numbers among the features of CSV files are read as float64: pyarrow looks at the
    beginning of the first file only, and fractions may follow.
    """

    feature_names: tuple[str, ...]

    def __init__(
        self,
        dataset: Any,
        y: Any = None,
        sample_weight: Any = None,
        features: Sequence[str] | None = None,
    ) -> None:
        pa = _pyarrow()
        if isinstance(dataset, pa.Table):
            dataset = pa.dataset.dataset(dataset)
        if not isinstance(dataset, pa.dataset.Dataset):
            raise TypeError(
                f"X is a {type(dataset).__name__}, which is no table that can be read again and "
                "again. Pass a pyarrow.Table or a pyarrow.dataset.Dataset."
            )
        self._targets, self._weights = _column_names(y), _column_names(sample_weight)
        self._flat, self.has_targets = isinstance(y, str), y is not None
        names, beside = dataset.schema.names, (*self._targets, *self._weights)
        self.feature_names = tuple(
            [n for n in names if n not in beside] if features is None else features
        )
        self.n_features = len(self.feature_names)
        self._columns = list(dict.fromkeys((*self.feature_names, *beside)))
        unknown = [name for name in self._columns if name not in names]
        if unknown or not self.feature_names:
            lacking = unknown or "besides those of y and sample_weight"
            raise ValueError(f"X has no columns {lacking}. Its columns are {names}.")
        self._schema = _number_schema(dataset, (*self.feature_names, *self._weights))
        self.dtype = np.result_type(*(_dtype(self._schema.field(n)) for n in self.feature_names))
        self._fragments = _named_fragments(dataset)
        self.n_rows = self._survey()
        self._y = None if self._targets else self._attach("y", y)
        self._weight = None if self._weights else self._attach("sample_weight", sample_weight)

    def fingerprint(self) -> str:
        """Hash the columns' names, and names, sizes and times of the files (or the first rows)."""
        parts: list[Any] = [self._columns, self._targets, self._weights]
        for name, fragment in self._fragments:
            if hasattr(fragment, "path"):
                info = fragment.filesystem.get_file_info(fragment.path)
                parts += [name, info.size, info.mtime_ns]
            else:
                head = fragment.head(END_ROWS, columns=self._columns)
                parts += [name, fragment.count_rows(), head.to_pydict()]
        for values in (self._y, self._weight):
            parts.append(None if values is None else _copied(values, _end_rows(len(values))))
        return _digest(*parts)

    def _survey(self) -> int | None:
        """Open every file, so that a bad one is found now; count rows unless that means reading."""
        pa = _pyarrow()
        known = (pa.dataset.ParquetFileFormat, type(None))  # from the footer, or in memory
        total: int | None = 0
        for name, fragment in self._fragments:
            with _reading(name, pa.ArrowException, OSError):
                there = {*fragment.physical_schema.names, *_partition_keys(fragment)}
                if total is not None:
                    cheap = isinstance(getattr(fragment, "format", None), known)
                    total = total + fragment.count_rows() if cheap else None
            if lacking := [column for column in self._columns if column not in there]:
                raise ValueError(
                    f"{name} has no columns {lacking}, other files have. Write it again or leave "
                    "it out."
                )
        return total

    def _parts(self, most: int) -> Iterator[Chunk]:
        pa = _pyarrow()
        start, firsts = 0, Counter[str]()
        for name, fragment in self._fragments:
            with _reading(name, pa.ArrowException, OSError):
                for table in filter(len, self._tables(fragment, most)):
                    rows = slice(start, start + len(table))
                    y, weight = _copied(self._y, rows), _copied(self._weight, rows, np.float64)
                    if self._targets:
                        columns = [_values(table[column]) for column in self._targets]
                        y = columns[0] if self._flat else np.column_stack(columns)
                    if self._weights:
                        weight = _values(table[self._weights[0]]).astype(np.float64)
                    yield Chunk(self._features(table), y, weight, 0, name, firsts[name])
                    start += len(table)
                    firsts[name] += len(table)

    def _tables(self, fragment: Any, most: int) -> Iterator[Any]:
        pa = _pyarrow()
        if not isinstance(fragment, pa.dataset.ParquetFileFragment):
            for batch in fragment.to_batches(
                schema=self._schema,
                columns=self._columns,
                batch_size=most,
                batch_readahead=1,
                fragment_readahead=1,
                use_threads=False,
            ):
                yield pa.Table.from_batches([batch])
            return
        # A fragment decodes row groups, which may be huge, whole; the file goes batch by batch.
        schema = pa.schema([self._schema.field(column) for column in self._columns])
        keys = _partition_keys(fragment)
        with fragment.open() as file:
            reader = pa.parquet.ParquetFile(
                file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
            )
            for batch in reader.iter_batches(
                batch_size=most,
                row_groups=[group.id for group in fragment.row_groups],
                columns=[column for column in self._columns if column not in keys],
                use_threads=False,
            ):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                columns |= {key: pa.repeat(value, len(batch)) for key, value in keys.items()}
                yield pa.table({name: columns[name] for name in self._columns}).cast(schema)

    def _features(self, table: Any) -> Array:
        columns = [table[name] for name in self.feature_names]
        # What is missing becomes NaN, for the check to find.
        missing = any(column.null_count for column in columns)
        X = np.empty((len(columns), len(table)), np.float64 if missing else self.dtype)
        for row, column in zip(X, columns, strict=True):
            row[:] = _values(column)
        return X.T


def _column_names(given: Any) -> tuple[str, ...]:
    """Return the columns that `y` or `sample_weight` names: none if it is an array."""
    if isinstance(given, str):
        return (given,)
    named = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
    return tuple(given) if named else ()


def _number_schema(dataset: Any, columns: Sequence[str]) -> Any:
    """Return the schema to read with, in which all of `columns` are numbers."""
    pa = _pyarrow()
    schema, is_a = dataset.schema, pa.types
    from_text = isinstance(getattr(dataset, "format", None), pa.dataset.CsvFileFormat)
    numeric = (is_a.is_boolean, is_a.is_integer, is_a.is_floating, is_a.is_decimal)
    text = []
    for name in columns:
        stored = schema.field(name).type
        if from_text and (is_a.is_integer(stored) or is_a.is_null(stored)):
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.float64()))
        elif not any(is_kind(stored) for is_kind in numeric):
            text.append(f"{name!r} ({stored})")
    if text:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(text)}. Encode them as numbers in "
            "the table, or leave them out."
        )
    return schema


def _named_fragments(dataset: Any) -> list[tuple[str, Any]]:
    """Return the parts of a dataset with the names of their files, common folders left off."""
    fragments = list(dataset.get_fragments())
    paths = [getattr(fragment, "path", "") for fragment in fragments]
    folders = [posixpath.dirname(path) for path in paths]
    root = posixpath.commonpath(folders) if folders else ""
    names = [posixpath.relpath(path, root) if path else "the table" for path in paths]
    return list(zip(names, fragments, strict=True))


def _partition_keys(fragment: Any) -> dict[str, Any]:
    """Return the columns whose value is in a file's path, as in ``year=2024/part-0.parquet``."""
    keys: dict[str, Any] = _pyarrow().dataset.get_partition_keys(fragment.partition_expression)
    return keys


def _dtype(field: Any) -> npt.DTypeLike:
    decimal = _pyarrow().types.is_decimal(field.type)
    kind: npt.DTypeLike = np.float64 if decimal else field.type.to_pandas_dtype()
    return kind


def _values(column: Any) -> Array:
    """Turn a column into an array, missing numbers into NaN."""
    pa = _pyarrow()
    if pa.types.is_decimal(column.type) or (column.null_count and pa.types.is_boolean(column.type)):
        column = column.cast(pa.float64())
    values: Array = column.to_numpy()
    return values


class LibsvmRows(Source):
    """Rows of libsvm (svmlight) text, as CSR.

    Parameters
    ----------
    path : str or path-like
        A file, or a folder of files; packed ones end in .gz or .bz2.
    n_features : int, optional
        By default the largest number of a feature tells, which takes one pass to find.
    zero_based : bool or "auto"
        Whether the first feature has the number 0, or 1. "auto" takes one pass to see if 0 occurs
        anywhere; the attribute is then a bool, to be passed on for files that belong together.
    """

    sparse = True
    dtype = np.dtype(np.float64)
    has_targets = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_features: int | None = None,
        zero_based: bool | Literal["auto"] = "auto",
    ) -> None:
        self._files = _find_files(path)[1]
        # "auto" means 0 until the survey, which takes in features of any number, knows better.
        self._limit, self.zero_based = None, bool(zero_based)
        if n_features is None or zero_based == "auto":
            width = self._survey(zero_based == "auto")
        self._limit = self.n_features = width if n_features is None else n_features

    def fingerprint(self) -> str:
        """Hash names, sizes and times of the files."""
        stats = {name: path.stat() for name, path in self._files.items()}
        return _digest(*((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()))

    def _survey(self, find_base: bool) -> int:
        """Count rows and features, and find out by which number the first feature goes."""
        self.n_rows = width = 0
        lowest = 1
        for part in self._parts(0):
            self.n_rows += part.n_rows
            if part.X.nnz:
                lowest = min(lowest, part.X.indices.min())
                width = max(width, int(part.X.indices.max()) + 1)
        if width == 0:
            raise ValueError(f"No row of {', '.join(self._files)} has a feature.")
        if find_base and lowest > 0:
            self.zero_based, width = False, width - 1
        return width

    def _parts(self, most: int) -> Iterator[Chunk]:
        for name, path in self._files.items():
            first = 0
            opener = OPENERS.get(path.suffix.lower(), open)
            with _reading(name, OSError, EOFError, zlib.error), opener(path, "rb") as file:
                while lines := file.readlines(READ_BYTES):
                    X, y = self._parse(lines, name, first)
                    if len(y):
                        yield Chunk(X, y, None, 0, name, first)
                    first += len(y)

    def _parse(self, lines: list[bytes], name: str, first: int) -> Any:
        def load(count: int) -> Any:
            text = BytesIO(b"".join(lines[:count]))
            try:
                return load_svmlight_file(text, n_features=self._limit, zero_based=self.zero_based)
            except (ValueError, OverflowError) as error:
                return error

        loaded = load(len(lines))
        if isinstance(loaded, Exception):
            counts = range(1, len(lines) + 1)
            good = bisect_left(counts, True, key=lambda n: isinstance(load(n), Exception))
            row = first + len(load(good)[1])
            raise ValueError(
                f"Row {row} of {name} (counted from 0) cannot be read: {loaded}. It begins with "
                f"{lines[good][:60]!r}; 'target number:value number:value' is expected, numbers "
                "of features going up."
            ) from loaded
        return loaded


class BlockRows(Source):
    """Rows that the user's own code gives, block by block.

    Parameters
    ----------
    blocks : iterable, or callable that returns one
        Gives ``X``, ``(X, y)`` or ``(X, y, sample_weight)``, where X is sparse or anything that
        NumPy takes for a table of numbers (data frames and tensors too). Each iteration must
        start anew and give the same blocks.
    names : tuple of str, optional
        Of the columns; by default those of the first block, if it is a data frame.

    Notes
    -----
    All blocks get the type of the first one. If that is a float they may be rounded to it; if it
    is an integer or bool, a block of a type that it cannot hold is an error.
    """

    _joins_names = True

    def __init__(self, blocks: Any, names: tuple[str, ...] | None = None) -> None:
        self._open = blocks.__iter__ if isinstance(blocks, Iterable) else blocks
        opened = blocks if isinstance(blocks, Iterable) else blocks()
        if isinstance(opened, Iterator) and self._open() is opened:
            raise ValueError(
                f"X is a {type(blocks).__name__} that can be read only once, and the rows are "
                "needed several times. Pass a list of blocks, an object whose __iter__ starts "
                "anew, or a function that returns a fresh iterator."
            )
        first, found = next(self._read(), (None, None))
        if first is None:
            raise ValueError("X has no rows: there is no block, or all blocks are empty.")
        self.feature_names = found if names is None else names
        check_chunk(first, self.feature_names)
        self.n_features, self.dtype = first.X.shape[1], first.X.dtype
        self.sparse, self.has_targets = sp.issparse(first.X), first.y is not None
        self._traits, self._first_digest = _traits(first, found), _block_digest(first)

    def fingerprint(self) -> str:
        """Hash the first block."""
        return _block_digest(next(self._read())[0])

    def _read(self) -> Iterator[tuple[Chunk, tuple[str, ...] | None]]:
        """Yield each block that has rows, with the names of its columns."""
        for number, block in enumerate(self._open()):
            chunk, names = _converted(block, f"block {number}")
            if chunk.n_rows:
                yield chunk, names

    def _parts(self, most: int) -> Iterator[Chunk]:
        for number, (chunk, names) in enumerate(self._read()):
            for got, expected in zip(_traits(chunk, names), self._traits, strict=True):
                if got != expected:
                    raise ValueError(
                        f"{chunk.name} has {got}, the first one has {expected}. Give all blocks "
                        "the same columns, and all of them y and sample_weight, or none."
                    )
            if number == 0 and _block_digest(chunk) != self._first_digest:
                raise ValueError(
                    f"{chunk.name} is not what it was before. Every pass must start anew and give "
                    "the same rows in the same order: turn shuffling off."
                )
            rule: Literal["same_kind", "safe"] = "same_kind" if self.dtype.kind == "f" else "safe"
            if not np.can_cast(chunk.X.dtype, self.dtype, rule):
                raise ValueError(
                    f"{chunk.name} holds {chunk.X.dtype}, the first one {self.dtype}. Convert all "
                    "blocks to one type that holds all numbers, such as float64."
                )
            yield replace(chunk, X=chunk.X.astype(self.dtype, copy=False))


def as_chunk(block: Any, name: str, feature_names: Sequence[str] | None = None) -> Chunk:
    """Return a block as :class:`BlockRows` takes it as a checked chunk, which may have no rows."""
    return check_chunk(_converted(block, name)[0], feature_names)


def _converted(block: Any, name: str) -> tuple[Chunk, tuple[str, ...] | None]:
    """Convert what the user's code gave, and return it with the names of its columns."""
    several = isinstance(block, (tuple, list)) and len(block) > 0 and _n_axes(block[0]) == 2
    parts = block if several else (block,)
    if _n_axes(parts[0]) != 2 or len(parts) > 3:
        raise ValueError(
            f"{name} is a {type(block).__name__}, and not X with rows and columns, (X, y) or "
            "(X, y, sample_weight)."
        )
    X, y, weight = (*parts, None, None)[:3]
    try:
        rows = X.tocsr() if sp.issparse(X) else np.asarray(X)
        # Data frames of numbers and booleans come as objects.
        rows = rows.astype(np.float64) if rows.dtype.kind == "O" else rows
        y = None if y is None else np.asarray(y)
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} does not turn into numbers: {error}") from error
    names = tuple(getattr(X, "columns", ()))
    named = len(names) > 0 and all(isinstance(column, str) for column in names)
    return Chunk(rows, y, weight, 0, name, 0), names if named else None


def _n_axes(values: Any) -> int:
    try:
        return len(np.shape(values))
    except ValueError:  # a list of lists of several lengths
        return 0


def _traits(chunk: Chunk, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Say in words what all blocks must have in common."""
    axes = "" if chunk.y is None else ", ".join(["rows", *map(str, chunk.y.shape[1:])])
    return (
        f"{chunk.X.shape[1]} columns",
        "no names of columns" if names is None else f"the columns {list(names)}",
        "sparse rows" if sp.issparse(chunk.X) else "dense rows",
        f"y of shape ({axes})" if axes else "no y",
        "no sample_weight" if chunk.sample_weight is None else "sample_weight",
    )


def _block_digest(chunk: Chunk) -> str:
    X = chunk.X
    stored = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return _digest(*stored, chunk.y, chunk.sample_weight)


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> Source | None:
    """Return a reader for X, or None if X is an array, data frame or list of rows as usual.

    Parameters
    ----------
    X : path, memmap, pyarrow table or dataset, iterable of blocks, or anything else
    y, sample_weight : array-like or str, optional
        Of a table also the name of a column. Blocks and libsvm files have their own.
    features : sequence of str, optional
        Columns to read; only tables use it.
    n_features, zero_based : optional
        As in :class:`LibsvmRows`, which alone uses them.
    """
    if isinstance(X, (str, os.PathLike)):
        form, files = _find_files(X)
        if form != "libsvm":
            return TableRows(_open_dataset(X, form, files), y, sample_weight, features)
        _refuse(y, sample_weight, "libsvm files bring their own y, and no weights")
        return LibsvmRows(X, n_features, zero_based)
    if _is_mapped(X):
        return MemmapRows(X, y, sample_weight)
    if _is_arrow(X):
        return TableRows(X, y, sample_weight, features)
    if _gives_blocks(X):
        _refuse(y, sample_weight, "blocks bring their own, as (X, y) or (X, y, sample_weight)")
        return BlockRows(X)
    return None


def is_source(X: Any) -> bool:
    """Tell whether `open_source` has a reader for X, without opening anything."""
    return isinstance(X, (str, os.PathLike)) or _is_mapped(X) or _is_arrow(X) or _gives_blocks(X)


def _is_mapped(X: Any) -> bool:
    return isinstance(X, np.memmap) and X.ndim == 2 and _mapping(X) is not None


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pyarrow"


def _refuse(y: Any, sample_weight: Any, reason: str) -> None:
    for what, values in ("y", y), ("sample_weight", sample_weight):
        if values is not None:
            raise ValueError(f"{what} was passed beside X, but {reason}. Leave {what} out.")


def _gives_blocks(X: Any) -> bool:
    """Tell what gives blocks of rows from what holds rows itself."""
    if any(hasattr(X, name) for name in ("shape", "dtype", "columns", "__array__")):
        return False
    if isinstance(X, Sequence):
        first = X[0] if len(X) else None
        if isinstance(first, (tuple, list)) and first:
            first = first[0]
        return len(getattr(first, "shape", ())) == 2
    return callable(X) or (isinstance(X, Iterable) and not isinstance(X, (Mapping, Set)))


def _find_files(path: str | os.PathLike[str]) -> tuple[str, dict[str, Path]]:
    """Return the format that a file, or every file in a folder, has, and the files by name."""
    given = Path(path).absolute()
    if not given.exists():
        raise FileNotFoundError(
            f"X={os.fspath(path)!r} is neither a file nor a folder. For files on other computers "
            "pass a pyarrow.dataset.Dataset."
        )
    files = {given.name: given}
    if given.is_dir():
        found = {file.relative_to(given): file for file in sorted(given.rglob("*"))}
        files = {
            name.as_posix(): file
            for name, file in found.items()
            if file.is_file() and not any(part.startswith((".", "_")) for part in name.parts)
        }
    forms = {_format(name): name for name in files}
    form = next(iter(forms)) if len(forms) == 1 else None
    if form is None:
        allowed = "; ".join(" ".join(suffixes) for suffixes in FORMATS.values())
        raise ValueError(
            f"X={os.fspath(path)!r} holds {sorted(forms.values()) or 'no files'}. Pass one file, "
            f"or a folder of files, of one of these kinds: {allowed}."
        )
    return form, files


def _format(name: str) -> str | None:
    matching = (form for form, ends in FORMATS.items() if name.lower().endswith(ends))
    return next(matching, None)


def _open_dataset(path: str | os.PathLike[str], form: str, files: dict[str, Path]) -> Any:
    pa = _pyarrow()
    given = Path(path).absolute()
    tabs = pa.csv.ParseOptions(delimiter="\t")
    with _reading(next(iter(files)), pa.ArrowException, OSError):
        return pa.dataset.dataset(
            [file.as_posix() for file in files.values()],
            format=pa.dataset.CsvFileFormat(parse_options=tabs) if form == "tsv" else form,
            partitioning="hive",
            partition_base_dir=(given if given.is_dir() else given.parent).as_posix(),
        )
