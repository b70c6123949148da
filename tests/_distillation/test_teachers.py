"""Predictions of teachers of different kinds."""

from __future__ import annotations

import factories
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC

from nysplus._distillation.teachers import teacher_of

X, CODES = factories.classes(120, 3, 3)
NAMES = np.array(["b", "c", "a"])[CODES]


class Hard:
    """A function without scores."""

    def __init__(self, function):
        self.predict = function


def test_probabilities_are_those_of_the_model():
    model = LogisticRegression().fit(X, NAMES)
    teacher = teacher_of(model, X)
    assert teacher.code.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(teacher.scores(X), model.predict_proba(X))


def test_columns_follow_sorted_classes():
    model = LogisticRegression().fit(X, NAMES)
    expected = model.predict_proba(X)
    order = [2, 0, 1]
    model.classes_ = model.classes_[order]
    model.predict_proba = lambda rows: expected[:, order]
    np.testing.assert_allclose(teacher_of(model, X).scores(X), expected)


@pytest.mark.parametrize("y", [CODES, CODES > 0], ids=["three", "two"])
def test_decisions_become_probabilities_of_the_same_classes(y):
    svc = SVC().fit(X, y)
    P = teacher_of(svc, X, y).scores(X)
    np.testing.assert_array_equal(svc.classes_[P.argmax(axis=1)], svc.predict(X))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    # errors among the classes y make the probabilities less certain
    assert P.max(axis=1).mean() < teacher_of(svc, X).scores(X).max(axis=1).mean()


def test_predictions_alone_are_certain():
    teacher = teacher_of(Hard(lambda rows: np.where(rows[:, 0] > 0, "yes", "no")), X)
    assert teacher.code.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(teacher.scores(X)[:, 1], X[:, 0] > 0)


def test_values_of_a_regressor():
    model = LinearRegression().fit(X, np.column_stack([CODES, CODES]))
    teacher = teacher_of(model, X)
    assert (teacher.code.kind, teacher.code.n_outputs) == ("values", 2)
    np.testing.assert_allclose(teacher.scores(X), model.predict(X))
    assert teacher_of(Hard(lambda rows: rows[:, 0]), X).scores(X).shape == (120, 1)


def test_given_predictions():
    pd = pytest.importorskip("pandas")
    P = LogisticRegression().fit(X, NAMES).predict_proba(X)
    teacher = teacher_of(pd.DataFrame(P[:, ::-1], columns=["c", "b", "a"]), X)
    assert teacher.code.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(teacher.scores(X), P)
    assert not teacher.scores_any_rows
    assert teacher_of(X[:, 0], X).code.kind == "values"


@pytest.mark.parametrize(
    ("model", "error", "text"),
    [
        (object(), TypeError, "cannot predict"),
        (BaseEstimator(), TypeError, "cannot predict"),
        (SVC(), NotFittedError, "SVC is not fitted. Fit it"),
        (LogisticRegression().fit(X[:, :2], CODES), ValueError, "cannot predict the first rows"),
        (SVC(decision_function_shape="ovo"), ValueError, "'ovr'"),
        (MultiOutputClassifier(Perceptron()), ValueError, "several targets"),
        (DummyClassifier(strategy="constant", constant=1), ValueError, "two or more"),
        (X[:50, 0], ValueError, "have 50 rows, and X has 120"),
    ],
    ids=["object", "no predict", "unfitted", "columns", "ovo", "several", "one class", "rows"],
)
def test_bad_teachers(model, error, text):
    rows, y = X, CODES
    if isinstance(model, SVC) and model.decision_function_shape == "ovo":
        # of three classes there are three pairs as well
        rows, y = factories.classes(120, 3, 4)
        model.fit(rows, y)
    elif isinstance(model, MultiOutputClassifier):
        model.fit(X, np.column_stack([CODES, CODES]))
    elif isinstance(model, DummyClassifier):
        model.fit(X, np.ones(120))
    with pytest.raises(error, match=text):
        teacher_of(model, rows)


@pytest.mark.parametrize(
    "P", [np.full((120, 3), 0.5), -np.eye(3)[CODES], np.full((120, 3), np.nan)]
)
def test_probabilities_are_checked(P):
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="sum of 1"):
        teacher_of(pd.DataFrame(P, columns=["a", "b", "c"]), X)
