"""Knots come from the same rows wherever a table is."""

from __future__ import annotations

from types import SimpleNamespace

import factories
import numpy as np
import pyarrow as pa
import pytest

from nysplus import NystroemClassifier
from nysplus._bytes.budget import Budget
from nysplus._fit.columns import with_importance
from nysplus._fit.table import KNOT_ROWS, Table
from nysplus._rows.on_disk import ChunkRules, using_chunk_rules
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus.encoding import TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore:The column 'id' numbers the rows")

N, SAMPLE, BINS = 6000, 1500, 16
FRAME, Y = factories.frame_of_all_kinds(N)
WHOLE = FRAME.assign(label=Y)
ENCODER = TableEncoder(categories=["zip"])


def table_in(rows, y=None, knot_rows=SAMPLE):
    """Return the table of a fit to some rows."""
    columns = NystroemClassifier()
    opened = open_rows(columns, rows, y, None, TargetSpec("classes"), encoder=ENCODER)
    with using_chunk_rules(ChunkRules(max_rows=700)):
        blocks, _ = opened.open(Progress(), Journal())
        return Table.of(ENCODER, columns._schema, blocks, knot_rows)


def files(folder, suffix, write):
    (folder / "rows").mkdir()
    for number, start in enumerate(range(0, N, 2500)):
        write(WHOLE[start : start + 2500], folder / "rows" / f"part-{number}{suffix}")
    return folder / "rows", "label"


def on_dask(folder):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(WHOLE, npartitions=5), "label"


STORES = {
    "parquet": lambda folder: files(
        folder, ".parquet", lambda part, path: part.to_parquet(path, row_group_size=900)
    ),
    "csv": lambda folder: files(folder, ".csv", lambda part, path: part.to_csv(path, index=False)),
    "arrow": lambda folder: (pa.Table.from_pandas(WHOLE, preserve_index=False), "label"),
    "blocks": lambda folder: ([(FRAME[i : i + 999], Y[i : i + 999]) for i in range(0, N, 999)],),
    "dask": on_dask,
}


def greatest_rank_error(n_rows):
    """Return the error that ranks in a sample exceed with a probability of .01."""
    return np.sqrt(np.log(2 / 0.01) / (2 * n_rows))


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_sample_gives_the_same_knots_everywhere(tmp_path, store):
    memory, table = table_in(FRAME, Y), table_in(*store(tmp_path))
    assert table.schema == memory.schema
    assert len(table.drawn.X) == SAMPLE
    np.testing.assert_array_equal(table.drawn.X, memory.drawn.X)
    for numbers in ("thermometer", "standard", "rank_gauss"):
        found, expected = (each.encoding(numbers, BINS).code for each in (table, memory))
        assert found.same(expected)


def test_knots_of_a_sample_are_within_the_stated_error():
    whole, sampled = table_in(FRAME, Y, N), table_in(FRAME, Y)
    for i in (0, 1, 6):  # numbers and dates
        column = np.sort(whole.rows.X[:, i][~np.isnan(whole.rows.X[:, i])])
        some = np.sort(sampled.drawn.X[:, i][~np.isnan(sampled.drawn.X[:, i])])
        rank = np.searchsorted(column, column, side="right") / len(column)
        sampled_rank = np.searchsorted(some, column, side="right") / len(some)
        assert np.abs(rank - sampled_rank).max() <= greatest_rank_error(len(some))
    knots = sampled.encoding("thermometer", BINS).code.terms[0].knots.astype(np.float64)
    number = FRAME["number"].dropna().to_numpy()
    found = (number[:, None] <= knots).mean(axis=0)
    # knots may also be rounded by a share of a bin
    error = greatest_rank_error(SAMPLE) + 1 / BINS / 32
    np.testing.assert_allclose(found, np.linspace(0, 1, BINS + 1), rtol=0, atol=error)


def test_the_error_that_is_stated_for_large_tables():
    assert greatest_rank_error(KNOT_ROWS) == pytest.approx(0.005, abs=2e-4)


@pytest.mark.parametrize("store", ["parquet", "dask"])
def test_columns_are_as_important_everywhere(tmp_path, store):
    plan = SimpleNamespace(budget=Budget(120), alphas=(0.1,))
    memory = with_importance(plan, table_in(FRAME, Y))
    table = with_importance(plan, table_in(*STORES[store](tmp_path)))
    np.testing.assert_allclose(table.importance, memory.importance, rtol=1e-6)
    counts = memory.column_counts(plan.budget)
    assert max(counts) < len(memory.schema.columns)
    for n in counts:
        found, expected = (each.encoding("standard", BINS, n_columns=n) for each in (table, memory))
        assert found.code.same(expected.code)
        assert len(np.unique(found.code.groups)) == n


def test_a_budget_with_room_needs_no_importances():
    table = table_in(FRAME, Y)
    assert with_importance(SimpleNamespace(budget=Budget(4096)), table) is table
    assert with_importance(SimpleNamespace(budget=None), table) is table
    assert table.column_counts(Budget(4096)) == (None,)
