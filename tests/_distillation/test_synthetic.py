"""Synthetic rows lie between neighbours."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._distillation.synthetic import SyntheticRules, synthetic_rows


def test_numbers_are_values_of_their_column_between_the_parents(rng):
    X = rng.standard_normal((60, 3))
    made = synthetic_rows(X, 200, np.random.RandomState(0))
    low, high = np.sort(X[made.origin[:, :2]], axis=1).transpose(1, 0, 2)
    assert ((low <= made.X) & (high >= made.X)).all()
    assert all(np.isin(made.X[:, j], X[:, j]).all() for j in range(3))
    assert (made.origin[:, 0] != made.origin[:, 1]).all()
    # every row is a first parent three or four times
    assert set(np.bincount(made.origin[:, 0])) == {3, 4}


def test_the_nearest_rows_belong_to_the_origin(rng):
    X = rng.standard_normal((60, 2))
    made = synthetic_rows(X, 100, np.random.RandomState(0), SyntheticRules(n_near=2))
    distances = (((made.X[:, None] - X) / X.std(axis=0)) ** 2).sum(axis=2)
    np.testing.assert_array_equal(
        np.sort(made.origin[:, 2:], axis=1), np.sort(np.argsort(distances, axis=1)[:, :2], axis=1)
    )


def test_partners_are_the_nearest_rows(rng):
    X = rng.standard_normal((60, 2))
    made = synthetic_rows(X, 100, np.random.RandomState(0), SyntheticRules(n_neighbors=2))
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for first, second in made.origin[:, :2]:
        distances = ((scaled - scaled[first]) ** 2).sum(axis=1)
        assert second in np.argsort(distances)[1:3]


def test_a_single_row_is_repeated():
    made = synthetic_rows(sp.csr_matrix([[1.0, 2.0]]), 3, np.random.RandomState(0))
    np.testing.assert_array_equal(made.X.toarray(), np.repeat([[1.0, 2.0]], 3, axis=0))


def test_tables_keep_types_levels_and_gaps(rng):
    pd = pytest.importorskip("pandas")
    n = 60
    frame = pd.DataFrame(
        {
            "number": np.where(rng.rand(n) < 0.2, np.nan, rng.standard_normal(n)),
            "whole": rng.randint(0, 50, n),
            "code": rng.randint(0, 3, n).astype(float),
            "nullable": pd.array(rng.randint(0, 50, n), dtype="Int64"),
            "level": pd.Categorical(rng.choice(["a", "b"], n), categories=["a", "b", "c"]),
            "text": rng.choice(["x", "y"], n),
            "flag": rng.rand(n) < 0.5,
            "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.randint(0, 99, n), "D"),
        }
    )
    made = synthetic_rows(frame, 150, np.random.RandomState(0))
    assert made.X.dtypes.to_dict() == frame.dtypes.to_dict()
    assert list(made.X.index) == list(range(150))
    first, second = (frame.iloc[numbers].reset_index(drop=True) for numbers in made.origin[:, :2].T)
    for name in ("code", "level", "text", "flag", "day"):
        assert ((made.X[name] == first[name]) | (made.X[name] == second[name])).all()
    gaps = made.X["number"].isna()
    assert gaps.any()
    assert (first["number"].isna() | second["number"].isna())[gaps].all()


def test_sparse_rows_are_interpolated(rng):
    X = sp.random(60, 8, 0.3, format="csr", random_state=rng)
    made = synthetic_rows(X, 100, np.random.RandomState(0))
    assert sp.issparse(made.X)
    left, right = (X[numbers].toarray() for numbers in made.origin[:, :2].T)
    rows = made.X.toarray()
    assert (rows >= np.minimum(left, right) - 1e-12).all()
    assert (rows <= np.maximum(left, right) + 1e-12).all()


def test_texts_in_an_array_are_taken_from_one_of_the_parents(rng):
    X = np.column_stack([rng.standard_normal(60), rng.choice(["a", "b"], 60)]).astype(object)
    X[:, 0] = X[:, 0].astype(float)
    made = synthetic_rows(X, 100, np.random.RandomState(0))
    assert made.X.dtype == object
    for j in range(2):
        parents = X[made.origin[:, :2], j]
        assert (made.X[:, j] == parents.T).any(axis=0).all()
