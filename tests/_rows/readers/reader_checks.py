"""Rows for the tests of readers, and the comparison with what was stored."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._rows.readers import join_chunks

N, D = 103, 4
NAMES = [f"x{j}" for j in range(D)]


def as_memmap(path, X, mode="r"):
    np.save(path, X)
    return np.load(path, mmap_mode=mode)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def read_all(source, most=17):
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


def assert_rows(source, X, y=None, weight=None):
    """Compare with the arrays that were stored, twice, for chunks of several sizes."""
    for most in (1, 7, 50, 50, 1000):
        whole, _ = read_all(source, most)
        np.testing.assert_array_equal(dense(whole.X), X)
        for got, expected in (whole.y, y), (whole.sample_weight, weight):
            assert (got is None) == (expected is None)
            if expected is not None:
                np.testing.assert_array_equal(got, expected)


def make_table(data):
    pa = pytest.importorskip("pyarrow")
    X, y, weight = data
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    return pa.table({"w": weight, **columns, "label": pa.array(y, pa.string())})


def write_table(table, path, **options):
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


class Tensor:
    """As much of a tensor as matters here."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)
