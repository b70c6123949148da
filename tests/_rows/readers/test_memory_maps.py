"""Rows of memory maps."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from reader_checks import D, N, as_memmap, assert_rows, read_all

from nysplus._rows.readers import MemmapRows, open_source


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int16, np.uint8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memmap(tmp_path, data, dtype, order):
    X = (10 * np.abs(data[0])).astype(dtype, order=order)
    source = open_source(as_memmap(tmp_path / "X.npy", X), *data[1:])
    assert isinstance(source, MemmapRows)
    assert source.n_rows == N
    assert source.dtype == dtype
    assert_rows(source, X, *data[1:])


def test_memmap_views_and_maps_beside(tmp_path, data):
    stored = as_memmap(tmp_path / "X.npy", data[0])
    weight = as_memmap(tmp_path / "w.npy", data[2].astype(np.float32))
    source = open_source(stored[3::2, 1:], stored[3::2, 0], weight[3::2])
    expected = data[0][3::2], data[2][3::2].astype(np.float32)
    assert_rows(source, expected[0][:, 1:], expected[0][:, 0], expected[1])
    assert type(next(source.chunks(9)).X) is np.ndarray
    assert read_all(MemmapRows(stored, list(data[1]), list(data[2])))[0].y.tolist() == list(data[1])


def test_memmap_takes_rows_in_any_order(tmp_path, data):
    X, y, weight = data
    source = MemmapRows(as_memmap(tmp_path / "X.npy", X), y, weight)
    rows = np.array([90, 3, 3, 41])
    taken = source.take(rows)
    np.testing.assert_array_equal(taken.X, X[rows])
    np.testing.assert_array_equal(taken.y, y[rows])
    np.testing.assert_array_equal(taken.sample_weight, weight[rows])
    X[41, 2] = np.nan
    source = MemmapRows(as_memmap(tmp_path / "X.npy", X))
    with pytest.raises(ValueError, match=r"NaN in row 41 \(row 41 of the memory map.*column 2"):
        source.take(rows)
    with pytest.raises(ValueError, match="NaN in row 41 "):
        read_all(source)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_was_written_to_a_map_is_read(tmp_path, data, mode):
    mapped = as_memmap(tmp_path / "X.npy", data[0], mode)
    source = MemmapRows(mapped)
    mapped[5] = 7
    for _ in range(2):
        np.testing.assert_array_equal(read_all(source)[0].X[5], np.full(D, 7.0))
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


@pytest.mark.slow
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
        open_source(as_memmap(tmp_path / "X.npy", data[0]), y)


def test_memmap_without_rows(tmp_path):
    mapped = np.memmap(tmp_path / "X.bin", np.float64, "w+", shape=(1, 3))
    with pytest.raises(ValueError, match="X has no rows"):
        next(MemmapRows(mapped[:0]).chunks(5))
