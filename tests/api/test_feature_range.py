"""Features that are very large or very small: computed correctly, or refused with one error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor

X, y = load_iris(return_X_y=True)
KERNELS = ["rbf", "matern", "laplacian", "polynomial", "sigmoid", "chi2", "linear"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e155, 1e300])
def test_features_whose_squares_float64_cannot_hold(kernel, scale):
    model = NystroemClassifier(20, kernel=kernel, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"Feature 0 has values from 4\.3e.* Scale the"):
            model.fit(X * scale, y)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("kernel", ["rbf", "matern", "laplacian", "polynomial", "sigmoid", "chi2"])
def test_widths_that_follow_the_features(kernel):
    scores = [
        NystroemClassifier(20, kernel=kernel, random_state=0).fit(X * scale, y).score(X * scale, y)
        for scale in (1.0, 1e-150, 1e-30, 1e15, 1e150)
    ]
    assert min(scores) > max(scores) - 0.02


def test_one_row_that_is_too_large():
    R = X.copy()
    R[7, 2] = -1e200
    for params in ({}, {"gamma": 1.0}, {"kernel": "linear"}, {"metric": "diagonal"}):
        with pytest.raises(ValueError, match="Feature 2 has values from -1e\\+200 to"):
            NystroemClassifier(20, **params).fit(R, y)
    with pytest.raises(ValueError, match="Feature 2 has values from -1e\\+200 to"):
        Nystroem(n_components=5).fit(R)
    with pytest.raises(ValueError, match="Feature 2 has values from -1e\\+200 to"):
        NystroemClassifier(20).fit(sp.csr_matrix(R), y)


def test_constant_features_are_not_too_small():
    for value in (0.0, 1e-200, 3.0):
        model = NystroemRegressor(3, random_state=0).fit(np.full((20, 2), value), y[:20] + 0.5)
        np.testing.assert_allclose(model.predict(np.full((1, 2), value)), [0.5])


def test_kernel_values_that_are_too_large():
    with pytest.raises(ValueError, match=r"Linear\(\) between the landmarks is 1\.23e\+202"):
        NystroemClassifier(20, kernel="linear", random_state=0).fit(X * 1e100, y)


@pytest.mark.parametrize("scale", [1e-30, 1e-16, 1e16, 1e30])
def test_features_whose_squares_float32_cannot_hold(scale):
    with pytest.raises(ValueError, match="Under a budget numbers are float32 or smaller"):
        NystroemClassifier(budget="1kB", random_state=0).fit(X * scale, y)
    model = NystroemClassifier(20, random_state=0).fit(X * scale, y)
    with pytest.raises(ValueError, match="not in the range of the types"):
        model.compress(budget="500B")


@pytest.mark.parametrize("scale", [1e-14, 1e14])
def test_budgets_do_not_depend_on_the_unit(scale):
    model = NystroemClassifier(budget="1kB", random_state=0)
    score = model.fit(X, y).score(X, y)
    assert abs(model.fit(X * scale, y).score(X * scale, y) - score) < 0.02


@pytest.mark.parametrize("kernel", ["rbf", "matern", "laplacian"])
@pytest.mark.parametrize("budget", [None, "1kB"])
def test_predictions_far_from_all_landmarks_are_intercepts(kernel, budget):
    model = NystroemRegressor(20, kernel=kernel, budget=budget, random_state=0).fit(X, y)
    far = np.array([[1e25] * 4, [1e200] * 4, [-1e300, 0.0, 0.0, 1e300]])
    np.testing.assert_allclose(model.predict(far), np.full(3, model.intercept_[0]))
