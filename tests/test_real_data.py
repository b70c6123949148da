"""The traps of real data: ill-conditioned kernels, float32 rows, integer images.

`nysplus bench speed exactness` prints the same comparison at full size for all five datasets.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference

from nysplus import NystroemClassifier
from nysplus_experiments.harness.datasets import find, load

RHO = 1e-5


@pytest.fixture(params=[("letter", 300), ("cod_rna", 100), ("usps", 300), ("ijcnn1", 500)], ids=str)
def case(request):
    name, n = request.param
    if find(name) is None:
        pytest.skip(f"{name}.npz is not at hand: set NYSPLUS_DATA to the folder that holds it")
    return load(name, public_split=name == "ijcnn1"), n


def test_objective_predictions_and_float32(case):
    split, n = case
    X, X32 = split.X_train, split.X_train.astype(np.float32)
    fit = {"selection": "uniform", "gamma": split.gamma, "alpha": RHO, "random_state": 0}
    model = NystroemClassifier(n, **fit).fit(X, split.y_train)
    Y, Z = reference.one_vs_rest(split.y_train), model.landmarks_
    T = reference.whitening(reference.rbf_matrix(Z, Z, split.gamma))
    features = reference.rbf_matrix(X, Z, split.gamma) @ T
    W, b = reference.ridge(features, Y, RHO)
    best = reference.objective(features, Y, W, b, RHO)

    A = model.dual_coef_
    residual = reference.rbf_matrix(X, Z, split.gamma) @ A + model.intercept_ - Y
    penalty = np.einsum("il,ij,jl", A, reference.rbf_matrix(Z, Z, split.gamma), A)
    assert (residual**2).sum() + RHO * penalty == pytest.approx(best, rel=1e-6)

    test = split.X_test[:20_000]
    scores = reference.rbf_matrix(test, Z, split.gamma) @ (T @ W) + b
    codes = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    assert (model.predict(test) == model.classes_[codes]).mean() > 0.9999

    single = NystroemClassifier(n, **fit).fit(X32, split.y_train)
    accuracy = model.score(split.X_test, split.y_test)
    assert single.score(split.X_test.astype(np.float32), split.y_test) == pytest.approx(
        accuracy, abs=1e-3
    )


def test_images_as_bytes_equal_images_as_floats():
    path = find("mnist")
    if path is None:
        pytest.skip("mnist.npz is not at hand: set NYSPLUS_DATA to the folder that holds it")
    with np.load(path) as data:
        X, y = data["X_train"][:3000], data["y_train"][:3000]
    assert X.dtype == np.uint8
    model = NystroemClassifier(100, random_state=0, alpha=1e-3)
    as_bytes = model.fit(X, y).decision_function(X[:500])
    as_floats = model.fit(X.astype(np.float64), y).decision_function(X[:500].astype(np.float64))
    np.testing.assert_allclose(as_bytes, as_floats, atol=1e-8)
