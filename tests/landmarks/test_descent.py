from __future__ import annotations

import numpy as np
import pytest

from nysplus._rows.blocks import Block
from nysplus._rows.targets import ValueTargets
from nysplus.kernels import RBF, Matern
from nysplus.landmarks import descent


def rows_of(X, Y, weight=None):
    return Block(X, np.arange(len(X)), ValueTargets(Y), weight)


def error(kernel, X, Y, weight, Z, ridge):
    """Half the squared error of the best coefficients, with the ridge's own share."""
    fit = descent._solve(kernel, X, Y, weight, Z, ridge)
    penalty = ridge * np.einsum("ic,ij,jc->", fit.A, kernel(Z, Z), fit.A)
    return 0.5 * (weight @ (fit.left**2).sum(axis=1) + penalty)


@pytest.mark.parametrize(
    "kernel", [RBF(0.8), Matern(0.5, nu=1.5), Matern(0.5, nu=2.5)], ids=["rbf", "3/2", "5/2"]
)
def test_gradient_is_that_of_the_projected_error(kernel, rng):
    """At a ridge of next to nothing, where the penalty does not move with the landmarks."""
    X, Y, weight = rng.randn(60, 2), rng.randn(60, 2), rng.rand(60) + 0.5
    Z, ridge = rng.randn(5, 2), 1e-9
    fit = descent._solve(kernel, X, Y, weight, Z, ridge)
    got = descent._gradient(kernel, X, Z, weight[:, None] * fit.left, fit.A)
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
    got, evaluations = descent.moved(kernel, rows_of(X, Y), start, rng)
    assert np.abs(got - 7.3).min() < 0.05 < np.abs(start - 7.3).min()
    assert evaluations > 0
    assert start.tolist() == [[1.0], [4.0], [6.8]]


def test_the_start_stays_where_nothing_is_better(rng, monkeypatch):
    monkeypatch.setattr(descent, "_gradient", lambda kernel, X, Z, left, A: rng.randn(*Z.shape))
    X = rng.rand(500, 1)
    start = np.linspace(0, 1, 30)[:, None]
    got, _ = descent.moved(RBF(30.0), rows_of(X, np.sin(9 * X)), start, rng)
    fits = [error(RBF(30.0), X, np.sin(9 * X), np.ones(500), Z, 1e-6) for Z in (got, start)]
    assert fits[0] <= 1.05 * fits[1]


def test_constant_targets_and_repeated_rows(rng):
    X = np.repeat(rng.rand(20, 2), 10, axis=0)
    start = X[:5].copy()  # five equal landmarks
    got, _ = descent.moved(RBF(1.0), rows_of(X, np.ones((200, 1))), start, rng)
    assert np.isfinite(got).all()


def test_float32_rows_keep_their_type(rng):
    X = rng.rand(300, 2).astype(np.float32)
    got, _ = descent.moved(RBF(1.0), rows_of(X, X[:, :1].astype(float)), X[:4].copy(), rng)
    assert got.dtype == np.float32


@pytest.mark.parametrize(("n", "rows", "steps"), [(5, 400, 50), (200, 900, 25), (300, 3000, 5)])
def test_how_many_steps(n, rows, steps, rng, monkeypatch):
    calls = []
    solve = descent._solve
    monkeypatch.setattr(descent, "_solve", lambda *args: calls.append(0) or solve(*args))
    X = rng.rand(rows, 2)
    descent.moved(RBF(1.0), rows_of(X, X[:, :1]), rng.rand(n, 2), rng)
    assert len(calls) == steps + 1
