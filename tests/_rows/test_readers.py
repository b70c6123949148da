"""Rows that are not in memory: every reader gives back what was stored, or says what is wrong."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
import time
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from nysplus._rows.readers import (
    BlockRows,
    Chunk,
    LibsvmRows,
    MemmapRows,
    TableRows,
    as_chunk,
    check_chunk,
    join_chunks,
    open_source,
)

N, D = 103, 4
NAMES = [f"x{j}" for j in range(D)]


@pytest.fixture
def data(rng):
    """Rows, labels that are text, and weights."""
    X = rng.standard_normal((N, D))
    return X, np.array(["yes", "no"], dtype=object)[rng.randint(0, 2, N)], rng.uniform(0, 3, N)


def _memmap(path, X, mode="r"):
    np.save(path, X)
    return np.load(path, mmap_mode=mode)


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


def _all(source, most=17):
    """Read everything and check what all sources promise."""
    chunks = list(source.chunks(most))
    starts = np.cumsum([0, *(chunk.n_rows for chunk in chunks)])
    np.testing.assert_array_equal([chunk.start for chunk in chunks], starts[:-1])
    assert max(chunk.n_rows for chunk in chunks) <= most
    assert source.n_rows == starts[-1]
    for chunk in chunks:
        assert chunk.X.shape[1] == source.n_features
        assert chunk.X.dtype == source.dtype
        assert sp.issparse(chunk.X) == source.sparse
        assert (chunk.y is not None) == source.has_targets
        assert chunk.sample_weight is None or chunk.sample_weight.dtype == np.float64
    return join_chunks(chunks), chunks


def _assert_rows(source, X, y=None, weight=None):
    """Compare with the arrays that were stored, twice, for chunks of several sizes."""
    for most in (1, 7, 50, 50, 1000):
        whole, _ = _all(source, most)
        np.testing.assert_array_equal(_dense(whole.X), X)
        for got, expected in (whole.y, y), (whole.sample_weight, weight):
            assert (got is None) == (expected is None)
            if expected is not None:
                np.testing.assert_array_equal(got, expected)


# ---- chunks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_chunks_are_cut_and_joined(data, convert):
    X, y, weight = data
    whole = Chunk(convert(X), y, weight, 40, "here", 30)
    parts = [whole.take(slice(0, 9)), whole.take(slice(9, 9)), whole.take(slice(9, None))]
    assert [(part.start, part.first) for part in parts] == [(40, 30), (49, 39), (49, 39)]
    joined = join_chunks(parts)
    np.testing.assert_array_equal(_dense(joined.X), X)
    np.testing.assert_array_equal(joined.y, y)
    np.testing.assert_array_equal(joined.sample_weight, weight)
    some = whole.take(np.array([5, 2]))
    np.testing.assert_array_equal(_dense(some.X), X[[5, 2]])
    assert (some.start, some.first, some.n_rows) == (0, 0, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_large_numbers_are_finite(dtype):
    """The sum overflows, no entry does."""
    X = np.full((50, 2), np.finfo(dtype).max)
    assert check_chunk(Chunk(X, None, None, 0, "here", 0)).X is X


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-inf")]
)
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_bad_entry_of_X_is_named(data, value, name, layout):
    X = data[0].astype(np.float32)
    X[70, 1] = X[70, 3] = X[80, 0] = value
    X[2] = 0
    X = sp.csr_matrix(X) if layout == "csr" else np.asarray(X, order=layout)
    if layout == "csr":
        X.data[3] = 0  # stored, and yet nothing
    message = (
        rf"X contains {name}.* in row 1070 \(row 170 of b.pq; counted from 0\), column 'x1'\. "
    )
    with pytest.raises(ValueError, match=message + "Remove such rows, or replace"):
        check_chunk(Chunk(X, None, None, 1000, "b.pq", 100), NAMES)
    with pytest.raises(ValueError, match=r"row 7 \(row 7 of b.pq.*column 1\."):
        check_chunk(Chunk(X, None, None, 0, "b.pq", 0).take(np.array([5, 70])), rows=[5, 7])


@pytest.mark.parametrize(
    ("what", "values", "message"),
    [
        (
            "y",
            [0.0, np.nan, 1.0],
            r"y contains NaN in row 6 \(row 1 of a; counted from 0\)\. Remove",
        ),
        ("y", [[0.0, 1.0], [1.0, np.inf], [1.0, 1.0]], "y contains infinity in row 6 "),
        ("y", np.array(["u", None, "v"], dtype=object), "y contains a missing value in row 6 "),
        ("y", np.array(["u", np.nan, "v"], dtype=object), "y contains a missing value in row 6 "),
        ("y", [1, 2], r"a has 3 rows in X, and y of shape \(2,\)\. Pass one entry for each row"),
        ("y", 1.0, r"a has 3 rows in X, and y of shape \(\)"),
        ("y", np.zeros((3, 1, 1)), r"y of shape \(3, 1, 1\)"),
        ("sample_weight", [1.0, -0.5, 1.0], "sample_weight contains -0.5 in row 6 "),
        ("sample_weight", [1.0, np.nan, 1.0], "sample_weight contains NaN in row 6 "),
        ("sample_weight", [1.0, np.inf, -1.0], "sample_weight contains infinity in row 6 "),
        ("sample_weight", np.ones((3, 1)), r"sample_weight of shape \(3, 1\)"),
    ],
)
def test_bad_targets_and_weights_are_named(what, values, message):
    arrays = {"y": None, "sample_weight": None, what: np.asarray(values)}
    with pytest.raises(ValueError, match=message):
        check_chunk(Chunk(np.ones((3, 2)), **arrays, start=5, name="a", first=0))


@pytest.mark.parametrize("X", [np.array([["a"]]), np.array([[1j]]), np.array([["2020"]], "M8[Y]")])
def test_rows_must_be_numbers(X):
    with pytest.raises(ValueError, match=r"here holds .* in X, which is no type of number. Encode"):
        check_chunk(Chunk(X, None, None, 0, "here", 0))


# ---- memory maps --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int16, np.uint8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memmap(tmp_path, data, dtype, order):
    X = (10 * np.abs(data[0])).astype(dtype, order=order)
    source = open_source(_memmap(tmp_path / "X.npy", X), *data[1:])
    assert isinstance(source, MemmapRows)
    assert source.n_rows == N
    assert source.dtype == dtype
    _assert_rows(source, X, *data[1:])


def test_memmap_views_and_maps_beside(tmp_path, data):
    stored = _memmap(tmp_path / "X.npy", data[0])
    weight = _memmap(tmp_path / "w.npy", data[2].astype(np.float32))
    source = open_source(stored[3::2, 1:], stored[3::2, 0], weight[3::2])
    expected = data[0][3::2], data[2][3::2].astype(np.float32)
    _assert_rows(source, expected[0][:, 1:], expected[0][:, 0], expected[1])
    assert type(next(source.chunks(9)).X) is np.ndarray
    assert _all(MemmapRows(stored, list(data[1]), list(data[2])))[0].y.tolist() == list(data[1])


def test_memmap_takes_rows_in_any_order(tmp_path, data):
    X, y, weight = data
    source = MemmapRows(_memmap(tmp_path / "X.npy", X), y, weight)
    rows = np.array([90, 3, 3, 41])
    taken = source.take(rows)
    np.testing.assert_array_equal(taken.X, X[rows])
    np.testing.assert_array_equal(taken.y, y[rows])
    np.testing.assert_array_equal(taken.sample_weight, weight[rows])
    X[41, 2] = np.nan
    source = MemmapRows(_memmap(tmp_path / "X.npy", X))
    with pytest.raises(ValueError, match=r"NaN in row 41 \(row 41 of the memory map.*column 2"):
        source.take(rows)
    with pytest.raises(ValueError, match="NaN in row 41 "):
        _all(source)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_was_written_to_a_map_is_read(tmp_path, data, mode):
    mapped = _memmap(tmp_path / "X.npy", data[0], mode)
    source = MemmapRows(mapped)
    mapped[5] = 7
    for _ in range(2):
        np.testing.assert_array_equal(_all(source)[0].X[5], np.full(D, 7.0))
    np.testing.assert_array_equal(mapped[5], np.full(D, 7.0))
    stored = np.load(tmp_path / "X.npy")
    assert (stored[5] == 7).all() == (mode == "r+")


MEASURED = """
import sys
import numpy as np
from nysplus._rows.readers import MemmapRows

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))

mapped = np.memmap(sys.argv[1], np.float64, "r", shape=(500_000, 100))
source = MemmapRows(mapped, mapped[:, 0])
before = peak = resident()
rows = 0
for chunk in source.chunks(10_000):
    rows += chunk.n_rows
    peak = max(peak, resident())
source.take(np.arange(0, 500_000, 50))
print(rows, max(peak, resident()) - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memmap_does_not_stay_in_memory(tmp_path):
    path = tmp_path / "X.bin"
    with path.open("wb") as file:
        file.truncate(500_000 * 100 * 8)  # 400 MB that take no space
    command = [sys.executable, "-c", MEASURED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, grown = map(int, done.stdout.split())
    assert rows == 500_000
    assert grown < 100  # MB; one chunk has 8, all 400


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], "X has 103 rows, y has 2. Pass one entry for each row"),
        ("label", "y='label' is not an array with one entry for each row of X. .Only the columns"),
    ],
)
def test_memmap_with_targets_that_do_not_fit(tmp_path, data, y, message):
    with pytest.raises(ValueError, match=message):
        open_source(_memmap(tmp_path / "X.npy", data[0]), y)


def test_memmap_without_rows(tmp_path):
    mapped = np.memmap(tmp_path / "X.bin", np.float64, "w+", shape=(1, 3))
    with pytest.raises(ValueError, match="X has no rows"):
        next(MemmapRows(mapped[:0]).chunks(5))


# ---- tables -------------------------------------------------------------------------------------


def _table(data):
    pa = pytest.importorskip("pyarrow")
    X, y, weight = data
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    return pa.table({"w": weight, **columns, "label": pa.array(y, pa.string())})


def _write(table, path, **options):
    """Write a table in the format that the suffix names."""
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    suffix = "".join(Path(path).suffixes)
    if suffix in (".parquet", ".pq"):
        pyarrow.parquet.write_table(table, path, **options)
    elif suffix in (".arrow", ".feather", ".ipc"):
        pyarrow.feather.write_feather(table, str(path), **options)
    else:
        delimiter = "\t" if suffix.startswith(".tsv") else ","
        options = pyarrow.csv.WriteOptions(delimiter=delimiter)
        with {".csv.gz": gzip.open, ".csv.bz2": bz2.open}.get(suffix, open)(path, "wb") as file:
            pyarrow.csv.write_csv(table, file, options)


SUFFIXES = [".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".csv.gz", ".csv.bz2", ".tsv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("as_text", [True, False])
def test_table_file(tmp_path, data, suffix, as_text):
    path = tmp_path / f"rows{suffix}"
    _write(_table(data), path)
    source = open_source(str(path) if as_text else path, "label", "w")
    assert isinstance(source, TableRows)
    assert source.feature_names == tuple(NAMES)
    assert source.n_rows == (N if suffix in (".parquet", ".pq") else None)
    assert source.take(np.arange(3)) is None
    _assert_rows(source, *data)
    X = next(source.chunks(9)).X
    assert X.strides[0] == X.itemsize  # column by column, as it was stored


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_table_folder(tmp_path, data, suffix):
    """Files are read in the order of their names, and no chunk has rows of two of them."""
    table = _table(data)
    (tmp_path / "more").mkdir()
    for name, rows in {"a": (0, 40), "b": (40, 22), "more/c": (62, 41)}.items():
        _write(table.slice(*rows), tmp_path / f"{name}{suffix}")
    for hidden in ("_SUCCESS", ".a.crc", "more/_metadata", ".git/x.txt", "_old/x.parquet"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("nothing to read")
    source = open_source(tmp_path, "label", "w")
    _assert_rows(source, *data)
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
    _write(_table(data), path, **small)
    source = open_source(path, "label", "w")
    _assert_rows(source, *data)
    assert [chunk.n_rows for chunk in source.chunks(50)] == [50, 50, 3]


def test_table_in_memory_and_dataset(tmp_path, data):
    pads = pytest.importorskip("pyarrow.dataset")
    import pyarrow as pa

    table = _table(data)
    _assert_rows(open_source(table, "label", "w"), *data)
    pieces = pa.concat_tables([table.slice(0, 5), table.slice(5, 40), table.slice(45)])
    assert [chunk.n_rows for chunk in TableRows(pieces, "label", "w").chunks(60)] == [60, 43]
    _write(table, tmp_path / "rows.parquet")
    dataset = pads.dataset(tmp_path / "rows.parquet")
    _assert_rows(open_source(dataset, "label", "w"), *data)
    groups = next(dataset.get_fragments()).subset(row_group_ids=[0])
    subset = pads.FileSystemDataset([groups], dataset.schema, dataset.format, dataset.filesystem)
    _assert_rows(TableRows(subset, "label", "w"), *data)


def test_columns_are_chosen_and_ordered(tmp_path, data):
    X, _, weight = data
    path = tmp_path / "rows.parquet"
    _write(_table(data), path)
    _assert_rows(open_source(path, features=["x3", "w"]), np.column_stack([X[:, 3], weight]))
    names = np.array(["x1", "x0"], dtype=object)  # as an estimator keeps them
    source = open_source(path, ["x2", "x3"], features=names)
    _assert_rows(source, X[:, [1, 0]], X[:, 2:])
    assert source.feature_names == ("x1", "x0")
    _assert_rows(open_source(path, ["x2"], features=["x0"]), X[:, :1], X[:, 2:3])
    assert not open_source(path, features=["x0"]).has_targets


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_targets_and_weights_beside_a_table(tmp_path, data, suffix):
    X, y, weight = data
    _write(_table(data).select(NAMES), tmp_path / f"rows{suffix}")
    source = open_source(tmp_path, pd.Series(y), list(weight))
    assert source.n_rows == N
    _assert_rows(source, X, y, weight)
    for wrong, count in (y[:-1], "at least 103"), (np.r_[y, y], "103"):
        message = rf"X has 103 rows, y has {len(wrong)}\."
        if suffix == ".csv":  # which has to be read to know
            message = rf"This pass over X gave {count} rows, y has {len(wrong)}\. Every pass must"
        with pytest.raises(ValueError, match=message):
            _all(open_source(tmp_path, wrong))
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
    _write(pa.table(columns), path)
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
        _assert_rows(source, expected.astype(dtype))
    source = open_source(path, "exact", features=["small"])
    assert _all(source)[0].y.tolist() == [1.25, 2.5, 3.75]


def test_targets_of_any_type(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    for y in (
        pa.array(["a", "b", "a"]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([1, 5, 1]),
        pa.array([True, False, True]),
    ):
        _write(pa.table({"x": [1.0, 2.0, 3.0], "y": y}), path)
        assert _all(open_source(path, "y"))[0].y.tolist() == y.to_pylist()


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_partitioned_folder(tmp_path, data, suffix):
    """Columns that only the names of folders hold are columns like others."""
    pads = pytest.importorskip("pyarrow.dataset")
    X, y, _ = data
    table = _table(data).select([*NAMES, "label"])
    root = tmp_path / "z=9" / "rows"  # a folder above is none of our business
    for year, rows in {2023: (0, 60), 2024: (60, N - 60)}.items():
        folder = root / f"year={year}"
        folder.mkdir(parents=True)
        _write(table.slice(*rows), folder / f"part-0{suffix}")
    year = np.where(np.arange(N) < 60, 2023.0, 2024.0)
    source = open_source(root, "label")
    assert source.feature_names == (*NAMES, "year")
    _assert_rows(source, np.column_stack([X, year]), y)
    assert {chunk.name for chunk in source.chunks(N)} == {
        f"year={year}/part-0{suffix}" for year in (2023, 2024)
    }
    _assert_rows(open_source(root, "year", features=NAMES), X, year)
    form = {".parquet": "parquet", ".feather": "ipc", ".csv": "csv"}[suffix]
    dataset = pads.dataset(root, format=form, partitioning="hive")
    _assert_rows(TableRows(dataset, "label"), np.column_stack([X, year]), y)


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
        _all(open_source(path, "y"))
    message = "rows.csv cannot be read: .*conversion error to int64: invalid value '1.5'.*Write it"
    with pytest.raises(ValueError, match=message):
        _all(open_source(path, "a", features=["y"]))


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
    table = _table(data)
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
    _write(table.slice(0, 60), tmp_path / "a.parquet")
    _write(table.slice(60), tmp_path / "b.parquet")
    y = column if column in ("number", "truth") else "label"
    source = open_source(tmp_path, y, "w", features=[*NAMES, "n", "t"])
    for most in (10, 1000):
        with pytest.raises(ValueError, match=message):
            _all(source, most)


def test_wrong_columns(tmp_path, data):
    pa = pytest.importorskip("pyarrow")
    table = _table(data).append_column("city", pa.array(["Oslo"] * N))
    path = tmp_path / "rows.parquet"
    _write(table, path)
    columns = r"Its columns are \['w', 'x0', 'x1', 'x2', 'x3', 'label', 'city'\]"
    with pytest.raises(ValueError, match=rf"X has no columns \['a', 'lable', 'v'\]\. {columns}"):
        open_source(path, "lable", "v", features=["x0", "a"])
    with pytest.raises(ValueError, match=rf"X has no columns \['a', 'b'\]\. {columns}"):
        open_source(path, ["a", "b"])
    text = (
        r"X has columns that are not numbers: 'label' \(string\), 'city' \(string\)\. Encode them"
    )
    with pytest.raises(ValueError, match=text):
        open_source(path)
    with pytest.raises(ValueError, match=r"not numbers: 'city' \(string\)"):
        open_source(path, "label", "city", features=["x0"])
    with pytest.raises(ValueError, match="X has no columns besides those of y and sample_weight"):
        open_source(table.select(["x0", "w"]), "x0", "w")


def test_objects_of_pyarrow_that_are_no_tables(data):
    table = _table(data)
    with pytest.raises(
        TypeError, match=r"X is a RecordBatchReader, which is no table.*pyarrow.Table"
    ):
        open_source(table.to_reader())
    with pytest.raises(ValueError, match="X has no rows"):
        _all(open_source(table.slice(0, 0), "label"))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
@pytest.mark.parametrize("bad", ["a", "b"])
def test_empty_file_is_found_at_once(tmp_path, data, suffix, bad):
    for name in "ab":
        _write(_table(data), tmp_path / f"{name}{suffix}")
    (tmp_path / f"{bad}{suffix}").write_bytes(b"")
    with pytest.raises(
        ValueError, match=rf"^{bad}{suffix} cannot be read: .*Write it again or leave"
    ):
        open_source(tmp_path, "label")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_file_without_its_end_is_found_at_once(tmp_path, data, suffix):
    for name in "ab":
        _write(_table(data), tmp_path / f"{name}{suffix}")
    path = tmp_path / f"b{suffix}"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"^b{suffix} cannot be read: "):
        open_source(tmp_path, "label")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_file_with_a_hole_is_found_when_it_is_read(tmp_path, data, suffix):
    for name in "ab":
        _write(_table(data), tmp_path / f"{name}{suffix}")
    path = tmp_path / f"b{suffix}"
    stored = path.read_bytes()
    path.write_bytes(stored[:500] + stored[1500:])  # footer and all
    with pytest.raises(ValueError, match=rf"^b{suffix} cannot be read: "):
        _all(open_source(tmp_path, "label"))


def test_flipped_bit_is_found_by_checksum(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    table = pa.table({"x": np.arange(1000.0)})
    _write(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    stored = bytearray(path.read_bytes())
    stored[stored.index(np.float64(500).tobytes())] ^= 1  # still a number
    path.write_bytes(stored)
    with pytest.raises(ValueError, match=r"^rows\.parquet cannot be read: .*checksum"):
        _all(open_source(path))


def test_broken_packed_csv(tmp_path, data):
    path = tmp_path / "rows.csv.gz"
    _write(_table(data), path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"^rows.csv.gz cannot be read: "):
        _all(open_source(path, "label"))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_files_that_do_not_go_together(tmp_path, data, suffix):
    import pyarrow as pa

    table = _table(data)
    _write(table, tmp_path / f"a{suffix}")
    _write(table.drop_columns(["x1", "w"]), tmp_path / f"b{suffix}")
    with pytest.raises(
        ValueError, match=rf"b{suffix} has no columns \['x1', 'w'\], other files have"
    ):
        open_source(tmp_path, "label", "w")
    text = table.set_column(1, "x0", pa.array(["much"] * N))
    _write(text, tmp_path / f"b{suffix}")
    with pytest.raises(ValueError, match=rf"^b{suffix} cannot be read: .*same columns of the same"):
        _all(open_source(tmp_path, "label", "w"))


def test_types_of_other_files_are_converted_if_nothing_is_lost(tmp_path):
    pa = pytest.importorskip("pyarrow")
    _write(pa.table({"x": pa.array([1, 2], pa.int64())}), tmp_path / "a.parquet")
    _write(pa.table({"x": pa.array([3.0, 4.0], pa.float32())}), tmp_path / "b.parquet")
    _assert_rows(open_source(tmp_path), np.array([[1], [2], [3], [4]]))
    _write(pa.table({"x": pa.array([3.5, 4.0], pa.float32())}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"^b.parquet cannot be read: .*truncated"):
        _all(open_source(tmp_path))


def test_rows_that_went_away_between_two_passes(tmp_path, data):
    table = _table(data)
    path = tmp_path / "rows.csv"
    _write(table, path)
    source = open_source(path, "label")
    _all(source)
    _write(table.slice(0, 90), path)
    with pytest.raises(ValueError, match="This pass over X gave 90 rows, the first one gave 103"):
        _all(source)


def test_filtered_dataset(tmp_path, data):
    pads = pytest.importorskip("pyarrow.dataset")
    dataset = pads.dataset(_table(data)).filter(pads.field("x0") > 0)
    with pytest.raises(ValueError, match="Remove the filtering"):
        open_source(dataset, "label")


def test_large_row_groups_are_not_decoded_whole(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    n_rows = 1_000_000
    table = pa.table({f"x{j}": np.zeros(n_rows) for j in range(8)})
    _write(table, path, use_dictionary=False, compression="none")
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
    _assert_rows(source, [[1.5], [2.5]], ["u", "v"])
    with pytest.raises(ValueError, match=r"X contains NaN in row 1 .*column 'b'"):
        _all(open_source(dataset, "y"))


def test_csv_file_without_rows(tmp_path, data):
    _write(_table(data), tmp_path / "a.csv")
    _write(_table(data).slice(0, 0), tmp_path / "b.csv")
    _assert_rows(open_source(tmp_path, "label", "w"), *data)


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


# ---- libsvm -------------------------------------------------------------------------------------


@pytest.fixture
def sparse(rng):
    """Sparse rows in which the first and the last feature occur, and some rows are empty."""
    X = sp.random(200, 12, 0.2, format="csr", random_state=rng)
    X.data = X.data.round(3)
    X[7, 0] = X[150, 11] = 2.5
    assert (np.diff(X.indptr) == 0).any()
    return X, rng.randint(0, 3, 200).astype(float)


# entries are set one by one, to make rows that are empty
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
class TestLibsvm:
    @pytest.mark.parametrize("suffix", [".svm", ".libsvm", ".svmlight", ".svm.gz", ".svmlight.bz2"])
    @pytest.mark.parametrize("zero_based", [True, False])
    def test_file(self, tmp_path, sparse, suffix, zero_based):
        X, y = sparse
        dump_svmlight_file(X, y, str(tmp_path / "plain"), zero_based=zero_based, comment="one\ntwo")
        path = tmp_path / f"rows{suffix}"
        pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
        path.write_bytes(pack((tmp_path / "plain").read_bytes()))
        source = open_source(path)
        assert isinstance(source, LibsvmRows)
        assert (source.n_rows, source.n_features) == (200, 12)
        assert source.zero_based is zero_based
        _assert_rows(source, X.toarray(), y)
        assert all(chunk.X.has_sorted_indices for chunk in source.chunks(30))
        expected, _ = load_svmlight_file(str(tmp_path / "plain"))
        assert expected.shape == X.shape

    def test_many_portions(self, tmp_path, sparse):
        """Whether 0 occurs is a question to all of the file."""
        X, y = sparse
        path = tmp_path / "rows.svm"
        dump_svmlight_file(X, y, str(path), zero_based=True)
        _assert_rows(LibsvmRows({path.name: path}, read_bytes=100), X.toarray(), y)

    def test_comments_and_blank_lines_are_no_rows(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("# one\n\n1 1:2 3:4 # two\n   \n-1 qid:7 2:1\r\n2\n# end")
        source = open_source(path)
        _assert_rows(source, [[2, 0, 4], [0, 1, 0], [0, 0, 0]], [1, -1, 2])

    def test_folder(self, tmp_path, sparse):
        X, y = sparse
        dump_svmlight_file(X[:90], y[:90], str(tmp_path / "a.svm"), zero_based=False)
        dump_svmlight_file(X[90:], y[90:], str(tmp_path / "b.libsvm"), zero_based=False)
        source = open_source(tmp_path)
        _assert_rows(source, X.toarray(), y)
        names = [(chunk.name, chunk.first) for chunk in source.chunks(60)]
        assert names == [("a.svm", 0), ("a.svm", 60), ("b.libsvm", 0), ("b.libsvm", 60)]

    def test_width_and_base_of_another_file(self, tmp_path):
        """A file to predict on need not have the first or the last feature."""
        path = tmp_path / "rows.svm"
        path.write_text("0 1:5 2:6\n")
        assert open_source(path, n_features=4).zero_based is False
        source = open_source(path, n_features=4, zero_based=True)
        assert source.n_rows is None
        _assert_rows(source, [[0, 5, 6, 0]], [0])
        _assert_rows(LibsvmRows({path.name: path}, 4, False), [[5, 6, 0, 0]], [0])
        assert LibsvmRows({path.name: path}, zero_based=True).n_features == 3

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("1 1:x", "could not convert"),
            ("1 2:1 1:1", "should be sorted"),
            ("1,2 1:1", "could not convert"),
            ("1 1", "unpack"),
            ("1 -3:1", "Invalid index"),
            ("1 99999999999999:1", "too large"),
        ],
    )
    def test_bad_line(self, tmp_path, line, reason):
        path = tmp_path / "rows.svm"
        path.write_text("# head\n" + "1 1:1 2:3\n" * 50 + line + "\n" + "1 1:1\n" * 9)
        message = rf"Row 50 of rows.svm \(counted from 0\) cannot be read: .*{reason}.*{line}"
        with pytest.raises(ValueError, match=message):
            LibsvmRows({path.name: path}, read_bytes=64)

    def test_feature_with_too_large_a_number(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1\n1 2:1\n1 3:1\n")
        message = "Row 2 of rows.svm .* n_features was set to 2, but input file contains 3 features"
        with pytest.raises(ValueError, match=message):
            _all(LibsvmRows({path.name: path}, n_features=2, zero_based=False))
        path.write_text("1 0:1\n")
        with pytest.raises(ValueError, match=r"Row 0 of rows.svm .* Invalid index 0"):
            LibsvmRows({path.name: path}, zero_based=False)

    @pytest.mark.parametrize("text", ["", "# nothing\n", "1\n2\n"])
    def test_no_features(self, tmp_path, text):
        (tmp_path / "rows.svm").write_text(text)
        with pytest.raises(ValueError, match=r"No row of rows\.svm has a feature"):
            open_source(tmp_path)

    def test_bad_values(self, tmp_path):
        path = tmp_path / "rows.svm"
        path.write_text("1 1:1 2:1\n1 1:1 2:nan\n")
        with pytest.raises(
            ValueError, match=r"X contains NaN in row 1 \(row 1 of rows.svm.*column 1"
        ):
            _all(open_source(path))
        path.write_text("1 1:1\ninf 1:1\n")
        with pytest.raises(ValueError, match="y contains infinity in row 1"):
            _all(open_source(path))

    @pytest.mark.parametrize("suffix", [".gz", ".bz2"])
    def test_packed_file_without_its_end(self, tmp_path, suffix, rng):
        pack = {".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
        text = "".join(f"1 1:{value}\n" for value in rng.standard_normal(2000))
        (tmp_path / f"rows.svm{suffix}").write_bytes(pack(text.encode())[:-100])
        with pytest.raises(ValueError, match=rf"^rows.svm{suffix} cannot be read: "):
            open_source(tmp_path)


# ---- blocks -------------------------------------------------------------------------------------


class Loader:
    """Gives batches as a data loader does, anew each time."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        yield from self.batches


class Tensor:
    """As much of a tensor as matters here."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


class Columns:
    """A dataset of columns that hands out batches of rows."""

    def __init__(self, columns, size):
        self.columns_of, self.size = columns, size

    def __iter__(self):
        for start in range(0, N, self.size):
            rows = {
                name: values[start : start + self.size] for name, values in self.columns_of.items()
            }
            yield np.column_stack([rows[name] for name in NAMES]), rows["label"]


CUTS = [0, 0, 5, 5, 40, 41, N, N]  # some blocks are empty


def _blocks(*arrays):
    return [tuple(values[i:j] for values in arrays) for i, j in pairwise(CUTS)]


def _frame(kind):
    return lambda X: kind(dict(zip(NAMES, np.asarray(X).T, strict=True)))


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.asfortranarray,
        Tensor,
        lambda X: np.asarray(X).tolist(),
        _frame(pd.DataFrame),
        _frame(pl.DataFrame),
        sp.csr_matrix,
        sp.coo_array,
    ],
    ids=["array", "fortran", "tensor", "list", "pandas", "polars", "csr", "coo"],
)
def test_blocks_of_any_kind(data, convert):
    X, y, weight = data
    blocks = [
        (convert(part), *rest) for part, *rest in _blocks(X, y, weight) if len(part)
    ]  # a list without rows has no columns either
    for given in (blocks, Loader(blocks), lambda: iter(blocks), lambda: blocks):
        source = open_source(Loader(blocks) if given is blocks else given)
        assert isinstance(source, BlockRows)
        framed = isinstance(blocks[0][0], (pd.DataFrame, pl.DataFrame))
        assert source.feature_names == (tuple(NAMES) if framed else None)
        _assert_rows(source, X, y, weight)
    assert [(chunk.n_rows, chunk.name) for chunk in source.chunks(42)] == [
        (42, "block 0"),
        (42, "block 3"),
        (19, "block 3"),
    ]


def test_empty_blocks_are_skipped(data):
    source = open_source(_blocks(*data))
    _assert_rows(source, *data)
    assert next(source.chunks(4)).name == "block 1"


def test_blocks_without_targets(data):
    X = data[0]
    for blocks in (
        [X[:50], X[50:]],
        [(X[:50], None), (X[50:], None)],
        [[X[:50]], [X[50:]]],
        lambda: (X[i : i + 10] for i in range(0, N, 10)),
    ):
        source = open_source(blocks)
        assert not source.has_targets
        _assert_rows(source, X)
    weighted = open_source([(X[:50], None, data[2][:50]), (X[50:], None, data[2][50:])])
    _assert_rows(weighted, X, None, data[2])


def test_blocks_from_batches_of_columns(data):
    X, y, _ = data
    columns = {**{name: X[:, j] for j, name in enumerate(NAMES)}, "label": y}
    _assert_rows(open_source(Columns(columns, 20)), X, y)
    _assert_rows(open_source(lambda: iter(Columns(columns, 20))), X, y)


def test_blocks_of_several_types():
    blocks = [(np.ones((2, 2), np.float32),), (np.ones((2, 2)),), (np.ones((2, 2), np.int64),)]
    _assert_rows(open_source(blocks), np.ones((6, 2), np.float32))
    _assert_rows(
        open_source([np.ones((2, 2), np.int64), np.ones((2, 2), np.int8)]), np.ones((4, 2))
    )
    for first, second in (np.int64, float), (np.int8, np.int64), (bool, np.int64):
        message = f"block 1 holds {np.dtype(second)}, the first one {np.dtype(first)}. Convert all"
        with pytest.raises(ValueError, match=message):
            _all(open_source([np.ones((2, 2), first), np.ones((2, 2), second)]))
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [True, False]})  # objects, to NumPy
    _assert_rows(open_source([frame]), [[1.5, 1], [2.5, 0]])


def test_names_are_given(data):
    source = BlockRows([(data[0], data[1])], tuple(NAMES))
    assert source.feature_names == tuple(NAMES)
    bad = np.where(np.arange(D) == 2, np.nan, data[0])
    with pytest.raises(ValueError, match=r"row 0 \(row 0 of block 0.*column 'x2'"):
        BlockRows([(bad, data[1])], tuple(NAMES))


def test_one_block_becomes_a_chunk(data):
    X, y, weight = data
    chunk = as_chunk((X.tolist(), y.tolist(), weight.tolist()), "partition 3")
    np.testing.assert_array_equal(chunk.X, X)
    np.testing.assert_array_equal(chunk.y, y)
    assert (chunk.name, chunk.n_rows) == ("partition 3", N)
    assert as_chunk((X[:0], y[:0]), "partition 4").n_rows == 0
    with pytest.raises(ValueError, match=r"NaN in row 1 of partition 5; .*column 'b'"):
        as_chunk([[1.0, 2.0], [3.0, np.nan]], "partition 5", ["a", "b"])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((np.ones((3, 5)), np.ones(3)), "block 1 has 5 columns, the first one has 4 columns. Give"),
        (
            (sp.csr_matrix((3, 4)), np.ones(3)),
            "block 1 has sparse rows, the first one has dense rows",
        ),
        ((np.ones((3, 4)), None), r"block 1 has no y, the first one has y of shape \(rows\)"),
        (np.ones((3, 4)), r"block 1 has no y, the first one has y"),
        (
            (np.ones((3, 4)), np.ones((3, 2))),
            r"has y of shape \(rows, 2\), the first one has y of sh",
        ),
        (
            (np.ones((3, 4)), np.ones(3), np.ones(3)),
            "has sample_weight, the first one has no sample",
        ),
        ((np.ones((3, 4)), np.ones(2)), r"block 1 has 3 rows in X, and y of shape \(2,\)"),
        (
            (np.ones((3, 4)), np.ones(3), np.ones(3), 1),
            "block 1 is a tuple, and not X with rows and",
        ),
        ({"x": [1, 2]}, r"block 1 is a dict, and not X with rows and columns, \(X, y\) or"),
        (np.ones(4), "block 1 is a ndarray, and not X with rows and columns"),
        ([[1, 2], [1]], "block 1 is a list, and not X with rows and columns"),
        (
            ([["u"] * 4], [1]),
            "block 1 holds <U1 in X, which is no type of number|Convert all blocks",
        ),
        (
            (np.full((1, 4), "u", object), [1]),
            "block 1 does not turn into numbers: could not convert",
        ),
        ((np.full((3, 4), np.nan), np.ones(3)), r"NaN in row 9 \(row 0 of block 1; .*column 0"),
    ],
)
def test_block_unlike_the_first(second, message):
    source = open_source([(np.ones((9, 4)), np.ones(9)), second])
    with pytest.raises(ValueError, match=message):
        _all(source, 100)


def test_frames_with_other_columns():
    frames = [pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"b": [1.0], "a": [2.0]})]
    message = r"block 1 has the columns \['b', 'a'\], the first one has the columns \['a', 'b'\]"
    with pytest.raises(ValueError, match=message):
        _all(open_source(frames))
    frames[1] = np.ones((1, 2))
    with pytest.raises(
        ValueError, match="block 1 has no names of columns, the first one has the col"
    ):
        _all(open_source(frames))


@pytest.mark.parametrize("blocks", [[], [(np.ones((0, 2)), np.ones(0))] * 3])
def test_no_rows_in_blocks(blocks):
    with pytest.raises(
        ValueError, match="X has no rows: there is no block, or all blocks are empty"
    ):
        BlockRows(blocks)


def test_what_can_be_read_only_once(data):
    def generate():
        yield from _blocks(*data)

    only = generate()

    class Shared:
        def __iter__(self):
            return only

    message = (
        "that can be read only once, and the rows.*Pass a list of blocks, .*function that returns"
    )
    for once in (generate(), iter(_blocks(*data)), map(tuple, _blocks(*data)), lambda: only):
        with pytest.raises(ValueError, match=message):
            open_source(once)
    shared = open_source(Shared())
    with pytest.raises(
        ValueError, match=r"block 1 is not the same as before\. Every pass must start"
    ):
        _all(shared)


def test_shuffled_blocks(data, rng):
    X, y, _ = data

    def shuffled():
        order = rng.permutation(N)
        yield from zip(np.array_split(X[order], 3), np.array_split(y[order], 3), strict=True)

    with pytest.raises(ValueError, match=r"block 0 is not the same as before.*turn shuffling off"):
        _all(open_source(shuffled))


def test_blocks_that_change_in_number(data):
    blocks = [(data[0][i : i + 10], data[1][i : i + 10]) for i in range(0, 100, 10)]
    given = list(blocks)
    source = open_source(Loader(given))
    _all(source)
    given.pop()
    with pytest.raises(ValueError, match="This pass over X gave 90 rows, the first one gave 100"):
        _all(source)
    given += blocks[-1:] * 3
    with pytest.raises(
        ValueError, match="This pass over X gave at least 110 rows, the first one gave"
    ):
        _all(source)
    given.clear()
    with pytest.raises(ValueError, match="X has no rows"):
        _all(source)


# ---- what is a source, and which ----------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        np.ones((3, 2)),
        np.ones((3, 2)).tolist(),
        [np.ones(2), np.ones(2)],
        [(1, 2), (3, 4)],
        [],
        np.ones((3, 2)).tolist()[0],
        pd.DataFrame({"a": [1.0]}),
        pl.DataFrame({"a": [1.0]}),
        sp.csr_matrix(np.ones((3, 2))),
        Tensor(np.ones((3, 2))),
        {"a": [1.0]},
        {1.0, 2.0},
        None,
        3.0,
        b"text",
        range(3),
        [pd.Series([1.0, 2.0])],
        ["text", "more"],
        np.ones((2, 2, 2)).tolist(),
    ],
    ids=lambda X: type(X).__name__,
)
def test_ordinary_rows_are_no_source(X):
    assert open_source(X, y="label") is None


def test_memmaps_in_memory_or_of_one_dimension_are_no_source(tmp_path, data):
    mapped = _memmap(tmp_path / "X.npy", data[0])
    assert open_source(mapped.astype(np.float32)) is None
    assert open_source(mapped[:, 0]) is None
    assert open_source(np.asarray(mapped)) is None


def test_targets_twice(tmp_path, data):
    X, y, weight = data
    with pytest.raises(
        ValueError, match=r"y was passed beside X, but blocks bring their own, as \(X"
    ):
        open_source([(X, y)], y)
    with pytest.raises(ValueError, match="sample_weight was passed beside X, but blocks bring"):
        open_source([(X, y)], None, weight)
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    with pytest.raises(
        ValueError, match=r"y was passed beside X, but libsvm files bring.*Leave y out"
    ):
        open_source(tmp_path / "rows.svm", y)


@pytest.mark.parametrize(
    ("files", "holds"),
    [
        ([], "no files"),
        (["_a.csv", ".b.csv"], "no files"),
        (["a.txt"], r"\['a.txt'\]"),
        (["a.csv", "b.parquet"], r"\['a.csv', 'b.parquet'\]"),
        (["a.csv", "sub/b.tsv"], r"\['a.csv', 'sub/b.tsv'\]"),
        (["a.csv", "README"], r"\['README', 'a.csv'\]"),
        (["a.parquet.gz"], r"\['a.parquet.gz'\]"),
    ],
)
def test_folders_that_are_no_table(tmp_path, files, holds):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n1\n")
    message = (
        rf"holds {holds}. Pass one file, or a folder of files, of one of these kinds: .parquet"
    )
    with pytest.raises(ValueError, match=message):
        open_source(tmp_path)


def test_paths_that_lead_nowhere(tmp_path):
    (tmp_path / "rows.txt").write_text("1 2")
    with pytest.raises(
        ValueError, match=r"rows.txt' holds \['rows.txt'\]. Pass .*\.csv.*\.svmlight"
    ):
        open_source(tmp_path / "rows.txt")
    for missing in (tmp_path / "none.csv", "s3://bucket/rows.parquet"):
        with pytest.raises(
            FileNotFoundError, match=r"is neither a file nor a folder\. .*pyarrow.dataset"
        ):
            open_source(missing)


def test_relative_paths(tmp_path, data, monkeypatch):
    (tmp_path / "k=1").mkdir()
    _write(_table(data), tmp_path / "k=1" / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    for path in (".", "k=1", "k=1/rows.parquet"):
        source = open_source(path, "label", features=NAMES)
        _assert_rows(source, data[0], data[1])
    assert "k" in open_source(".", "label").feature_names
    assert "k" not in open_source("k=1", "label").feature_names
