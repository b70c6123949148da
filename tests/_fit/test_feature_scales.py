"""The units of features: how far they vary, whatever the share of rows in which they do."""

from __future__ import annotations

import numpy as np

from nysplus._fit.feature_scales import feature_units


def test_the_unit_of_a_continuous_feature_is_its_deviation(rng):
    X = rng.standard_normal((2000, 3)) * [1.0, 1000.0, 0.01] + 5.0
    np.testing.assert_allclose(feature_units(X), [1.0, 1000.0, 0.01], rtol=0.1)


def test_the_unit_of_a_category_does_not_depend_on_its_frequency(rng):
    X = (rng.rand(2000, 4) < [0.02, 0.1, 0.5, 0.9]).astype(float)
    np.testing.assert_array_equal(feature_units(X), np.ones(4))


def test_features_that_hardly_vary_have_no_unit():
    X = np.zeros((1000, 4))
    X[:9, 0] = 1.0  # in fewer than one row of a hundred
    X[:10, 1] = 1.0
    X[:, 3] = 0.1 + 1e-16 * np.arange(1000)  # rounding errors of a constant
    np.testing.assert_array_equal(feature_units(X), [np.nan, 1.0, np.nan, np.nan])
