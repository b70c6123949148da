"""Fits of given landmarks: the minimum of the objective, the choice of α, and float32 rows."""

from __future__ import annotations

from dataclasses import replace

import factories
import numpy as np
import pytest
import reference
from sklearn import config_context
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from nysplus import NystroemRegressor
from nysplus._ridge.feature_map import EnsembleMap, RandomizedMap, StandardMap
from nysplus._ridge.fit import fit_expansion, in_float32
from nysplus._ridge.rules import DEFAULT_RULES, SolverRules
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF


def fit(
    X,
    targets,
    Z,
    gamma=1.0,
    alphas=(1e-5,),
    approximation=None,
    rules=DEFAULT_RULES,
    unused=None,
    **weights,
):
    return fit_expansion(
        Blocks(X, targets, **weights),
        Z,
        RBF(gamma),
        approximation or StandardMap(),
        alphas,
        np.random.RandomState(0),
        rules=rules,
        unused=unused,
    )


def assert_reaches(value, best, deficient):
    """The objective is at its minimum, or below it where rounding decides what landmarks span.

    Which of the directions of a rank-deficient kernel matrix count is then a matter of the
    factorisation: one that keeps more of them than the reference may reach a lower objective.
    """
    assert value <= best * (1 + 1e-6)
    if not deficient:
        assert value >= best * (1 - 1e-6)


def objective(X, Y, fitted, gamma, alpha):
    """Value of the training problem at a fitted expansion: ‖KA + b − Y‖² + α tr AᵀBA."""
    Z = np.asarray(fitted.landmarks, dtype=np.float64)
    A = fitted.dual_coef.astype(np.float64)
    residual = reference.rbf_matrix(X, Z, gamma) @ A + fitted.intercept - Y
    return (residual**2).sum() + alpha * np.einsum(
        "il,ij,jl", A, reference.rbf_matrix(Z, Z, gamma), A
    )


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("alpha", [1e-7, 1e-5, 1e-1])
def test_objective_equals_dense_reference(gamma, alpha, rng):
    X, Y = rng.rand(300, 5), rng.randn(300, 2)
    Z = X[:60]
    fitted = fit(X, ValueTargets(Y), Z, gamma, (alpha,)).expansion
    features = reference.rbf_matrix(X, Z, gamma) @ reference.whitening(
        reference.rbf_matrix(Z, Z, gamma)
    )
    W, b = reference.ridge(features, Y, alpha)
    best = reference.objective(features, Y, W, b, alpha)
    deficient = features.shape[1] < 60
    assert deficient == (gamma == 1e-3)
    assert_reaches(objective(X, Y, fitted, gamma, alpha), best, deficient)
    if not (deficient and alpha < 1e-6):
        np.testing.assert_allclose(fitted(X), features @ W + b, atol=2e-4)


@pytest.mark.parametrize(
    "approximation", [StandardMap(10), RandomizedMap(), EnsembleMap()], ids=repr
)
def test_every_map_collapses_to_landmarks_and_coefficients(approximation, rng):
    X, Y = rng.rand(100, 3), rng.randn(100, 2)
    fitted = fit(X, ValueTargets(Y), X[:20], approximation=approximation).expansion
    assert fitted.dual_coef.shape == (20, 2)
    assert fitted.n_bytes == 8 * (20 * 3 + 20 * 2 + 2)
    features = approximation.build(RBF(1.0), X[:20], np.random.RandomState(0)).features()(X)
    W, b = reference.ridge(features, Y, 1e-5)
    np.testing.assert_allclose(fitted(X), features @ W + b, atol=1e-6)


@pytest.mark.parametrize("memory", [0.001, 0.02, 1024])
def test_block_size_changes_nothing(memory, rng):
    X, y = rng.rand(200, 4), rng.randint(0, 3, 200)
    alphas = (1e-4, 1e-2, 1.0)
    whole = fit(X, ClassTargets(y, 3), X[:30], alphas=alphas)
    with config_context(working_memory=memory):
        cut = fit(X, ClassTargets(y, 3), X[:30], alphas=alphas)
        np.testing.assert_allclose(cut.expansion(X), whole.expansion(X), rtol=1e-8, atol=1e-10)
    assert cut.alpha == whole.alpha


def test_alpha_of_classes_is_chosen_by_literal_leave_one_out(rng):
    y = rng.randint(0, 2, 80)
    X = rng.randn(80, 2) + 1.2 * y[:, None]
    alphas = (1e-6, 1e-3, 1e-1, 10.0, 1e4)
    features = StandardMap().build(RBF(1.0), X[:40], rng).features()(X)
    Y = reference.one_vs_rest(y)
    accuracy = np.array(
        [((reference.leave_one_out(features, Y, a) > 0)[:, 0] == y).mean() for a in alphas]
    )
    slack = 0.25 * np.sqrt(accuracy.max() * (1 - accuracy.max()) / 80)
    expected = max(
        a for a, got in zip(alphas, accuracy, strict=True) if got >= accuracy.max() - slack
    )
    assert len(set(accuracy)) > 1
    assert fit(X, ClassTargets(y, 2), X[:40], alphas=alphas).alpha == expected


def test_alpha_of_values_is_chosen_by_gcv(rng):
    X = rng.rand(150, 1)
    noisy = np.sin(6 * X) + rng.randn(150, 1)
    clean = np.sin(6 * X)
    alphas = (1e-8, 1e-4, 1.0, 10.0)
    assert fit(X, ValueTargets(noisy), X[:50], 50.0, alphas).alpha >= 1.0
    assert fit(X, ValueTargets(clean), X[:50], 50.0, alphas).alpha <= 1e-4


@pytest.mark.parametrize("class_weight", [None, np.array([1.0, 3.0])])
def test_weights_equal_repeated_rows_even_in_the_choice_of_alpha(class_weight, rng):
    y = rng.randint(0, 2, 90)
    X = rng.randn(90, 2) + y[:, None]
    weight = rng.randint(0, 4, 90)
    rows = np.repeat(np.arange(90), weight)
    factors = None if class_weight is None else class_weight[y]
    alphas = tuple(10.0 ** np.arange(-6, 4))
    weighted = fit(
        X,
        ClassTargets(y, 2),
        X[:30],
        alphas=alphas,
        sample_weight=weight.astype(float),
        class_weight=factors,
    )
    repeated = fit(
        X[rows],
        ClassTargets(y[rows], 2),
        X[:30],
        alphas=alphas,
        class_weight=None if factors is None else factors[rows],
    )
    assert weighted.alpha == repeated.alpha
    np.testing.assert_allclose(weighted.expansion(X), repeated.expansion(X), atol=1e-8)


# ---- precision ---------------------------------------------------------------------------------


def test_float32_rows_on_a_flat_spectrum_stay_float32_and_exact(rng):
    X32 = rng.rand(2000, 4).astype(np.float32)
    X, y = X32.astype(np.float64), rng.randint(0, 3, 2000)
    Z = X32[:100]
    single = fit(X32, ClassTargets(y, 3), Z, 50.0).expansion
    double = fit(X, ClassTargets(y, 3), Z.astype(np.float64), 50.0).expansion
    assert single.dual_coef.dtype == np.float32
    Y = reference.one_vs_rest(y)
    assert objective(X, Y, single, 50.0, 1e-5) == pytest.approx(
        objective(X, Y, double, 50.0, 1e-5), rel=1e-6
    )
    np.testing.assert_allclose(single(X32), double(X), atol=1e-4)


def test_float32_rows_on_a_steep_spectrum_are_fitted_in_float64(rng):
    X32 = rng.rand(2000, 3).astype(np.float32)
    X, y = X32.astype(np.float64), rng.randint(0, 2, 2000)
    Z = X32[:200]
    single = fit(X32, ClassTargets(y, 2), Z, 0.5).expansion
    double = fit(X, ClassTargets(y, 2), Z.astype(np.float64), 0.5).expansion
    assert single.landmarks.dtype == np.float32  # float32 rows are float32 numbers
    assert single.dual_coef.dtype == np.float64
    np.testing.assert_allclose(single(X32), double(X), rtol=1e-6, atol=1e-8)


def test_float32_sums_under_a_narrow_kernel_are_corrected_in_float64(rng):
    """A flat spectrum, but distances whose rounding the exponential makes visible."""
    X32 = (100 * rng.randn(300, 10)).astype(np.float32)
    X, y = X32.astype(np.float64), rng.randint(0, 2, 300)
    Z = X32[:100]
    single = fit(X32, ClassTargets(y, 2), Z, 0.01, (1e-3,))
    double = fit(X, ClassTargets(y, 2), Z.astype(np.float64), 0.01, (1e-3,)).expansion
    assert single.solver == "direct-float32"
    # K(Z, Z), a pass in float32, and at least one in float64
    assert single.n_kernel_evaluations >= 100 * (100 + 2 * 300)
    np.testing.assert_allclose(single.expansion(X32), double(X), atol=1e-3)


def test_float32_storage_takes_the_size_of_the_kernel_into_account(rng):
    """Values of 1e9 times small coefficients: it is their product that must be right."""
    X = rng.randn(700, 7).astype(np.float32)
    y = np.sin(X[:, 0].astype(np.float64))
    single, double = (
        NystroemRegressor(
            250, kernel="polynomial", gamma=300.0, alpha=24.0, selection="uniform", random_state=0
        ).fit(rows, y)
        for rows in (X, X.astype(np.float64))
    )
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=1e-3)


@pytest.mark.parametrize("large", [0, 1])
def test_one_output_that_float32_cannot_store_keeps_all_in_float64(large, rng):
    X = rng.rand(300, 2).astype(np.float32)
    blocks = Blocks(X, ValueTargets(rng.randn(300, 2)))
    A = rng.randn(20, 2)
    A[:, large] *= 1e7  # rounding these changes scores by more than the targets vary
    expansion = KernelExpansion(RBF(1.0), X[:20], A, np.zeros(2))
    assert in_float32(expansion, blocks) is expansion
    A[:, large] /= 1e7
    assert in_float32(replace(expansion, dual_coef=A), blocks).dual_coef.dtype == np.float32


def test_a_float32_pass_that_fails_its_certificate_is_redone(rng):
    X32 = rng.rand(500, 40).astype(np.float32)
    y = rng.randint(0, 3, 500)
    assert fit(X32, ClassTargets(y, 3), X32[:50], 1.0).solver == "direct-float32"
    strict = SolverRules(tolerance=0.0, fine_tolerance=0.0, max_polish=0)
    got = fit(X32, ClassTargets(y, 3), X32[:50], 1.0, rules=strict)
    assert got.solver == "direct-float64"
    # the pass in float32, a residual that shows what is missing, the pass in float64
    assert got.n_kernel_evaluations == 50 * 50 + 3 * 500 * 50
    exact = fit(X32.astype(np.float64), ClassTargets(y, 3), X32[:50].astype(np.float64), 1.0)
    np.testing.assert_allclose(got.expansion(X32), exact.expansion(X32), atol=1e-5)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_problems_reach_the_reference_objective(seed, dtype):
    """Sizes, widths over eight decades, ridges over ten, repeated rows, both precisions."""
    rng = np.random.RandomState(seed)
    N, n, d = rng.randint(50, 400), rng.randint(2, 40), rng.randint(1, 30)
    gamma, alpha = 10.0 ** rng.uniform(-5, 3), 10.0 ** rng.uniform(-8, 2)
    X = (rng.rand(N, d) * 10.0 ** rng.uniform(-1, 1)).astype(dtype)
    X[: N // 4] = X[N // 4 : 2 * (N // 4)] if seed % 2 else X[: N // 4]
    y = rng.randint(0, 3, N)
    Z = X[rng.permutation(N)[:n]]
    fitted = fit(X, ClassTargets(y, 3), Z, gamma, (alpha,)).expansion
    X64, Z64, Y = X.astype(np.float64), Z.astype(np.float64), reference.one_vs_rest(y)
    features = reference.rbf_matrix(X64, Z64, gamma) @ reference.whitening(
        reference.rbf_matrix(Z64, Z64, gamma)
    )
    W, b = reference.ridge(features, Y, alpha)
    best = reference.objective(features, Y, W, b, alpha)
    assert_reaches(objective(X64, Y, fitted, gamma, alpha), best, features.shape[1] < n)


def left_out_errors(X, y, Z, alphas, rows):
    """The squared leave-one-out error of rows with each α, one literal fit a row."""
    K = reference.rbf_matrix(X, Z, 1.0)
    features = K @ reference.whitening(reference.rbf_matrix(Z, Z, 1.0))
    scores = [reference.leave_one_out(features, y[:, None], alpha) for alpha in alphas]
    return np.array([((s.ravel() - y) ** 2)[rows] for s in scores])


def test_rows_that_moved_no_landmark_ask_for_a_larger_ridge(rng):
    """Targets of most rows need a small ridge; those of the unused rows are noise."""
    X, alphas = rng.rand(120, 2), (1e-3, 1e-1, 10.0)
    unused, Z = np.arange(90, 120), X[:30]
    y = np.where(np.arange(120) < 90, np.sin(9.0 * X[:, 0]), 0.5 * rng.randn(120))
    rows = factories.blocks(X, y).gather(unused)
    plain = fit(X, factories.as_targets(y), Z, alphas=alphas)
    asked = fit(X, factories.as_targets(y), Z, alphas=alphas, unused=rows)
    errors = left_out_errors(X, y, Z, alphas, unused)
    gain = errors[0] - errors  # against the ridge of the plain fit
    clear = gain.sum(axis=1) >= np.sqrt((gain**2).sum(axis=1))
    clear[0] = True
    expected = min((e.sum(), a) for e, a, c in zip(errors, alphas, clear, strict=True) if c)[1]
    assert plain.alpha == alphas[0]
    assert asked.alpha == expected > plain.alpha


def test_few_noisy_rows_under_a_budget_are_no_worse_than_the_mean():
    X, y = load_diabetes(return_X_y=True)
    for seed in (0, 4):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        model = NystroemRegressor(budget="600B", random_state=seed).fit(X_train, y_train)
        assert model.score(X_test, y_test) > 0.25
