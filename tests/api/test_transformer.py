from __future__ import annotations

import inspect
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.kernel_approximation import Nystroem as ScikitNystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from nysplus import Nystroem, StandardMap
from nysplus.landmarks import NegativeMargin, RPCholesky


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"gamma": 0.3, "n_components": 20},
        {"kernel": "poly", "degree": 2, "coef0": 0.5, "gamma": 0.1},
        {"kernel": "laplacian", "gamma": 0.1},
        {"kernel": lambda x, z, p: float(x @ z + 1) ** p, "kernel_params": {"p": 2}},
    ],
)
def test_takes_the_place_of_scikit_learns(params, rng):
    X = rng.rand(60, 4)
    params = {"n_components": 15, "random_state": 0} | params
    ours, theirs = Nystroem(**params).fit(X), ScikitNystroem(**params).fit(X)
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    np.testing.assert_array_equal(ours.components_, theirs.components_)
    features, expected = ours.transform(X), theirs.transform(X)
    np.testing.assert_allclose(features @ features.T, expected @ expected.T, atol=1e-5)


KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 0.5},
    "polynomial": {"gamma": 0.1, "degree": 2.5, "coef0": 0.5},
    "sigmoid": {"gamma": 0.1, "coef0": 0.2},
    "cosine": {},
    "linear": {},
    "chi2": {"gamma": 0.3},
    "additive_chi2": {},
}


def gram(features):
    return features @ features.T


def test_has_the_parameters_of_scikit_learns():
    theirs = inspect.signature(ScikitNystroem).parameters
    ours = inspect.signature(Nystroem).parameters
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default, name
        assert ours[name].kind == parameter.kind, name


def test_has_the_fitted_attributes_of_scikit_learns(rng):
    X = pd.DataFrame(rng.rand(30, 3), columns=list("abc"))
    theirs = ScikitNystroem(n_components=5, random_state=0).fit(X)
    ours = Nystroem(n_components=5, random_state=0).fit(X)
    for name in vars(theirs):
        if name.endswith("_"):
            assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    tags, their_tags = get_tags(ours), get_tags(theirs)
    assert tags.transformer_tags == their_tags.transformer_tags
    assert tags.input_tags == their_tags.input_tags


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.float32])
def test_every_kernel_equals_scikit_learns(kernel, form, rng):
    if form is sp.csr_matrix and "chi2" in kernel:
        pytest.skip("histograms are dense")
    X = form(rng.rand(60, 10))
    params = {"kernel": kernel, "n_components": 8, "random_state": 0, **KERNELS[kernel]}
    ours, theirs = Nystroem(**params).fit(X), ScikitNystroem(**params).fit(X)
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    atol = 1e-3 if form is np.float32 else 1e-8
    np.testing.assert_allclose(gram(ours.transform(X)), gram(theirs.transform(X)), atol=atol)
    np.testing.assert_allclose(
        gram(ours.normalization_.T),
        gram(theirs.normalization_.T),
        rtol=10 * atol,
        atol=atol * np.abs(gram(theirs.normalization_.T)).max(),
    )
    values = pairwise_kernels(
        X, ours.components_, metric=kernel, filter_params=True, **KERNELS[kernel]
    )
    np.testing.assert_allclose(ours.transform(X), values @ ours.normalization_.T, atol=atol)


@pytest.mark.parametrize("approximation", ["standard", "randomized", "ensemble", StandardMap(3)])
def test_normalization_of_every_map(approximation, rng):
    X = rng.rand(50, 4)
    model = Nystroem(n_components=10, approximation=approximation, random_state=0).fit(X)
    values = rbf_kernel(X, model.components_)
    assert model.normalization_.shape == (model.transform(X).shape[1], 10)
    np.testing.assert_allclose(model.transform(X), values @ model.normalization_.T, atol=1e-12)


# ---- kernel values that the user has computed ---------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.float32, pd.DataFrame])
@pytest.mark.parametrize(
    "selection", ["uniform", "leverage", "rpcholesky", "negative-margin", "residual"]
)
def test_precomputed_values_equal_the_kernel(selection, form, rng):
    X, new = rng.rand(60, 4), rng.rand(9, 4)
    y = (X[:, 0] > X[:, 1]).astype(int)
    params = {"n_components": 12, "selection": selection, "random_state": 0}
    named = Nystroem(gamma=2.0, **params).fit(X, y)
    values = form(rbf_kernel(X, gamma=2.0))
    given = Nystroem(kernel="precomputed", **params).fit(values, y)
    np.testing.assert_array_equal(given.component_indices_, named.component_indices_)
    np.testing.assert_array_equal(dense(given.components_), dense(values)[given.component_indices_])
    assert given.n_features_in_ == 60
    got = given.transform(form(rbf_kernel(new, X, gamma=2.0)))
    expected = named.transform(new)
    # the signs of eigenvectors are arbitrary
    atol = 1e-4 if form is np.float32 else 1e-9
    np.testing.assert_allclose(np.abs(got), np.abs(expected), atol=atol)


def dense(values):
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def test_precomputed_values_equal_scikit_learns_for_all_rows(rng):
    K = rbf_kernel(rng.rand(20, 3))
    params = {"kernel": "precomputed", "n_components": 20, "random_state": 0}
    ours, theirs = Nystroem(**params).fit(K), ScikitNystroem(**params).fit(K)
    assert sorted(ours.component_indices_) == sorted(theirs.component_indices_)
    np.testing.assert_allclose(gram(ours.transform(K)), gram(theirs.transform(K)), atol=1e-6)


def test_precomputed_values_are_cross_validated(moons):
    X, y = moons
    model = make_pipeline(
        Nystroem(kernel="precomputed", n_components=30, random_state=0), LogisticRegression(C=100)
    )
    assert cross_val_score(model, rbf_kernel(X, gamma=2.0), y).mean() > 0.9


@pytest.mark.parametrize(
    ("params", "change", "message"),
    [
        ({}, lambda K: K[:5], r"needs a square X in fit.* got shape \(5, 20\)"),
        ({}, lambda K: K + np.triu(K, 1), "needs a symmetric X in fit.* differ by"),
        ({}, lambda K: K * np.nan, "contains NaN"),
        ({"gamma": 1.0}, np.copy, "Don't pass gamma, .*kernel='precomputed': got gamma=1.0"),
        ({"degree": 2}, np.copy, "Don't pass .* got degree=2"),
        ({"selection": "kmeans"}, np.copy, "selection KMeans needs the features of rows"),
        ({"selection": np.ones((3, 1))}, np.copy, "selection GivenLandmarks needs the features"),
        ({"selection": NegativeMargin(picker="farthest")}, np.copy, "NegativeMargin needs the fe"),
        ({"selection": NegativeMargin(min_agreement=0.5)}, np.copy, "NegativeMargin needs the fe"),
        ({"selection": RPCholesky(weight=len)}, np.copy, "RPCholesky needs the features"),
        ({"n_jobs": 0}, np.copy, "n_jobs=0 must be None, a number of threads, or -1"),
        ({"n_jobs": "two"}, np.copy, "n_jobs='two' must be None, a number of threads, or -1"),
    ],
)
def test_precomputed_values_that_make_no_sense(params, change, message, rng):
    K, y = rbf_kernel(rng.rand(20, 3)), np.arange(20) % 2
    with pytest.raises(ValueError, match=message):
        Nystroem(kernel="precomputed", n_components=5, **params).fit(change(K), y)


def test_precomputed_values_with_other_training_rows(rng):
    K = rbf_kernel(rng.rand(20, 3))
    model = Nystroem(kernel="precomputed", n_components=5, random_state=0).fit(K)
    with pytest.raises(ValueError, match="X has 19 features, but Nystroem is expecting 20"):
        model.transform(K[:, :19])


def test_parameters_beside_a_function():
    with pytest.raises(ValueError, match=r"function. Put them into kernel_params: got coef0=1"):
        Nystroem(kernel=lambda x, z: float(x @ z), coef0=1).fit(np.eye(5))


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_do_not_change_the_features(n_jobs, digits):
    X, _ = digits
    with config_context(working_memory=1):  # many blocks
        one = Nystroem(gamma=0.05, n_components=50, random_state=0).fit(X)
        several = Nystroem(gamma=0.05, n_components=50, random_state=0, n_jobs=n_jobs).fit(X)
        np.testing.assert_array_equal(several.components_, one.components_)
        np.testing.assert_allclose(several.transform(X), one.transform(X), atol=1e-10)


def test_n_jobs_is_the_number_of_threads(moons):
    X, _ = moons
    seen = set()

    def kernel(x, z):
        seen.add(threading.get_ident())
        return float(x @ z)

    for n_jobs in (1, 3):
        model = Nystroem(kernel, n_components=2, random_state=0, n_jobs=n_jobs).fit(X)
        seen.clear()
        with config_context(working_memory=0.001):
            model.transform(X)
        others = seen - {threading.get_ident()}
        assert (len(others) > 0) == (n_jobs > 1)
        assert len(others) <= n_jobs


def test_labels_move_the_landmarks(moons):
    X, y = moons
    supervised = Nystroem(gamma=2.0, n_components=20, selection="negative-margin", random_state=0)
    direct = NegativeMargin()
    assert (
        supervised.fit(X, y).component_indices_.tolist()
        != Nystroem(gamma=2.0, n_components=20, random_state=0)
        .fit(X, y)
        .component_indices_.tolist()
    )
    by_object = Nystroem(gamma=2.0, n_components=20, selection=direct, random_state=0).fit(X, y)
    np.testing.assert_array_equal(by_object.component_indices_, supervised.component_indices_)


def test_auto_looks_at_what_y_is(moons, rng):
    X, y = moons
    model = Nystroem(gamma=2.0, n_components=20, selection="auto", random_state=0)
    plain = model.fit(X).components_
    assert plain.shape == (20, 2)
    by_class = model.fit(X, y).components_
    assert by_class.shape == (20, 2)
    assert not np.array_equal(by_class, plain)
    assert not np.array_equal(model.fit(X, rng.rand(len(X))).components_, by_class)


def test_supervised_selection_needs_y(moons, rng):
    X, _ = moons
    model = Nystroem(selection="negative-margin")
    with pytest.raises(ValueError, match="NegativeMargin chooses landmarks by class labels"):
        model.fit(X)
    with pytest.raises(ValueError, match="NegativeMargin chooses landmarks by class labels"):
        model.fit(X, rng.rand(len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, [0, 1])


def test_output_names_types_and_frames(moons):
    X, _ = moons
    model = Nystroem(n_components=5, random_state=0, approximation=StandardMap(rank=3)).fit(X)
    assert model.get_feature_names_out().tolist() == ["nystroem0", "nystroem1", "nystroem2"]
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    frame = model.set_output(transform="pandas").transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == (300, 3)


def test_float32_features_are_right_on_a_steep_spectrum(moons):
    X32 = moons[0].astype(np.float32)
    model = Nystroem(gamma=0.1, n_components=50, random_state=0)
    single = model.fit(X32).transform(X32)
    double = model.fit(X32.astype(np.float64)).transform(X32.astype(np.float64))
    gram, expected = (f.astype(np.float64) @ f.T.astype(np.float64) for f in (single, double))
    np.testing.assert_allclose(gram, expected, atol=1e-5)


def test_sparse_rows_give_the_same_features(rng):
    X = sp.random(80, 12, 0.3, format="csr", random_state=0)
    model = Nystroem(n_components=10, random_state=0)
    sparse = model.fit(X).transform(X)
    np.testing.assert_allclose(
        np.abs(sparse), np.abs(model.fit(X.toarray()).transform(X.toarray())), atol=1e-8
    )


def test_in_a_pipeline_with_another_model(digits):
    X, y = digits
    model = make_pipeline(
        Nystroem(gamma=0.05, n_components=100, selection="support-centroids", random_state=0),
        LogisticRegression(C=100),
    ).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.9
