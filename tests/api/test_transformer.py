from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem as ScikitNystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from nysplus import Nystroem, StandardMap
from nysplus.landmarks import NegativeMargin


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
    pd = pytest.importorskip("pandas")
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
