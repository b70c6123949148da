"""Rows of tables: Parquet, Arrow and CSV."""

from __future__ import annotations

import subprocess
import sys
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from reader_checks import NAMES, N, assert_rows, make_table, read_all, write_table

from nysplus._rows.readers import TableRows, open_source

SUFFIXES = [".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".csv.gz", ".csv.bz2", ".tsv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("as_text", [True, False])
def test_table_file(tmp_path, data, suffix, as_text):
    path = tmp_path / f"rows{suffix}"
    write_table(make_table(data), path)
    source = open_source(str(path) if as_text else path, "label", "w")
    assert isinstance(source, TableRows)
    assert source.feature_names == tuple(NAMES)
    assert source.n_rows == (N if suffix in (".parquet", ".pq") else None)
    assert source.take(np.arange(3)) is None
    assert_rows(source, *data)
    X = next(source.chunks(9)).X
    assert X.strides[0] == X.itemsize  # column by column, as it was stored


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_table_folder(tmp_path, data, suffix):
    """Files are read in the order of their names, and no chunk has rows of two of them."""
    table = make_table(data)
    (tmp_path / "more").mkdir()
    for name, rows in {"a": (0, 40), "b": (40, 22), "more/c": (62, 41)}.items():
        write_table(table.slice(*rows), tmp_path / f"{name}{suffix}")
    for hidden in ("_SUCCESS", ".a.crc", "more/_metadata", ".git/x.txt", "_old/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("nothing to read")
    source = open_source(tmp_path, "label", "w")
    assert_rows(source, *data)
    whole = [(chunk.name.split(".")[0], chunk.first, chunk.n_rows) for chunk in source.chunks(25)]
    assert whole == [
        ("a", 0, 25),
        ("a", 25, 15),
        ("b", 0, 22),
        ("more/c", 0, 25),
        ("more/c", 25, 16),
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_small_batches_are_joined(tmp_path, data, suffix):
    path = tmp_path / f"rows{suffix}"
    small = {".parquet": {"row_group_size": 3}, ".feather": {"chunksize": 3}}[suffix]
    write_table(make_table(data), path, **small)
    source = open_source(path, "label", "w")
    assert_rows(source, *data)
    assert [chunk.n_rows for chunk in source.chunks(50)] == [50, 50, 3]


def test_table_in_memory_and_dataset(tmp_path, data):
    pads = pytest.importorskip("pyarrow.dataset")
    import pyarrow as pa

    table = make_table(data)
    assert_rows(open_source(table, "label", "w"), *data)
    pieces = pa.concat_tables([table.slice(0, 5), table.slice(5, 40), table.slice(45)])
    assert [chunk.n_rows for chunk in TableRows(pieces, "label", "w").chunks(60)] == [60, 43]
    write_table(table, tmp_path / "rows.parquet")
    dataset = pads.dataset(tmp_path / "rows.parquet")
    assert_rows(open_source(dataset, "label", "w"), *data)
    groups = next(dataset.get_fragments()).subset(row_group_ids=[0])
    subset = pads.FileSystemDataset([groups], dataset.schema, dataset.format, dataset.filesystem)
    assert_rows(TableRows(subset, "label", "w"), *data)


def test_columns_are_chosen_and_ordered(tmp_path, data):
    X, _, weight = data
    path = tmp_path / "rows.parquet"
    write_table(make_table(data), path)
    assert_rows(open_source(path, features=["x3", "w"]), np.column_stack([X[:, 3], weight]))
    names = np.array(["x1", "x0"], dtype=object)  # as an estimator keeps them
    source = open_source(path, ["x2", "x3"], features=names)
    assert_rows(source, X[:, [1, 0]], X[:, 2:])
    assert source.feature_names == ("x1", "x0")
    assert_rows(open_source(path, ["x2"], features=["x0"]), X[:, :1], X[:, 2:3])
    assert not open_source(path, features=["x0"]).has_targets


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_targets_and_weights_beside_a_table(tmp_path, data, suffix):
    X, y, weight = data
    write_table(make_table(data).select(NAMES), tmp_path / f"rows{suffix}")
    source = open_source(tmp_path, pd.Series(y), list(weight))
    assert source.n_rows == N
    assert_rows(source, X, y, weight)
    for wrong, count in (y[:-1], "at least 103"), (np.r_[y, y], "103"):
        message = rf"X has 103 rows, y has {len(wrong)}\."
        if suffix == ".csv":  # which has to be read to know
            message = rf"This pass over X gave {count} rows, y has {len(wrong)}\. Every pass must"
        with pytest.raises(ValueError, match=message):
            read_all(open_source(tmp_path, wrong))
    with pytest.raises(ValueError, match=r"X has 103 rows, sample_weight has 2\."):
        open_source(tmp_path, y, [1.0, 2.0])


def test_types_of_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    columns = {
        "flag": pa.array([True, False, True]),
        "small": pa.array([1, 2, 3], pa.int8()),
        "half": pa.array(np.array([1, 2, 3], np.float16)),
        "single": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "exact": pa.array([Decimal("1.25"), Decimal("2.50"), Decimal("3.75")]),
    }
    path = tmp_path / "rows.parquet"
    write_table(pa.table(columns), path)
    for names, dtype in (
        (["flag"], bool),
        (["flag", "small"], np.int8),
        (["flag", "half"], np.float16),
        (["half", "single", "small"], np.float32),
        (list(columns), np.float64),
    ):
        source = open_source(path, features=names)
        assert source.dtype == dtype
        expected = np.column_stack([[float(v) for v in columns[n].to_pylist()] for n in names])
        assert_rows(source, expected.astype(dtype))
    source = open_source(path, "exact", features=["small"])
    assert read_all(source)[0].y.tolist() == [1.25, 2.5, 3.75]


@pytest.mark.parametrize("offset", [4, 2**30, -1])
def test_offsets_outside_of_an_arrow_file(tmp_path, offset):
    """pyarrow reads them as they are, and follows them."""
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    path = tmp_path / "rows.arrow"
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": ["a", "bcd", "e"]})
    feather.write_feather(table, path, compression="uncompressed")
    offsets, content = np.array([0, 1, 4, 5], "<i4"), path.read_bytes()
    assert content.count(offsets.tobytes()) == 1
    damaged = np.array([0, 1, 4, offset], "<i4")
    if offset != 4:
        damaged[2] = offset
    path.write_bytes(content.replace(offsets.tobytes(), damaged.tobytes()))
    if offset == 4:  # which leaves a letter out, but is valid
        assert read_all(open_source(path, "y"))[0].y.tolist() == ["a", "bcd", ""]
        return
    with pytest.raises(ValueError, match=r"rows\.arrow cannot be read: .*[Oo]ffset"):
        read_all(open_source(path, "y"))


def test_targets_of_any_type(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    for y in (
        pa.array(["a", "b", "a"]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([1, 5, 1]),
        pa.array([True, False, True]),
    ):
        write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": y}), path)
        assert read_all(open_source(path, "y"))[0].y.tolist() == y.to_pylist()


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_partitioned_folder(tmp_path, data, suffix):
    """Columns that only the names of folders hold are columns like others."""
    pads = pytest.importorskip("pyarrow.dataset")
    X, y, _ = data
    table = make_table(data).select([*NAMES, "label"])
    root = tmp_path / "z=9" / "rows"  # a folder above is none of our business
    for year, rows in {2023: (0, 60), 2024: (60, N - 60)}.items():
        folder = root / f"year={year}"
        folder.mkdir(parents=True)
        write_table(table.slice(*rows), folder / f"part-0{suffix}")
    year = np.where(np.arange(N) < 60, 2023.0, 2024.0)
    source = open_source(root, "label")
    assert source.feature_names == (*NAMES, "year")
    assert_rows(source, np.column_stack([X, year]), y)
    assert {chunk.name for chunk in source.chunks(N)} == {
        f"year={year}/part-0{suffix}" for year in (2023, 2024)
    }
    assert_rows(open_source(root, "year", features=NAMES), X, year)
    form = {".parquet": "parquet", ".feather": "ipc", ".csv": "csv"}[suffix]
    dataset = pads.dataset(root, format=form, partitioning="hive")
    assert_rows(TableRows(dataset, "label"), np.column_stack([X, year]), y)


def test_csv_whose_fractions_come_late(tmp_path):
    """pyarrow guesses types from the first megabyte."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1,,0\n" * 300_000 + "1.5,1,1\n")
    source = open_source(path, "y", features=["a"])
    assert source.dtype == np.float64
    assert list(source.chunks(300_000))[-1].X.tolist() == [[1.5]]
    with pytest.raises(
        ValueError, match=r"X contains NaN in row 0 \(row 0 of rows.csv.*column 'b'"
    ):
        read_all(open_source(path, "y"))
    message = "rows.csv cannot be read: .*conversion error to int64: invalid value '1.5'.*Write it"
    with pytest.raises(ValueError, match=message):
        read_all(open_source(path, "a", features=["y"]))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("x2", None, r"X contains NaN in row 95 \(row 35 of b.parquet; counted.*column 'x2'\."),
        ("x2", np.inf, r"X contains infinity in row 95 \(row 35 of b.parquet.*column 'x2'\."),
        ("n", None, r"X contains NaN in row 95 \(row 35 of b.parquet.*column 'n'\."),
        ("t", None, r"X contains NaN in row 95 \(row 35 of b.parquet.*column 't'\."),
        ("label", None, r"y contains a missing value in row 95 \(row 35 of b.parquet"),
        ("number", None, r"y contains NaN in row 95 \(row 35 of b.parquet"),
        ("truth", None, r"y contains NaN in row 95 \(row 35 of b.parquet"),
        ("w", None, r"sample_weight contains NaN in row 95 \(row 35 of b.parquet"),
        ("w", -1.0, r"sample_weight contains -1 in row 95 \(row 35 of b.parquet"),
    ],
)
def test_missing_value_is_found_across_files(tmp_path, data, column, value, message):
    pa = pytest.importorskip("pyarrow")
    table = make_table(data)
    for name, kind in {
        "n": pa.int32(),
        "t": pa.bool_(),
        "number": pa.int8(),
        "truth": pa.bool_(),
    }.items():
        table = table.append_column(name, pa.array([1] * N).cast(kind))
    values = table[column].to_pylist()
    values[95] = value
    at = table.schema.get_field_index(column)
    table = table.set_column(at, column, pa.array(values, table.schema.field(column).type))
    write_table(table.slice(0, 60), tmp_path / "a.parquet")
    write_table(table.slice(60), tmp_path / "b.parquet")
    y = column if column in ("number", "truth") else "label"
    source = open_source(tmp_path, y, "w", features=[*NAMES, "n", "t"])
    for most in (10, 1000):
        with pytest.raises(ValueError, match=message):
            read_all(source, most)


def test_wrong_columns(tmp_path, data):
    pa = pytest.importorskip("pyarrow")
    table = make_table(data).append_column("city", pa.array(["Oslo"] * N))
    path = tmp_path / "rows.parquet"
    write_table(table, path)
    columns = r"Its columns are \['w', 'x0', 'x1', 'x2', 'x3', 'label', 'city'\]"
    with pytest.raises(ValueError, match=rf"X has no columns \['a', 'lable', 'v'\]\. {columns}"):
        open_source(path, "lable", "v", features=["x0", "a"])
    with pytest.raises(ValueError, match=rf"X has no columns \['a', 'b'\]\. {columns}"):
        open_source(path, ["a", "b"])
    text = (
        r"X has columns that are not numbers: 'label' \(string\), 'city' \(string\)\. Pass encoder"
    )
    with pytest.raises(ValueError, match=text):
        open_source(path)
    with pytest.raises(ValueError, match=r"not numbers: 'city' \(string\)"):
        open_source(path, "label", "city", features=["x0"])
    with pytest.raises(ValueError, match="X has no columns besides those of y and sample_weight"):
        open_source(table.select(["x0", "w"]), "x0", "w")


def test_objects_of_pyarrow_that_are_no_tables(data):
    table = make_table(data)
    with pytest.raises(
        TypeError, match=r"X is a RecordBatchReader, which is no table.*pyarrow.Table"
    ):
        open_source(table.to_reader())
    with pytest.raises(ValueError, match="X has no rows"):
        read_all(open_source(table.slice(0, 0), "label"))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
@pytest.mark.parametrize("bad", ["a", "b"])
def test_empty_file_is_found_at_once(tmp_path, data, suffix, bad):
    for name in "ab":
        write_table(make_table(data), tmp_path / f"{name}{suffix}")
    (tmp_path / f"{bad}{suffix}").write_bytes(b"")
    with pytest.raises(
        ValueError, match=rf"^{bad}{suffix} cannot be read: .*Write it again or leave"
    ):
        open_source(tmp_path, "label")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_file_without_its_end_is_found_at_once(tmp_path, data, suffix):
    for name in "ab":
        write_table(make_table(data), tmp_path / f"{name}{suffix}")
    path = tmp_path / f"b{suffix}"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"^b{suffix} cannot be read: "):
        open_source(tmp_path, "label")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_file_with_a_hole_is_found_when_it_is_read(tmp_path, data, suffix):
    for name in "ab":
        write_table(make_table(data), tmp_path / f"{name}{suffix}")
    path = tmp_path / f"b{suffix}"
    stored = path.read_bytes()
    path.write_bytes(stored[:500] + stored[1500:])  # footer and all
    with pytest.raises(ValueError, match=rf"^b{suffix} cannot be read: "):
        read_all(open_source(tmp_path, "label"))


def test_flipped_bit_is_found_by_checksum(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    table = pa.table({"x": np.arange(1000.0)})
    write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    stored = bytearray(path.read_bytes())
    stored[stored.index(np.float64(500).tobytes())] ^= 1  # still a number
    path.write_bytes(stored)
    with pytest.raises(ValueError, match=r"^rows\.parquet cannot be read: .*checksum"):
        read_all(open_source(path))


def test_broken_packed_csv(tmp_path, data):
    path = tmp_path / "rows.csv.gz"
    write_table(make_table(data), path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"^rows.csv.gz cannot be read: "):
        read_all(open_source(path, "label"))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_files_that_do_not_go_together(tmp_path, data, suffix):
    import pyarrow as pa

    table = make_table(data)
    write_table(table, tmp_path / f"a{suffix}")
    write_table(table.drop_columns(["x1", "w"]), tmp_path / f"b{suffix}")
    with pytest.raises(
        ValueError, match=rf"b{suffix} has no columns \['x1', 'w'\], other files have"
    ):
        open_source(tmp_path, "label", "w")
    text = table.set_column(1, "x0", pa.array(["much"] * N))
    write_table(text, tmp_path / f"b{suffix}")
    with pytest.raises(ValueError, match=rf"^b{suffix} cannot be read: .*same columns of the same"):
        read_all(open_source(tmp_path, "label", "w"))


def test_types_of_other_files_are_converted_if_nothing_is_lost(tmp_path):
    pa = pytest.importorskip("pyarrow")
    write_table(pa.table({"x": pa.array([1, 2], pa.int64())}), tmp_path / "a.parquet")
    write_table(pa.table({"x": pa.array([3.0, 4.0], pa.float32())}), tmp_path / "b.parquet")
    assert_rows(open_source(tmp_path), np.array([[1], [2], [3], [4]]))
    write_table(pa.table({"x": pa.array([3.5, 4.0], pa.float32())}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"^b.parquet cannot be read: .*truncated"):
        read_all(open_source(tmp_path))


def test_rows_that_went_away_between_two_passes(tmp_path, data):
    table = make_table(data)
    path = tmp_path / "rows.csv"
    write_table(table, path)
    source = open_source(path, "label")
    read_all(source)
    write_table(table.slice(0, 90), path)
    with pytest.raises(ValueError, match="This pass over X gave 90 rows, the first one gave 103"):
        read_all(source)


def test_filtered_dataset(tmp_path, data):
    pads = pytest.importorskip("pyarrow.dataset")
    dataset = pads.dataset(make_table(data)).filter(pads.field("x0") > 0)
    with pytest.raises(ValueError, match="Remove the filtering"):
        open_source(dataset, "label")


def test_large_row_groups_are_not_decoded_whole(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    n_rows = 1_000_000
    table = pa.table({f"x{j}": np.zeros(n_rows) for j in range(8)})
    write_table(table, path, use_dictionary=False, compression="none")
    del table
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    held = [pool.bytes_allocated() - before for _ in open_source(path).chunks(10_000)]
    assert len(held) == 100
    assert max(held) < 20e6  # a column has 8 MB, all of them 64


def test_csv_is_not_read_ahead_of_its_use(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    row = ",".join(["1"] * 20)
    path.write_text(",".join(f"x{j}" for j in range(20)) + "\n" + (row + "\n") * 1_000_000)
    chunks = open_source(path).chunks(1000)
    next(chunks)
    time.sleep(1)  # a fit takes its time
    held = pa.default_memory_pool().bytes_allocated()
    chunks.close()
    assert held < 80e6  # all rows have 160 MB


def test_csv_as_a_dataset_says(tmp_path):
    pads = pytest.importorskip("pyarrow.dataset")
    import pyarrow.csv

    path = tmp_path / "rows.txt"
    path.write_text("written by hand\n1,5;2;u\n2,5;?;v\n")
    form = pads.CsvFileFormat(
        parse_options=pyarrow.csv.ParseOptions(delimiter=";"),
        read_options=pyarrow.csv.ReadOptions(skip_rows=1, column_names=["a", "b", "y"]),
        convert_options=pyarrow.csv.ConvertOptions(decimal_point=",", null_values=["?"]),
    )
    dataset = pads.dataset(path, format=form)
    source = open_source(dataset, "y", features=["a"])
    assert_rows(source, [[1.5], [2.5]], ["u", "v"])
    with pytest.raises(ValueError, match=r"X contains NaN in row 1 .*column 'b'"):
        read_all(open_source(dataset, "y"))


def test_csv_file_without_rows(tmp_path, data):
    write_table(make_table(data), tmp_path / "a.csv")
    write_table(make_table(data).slice(0, 0), tmp_path / "b.csv")
    assert_rows(open_source(tmp_path, "label", "w"), *data)


@pytest.mark.slow
def test_without_pyarrow(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,2\n")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from nysplus._rows.readers import open_source\n"
        f"open_source({str(path)!r}, 'y')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        'ImportError: Tables are read with pyarrow. Install it with: pip install "nysplus[table]"'
        in (done.stderr)
    )
