"""The same rows in every place that they may be read from."""

from __future__ import annotations

from itertools import pairwise

import factories
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.feather
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.landmarks import SELECTORS

N, D = 500, 3
NAMES = ["a", "b", "c"]
CHUNK = 61
SELECTIONS = sorted(name for name in SELECTORS if SELECTORS[name].targets != "optional")


ROWS = factories.table(N, D)
X, WEIGHT = ROWS.X, ROWS.weight
TARGETS = {
    **ROWS.targets,
    "signed": np.where(ROWS.targets["binary"], 1.0, -1.0),
    "boolean": ROWS.targets["binary"].astype(bool),
    "text": ROWS.targets["text"].astype(object),
}


# ---- where rows may be --------------------------------------------------------------------------


def table_frame(X, y, weight):
    """Return a table that holds everything, and the names that fit wants."""
    y = np.asarray(y)
    frame = pd.DataFrame(X, columns=NAMES)
    names = "y" if y.ndim == 1 else [f"y{j}" for j in range(y.shape[1])]
    # the target stands among the features
    for place, name in enumerate([names] if y.ndim == 1 else names):
        frame.insert(1 + place, name, y if y.ndim == 1 else y[:, place])
    if weight is not None:
        frame.insert(0, "weight", weight)
    return frame, names, None if weight is None else "weight"


def as_memmap(folder, X, y, weight):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y, weight


def as_parquet(group):
    def store(folder, X, y, weight):
        frame, *names = table_frame(X, y, weight)
        frame.to_parquet(folder / "rows.parquet", row_group_size=group)
        return folder / "rows.parquet", *names

    return store


def _files(write, suffix):
    """Several files, one of them of a single row."""

    def store(folder, X, y, weight):
        frame, *names = table_frame(X, y, weight)
        (folder / "rows").mkdir()
        cuts = [0, 200, 201, 350, N]
        for number, (start, stop) in enumerate(pairwise(cuts)):
            write(frame[start:stop], folder / "rows" / f"part-{number}{suffix}")
        return str(folder / "rows"), *names

    return store


def _table(folder, X, y, weight):
    frame, *names = table_frame(X, y, weight)
    return pa.Table.from_pandas(frame, preserve_index=False), *names


def _dataset(folder, X, y, weight):
    path, *names = as_parquet(40)(folder, X, y, weight)
    return pds.dataset(path), *names


def _feather(folder, X, y, weight):
    table, *names = _table(folder, X, y, weight)
    pa.feather.write_feather(table, folder / "rows.arrow", chunksize=73)
    return folder / "rows.arrow", *names


def _beside(folder, X, y, weight):
    """Rows in a file, targets and weights in memory."""
    pd.DataFrame(X, columns=NAMES).to_parquet(folder / "X.parquet")
    return folder / "X.parquet", y, weight


def cut_into(X, y, weight, size):
    arrays = [values for values in (X, y, weight) if values is not None]
    return [tuple(v[i : i + size] for v in arrays) for i in range(0, X.shape[0], size)]


def _blocks(size, container=list):
    def store(folder, X, y, weight):
        return container(cut_into(X, y, weight, size)), None, None

    return store


class Again:
    """An object that starts anew each time it is iterated over."""

    def __init__(self, blocks):
        self._blocks = blocks

    def __iter__(self):
        return iter(self._blocks)


STORES = {
    "memmap": as_memmap,
    "parquet": as_parquet(10_000),
    "parquet-groups-of-7": as_parquet(7),
    "parquet-files": _files(lambda frame, path: frame.to_parquet(path, row_group_size=90), ".pq"),
    "parquet-beside": _beside,
    "csv": _files(lambda frame, path: frame.to_csv(path, index=False), ".csv"),
    "csv.gz": _files(lambda frame, path: frame.to_csv(path, index=False), ".csv.gz"),
    "feather": _feather,
    "table": _table,
    "dataset": _dataset,
    "blocks-of-1": _blocks(1),
    "blocks-of-61": _blocks(61, Again),
    "blocks-of-200": _blocks(200, lambda blocks: lambda: (block for block in blocks)),
    "one-block": _blocks(N),
    "empty-blocks": _blocks(90, lambda cut: [cut[0], tuple(v[:0] for v in cut[0]), *cut[1:]]),
}
every_store = pytest.mark.parametrize("store", STORES.values(), ids=STORES)
FEW = ["memmap", "parquet-files", "csv", "table", "blocks-of-61"]
ONE_OF_A_KIND = ["memmap", "parquet-files", "csv", "blocks-of-61"]
one_of_a_kind = pytest.mark.parametrize("store", ONE_OF_A_KIND)


def model_class(target):
    return NystroemRegressor if "values" in target else NystroemClassifier


def make_model(target="binary", **params):
    defaults = {"gamma": 0.5, "alpha": 0.1, "selection": "uniform", "random_state": 0}
    return model_class(target)(20, **defaults | params)


def rows_for(model, X):
    """Return rows with the names of columns that the model knows."""
    return pd.DataFrame(X, columns=NAMES) if hasattr(model, "feature_names_in_") else X


def assert_close(got, expected, rtol=1e-8):
    assert got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= rtol * np.linalg.norm(expected)


def dense_of(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def assert_same(model, other):
    if other.landmark_indices_ is None:
        assert model.landmark_indices_ is None
    else:
        np.testing.assert_array_equal(model.landmark_indices_, other.landmark_indices_)
    assert_close(dense_of(model.landmarks_), dense_of(other.landmarks_), 1e-13)
    assert model.gamma_ == pytest.approx(other.gamma_, rel=1e-12)
    assert model.alpha_ == other.alpha_
    assert_close(model.dual_coef_, other.dual_coef_)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=0, atol=1e-8)
    assert model.n_features_in_ == other.n_features_in_
    if hasattr(other, "classes_"):
        np.testing.assert_array_equal(model.classes_, other.classes_)


def _sparse_rows():
    rng = np.random.RandomState(0)
    dense = np.round(rng.rand(N, 12), 3) * (rng.rand(N, 12) < 0.3)
    dense[0, -1] = 1.0  # the last column is there
    dense[5] = 0.0
    return sp.csr_matrix(dense), (dense.sum(axis=1) > 1.8).astype(int)


SPARSE, SPARSE_Y = _sparse_rows()


def as_libsvm(zero_based):
    def store(folder):
        dump_svmlight_file(SPARSE, SPARSE_Y, str(folder / "rows.svm"), zero_based=zero_based)
        return folder / "rows.svm"

    return store


def _libsvm_files(folder):
    (folder / "rows").mkdir()
    for number, rows in enumerate([slice(0, 100), slice(100, N)]):
        dump_svmlight_file(SPARSE[rows], SPARSE_Y[rows], str(folder / "rows" / f"{number}.svm"))
    return folder / "rows"


SPARSE_STORES = {
    "libsvm-from-0": as_libsvm(True),
    "libsvm-from-1": as_libsvm(False),
    "libsvm-files": _libsvm_files,
    "csr-blocks": lambda folder: cut_into(SPARSE, SPARSE_Y, None, 45),
    "csc-blocks": lambda folder: [(x.tocsc(), y) for x, y in cut_into(SPARSE, SPARSE_Y, None, 45)],
}
