"""Tables as frames: levels, gaps, splits, twins, absent files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nysplus_experiments.harness.datasets import DatasetNotFound
from nysplus_experiments.harness.raw_tables import (
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
    TABLES,
    available_tables,
    level_codes,
    load_table,
    nominal_columns,
    table_of,
)

NAN = np.nan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NYSPLUS_DATA", str(tmp_path))
    (tmp_path / "tables").mkdir()
    return tmp_path


def test_there_are_43_tables():
    assert len(TABLES) == 43
    assert sum(source.regression for source in TABLES.values()) == 15


def test_columns_of_a_file(folder):
    X = np.array([[0.1, 10], [NAN, 2], [3, NAN], [4, 2]], np.float32)
    arrays = {"X": X, "y": np.array([7, 9, 7, 9]), "cat": [False, True], "names": ["age", "job"]}
    np.savez(folder / "tables" / "churn.npz", **arrays)
    table = load_table("churn")
    assert nominal_columns(table.frame) == ["job"]
    assert table.frame["age"].dtype == np.float64
    np.testing.assert_array_equal(table.frame["age"], X[:, 0].astype(np.float64))
    # levels are in the order of their codes, not of their texts
    assert list(table.frame["job"].cat.categories) == ["level 2", "level 10"]
    assert [*table.frame["job"][[0, 1, 3]]] == ["level 10", "level 2", "level 2"]
    assert pd.isna(table.frame["job"][2])
    assert table.y.tolist() == [0, 1, 0, 1]
    assert not table.regression


def test_published_parts_are_pooled(folder):
    X, y = np.arange(12, dtype=np.uint8).reshape(6, 2), np.array([1, -1, 1, -1, 1, -1])
    parts = {"X_train": X[:4], "y_train": y[:4], "X_test": X[4:], "y_test": y[4:]}
    np.savez(folder / "a9a.npz", **parts)
    table = load_table("a9a")
    np.testing.assert_array_equal(table.frame, X)
    assert list(table.frame.columns) == ["x0", "x1"]
    assert table.y.tolist() == [1, 0, 1, 0, 1, 0]


def test_absent_tables_are_skipped_with_a_reason(folder, capsys):
    with pytest.raises(DatasetNotFound, match=r"churn\.npz does not exist"):
        load_table("churn")
    assert available_tables(["churn", SYNTHETIC]) == [SYNTHETIC]
    assert "churn is skipped" in capsys.readouterr().out


def test_splits_keep_the_shares_of_classes():
    table = load_table(SYNTHETIC)
    split = table.split(3)
    assert (len(split.y), len(split.y_test)) == (350, 150)
    for y in (split.y, split.y_test):
        shares = np.bincount(y) / len(y)
        np.testing.assert_allclose(shares, np.bincount(table.y) / len(table.y), atol=0.01)
    assert len(table.split(3, max_train=100).y) == 100
    pd.testing.assert_frame_equal(split.X, table.split(3).X)
    assert not split.X.equals(table.split(4).X)


def test_the_target_of_regression_is_as_given():
    table = load_table(SYNTHETIC_REGRESSION)
    split = table.split(0)
    assert split.regression
    np.testing.assert_array_equal(np.sort([*split.y, *split.y_test]), np.sort(table.y))


def test_twins_are_equal_in_all_columns():
    """Rows are twins if numbers, levels and gaps agree; the target does not matter."""
    X = np.array([[1, 0], [1, 0], [1, NAN], [1, NAN], [1, 1], [-0.0, 1], [0.0, 1], [2, 2]] * 5)
    table = table_of(X, np.arange(40.0), np.array([False, True]), ["a", "b"], regression=True)
    split = table.split(0)
    train = {tuple(row) for row in level_codes(split.X).fillna(-1).to_numpy().tolist()}
    rows = level_codes(split.X_test).fillna(-1).to_numpy().tolist()
    assert split.has_twin.tolist() == [tuple(row) in train for row in rows]
    assert split.has_twin.all()
    alone = table_of(np.arange(40.0)[:, None], np.arange(40.0), np.array([False]), ["a"], True)
    assert not alone.split(0).has_twin.any()


def test_codes_of_levels():
    codes = level_codes(load_table(SYNTHETIC).frame)
    assert nominal_columns(codes) == []
    assert set(codes["x3"].dropna()) == {0, 1, 2}
    assert codes["x3"].isna().any()
