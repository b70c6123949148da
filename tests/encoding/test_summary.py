"""Summaries of parts of a table add up to the summary of all of it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from factories import mixed_table

from nysplus.encoding.summary import (
    ColumnSummary,
    SchemaRules,
    TableSummary,
    category_positions,
    table_names,
)


@pytest.mark.parametrize("ends", [[0], [1, 150], [7, 8, 299], [300]])
def test_parts_add_up(ends):
    frame, _ = mixed_table()
    frame["row"] = np.arange(1.0, 301)
    starts = [0, *ends, 300]
    parts = [frame.iloc[a:b] for a, b in pairwise(starts)]
    found = TableSummary.of(parts[0])
    for part in parts[1:]:
        found.add(TableSummary.of(part))
    assert asdict(found) == asdict(TableSummary.of(frame))
    assert [column.name for column in found.columns if column.counting] == ["row"]


@pytest.mark.parametrize(
    ("numbers", "counting"),
    [
        (range(60), True),
        (range(1, 61), True),
        (range(2, 62), False),
        (range(0, 120, 2), False),
        ([*range(59), np.nan], False),
        ([*range(30), *range(31, 61)], False),
    ],
)
def test_numbers_of_rows(numbers, counting):
    (column,) = TableSummary.of(np.array([*numbers], dtype=float)[:, None]).columns
    assert column.counting == counting


def test_counts_are_bounded():
    rules = SchemaRules(counted_levels=20, counted_numbers=10)
    frame = pd.DataFrame(
        {
            "text": [*["often"] * 30, *(f"rare {i}" for i in range(50))],
            "number": [*[0.5] * 30, *range(50)],
        }
    )
    summary = TableSummary.of(frame.iloc[:45], rules=rules)
    summary.add(TableSummary.of(frame.iloc[45:], rules=rules), rules)
    text, number = summary.columns
    assert text.overflowing
    assert number.overflowing
    assert len(text.counts) <= 20
    assert len(number.counts) <= 10
    assert text.counts["often"] == number.counts[0.5] == 30


def test_a_column_of_two_kinds():
    first = TableSummary.of(pd.DataFrame({"a": [1.0, 2.0]}))
    first.add(TableSummary.of(pd.DataFrame({"a": [None, None]})))
    message = "'a' contains numbers in some rows and categories in others. Give it one type"
    with pytest.raises(TypeError, match=message):
        first.add(TableSummary.of(pd.DataFrame({"a": ["x", "y"]})))


def test_gaps_take_the_kind_of_later_rows():
    summary = TableSummary.of(pd.DataFrame({"a": [None, None]}))
    summary.add(TableSummary.of(pd.DataFrame({"a": ["x", "y"]})))
    (column,) = summary.columns
    assert (column.kind, column.entries, column.n_gaps) == ("category", "texts", 2)
    summary.add(TableSummary.of(pd.DataFrame({"a": pd.Categorical(["x", "y"])})))
    assert column.entries == "levels"


def test_numbers_that_are_too_large_are_noted():
    columns = TableSummary.of(np.array([[np.inf, 1.0], [0.0, np.nan]])).columns
    assert [column.too_large for column in columns] == [True, False]
    columns[1].add(ColumnSummary("", "number", 1, 0, {-1e200: 1}, too_large=True), SchemaRules())
    assert columns[1].too_large


def test_names():
    assert table_names(np.zeros((2, 2))) is None
    assert table_names(pd.DataFrame(np.zeros((2, 2)))) is None
    assert table_names(pd.DataFrame({"a": [1], "b": [2]})) == ("a", "b")
    with pytest.raises(TypeError, match=r"named by texts and by other things: \['a', 1\]"):
        table_names(pd.DataFrame({"a": [1], 1: [2]}))
    with pytest.raises(ValueError, match=r"several columns of one name: \['a'\]"):
        table_names(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_positions_of_categories():
    names = ("a", "b", "c")
    assert category_positions(["c", 0, -2, np.int64(1)], names, 3) == {0, 1, 2}
    assert category_positions([1], None, 3) == {1}
    for which in ("d", 3, -4, 1.5, True, None):
        with pytest.raises(ValueError, match=r"X has the columns \['a', 'b', 'c'\]. Name columns"):
            category_positions([which], names, 3)
    with pytest.raises(ValueError, match="categories contains 'a', and X has 3 columns"):
        category_positions(["a"], None, 3)
