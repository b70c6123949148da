"""Rows of tables, read with pyarrow."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._rows.readers.base import Array, Chunk, Source, copied, reading
from nysplus._rows.readers.column_types import TextColumns, TypesChanged, common_type

# Bytes of one column that are read from a Parquet file at a time: enough to make the reads few.
READ_BYTES = 2**20


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'Tables are read with pyarrow. Install it with: pip install "nysplus[table]"'
        ) from error
    return pyarrow


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
    is_table : bool
        Whether columns may have gaps, texts and dates.

    Notes
    -----
    Whole numbers among the features of CSV files are read as float64: pyarrow looks at the
    beginning of the first file only, and fractions may follow. Where texts may follow as well, the
    types of such features come from all rows (:class:`TextColumns`).
    """

    feature_names: tuple[str, ...]

    def __init__(
        self,
        dataset: Any,
        y: Any = None,
        sample_weight: Any = None,
        features: Sequence[str] | None = None,
        is_table: bool = False,
    ) -> None:
        dataset = _as_dataset(dataset)
        self.is_table = is_table
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
        if twice := [name for name in self._columns if names.count(name) > 1]:
            raise ValueError(
                f"X has several columns of one name: {twice}. Give every column its own name."
            )
        numbers = self._weights if is_table else (*self.feature_names, *self._weights)
        self._schema = _number_schema(dataset, numbers)
        self._fragments = _named_fragments(dataset)
        self.n_rows = self._survey()
        if is_table:
            self.dtype = np.dtype(np.float64)
            self._settle_types(dataset)
        else:
            fields = [self._schema.field(name) for name in self.feature_names]
            self.dtype = np.result_type(*map(_dtype, fields))
        self._y = None if self._targets else self._attach("y", y)
        self._weight = None if self._weights else self._attach("sample_weight", sample_weight)

    def _settle_types(self, dataset: Any) -> None:
        """Settle the types that features are read with: one for all files, or text."""
        pa = _pyarrow()
        stored = [fragment.physical_schema for _, fragment in self._fragments]
        texts, self._gaps = self._texts(dataset, stored[0] if stored else dataset.schema)
        self._text = TextColumns(texts, self._gaps)
        for name in self.feature_names:
            kind = pa.string()
            if name not in texts:
                found = [each.field(name).type for each in stored if name in each.names]
                kind = common_type(name, dataset.schema.field(name).type, found)
            place = self._schema.get_field_index(name)
            self._schema = self._schema.set(place, pa.field(name, kind))

    def _texts(self, dataset: Any, first: Any) -> tuple[list[str], list[str]]:
        """Return the features that are stored as text, and the texts that stand for a gap.

        Columns that the user gave a type are of that type.
        """
        form = getattr(dataset, "format", None)
        if not isinstance(form, _pyarrow().dataset.CsvFileFormat):
            return [], []
        convert = form.default_fragment_scan_options.convert_options
        inferred = [
            name
            for name in self.feature_names
            if name in first.names
            and name not in convert.column_types
            and dataset.schema.field(name).type == first.field(name).type
        ]
        return inferred, convert.null_values

    def _survey(self) -> int | None:
        """Open every file, so that a bad one is found now; count rows unless that means reading."""
        pa = _pyarrow()
        known = (pa.dataset.ParquetFileFormat, type(None))  # from the footer, or in memory
        total: int | None = 0
        for name, fragment in self._fragments:
            with reading(name, pa.ArrowException, OSError):
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
        convert = self._tabular() if self.is_table else self._features
        for name, fragment in self._fragments:
            with reading(name, pa.ArrowException, OSError):
                for table in filter(len, self._tables(fragment, most)):
                    rows = slice(start, start + len(table))
                    y, weight = copied(self._y, rows), copied(self._weight, rows, np.float64)
                    if self._targets:
                        columns = [_values(table[column]) for column in self._targets]
                        y = columns[0] if self._flat else np.column_stack(columns)
                    if self._weights:
                        weight = _values(table[self._weights[0]]).astype(np.float64)
                    if (X := convert(table)) is not None:
                        yield Chunk(X, y, weight, 0, name, firsts[name])
                    start += len(table)
                    firsts[name] += len(table)
        if self.is_table and self.schema is None and self._text.changed:
            raise TypesChanged

    def _tabular(self) -> Callable[[Any], Any]:
        """Return the function from a table as stored to the features with their types.

        Before the first look at the rows is complete, it returns None from where on the types of
        text have changed: those rows serve to find all changes.
        """
        names = self._needed
        if self.schema is not None:
            text = TextColumns(set(self._text.names) & set(names), self._gaps, self.schema)
            return lambda table: text.read(table.select(names))
        self._text.changed = False

        def typed(table: Any) -> Any:
            X = self._text.read(table.select(names))
            return None if self._text.changed else X

        return typed

    @property
    def _needed(self) -> list[str]:
        """The features that are read: of a table with names those that are used."""
        if self.schema is None or self.schema.names is None:
            return list(self.feature_names)
        return [column.name for column in self.schema.columns]

    def _tables(self, fragment: Any, most: int) -> Iterator[Any]:
        """Yield the columns that are needed of a part, those in its path included."""
        pa = _pyarrow()
        needed = list(dict.fromkeys((*self._needed, *self._targets, *self._weights)))
        schema = pa.schema([self._schema.field(column) for column in needed])
        keys = _partition_keys(fragment)
        stored = [column for column in needed if column not in keys]
        for batch in self._batches(fragment, stored, most):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns |= {key: pa.repeat(value, len(batch)) for key, value in keys.items()}
            yield pa.table({name: columns[name] for name in needed}).cast(schema)

    def _batches(self, fragment: Any, columns: list[str], most: int) -> Iterator[Any]:
        """Yield the stored columns of a part, without reading far ahead.

        A dataset's own scanner decodes whole row groups of Parquet, which may be huge, and parses
        CSV to the end however slowly the rows are used. It computes with the content of Arrow files
        before anyone can check it: offsets outside of a buffer crash the process. All of them are
        therefore read here.
        """
        pa = _pyarrow()
        form = getattr(fragment, "format", None)
        if isinstance(form, pa.dataset.ParquetFileFormat):
            with fragment.open() as file:
                reader = pa.parquet.ParquetFile(
                    file, buffer_size=READ_BYTES, pre_buffer=False, page_checksum_verification=True
                )
                groups = [group.id for group in fragment.row_groups]
                yield from reader.iter_batches(most, groups, columns, use_threads=False)
        elif isinstance(form, pa.dataset.CsvFileFormat):
            options = form.default_fragment_scan_options
            convert = copy(options.convert_options)
            convert.include_columns, convert.column_types = columns, self._schema
            with fragment.filesystem.open_input_stream(fragment.path) as file:
                yield from pa.csv.open_csv(file, options.read_options, form.parse_options, convert)
        elif isinstance(form, pa.dataset.IpcFileFormat):
            with fragment.open() as file, pa.ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    batch = reader.get_batch(number)
                    batch.validate(full=True)
                    batch = batch.select(columns)
                    yield from (batch[first : first + most] for first in range(0, len(batch), most))
        else:
            yield from fragment.to_batches(
                schema=self._schema,
                columns=columns,
                batch_size=most,
                batch_readahead=1,
                fragment_readahead=1,
                use_threads=False,
            )

    def _features(self, table: Any) -> Array:
        columns = [table[name] for name in self.feature_names]
        # What is missing becomes NaN, for the check to find.
        missing = any(column.null_count for column in columns)
        X = np.empty((len(columns), len(table)), np.float64 if missing else self.dtype)
        for row, column in zip(X, columns, strict=True):
            row[:] = _values(column)
        return X.T


def _as_dataset(table: Any) -> Any:
    pa = _pyarrow()
    if isinstance(table, pa.Table):
        return pa.dataset.dataset(table)
    if not isinstance(table, pa.dataset.Dataset):
        raise TypeError(
            f"X is a {type(table).__name__}, which is no table that can be read again and again. "
            "Pass a pyarrow.Table or a pyarrow.dataset.Dataset."
        )
    return table


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
            f"X has columns that are not numbers: {', '.join(text)}. Pass encoder='auto', which "
            "takes tables with categories and dates, encode them as numbers in the table, or leave "
            "them out."
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


def open_dataset(folder: Path, form: str, files: dict[str, Path]) -> Any:
    """Return the files of a folder as a dataset; folders named ``key=value`` are columns too."""
    pa = _pyarrow()
    tabs = pa.csv.ParseOptions(delimiter="\t")
    with reading(next(iter(files)), pa.ArrowException, OSError):
        return pa.dataset.dataset(
            [file.as_posix() for file in files.values()],
            format=pa.dataset.CsvFileFormat(parse_options=tabs) if form == "tsv" else form,
            partitioning="hive",
            partition_base_dir=folder.as_posix(),
        )
