"""The types of columns in all files of a table, and what texts in CSV files stand for."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as pds
import pyarrow.parquet
import pytest

from nysplus._rows.on_disk import look_at_columns
from nysplus._rows.readers import open_source
from nysplus._rows.readers.column_types import TextColumns, common_type
from nysplus._runtime.progress import Progress
from nysplus.encoding import TableEncoder

ENCODER = TableEncoder(min_level_rows=1)


def look(source, progress=None):
    """Look at the columns of a source as a fit does; return their summaries by name."""
    summary = look_at_columns(source, ENCODER, progress or Progress())
    source.schema = ENCODER.schema(summary)
    return {column.name: column for column in summary.columns}


def raw(source, most=5):
    return np.concatenate([chunk.X for chunk in source.chunks(most)])


def write_csv(folder, *texts):
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"part-{number}.csv").write_text(text)
    return folder


def lines(name, entries):
    return "\n".join([f"other,{name}", *(f"{i % 4},{entry}" for i, entry in enumerate(entries))])


KINDS = {
    "numbers": (["1", "2.5", " -3e4", "+7", ".5"], "number"),
    "truth values": (["True", "false", "TRUE", "False", "true"], "category"),
    "dates": (["2020-01-01", "2021-05-06 07:08", "2021-05-06T07:08:09.5", "1999-12-31"], "date"),
    "dates in zones": (["2020-01-01T00:00:00Z", "2021-05-06 07:08:00+02:00"], "date"),
    "texts": (["red", "blue", "red", "7"], "category"),
    "dates and numbers": (["2020-01-01", "17"], "category"),
    "truth values and numbers": (["true", "1"], "category"),
}
every_kind = pytest.mark.parametrize(("entries", "kind"), KINDS.values(), ids=KINDS)


@pytest.mark.parametrize("gap", ["", "NA", "nan", "null"])
@every_kind
def test_kinds_of_text(tmp_path, entries, kind, gap):
    """Wherever entries and gaps are: all at once, one in each file, or after many gaps."""
    for texts in (
        [lines("x", [*entries, gap] * 5)],
        [lines("x", [entry, gap]) for entry in entries * 5],
        [lines("x", [gap] * 20), lines("x", entries[::-1] * 5)],
    ):
        folder = write_csv(tmp_path / str(len(texts)), *texts)
        column = look(open_source(folder, is_table=True))["x"]
        assert column.kind == kind
        assert column.n_gaps > 0
        if kind == "category" and "true" not in entries:
            assert set(column.counts) == set(entries)


def test_text_that_begins_with_numbers(tmp_path):
    """pyarrow looks at the first file only; numbers are then levels as they are written."""
    folder = write_csv(tmp_path / "rows", lines("x", ["1", "02"] * 9), lines("x", ["1", "a"] * 9))
    progress = Progress()
    source = open_source(folder, is_table=True)
    assert dict(look(source, progress)["x"].counts) == {"1": 18, "02": 9, "a": 9}
    assert progress.passes == 2
    assert source.schema.columns[1].levels == ("1", "02", "a")
    np.testing.assert_array_equal(raw(source)[:18, 1], [0, 1] * 9)


def test_whole_numbers_with_gaps_are_numbers(tmp_path):
    folder = write_csv(tmp_path / "rows", lines("x", ["1", "", "3"] * 7), lines("x", ["4.5", ""]))
    source = open_source(folder, is_table=True)
    assert look(source)["x"].kind == "number"
    found = raw(source)[:, 1]
    np.testing.assert_array_equal(found, np.array([1, np.nan, 3] * 7 + [4.5, np.nan]))


def test_what_a_schema_expects(tmp_path):
    """At predict a column is what it was in training, also if its entries look like another."""
    first = write_csv(tmp_path / "a", lines("x", ["1", "b", "True"] * 9))
    source = open_source(first, is_table=True)
    look(source)
    later = open_source(write_csv(tmp_path / "b", lines("x", ["1", "1", "2"])), is_table=True)
    later.schema = source.schema
    np.testing.assert_array_equal(raw(later)[:, 1], [0, 0, -1])
    texts = open_source(write_csv(tmp_path / "c", "x,other\nb,zero\n"), is_table=True)
    texts.schema = source.schema
    with pytest.raises(TypeError, match=r"'other' contained numbers in training.*such as 'zero'"):
        raw(texts)


def test_dates_with_and_without_zone_at_predict(tmp_path):
    days = [f"2020-01-{day:02}" for day in range(1, 29)]
    source = open_source(write_csv(tmp_path / "a", lines("x", days)), is_table=True)
    look(source)
    zoned = [f"{day}T01:00:00+01:00" for day in days]
    later = open_source(write_csv(tmp_path / "b", lines("x", zoned)), is_table=True)
    later.schema = source.schema
    np.testing.assert_array_equal(raw(later), raw(source))


def test_types_that_the_user_chose(tmp_path):
    folder = write_csv(tmp_path / "rows", lines("zip", ["01", "2", "01"] * 9))
    path = str(folder / "part-0.csv")
    schema = pa.schema([("other", pa.int64()), ("zip", pa.string())])
    convert = pa.csv.ConvertOptions(column_types={"zip": pa.string()})
    options = pds.CsvFragmentScanOptions(convert_options=convert)
    form = pds.CsvFileFormat(default_fragment_scan_options=options)
    for dataset in (pds.dataset(path, schema, format="csv"), pds.dataset(path, format=form)):
        assert set(look(open_source(dataset, is_table=True))["zip"].counts) == {"01", "2"}


def test_text_of_targets_is_left_alone(tmp_path):
    """A class named NA is no gap."""
    folder = write_csv(tmp_path / "rows", lines("label", ["NA", "x"] * 9))
    source = open_source(folder, "label", is_table=True)
    look(source)
    assert next(source.chunks(4)).y.tolist() == ["NA", "x", "NA", "x"]


def test_reading_changes_types_once():
    columns = TextColumns(["x"], [""])
    numbers = pa.table({"x": ["1", "2"]})
    assert columns.read(numbers)["x"].to_pylist() == [1.0, 2.0]
    assert not columns.changed
    assert columns.read(pa.table({"x": ["a"]}))["x"].to_pylist() == ["a"]
    assert columns.changed
    assert columns.read(numbers)["x"].to_pylist() == ["1", "2"]


# ---- files with types of their own --------------------------------------------------------------


def write_parquet(folder, *columns):
    folder.mkdir()
    for number, values in enumerate(columns):
        n = len(values)
        table = pa.table({"x": values, "other": pa.array(np.arange(n) % 5.0)})
        pa.parquet.write_table(table, folder / f"part-{number}.parquet")
    return folder


DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 3)]
FILES = {
    "gaps first": ([pa.nulls(3), pa.array(["a", "b", "a"])], [None, None, None, "a", "b", "a"]),
    "gaps last": ([pa.array([1, 2, 2]), pa.nulls(3)], [1.0, 2.0, 2.0, None, None, None]),
    "whole and other numbers": ([pa.array([1, 2]), pa.array([0.5, None])], [1.0, 2.0, 0.5, None]),
    "dictionary and text": (
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"], pa.large_string())],
        ["a", "b", "b", "c"],
    ),
    "dates and times": (
        [pa.array(DAYS), pa.array(DAYS).cast(pa.timestamp("s"))],
        [datetime.datetime(2020, 1, day) for day in (1, 2, 3)] * 2,
    ),
}


@pytest.mark.parametrize(("files", "expected"), FILES.values(), ids=FILES)
def test_one_type_for_all_files(tmp_path, files, expected):
    source = open_source(write_parquet(tmp_path / "rows", *files), is_table=True)
    found = [value for chunk in source.unread(10) for value in chunk.X["x"].to_pylist()]
    assert found == expected


def test_types_that_do_not_fit(tmp_path):
    files = write_parquet(tmp_path / "rows", pa.array([1, 2]), pa.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"'x' has several types in the files of X: int64, string"):
        open_source(files, is_table=True)


def test_a_column_in_the_path_keeps_its_type():
    assert common_type("year", pa.int32(), []) == pa.int32()


def test_columns_of_one_name():
    table = pa.table([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], names=["a", "b", "a"])
    for is_table in (True, False):
        with pytest.raises(ValueError, match=r"several columns of one name: \['a'\]"):
            open_source(table, is_table=is_table)
