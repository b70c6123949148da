"""Which X is opened as a source, and how."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from reader_checks import NAMES, Tensor, as_memmap, assert_rows, make_table, write_table

from nysplus._rows.readers import open_source


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
    mapped = as_memmap(tmp_path / "X.npy", data[0])
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
    write_table(make_table(data), tmp_path / "k=1" / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    for path in (".", "k=1", "k=1/rows.parquet"):
        source = open_source(path, "label", features=NAMES)
        assert_rows(source, data[0], data[1])
    assert "k" in open_source(".", "label").feature_names
    assert "k" not in open_source("k=1", "label").feature_names
