"""The same table in the types of several libraries has one schema and the same raw numbers."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nysplus.encoding.frames import read_columns, take_rows
from nysplus.encoding.schema import TableSchema
from nysplus.encoding.summary import TableSummary

DAYS = [
    datetime.datetime(2020, 1, 1) + datetime.timedelta(days=d, hours=5) for d in range(0, 70, 9)
]
TABLE = {
    "whole": [3, None, 1, 2, 3, 1, 5, 8],
    "real": [0.5, 1.25, None, -2.0, 0.5, 3.5, 1e6, 0.25],
    "text": ["b", "a", None, "b", "ä", "c", "b", "a"],
    "truth": [True, None, False, True, True, False, True, False],
    "time": [*DAYS[:3], None, *DAYS[4:]],
    "day": [*(stamp.date() for stamp in DAYS[:6]), None, DAYS[7].date()],
    "length": [datetime.timedelta(hours=h) for h in range(7)] + [None],
}


def in_zone(values):
    """Return times without a zone as the same times of Berlin."""
    stamps = pd.Series(values).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    return [None if stamp is pd.NaT else stamp.to_pydatetime() for stamp in stamps]


def pandas_of(**dtypes):
    columns = {
        name: pd.Series(values, dtype=dtypes.get(name, object)) for name, values in TABLE.items()
    }
    return pd.DataFrame(columns)


def arrow_of(**types):
    defaults = {"whole": pa.int64(), "real": pa.float64(), "text": pa.string()}
    types = {**defaults, **types}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in TABLE.items()})


def polars_of(**dtypes):
    return pl.DataFrame(
        {name: pl.Series(values, dtype=dtypes.get(name)) for name, values in TABLE.items()}
    )


def arrow_backed():
    """Return a pandas frame whose columns are Arrow's."""
    table = arrow_of(time=pa.timestamp("us"), day=pa.date32(), length=pa.duration("us"))
    return table.to_pandas(types_mapper=pd.ArrowDtype)


FRAMES = {
    "pandas objects": lambda: pandas_of(),
    "pandas nullable": lambda: pandas_of(
        whole="Int64",
        real="Float64",
        text="string",
        truth="boolean",
        time="datetime64[ns]",
        day="datetime64[s]",
        length="timedelta64[ns]",
    ),
    "pandas plain": lambda: pandas_of(
        whole="float32", real="float64", text="category", truth="category", time="datetime64[us]"
    ),
    "pandas zone": lambda: pandas_of().assign(time=in_zone(TABLE["time"])),
    "pandas of Arrow": arrow_backed,
    "pandas dictionary": lambda: pandas_of(
        text=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.large_string())),
        real=pd.ArrowDtype(pa.float64()),
        time=pd.ArrowDtype(pa.timestamp("ns")),
    ),
    "polars": lambda: polars_of(),
    "polars types": lambda: polars_of(
        whole=pl.UInt8, text=pl.Categorical, time=pl.Datetime("ms"), day=pl.Date
    ),
    "polars enum": lambda: polars_of(
        text=pl.Enum(["ä", "c", "b", "a", "not used"]), time=pl.Datetime("ns", "Europe/Berlin")
    ),
    "Arrow": lambda: arrow_of(),
    "Arrow types": lambda: arrow_of(
        whole=pa.decimal128(5, 1),
        real=pa.float32(),
        text=pa.dictionary(pa.int8(), pa.string()),
        time=pa.timestamp("s", "Europe/Berlin"),
        day=pa.date64(),
        length=pa.duration("s"),
    ),
    "Arrow chunks": lambda: pa.concat_tables(
        [arrow_of(text=pa.large_string()).slice(0, 3), arrow_of(text=pa.large_string()).slice(3)]
    ),
    "array": lambda: np.column_stack(
        [np.array([*v, 0], dtype=object)[:-1] for v in TABLE.values()]
    ),
    "array with NaN": lambda: pandas_of().fillna(np.nan).to_numpy(dtype=object),
}


def schema_of(X):
    return TableSchema.of(TableSummary.of(X))


@pytest.fixture(scope="module")
def first():
    frame = FRAMES["pandas objects"]()
    return schema_of(frame), schema_of(frame).read(frame)


def test_raw_numbers_are_those_of_the_table(first):
    schema, raw = first
    kinds = ["number", "number", "category", "category", "date", "date", "number"]
    assert [column.kind for column in schema.columns] == kinds
    assert schema.columns[2].levels == ("b", "a", "c", "ä")
    assert schema.columns[3].levels == ("True", "False")
    assert all(column.gaps for column in schema.columns)
    np.testing.assert_array_equal(raw[:, 0], [3, np.nan, 1, 2, 3, 1, 5, 8])
    np.testing.assert_array_equal(raw[:, 2], [0, 1, np.nan, 0, 3, 2, 0, 1])
    np.testing.assert_array_equal(raw[:, 3], [0, np.nan, 1, 0, 0, 1, 0, 1])
    epoch = datetime.datetime(1970, 1, 1)
    seconds = [np.nan if t is None else (t - epoch).total_seconds() for t in TABLE["time"]]
    np.testing.assert_array_equal(raw[:, 4], seconds)
    np.testing.assert_array_equal(raw[:, 6], [*np.arange(7) * 3600.0, np.nan])


@pytest.mark.parametrize("library", FRAMES)
def test_libraries_agree(library, first):
    schema, raw = first
    frame = FRAMES[library]()
    found = schema_of(frame)
    if found.names is not None:
        assert found == schema
    for one, other in zip(found.columns, schema.columns, strict=True):
        assert (one.kind, one.levels, one.gaps) == (other.kind, other.levels, other.gaps)
    for reader in (found, schema):
        np.testing.assert_array_equal(reader.read(frame), raw)


@pytest.mark.parametrize("library", FRAMES)
def test_some_rows(library, first):
    schema, raw = first
    rows = np.array([5, 0, 6])
    np.testing.assert_array_equal(schema.read(take_rows(FRAMES[library](), rows)), raw[rows])


class Labelled(pd.DataFrame):
    """A subclass, as of other libraries."""


def test_subclasses_of_frames(first):
    schema, raw = first
    np.testing.assert_array_equal(schema.read(Labelled(pandas_of())), raw)


NUMBERED = {
    "pandas": pd.DataFrame({"a": pd.Categorical([1, 2.5, None, 1])}),
    "dictionary": pa.table({"a": pa.array([1, 2.5, None, 1]).dictionary_encode()}),
}


@pytest.mark.parametrize("library", NUMBERED)
def test_levels_that_are_numbers(library):
    (column,) = read_columns(NUMBERED[library])
    assert (column.kind, column.levels) == ("category", ("1", "2.5"))
    np.testing.assert_array_equal(column.numbers, [0, 1, np.nan, 0])


def test_arrays_of_one_type():
    (truth,) = read_columns(np.array([[True], [False]]))
    assert (truth.kind, truth.levels) == ("category", ("False", "True"))
    np.testing.assert_array_equal(truth.numbers, [1, 0])
    (date,) = read_columns(np.array([["1970-01-02"], ["NaT"]], dtype="datetime64[D]"))
    assert date.kind == "date"
    np.testing.assert_array_equal(date.numbers, [86400, np.nan])
    (length,) = read_columns(np.array([[90], ["NaT"]], dtype="timedelta64[m]"))
    assert length.kind == "number"
    np.testing.assert_array_equal(length.numbers, [5400, np.nan])
    (whole,) = read_columns(np.array([[3], [4]], dtype=np.uint8))
    assert whole.kind == "number"
    (text,) = read_columns(np.array([["b"], ["a"]]))
    assert (text.kind, text.entries, text.levels) == ("category", "texts", ("b", "a"))


def test_numbers_as_categories():
    (column,) = read_columns(np.array([[0.5], [3.0], [np.nan], [0.5]]))
    category = column.as_category()
    assert (category.kind, category.levels, category.entries) == (
        "category",
        ("0.5", "3"),
        "numbers",
    )
    np.testing.assert_array_equal(category.numbers, [0, 1, np.nan, 0])


def test_levels_of_other_types_are_named_by_their_text():
    levels = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
    (column,) = read_columns(pd.DataFrame({"a": pd.Categorical(levels)}))
    assert column.levels == ("2020-01-01", "2021-01-01")
    cut = pd.DataFrame({"a": pd.cut([1.0, 2.0, 3.0], [0, 1, 3])})
    assert read_columns(cut)[0].levels == ("(0, 1]", "(1, 3]")


@pytest.mark.parametrize(
    "gaps",
    [
        pd.DataFrame({"a": [np.nan, np.nan]}),
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": pd.Series([None, None], dtype="category")}),
        pd.DataFrame({"a": pd.Series([pd.NaT, pd.NaT])}),
        pl.DataFrame({"a": [None, None]}),
        pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)}),
        pa.table({"a": pa.nulls(2)}),
        pa.table({"a": pa.array([None, None], pa.string())}),
        np.full((2, 1), np.nan),
        np.full((2, 1), None),
        np.array([[np.timedelta64("NaT")], [np.datetime64("NaT")]], dtype=object),
    ],
)
def test_gaps_alone_have_no_kind(gaps):
    (column,) = read_columns(gaps)
    assert column.kind is None
    assert np.isnan(column.numbers).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a", None], r"'a' contains entries of several types: 1 \(int\), 'a' \(str\)"),
        ([1, datetime.date(2020, 1, 1)], "several types"),
        ([[1], [2]], "entries of the type list"),
        ([1j, 2j], "entries of the type complex"),
        ([b"x", b"y"], "entries of the type bytes"),
        ([datetime.time(1), None], "entries of the type time"),
        ([{"x": 1}, None], "entries of the type dict"),
    ],
)
def test_other_types_are_refused_by_name(values, message):
    objects = np.array([*values, None], dtype=object)[:-1]
    for X in (pd.DataFrame({"a": objects}), objects[:, None]):
        with pytest.raises(TypeError, match=message.replace("'a' contains", "contains")):
            read_columns(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": [1j, 2j]}),
        np.array([[1j], [2j]]),
        pl.DataFrame({"a": [[1], [2]]}),
        pl.DataFrame({"a": [datetime.time(1)]}),
        pa.table({"a": [[1], [2]]}),
        pa.table({"a": [b"x"]}),
    ],
)
def test_other_types_of_libraries_are_refused(X):
    with pytest.raises(TypeError, match=r"neither a number, a category nor a date\. Convert"):
        read_columns(X)


def test_two_levels_of_one_name():
    frame = pd.DataFrame({"a": pd.Categorical([1, "1"])})
    with pytest.raises(ValueError, match="'a' has two levels that are written '1'"):
        read_columns(frame)


def test_numbers_beyond_floats():
    with pytest.raises(ValueError, match="'a' contains a number that exceeds the range of float64"):
        read_columns(pd.DataFrame({"a": np.array([10**400, 1], dtype=object)}))


def test_decimals_that_are_missing():
    values = np.array([Decimal("nan"), Decimal("1.5"), None], dtype=object)
    (column,) = read_columns(values[:, None])
    np.testing.assert_array_equal(column.numbers, [np.nan, 1.5, np.nan])


def test_what_is_no_table():
    with pytest.raises(TypeError, match="X is a dict, which is no table that can be encoded"):
        read_columns({"a": [1]})
