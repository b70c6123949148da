"""Closed-form leave-one-out scores against models that are fitted without the row."""

from __future__ import annotations

import numpy as np
import pytest
from factories import ridge_problem
from sklearn.datasets import make_classification

from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.path import left_out_scores
from nysplus._ridge.rules import DEFAULT_RULES, SolverRules
from nysplus._ridge.solvers import SOLVERS
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets
from nysplus.kernels import RBF


def fit(X, y, Z, rules=DEFAULT_RULES, gamma=0.1):
    return fit_expansion(
        Blocks(X, ClassTargets(y, y.max() + 1)),
        Z,
        RBF(gamma),
        StandardMap(),
        (0.1,),
        np.random.RandomState(0),
        rules=rules,
    )


@pytest.mark.parametrize("solver", ["direct-float64", "gram-float64", "iterative-float64"])
def test_scores_of_every_solver_are_those_of_fits_without_the_row(solver):
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)
    Z = X[::15]
    model = fit(X, y, Z, SolverRules(solvers=(solver, "direct-float64")))
    assert model.solver == solver
    found = model.left_out.scores(20)
    expected = []
    for row in found.rows:
        rest = np.arange(300) != row
        expected.append(fit(X[rest], y[rest], Z).expansion(X[row : row + 1])[0])
    if solver.startswith("iterative"):  # leverages of a sketch are rough, but better than none
        without = np.abs(model.expansion(X[found.rows]) - expected).mean()
        assert np.abs(found.scores - expected).mean() < 0.5 * without
    else:
        np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_scores_of_rows_that_are_interpolated_are_finite_and_wrong():
    """A leverage of 1, or above 1 by rounding, means that the row decides on its own score."""
    Y, f = np.array([[1.0], [1.0], [1.0]]), np.array([[0.99], [0.99], [0.99]])
    scores = left_out_scores(f, Y, np.array([0.5, 1.0, 1.0 + 1e-12]))
    np.testing.assert_allclose(scores[0], 0.98)
    assert np.isfinite(scores).all()
    assert (scores[1:] < -1e7).all()


def test_rows_that_float32_sums_interpolate_are_scored_with_float64_sums(rng):
    """A narrow kernel and a small ridge: 1 − h is below the rounding errors of float32."""
    X, y = 3 * rng.randn(60, 4).astype(np.float32), rng.randint(0, 3, 60)

    def scores(solver):
        problem = ridge_problem(X, y, X[:40], RBF(1.0), alphas=(1e-7,))
        found, _ = SOLVERS[solver].solve(problem)
        return found[1].scores(60).scores

    exact = scores("direct-float64")
    np.testing.assert_allclose(scores("direct-float32"), exact, atol=1e-3 * np.abs(exact).max())


def class_means(X, y, n):
    return np.array([X[y == c].mean(axis=0) for c in range(n)])


def test_scores_without_a_row_in_its_landmark_are_those_of_fits_that_never_saw_it(rng):
    """Landmarks are means of classes of six rows: leave-one-out alone is too sure."""
    n, size = 15, 6
    y = np.repeat(np.arange(n), size)
    X = rng.randn(n, 20)[y] + rng.randn(n * size, 20)
    model = fit(X, y, class_means(X, y, n), gamma=0.02)
    rows, share = Blocks(X, ClassTargets(y, n)).gather(np.arange(len(X))), np.full(len(X), 1 / size)
    found = model.left_out.scores_of_members(rows, y, share).scores
    plain = model.left_out.scores_of_members(rows, y, 0 * share).scores
    np.testing.assert_allclose(plain, model.left_out.scores(len(X)).scores)
    expected = []
    for row in range(len(X)):
        rest = np.arange(len(X)) != row
        without = fit(X[rest], y[rest], class_means(X[rest], y[rest], n), gamma=0.02)
        expected.append(without.expansion(X[row : row + 1])[0])
    own = (np.arange(len(X)), y)
    bias, left = (plain - expected)[own].mean(), (found - expected)[own].mean()
    assert bias > 0.1
    assert abs(left) < 0.3 * bias
    assert np.abs(found - expected).mean() < 0.7 * np.abs(plain - expected).mean()
