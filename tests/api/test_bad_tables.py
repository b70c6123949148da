"""Tables that cannot be used get one clear error; odd ones have a defined result."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from factories import mixed_table

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.encoding import TableEncoder

N = 200


@pytest.fixture(scope="module")
def table():
    return mixed_table(N)


def classifier(encoder="auto", **params):
    return NystroemClassifier(20, encoder=encoder, random_state=0, **params)


@pytest.fixture(scope="module")
def model(table):
    return classifier().fit(*table)


# ---- at fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        ([1, "a"] * (N // 2), TypeError, r"'x' contains entries of several types: 1 \(int\), 'a'"),
        ([1, datetime.date(2020, 1, 1)] * (N // 2), TypeError, "'x' contains entries of several"),
        ([[1, 2]] * N, TypeError, "'x' contains entries of the type list, which is neither"),
        (np.arange(N) * 1j, TypeError, "'x' contains entries of the type complex"),
        ([b"x"] * N, TypeError, "'x' contains entries of the type bytes"),
        ([1.0, np.inf] * (N // 2), ValueError, "'x' contains infinity or a number beyond"),
        ([1.0, -np.inf] * (N // 2), ValueError, "'x' contains infinity"),
        ([10**400, 1] * (N // 2), ValueError, "'x' contains a number that exceeds the range"),
        (pd.Categorical([1, "1"] * (N // 2)), ValueError, "'x' has two levels that are written"),
    ],
)
def test_columns_that_are_refused(table, column, error, message):
    for make in (NystroemClassifier, NystroemRegressor):
        with pytest.raises(error, match=message):
            make(20, encoder="auto").fit(table[0].assign(x=column), table[1])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_that_are_refused(table, library):
    frame, y = table
    twice = pd.concat([frame, frame[["city"]]], axis=1)
    with pytest.raises(ValueError, match=r"several columns of one name: \['city'\]. Give every"):
        classifier().fit(twice, y)
    with pytest.raises(TypeError, match="string names"):
        classifier().fit(frame.rename(columns={"city": 3}), y)
    if library == "polars":
        with pytest.raises(ValueError, match="categories contains 'zip'"):
            classifier(TableEncoder(categories=["zip"])).fit(pl.from_pandas(frame), y)


def test_tables_without_rows_or_columns(table):
    frame, y = table
    with pytest.raises(ValueError, match="X has 0 rows and 6 columns"):
        classifier().fit(frame.iloc[:0], y[:0])
    with pytest.raises(ValueError, match="X has no columns"):
        classifier().fit(frame[[]], y)
    with pytest.raises(ValueError, match=r"No column of X can be used, with n_samples = 1\."):
        NystroemRegressor(encoder="auto").fit(frame.iloc[:1], [1.0])


def test_two_rows(table):
    frame, _ = table
    with pytest.warns(UserWarning, match="n_components=20 exceeds"):
        tiny = classifier().fit(frame.iloc[:2], [0, 1])
    np.testing.assert_array_equal(tiny.predict(frame.iloc[:2]), [0, 1])


@pytest.mark.parametrize("X", [np.zeros(5), np.zeros((5, 2, 2)), [[1, 2], [3]], "no such file"])
def test_what_is_no_table(X):
    with pytest.raises((ValueError, OSError)):
        classifier().fit(X, np.arange(5) % 2)


def test_texts_that_are_numbers_get_one_warning(table):
    frame, y = table
    texts = frame.assign(size=frame["size"].round(1).map(str, na_action="ignore"))
    with pytest.warns(
        UserWarning, match="'size' has numbers as texts.*pandas.to_numeric"
    ) as caught:
        classifier().fit(texts, y)
    assert len(caught) == 1
    classifier(TableEncoder(categories=["size"])).fit(texts, y)  # warnings are errors


def test_columns_left_out_get_one_warning(table):
    frame, y = table
    odd = frame.assign(id=[f"row {i}" for i in range(N)], row=range(N), note="a" * 80, gap=np.nan)
    odd["note"] += [str(i % 20) for i in range(N)]
    message = "'id' has 200 different texts.*'row' numbers the rows.*'note' is free text"
    with pytest.warns(UserWarning, match=message) as caught:
        fitted = classifier().fit(odd, y)
    assert len(caught) == 1
    np.testing.assert_array_equal(
        fitted.decision_function(odd), classifier().fit(frame, y).decision_function(frame)
    )
    # columns that are left out may be left out at predict as well
    assert fitted.predict(frame).shape == (N,)


def test_a_million_levels():
    n = 10**6
    frame = pd.DataFrame({"a": np.arange(n) % 7, "id": np.arange(n).astype(str)})
    frame["id"] = "id " + frame["id"]
    encoder = TableEncoder()
    with pytest.warns(UserWarning, match="'id' has more than 200,000 different texts in 1,000,000"):
        encoder.fit(frame)
    assert len(encoder.schema_.columns) == 1
    named = TableEncoder(categories=["id"]).fit(frame)
    assert len(named.schema_.columns[1].levels) <= 1000
    assert (named.source_columns_ == "id").sum() == 32


def test_sparse_rows_after_a_table(model):
    with pytest.raises(TypeError, match="X has sparse rows, which cannot be encoded"):
        model.predict(sp.csr_matrix(np.eye(6)))


# ---- at predict ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"size": "1.5"}, TypeError, "'size' contained numbers in training and contains texts such "
         "as '1.5' now. Convert it to numbers."),
        ({"colour": 3}, TypeError, "'colour' contained categories in training and contains numbers "
         r"now. Pass levels such as \['"),
        ({"since": "2020-01-01"}, TypeError, "'since' contained dates.*Convert it to dates"),
        ({"since": 5}, TypeError, "'since' contained dates in training and contains numbers"),
        ({"size": np.inf}, ValueError, "'size' contains infinity"),
        ({"size": 1j}, TypeError, "'size' contains entries of the type complex"),
    ],
)  # fmt: skip
def test_columns_that_have_become_another_kind(model, table, change, error, message):
    with pytest.raises(error, match=message):
        model.predict(table[0].assign(**change))


def test_columns_that_are_missing_or_there_twice(model, table):
    frame = table[0]
    with pytest.raises(ValueError, match=r"X has no columns \['city', 'since'\], which the model"):
        model.predict(frame.drop(columns=["city", "since"]))
    with pytest.raises(ValueError, match=r"several columns of one name: \['city'\]"):
        model.predict(pd.concat([frame, frame[["city"]]], axis=1))
    with pytest.raises(ValueError, match="X has no columns"):
        model.predict(frame.set_axis(range(6), axis=1))
    with pytest.raises(ValueError, match="X has 0 rows and 6 columns"):
        model.predict(frame.iloc[:0])


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("column", ["size", "colour", "city", "member", "since"])
def test_columns_of_gaps(model, table, column, gap):
    scores = model.decision_function(table[0].assign(**{column: gap}))
    assert np.isfinite(scores).all()
    none = model.decision_function(table[0].assign(**{column: None}))
    np.testing.assert_array_equal(scores, none)


def test_a_column_without_entries_in_training(table):
    frame, y = table
    empty = classifier().fit(frame.assign(size=np.nan), y)
    np.testing.assert_array_equal(
        empty.decision_function(frame), empty.decision_function(frame.assign(size="text"))
    )


def test_levels_that_are_not_texts(table):
    frame, y = table
    coded = frame.assign(colour=frame["colour"].map({"red": 1, "blue": 2.5, "green": 3}))
    named = classifier(TableEncoder(categories=["colour"])).fit(coded, y)
    assert named.predict(coded.assign(colour=7)).shape == (N,)
    declared = classifier().fit(coded.astype({"colour": "category"}), y)
    np.testing.assert_allclose(
        named.decision_function(coded),
        declared.decision_function(coded.astype({"colour": "category"})),
        atol=1e-6,
    )
    truth = classifier().fit(frame, y)
    for member in (frame["member"].astype(int), frame["member"].astype(str)):
        np.testing.assert_array_equal(
            truth.predict(frame.assign(member=member)), truth.predict(frame)
        )


def test_one_row(model, table):
    for row in range(5):
        one = model.decision_function(table[0].iloc[[row]])
        np.testing.assert_allclose(one, model.decision_function(table[0])[[row]], atol=1e-5)
