"""The distance between an expansion and a smaller one: its minimum and its gradient."""

from __future__ import annotations

import factories
import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._compression.misfit import Misfit
from nysplus.kernels import RBF, FunctionKernel, Matern
from nysplus.kernels.base import squared_distances


def misfit_of(expansion, X):
    return Misfit.of(expansion, X, np.full(len(X), 1.0 / len(X)))


def test_coefficients_are_the_best(rng):
    """The gradient of the distance by the coefficients vanishes."""
    Z, X = rng.randn(15, 3), rng.randn(40, 3)
    large = factories.expansion(Z, rng, RBF(0.4))
    misfit = misfit_of(large, X)
    points = rng.randn(6, 3)
    A = misfit.solve(points)
    K, B, C = (large.kernel(X, points), large.kernel(points, points), large.kernel(points, Z))
    left = (large(X) - large.intercept - K @ A) / len(X)
    gradient = K.T @ left - misfit.epsilon * (B @ A - C @ large.dual_coef)
    np.testing.assert_allclose(gradient, misfit.jitter * A, atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.4), Matern(0.4, nu=1.5), Matern(0.4, nu=2.5)])
def test_the_gradient_is_that_of_the_distance(rng, kernel):
    misfit = misfit_of(factories.expansion(rng.randn(15, 3), rng, kernel), rng.randn(40, 3))
    points = rng.randn(6, 3)
    _, gradient = misfit.value_and_gradient(points)
    for _ in range(5):
        direction, step = rng.randn(6, 3), 1e-5
        ahead, behind = (
            misfit.value_and_gradient(points + s * direction)[0] for s in (step, -step)
        )
        np.testing.assert_allclose(
            (gradient * direction).sum(), (ahead - behind) / 2 / step, rtol=1e-5
        )


def test_the_gradient_holds_for_sparse_rows(rng):
    X = rng.randn(40, 3)
    large = factories.expansion(rng.randn(15, 3), rng, RBF(0.4))
    points, weight = rng.randn(6, 3), np.full(40, 1 / 40)
    value, gradient = Misfit.of(large, X, weight).value_and_gradient(points)
    found, same = Misfit.of(large, sp.csr_matrix(X), weight).value_and_gradient(points)
    np.testing.assert_allclose(found, value, rtol=1e-9)
    np.testing.assert_allclose(same, gradient, rtol=1e-6, atol=1e-9)


def test_moves_come_closer(rng):
    large = factories.expansion(rng.randn(30, 3), rng, RBF(0.2))
    misfit = misfit_of(large, rng.randn(100, 3))
    start = large.landmarks[:8]
    before, after = (misfit.value_and_gradient(p)[0] for p in (start, misfit.moved(start)))
    size = float((misfit.weight @ misfit.F**2).sum())
    assert after < before - 0.01 * size


def test_moves_end_in_time(rng):
    large = factories.expansion(rng.randn(30, 3), rng, RBF(0.2))
    misfit = misfit_of(large, rng.randn(100, 3))
    start = large.landmarks[:8]
    np.testing.assert_allclose(misfit.moved(start, seconds=1e-9), start, rtol=1e-12)
    np.testing.assert_array_equal(misfit.moved(start, seconds=1e9), misfit.moved(start))


def test_landmarks_that_reproduce_the_scores_hardly_move(rng, monkeypatch):
    large = factories.expansion(rng.randn(40, 2), rng, RBF(0.3))
    misfit, calls = misfit_of(large, rng.randn(200, 2)), []
    evaluate = Misfit.value_and_gradient
    monkeypatch.setattr(
        Misfit, "value_and_gradient", lambda self, Z: calls.append(len(Z)) or evaluate(self, Z)
    )
    misfit.moved(large.landmarks[:30])
    assert 1 <= calls.count(30) < 5
    misfit.moved(large.landmarks[:5])
    assert calls.count(5) > 8


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_functions_that_turn_out_indefinite(rng, shift):
    """With a negative diagonal, and with negative eigenvalues only."""
    Z = rng.randn(30, 2)
    bad = FunctionKernel(lambda X, Z: shift - squared_distances(X, Z), vectorized=True)
    weight = np.full(2, 0.5)
    with pytest.raises(ValueError, match="needs a positive semidefinite kernel"):
        Misfit.of(factories.expansion(Z, rng, bad), Z[:2], weight).parts(Z)
