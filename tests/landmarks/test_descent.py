from __future__ import annotations

import numpy as np
import pytest

from nysplus._rows.blocks import Block
from nysplus._rows.targets import ValueTargets
from nysplus.kernels import RBF, Matern
from nysplus.landmarks import descent
from nysplus.landmarks.descent import DescentRules


def rows_of(X, Y, weight=None):
    return Block(X, np.arange(len(X)), ValueTargets(Y), weight)


def error(kernel, X, Y, weight, Z, ridge):
    """Half the squared error of the best coefficients, with the ridge's own share."""
    fit = descent._solve(kernel, X, Y, weight, Z, ridge)
    penalty = ridge * np.einsum("ic,ij,jc->", fit.A, kernel(Z, Z), fit.A)
    return 0.5 * (weight @ (fit.residuals**2).sum(axis=1) + penalty)


@pytest.mark.parametrize(
    "kernel", [RBF(0.8), Matern(0.5, nu=1.5), Matern(0.5, nu=2.5)], ids=["rbf", "3/2", "5/2"]
)
def test_gradient_is_that_of_the_projected_error(kernel, rng):
    """At a ridge of next to nothing, where the penalty does not move with the landmarks."""
    X, Y, weight = rng.randn(60, 2), rng.randn(60, 2), rng.rand(60) + 0.5
    Z, ridge = rng.randn(5, 2), 1e-9
    fit = descent._solve(kernel, X, Y, weight, Z, ridge)
    got = descent._gradient(kernel, X, Z, weight[:, None] * fit.residuals, fit.A)
    expected = np.empty_like(Z)
    for place in np.ndindex(Z.shape):
        step = np.zeros_like(Z)
        step[place] = 1e-5
        sides = [error(kernel, X, Y, weight, Z + sign * step, ridge) for sign in (1, -1)]
        expected[place] = (sides[0] - sides[1]) / 2e-5
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


def test_landmarks_move_to_where_the_function_is(rng):
    X = rng.rand(4000, 1) * 10
    Y = np.exp(-8 * (X - 7.3) ** 2)
    start = np.array([[1.0], [4.0], [6.8]])
    kernel = RBF(8.0)
    got, evaluations, _ = descent.moved(kernel, rows_of(X, Y), start, rng)
    assert np.abs(got - 7.3).min() < 0.05 < np.abs(start - 7.3).min()
    assert evaluations > 0
    assert start.tolist() == [[1.0], [4.0], [6.8]]


def test_the_start_stays_if_no_step_is_better(rng):
    X = rng.rand(500, 1)
    start = np.linspace(0, 1, 30)[:, None]
    wild = DescentRules(rate=100.0, few_steps_rate=100.0)  # leads away from all rows
    got, *_ = descent.moved(RBF(30.0), rows_of(X, np.sin(9 * X)), start, rng, wild)
    np.testing.assert_array_equal(got, start)


def test_constant_targets_and_repeated_rows(rng):
    X = np.repeat(rng.rand(20, 2), 10, axis=0)
    start = X[:5].copy()  # five equal landmarks
    got, *_ = descent.moved(RBF(1.0), rows_of(X, np.ones((200, 1))), start, rng)
    assert np.isfinite(got).all()


def test_float32_rows_keep_their_type(rng):
    X = rng.rand(300, 2).astype(np.float32)
    got, *_ = descent.moved(RBF(1.0), rows_of(X, X[:, :1].astype(float)), X[:4].copy(), rng)
    assert got.dtype == np.float32


@pytest.mark.parametrize(("n", "rows", "steps"), [(5, 320, 50), (200, 720, 25), (300, 2400, 5)])
def test_many_landmarks_get_few_steps(n, rows, steps):
    assert DescentRules().steps(n, rows) == steps


def test_many_landmarks_use_every_row_once_at_most():
    rules = DescentRules()
    assert rules.batch(300, 19_000) == 2000
    assert rules.steps(300, 19_000) == 19_000 // 2000
    assert rules.batch(1000, 19_000) == 4000
    assert rules.steps(1000, 19_000) == rules.min_steps


def test_kernel_evaluations_are_counted(rng):
    X, seen = rng.rand(400, 2), []

    class Counting(RBF):
        def bind(self, Z):
            bound = super().bind(Z)
            return lambda X: (seen.append(len(X) * len(Z)), bound(X))[1]

    rules = DescentRules(max_steps=5)
    _, evaluations, _ = descent.moved(
        Counting(1.0), rows_of(X, X[:, :1]), rng.rand(20, 2), rng, rules
    )
    # no slopes are taken after the last step
    assert evaluations == sum(seen) + 320 * 20
