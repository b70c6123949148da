"""kernel="auto": the code of a table, the kernel and its width are chosen inside the fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import nysplus
from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.kernels import RBF, Laplacian


def _boxes(n_rows=1500, seed=0):
    """Return rows and classes that are bounded by thresholds of single columns."""
    X = np.random.RandomState(seed).rand(n_rows, 4)
    return X, ((X[:, 0] > 0.6) ^ (X[:, 1] > 0.3)).astype(int)


def _waves(n_rows=1500, seed=0):
    X = np.random.RandomState(seed).randn(n_rows, 4)
    return X, np.sin(X @ [1.0, -1.0, 0.5, 0.0])


def test_without_an_encoder_kernels_are_compared():
    X, y = _waves()
    model = NystroemRegressor(100, kernel="auto", random_state=0).fit(X, y)
    assert isinstance(model.expansion_.kernel, RBF)
    assert model.score(X, y) > 0.95
    steps = NystroemRegressor(100, kernel="auto", random_state=0).fit(X, np.sign(X[:, 0] * X[:, 1]))
    assert isinstance(steps.expansion_.kernel, Laplacian)


@pytest.mark.parametrize("encoder", [None, "auto"])
def test_it_is_a_parameter_like_others(encoder, tmp_path):
    X, y = _boxes()
    model = NystroemClassifier(60, kernel="auto", encoder=encoder, random_state=0)
    model = clone(model).fit(X, y)
    assert model.score(*_boxes(seed=1)) > 0.93
    model.save(tmp_path / "model")
    again = nysplus.load(tmp_path / "model")
    assert again.kernel == "auto"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_learned_landmarks_have_a_kernel_with_gradients():
    X, y = _boxes(400)
    for params in ({"refine": True}, {"metric": "diagonal"}):
        model = NystroemClassifier(20, kernel="auto", random_state=0, **params).fit(X, y)
        assert isinstance(model.expansion_.kernel, RBF)


def test_sparse_rows():
    X, y = _boxes(500)
    X[X < 0.3] = 0.0
    model = NystroemClassifier(30, kernel="auto", random_state=0).fit(sp.csr_matrix(X), y)
    assert model.score(sp.csr_matrix(X), y) > 0.85


def test_a_width_beside_it_is_refused():
    with pytest.raises(ValueError, match=r"gamma=0\.5 has no effect beside kernel='auto'"):
        NystroemClassifier(kernel="auto", gamma=0.5).fit(*_boxes(50))


def test_partial_fit_takes_it():
    X, y = _boxes()
    model = NystroemClassifier(30, kernel="auto", encoder="auto", random_state=0)
    for part in np.split(np.arange(1500), 3):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert model.score(X, y) > 0.9
