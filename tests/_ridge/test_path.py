from __future__ import annotations

import numpy as np
import pytest
import reference

from nysplus._fit.plan import AUTO_ALPHAS, make_alphas
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath, smallest_eigenvalue


def moments_of(features, Y, weight):
    """Moments of one block, which use up a copy."""
    return Moments.of(features.copy(), Y, weight)


def path_of(features, Y, weight):
    return RidgePath(moments_of(features, Y, weight))


def solve(features, Y, weight, alpha):
    found = path_of(features, Y, weight).solve(alpha)
    return found.W, found.b


@pytest.fixture
def rows(rng):
    """Features, targets and weights with means that raw sums would choke on."""
    features = rng.randn(50, 6) * 10.0 ** -np.arange(6) + 100.0
    return features, rng.randn(50, 3) + 5.0, rng.randint(0, 4, 50).astype(float)


def test_moments_are_the_literal_ones(rows):
    features, Y, w = rows
    moments = moments_of(features, Y, w)
    mean, target_mean = np.average(features, 0, w), np.average(Y, 0, w)
    F, T = features - mean, Y - target_mean
    np.testing.assert_allclose(moments.feature_mean, mean)
    np.testing.assert_allclose(moments.target_mean, target_mean)
    np.testing.assert_allclose(moments.scatter, F.T @ (w[:, None] * F), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments.cross, F.T @ (w[:, None] * T), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments.target_scatter, (w[:, None] * T**2).sum(0))
    assert moments.weight == moments.count == w.sum()


def test_count_of_small_weights_is_the_number_of_rows(rows):
    features, Y, _ = rows
    assert moments_of(features, Y, np.full(50, 0.02)).count == 50


@pytest.mark.parametrize("cuts", [[25], [1, 2, 3], [10, 20, 30, 40], list(range(1, 50))])
@pytest.mark.parametrize("order", [1, -1])
def test_moments_add_in_any_order_and_block_size(rows, cuts, order):
    parts = [np.split(array, cuts) for array in rows]
    total = Moments.zero(6, 3)
    for part in list(zip(*parts, strict=True))[::order]:
        total += moments_of(*part)
    whole = moments_of(*rows)
    for name in ("weight", "count", "feature_mean", "target_mean", "target_scatter"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12)
    np.testing.assert_allclose(total.scatter, whole.scatter, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total.cross, whole.cross, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 1.0, 1e3])
def test_solution_equals_stacked_least_squares(rows, alpha):
    features, Y, w = rows
    W, b = solve(features, Y, w, alpha)
    expected_W, expected_b = reference.ridge(features, Y, alpha, w)
    np.testing.assert_allclose(features @ W + b, features @ expected_W + expected_b, atol=1e-6)


def test_gradient_vanishes_at_the_solution(rows):
    features, Y, w = rows
    W, b = solve(features, Y, w, 0.1)
    residual = w[:, None] * (features @ W + b - Y)
    np.testing.assert_allclose(residual.sum(0), 0, atol=1e-9)
    np.testing.assert_allclose((features - features.mean(0)).T @ residual + 0.1 * W, 0, atol=1e-8)


def test_doubled_rows_with_doubled_ridge_change_nothing(rows):
    features, Y, w = rows
    W, b = solve(features, Y, w, 0.1)
    W2, b2 = solve(np.vstack([features] * 2), np.vstack([Y] * 2), np.hstack([w, w]), 0.2)
    np.testing.assert_allclose(W2, W, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(b2, b, rtol=1e-6)


def test_infinite_ridge_predicts_the_mean(rows):
    features, Y, w = rows
    W, b = solve(features, Y, w, 1e15)
    np.testing.assert_allclose(features @ W + b, np.broadcast_to(np.average(Y, 0, w), Y.shape))


def test_no_ridge_on_dependent_features_is_the_smallest_solution(rng):
    features = rng.randn(30, 2) @ np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]])
    Y = rng.randn(30, 1)
    W, _ = solve(features, Y, np.ones(30), 0.0)
    F = features - features.mean(0)
    np.testing.assert_allclose(W, np.linalg.pinv(F, rcond=1e-10) @ Y, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_objective_and_gcv_are_the_literal_ones(rng, alpha):
    features, Y = rng.randn(40, 5), rng.randn(40, 2)
    path = path_of(features, Y, np.ones(40))
    W, b = reference.ridge(features, Y, alpha)
    rss = ((features @ W + b - Y) ** 2).sum()
    F = features - features.mean(0)
    hat = F @ np.linalg.solve(F.T @ F + alpha * np.eye(5), F.T) + 1 / 40
    assert path.solve(alpha).objective == pytest.approx(rss + alpha * (W**2).sum(), rel=1e-9)
    expected = 40 * rss / (40 - np.trace(hat)) ** 2
    assert path.generalized_cross_validation(alpha) == pytest.approx(expected, rel=1e-9)


def rotated(path, features):
    """What leave-one-out asks for: centred features in the basis of the scatter."""
    return (features - path.moments.feature_mean) @ path.vectors


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_leaving_one_out(rng, weighted):
    features, Y = rng.randn(25, 4), rng.randn(25, 2)
    w = rng.rand(25) if weighted else np.ones(25)  # below one: the whole row is left out
    path = path_of(features, Y, w)
    scores = path.leave_one_out(rotated(path, features), Y, w, (0.01, 1.0))
    for alpha, got in zip((0.01, 1.0), scores, strict=True):
        np.testing.assert_allclose(got, reference.leave_one_out(features, Y, alpha, w), atol=1e-9)


def test_leaving_out_one_of_three_equal_rows(rng):
    features, Y = rng.randn(20, 3), rng.randn(20, 1)
    w = np.ones(20)
    w[0] = 3.0
    repeated = np.r_[0, 0, np.arange(20)]
    weighted = path_of(features, Y, w)
    expanded = path_of(features[repeated], Y[repeated], np.ones(22))
    (got,) = weighted.leave_one_out(rotated(weighted, features), Y, np.ones(20), (0.1,))
    (expected,) = expanded.leave_one_out(
        rotated(expanded, features[repeated]), Y[repeated], np.ones(22), (0.1,)
    )
    np.testing.assert_allclose(got[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(
        expected[0], reference.leave_one_out(features[repeated], Y[repeated], 0.1)[0], atol=1e-10
    )


# ---- factorisations ----------------------------------------------------------------------------

SPECTRA = {
    "equal": np.ones(300),
    "clustered": np.repeat([1.0, 1.05, 50.0], 100),
    "crowded below": np.linspace(1.0, 2.0, 300),
    "spread": np.logspace(-6, 4, 300),
    "one small": np.r_[1e-9, np.ones(299)],
    "three": np.array([1e-3, 1.0, 2.0]),
    "one": np.array([7.0]),
}


@pytest.mark.parametrize("spectrum", list(SPECTRA))
def test_smallest_eigenvalue_is_that_of_numpy_within_a_tenth(spectrum, rng):
    values = SPECTRA[spectrum]
    V, _ = np.linalg.qr(rng.randn(len(values), len(values)))
    A = (V * values) @ V.T
    got = smallest_eigenvalue(lambda R: np.linalg.solve(A, R), len(A))
    exact = np.linalg.eigvalsh(A)[0]
    assert exact * (1 - 1e-6) <= got <= 1.1 * exact  # an estimate from above


def test_smallest_eigenvalue_without_any_or_without_an_inverse():
    assert smallest_eigenvalue(lambda R: R, 0) == np.inf
    assert smallest_eigenvalue(lambda R: np.full_like(R, np.inf), 1) == 0.0


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
def test_cholesky_and_eigenvalues_agree(rows, alpha):
    by_cholesky, by_eigenvalues = path_of(*rows), path_of(*rows)
    assert by_eigenvalues.vectors.shape == (6, 6)  # from here on they are used
    one, other = by_cholesky.solve(alpha), by_eigenvalues.solve(alpha)
    assert "_eigen" not in by_cholesky.__dict__
    np.testing.assert_allclose(one.W, other.W, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(one.b, other.b, rtol=1e-6)
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    assert one.smallest == pytest.approx(other.smallest, rel=0.1)
    F = rows[0] - np.average(rows[0], 0, rows[2])
    scatter = F.T @ (rows[2][:, None] * F)
    exact = np.linalg.eigvalsh(scatter + alpha * np.eye(6))[0]
    assert other.smallest == pytest.approx(exact, rel=1e-3)


def test_factor_solves_the_normal_equations(rows, rng):
    path = path_of(*rows)
    R = rng.randn(6, 2)
    Z = path.factor(0.5)[0](R)
    np.testing.assert_allclose(path.moments.scatter @ Z + 0.5 * Z, R, atol=1e-9)


def test_a_singular_scatter_is_not_factorised_by_cholesky(rng):
    features = rng.randn(30, 4)
    features = np.c_[features, features[:, 0]]
    Y = rng.randn(30, 2)
    path = path_of(features, Y, np.ones(30))
    found = path.solve(0.0)
    F = features - features.mean(0)
    np.testing.assert_allclose(found.W, np.linalg.pinv(F, rcond=1e-10) @ Y, atol=1e-9)
    # the smallest of the directions that count, not the rounding error of the one that does not
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(F.T @ F)[1], rel=1e-6)
    residual = ((features @ found.W + found.b - Y) ** 2).sum()
    assert found.objective == pytest.approx(residual, rel=1e-9)


def test_mapped_moments_are_those_of_the_mapped_features(rows, rng):
    features, Y, w = rows
    T = rng.randn(6, 4)
    got = moments_of(features, Y, w).mapped(lambda G: T.T @ G)
    expected = moments_of(features @ T, Y, w)
    for name in ("weight", "count", "feature_mean", "target_mean", "target_scatter"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=1e-9)
    np.testing.assert_allclose(got.scatter, expected.scatter, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got.cross, expected.cross, rtol=1e-8, atol=1e-9)


def test_blocks_of_float32_are_summed_in_float64(rng):
    features, Y = rng.randn(4000, 3).astype(np.float32) + 50, rng.randn(4000, 1)
    total = Moments.zero(3, 1)
    for rows in np.split(np.arange(4000), 40):
        total += moments_of(features[rows], Y[rows], np.ones(100))
    exact = moments_of(features.astype(np.float64), Y, np.ones(4000))
    assert total.scatter.dtype == np.float64
    np.testing.assert_allclose(total.feature_mean, exact.feature_mean, rtol=1e-9)
    np.testing.assert_allclose(np.diag(total.scatter), np.diag(exact.scatter), rtol=1e-6)


# ---- choices -----------------------------------------------------------------------------------


def test_make_alphas():
    assert make_alphas("auto") == AUTO_ALPHAS
    assert make_alphas(0.5) == (0.5,)
    assert make_alphas(np.float32(2)) == (2.0,)
    assert make_alphas([1, 0.1, 1]) == (0.1, 1.0)
    for bad in ("best", -1.0, float("nan"), float("inf"), [], [1.0, -1.0], ["a"], None):
        with pytest.raises(ValueError, match="alpha="):
            make_alphas(bad)
