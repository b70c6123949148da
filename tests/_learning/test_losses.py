"""Losses of probabilities, and of classes."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus._learning.losses import Softmax, SoftSoftmax, loss_of
from nysplus._rows.taught_targets import TaughtClasses


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["classes", "two"])
def test_certain_probabilities_have_the_loss_of_classes(kind, smoothing, targets_of, rng):
    hard = targets_of(kind, 20)
    own, P = np.arange(20), np.eye(hard.n_classes)[hard.codes]
    soft = TaughtClasses(hard.codes, hard.n_classes, P, np.column_stack([own, own]))
    first, second = loss_of(hard, np.float64), loss_of(soft, np.float64)
    F, weight = 3.0 * rng.standard_normal((20, hard.n_outputs)), rng.rand(20)
    np.testing.assert_allclose(first.losses(F, smoothing), second.losses(F, smoothing), rtol=1e-12)
    np.testing.assert_allclose(
        first.slopes(F.copy(), smoothing), second.slopes(F.copy(), smoothing), atol=1e-12
    )
    Y = hard.coded()
    np.testing.assert_array_equal(first.intercept(Y, weight), second.intercept(Y, weight))
    D = rng.rand(20, 4)
    np.testing.assert_array_equal(first.first_coefficients(Y, D), second.first_coefficients(Y, D))


def test_loss_of_probabilities_is_the_mean_loss_of_drawn_classes(rng):
    P, F = rng.dirichlet(np.ones(3), 10), rng.standard_normal((10, 3))
    mean = sum(P[:, c] * Softmax(np.full(10, c), 3).losses(F, 0.1) for c in range(3))
    np.testing.assert_allclose(SoftSoftmax(P).losses(F, 0.1), mean, rtol=1e-12)


def test_slopes_vanish_at_the_probabilities(rng):
    P = rng.dirichlet(np.ones(3), 10)
    np.testing.assert_allclose(SoftSoftmax(P).slopes(np.log(P), 0.0), 0.0, atol=1e-12)
