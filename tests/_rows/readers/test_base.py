"""Chunks are cut, joined and checked."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reader_checks import NAMES, dense

from nysplus._rows.readers import Chunk, check_chunk, join_chunks


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_chunks_are_cut_and_joined(data, convert):
    X, y, weight = data
    whole = Chunk(convert(X), y, weight, 40, "here", 30)
    parts = [whole.take(slice(0, 9)), whole.take(slice(9, 9)), whole.take(slice(9, None))]
    assert [(part.start, part.first) for part in parts] == [(40, 30), (49, 39), (49, 39)]
    joined = join_chunks(parts)
    np.testing.assert_array_equal(dense(joined.X), X)
    np.testing.assert_array_equal(joined.y, y)
    np.testing.assert_array_equal(joined.sample_weight, weight)
    some = whole.take(np.array([5, 2]))
    np.testing.assert_array_equal(dense(some.X), X[[5, 2]])
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
    with pytest.raises(
        ValueError, match=r"here holds .* in X, which is no type of number. Pass encoder"
    ):
        check_chunk(Chunk(X, None, None, 0, "here", 0))
