"""The fitted function: predictions, and the bytes of its numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from nysplus import NystroemClassifier
from nysplus._rows.projected import project
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF


class Watched(RBF):
    """Notes the number of rows of each block."""

    def bind(self, Z):
        bound = super().bind(Z)
        return lambda X: (self.blocks.append(len(X)), bound(X))[1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 100, 3000])
def test_predictions_are_those_of_the_formula(rows, dtype, rng):
    X, Z = rng.rand(rows, 5).astype(dtype), rng.rand(40, 5).astype(dtype)
    A, b = rng.randn(40, 3).astype(dtype), rng.randn(3).astype(dtype)
    expansion = KernelExpansion(RBF(2.0), Z, A, b)
    expected = reference.rbf_matrix(X, Z, 2.0) @ A.astype(np.float64) + b
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    scores = expansion(X)
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=10 * tolerance)
    kernel = Watched(2.0)
    kernel.blocks = []
    cut = KernelExpansion(kernel, Z, A, b)(X, block_rows=17)
    np.testing.assert_allclose(cut, expected, rtol=tolerance, atol=10 * tolerance)
    assert max(kernel.blocks) <= 17
    assert sum(kernel.blocks) == rows


def test_predictions_of_sparse_rows_are_those_of_dense_ones(rng):
    X = sp.random(500, 10, 0.3, format="csr", random_state=0)
    A, b = rng.randn(20, 2), rng.randn(2)
    dense = KernelExpansion(RBF(0.7), X[:20].toarray(), A, b)(X.toarray())
    for Z in (X[:20], X[:20].toarray()):
        np.testing.assert_allclose(KernelExpansion(RBF(0.7), Z, A, b)(X), dense, rtol=1e-12)


def test_predicting_does_not_make_a_model_larger(moons):
    X, y = moons
    model = NystroemClassifier(30, gamma=1.0, alpha=1.0, random_state=0).fit(X, y)
    fresh = pickle.dumps(model)
    scores = model.decision_function(X)
    assert "_columns" in model.expansion_.__dict__  # what prediction computes once is kept
    used = pickle.dumps(model)
    assert len(used) == len(fresh)
    again = pickle.loads(used)
    assert "_columns" not in again.expansion_.__dict__
    np.testing.assert_array_equal(again.decision_function(X), scores)
    assert model.model_bytes_ == 8 * (30 * 2 + 30 + 1)


def test_sparse_landmarks_count_their_three_arrays():
    Z = sp.csr_matrix(np.eye(5))
    expansion = KernelExpansion(RBF(1.0), Z, np.ones((5, 1)), np.zeros(1))
    assert expansion.n_bytes == 5 * 8 + (5 + 6) * Z.indices.itemsize + 5 * 8 + 8


@pytest.mark.parametrize("shape", [None, (4,), (4, 2), (4, 4)])
def test_origins_are_mapped_to_the_landmarks(shape, rng):
    P = None if shape is None else rng.randn(*shape)
    Z = rng.randn(6, 2 if shape == (4, 2) else 4)
    origins = KernelExpansion(RBF(1.0), Z, np.ones((6, 1)), np.zeros(1), P).origins()
    assert origins.shape == (6, 4)
    np.testing.assert_allclose(project(origins, P), Z)


def test_origins_of_features_without_weight_are_zero(rng):
    P, Z = np.array([2.0, 0.0, -0.5]), rng.randn(5, 3)
    origins = KernelExpansion(RBF(1.0), Z, np.ones((5, 1)), np.zeros(1), P).origins()
    np.testing.assert_allclose(origins, np.c_[Z[:, 0] / 2, np.zeros(5), -2 * Z[:, 2]])
