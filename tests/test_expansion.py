"""The fitted function: predictions, and the bytes of its numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from factories import in_few_bits, with_few_bits

from nysplus import NystroemClassifier
from nysplus._bytes.quantise import pack_expansion
from nysplus._rows.projected import project
from nysplus.expansion import KernelExpansion, PackedArray
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


# ---- the linear term -----------------------------------------------------------------------------


def _linear_expansion(rng, n=20, dtype=np.float64, **more):
    """Return a function with a linear term, of five features and three outputs."""
    Z, A = rng.randn(n, 5).astype(dtype), rng.randn(n, 3).astype(dtype)
    B, b = rng.randn(5, 3).astype(dtype), rng.randn(3).astype(dtype)
    return KernelExpansion(RBF(0.3), Z, A, b, linear=B, **more)


@pytest.mark.parametrize("n", [0, 20])
@pytest.mark.parametrize("rows", [1, 3000])
def test_the_linear_term_is_added(n, rows, rng):
    expansion, X = _linear_expansion(rng, n), rng.randn(rows, 5)
    expected = X @ expansion.linear + expansion.intercept
    if n:
        expected += reference.rbf_matrix(X, expansion.landmarks, 0.3) @ expansion.dual_coef
    np.testing.assert_allclose(expansion(X), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(expansion(sp.csr_matrix(X)), expected, rtol=1e-11, atol=1e-11)
    assert expansion.n_bytes == 8 * (n * 5 + n * 3 + 5 * 3 + 3)


def test_the_linear_term_sees_rows_before_centre_and_map(rng):
    c, P, X = rng.randn(5), rng.randn(5, 2), rng.randn(40, 5)
    Z, A, b, B = rng.randn(7, 2), rng.randn(7, 3), rng.randn(3), rng.randn(5, 3)
    expansion = KernelExpansion(RBF(0.3), Z, A, b, P, center=c, linear=B)
    expected = reference.rbf_matrix((X - c) @ P, Z, 0.3) @ A + X @ B + b
    np.testing.assert_allclose(expansion(X), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("packed", [False, True])
def test_a_centre_moves_the_whole_function(packed, rng):
    X, c = rng.randn(60, 5), rng.randn(5)
    expansion = _linear_expansion(rng)
    if packed:
        expansion = pack_expansion(expansion, "float64", X)
    moved = expansion.with_center(c)
    np.testing.assert_allclose(moved(X), expansion(X - c), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(moved.without_center()(X), expansion(X), rtol=1e-10, atol=1e-10)
    if packed:
        again = KernelExpansion.unpacked(moved.kernel, moved.packed)
        np.testing.assert_array_equal(again(X), moved(X))
    else:
        np.testing.assert_allclose(expansion.moved(c)(X), expansion(X), rtol=1e-10, atol=1e-10)


# ---- numbers in few bits -------------------------------------------------------------------------


@pytest.mark.parametrize("scale_type", [np.float32, np.float16])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("bits", range(2, 9))
def test_numbers_of_few_bits(bits, offset, scale_type, rng):
    array = 3.0 + rng.standard_normal((50, 3)) * [0.1, 1.0, 10.0]
    packed = in_few_bits(array, bits, offset=offset, scale_type=scale_type)
    assert packed.n_bytes == -(-150 * bits // 8) + 3 * (1 + offset) * np.dtype(scale_type).itemsize
    assert packed.factor is (None if offset else packed.scale)
    assert packed.type_name == f"int{bits}"
    numbers = packed.unpacked()
    assert numbers.dtype == np.float32
    expected = packed.values * packed.scale.astype(np.float32)
    if offset:
        expected = expected + packed.offset.astype(np.float32)
    np.testing.assert_array_equal(numbers, expected)
    # half a step, and the rounding of scale and offset themselves
    allowed = 0.5 * packed.scale + (1e-6 if scale_type is np.float32 else 2e-3) * np.abs(array).max(
        0
    )
    assert (np.abs(numbers - array) <= allowed).all()


def test_bits_of_a_single_axis_have_one_scale(rng):
    packed = in_few_bits(rng.standard_normal(9), 5, offset=True)
    assert packed.scale.shape == packed.offset.shape == ()
    assert packed.n_bytes == 6 + 8
    assert packed.unpacked().shape == (9,)


def test_bits_have_no_effect_on_floating_values():
    packed = PackedArray(np.ones((3, 2), np.float16), bits=3)
    assert packed.n_bytes == 12
    assert packed.type_name == "float16"


def test_an_expansion_counts_the_bits_of_each_part(rng):
    full = _linear_expansion(rng, 9)
    small = with_few_bits(full, {"landmarks": 4, "dual_coef": 3, "linear": 2}, offset=True)
    integers = -(-45 * 4 // 8) + -(-27 * 3 // 8) + -(-15 * 2 // 8)
    assert small.n_bytes == integers + 8 * (5 + 3 + 3) + 4 * 3
    again = KernelExpansion.unpacked(small.kernel, small.packed)
    X, c = rng.randn(20, 5), rng.randn(5).astype(np.float32)
    np.testing.assert_array_equal(again(X), small(X))
    moved = small.with_center(c)
    assert moved.packed.linear is small.packed.linear
    np.testing.assert_allclose(moved(X + c), small(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(moved.without_center()(X), small(X), rtol=1e-4, atol=1e-4)
