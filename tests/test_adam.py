"""Adam against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus._adam import Adam


def averages(gradients, beta1, beta2):
    """Return the averages of gradients and squares without bias, as sums over all gradients."""
    age = np.arange(len(gradients))[::-1]
    first, second = beta1**age, beta2**age
    return (
        np.tensordot(first, gradients, 1) / first.sum(),
        np.tensordot(second, np.square(gradients), 1) / second.sum(),
    )


@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_steps_are_those_of_the_formula(n_steps, rng):
    gradients = rng.randn(n_steps, 4, 3)
    adam = Adam(np.zeros((4, 3)), beta1=0.5, beta2=0.9, epsilon=0.1)
    rates = np.array([1.0, 2.0, 3.0])
    for gradient in gradients:
        step = adam.step(gradient.copy(), rates)
    mean, square = averages(gradients, 0.5, 0.9)
    size = np.sqrt(square)
    expected = rates * mean / (size + 0.1 * np.sqrt(square.mean()))
    np.testing.assert_allclose(step, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_descend_in_place(dtype, rng):
    gradients, parameters = rng.randn(5, 6).astype(dtype), rng.randn(6).astype(dtype)
    adam = Adam(parameters, beta1=0.9, beta2=0.99, epsilon=1e-8)
    rates, expected = np.linspace(0.1, 0.6, 6).astype(dtype), parameters.astype(np.float64)
    for number, gradient in enumerate(gradients):
        adam.descend(parameters, gradient.copy(), rates, share=0.5)
        mean, square = averages(gradients[: number + 1].astype(np.float64), 0.9, 0.99)
        expected = expected - 0.5 * rates * mean / (np.sqrt(square) + 1e-8)
    assert parameters.dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(parameters, expected, rtol=tolerance, atol=tolerance)


def test_gradients_of_zero_move_nothing():
    step = Adam(np.zeros(3), 0.5, 0.9, 0.1).step(np.zeros(3), 1.0)
    np.testing.assert_array_equal(step, 0.0)
