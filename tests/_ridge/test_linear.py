"""Linear functions of rows: ridge regression of values, logistic regression of classes."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from factories import as_targets, classes, labels, values, weights
from sklearn.linear_model import LogisticRegression

from nysplus._ridge.linear import LinearFitRules, LinearPath, row_losses
from nysplus._rows.blocks import Block

# Far more digits than held-out rows need.
EXACT = LinearFitRules(tolerance=1e-14, max_iterations=2000)


def _block(X, y, weight=None):
    return Block(X, np.arange(len(X)), as_targets(y), weight)


def _objective(function, rows):
    losses = row_losses(function(rows.X), rows)
    return rows.weight @ losses + 0.5 * function.alpha * (function.B**2).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_ridge_regression(weighted):
    X, Y = values(n_outputs=2)
    weight = weights(len(X)) if weighted else None
    path = LinearPath(_block(X, Y, weight))
    for function in path.functions():
        W, b = reference.ridge(X, Y, function.alpha, weight)
        np.testing.assert_allclose(function.B, W, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(function.b, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_the_objective_of_logistic_regression(n_classes, weighted):
    X, y = classes(n_classes=n_classes, noise=3.0)
    weight = weights(len(X)) if weighted else None
    rows = _block(X, y, weight)
    for function in LinearPath(rows, EXACT).functions():
        peer = LogisticRegression(C=1.0 / function.alpha, tol=1e-10, max_iter=10_000)
        peer.fit(X, y, sample_weight=weight)
        B, b = peer.coef_.T, peer.intercept_
        expected = _objective(type(function)(B, b, function.alpha), rows)
        np.testing.assert_allclose(_objective(function, rows), expected, rtol=1e-6)


def test_few_iterations_come_close_enough():
    X, y = classes(2000, noise=3.0)
    rows = _block(X.astype(np.float32), y)
    rough, exact = LinearPath(rows), LinearPath(rows, EXACT)
    for one, other in zip(rough.functions(), exact.functions(), strict=True):
        assert _objective(one, rows) <= 1.0001 * _objective(other, rows)


def test_labels_are_fitted_one_by_one():
    X, Y = labels()
    (both,) = LinearPath(_block(X, Y), EXACT).functions((1.0,))
    for k in range(3):
        (one,) = LinearPath(_block(X, Y[:, k]), EXACT).functions((1.0,))
        np.testing.assert_allclose(both.B[:, [k]], one.B, rtol=1e-3, atol=1e-4)


def test_columns_far_from_zero_and_classes_without_rows_do_no_harm():
    X, y = classes(noise=3.0)
    (near,) = LinearPath(_block(X, y), EXACT).functions((1.0,))
    (far,) = LinearPath(_block(X + 100.0, y), EXACT).functions((1.0,))
    np.testing.assert_allclose(far(X + 100.0), near(X), rtol=1e-3, atol=1e-3)
    rows = Block(X, np.arange(len(X)), as_targets(y, n_classes=4))
    (more,) = LinearPath(rows).functions((1.0,))
    assert (more(X).argmax(axis=1) < 3).all()


def test_scores_can_have_another_unit():
    X, y = classes()
    (function,) = LinearPath(_block(X, y)).functions((1.0,))
    np.testing.assert_allclose(function.in_unit(4.0)(X), function(X) / 4.0)
