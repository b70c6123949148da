from __future__ import annotations

import numpy as np
import pytest

from nysplus._bytes.center import center_of
from nysplus._rows.accumulators import MeanAndScatter


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
