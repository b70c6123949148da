"""predict_proba, gamma="auto" and metric through the estimators, wherever the rows are."""

from __future__ import annotations

import factories
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_moons
from sklearn.metrics import log_loss

from nysplus import LearnedMetric, NystroemClassifier, NystroemRegressor


@pytest.fixture(scope="module")
def noisy():
    return make_classification(1200, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)


@pytest.mark.parametrize("selection", ["auto", "uniform", "negative-margin"])
@pytest.mark.parametrize("alpha", ["auto", 1e-2])
def test_probabilities_agree_with_predictions(selection, alpha, noisy):
    X, y = noisy
    model = NystroemClassifier(30, selection=selection, alpha=alpha, random_state=0)
    model.fit(X[:800], y[:800])
    P = model.predict_proba(X)
    assert P.shape == (1200, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P)


def test_two_classes(rng):
    X, y = make_moons(600, noise=0.4, random_state=0)
    labels = np.array(["no", "yes"])[y]
    model = NystroemClassifier(20, random_state=0).fit(X[:400], labels[:400])
    P = model.predict_proba(X)
    assert P.shape == (600, 2)
    np.testing.assert_array_equal(P[:, 1] > 0.5, model.decision_function(X) > 0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert log_loss(labels[400:], P[400:]) < 0.45


def test_multilabel(rng):
    X = rng.randn(300, 3)
    Y = (X + 0.5 * rng.randn(300, 3) > 0).astype(int)
    model = NystroemClassifier(30, random_state=0).fit(X, Y)
    P = model.predict_proba(X)
    assert P.shape == (300, 3)
    np.testing.assert_array_equal(P > 0.5, model.predict(X) == 1)


def test_probabilities_are_those_of_unseen_rows(rng):
    """Labels of noise: resubstituted scores would claim that the model knows them."""
    X, y = rng.randn(400, 3), rng.randint(0, 2, 400)
    model = NystroemClassifier(200, selection="uniform", alpha=1e-6, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.75  # learnt by heart
    fresh, truth = rng.randn(2000, 3), rng.randint(0, 2, 2000)
    assert log_loss(truth, model.predict_proba(fresh)) < 0.72  # hardly above even odds


def test_calibrated_on_digits():
    X, y = load_digits(return_X_y=True)
    model = NystroemClassifier(100, random_state=0).fit(X[:1000], y[:1000])
    P = model.predict_proba(X[1000:])
    confidence, right = P.max(axis=1), model.predict(X[1000:]) == y[1000:]
    assert abs(confidence.mean() - right.mean()) < 0.03
    assert log_loss(y[1000:], P) < 0.3


def test_class_weights_move_probabilities(rng):
    X, y = make_moons(1000, noise=0.5, random_state=0)
    weight = {0: 1.0, 1: 5.0}
    plain, weighted = (
        NystroemClassifier(20, class_weight=w, random_state=0).fit(X, y).predict_proba(X)[:, 1]
        for w in (None, weight)
    )
    assert weighted.mean() > plain.mean() + 0.1


def test_after_partial_fit_and_merge(noisy):
    X, y = noisy
    Z = X[:30]
    first = NystroemClassifier(selection=Z, alpha=0.1, gamma=0.1, random_state=0)
    first.partial_fit(X[:600], y[:600], classes=[0, 1, 2])
    other = clone(first).partial_fit(X[600:], y[600:], classes=[0, 1, 2])
    first.merge(other)
    P = first.predict_proba(X)
    np.testing.assert_array_equal(first.classes_[P.argmax(axis=1)], first.predict(X))
    whole = clone(first).fit(X, y)
    np.testing.assert_allclose(P, whole.predict_proba(X), atol=0.05)


def test_the_regressor_has_no_probabilities(noisy):
    assert not hasattr(NystroemRegressor(), "predict_proba")


# ---- the learned metric ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def irrelevant():
    """Twenty features of which two matter."""
    return factories.few_that_matter(2000, 20)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["diagonal", "full", 2, LearnedMetric("diagonal", n_rounds=1)])
def test_a_metric_finds_the_features_that_matter(metric, irrelevant):
    X, y = irrelevant
    plain = NystroemClassifier(60, gamma="auto", random_state=0).fit(X[:1500], y[:1500])
    model = NystroemClassifier(60, metric=metric, random_state=0).fit(X[:1500], y[:1500])
    assert model.score(X[1500:], y[1500:]) > plain.score(X[1500:], y[1500:]) + 0.05
    assert plain.projection_ is None
    width = 2 if metric == 2 else 20
    assert model.projection_.shape == (20, width)
    assert model.landmarks_.shape == (60, width)
    strength = np.linalg.norm(model.projection_, axis=1)
    assert {*np.argsort(-strength)[:2]} == {0, 1}
    stored = 20 if model.expansion_.projection.ndim == 1 else 20 * width
    assert model.model_bytes_ == 8 * (60 * width + 60 + 1 + stored)


def test_probabilities_and_scores_behind_a_metric(irrelevant):
    X, y = irrelevant
    model = NystroemClassifier(30, metric="diagonal", random_state=0).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(P.argmax(axis=1), model.predict(X))
    K = np.exp(
        -model.gamma_
        * ((X[:50] @ model.projection_)[:, None] - model.landmarks_[None]).__pow__(2).sum(axis=2)
    )
    expected = (K @ model.dual_coef_ + model.intercept_)[:, 0]
    np.testing.assert_allclose(model.decision_function(X[:50]), expected, atol=1e-8)


def test_partial_fit_keeps_the_metric_of_the_first_block(irrelevant):
    X, y = irrelevant
    model = NystroemClassifier(30, metric="diagonal", alpha=0.1, random_state=0)
    model.partial_fit(X[:1000], y[:1000], classes=[0, 1])
    first = model.projection_
    model.partial_fit(X[1000:], y[1000:])
    np.testing.assert_array_equal(model.projection_, first)
    other = NystroemClassifier(30, metric="diagonal", alpha=0.1, random_state=1)
    other.partial_fit(X[1000:], y[1000:], classes=[0, 1])
    with pytest.raises(ValueError, match="different landmarks or kernels"):
        model.merge(other)


@pytest.mark.slow
def test_a_metric_from_disk_is_that_in_memory(irrelevant, tmp_path):
    X, y = irrelevant
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for params in ({"metric": "diagonal"}, {"metric": 3}, {"gamma": "auto"}):
        model = NystroemClassifier(20, random_state=0, **params)
        memory, disk = clone(model).fit(X, y), clone(model).fit(mapped, y)
        assert disk.gamma_ == pytest.approx(memory.gamma_, rel=1e-12)
        np.testing.assert_allclose(
            disk.decision_function(X), memory.decision_function(X), atol=1e-6
        )


def test_sparse_rows_and_values_behind_a_metric(rng):
    X = sp.random(400, 15, density=0.4, format="csr", random_state=0)
    y = np.asarray(X[:, 0].todense()).ravel() * 3 + np.asarray(X[:, 1].todense()).ravel() ** 2
    dense = NystroemRegressor(20, metric="diagonal", random_state=0).fit(X.toarray(), y)
    sparse = NystroemRegressor(20, metric="diagonal", random_state=0).fit(X, y)
    assert dense.score(X.toarray(), y) > 0.5
    assert sparse.score(X, y) > 0.5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": "best"}, "metric='best' is not known"),
        ({"metric": 0}, "metric=0 is not known"),
        ({"metric": 21}, "metric=21 directions exceed the 20 features"),
        ({"metric": "full", "kernel": "laplacian"}, "gradients, which Laplacian"),
        ({"metric": LearnedMetric(n_rounds=9)}, "n_rounds=9 is more than 5"),
    ],
)
def test_bad_metrics(params, message, irrelevant):
    with pytest.raises(ValueError, match=message):
        NystroemClassifier(5, **params).fit(*irrelevant)
