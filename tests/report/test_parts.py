"""Parts of a report, against slow and obvious computations."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from nysplus import NystroemClassifier, NystroemRegressor, from_svc
from nysplus.encoding.schema import TableColumn
from nysplus.explain.importance import permutation_importance
from nysplus.report.columns import column_row, date_text, entry_text
from nysplus.report.evidence import Evidence, Sample
from nysplus.report.nearest import nearest_rows
from nysplus.report.scores import accuracy, r2, row_scores
from nysplus.report.trust import trust, warning


def test_importance_is_the_mean_loss_of_permuted_columns(moons):
    X, y = moons
    model = NystroemClassifier(20, random_state=0).fit(X, y)
    score = row_scores(model._model, y)
    means, intervals = permutation_importance(score, X, 5, np.random.RandomState(0))
    rng = np.random.RandomState(0)
    for j in range(2):
        losses = np.zeros(len(y))
        for _ in range(5):
            changed = X.copy()
            changed[:, j] = X[rng.permutation(len(y)), j]
            losses += (model.predict(X) == y).astype(float) - (model.predict(changed) == y)
        losses /= 5
        half = 1.96 * losses.std(ddof=1) / np.sqrt(len(y))
        assert means[j] == pytest.approx(losses.mean())
        expected = [losses.mean() - half, losses.mean() + half]
        np.testing.assert_allclose(intervals[j], expected, rtol=1e-4)


def test_a_column_without_influence_has_no_importance():
    X = np.random.RandomState(0).randn(200, 2)
    model = NystroemRegressor(30, gamma=0.5, random_state=0).fit(X * [1, 0], np.sin(X[:, 0]))
    y = np.sin(X[:, 0])
    score = row_scores(model._model, y)
    means, _ = permutation_importance(score, X * [1, 0], 5, np.random.RandomState(0))
    assert abs(means[1]) < 1e-12
    assert means[0] > 0.5


def test_nearest_rows_have_the_largest_kernel(moons):
    X, y = moons
    model = NystroemClassifier(20, selection="uniform", gamma=1.0, random_state=0).fit(X, y)
    found = nearest_rows(model._model, X[:200], 5)
    A = model.dual_coef_
    shown = np.argsort(-np.abs(A[:, 0]), kind="stable")[:5]
    K = reference.rbf_matrix(X[:200], model.landmarks_[shown], 1.0)
    assert [each.row for each in found] == K.argmax(axis=0).tolist()
    np.testing.assert_allclose([each.similarity for each in found], K.max(axis=0), rtol=1e-4)
    assert [each.votes_for for each in found] == [str(int(a > 0)) for a in A[shown, 0]]
    assert found[0].weight == 1.0


def test_entries_of_columns():
    number, date = TableColumn(0, "n", "number"), TableColumn(1, "d", "date")
    level = TableColumn(2, "c", "category", ("red", "blue"))
    assert entry_text(number, 1234567.0) == "1,234,567"
    assert entry_text(number, 0.123456) == "0.1235"
    assert entry_text(level, 1.0) == "blue"
    assert entry_text(level, -1.0) == "rare or new level"
    assert entry_text(level, np.nan) == "missing"
    assert entry_text(date, 86400.0) == "1970-01-02"
    assert date_text(-86400.0 + 3600) == "1969-12-31 01:00"
    row = column_row(level, np.array([0.0, 0.0, 1.0, np.nan]))
    assert row == ("c", "category", "25.0 %", "red 67 %, blue 33 %")
    assert column_row(number, np.array([3.0, 1.0, 2.0]))[3] == "1 to 3, median 2"
    assert column_row(number, np.array([np.nan]))[3] == ""


def test_scores_as_texts():
    found = accuracy(np.array(["a", "b"] * 50), np.array(["a"] * 100))
    assert str(found) == "50.0 % accuracy (95 % interval 40.4 % to 59.6 %)"
    values = np.arange(10.0)
    assert r2(values, np.full(10, 4.5 + 1e-9)).value_text == "0.000"
    assert r2(values, values).short == "R² 1.000, root mean squared error 0"


def test_bars_add_up_to_the_score_of_the_predicted_class():
    X, y = load_iris(return_X_y=True)
    for labels in (y, y > 0):
        model = NystroemClassifier(20, metric=2, random_state=0).fit(X[::2], labels[::2])
        test, train = (Sample.of(model, X[i::2], labels[i::2]) for i in (1, 0))
        found = trust(Evidence(model, test, train))
        assert "They are means over random orders" in found["how"]
        for example in found["examples"]:
            row = int(example["row"]) - 1
            score = model.decision_function(test.X[row : row + 1])[0]
            own = score.max() if labels is y else abs(score)
            numbers = [float(bar["value"].replace("−", "-")) for bar in example["bars"]["rows"]]
            ends = [float(example["bars"][end].replace("−", "-")) for end in ("base", "total")]
            assert ends[1] == pytest.approx(own, rel=5e-3)
            assert ends[0] + sum(numbers) == pytest.approx(ends[1], abs=0.01)
            assert max(bar["width"] for bar in example["bars"]["rows"]) == 50


def test_many_columns_share_a_bar():
    X = np.random.RandomState(0).randn(120, 12)
    model = NystroemRegressor(30, random_state=0).fit(X[:60], X[:60].sum(axis=1))
    samples = (
        Sample.of(model, X[part], X[part].sum(axis=1)) for part in np.split(np.arange(120), 2)
    )
    train, test = samples
    bars = trust(Evidence(model, test, train))["examples"][0]["bars"]["rows"]
    assert len(bars) == 9
    assert bars[-1]["name"] == "4 other columns"


def test_models_without_sets_or_novelty_say_why():
    X, y = load_iris(return_X_y=True)
    model = from_svc(SVC(kernel="linear").fit(X[::2], y[::2]))
    evidence = Evidence(model, Sample.of(model, X[1::2], y[1::2]))
    found = trust(evidence)
    assert "has no prediction sets" in found["no_coverage"]
    assert "its kernel does not measure similarity to landmarks" in found["no_novelty"]
    assert [example["title"] for example in found["examples"]] == [
        "A certain prediction",
        "The least certain prediction",
    ]
    assert trust(Evidence(model)) is None
    model.calibrate(X, y)
    found = trust(evidence)
    assert "calibration rows" in found["source"]
    assert [row[0] for row in found["coverage"]] == ["80 %", "90 %", "95 %", "99 %"]


def test_a_coverage_below_the_confidence_is_reported():
    X, y = load_iris(return_X_y=True)
    model = NystroemClassifier(10, random_state=0).fit(X, y)
    test = Sample.of(model, X, np.roll(y, 50))
    assert "below the confidence at 80 %, 90 %, 95 %" in trust(Evidence(model, test))["too_low"]
    assert trust(Evidence(model.calibrate(X, y), Sample.of(model, X, y)))["too_low"] == ""


def test_warnings_of_unusual_rows():
    assert warning(0.99) == ""
    assert "more unusual than 99.8 % of them" in warning(0.9989)
    assert "more unusual than all of them" in warning(1.0)
