"""Smaller models are as close to the larger one as few landmarks can be."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from factories import alter
from sklearn.exceptions import NotFittedError

from nysplus import NystroemClassifier, NystroemRegressor, load
from nysplus._bytes.budget import make_budget
from nysplus._compression.compress import _Trial, compress_model
from nysplus._compression.merging import merged
from nysplus._compression.misfit import Misfit
from nysplus._compression.pruning import REMOVALS, eliminated, reduced, shortlist, tamed
from nysplus._rows.blocks import Block
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF, FunctionKernel, Laplacian, Matern, Polynomial, Sigmoid
from nysplus.kernels.base import squared_distances


def expansion_of(kernel, Z, rng, n_outputs=3, **more):
    """Return an expansion with random coefficients."""
    return KernelExpansion(
        kernel=kernel,
        landmarks=Z,
        dual_coef=rng.randn(Z.shape[0], n_outputs),
        intercept=rng.randn(n_outputs),
        **more,
    )


def compressed(expansion, n, X=None, weight=None):
    return reduced(expansion, n, X, weight)[0]


def misfit_of(expansion, X):
    return Misfit.of(expansion, X, np.full(len(X), 1.0 / len(X)))


def literal_cost(M, A, kept):
    """The least ``tr (A − A')ᵀ M (A − A')`` over A' with rows `kept` alone, by least squares."""
    R = np.linalg.cholesky(M).T
    found = np.linalg.lstsq(R[:, kept], R @ A, rcond=None)[0]
    return ((R @ A - R[:, kept] @ found) ** 2).sum()


def log_loss(model, X, y):
    P = model.predict_proba(X)
    return -np.log(P[np.arange(len(P)), np.searchsorted(model.classes_, y)]).mean()


@pytest.fixture(scope="module")
def halves(request):
    X, y = request.getfixturevalue("digits")
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def large(halves):
    return NystroemClassifier(200, random_state=0).fit(*halves[:2])


# -- pruning -------------------------------------------------------------------------------------


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
    twice = expansion_of(kernel, np.concatenate([Z, Z]), rng)
    X = rng.randn(50, 5)
    small = compressed(twice, 12, X if with_rows else None)
    np.testing.assert_allclose(small(X), twice(X), rtol=1e-4, atol=1e-4 * np.abs(twice(X)).max())


def test_one_merger_is_the_best_of_all_points_between(rng):
    """The landmark of the smallest coefficients goes to the best point on the way to another."""
    kernel, Z, A = RBF(0.5), rng.randn(6, 2), rng.randn(6, 3)
    A[2] *= 0.1
    f = KernelExpansion(kernel, Z, A, np.zeros(3))

    def distance(points):
        """The least squared distance to f in the kernel's space, of two functions of two points."""
        both = np.concatenate([Z, points])
        B, C = kernel(points, points), kernel(points, Z) @ A
        best = np.linalg.solve(B, C)
        a = np.concatenate([A, -best])
        return float((a * (kernel(both, both) @ a)).sum())

    def alternatives():
        for j in set(range(6)) - {2}:
            for share in np.linspace(0, 1, 11):
                points = np.delete(Z, [2, j], axis=0)
                yield np.concatenate([points, (Z[j] + share * (Z[2] - Z[j]))[None]])

    found = merged(kernel, Z, A, 5)
    assert len(found) == 5
    rest = [point for point in found if not (point == Z).all(axis=1).any()]
    assert len(rest) <= 1  # four stay where they are, or all but the one that went
    # coefficients of others make up for some of it, which the rule for pairs does not count
    assert distance(found) <= 1.5 * min(distance(points) for points in alternatives())
    assert f.landmarks is Z


def test_equal_landmarks_are_merged_first(rng):
    kernel, Z = RBF(0.5), 3.0 * rng.randn(8, 3)
    A = rng.randn(8, 2)
    double = np.concatenate([Z, Z[:3]])
    left = merged(kernel, double, np.concatenate([A, 0.01 * A[:3]]), 8)
    assert {tuple(row) for row in left.round(9)} == {tuple(row) for row in Z.round(9)}


def test_mergers_are_tried_as_well(large, monkeypatch):
    """Of removed and merged landmarks the closer ones are taken."""
    asked = []

    def noted(*arguments, merge=False):
        asked.append(merge)
        return reduced(*arguments, merge=merge)

    monkeypatch.setattr("nysplus._compression.compress.reduced", noted)
    assert len(compress_model(large, 20).landmarks_) == 20
    assert asked == [True, False]


def test_landmarks_without_moves_are_some_of_the_old(rng):
    Z = rng.randn(30, 4)
    small = compressed(expansion_of(Laplacian(0.3), Z, rng), 10)
    assert len(small.landmarks) == 10
    assert {tuple(z) for z in small.landmarks} <= {tuple(z) for z in Z}


def test_a_shortlist_keeps_what_counts(rng, monkeypatch):
    """Where nearly all landmarks are copies, a short list has one of each."""
    Z = rng.randn(20, 3)
    many = expansion_of(RBF(0.5), np.repeat(Z, 20, axis=0), rng)
    monkeypatch.setattr("nysplus._compression.pruning.SHORTLIST", 30)
    monkeypatch.setattr("nysplus._compression.pruning.SHORTLIST_RATIO", 1)
    chosen = shortlist(many, 20)
    assert len(chosen) == 30
    assert len(np.unique(chosen // 20)) == 20
    X = rng.randn(40, 3)
    np.testing.assert_allclose(compressed(many, 20)(X), many(X), atol=1e-3 * np.abs(many(X)).max())


# -- solving and moving --------------------------------------------------------------------------


def test_coefficients_are_the_best(rng):
    """The gradient of the distance by the coefficients vanishes."""
    Z, X = rng.randn(15, 3), rng.randn(40, 3)
    large = expansion_of(RBF(0.4), Z, rng)
    misfit = misfit_of(large, X)
    points = rng.randn(6, 3)
    A = misfit.solve(points)
    K, B, C = (large.kernel(X, points), large.kernel(points, points), large.kernel(points, Z))
    left = (large(X) - large.intercept - K @ A) / len(X)
    gradient = K.T @ left - misfit.epsilon * (B @ A - C @ large.dual_coef)
    np.testing.assert_allclose(gradient, misfit.jitter * A, atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.4), Matern(0.4, nu=1.5), Matern(0.4, nu=2.5)])
def test_the_gradient_is_that_of_the_distance(rng, kernel):
    misfit = misfit_of(expansion_of(kernel, rng.randn(15, 3), rng), rng.randn(40, 3))
    points = rng.randn(6, 3)
    _, gradient = misfit.value_and_gradient(points)
    for _ in range(5):
        way, step = rng.randn(6, 3), 1e-5
        ahead, behind = (misfit.value_and_gradient(points + s * way)[0] for s in (step, -step))
        np.testing.assert_allclose((gradient * way).sum(), (ahead - behind) / 2 / step, rtol=1e-5)


def test_the_gradient_holds_for_sparse_rows(rng):
    X = rng.randn(40, 3)
    large = expansion_of(RBF(0.4), rng.randn(15, 3), rng)
    points, weight = rng.randn(6, 3), np.full(40, 1 / 40)
    value, gradient = Misfit.of(large, X, weight).value_and_gradient(points)
    found, same = Misfit.of(large, sp.csr_matrix(X), weight).value_and_gradient(points)
    np.testing.assert_allclose(found, value, rtol=1e-9)
    np.testing.assert_allclose(same, gradient, rtol=1e-6, atol=1e-9)


def test_moves_come_closer(rng):
    large = expansion_of(RBF(0.2), rng.randn(30, 3), rng)
    misfit = misfit_of(large, rng.randn(100, 3))
    start = large.landmarks[:8]
    before, after = (misfit.value_and_gradient(p)[0] for p in (start, misfit.moved(start)))
    size = float((misfit.weight @ misfit.F**2).sum())
    assert after < before - 0.01 * size


def test_units_do_not_matter(rng):
    Z, X = rng.randn(30, 3), rng.randn(60, 3)
    small = compressed(expansion_of(RBF(0.2), Z, np.random.RandomState(1)), 8, X)
    other = compressed(expansion_of(RBF(0.2e-6), 1e3 * Z, np.random.RandomState(1)), 8, 1e3 * X)
    np.testing.assert_allclose(other(1e3 * X), small(X), rtol=1e-3, atol=1e-3)


# -- expansions of all kinds ---------------------------------------------------------------------


def test_rows_are_seen_through_the_projection(rng):
    P, Z, X = rng.randn(6, 3), rng.randn(25, 3), rng.randn(80, 6)
    plain = expansion_of(RBF(0.2), Z, np.random.RandomState(1))
    behind = expansion_of(RBF(0.2), Z, np.random.RandomState(1), projection=P)
    small = compressed(behind, 10, X)
    assert small.projection is P
    np.testing.assert_allclose(small(X), compressed(plain, 10, X @ P)(X @ P), rtol=1e-9, atol=1e-9)


def test_sparse_landmarks_are_pruned(rng):
    Z = sp.random(40, 10, density=0.3, format="csr", random_state=rng)
    large = expansion_of(RBF(0.5), Z, rng)
    small = compressed(large, 15, sp.random(60, 10, density=0.3, format="csr", random_state=rng))
    assert sp.issparse(small.landmarks)
    assert {tuple(z) for z in small.landmarks.toarray()} <= {tuple(z) for z in Z.toarray()}


def test_float32_stays(rng):
    Z = rng.randn(40, 4).astype(np.float32)
    large = expansion_of(RBF(0.1), Z, rng)
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
    small = compressed(expansion_of(RBF(0.1), rng.randint(9, size=(30, 4)), rng), 10)
    assert small.landmarks.dtype == np.float64


def test_weights_equal_repeated_rows(rng):
    large, X = expansion_of(RBF(0.2), rng.randn(25, 3), rng), rng.randn(20, 3)
    weight = rng.randint(1, 4, size=20)
    weighted = compressed(large, 8, X, weight.astype(float))
    repeated = compressed(large, 8, np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted(X), repeated(X), rtol=1e-3, atol=1e-3)


def test_the_intercept_and_all_landmarks_stay(rng):
    large = expansion_of(RBF(0.2), rng.randn(25, 3), rng)
    assert compressed(large, 25) is large
    np.testing.assert_array_equal(compressed(large, 5).intercept, large.intercept)


def test_a_model_that_is_zero_stays_zero(rng):
    Z = rng.randn(10, 2)
    zero = KernelExpansion(
        kernel=RBF(1.0), landmarks=Z, dual_coef=np.zeros((10, 1)), intercept=np.zeros(1)
    )
    np.testing.assert_array_equal(compressed(zero, 3)(Z), 0.0)


# -- what it is good for -------------------------------------------------------------------------


@pytest.mark.parametrize("with_rows", [False, True])
def test_digits_lose_little(halves, large, with_rows):
    X, _, X_test, y_test = halves
    small = compress_model(large, 50, X=X if with_rows else None)
    assert small.score(X_test, y_test) > large.score(X_test, y_test) - 0.015
    assert len(small.landmarks_) == 50


def test_better_than_some_landmarks_and_than_a_fit(halves, large, rng):
    X, y, X_test, y_test = halves
    expansion = large.expansion_

    def error(other):
        return ((other(X_test) - expansion(X_test)) ** 2).mean()

    misfit = misfit_of(expansion, X)
    some = expansion.landmarks[rng.permutation(200)[:50]]
    random = KernelExpansion(
        kernel=expansion.kernel,
        landmarks=some,
        dual_coef=misfit.solve(some),
        intercept=expansion.intercept,
    )
    small = compress_model(large, 50, X=X)
    assert error(small.expansion_) < 0.25 * error(random)
    fitted = NystroemClassifier(50, random_state=0).fit(X, y)
    assert small.score(X_test, y_test) > fitted.score(X_test, y_test)


# -- models --------------------------------------------------------------------------------------


def test_a_copy_with_consistent_attributes(halves, large):
    X, y = halves[:2]
    before = large.expansion_
    small = compress_model(large, 40, X=X)
    assert type(small) is NystroemClassifier
    assert large.expansion_ is before
    assert large.n_components == 200
    assert small.n_components == 40
    assert small.landmarks_.shape == (40, 64)
    assert small.landmark_indices_ is None
    assert small._model.scaling == large._model.scaling
    np.testing.assert_array_equal(small.classes_, large.classes_)
    assert small.model_bytes_ < large.model_bytes_ / 4
    assert small.predict_proba(X).shape == (len(X), 10)
    again = compress_model(large, 40, X=X)
    np.testing.assert_array_equal(again.dual_coef_, small.dual_coef_)
    assert small.fit(X, y).landmarks_.shape == (40, 64)


def test_indices_follow_landmarks_that_stay(digits):
    X, y = digits
    large = NystroemClassifier(60, kernel="laplacian", selection="uniform", random_state=0)
    small = compress_model(large.fit(X, y), 20)
    np.testing.assert_array_equal(X[small.landmark_indices_], small.landmarks_)


def test_classes_of_rows_scale_probabilities(halves, large):
    X_test, y_test = halves[2:]
    small = compress_model(large, 20, X=X_test, y=y_test)
    scaled = log_loss(small, X_test, y_test)
    alter(small, scaling=large._model.scaling)
    assert scaled < log_loss(small, X_test, y_test)


def test_a_regressor_of_several_values(rng):
    X = rng.uniform(-3, 3, (400, 1))
    Y = np.hstack([np.sin(X), np.cos(X)])
    large = NystroemRegressor(100, random_state=0).fit(X, Y)
    small = compress_model(large, 8, X=X, y=Y)
    assert small.predict(X).shape == Y.shape
    assert small.score(X, Y) > 0.999


def test_sums_over_rows_are_left_behind(moons):
    X, y = moons
    large = NystroemClassifier(50, random_state=0).partial_fit(X, y, classes=[0, 1])
    small = compress_model(large, 10, X=X)
    assert not hasattr(small, "_running")
    assert hasattr(large, "_running")
    assert small.score(X, y) > large.score(X, y) - 0.02


def test_multilabel(rng):
    X = rng.randn(300, 2)
    Y = (np.stack([X[:, 0], X[:, 1], X.sum(axis=1)], axis=1) > 0).astype(int)
    large = NystroemClassifier(60, random_state=0).fit(X, Y)
    small = compress_model(large, 20, X=X, y=Y)
    assert small.predict(X).shape == Y.shape
    assert small.score(X, Y) > large.score(X, Y) - 0.03


# -- functions that cancel themselves -------------------------------------------------------------


@pytest.fixture
def cancelling(rng):
    """A wide kernel interpolates a wave, with an intercept that is taken off again."""
    Z = np.linspace(-1, 1, 60)[:, None]
    wave = np.sin(4 * Z)
    A = np.linalg.solve(RBF(0.5)(Z, Z) + 1e-12 * np.eye(60), wave - 500.0)
    return KernelExpansion(RBF(0.5), Z, A, np.array([500.0]))


def test_scores_stay_where_coefficients_become_small(cancelling, rng):
    Z, weight = cancelling.landmarks, np.full(60, 1 / 60)
    assert misfit_of(cancelling, Z).cancels
    same = tamed(cancelling, Z, Z, weight)
    X = rng.uniform(-1, 1, (100, 1))
    assert ((same(X) - cancelling(X)) ** 2).mean() < 2e-3 * cancelling(X).var()
    assert abs(same.intercept[0]) < 50
    assert np.abs(same.dual_coef).max() < 1e-3 * np.abs(cancelling.dual_coef).max()


def test_functions_that_cancel_are_followed(cancelling, rng):
    X = rng.uniform(-1, 1, (100, 1))
    small = compressed(cancelling, 8)
    assert ((small(X) - cancelling(X)) ** 2).mean() < 5e-3 * cancelling(X).var()


def test_functions_that_do_not_cancel_are_left_alone(large):
    assert not misfit_of(large.expansion_, large.landmarks_).cancels


# -- rows that judge ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signs():
    """Classes by two of six features: a map leaves the others out."""
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (3000, 6))
    y = np.array(["equal", "other"])[(X[:, 0] * X[:, 1] < 0).astype(int)]
    return X[:2000], y[:2000], X[2000:], y[2000:]


@pytest.fixture(scope="module")
def larger(signs):
    return NystroemClassifier(300, gamma=2.0, random_state=0).fit(*signs[:2])


def test_a_learned_model_wins_where_it_is_better(signs, larger):
    X, y, X_test, y_test = signs
    followed, learned = compress_model(larger, 20), compress_model(larger, 20, X=X, y=y)
    assert learned.projection_.shape == (6, 6)
    assert learned.refined_
    assert not followed.refined_
    assert learned.landmark_indices_ is None
    assert learned.score(X_test, y_test) > followed.score(X_test, y_test) + 0.05
    assert log_loss(learned, X_test, y_test) < log_loss(followed, X_test, y_test)


def test_what_the_model_predicts_stands_in_for_classes(signs, larger, monkeypatch):
    """Probabilities of a model that learned from predictions are no surer than the model's."""
    X, _, X_test, y_test = signs
    monkeypatch.setattr("nysplus._compression.compress.TAUGHT_ROWS", 100)
    learned = compress_model(larger, 20, X=X)
    assert learned.projection_ is not None
    assert learned.score(X_test, y_test) > compress_model(larger, 20).score(X_test, y_test)
    confidence = [m.predict_proba(X_test).max(axis=1).mean() for m in (learned, larger)]
    np.testing.assert_allclose(*confidence, atol=0.05)


def test_no_worse_than_a_fit_of_that_size(rng):
    """Large coefficients that cancel: what follows the scores is not kept where it fails."""
    X = rng.uniform(-1, 1, (1500, 2))
    y = (np.sin(5 * X[:, 0]) > X[:, 1]).astype(int)
    large = NystroemClassifier(300, gamma=0.3, alpha=1e-10, random_state=0).fit(X[:1000], y[:1000])
    fitted = NystroemClassifier(30, gamma=0.3, random_state=0).fit(X[:1000], y[:1000])
    small = compress_model(large, 30, X=X[:1000], y=y[:1000])
    assert small.score(X[1000:], y[1000:]) > fitted.score(X[1000:], y[1000:]) - 0.01


def test_rows_that_the_model_has_seen_are_judges_with_a_bias(signs):
    """One landmark for each other row: nearly all of what it knows of its rows is by heart."""
    X, y, X_test, y_test = signs
    noisy = np.where(np.random.RandomState(1).uniform(size=600) < 0.2, "other", y[:600])
    model = NystroemClassifier(300, gamma=5.0, alpha=1e-4, random_state=0).fit(X[:600], noisy)
    rng = np.random.RandomState(0)

    def optimism(X, y):
        rows = Block(X, np.arange(len(X)), model._model.code.encode(y))
        used = np.arange(len(X) // 5, len(X))
        judged = rows.take(np.arange(len(X) // 5))
        return _Trial(model.expansion_, rows, used, judged, None, rng).optimism()

    assert optimism(X[:600], noisy) > 0.05
    assert optimism(X_test[:600], y_test[:600]) == 0.0


def test_few_rows_are_followed_only(halves, large):
    X, y = halves[:2]
    small = compress_model(large, 40, X=X[:30], y=y[:30])
    assert len(small.landmarks_) == 40
    assert small.projection_ is None


def test_rows_of_one_predicted_class(halves, large):
    X, y, X_test, y_test = halves
    small = compress_model(large, 40, X=X[y == 3])
    assert small.score(X_test, y_test) > 0.9


def test_values_are_judged_by_their_squares(rng):
    X = rng.uniform(-3, 3, (600, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    large = NystroemRegressor(150, random_state=0).fit(X[:400], y[:400])
    small = compress_model(large, 40, X=X[:400], y=y[:400])
    fitted = NystroemRegressor(40, gamma=large.gamma_, random_state=0).fit(X[:400], y[:400])
    assert small.score(X[400:], y[400:]) > fitted.score(X[400:], y[400:])


def test_a_model_behind_a_map_learns_another_map(signs, larger):
    X, y, X_test, y_test = signs
    first = compress_model(larger, 60, X=X, y=y)
    second = compress_model(first, 15, X=X, y=y)
    assert second.projection_.shape == (6, 6)
    assert second.score(X_test, y_test) > first.score(X_test, y_test) - 0.03


# -- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["8kB", 4000, "1.5kb"])
@pytest.mark.parametrize("with_rows", [False, True])
def test_a_budget_is_kept(halves, large, budget, with_rows):
    X, y, X_test, y_test = halves
    given = {"X": X, "y": y} if with_rows else {}
    small = compress_model(large, budget=budget, **given)
    assert small.model_bytes_ <= make_budget(budget).n_bytes
    assert small.n_components == len(small.landmarks_)
    least = {"8kB": 0.95, 4000: 0.9, "1.5kb": 0.75}[budget]
    assert small.score(X_test, y_test) > least


def test_smaller_types_have_room_for_more(large):
    small = compress_model(large, budget="8kB")
    assert small.expansion_.packed.landmarks.values.dtype == np.int8
    # 64 + 10 numbers a landmark, as many scales and ten intercepts of four bytes
    assert len(small.landmarks_) == (8192 - 4 * (64 + 10 + 10)) // 74


def test_stored_types_are_saved(halves, large, tmp_path):
    small = compress_model(large, budget="4kB", X=halves[0], y=halves[1])
    small.save(tmp_path / "small.nys")
    again = load(tmp_path / "small.nys")
    assert again.model_bytes_ == small.model_bytes_ <= 4096
    np.testing.assert_array_equal(again.predict_proba(halves[2]), small.predict_proba(halves[2]))


def test_a_model_that_fits_stays(large):
    small = compress_model(large, budget="1MB")
    assert small.expansion_ is large.expansion_
    np.testing.assert_array_equal(small.dual_coef_, large.dual_coef_)


def test_a_budget_that_only_the_type_meets(large):
    """Half the bytes: the landmarks stay where they are, in float32."""
    n_bytes = large.model_bytes_ // 2
    small = compress_model(large, budget=n_bytes)
    assert small.expansion_.packed is not None
    assert len(small.landmarks_) == 200


@pytest.mark.parametrize("map_shape", [None, (5,), (5, 3)])
@pytest.mark.parametrize("n_rows", [0, 200])
def test_a_budget_behind_a_map(rng, map_shape, n_rows):
    X = rng.randn(300, 5)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = NystroemClassifier(100, random_state=0).fit(X, y)
    P = None if map_shape is None else rng.uniform(0.5, 1.5, map_shape)
    r = 5 if map_shape is None else map_shape[-1]
    alter(model, expansion=expansion_of(RBF(0.3), rng.randn(100, r), rng, 1, projection=P))
    small = compress_model(model, budget=600, X=X[:n_rows] if n_rows else None)
    assert small.model_bytes_ <= 600
    assert np.mean(small.predict(X) == model.predict(X)) > 0.9


@pytest.mark.parametrize("map_shape", [None, (5,), (5, 3)])
def test_too_few_bytes_for_one_landmark(moons, rng, map_shape):
    model = NystroemClassifier(50, random_state=0).fit(*moons)
    P = None if map_shape is None else rng.uniform(0.5, 1.5, map_shape)
    r = 5 if map_shape is None else map_shape[-1]
    alter(model, expansion=expansion_of(RBF(0.3), rng.randn(50, r), rng, 1, projection=P))
    with pytest.raises(ValueError, match="no room for a single landmark") as error:
        compress_model(model, budget=10)
    least = int(re.search(r"takes (\d+) bytes", str(error.value))[1])
    assert compress_model(model, budget=least).model_bytes_ <= least
    with pytest.raises(ValueError, match=f"takes {least} bytes"):
        compress_model(model, budget=least - 1)


def test_sparse_landmarks_are_counted_by_their_arrays(rng):
    X = sp.random(300, 30, density=0.2, format="csr", random_state=rng)
    y = np.asarray(X[:, 0].toarray().ravel() > 0, dtype=int)
    model = NystroemClassifier(100, selection="uniform", random_state=0).fit(X, y)
    for given in ({}, {"X": X, "y": y}):
        small = compress_model(model, budget=3000, **given)
        assert small.model_bytes_ <= 3000
    plain = compress_model(model, budget=3000)
    assert sp.issparse(plain.landmarks_)
    assert plain.landmarks_.dtype == np.float32
    assert plain.model_bytes_ > 2000
    with pytest.raises(ValueError, match="no room for a single landmark"):
        compress_model(model, budget=20)


def test_features_beyond_float16(rng):
    X = rng.uniform(0, 1e6, (200, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = NystroemClassifier(80, random_state=0).fit(X, y)
    small = compress_model(model, budget=400)
    assert small.model_bytes_ <= 400
    assert np.mean(small.predict(X) == model.predict(X)) > 0.9


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -1, 2.5, "64", True])
def test_numbers_that_are_none(large, n):
    with pytest.raises(ValueError, match=r"n_components=.* must be an integer of at least 1"):
        compress_model(large, n)


def test_more_landmarks_than_there_are(large):
    with pytest.raises(ValueError, match="n_components=201 exceeds the 200 landmarks"):
        compress_model(large, 201)


@pytest.mark.parametrize("kernel", [Sigmoid(0.1), Polynomial(0.1, degree=1.5)])
def test_indefinite_kernels(rng, kernel):
    with pytest.raises(ValueError, match="needs a positive semidefinite kernel"):
        compressed(expansion_of(kernel, rng.rand(10, 2), rng), 5)


def test_functions_are_tried(rng):
    Z = rng.randn(30, 2)
    good = FunctionKernel(lambda X, Z: RBF(0.5)(X, Z), vectorized=True)
    assert len(compressed(expansion_of(good, Z, rng), 5).landmarks) == 5


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_functions_that_turn_out_indefinite(rng, shift):
    """With a negative diagonal, and with negative eigenvalues only."""
    Z = rng.randn(30, 2)
    bad = FunctionKernel(lambda X, Z: shift - squared_distances(X, Z), vectorized=True)
    weight = np.full(2, 0.5)
    with pytest.raises(ValueError, match="needs a positive semidefinite kernel"):
        Misfit.of(expansion_of(bad, Z, rng), Z[:2], weight).parts(Z)


@pytest.mark.parametrize("asked", [{}, {"n_components": 10, "budget": "8kB"}])
def test_a_number_or_a_budget(large, asked):
    with pytest.raises(ValueError, match="Pass exactly one of them"):
        compress_model(large, **asked)


def test_a_budget_that_is_none(large):
    with pytest.raises(ValueError, match="budget='small' is not a size"):
        compress_model(large, budget="small")


def test_targets_without_rows(large, halves):
    with pytest.raises(ValueError, match="y without X"):
        compress_model(large, 10, y=halves[1])


def test_rows_of_another_width(large):
    with pytest.raises(ValueError, match="features"):
        compress_model(large, 10, X=np.zeros((5, 3)))


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        compress_model(NystroemClassifier(), 10)
