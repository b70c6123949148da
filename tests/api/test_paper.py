"""Statements of the paper that can be checked on small data."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from nysplus import NystroemClassifier, NystroemRegressor


@pytest.mark.parametrize("n", [5, 20, 60])
@pytest.mark.parametrize("rho", [0.1, 1.0, 10.0])
def test_proposition_1(n, rho, moons):
    """|m − m̃| ≤ (Nκ/ρ²)‖K − K̃‖₂ for kernel ridge regression without intercept."""
    X, y = moons[0][:80], 2.0 * moons[1][:80] - 1.0
    N, kappa = len(X), 1.0
    K = reference.rbf_matrix(X, X, 2.0)
    C, B = K[:, :n], K[:n, :n]
    T = reference.whitening(B)
    approximate = (C @ T) @ (C @ T).T
    margin = y * (K @ np.linalg.solve(K + rho * np.eye(N), y))
    approximate_margin = y * (approximate @ np.linalg.solve(approximate + rho * np.eye(N), y))
    bound = N * kappa / rho**2 * np.linalg.norm(K - approximate, 2)
    assert np.abs(margin - approximate_margin).max() <= bound + 1e-9


def test_margins_improve_with_the_pilot(moons):
    """The approximate margins tend to the exact ones as n_0 grows."""
    X, y = moons
    Y = reference.one_vs_rest(y)
    A, b = reference.kernel_ridge(reference.rbf_matrix(X, X, 2.0), Y, 1.0)
    exact = reference.rbf_matrix(X, X, 2.0) @ A + b
    errors = [
        np.abs(
            NystroemClassifier(n, gamma=2.0, alpha=1.0, selection="uniform", random_state=0)
            .fit(X, y)
            .decision_function(X)
            - exact[:, 0]
        ).max()
        for n in (3, 30, 299)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("n_classes", [2, 10])
def test_model_size_is_n_times_d_plus_l_numbers(digits, n_classes):
    X, y = digits
    X, y = X[y < n_classes], y[y < n_classes]
    model = NystroemClassifier(50, alpha=1e-5, random_state=0).fit(X, y)
    outputs = 1 if n_classes == 2 else n_classes
    assert model.model_bytes_ == 8 * (50 * (64 + outputs) + outputs)


def test_nothing_of_size_n_by_n_is_kept(digits):
    model = NystroemClassifier(200, random_state=0).fit(*digits)
    sizes = [np.size(value) for value in vars(model.expansion_).values()]
    sizes += [np.size(value) for value in vars(model).values()]
    assert max(sizes) < 200 * 200


def test_all_rows_as_landmarks_is_kernel_ridge_regression(moons):
    X, y = moons
    K = reference.rbf_matrix(X, X, 2.0)
    A, b = reference.kernel_ridge(K, y[:, None].astype(float), 1e-2)
    model = NystroemRegressor(len(X), gamma=2.0, alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(model.predict(X), (K @ A + b)[:, 0], atol=1e-9)
    elsewhere = X[:50] + 0.1
    expected = (reference.rbf_matrix(elsewhere, X, 2.0) @ A + b)[:, 0]
    np.testing.assert_allclose(model.predict(elsewhere), expected, atol=1e-8)
