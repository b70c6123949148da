"""The centre of features that are far from zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._bytes.center import center_of, centered
from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.blocks import Blocks
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF, Cosine, FunctionKernel, Laplacian, Matern, Polynomial


def _spread(X):
    return MeanAndScatter.of_features(X, np.ones(X.shape[0]))


def _rows(mean, deviation):
    """Return two rows with a given mean and standard deviation of each feature."""
    mean, deviation = np.array(mean), np.array(deviation)
    return np.array([mean - deviation, mean + deviation])


def test_constants_count_in_the_unit_of_the_other_features():
    assert center_of(_spread(_rows([1.0, 0.0], [0.0, 1.0]))) is None
    assert center_of(_spread(_rows([1e6, 0.0], [0.0, 1.0]))) is not None
    assert center_of(_spread(np.zeros((3, 2)))) is None
    assert center_of(_spread(np.ones((1, 2)))) is not None


def test_float64_where_float32_is_too_far_from_the_mean():
    assert center_of(_spread(_rows([1e8 + 3.0], [1.0]))).dtype == np.float64
    assert center_of(_spread(_rows([1e8 + 3.0], [4.0]))).dtype == np.float32
    found = center_of(_spread(_rows([1e60], [1e50])))
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


def test_sparse_rows_have_no_centre():
    X = sp.csr_matrix(_rows([1e6, 1e6], [1.0, 1.0]))
    assert center_of(_spread(X)) is None
    assert center_of(Blocks(X).feature_spread()) is None


@pytest.mark.parametrize("kernel", [RBF(0.5), Laplacian(0.5), Matern(0.5, 2.5)])
def test_the_function_stays_the_same(kernel, rng):
    Z, X = rng.rand(20, 3) + 1e5, rng.rand(30, 3) + 1e5
    A, b = rng.randn(20, 2), rng.randn(2)
    given = KernelExpansion(kernel, Z, A, b)
    found = centered(given)
    assert found.center is not None
    assert np.abs(found.landmarks).max() < 1.0
    np.testing.assert_allclose(found(X), given(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.given_landmarks(), Z, rtol=1e-15)
    assert found.n_bytes == given.n_bytes + 3 * 4
    assert centered(found) is found


def test_functions_that_keep_their_landmarks(rng):
    Z, A, b = rng.rand(5, 3) + 1e5, rng.randn(5, 1), np.zeros(1)
    for kernel in (Cosine(), Polynomial(0.5), FunctionKernel(np.dot)):
        given = KernelExpansion(kernel, Z, A, b)
        assert centered(given) is given
    behind_a_map = KernelExpansion(RBF(0.5), Z, A, b, np.ones(3))
    assert centered(behind_a_map) is behind_a_map


def test_float32_numbers_see_rows_minus_the_centre_in_float64(rng):
    X, Z = rng.rand(30, 3), rng.rand(10, 3)
    A, b = rng.randn(10, 1).astype(np.float32), np.zeros(1, np.float32)
    near = KernelExpansion(RBF(0.5), Z.astype(np.float32), A, b)
    far = near.with_center(np.full(3, 1e8, np.float32))
    np.testing.assert_allclose(far(X + 1e8), near(X), atol=1e-5)
    assert far.without_center()(X).tolist() == near(X).tolist()
    assert far(X + 1e8).dtype == np.float32


def center(*columns):
    X = np.array(columns, dtype=np.float64).T
    return center_of(MeanAndScatter.of_features(X, np.ones(len(X))))


SPREAD = np.array([-1.0, 1.0, -1.0, 1.0])  # of standard deviation 1


@pytest.mark.parametrize("sign", [-1, 1])
def test_features_within_32_deviations_of_zero_have_no_center(sign):
    assert center(SPREAD + sign * 31.9) is None
    found = center(SPREAD + sign * 32.1, SPREAD)
    np.testing.assert_allclose(found, [sign * 32.1, 0.0], rtol=1e-6)
    assert found.dtype == np.float32


def test_constants_are_measured_by_the_feature_that_varies_most():
    constant = np.full(4, 50.0)
    assert center(constant, 0.1 * SPREAD, 2 * SPREAD) is None
    np.testing.assert_allclose(center(constant, 0.1 * SPREAD, SPREAD), [50.0, 0.0, 0.0])
    np.testing.assert_allclose(center(constant), [50.0])
    assert center(np.zeros(4)) is None


def test_a_center_is_float64_where_float32_would_miss_the_rows():
    assert center(SPREAD + 1e6).dtype == np.float32
    found = center(1e-3 * SPREAD + 123_456_789.0)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, 123_456_789.0, rtol=1e-15)
