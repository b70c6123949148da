"""refine= through the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

import nysplus
from nysplus import NystroemClassifier, Refinement

pytestmark = pytest.mark.slow

QUICK = Refinement(n_epochs=30, widths=(0.15,))


@pytest.fixture(scope="module")
def rows():
    """Ten features, of which two directions decide among three classes."""
    rng = np.random.RandomState(0)
    X = rng.randn(2500, 10)
    U = X @ np.linalg.qr(rng.randn(10, 2))[0]
    y = np.digitize(np.sin(2 * U[:, 0]) + U[:, 1], [-0.7, 0.7])
    return X[:1500], y[:1500], X[1500:], y[1500:]


@pytest.fixture(scope="module")
def refined(rows):
    X, y, *_ = rows
    return NystroemClassifier(20, refine=QUICK, random_state=0).fit(X, y)


def test_few_landmarks_gain_most(refined, rows):
    X, y, X_test, y_test = rows
    plain = NystroemClassifier(20, random_state=0).fit(X, y)
    assert not plain.refined_
    assert refined.refined_
    assert refined.score(X_test, y_test) > plain.score(X_test, y_test) + 0.05
    assert refined.landmark_indices_ is None
    assert refined.projection_.shape == (10, 10)
    assert refined.landmarks_.shape == (20, 10)


def test_scores_are_those_of_the_formula(refined, rows):
    X = rows[2][:50]
    distances = ((X @ refined.projection_)[:, None] - refined.landmarks_[None]) ** 2
    K = np.exp(-refined.gamma_ * distances.sum(axis=2))
    expected = K @ refined.dual_coef_ + refined.intercept_
    np.testing.assert_allclose(refined.decision_function(X), expected, atol=1e-4)


def test_probabilities_agree_and_are_calibrated(refined, rows):
    _, _, X_test, y_test = rows
    P = refined.predict_proba(X_test)
    predicted = refined.predict(X_test)
    np.testing.assert_array_equal(refined.classes_[P.argmax(axis=1)], predicted)
    assert abs(P.max(axis=1).mean() - (predicted == y_test).mean()) < 0.05


def test_saved_and_loaded(refined, rows, tmp_path):
    refined.save(tmp_path / "model")
    again = nysplus.load(tmp_path / "model")
    assert again.refined_ is True
    assert repr(again.refine) == repr(refined.refine)
    np.testing.assert_array_equal(again.predict_proba(rows[2]), refined.predict_proba(rows[2]))


def test_labels_of_noise_are_not_learned(rng):
    X, y = rng.randn(300, 4), rng.randint(0, 2, 300)
    model = NystroemClassifier(10, refine=QUICK, random_state=0).fit(X, y)
    assert not model.refined_
    plain = clone(model).set_params(refine=False).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_a_map_after_a_metric_is_one_map(rows):
    X, y, X_test, y_test = rows
    model = NystroemClassifier(15, refine=QUICK, metric="diagonal", random_state=0).fit(X, y)
    assert model.projection_.shape[0] == 10
    assert model.score(X_test, y_test) > 0.8


def test_from_disk_as_in_memory(rows, tmp_path):
    X, y, *_ = rows
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = NystroemClassifier(10, refine=QUICK, random_state=0)
    memory, disk = clone(model).fit(X, y), clone(model).fit(mapped, y)
    np.testing.assert_allclose(disk.decision_function(X), memory.decision_function(X), atol=1e-5)


def test_in_a_grid_search():
    X, y = make_moons(150, noise=0.2, random_state=0)
    short = Refinement(n_epochs=2, search=False)
    model = NystroemClassifier(8, refine=short, random_state=0)
    grid = {"refine": [False, short], "n_components": [4]}
    assert GridSearchCV(model, grid, cv=2).fit(X, y).best_score_ > 0.8
    search = GridSearchCV(model, {"refine__learning_rate": [0.01, 0.04]}, cv=2).fit(X, y)
    assert search.best_params_


def test_what_is_not_refined(rng):
    X, y = make_moons(100, random_state=0)
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as error:
        NystroemClassifier(5, refine=True).partial_fit(X, y, classes=[0, 1])
    assert "refine=True goes by all rows at once" in str(error.value.__cause__)
    with pytest.raises(AttributeError) as error:
        NystroemClassifier(budget="4kB").partial_fit(X, y, classes=[0, 1])
    assert "budget='4kB' goes by all rows at once" in str(error.value.__cause__)
    with pytest.raises(ValueError, match="refine moves landmarks along the gradient"):
        NystroemClassifier(5, kernel="laplacian", refine=True).fit(X, y)
    with pytest.raises(ValueError, match="refine='yes' is not known"):
        NystroemClassifier(5, refine="yes").fit(X, y)
    with pytest.raises(ValueError, match="refine would move them for each"):
        nysplus.landmark_curve(X, y, [5, 10], estimator=NystroemClassifier(refine=True))
