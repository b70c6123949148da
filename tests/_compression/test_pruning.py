"""Expansions with fewer landmarks are as close to the larger one as possible."""

from __future__ import annotations

from itertools import combinations

import factories
import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._compression.misfit import Misfit
from nysplus._compression.pruning import (
    REMOVALS,
    PruningRules,
    eliminated,
    listed,
    reduced,
    shortlist,
    tamed,
)
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF, FunctionKernel, Laplacian, Polynomial, Sigmoid


def compressed(expansion, n, X=None, weight=None):
    return reduced(expansion, n, X, weight)[0]


def literal_cost(M, A, kept):
    """The least ``tr (A − A')ᵀ M (A − A')`` over A' with rows `kept` alone, by least squares."""
    R = np.linalg.cholesky(M).T
    found = np.linalg.lstsq(R[:, kept], R @ A, rcond=None)[0]
    return ((R @ A - R[:, kept] @ found) ** 2).sum()


def test_one_removal_costs_what_brute_force_says(rng):
    Z, A = rng.randn(9, 3), rng.randn(9, 4)
    M = RBF(0.5)(Z, Z)
    costs = [literal_cost(M, A, np.delete(np.arange(9), j)) for j in range(9)]
    kept, cost = eliminated(M, A, 8)
    assert set(range(9)) - set(kept) == {int(np.argmin(costs))}
    np.testing.assert_allclose(cost, min(costs), rtol=1e-9)


@pytest.mark.parametrize("n", [1, 20, 99])
def test_costs_of_removals_add_up(rng, n):
    """In one block of removals and in several."""
    Z, A = rng.randn(REMOVALS + 36, 5), rng.randn(REMOVALS + 36, 2)
    M = RBF(0.5)(Z, Z)
    kept, cost = eliminated(M, A, n)
    assert len(np.unique(kept)) == n
    np.testing.assert_allclose(cost, literal_cost(M, A, kept), rtol=1e-7)


def test_removals_follow_each_other_as_literally(rng):
    Z, A = rng.randn(10, 3), rng.randn(10, 2)
    M = RBF(0.5)(Z, Z)
    left = list(range(10))
    while len(left) > 4:
        left = min((list(kept) for kept in combinations(left, len(left) - 1)),
                   key=lambda kept: literal_cost(M, A, kept))  # fmt: skip
    assert eliminated(M, A, 4)[0].tolist() == left


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3), Polynomial(0.3, degree=2)])
@pytest.mark.parametrize("with_rows", [False, True])
def test_duplicated_landmarks_cost_nothing(rng, kernel, with_rows):
    Z = rng.randn(12, 5)
    twice = factories.expansion(np.concatenate([Z, Z]), rng, kernel)
    X = rng.randn(50, 5)
    small = compressed(twice, 12, X if with_rows else None)
    np.testing.assert_allclose(small(X), twice(X), rtol=1e-4, atol=1e-4 * np.abs(twice(X)).max())


def test_landmarks_without_moves_are_some_of_the_old(rng):
    Z = rng.randn(30, 4)
    small = compressed(factories.expansion(Z, rng, Laplacian(0.3)), 10)
    assert len(small.landmarks) == 10
    assert {tuple(z) for z in small.landmarks} <= {tuple(z) for z in Z}


def test_a_shortlist_keeps_what_counts(rng):
    """Where nearly all landmarks are copies, a short list has one of each."""
    Z = rng.randn(20, 3)
    many = factories.expansion(np.repeat(Z, 20, axis=0), rng, RBF(0.5))
    rules = PruningRules(shortlist_ratio=1, min_shortlist=30)
    chosen = shortlist(many, 20, rules)
    assert len(chosen) == 30
    assert len(np.unique(chosen // 20)) == 20
    X = rng.randn(40, 3)
    small = reduced(many, 20, rules=rules)[0]
    np.testing.assert_allclose(small(X), many(X), atol=1e-3 * np.abs(many(X)).max())


@pytest.mark.parametrize(
    ("n", "competing"), [(10, 1000), (250, 1000), (400, 1600), (1000, 2000), (2000, 3000)]
)
def test_fewer_landmarks_compete_for_each_of_many_places(n, competing):
    assert PruningRules().count(n) == competing


@pytest.mark.parametrize("merge", [False, True])
def test_a_shortlist_serves_removals_and_merges(rng, merge):
    large, X = factories.expansion(rng.randn(30, 3), rng, RBF(0.3)), rng.randn(50, 3)
    weight = rng.rand(50)
    competing = listed(large, 8, X, weight)
    again = reduced(large, 8, X, weight, merge, competing=competing)[0]
    np.testing.assert_array_equal(again(X), reduced(large, 8, X, weight, merge)[0](X))


def test_units_do_not_matter(rng):
    Z, X = rng.randn(30, 3), rng.randn(60, 3)
    small = compressed(factories.expansion(Z, np.random.RandomState(1), RBF(0.2)), 8, X)
    other = compressed(
        factories.expansion(1e3 * Z, np.random.RandomState(1), RBF(0.2e-6)), 8, 1e3 * X
    )
    np.testing.assert_allclose(other(1e3 * X), small(X), rtol=1e-3, atol=1e-3)


def test_rows_are_seen_through_the_projection(rng):
    P, Z, X = rng.randn(6, 3), rng.randn(25, 3), rng.randn(80, 6)
    plain = factories.expansion(Z, np.random.RandomState(1), RBF(0.2))
    behind = factories.expansion(Z, np.random.RandomState(1), RBF(0.2), projection=P)
    small = compressed(behind, 10, X)
    assert small.projection is P
    np.testing.assert_allclose(small(X), compressed(plain, 10, X @ P)(X @ P), rtol=1e-9, atol=1e-9)


def test_sparse_landmarks_are_pruned(rng):
    Z = sp.random(40, 10, density=0.3, format="csr", random_state=rng)
    large = factories.expansion(Z, rng, RBF(0.5))
    small = compressed(large, 15, sp.random(60, 10, density=0.3, format="csr", random_state=rng))
    assert sp.issparse(small.landmarks)
    assert {tuple(z) for z in small.landmarks.toarray()} <= {tuple(z) for z in Z.toarray()}


def test_float32_stays(rng):
    Z = rng.randn(40, 4).astype(np.float32)
    large = factories.expansion(Z, rng, RBF(0.1))
    single = KernelExpansion(
        kernel=large.kernel,
        landmarks=Z,
        dual_coef=large.dual_coef.astype(np.float32),
        intercept=large.intercept.astype(np.float32),
    )
    X = rng.randn(100, 4)
    small, double = compressed(single, 20, X.astype(np.float32)), compressed(large, 20, X)
    assert small.landmarks.dtype == small.dual_coef.dtype == np.float32
    error = np.abs(small(X) - single(X)).mean()
    assert error < 2 * np.abs(double(X) - large(X)).mean() + 1e-3


def test_integer_landmarks_become_floats_when_they_move(rng):
    small = compressed(factories.expansion(rng.randint(9, size=(30, 4)), rng, RBF(0.1)), 10)
    assert small.landmarks.dtype == np.float64


def test_weights_equal_repeated_rows(rng):
    large, X = factories.expansion(rng.randn(25, 3), rng, RBF(0.2)), rng.randn(20, 3)
    weight = rng.randint(1, 4, size=20)
    weighted = compressed(large, 8, X, weight.astype(float))
    repeated = compressed(large, 8, np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted(X), repeated(X), rtol=1e-3, atol=1e-3)


def test_the_intercept_and_all_landmarks_stay(rng):
    large = factories.expansion(rng.randn(25, 3), rng, RBF(0.2))
    assert compressed(large, 25) is large
    np.testing.assert_array_equal(compressed(large, 5).intercept, large.intercept)


def test_a_model_that_is_zero_stays_zero(rng):
    Z = rng.randn(10, 2)
    zero = KernelExpansion(
        kernel=RBF(1.0), landmarks=Z, dual_coef=np.zeros((10, 1)), intercept=np.zeros(1)
    )
    np.testing.assert_array_equal(compressed(zero, 3)(Z), 0.0)


@pytest.fixture
def cancelling(rng):
    """A wide kernel interpolates a wave; kernel functions cancel its intercept."""
    Z = np.linspace(-1, 1, 60)[:, None]
    wave = np.sin(4 * Z)
    A = np.linalg.solve(RBF(0.5)(Z, Z) + 1e-12 * np.eye(60), wave - 500.0)
    return KernelExpansion(RBF(0.5), Z, A, np.array([500.0]))


def test_scores_stay_where_coefficients_become_small(cancelling, rng):
    Z, weight = cancelling.landmarks, np.full(60, 1 / 60)
    assert Misfit.of(cancelling, Z, weight).cancels
    same = tamed(cancelling, Z, Z, weight)
    X = rng.uniform(-1, 1, (100, 1))
    assert ((same(X) - cancelling(X)) ** 2).mean() < 2e-3 * cancelling(X).var()
    assert abs(same.intercept[0]) < 50
    assert np.abs(same.dual_coef).max() < 1e-3 * np.abs(cancelling.dual_coef).max()


def test_functions_that_cancel_are_reproduced(cancelling, rng):
    X = rng.uniform(-1, 1, (100, 1))
    small = compressed(cancelling, 8)
    assert ((small(X) - cancelling(X)) ** 2).mean() < 5e-3 * cancelling(X).var()


@pytest.mark.parametrize("kernel", [Sigmoid(0.1), Polynomial(0.1, degree=1.5)])
def test_indefinite_kernels(rng, kernel):
    with pytest.raises(ValueError, match="needs a positive semidefinite kernel"):
        compressed(factories.expansion(rng.rand(10, 2), rng, kernel), 5)


def test_functions_are_tried(rng):
    Z = rng.randn(30, 2)
    good = FunctionKernel(lambda X, Z: RBF(0.5)(X, Z), vectorized=True)
    assert len(compressed(factories.expansion(Z, rng, good), 5).landmarks) == 5
