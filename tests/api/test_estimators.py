from __future__ import annotations

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.kernel_approximation import Nystroem as ScikitNystroem
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nysplus
from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.kernels import RBF, FunctionKernel, Matern
from nysplus.landmarks import NegativeMargin


def small(**params):
    return NystroemClassifier(**{"n_components": 30, "random_state": 0} | params)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_uniform_equals_scikit_learns_pipeline(digits, n_classes):
    X, y = digits
    X, y = X[y < n_classes], y[y < n_classes]
    peer = make_pipeline(
        ScikitNystroem(gamma=0.05, n_components=30, random_state=0), RidgeClassifier(alpha=1e-3)
    ).fit(X, y)
    model = small(gamma=0.05, alpha=1e-3, selection="uniform").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def test_linear_kernel_equals_ridge(rng):
    X, y = rng.randn(100, 5), rng.randn(100)
    model = NystroemRegressor(20, kernel="linear", alpha=0.7, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), Ridge(0.7).fit(X, y).predict(X), atol=1e-9)


def test_several_outputs_are_fitted_apart(rng):
    X, Y = rng.rand(80, 3), rng.randn(80, 2)
    model = NystroemRegressor(15, alpha=0.1, selection="uniform", random_state=0)
    both = model.fit(X, Y).predict(X)
    one = model.fit(X, Y[:, 1]).predict(X)
    assert both.shape == (80, 2)
    assert one.shape == (80,)
    np.testing.assert_allclose(both[:, 1], one, atol=1e-10)


def test_multilabel_equals_one_model_per_label():
    X, Y = make_multilabel_classification(150, 6, n_classes=3, random_state=0)
    model = small(selection="uniform", alpha=0.1).fit(X, Y)
    assert model.predict(X).shape == (150, 3)
    for label in range(3):
        single = small(selection="uniform", alpha=0.1).fit(X, Y[:, label])
        np.testing.assert_array_equal(single.predict(X), model.predict(X)[:, label])
    sparse_labels = small(selection="uniform", alpha=0.1).fit(X, sp.csr_matrix(Y))
    np.testing.assert_array_equal(sparse_labels.predict(X), model.predict(X))


@pytest.mark.parametrize("selection", ["auto", "supervised-kmeans", "support-centroids"])
def test_multilabel_with_supervised_landmarks(selection):
    X, Y = make_multilabel_classification(200, 6, n_classes=3, random_state=0)
    assert small(selection=selection).fit(X, Y).score(X, Y) > 0.4


def test_labels_of_any_kind(moons):
    X, y = moons
    for names in (["no", "yes"], [-1, 1], [True, False], [2.0, 7.0]):
        labels = np.array(names)[y]
        model = small().fit(X, labels)
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        assert (model.predict(X) == labels).mean() > 0.9


# ---- containers and types ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def counts():
    """Small non-negative integers with zeros, so that every container can hold them exactly."""
    rng = np.random.RandomState(0)
    X = rng.randint(0, 250, (150, 6)) * (rng.rand(150, 6) > 0.3)
    return X, (X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3]).astype(int)


CONTAINERS = {
    "uint8": lambda X: X.astype(np.uint8),
    "int16": lambda X: X.astype(np.int16),
    "float32": lambda X: X.astype(np.float32),
    "fortran": lambda X: np.asfortranarray(X, dtype=float),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "csr_uint8": lambda X: sp.csr_matrix(X.astype(np.uint8)),
    "csr_array": lambda X: sp.csr_array(X.astype(float)),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcdef")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcdef")),
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("selection", ["uniform", "kmeans", "negative-margin", "support-centroids"])
@pytest.mark.parametrize("container", list(CONTAINERS))
def test_container_and_type_do_not_matter(container, selection, counts):
    X, y = counts
    model = small(selection=selection, alpha=1e-3)
    expected = model.fit(X.astype(float), y).decision_function(X.astype(float))
    given = CONTAINERS[container](X)
    got = model.fit(given, y).decision_function(given)
    # k-means itself runs in float32 on float32 rows
    loose = selection != "uniform" and container == "float32"
    np.testing.assert_allclose(got, expected, atol=1e-2 if loose else 1e-5)
    if container in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == list("abcdef")


def test_bool_features_work(counts):
    X, y = counts
    assert small().fit(X > 0, y).score(X > 0, y) > 0.5


def test_sparse_landmarks_stay_sparse(counts):
    X, y = counts
    assert sp.issparse(small(selection="negative-margin").fit(sp.csr_matrix(X), y).landmarks_)


# ---- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.1, "auto"])
def test_a_weight_of_two_equals_a_repeated_row(moons, alpha):
    X, y = moons
    weight = np.random.RandomState(0).randint(0, 4, len(X))
    landmarks = X[:25]
    model = small(selection=landmarks, alpha=alpha)
    weighted = model.fit(X, y, sample_weight=weight).decision_function(X)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = model.fit(X[rows], y[rows]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)


def test_class_weight_is_a_row_weight(moons):
    X, y = moons
    by_class = small(gamma=1.0, selection=X[:25], class_weight={0: 1, 1: 5}, alpha=0.1).fit(X, y)
    by_row = small(gamma=1.0, selection=X[:25], alpha=0.1).fit(
        X, y, sample_weight=np.where(y, 5.0, 1.0)
    )
    np.testing.assert_allclose(
        by_class.decision_function(X), by_row.decision_function(X), atol=1e-9
    )


def test_balanced_classes_find_the_rare_one(rng):
    y = (rng.rand(600) < 0.08).astype(int)
    X = rng.randn(600, 2) + 1.2 * y[:, None]
    recall = {
        weight: (small(class_weight=weight).fit(X, y).predict(X)[y == 1] == 1).mean()
        for weight in (None, "balanced")
    }
    assert recall["balanced"] > recall[None] + 0.2


def test_balanced_counts_by_sample_weight(moons):
    X, y = moons
    weight = np.where(y, 3.0, 1.0)
    model = small(selection=X[:25], class_weight="balanced", alpha=0.1)
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    weighted = model.fit(X, y, sample_weight=weight).decision_function(X)
    repeated = model.fit(X[rows], y[rows]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


# ---- extremes that must work -------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["uniform", "kmeans", "negative-margin", "support-centroids"])
@pytest.mark.parametrize("gamma", [1e-12, 1e12])
@pytest.mark.filterwarnings("ignore:The model predicts 1 of the 2 classes")
def test_kernels_that_are_all_one_or_the_identity(selection, gamma, moons):
    X, y = moons
    scores = small(selection=selection, gamma=gamma).fit(X, y).decision_function(X)
    assert np.isfinite(scores).all()


def test_a_kernel_that_is_almost_one_keeps_its_digits(rng):
    """γ = 1e-6: features vary in the sixth digit only, and still fit a smooth function."""
    X = rng.rand(200, 1)
    y = 3 * X[:, 0] + 1
    model = NystroemRegressor(10, gamma=1e-6, alpha=1e-12, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)


@pytest.mark.parametrize("selection", ["uniform", "kmeans", "negative-margin", "support-centroids"])
def test_constant_features_and_repeated_rows(selection, moons):
    X, y = moons
    X = np.c_[X, np.ones((len(X), 2))]
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    assert small(selection=selection).fit(X, y).score(X, y) > 0.9


def test_all_features_constant_predicts_the_majority():
    X, y = np.ones((50, 3)), np.r_[np.zeros(30), np.ones(20)]
    assert (small().fit(X, y).predict(X) == 0).all()


def test_a_kernel_of_zeros_predicts_the_mean():
    X, y = np.zeros((20, 3)), np.arange(20.0)
    model = NystroemRegressor(5, kernel="linear", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), 9.5)


def test_rows_far_from_the_origin(moons):
    X, y = moons
    near = small(gamma=1.0, alpha=1e-3, selection="uniform").fit(X, y).decision_function(X)
    far = small(gamma=1.0, alpha=1e-3, selection="uniform").fit(X + 1e6, y)
    np.testing.assert_allclose(far.decision_function(X + 1e6), near, atol=1e-5)


# ---- parameters --------------------------------------------------------------------------------


def test_given_landmarks_are_used_as_they_are(moons):
    X, y = moons
    Z = np.array([[0.0, 0.0], [1.0, 0.5], [0.5, -0.5]])
    model = small(selection=Z).fit(X, y)
    np.testing.assert_array_equal(model.landmarks_, Z)
    assert model.landmark_indices_ is None
    assert clone(model).fit(X, y).landmarks_.shape == (3, 2)


@pytest.mark.parametrize(
    "kernel",
    ["laplacian", "matern", "poly", "sigmoid", "cosine", "linear", Matern(nu=2.5), RBF("median")],
)
def test_every_kernel_fits(kernel, digits):
    X, y = digits
    model = NystroemClassifier(100, kernel=kernel, random_state=0).fit(X[:600], y[:600])
    assert model.score(X[600:900], y[600:900]) > 0.8


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
def test_histogram_kernels_fit(kernel, digits):
    X, y = digits
    model = NystroemClassifier(100, kernel=kernel, random_state=0).fit(X[:600], y[:600])
    assert model.score(X[600:900], y[600:900]) > 0.8


def test_callable_kernels(moons):
    X, y = moons
    paper = partial(small, selection="negative-margin")
    by_rows = paper(kernel=lambda x, z: float(np.exp(-((x - z) ** 2).sum()))).fit(X[:60], y[:60])
    vectorized = FunctionKernel(RBF(gamma=1.0), vectorized=True)
    by_matrix = paper(kernel=vectorized).fit(X[:60], y[:60])
    named = paper(gamma=1.0).fit(X[:60], y[:60])
    np.testing.assert_allclose(by_rows.decision_function(X), named.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(
        by_matrix.decision_function(X), named.decision_function(X), atol=1e-6
    )
    assert by_rows.gamma_ is None
    assert named.gamma_ == 1.0


@pytest.mark.parametrize("approximation", ["standard", "randomized", "ensemble"])
def test_every_approximation_fits(approximation, digits):
    X, y = digits
    model = NystroemClassifier(150, approximation=approximation, random_state=0)
    assert model.fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.9
    assert model.dual_coef_.shape == (150, 10)


def test_grid_search_reaches_into_objects(moons):
    X, y = moons
    search = GridSearchCV(
        NystroemClassifier(20, kernel=RBF(), selection=NegativeMargin(), random_state=0),
        {"kernel__gamma": [0.1, 1.0], "selection__n_initial": [5, 20], "alpha": [1e-3, "auto"]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.8


def test_fits_in_a_pipeline_and_a_cross_validation(digits):
    X, y = digits
    model = make_pipeline(StandardScaler(), NystroemClassifier(150, random_state=0))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9


def test_metadata_routing_hands_weights_over(moons):
    X, y = moons
    weight = np.where(y, 5.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = small(alpha=0.1, selection=X[:20]).set_fit_request(sample_weight=True)
        routed = make_pipeline(model).fit(X, y, sample_weight=weight)
    direct = small(alpha=0.1, selection=X[:20]).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(routed.decision_function(X), direct.decision_function(X))


def test_pickle_clone_and_html(moons):
    X, y = moons
    model = small().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert "n_components" in model._repr_html_()
    assert not hasattr(clone(model), "expansion_")
    assert not hasattr(clone(model), "landmarks_")


def test_seeds(moons):
    X, y = moons
    same = [small(selection="uniform").fit(X, y).landmark_indices_ for _ in range(2)]
    np.testing.assert_array_equal(*same)
    other = small(selection="uniform", random_state=1).fit(X, y).landmark_indices_
    assert not np.array_equal(same[0], other)


def test_fitted_attributes_are_all_there(moons):
    X, y = moons
    model = small(selection="negative-margin").fit(X, y)
    assert model.landmarks_.shape == (30, 2)
    assert model.dual_coef_.shape == (30, 1)
    assert model.intercept_.shape == (1,)
    assert model.alpha_ > 0
    assert model.gamma_ == pytest.approx(1 / (2 * X.var()))
    np.testing.assert_array_equal(X[model.landmark_indices_], model.landmarks_)
    # two stages of (B, moments, leave-one-out) and the pass that scores all rows
    assert model.n_kernel_evaluations_ == 2 * (30 * 30 + 2 * 300 * 30) + 300 * 30


def test_margins_are_those_of_the_formula(moons):
    X, y = moons
    model = small().fit(X, y)
    K = reference.rbf_matrix(X, model.landmarks_, model.gamma_)
    np.testing.assert_allclose(
        model.decision_function(X), (K @ model.dual_coef_ + model.intercept_)[:, 0], atol=1e-6
    )


def test_n_by_n_rows_are_never_held():
    """Peak of the fit's own allocations: far below the N × n matrix (160 MB here)."""
    rng = np.random.RandomState(0)
    X, y = rng.rand(50_000, 5), rng.randint(0, 2, 50_000)
    model = NystroemClassifier(400, gamma=1.0, random_state=0)
    with sklearn.config_context(working_memory=8):
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 40e6


def test_public_names():
    assert set(nysplus.__all__) <= set(dir(nysplus))


def test_a_kernel_that_is_zero_at_its_landmark(rng, capfd):
    X, y = rng.rand(100, 5), rng.randint(0, 2, 100)
    model = NystroemClassifier(1, kernel="additive_chi2", random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    NystroemClassifier(kernel="linear", selection=np.zeros((1, 5))).fit(X, y)
    assert capfd.readouterr().err == ""
