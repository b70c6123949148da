"""Small data for the golden fits, and the places that a fit can read rows from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

# Rows of a block, a row group or a partition: several of them, of unequal sizes.
BLOCK = 70


class Rows(NamedTuple):
    """Training rows X with targets y, and test rows T."""

    X: Any
    y: Any
    T: Any


def _digits() -> tuple[Any, Any]:
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y


def _standardised(X: Any) -> Any:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _cancer() -> tuple[Any, Any]:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return _standardised(X), y


def _diabetes() -> tuple[Any, Any]:
    X, y = datasets.load_diabetes(return_X_y=True)
    return _standardised(X), y


def _wine() -> tuple[Any, Any]:
    X, y = datasets.load_wine(return_X_y=True)
    return _standardised(X), y


def _iris() -> tuple[Any, Any]:
    return datasets.load_iris(return_X_y=True)


def _normal() -> Any:
    return np.random.RandomState(7).standard_normal((6000, 4))


def _waves() -> tuple[Any, Any]:
    """Two noisy values of four features, of which two matter."""
    X = _normal()
    noise = np.random.RandomState(8).standard_normal((len(X), 2))
    return X, np.c_[np.sin(2.0 * X[:, 0]), X[:, 0] * X[:, 1]] + 0.1 * noise


def _quadrants() -> tuple[Any, Any]:
    """Three classes that overlap, in four features of which the last is noise."""
    X, values = _waves()
    return X, (values[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)


def _labels() -> tuple[Any, Any]:
    """Three labels of each row; some rows have none."""
    X, values = _waves()
    return X, np.c_[values > 0, X[:, 2] > 0.5].astype(int)


def _space() -> tuple[Any, Any]:
    """A noisy value of eight features, of many rows."""
    rng = np.random.RandomState(9)
    X = rng.standard_normal((45_000, 8))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(len(X))


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "cancer": _cancer,
    "diabetes": _diabetes,
    "digits": _digits,
    "iris": _iris,
    "labels": _labels,
    "quadrants": _quadrants,
    "space": _space,
    "waves": _waves,
    "wine": _wine,
}


@cache
def _shuffled(name: str) -> tuple[Any, Any]:
    X, y = DATA[name]()
    order = np.random.RandomState(0).permutation(len(X))
    return X[order], y[order]


def rows_of(name: str, n_training: int, n_test: int = 40, dtype: Any = np.float64) -> Rows:
    """Return the first rows of a shuffled dataset to train on, and the last ones to test on."""
    X, y = _shuffled(name)
    assert n_training + n_test <= len(X)
    X = X.astype(dtype)
    return Rows(X[:n_training].copy(), y[:n_training].copy(), X[-n_test:].copy())


def weights(n: int) -> Any:
    """Return weights of rows, some of which are zero."""
    return np.random.RandomState(3).choice([0.0, 0.5, 1.0, 3.0], n)


def sparse(X: Any) -> Any:
    """Return rows as a CSR array without their small entries."""
    return sp.csr_array(np.where(np.abs(X) > 0.25, X, 0.0))


# Places that rows can be read from. Each takes a folder, X, y and weights, and returns the
# arguments of `fit`.


def _cut(n: int) -> list[slice]:
    return [slice(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]


def _frame(X: Any, y: Any, weight: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["y"] = y
    frame["weight"] = weight
    return frame


def _memmap(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y, weight


def _parquet(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    _frame(X, y, weight).to_parquet(folder / "rows.parquet", row_group_size=BLOCK)
    return folder / "rows.parquet", "y", "weight"


def _parquet_folder(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    (folder / "parts").mkdir()
    frame = _frame(X, y, weight)
    for number, rows in enumerate(_cut(len(X))):
        frame.iloc[rows].to_parquet(folder / "parts" / f"{number}.parquet")
    return folder / "parts", "y", "weight"


def _feather(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    _frame(X, y, weight).to_feather(folder / "rows.feather")
    return folder / "rows.feather", "y", "weight"


def _csv(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    _frame(X, y, weight).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv", "y", "weight"


def _arrow_table(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    import pyarrow as pa

    return pa.Table.from_pandas(_frame(X, y, weight)), "y", "weight"


def _libsvm(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    datasets.dump_svmlight_file(X, y, str(folder / "rows.svm"))
    return (folder / "rows.svm",)


def _blocks(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    return ([(X[rows], y[rows], weight[rows]) for rows in _cut(len(X))],)


def _empty_block(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    cuts = [slice(0, BLOCK), slice(BLOCK, BLOCK), slice(BLOCK, len(X))]
    return ([(X[rows], y[rows], weight[rows]) for rows in cuts],)


def _csr_blocks(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    return ([(sparse(X[rows]), y[rows]) for rows in _cut(len(X))],)


def _pandas(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    frame = _frame(X, y, weight)
    return frame.drop(columns=["y", "weight"]), frame["y"], frame["weight"]


def _polars(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    import polars as pl

    return pl.DataFrame({f"x{j}": column for j, column in enumerate(X.T)}), y, weight


def _dask_array(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    import dask.array as da

    return tuple(da.from_array(a, chunks=(BLOCK, *a.shape[1:])) for a in (X, y, weight))


def _dask_series(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    import dask.dataframe as dd

    frame = dd.from_pandas(_frame(X, y, weight), npartitions=4)
    return frame[[f"x{j}" for j in range(X.shape[1])]], frame["y"], frame["weight"]


def _dask_rows(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    return _dask_array(folder, X, y, weight)[0], y, weight


def _dask_frame(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    import dask.dataframe as dd

    return dd.from_pandas(_frame(X, y, weight), npartitions=4), "y", "weight"


def _delayed(folder: Path, X: Any, y: Any, weight: Any) -> tuple[Any, ...]:
    import dask

    return ([dask.delayed((X[rows], y[rows], weight[rows])) for rows in _cut(len(X))],)


STORES: dict[str, Callable[[Path, Any, Any, Any], tuple[Any, ...]]] = {
    "arrow-table": _arrow_table,
    "blocks": _blocks,
    "csr-blocks": _csr_blocks,
    "csv": _csv,
    "dask-array": _dask_array,
    "dask-frame": _dask_frame,
    "dask-rows": _dask_rows,
    "dask-series": _dask_series,
    "delayed": _delayed,
    "empty-block": _empty_block,
    "feather": _feather,
    "libsvm": _libsvm,
    "memmap": _memmap,
    "ndarray": lambda folder, X, y, weight: (X, y, weight),
    "pandas": _pandas,
    "parquet": _parquet,
    "parquet-folder": _parquet_folder,
    "polars": _polars,
}


class Interrupted(Exception):
    """Raised by :class:`Breaking` in the middle of a pass."""


class Breaking:
    """Blocks of rows that count how many were read, and break off once.

    Parameters
    ----------
    blocks : list of tuples
    stop : int, optional
        Number of blocks after which reading breaks off; by default it does not.
    """

    def __init__(self, blocks: list[Any], stop: int | None = None) -> None:
        self.blocks = blocks
        self.stop = stop
        self.n_read = 0

    def __iter__(self) -> Any:
        for block in self.blocks:
            if self.n_read == self.stop:
                raise Interrupted
            self.n_read += 1
            yield block
