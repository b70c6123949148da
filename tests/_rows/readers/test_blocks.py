"""Rows of the user's own code."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from reader_checks import NAMES, D, N, Tensor, assert_rows, read_all

from nysplus._rows.readers import BlockRows, Reading, as_chunk, open_source


class Loader:
    """Gives batches as a data loader does, anew each time."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        yield from self.batches


class Columns:
    """A dataset of columns that hands out batches of rows."""

    def __init__(self, columns, size):
        self.columns_of, self.size = columns, size

    def __iter__(self):
        for start in range(0, N, self.size):
            rows = {
                name: values[start : start + self.size] for name, values in self.columns_of.items()
            }
            yield np.column_stack([rows[name] for name in NAMES]), rows["label"]


CUTS = [0, 0, 5, 5, 40, 41, N, N]  # some blocks are empty


def _blocks(*arrays):
    return [tuple(values[i:j] for values in arrays) for i, j in pairwise(CUTS)]


def _frame(kind):
    return lambda X: kind(dict(zip(NAMES, np.asarray(X).T, strict=True)))


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.asfortranarray,
        Tensor,
        lambda X: np.asarray(X).tolist(),
        _frame(pd.DataFrame),
        _frame(pl.DataFrame),
        sp.csr_matrix,
        sp.coo_array,
    ],
    ids=["array", "fortran", "tensor", "list", "pandas", "polars", "csr", "coo"],
)
def test_blocks_of_any_kind(data, convert):
    X, y, weight = data
    blocks = [
        (convert(part), *rest) for part, *rest in _blocks(X, y, weight) if len(part)
    ]  # a list without rows has no columns either
    for given in (blocks, Loader(blocks), lambda: iter(blocks), lambda: blocks):
        source = open_source(Loader(blocks) if given is blocks else given)
        assert isinstance(source, BlockRows)
        framed = isinstance(blocks[0][0], (pd.DataFrame, pl.DataFrame))
        assert source.feature_names == (tuple(NAMES) if framed else None)
        assert_rows(source, X, y, weight)
    assert [(chunk.n_rows, chunk.name) for chunk in source.chunks(42)] == [
        (42, "block 0"),
        (42, "block 3"),
        (19, "block 3"),
    ]


def test_empty_blocks_are_skipped(data):
    source = open_source(_blocks(*data))
    assert_rows(source, *data)
    assert next(source.chunks(4)).name == "block 1"


def test_blocks_without_targets(data):
    X = data[0]
    for blocks in (
        [X[:50], X[50:]],
        [(X[:50], None), (X[50:], None)],
        [[X[:50]], [X[50:]]],
        lambda: (X[i : i + 10] for i in range(0, N, 10)),
    ):
        source = open_source(blocks)
        assert not source.has_targets
        assert_rows(source, X)
    weighted = open_source([(X[:50], None, data[2][:50]), (X[50:], None, data[2][50:])])
    assert_rows(weighted, X, None, data[2])


def test_blocks_from_batches_of_columns(data):
    X, y, _ = data
    columns = {**{name: X[:, j] for j, name in enumerate(NAMES)}, "label": y}
    assert_rows(open_source(Columns(columns, 20)), X, y)
    assert_rows(open_source(lambda: iter(Columns(columns, 20))), X, y)


def test_blocks_of_several_types():
    blocks = [(np.ones((2, 2), np.float32),), (np.ones((2, 2)),), (np.ones((2, 2), np.int64),)]
    assert_rows(open_source(blocks), np.ones((6, 2), np.float32))
    assert_rows(open_source([np.ones((2, 2), np.int64), np.ones((2, 2), np.int8)]), np.ones((4, 2)))
    for first, second in (np.int64, float), (np.int8, np.int64), (bool, np.int64):
        message = f"block 1 holds {np.dtype(second)}, the first one {np.dtype(first)}. Convert all"
        with pytest.raises(ValueError, match=message):
            read_all(open_source([np.ones((2, 2), first), np.ones((2, 2), second)]))
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [True, False]})  # objects, to NumPy
    assert_rows(open_source([frame]), [[1.5, 1], [2.5, 0]])


def test_names_are_given(data):
    source = BlockRows([(data[0], data[1])], tuple(NAMES))
    assert source.feature_names == tuple(NAMES)
    bad = np.where(np.arange(D) == 2, np.nan, data[0])
    with pytest.raises(ValueError, match=r"row 0 \(row 0 of block 0.*column 'x2'"):
        BlockRows([(bad, data[1])], tuple(NAMES))


def test_one_block_becomes_a_chunk(data):
    X, y, weight = data
    chunk = as_chunk((X.tolist(), y.tolist(), weight.tolist()), "partition 3", Reading())
    np.testing.assert_array_equal(chunk.X, X)
    np.testing.assert_array_equal(chunk.y, y)
    assert (chunk.name, chunk.n_rows) == ("partition 3", N)
    assert as_chunk((X[:0], y[:0]), "partition 4", Reading()).n_rows == 0
    with pytest.raises(ValueError, match=r"NaN in row 1 of partition 5; .*column 'b'"):
        as_chunk([[1.0, 2.0], [3.0, np.nan]], "partition 5", Reading(("a", "b")))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((np.ones((3, 5)), np.ones(3)), "block 1 has 5 columns, the first one has 4 columns. Give"),
        (
            (sp.csr_matrix((3, 4)), np.ones(3)),
            "block 1 has sparse rows, the first one has dense rows",
        ),
        ((np.ones((3, 4)), None), r"block 1 has no y, the first one has y of shape \(rows\)"),
        (np.ones((3, 4)), r"block 1 has no y, the first one has y"),
        (
            (np.ones((3, 4)), np.ones((3, 2))),
            r"has y of shape \(rows, 2\), the first one has y of sh",
        ),
        (
            (np.ones((3, 4)), np.ones(3), np.ones(3)),
            "has sample_weight, the first one has no sample",
        ),
        ((np.ones((3, 4)), np.ones(2)), r"block 1 has 3 rows in X, and y of shape \(2,\)"),
        (
            (np.ones((3, 4)), np.ones(3), np.ones(3), 1),
            "block 1 is a tuple, and not X with rows and",
        ),
        ({"x": [1, 2]}, r"block 1 is a dict, and not X with rows and columns, \(X, y\) or"),
        (np.ones(4), "block 1 is a ndarray, and not X with rows and columns"),
        ([[1, 2], [1]], "block 1 is a list, and not X with rows and columns"),
        (
            ([["u"] * 4], [1]),
            "block 1 holds <U1 in X, which is no type of number|Convert all blocks",
        ),
        (
            (np.full((1, 4), "u", object), [1]),
            "block 1 does not turn into numbers: could not convert",
        ),
        ((np.full((3, 4), np.nan), np.ones(3)), r"NaN in row 9 \(row 0 of block 1; .*column 0"),
    ],
)
def test_block_unlike_the_first(second, message):
    source = open_source([(np.ones((9, 4)), np.ones(9)), second])
    with pytest.raises(ValueError, match=message):
        read_all(source, 100)


def test_frames_with_other_columns():
    frames = [pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"b": [1.0], "a": [2.0]})]
    message = r"block 1 has the columns \['b', 'a'\], the first one has the columns \['a', 'b'\]"
    with pytest.raises(ValueError, match=message):
        read_all(open_source(frames))
    frames[1] = np.ones((1, 2))
    with pytest.raises(
        ValueError, match="block 1 has no names of columns, the first one has the col"
    ):
        read_all(open_source(frames))


@pytest.mark.parametrize("blocks", [[], [(np.ones((0, 2)), np.ones(0))] * 3])
def test_no_rows_in_blocks(blocks):
    with pytest.raises(
        ValueError, match="X has no rows: there is no block, or all blocks are empty"
    ):
        BlockRows(blocks)


def test_what_can_be_read_only_once(data):
    def generate():
        yield from _blocks(*data)

    only = generate()

    class Shared:
        def __iter__(self):
            return only

    message = (
        "that can be read only once, and the rows.*Pass a list of blocks, .*function that returns"
    )
    for once in (generate(), iter(_blocks(*data)), map(tuple, _blocks(*data)), lambda: only):
        with pytest.raises(ValueError, match=message):
            open_source(once)
    shared = open_source(Shared())
    with pytest.raises(
        ValueError, match=r"block 1 is not the same as before\. Every pass must start"
    ):
        read_all(shared)


def test_shuffled_blocks(data, rng):
    X, y, _ = data

    def shuffled():
        order = rng.permutation(N)
        yield from zip(np.array_split(X[order], 3), np.array_split(y[order], 3), strict=True)

    with pytest.raises(ValueError, match=r"block 0 is not the same as before.*turn shuffling off"):
        read_all(open_source(shuffled))


def test_blocks_that_change_in_number(data):
    blocks = [(data[0][i : i + 10], data[1][i : i + 10]) for i in range(0, 100, 10)]
    given = list(blocks)
    source = open_source(Loader(given))
    read_all(source)
    given.pop()
    with pytest.raises(ValueError, match="This pass over X gave 90 rows, the first one gave 100"):
        read_all(source)
    given += blocks[-1:] * 3
    with pytest.raises(
        ValueError, match="This pass over X gave at least 110 rows, the first one gave"
    ):
        read_all(source)
    given.clear()
    with pytest.raises(ValueError, match="X has no rows"):
        read_all(source)
