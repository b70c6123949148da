"""Write synthetic rows and CovType to disk, and open them as a fit does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from nysplus_experiments.harness.datasets import load
from nysplus_experiments.speed.peers import SEED

FEATURES = 20
WRONG_LABELS = 0.05
TEST_ROWS = 100_000
# Rows of a Parquet file (at most), which are made at a time, and of its row groups.
FILE_ROWS, GROUP_ROWS = 1_000_000, 250_000


def make_rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal rows and two classes that no plane separates, some labels wrong."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n_rows, FEATURES))
    wrong = rng.uniform(size=n_rows) < WRONG_LABELS
    return X, ((X[:, 0] * X[:, 1] + X[:, 2] > 0) ^ wrong).astype(np.int8)


def write_rows(folder: Path, n_rows: int, file_rows: int) -> None:
    """Write the same rows as a memory map and as Parquet files, and rows to test with."""
    stored = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (n_rows, FEATURES))
    labels = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, (n_rows,))
    names = [f"x{j}" for j in range(FEATURES)]
    for number, start in enumerate(range(0, n_rows, file_rows)):
        X, y = make_rows(file_rows, SEED + 1 + number)
        stored[start : start + len(X)], labels[start : start + len(X)] = X, y
        table = pa.table(dict(zip([*names, "label"], [*X.T, y], strict=True)))
        pa.parquet.write_table(table, _file(folder, number), row_group_size=GROUP_ROWS)
    stored.flush()
    labels.flush()
    X, y = make_rows(TEST_ROWS, SEED)
    np.savez(folder / "test.npz", X=X, y=y)
    _sync(folder)


def write_covtype(folder: Path, n_rows: int) -> None:
    """Write CovType, scaled as in the paper, as a memory map, and its test rows."""
    split = load("covtype")
    np.save(folder / "X.npy", split.X_train[:n_rows])
    np.save(folder / "y.npy", split.y_train[:n_rows])
    np.savez(folder / "test.npz", X=split.X_test, y=split.y_test)
    _sync(folder)


def open_rows(folder: Path, source: str, n_rows: int) -> tuple[Any, Any]:
    """Return X and y for ``fit``: the first rows of a folder, which end with a file."""
    if source == "parquet":
        file_rows = pa.parquet.read_metadata(_file(folder, 0)).num_rows
        files = [str(_file(folder, number)) for number in range(n_rows // file_rows)]
        return pa.dataset.dataset(files), "label"
    X, y = (np.load(folder / name, mmap_mode="r")[:n_rows] for name in ("X.npy", "y.npy"))
    return (X, y) if source == "memmap" else (np.array(X), np.array(y))


def drop_from_cache(folder: Path) -> None:
    """Drop the files from the system's cache, where the system allows that."""
    if hasattr(os, "posix_fadvise"):
        for path in folder.iterdir():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _file(folder: Path, number: int) -> Path:
    return folder / f"rows-{number:03d}.parquet"


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
