"""What becomes of the columns of a table, and how entries become raw numbers."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from nysplus.encoding.schema import TableColumn, TableSchema, warn_of_columns
from nysplus.encoding.summary import SchemaRules, TableSummary


def schema_of(columns, categories=(), **rules):
    frame = columns if isinstance(columns, np.ndarray) else pd.DataFrame(columns)
    rules = SchemaRules(**rules)
    return TableSchema.of(TableSummary.of(frame, categories, rules), categories, rules)


def numbers(n, seed=0):
    return np.random.RandomState(seed).randn(n)


def test_levels_are_sorted_by_their_rows_and_rare_ones_pooled():
    texts = ["b"] * 30 + ["c"] * 10 + ["a"] * 30 + ["d"] * 9
    schema = schema_of({"x": texts})
    assert schema.columns[0].levels == ("a", "b", "c")
    assert schema_of({"x": texts}, min_level_rows=9).columns[0].levels == ("a", "b", "c", "d")
    assert schema_of({"x": texts}, max_levels=2).columns[0].levels == ("a", "b")
    raw = schema.read(pd.DataFrame({"x": ["c", "d", "new", None, "a"]}))
    np.testing.assert_array_equal(raw[:, 0], [2, -1, -1, np.nan, 0])


def test_few_rows_keep_their_levels():
    assert schema_of({"x": ["a", "b", "b", "c"]}).columns[0].levels == ("b", "a", "c")
    assert schema_of({"x": list("aaaaaabbbcc")}).columns[0].levels == ("a", "b")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.5] * 100, "is constant"),
        (["a"] * 100, "is constant"),
        ([None] * 100, "has no entries"),
        ([datetime.datetime(2020, 1, 1)] * 100, "is constant"),
    ],
)
def test_constants_are_left_out_without_a_warning(values, reason):
    schema = schema_of({"x": values, "y": numbers(100)})
    assert [column.name for column in schema.columns] == ["y"]
    assert [str(d) for d in schema.dropped] == [f"The column 'x' {reason}, and is left out."]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_columns(schema)


def test_near_constants_are_left_out():
    x = np.zeros(20_000)
    x[:2] = 1.0
    schema = schema_of({"x": x, "y": numbers(20_000)})
    assert "nearly constant (2 of 20,000 entries differ)" in str(schema.dropped[0])
    x[2] = 1.0
    assert len(schema_of({"x": x, "y": numbers(20_000)})) == 2


def test_a_number_and_gaps_are_no_constant():
    assert schema_of({"x": [1.0] * 60 + [np.nan] * 40}).columns[0].gaps


GUESSES = {
    "identifiers": ([f"id {i}" for i in range(100)], "has 100 different texts in 100 rows, as id"),
    "text": ([f"{i % 10} " + "word " * 20 for i in range(100)], "is free text"),
    "rows": (np.arange(100), "numbers the rows"),
}


@pytest.mark.parametrize("kind", GUESSES)
def test_columns_that_seem_to_be_no_features(kind):
    values, reason = GUESSES[kind]
    table = {"x": values, "y": numbers(100)}
    schema = schema_of(table)
    assert [column.name for column in schema.columns] == ["y"]
    with pytest.warns(UserWarning, match=f"'x' {reason}.*name them in TableEncoder") as caught:
        warn_of_columns(schema)
    assert len(caught) == 1
    # with few rows, or where the user knows better, they are used
    assert len(schema_of({name: values[:40] for name, values in table.items()})) == 2
    used = schema_of(table, categories=["x"])
    assert [column.kind for column in used.columns] == ["category", "number"]
    warn_of_columns(used)  # warnings are errors


def test_identifiers_beyond_what_is_counted():
    texts = [f"id {i}" for i in range(100)]
    schema = schema_of({"x": texts, "y": numbers(100)}, counted_levels=50)
    assert "has more than 50 different texts in 100 rows" in str(schema.dropped[0])
    used = schema_of({"x": texts, "y": numbers(100)}, categories=[0], counted_levels=50)
    assert len(used.columns[0].levels) == 25


def test_numbers_of_rows_alone_are_used():
    assert schema_of({"x": np.arange(100)}).columns[0].kind == "number"


def test_shuffled_numbers_of_rows_are_numbers():
    schema = schema_of({"x": np.random.RandomState(0).permutation(100)})
    assert schema.columns[0].kind == "number"


def test_categories_of_numbers():
    schema = schema_of({"zip": [10, 20, 20.5, np.nan] * 20, "t": ["a", "b"] * 40}, ["zip", "t"])
    assert [column.numbered for column in schema.columns] == [True, False]
    assert schema.columns[0].levels == ("10", "20", "20.5")
    raw = schema.read(pd.DataFrame({"zip": [20.5, 11, np.nan], "t": ["a", "c", None]}))
    np.testing.assert_array_equal(raw, [[2, 0], [-1, -1], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["1", "2", "30"], "numbers as texts, such as '1'. Convert it to numbers, for example"),
        (["-1.5", " 2e3", "+.5"], "numbers as texts, such as '-1.5'"),
        ([*map(str, range(20)), "?"], r"Convert it to numbers, with a gap in place of '\?'"),
        (["2020-01-01", "2021-05-05 12:30"], "dates as texts, such as '2020-01-01'.*to_datetime"),
    ],
)
def test_texts_to_be_converted_are_noted(texts, note):
    table = {"x": texts * 20, "y": numbers(20 * len(texts))}
    schema = schema_of(table)
    assert schema.columns[0].kind == "category"
    with pytest.warns(UserWarning, match=f"'x' has .*{note}"):
        warn_of_columns(schema)
    warn_of_columns(schema_of(table, categories=["x"]))


@pytest.mark.parametrize(
    "values",
    [
        ["007", "123"],
        ["1", "a", "b"],
        ["nan", "inf"],
        pd.Categorical([1, 2]),
        [True, False],
        ["12-34", "56-78"],
        ["", " "],
    ],
)
def test_other_categories_are_not_noted(values):
    table = {"x": pd.concat([pd.Series(values)] * 20), "y": numbers(20 * len(values))}
    assert schema_of(table).notes == ()


def test_different_texts_that_are_numbers_are_left_out_with_advice():
    schema = schema_of({"x": [str(number) for number in numbers(100)], "y": numbers(100)})
    with pytest.warns(UserWarning, match="'x' has 100 different texts.*Convert it to numbers"):
        warn_of_columns(schema)


def test_no_column_is_left():
    message = r"No column of X can be used, with n_samples = 3\. .*'x' is constant.*Pass other"
    with pytest.raises(ValueError, match=message):
        schema_of({"x": [1, 1, 1], "y": [None] * 3})


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="'x' contains infinity"):
        schema_of({"x": [1.0, np.inf]})
    with pytest.raises(ValueError, match=r"'x' contains infinity or a number beyond 1e\+150\. Rep"):
        schema_of({"x": [1.0, -1e200]})
    schema = schema_of({"x": [1.0, 2.0]})
    with pytest.raises(ValueError, match="'x' contains infinity"):
        schema.read(pd.DataFrame({"x": [-np.inf]}))


# ---- reading ------------------------------------------------------------------------------------

NUMBER = TableColumn(0, "n", "number")
CATEGORY = TableColumn(1, "c", "category", ("red", "blue"))
DATE = TableColumn(2, "d", "date")
TRUTH = TableColumn(3, "t", "category", ("True", "False"))
SCHEMA = TableSchema(4, ("n", "c", "d", "t"), (NUMBER, CATEGORY, DATE, TRUTH))
ROW = {
    "n": [1.5, 2.5],
    "c": ["blue", "red"],
    "d": [datetime.datetime(1970, 1, 2), datetime.datetime(1970, 1, 3)],
    "t": [True, False],
}
RAW = [[1.5, 1, 86400, 0], [2.5, 0, 2 * 86400, 1]]


def test_columns_are_found_by_name():
    frame = pd.DataFrame(ROW)
    for given in (frame, frame[["t", "d", "c", "n"]], frame.assign(more=1)[["more", *"tncd"]]):
        np.testing.assert_array_equal(SCHEMA.read(given), RAW)
    np.testing.assert_array_equal(SCHEMA.read(frame.to_numpy(dtype=object)), RAW)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n": ["1.5", "2"]}, TypeError, "'n' contained numbers in training and contains texts "
         "such as '1.5' now. Convert it to numbers."),
        ({"n": ROW["d"]}, TypeError, "'n' contained numbers in training and contains dates now"),
        ({"c": [1, 2]}, TypeError, r"'c' contained categories in training and contains numbers "
         r"now. Pass levels such as \['red', 'blue'\]"),
        ({"c": [0, 1]}, TypeError, "'c' contained categories in training and contains numbers"),
        ({"c": [1, "red"]}, TypeError, "'c' contains entries of several types"),
        ({"d": ["1970-01-02"] * 2}, TypeError, "'d' contained dates.*Convert it to dates"),
        ({"t": [0, 2]}, TypeError, "'t' contained categories in training and contains numbers"),
        ({"n": [np.inf, 0]}, ValueError, "'n' contains infinity"),
    ],
)  # fmt: skip
def test_columns_of_another_kind(change, error, message):
    with pytest.raises(error, match=message):
        SCHEMA.read(pd.DataFrame({**ROW, **change}))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
def test_columns_of_gaps_alone(gap):
    frame = pd.DataFrame({name: [gap, gap] for name in ROW})
    assert np.isnan(SCHEMA.read(frame)).all()


def test_truth_values_and_the_numbers_zero_and_one():
    frame = pd.DataFrame({**ROW, "t": [1.0, np.nan]})
    np.testing.assert_array_equal(SCHEMA.read(frame)[:, 3], [0, np.nan])
    frame = pd.DataFrame({**ROW, "t": ["True", "False"]})
    np.testing.assert_array_equal(SCHEMA.read(frame), RAW)


def test_columns_that_are_missing_or_there_twice():
    frame = pd.DataFrame(ROW)
    with pytest.raises(ValueError, match=r"X has no columns \['c'\], which the model uses"):
        SCHEMA.read(frame.drop(columns="c"))
    with pytest.raises(ValueError, match=r"several columns of one name: \['c'\]"):
        SCHEMA.read(pd.concat([frame, frame[["c"]]], axis=1))
    with pytest.raises(ValueError, match="X has 3 columns, and the model was fitted to 4"):
        SCHEMA.read(frame.to_numpy()[:, :3])


def test_columns_without_names_go_by_position():
    schema = schema_of(np.array([[1.0, "a"], [2.0, "b"]], dtype=object))
    assert [column.name for column in schema.columns] == ["column 0", "column 1"]
    frame = pd.DataFrame([[3.0, "b"]])
    np.testing.assert_array_equal(schema.read(frame), [[3.0, 1.0]])
    np.testing.assert_array_equal(schema.read(frame.set_axis(["p", "q"], axis=1)), [[3.0, 1.0]])
