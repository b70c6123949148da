"""Estimators with a budget: models within a number of bytes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sampling import each_once
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_moons

import nysplus
from nysplus import NystroemClassifier, NystroemRegressor, Refinement, load

pytestmark = pytest.mark.slow

SHORT = Refinement(n_epochs=10, widths=(0.15,))
# For what holds however well a model is trained.
SHORTEST = Refinement(n_epochs=3, search=False)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X / 16.0).astype(np.float32), y


@pytest.mark.parametrize("refine", [False, SHORT])
@pytest.mark.parametrize(("budget", "allowed"), [("2kB", 2048), (8192, 8192)])
def test_the_model_fits(digits, budget, allowed, refine, tmp_path):
    X, y = digits
    model = NystroemClassifier(budget=budget, refine=refine, random_state=0).fit(X[:600], y[:600])
    assert 0.5 * allowed < model.model_bytes_ <= allowed
    assert model.score(X[1200:], y[1200:]) > 0.8
    path = tmp_path / "model.nys"
    model.save(path)
    loaded = load(path)
    assert loaded.model_bytes_ == model.model_bytes_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


def test_refined_models_are_better_in_the_same_bytes(digits):
    X, y = digits
    scores = {}
    for refine in (False, True):
        model = NystroemClassifier(budget=500, refine=refine, random_state=0)
        scores[refine] = model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
        assert model.refined_ is refine
    assert model.projection_.shape[0] == 64
    assert model.expansion_.packed.projection.values.dtype == np.int8
    assert scores[True] > scores[False] + 0.05


def test_a_model_that_stays_is_the_one_without_learning(digits):
    """One step of training makes no model better."""
    X, y = digits[0][:400], digits[1][:400]
    step = Refinement(n_epochs=1, batch_size=400, search=False)
    models = [
        NystroemClassifier(budget="1kB", refine=refine, random_state=0).fit(X, y)
        for refine in (False, step)
    ]
    assert not models[1].refined_
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))


def test_equal_seeds_give_equal_models(digits):
    X, y = digits
    few = Refinement(n_epochs=2, widths=(0.15,))
    first = NystroemClassifier(budget="1kB", refine=few, random_state=1).fit(X[:300], y[:300])
    second = clone(first).fit(X[:300], y[:300])
    np.testing.assert_array_equal(first.landmarks_, second.landmarks_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


def test_values_fit_as_well(rng):
    X = rng.uniform(-2, 2, (600, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    for refine in (False, SHORT):
        model = NystroemRegressor(budget="1kB", refine=refine, random_state=0).fit(X[:400], y[:400])
        assert model.model_bytes_ <= 1024
        assert model.score(X[400:], y[400:]) > 0.9


@each_once(("metric", "refine"), ["diagonal", "full", 5], [False, SHORTEST])
def test_learned_metrics_count(digits, metric, refine):
    X, y = digits
    model = NystroemClassifier(budget="8kB", metric=metric, refine=refine, random_state=0)
    model.fit(X[:600], y[:600])
    assert model.model_bytes_ <= 8192
    assert model.score(X[600:], y[600:]) > 0.7


# few landmarks of nearly empty rows
@pytest.mark.filterwarnings("ignore:The model predicts .* for none of their own training rows")
@pytest.mark.parametrize("selection", ["auto", "uniform", "kmeans", "support-centroids"])
def test_sparse_rows_fit(selection):
    """Landmarks may be longer than rows, or dense."""
    X = sp.random(500, 200, 0.02, format="csr", random_state=0)
    y = (np.asarray(X[:, :20].sum(axis=1)).ravel() > 0).astype(int)
    for more in ({}, {"metric": "diagonal"}, {"refine": SHORTEST}):
        model = NystroemClassifier(budget=5000, selection=selection, random_state=0, **more)
        model.fit(X, y)
        assert 1000 < model.model_bytes_ <= 5000


@pytest.mark.parametrize("metric", ["diagonal", "full", 4])
@pytest.mark.parametrize("refine", [False, Refinement(rank=3, n_epochs=5, search=False)])
def test_maps_with_the_units_of_features_fit(metric, refine):
    X = np.random.RandomState(1).standard_normal((400, 6))
    y = (X[:, 0] * X[:, 1] > 0) + 2 * (X[:, 2] > 0)
    X *= 10.0 ** np.array([-6, 0, 5, -3, 2, 0])
    model = NystroemClassifier(budget=800, metric=metric, refine=refine, random_state=0)
    model.fit(X[:300], y[:300])
    assert model.model_bytes_ <= 800
    assert model.score(X[300:], y[300:]) > 0.7


def test_time_that_runs_out_leaves_the_model_that_was_compared():
    X = np.random.RandomState(1).standard_normal((3000, 12))
    y = (X[:, 0] * X[:, 1] > 0) + 2 * (X[:, 2] > 0)
    scores = []
    for refine in (False, Refinement(max_seconds=1.0)):
        model = NystroemClassifier(budget="2kB", refine=refine, random_state=0)
        scores.append(model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]))
    assert scores[1] > scores[0] - 0.02


@pytest.mark.filterwarnings("ignore:The columns of X differ in spread")
def test_features_that_hardly_vary():
    rng = np.random.RandomState(1)
    y, X = rng.randint(0, 3, 150), rng.standard_normal((150, 4))
    X[:, 1] = 1.6e9 + 1e5 * X[:, 1]
    for rows in (X, np.ones((150, 4))):
        assert NystroemClassifier(budget=300, random_state=0).fit(rows, y).model_bytes_ <= 300


def test_types_that_do_not_hold_the_features_are_named():
    X, y = make_classification(100, 10, random_state=0)
    with pytest.raises(ValueError, match="not in the range of the types"):
        NystroemClassifier(budget=30, random_state=0).fit(1e6 * X, y)
    large = NystroemClassifier(60, random_state=0).fit(1e6 * X, y)
    with pytest.raises(ValueError, match="not in the range of the types"):
        large.compress(budget=30)


def test_digits_that_float32_loses_are_named(rng):
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0])
    NystroemRegressor(budget="1kB", random_state=0).fit(X, y + 100.0)
    with pytest.warns(UserWarning, match="Subtract the mean from y"):
        NystroemRegressor(budget="1kB", random_state=0).fit(X, y + 1e8)


def test_the_cost_of_a_budget_counts_its_landmarks():
    small, large = (
        NystroemClassifier(budget=budget).estimate_cost((4000, 6)) for budget in ("1kB", "64kB")
    )
    assert large.bytes > 2 * small.bytes


def test_few_rows_have_fewer_landmarks():
    X, y = make_moons(60, noise=0.1, random_state=0)
    model = NystroemClassifier(budget="1MB", random_state=0).fit(X, y)
    assert len(model.landmarks_) <= 30


@pytest.mark.parametrize("refine", [False, SHORT])
def test_features_beyond_float16_fit(rng, refine):
    """Of which some rows would make float16 the best type."""
    X = 1e6 * rng.standard_normal((400, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = NystroemClassifier(budget="1kB", refine=refine, random_state=0).fit(X[:300], y[:300])
    assert model.model_bytes_ <= 1024
    assert model.score(X[300:], y[300:]) > 0.85


def test_rows_from_a_stream_fit(digits):
    X, y = digits
    parts = [(X[i : i + 300], y[i : i + 300]) for i in range(0, 1200, 300)]
    model = NystroemClassifier(budget="2kB", refine=SHORT, random_state=0).fit(parts)
    assert model.model_bytes_ <= 2048
    assert model.score(X[1200:], y[1200:]) > 0.85


def test_labels_fit(rng):
    X = rng.standard_normal((300, 4))
    Y = (X[:, :3] > 0).astype(int)
    model = NystroemClassifier(budget="1kB", refine=SHORT, random_state=0).fit(X, Y)
    assert model.model_bytes_ <= 1024
    assert model.predict(X).shape == (300, 3)


def test_what_does_not_go_with_a_budget():
    X, y = make_classification(100, random_state=0)
    with pytest.raises(ValueError, match="budget chooses the number of landmarks"):
        NystroemClassifier(budget="4kB", selection=X[:5]).fit(X, y)
    with pytest.raises(ValueError, match="budget='4' is not a size"):
        NystroemClassifier(budget="4").fit(X, y)
    with pytest.raises(ValueError, match="budget=20 has no room for a single landmark"):
        NystroemClassifier(budget=20).fit(X, y)
    with pytest.raises(ValueError, match="budget would choose others"):
        nysplus.landmark_curve(X, y, [5, 10], estimator=NystroemClassifier(budget="4kB"))
