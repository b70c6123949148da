"""Rows in memory, on disk and in Dask collections give the same fit."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import dask
import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from cases import assert_agree, cases, scores_of
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def frame_of(case):
    """Return all columns in one table, and the names of those of the targets."""
    frame = pd.DataFrame(case.X, columns=[f"x{j}" for j in range(case.X.shape[1])])
    targets = case.y.reshape(len(case.y), -1)
    names = [f"y{j}" for j in range(targets.shape[1])]
    frame[names] = targets
    return frame, names[0] if case.y.ndim == 1 else names


def memory_map(case, folder, size):
    np.save(folder / "X.npy", case.X)
    return np.load(folder / "X.npy", mmap_mode="r"), case.y


def parquet(case, folder, size):
    frame, names = frame_of(case)
    frame.to_parquet(folder / "rows.parquet", row_group_size=size)
    return folder / "rows.parquet", names


def csv(case, folder, size):
    frame, names = frame_of(case)
    for part, start in enumerate(range(0, len(frame), size)):
        frame[start : start + size].to_csv(folder / f"{part:03}.csv", index=False)
    return folder, names


def libsvm(case, folder, size):
    dump_svmlight_file(case.X, case.y, str(folder / "rows.svm"), zero_based=False)
    return folder / "rows.svm", None


def blocks(case, folder, size):
    starts = range(0, len(case.X), size)
    return [(case.X[i : i + size], case.y[i : i + size]) for i in starts], None


def dask_array(case, folder, size):
    return (
        dask.array.from_array(case.X, chunks=(size, -1)),
        dask.array.from_array(case.y, chunks=(size, -1)[: case.y.ndim]),
    )


def dask_frame(case, folder, size):
    frame, names = frame_of(case)
    return dask.dataframe.from_pandas(frame, npartitions=-(-len(frame) // size)), names


STORES = {
    store.__name__: store
    for store in (memory_map, parquet, csv, libsvm, blocks, dask_array, dask_frame)
}


@given(cases(weighted=False), st.sampled_from(sorted(STORES)), st.integers(1, 40))
def test_stores(case, store, size):
    assume(store != "libsvm" or (case.y.ndim == 1 and case.X[:, -1].any()))
    # rows that are the same number may stand anywhere: sparse rows of a file are floats as they are
    if case.discrete and case.y.ndim == 1:
        case = replace(case, y=case.y + 1)
    expected = scores_of(case.fit(), case.X)
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        X, y = STORES[store](case, Path(folder), size)
        model = case.fit(X, y) if y is not None else type(case.fit())(**case.params).fit(X)
        rows = case.X
        if hasattr(model, "feature_names_in_"):
            rows = pd.DataFrame(case.X, columns=model.feature_names_in_)
        assert_agree(scores_of(model, rows), expected)
