"""The columns of a table in memory, whatever library holds it, as arrays of numbers."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float

ColumnKind = Literal["number", "category", "date"]
Entries = Literal["levels", "texts", "numbers"]
# Types of the entries of a column of objects, by what they stand for.
TEXT: tuple[type, ...] = (str,)
TRUTH: tuple[type, ...] = (bool, np.bool_)
NUMBERS: tuple[type, ...] = (Real, Decimal)
DATES: tuple[type, ...] = (datetime.date, np.datetime64)
DURATIONS: tuple[type, ...] = (datetime.timedelta, np.timedelta64)
# Types of objects that have a value for gaps.
MAY_BE_MISSING = (float, np.floating, np.datetime64, np.timedelta64, Decimal)
# The levels of a column of truth values.
TRUTH_LEVELS = ("False", "True")


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """One column of a table.

    Attributes
    ----------
    name : str
        For messages: the name, or the number of the column.
    kind : {"number", "category", "date"} or None
        None for a column that has gaps only.
    numbers : ndarray of shape (N,)
        float64, NaN for gaps: numbers, positions in `levels`, or seconds since 1970.
    levels : tuple of str
        The levels of a category.
    entries : {"levels", "texts", "numbers"}
        What a category consists of in the table: levels of a categorical type, truth values
        included, texts, or numbers.
    """

    name: str
    kind: ColumnKind | None
    numbers: Float
    levels: tuple[str, ...] = ()
    entries: Entries = "levels"

    def as_category(self) -> ColumnValues:
        """Return a column of numbers as a category, whose levels are named by the numbers."""
        if self.kind != "number":
            return self
        distinct, codes = np.unique(self.numbers, return_inverse=True)
        gap = np.isnan(self.numbers)
        levels = tuple(number_name(number) for number in distinct[~np.isnan(distinct)])
        positions = np.where(gap, np.nan, codes)
        return ColumnValues(self.name, "category", positions, levels, "numbers")


def number_name(number: float) -> str:
    """Return the name of a level that is a number: without a decimal point for whole numbers."""
    whole = number == np.floor(number) and abs(number) < 2**53
    return str(int(number)) if whole else repr(float(number))


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns: of pandas, polars or pyarrow."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def frame_names(X: Any) -> list[Any]:
    """Return the names of the columns of a frame."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def take_rows(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Return some rows of a frame or an array, by their numbers."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]


def read_columns(X: Any, positions: Sequence[int] | None = None) -> list[ColumnValues]:
    """Return columns of a table, by default all.

    Parameters
    ----------
    X : pandas or polars data frame, pyarrow table, or array of two axes
    positions : sequence of int, optional
    """
    read = _reader_of(X)
    names = [str(name) for name in frame_names(X)] if is_frame(X) else None
    positions = range(X.shape[1]) if positions is None else positions
    columns = (read(X, p, f"column {p}" if names is None else names[p]) for p in positions)
    return [_without_kind(c) if np.isnan(c.numbers).all() else c for c in columns]


def _without_kind(column: ColumnValues) -> ColumnValues:
    """Return a column of gaps as one of no kind: the type of gaps alone says nothing."""
    return ColumnValues(column.name, None, column.numbers)


def _reader_of(X: Any) -> Callable[[Any, int, str], ColumnValues]:
    libraries = {cls.__module__.partition(".")[0] for cls in type(X).__mro__}
    if "pandas" in libraries:
        return _from_pandas
    if "polars" in libraries:
        return _from_polars
    if "pyarrow" in libraries:
        return lambda X, position, name: _from_arrow(X.column(position), name)
    if isinstance(X, np.ndarray):
        return _from_array
    raise TypeError(
        f"X is a {type(X).__name__}, which is no table that can be encoded. Pass a pandas or "
        "polars data frame, a pyarrow table, or an array with a row for each observation."
    )


def _from_array(X: npt.NDArray[Any], position: int, name: str) -> ColumnValues:
    values = X[:, position]
    if values.dtype.kind in "iuf":
        return ColumnValues(name, "number", values.astype(np.float64))
    if values.dtype.kind == "b":
        return ColumnValues(name, "category", values.astype(np.float64), TRUTH_LEVELS)
    if values.dtype.kind == "M":
        return _dates(name, values)
    if values.dtype.kind == "m":
        return _durations(name, values)
    return _objects(name, values.astype(object))


def _from_pandas(X: Any, position: int, name: str) -> ColumnValues:
    import pandas as pd

    series, is_a = X.iloc[:, position], pd.api.types
    dtype = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        return _from_arrow(pa.table({name: series.array}).column(0), name)
    if isinstance(dtype, pd.CategoricalDtype):
        return _levels(name, series.cat.codes.to_numpy(), list(series.cat.categories))
    if is_a.is_bool_dtype(dtype) and not is_a.is_object_dtype(dtype):
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return ColumnValues(name, "category", numbers, TRUTH_LEVELS)
    if is_a.is_timedelta64_dtype(dtype):
        return _durations(name, series.to_numpy())
    if is_a.is_datetime64_any_dtype(dtype):
        if series.dt.tz is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return _dates(name, series.to_numpy())
    if is_a.is_numeric_dtype(dtype) and not is_a.is_complex_dtype(dtype):
        return ColumnValues(name, "number", series.to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(dtype, pd.StringDtype):
        codes, levels = pd.factorize(series)
        return _levels(name, codes, levels.tolist(), "texts")
    return _objects(name, series.to_numpy(dtype=object, na_value=None))


def _from_polars(X: Any, position: int, name: str) -> ColumnValues:
    import polars as pl

    series = X.to_series(position)
    dtype = series.dtype
    if dtype.is_numeric():
        return ColumnValues(name, "number", series.cast(pl.Float64).fill_null(np.nan).to_numpy())
    if dtype == pl.Boolean:
        numbers = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return ColumnValues(name, "category", numbers, TRUTH_LEVELS)
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        texts = series.cast(pl.String)
        distinct = texts.drop_nulls().unique().sort()
        codes = texts.rank("dense").cast(pl.Float64).fill_null(0.0).to_numpy() - 1.0
        return _levels(name, codes, distinct.to_list(), _entries(dtype == pl.String))
    if dtype in (pl.Date, pl.Datetime):
        return _dates(name, series.cast(pl.Datetime("us")).to_numpy())
    if dtype == pl.Duration:
        seconds = series.dt.total_microseconds().cast(pl.Float64).fill_null(np.nan).to_numpy()
        return ColumnValues(name, "number", seconds / 1e6)
    return _objects(name, np.array([*series.to_list(), None], dtype=object)[:-1])


def _from_arrow(column: Any, name: str) -> ColumnValues:
    import pyarrow as pa

    dtype, is_a = column.type, pa.types
    if is_a.is_boolean(dtype):
        numbers = column.cast(pa.int8()).cast(pa.float64()).to_numpy()
        return ColumnValues(name, "category", numbers, TRUTH_LEVELS)
    if is_a.is_integer(dtype) or is_a.is_floating(dtype) or is_a.is_decimal(dtype):
        # whole numbers beyond 2⁵³ are rounded, as everywhere
        numbers = column.cast(pa.float64(), safe=False).to_numpy()
        return ColumnValues(name, "number", numbers)
    if is_a.is_date(dtype) or is_a.is_timestamp(dtype):
        stamps = column.cast(pa.timestamp("us", tz=getattr(dtype, "tz", None)), safe=False)
        return _dates(name, stamps.to_numpy().astype("datetime64[us]"))
    if is_a.is_duration(dtype):
        return _durations(name, column.to_numpy().astype("timedelta64[us]"))
    is_dictionary = is_a.is_dictionary(dtype)
    if is_dictionary or str(dtype) in ("string", "large_string", "string_view"):
        column = column.cast(dtype.value_type) if is_dictionary else column
        coded = column.combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return _levels(name, codes, coded.dictionary.to_pylist(), _entries(not is_dictionary))
    if is_a.is_null(dtype):
        return ColumnValues(name, None, np.full(len(column), np.nan))
    return _objects(name, np.array([*column.to_pylist(), None], dtype=object)[:-1])


def _entries(texts: bool) -> Entries:
    return "texts" if texts else "levels"


def _levels(
    name: str, codes: npt.NDArray[Any], levels: list[Any], entries: Entries = "levels"
) -> ColumnValues:
    """Return a category, given positions among `levels`, −1 for gaps."""
    names = tuple(levels if entries == "texts" else map(level_name, levels))
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise ValueError(
            f"The category {name!r} has two levels that are written {twice!r}, such as a number "
            "and a text. Give its levels one type."
        )
    numbers = np.where(codes < 0, np.nan, codes.astype(np.float64))
    return ColumnValues(name, "category", numbers, names, entries)


def level_name(level: Any) -> str:
    """Return the name of a level of any type."""
    is_number = isinstance(level, NUMBERS) and type(level) not in TRUTH
    return number_name(float(level)) if is_number else str(level)


def _dates(name: str, stamps: npt.NDArray[Any]) -> ColumnValues:
    """Return a column of times, given as datetime64."""
    stamps = stamps.astype("datetime64[us]")
    seconds = stamps.astype(np.int64) / 1e6
    return ColumnValues(name, "date", np.where(np.isnat(stamps), np.nan, seconds))


def _durations(name: str, durations: npt.NDArray[Any]) -> ColumnValues:
    """Return a column of durations in seconds, given as timedelta64."""
    return ColumnValues(name, "number", durations / np.timedelta64(1, "s"))


def _objects(name: str, values: npt.NDArray[Any]) -> ColumnValues:
    """Return a column of Python objects of one sort: texts, truth values, numbers, times."""
    gap = np.array([is_gap(value) for value in values], dtype=bool)
    there = values[~gap]
    kinds = set(map(type, there))
    for types in (TEXT, TRUTH, NUMBERS, DATES, DURATIONS):
        if all(issubclass(kind, types) for kind in kinds):
            break
    else:
        raise _mixed(name, there)
    numbers = np.full(len(values), np.nan)
    if types == TEXT:
        place: dict[str, int] = {}
        numbers[~gap] = [place.setdefault(str(value), len(place)) for value in there]
        return ColumnValues(name, "category", numbers, tuple(place), "texts")
    numbers[~gap] = _as_numbers(name, there, types)
    if types == TRUTH:
        return ColumnValues(name, "category", numbers, TRUTH_LEVELS)
    return ColumnValues(name, "date" if types == DATES else "number", numbers)


def _as_numbers(name: str, there: npt.NDArray[Any], types: tuple[type, ...]) -> Float:
    """Return numbers, the seconds of durations, or those of dates since 1970."""
    try:
        if types == DATES:
            return _dates(name, there.astype("datetime64[us]")).numbers
        if types == DURATIONS:
            return _durations(name, there.astype("timedelta64[us]")).numbers
        return there.astype(np.float64)
    except OverflowError as error:
        raise ValueError(
            f"The column {name!r} contains a number that exceeds the range of float64 ({error}). "
            "Divide the column by a constant, or replace the number."
        ) from error


def is_gap(value: Any) -> bool:
    """Return whether an entry of a column of objects is missing: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, MAY_BE_MISSING) and bool(value != value)


def _mixed(name: str, there: npt.NDArray[Any]) -> Exception:
    kinds = {type(value).__name__: value for value in there}
    if len(kinds) == 1:
        (kind,) = kinds
        return TypeError(
            f"The column {name!r} contains entries of the type {kind}, which is neither a number, "
            "a category nor a date. Convert or leave out the column."
        )
    some = ", ".join(f"{value!r} ({kind})" for kind, value in list(kinds.items())[:3])
    return TypeError(
        f"The column {name!r} contains entries of several types: {some}. Convert it to one: "
        "numbers, texts for a category, or dates."
    )
