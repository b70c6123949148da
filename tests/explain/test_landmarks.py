"""Landmarks of a score, and the importance of columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.inspection import permutation_importance

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.explain import feature_importance, landmark_attribution

IRIS, SPECIES = load_iris(return_X_y=True)


def test_contributions_add_up_to_the_score():
    model = NystroemClassifier(12, selection="uniform", random_state=0).fit(IRIS, SPECIES)
    found = landmark_attribution(model, IRIS[7])
    np.testing.assert_allclose(found.score, model.decision_function(IRIS[7:8])[0], atol=1e-10)
    K = model.expansion_.kernel(IRIS[7:8], model.landmarks_)[0]
    np.testing.assert_allclose(found.contributions, K[:, None] * model.dual_coef_, atol=1e-12)
    np.testing.assert_array_equal(found.rows, model.landmark_indices_)
    largest = np.abs(found.contributions).max(axis=1)
    assert (np.diff(largest[found.order]) <= 0).all()
    np.testing.assert_array_equal(found.landmark_classes, model.dual_coef_.argmax(axis=1))
    text = str(found)
    assert text.count("\n") == 13  # a header, ten landmarks, two others, intercept and score
    assert "2 others" in text
    assert text.splitlines()[-1].split()[0] == "score"


def test_targets_of_rows_that_are_landmarks():
    model = NystroemClassifier(12, selection="uniform", random_state=0).fit(IRIS, SPECIES)
    found = landmark_attribution(model, IRIS[:1], y=SPECIES)
    np.testing.assert_array_equal(found.targets, SPECIES[model.landmark_indices_])


@pytest.mark.parametrize("metric", [None, 2])
def test_closest_rows_of_landmarks_that_are_no_rows(metric):
    y = SPECIES > 0
    model = NystroemClassifier(9, metric=metric, random_state=0).fit(IRIS, y)
    assert model.landmark_indices_ is None
    assert landmark_attribution(model, IRIS[0]).rows is None
    found = landmark_attribution(model, IRIS[0], IRIS, y)
    U = IRIS if metric is None else IRIS @ model.projection_
    distances = ((U[:, None] - model.landmarks_) ** 2).sum(axis=2)
    chosen = distances[found.rows, np.arange(9)]
    np.testing.assert_allclose(chosen, distances.min(axis=0), atol=1e-10)
    np.testing.assert_array_equal(found.targets, y[found.rows])
    assert found.output_names is None
    assert landmark_attribution(model, IRIS[0], IRIS).targets is None


def test_rows_of_tables_and_values():
    pandas = pytest.importorskip("pandas", reason="tables need pandas")
    frame = pandas.DataFrame(IRIS, columns=list("abcd"))
    model = NystroemRegressor(9, encoder="auto", random_state=0).fit(frame, IRIS[:, 0])
    found = landmark_attribution(model, frame[3:4], frame)
    np.testing.assert_allclose(found.score, model.predict(frame[3:4]), atol=1e-4)
    assert found.landmark_classes is None
    with pytest.raises(ValueError, match="3 rows, and one"):
        landmark_attribution(model, frame[:3])


def test_linear_models_have_no_landmarks(rng):
    from dataclasses import replace

    model = NystroemRegressor(3, random_state=0).fit(IRIS, IRIS[:, 0])
    h = replace(
        model.expansion_, landmarks=np.empty((0, 4)), dual_coef=np.empty((0, 1)),
        linear=np.eye(4)[:, :1],
    )  # fmt: skip
    model._adopt(replace(model._model, expansion=h))
    with pytest.raises(ValueError, match="no landmarks"):
        landmark_attribution(model, IRIS[0])
    found = feature_importance(model, IRIS, IRIS[:, 0], random_state=0)
    np.testing.assert_allclose(found.gradient, [IRIS[:, 0].var(), 0, 0, 0], atol=1e-12)


# ---- importance ----------------------------------------------------------------------------------


def test_permutations_are_those_of_scikit_learn():
    """In the mean over many permutations."""
    model = NystroemRegressor(20, random_state=0).fit(IRIS[:, :3], IRIS[:, 3])
    found = feature_importance(model, IRIS[:, :3], IRIS[:, 3], n_repeats=100, random_state=0)
    expected = permutation_importance(model, IRIS[:, :3], IRIS[:, 3], n_repeats=100, random_state=1)
    error = expected.importances_std * np.sqrt(2 / 100)
    assert (np.abs(found.permutation - expected.importances_mean) < 4 * error).all()
    low, high = found.permutation_interval.T
    assert (low < found.permutation).all()
    assert (found.permutation < high).all()


@pytest.mark.parametrize("y", [SPECIES, np.stack([SPECIES > 0, SPECIES > 1], axis=1).astype(int)])
def test_importance_of_classes_and_labels(y):
    model = NystroemClassifier(20, random_state=0).fit(IRIS, y)
    found = feature_importance(model, IRIS, y, random_state=0)
    expected = permutation_importance(model, IRIS, y, n_repeats=20, random_state=0)
    np.testing.assert_allclose(found.permutation, expected.importances_mean, atol=0.06)
    assert found.feature_names[3] == "column 3"


@pytest.mark.parametrize("metric", [None, "diagonal", 2])
def test_gradients_are_those_of_differences(metric, rng):
    X = rng.randn(80, 3) * [1.0, 5.0, 0.1] + [0.0, 100.0, 0.0]
    y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 0] / 100], axis=1)
    model = NystroemRegressor(15, metric=metric, gamma=0.05, random_state=0).fit(X, y)
    found = feature_importance(model, X, y, random_state=0)
    step, parts = 1e-5, np.empty((80, 3))
    for i in range(3):
        moved = step * np.eye(3)[i]
        slope = (model.predict(X + moved) - model.predict(X - moved)) / (2 * step)
        parts[:, i] = (slope**2).sum(axis=1) * X[:, i].var()
    np.testing.assert_allclose(found.gradient, parts.mean(axis=0), rtol=1e-3)
    half = 1.96 * parts.std(axis=0, ddof=1) / np.sqrt(80)
    np.testing.assert_allclose(found.gradient_interval[:, 1] - found.gradient, half, rtol=3e-3)


def test_kernels_without_gradients_have_permutations():
    model = NystroemRegressor(9, kernel="laplacian", random_state=0).fit(IRIS, IRIS[:, 0])
    found = feature_importance(model, IRIS, IRIS[:, 0], random_state=0)
    assert found.gradient is None
    assert found.gradient_interval is None


def test_a_category_is_one_column():
    pandas = pytest.importorskip("pandas", reason="tables need pandas")
    rng = np.random.RandomState(0)
    frame = pandas.DataFrame({"a": rng.rand(200), "kind": rng.choice(list("xyz"), 200)})
    y = (frame["kind"] == "x").to_numpy() * 1.0
    model = NystroemRegressor(20, encoder="auto", random_state=0).fit(frame, y)
    found = feature_importance(model, frame, y, random_state=0)
    assert found.feature_names == ["a", "kind"]
    assert found.permutation[1] > 10 * found.permutation[0]
    assert found.gradient[1] > 10 * found.gradient[0]


def test_rows_that_do_not_match():
    model = NystroemRegressor(5, random_state=0).fit(IRIS, IRIS[:, 0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        feature_importance(model, IRIS, IRIS[:9, 0])
    with pytest.raises(ValueError, match="two rows at least"):
        feature_importance(model, IRIS[:1], IRIS[:1, 0])
    with pytest.raises(ValueError, match="n_repeats=0"):
        feature_importance(model, IRIS, IRIS[:, 0], n_repeats=0)
