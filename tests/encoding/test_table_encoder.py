"""The encoder as a transformer of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from factories import mixed_table
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from nysplus.encoding import TableEncoder
from nysplus.encoding.code import Lookup, OneHot
from nysplus.encoding.target_statistics import fold_of


@parametrize_with_checks(
    [
        TableEncoder(),
        TableEncoder(numbers="standard", n_bins=4, max_levels=5),
        TableEncoder(numbers="rank_gauss"),
        TableEncoder(target_statistics=True),
    ]
)
def test_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    return mixed_table()


@pytest.fixture(scope="module")
def encoder(table):
    return TableEncoder().fit(*table)


def test_code_columns_have_names_and_sources(encoder, table):
    code, names = encoder.transform(table[0]), encoder.get_feature_names_out()
    assert code.shape == (300, len(names))
    assert code.dtype == np.float32
    assert len(set(names)) == len(names)
    for name, source in zip(names, encoder.source_columns_, strict=True):
        assert name.startswith(source)
    assert list(dict.fromkeys(encoder.source_columns_)) == list(table[0].columns)
    assert {"size missing", "colour = red", "colour missing", "city = city 3"} <= set(names)
    assert "since weekday (cos)" in names
    last = table[0]["since"].max().isoformat(timespec="seconds")
    assert any(name.startswith(f"since ≤ {last[:10]}") for name in names)
    assert sum(name.startswith("income ≤ ") for name in names) == 16


def test_names_of_bins_within_a_second():
    stamps = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(40), unit="ms")
    names = TableEncoder().fit(pd.DataFrame({"t": stamps})).get_feature_names_out()
    assert len(set(names)) == len(names) > 4


def test_columns_say_what_their_names_say(encoder, table):
    frame = table[0]
    code = pd.DataFrame(encoder.transform(frame), columns=encoder.get_feature_names_out())
    np.testing.assert_array_equal(code["size missing"], frame["size"].isna())
    np.testing.assert_array_equal(code["colour = red"], frame["colour"] == "red")
    np.testing.assert_array_equal(code["colour missing"], frame["colour"].isna())
    first = next(name for name in code if name.startswith("income ≤ "))
    full = frame["income"] >= float(first.partition("≤")[2]) * 1.001
    assert (code[first][full] == code[first].max()).all()
    assert (code[first][~full] < code[first].max()).any()


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(table, encoder, library, kind):
    made = clone(encoder).set_output(transform=library)
    for output in (made.fit_transform(*table), made.transform(table[0])):
        assert isinstance(output, kind)
        assert list(output.columns) == list(encoder.get_feature_names_out())
        np.testing.assert_array_equal(output.to_numpy(), encoder.transform(table[0]))


def test_libraries_and_orders_of_columns(table, encoder):
    frame = table[0]
    expected = encoder.transform(frame)
    for X in (
        frame[frame.columns[::-1]],
        frame.assign(more="x"),
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
    ):
        np.testing.assert_array_equal(encoder.transform(X), expected)
    for X in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        other = clone(encoder).fit(X)
        assert other.code_.same(encoder.code_)
        assert other.schema_ == encoder.schema_


def test_copies(table, encoder):
    expected = encoder.transform(table[0])
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(table[0]), expected)
    params = {"numbers": "standard", "categories": ["size"], "min_level_rows": 3}
    assert clone(TableEncoder(**params)).get_params() == TableEncoder(**params).get_params()
    assert not hasattr(clone(encoder), "code_")


def test_in_pipelines(table):
    frame, y = table
    pipeline = make_pipeline(TableEncoder(), LogisticRegression())
    assert pipeline.fit(frame, y).score(frame, y) > 0.6
    numbers = make_column_transformer((TableEncoder(), ["size", "colour"]))
    assert numbers.fit_transform(frame).shape == (300, 16 + 1 + 4)
    names = numbers.get_feature_names_out()
    assert "tableencoder__colour = red" in names


def test_levels_that_are_pooled_or_not_seen_have_zeros():
    frame = pd.DataFrame({"x": ["a"] * 40 + ["b"] * 30 + ["c"] * 20 + ["d"] * 5 + [None] * 5})
    encoder = TableEncoder().fit(frame)
    names = list(encoder.get_feature_names_out())
    assert names == ["x = a", "x = b", "x = c", "x missing"]
    code = encoder.transform(pd.DataFrame({"x": ["a", "d", "new", None]}))
    np.testing.assert_array_equal(code, [[1, 0, 0, 0], [0] * 4, [0] * 4, [0, 0, 0, 1]])
    assert len(TableEncoder(min_level_rows=5).fit(frame).get_feature_names_out()) == 5
    few = TableEncoder(max_levels=2).fit(frame)
    np.testing.assert_array_equal(
        few.transform(pd.DataFrame({"x": ["b", "c", None]})), [[0, 1, 0], [0] * 3, [0, 0, 1]]
    )


def test_gaps_where_there_were_none_in_training():
    frame = pd.DataFrame({"n": [1.0, 2.0, 3.0] * 20, "c": ["a", "b", "c"] * 20})
    encoder = TableEncoder(n_bins=4).fit(frame)
    code = encoder.transform(pd.DataFrame({"n": [2.0, np.nan], "c": [None, "b"]}))
    np.testing.assert_array_equal(code[0, :-3], code[1, :-3])  # the median
    np.testing.assert_array_equal(code[:, -3:], [[0, 0, 0], [0, 1, 0]])


def test_named_categories():
    X = np.column_stack([np.arange(90) % 3, np.arange(90) % 5]).astype(float)
    for categories in ([0], [-2]):
        encoder = TableEncoder(categories=categories).fit(X)
        assert list(encoder.get_feature_names_out()[:3]) == [f"column 0 = {i}" for i in range(3)]
    assert isinstance(encoder.code_.terms[0], OneHot)
    frame = pd.DataFrame(X, columns=["zip", "n"])
    named = TableEncoder(categories=["zip"]).fit(frame)
    np.testing.assert_array_equal(named.transform(frame), encoder.transform(X))


def test_target_statistics_are_those_of_other_rows(table):
    frame, y = table
    encoder = TableEncoder(target_statistics=True)
    training = encoder.fit_transform(frame, y)
    column = list(encoder.source_columns_).index("city")
    assert isinstance(encoder.code_.terms[list(encoder.schema_.names).index("city") + 1], Lookup)
    after = encoder.transform(frame)
    assert (training[:, column] != after[:, column]).all()
    others = np.delete(np.arange(training.shape[1]), column)
    np.testing.assert_array_equal(training[:, others], after[:, others])
    # the target of a row, and of its fold, does not change its training code
    fold = fold_of(np.arange(300)) == fold_of(np.array([5]))
    changed = clone(encoder).fit_transform(frame, np.where(fold, 1 - y, y))
    np.testing.assert_array_equal(changed[fold, column], training[fold, column])
    assert (changed[~fold, column] != training[~fold, column]).any()
    # the training code of a level is about its mean target
    means = pd.Series(y).groupby(frame["city"]).mean()
    found = pd.Series(after[:, column]).groupby(frame["city"]).first()
    assert np.corrcoef(means, found)[0, 1] > 0.99


@pytest.mark.parametrize("y", ["binary", "several", "text", "values"])
def test_targets_of_statistics(table, y):
    frame, classes = table
    rng = np.random.RandomState(0)
    targets = {
        "binary": classes,
        "several": rng.randint(0, 3, 300),
        "text": np.array(["a", "b", "c"])[rng.randint(0, 3, 300)],
        "values": rng.randn(300),
    }
    encoder = TableEncoder(target_statistics=True).fit(frame, targets[y])
    expected = 3 if y in ("several", "text") else 1
    assert (encoder.source_columns_ == "city").sum() == expected
    assert len(set(encoder.get_feature_names_out())) == len(encoder.source_columns_)


def test_few_levels_have_no_statistics():
    frame = pd.DataFrame({"x": list("abcdefgh") * 10})
    encoder = TableEncoder(target_statistics=True).fit(frame, np.arange(80) % 2)
    assert isinstance(encoder.code_.terms[0], OneHot)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"numbers": "bins"}, r"numbers='bins' is not known. Allowed are \['auto', 'thermometer'"),
        ({"n_bins": 0}, "n_bins=0 must be an integer of at least 1"),
        ({"n_bins": "many"}, "n_bins='many' must be an integer"),
        ({"categories": "zip"}, r"categories='zip' must be a sequence of names .* \['zip'\]"),
        ({"categories": 3}, "categories=3 must be a sequence"),
        ({"categories": ["zip"]}, "categories contains 'zip', and X has the columns"),
        ({"target_statistics": "yes"}, "target_statistics='yes' must be True, False or 'auto'"),
        ({"min_level_rows": 0}, "min_level_rows=0 must be"),
        ({"max_levels": 2.5}, "max_levels=2.5 must be"),
    ],
)
def test_parameters(table, params, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**params).fit(*table)


def test_statistics_need_targets(table):
    with pytest.raises(ValueError, match=r"requires y to be passed.*target_statistics=False"):
        TableEncoder(target_statistics=True).fit(table[0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TableEncoder(target_statistics=True).fit(table[0], table[1][:-1])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (sp.eye_array(5).tocsr(), TypeError, "X has sparse rows, which cannot be encoded"),
        (pl.LazyFrame({"a": [1, 2]}), TypeError, r"LazyFrame that is not in memory.*collect\(\)"),
        (pd.DataFrame(), ValueError, "X has 0 rows and 0 columns. Pass at least one row"),
        (pd.DataFrame({"a": []}), ValueError, "X has 0 rows and 1 columns"),
        (pa.table({"a": []}), ValueError, "X has 0 rows and 1 columns"),
        (np.zeros((0, 2)), ValueError, r"0 sample\(s\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, r"one name: \['a'\]. Give every"),
        (np.zeros((3, 2, 2)), ValueError, "dim 3"),
        ([[1, 2], [3]], ValueError, "Expected 2D array"),
        ("rows.csv", ValueError, "Expected 2D array"),
    ],
)
def test_what_is_no_table(X, error, message):
    with pytest.raises(error, match=message):
        TableEncoder().fit(X)


def test_lists_of_rows():
    rows = [[1.5, "a"], [2.5, "b"], [3.5, None], [None, "a"]]
    encoder = TableEncoder(numbers="standard").fit(rows)
    assert [column.kind for column in encoder.schema_.columns] == ["number", "category"]
    assert encoder.transform(rows).shape == (4, 2 + 3)
