"""Randomly pivoted Cholesky and leverage scores as selectors, against dense algebra."""

from __future__ import annotations

import factories
import numpy as np
import pytest
import reference
import scipy.sparse as sp
from scipy.stats import chi2
from sklearn import config_context
from sklearn.base import clone

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.feature_map import StandardMap
from nysplus._rows.on_disk import ChunkRules, using_chunk_rules
from nysplus.kernels import RBF, FunctionKernel, Linear, Polynomial, Sigmoid
from nysplus.landmarks import (
    ClassCentroids,
    GivenLandmarks,
    KMeans,
    Problem,
    select_landmarks,
)
from nysplus.landmarks.clustering import centroids
from nysplus.landmarks.unsupervised import LeverageScores, RPCholesky, Uniform, leverage_scores

RULES = [RPCholesky(), LeverageScores()]
every_rule = pytest.mark.parametrize("selector", RULES, ids=repr)


def seeded(seed=0):
    return np.random.RandomState(seed)


def problem_of(X, kernel=None, **weights):
    return factories.problem(X, None, kernel, alphas=(1.0,), **weights)


@pytest.fixture
def clusters(rng):
    """One large cluster and nineteen small ones, with the cluster of each row."""
    cluster = np.repeat(np.arange(20), [900] + 19 * [8])
    centres = 6.0 * rng.randn(20, 4)
    return centres[cluster] + 0.2 * rng.randn(len(cluster), 4), cluster


# ---- both ---------------------------------------------------------------------------------------


@every_rule
@pytest.mark.parametrize("n", [1, 2, 20, 299])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_landmarks_are_distinct_rows(selector, n, dtype, rng):
    X = rng.randn(300, 3).astype(dtype)
    got = selector.select(problem_of(X), n, seeded())
    assert len(set(got.indices.tolist())) == n
    assert got.points.dtype == dtype
    np.testing.assert_array_equal(got.points, X[got.indices])
    assert got.n_kernel_evaluations > 0


@every_rule
def test_landmarks_come_from_a_pool_of_max_rows(selector, rng):
    X = rng.randn(500, 3)
    small = clone(selector).set_params(max_rows=50)
    got = small.select(problem_of(X), 20, seeded())
    assert set(got.indices) <= set(seeded().permutation(500)[:50])
    np.testing.assert_array_equal(got.points, X[got.indices])
    # a pool that is too small for the landmarks is enlarged
    assert len(set(small.select(problem_of(X), 80, seeded()).indices.tolist())) == 80


@every_rule
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Polynomial(0.2)], ids=repr)
def test_same_seed_same_landmarks_wherever_and_however_stored(selector, kernel, rng):
    X = np.where(rng.rand(700, 5) < 0.6, rng.randn(700, 5), 0.0).astype(np.float32)
    selector = clone(selector).set_params(max_rows=600)  # two levels of leverage scores
    once = selector.select(problem_of(X, kernel), 20, seeded()).indices
    with config_context(working_memory=0.05):
        again = selector.select(problem_of(X, kernel), 20, seeded()).indices
    sparse = selector.select(problem_of(sp.csr_matrix(X), kernel), 20, seeded())
    np.testing.assert_array_equal(again, once)
    np.testing.assert_array_equal(sparse.indices, once)
    assert sp.issparse(sparse.points)
    assert set(selector.select(problem_of(X, kernel), 20, seeded(1)).indices) != set(once)


@every_rule
def test_rows_without_weight_are_never_chosen(selector, rng):
    X, weight = rng.randn(120, 3), (np.arange(120) % 3).astype(float)
    got = selector.select(problem_of(X, sample_weight=weight), 79, seeded())
    assert (got.indices % 3 > 0).all()


@every_rule
def test_a_kernel_of_low_rank_is_spanned_and_the_rest_filled_up(selector, rng):
    X = rng.randn(400, 6)
    X[200:] = 0.0
    got = selector.select(problem_of(X, Linear()), 60, seeded())
    assert len(set(got.indices.tolist())) == 60
    assert np.linalg.matrix_rank(got.points) == 6


@every_rule
def test_rows_that_are_all_equal(selector):
    for kernel in (RBF(1.0), Linear()):
        for value in (0.0, 1.0):
            got = selector.select(problem_of(np.full((600, 2), value), kernel), 7, seeded())
            assert len(set(got.indices.tolist())) == 7


@every_rule
def test_all_rows_become_landmarks(selector, rng):
    X = rng.randn(30, 2)
    got = select_landmarks(selector, problem_of(X), 30, seeded())
    np.testing.assert_array_equal(got.indices, np.arange(30))


@every_rule
def test_small_clusters_are_covered_where_uniform_rows_miss_them(selector, clusters):
    X, cluster = clusters
    problem = problem_of(X)
    K = problem.kernel(X, X)
    for seed in range(5):
        by_rule = selector.select(problem, 60, seeded(seed)).indices
        uniform = Uniform().select(problem, 60, seeded(seed)).indices
        covered, by_chance = len(set(cluster[by_rule])), len(set(cluster[uniform]))
        assert covered == 20 if isinstance(selector, RPCholesky) else covered > by_chance
        assert by_chance < 19
        assert reference.trace_error(K, by_rule) < 0.5 * reference.trace_error(K, uniform)


def test_cholesky_leaves_less_than_leverage_scores(clusters):
    X, _ = clusters
    problem = problem_of(X)
    K = problem.kernel(X, X)
    cholesky, leverage = (
        [reference.trace_error(K, rule.select(problem, 60, seeded(s)).indices) for s in range(10)]
        for rule in RULES
    )
    assert np.mean(cholesky) < np.mean(leverage)


@every_rule
def test_kernel_evaluations_are_counted(selector, rng):
    calls = []

    def gaussian(X, Z):
        calls.append(X.shape[0] * Z.shape[0])
        return RBF(0.5)(X, Z)

    kernel = FunctionKernel(gaussian, vectorized=True)
    got = selector.select(problem_of(rng.randn(900, 3), kernel), 20, seeded())
    assert got.n_kernel_evaluations == sum(calls)
    assert sum(calls) < 0.9 * 900**2


@pytest.mark.parametrize("model", [NystroemClassifier, NystroemRegressor])
@every_rule
def test_fit_from_a_memory_map_equals_fit_in_memory(tmp_path, selector, model, rng):
    X = rng.randn(500, 3)
    y = (X[:, 0] > X[:, 1]).astype(int)
    np.save(tmp_path / "X.npy", X)
    selection = clone(selector).set_params(max_rows=300)
    estimator = model(n_components=20, gamma=0.5, selection=selection, random_state=0)
    inside = clone(estimator).fit(X, y)
    with using_chunk_rules(ChunkRules(max_rows=61)):
        outside = clone(estimator).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_array_equal(outside.landmark_indices_, inside.landmark_indices_)
    np.testing.assert_array_equal(outside.landmarks_, X[inside.landmark_indices_])
    assert outside.n_kernel_evaluations_ == inside.n_kernel_evaluations_


@every_rule
def test_indefinite_kernels_are_refused_before_any_row_is_looked_at(selector):
    problem = Problem(None, Sigmoid(0.1), StandardMap(), (1.0,))
    name = type(selector).__name__
    with pytest.raises(ValueError, match=rf"{name} needs a positive semidefinite.*'kmeans'"):
        selector.select(problem, 5, seeded())


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (RPCholesky(max_rows=0), "max_rows=0 must be an integer of at least 1"),
        (RPCholesky(block=2.5), "block=2.5 must be an integer"),
        (RPCholesky(weight=[1.0, 2.0]), "must be None or a function"),
        (LeverageScores(max_rows=None), "max_rows=None must be"),
        (LeverageScores(alpha=0.0), "alpha=0.0 must be a positive finite number"),
        (LeverageScores(alpha=np.inf), "alpha=inf must be"),
        (LeverageScores(alpha="auto"), "alpha='auto' must be"),
    ],
)
def test_bad_parameters_are_found_before_any_work(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.check(10, StandardMap())


@pytest.mark.parametrize("selector", [*RULES, RPCholesky(weight=np.ones_like), LeverageScores(9)])
def test_good_parameters_pass(selector):
    selector.check(10, StandardMap())
    assert clone(selector).get_params() == selector.get_params()


# ---- randomly pivoted Cholesky ------------------------------------------------------------------


def test_weight_and_sample_weight_multiply_the_chance(rng):
    """With rows that have nothing in common, the first draw shows the weights."""
    X = 100.0 * np.eye(4)
    counts, factor = np.array([1.0, 2.0, 1.0, 4.0]), np.array([0.0, 1.0, 3.0, 1.0])
    problem = problem_of(X, sample_weight=counts)
    selector = RPCholesky(weight=lambda rows: factor[rows.argmax(axis=1)])
    trials = 1500
    first = [selector.select(problem, 1, rng).indices[0] for _ in range(trials)]
    seen = np.bincount(first, minlength=4)
    expected = trials * counts * factor / (counts * factor).sum()
    assert seen[0] == 0
    assert ((seen - expected)[1:] ** 2 / expected[1:]).sum() < chi2.ppf(0.999, 2)


def test_bad_weights_are_refused(rng):
    problem = problem_of(rng.randn(30, 2))
    for bad, message in [
        (lambda X: X[:, 0], "Got 30 weights from -.* for 30 rows; every row needs one, finite"),
        (lambda X: np.ones(3), r"weight returned shape \(3,\) for 30 rows; it must return \(30,\)"),
        (lambda X: X, r"weight returned shape \(30, 2\) for 30 rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            RPCholesky(weight=bad).select(problem, 5, seeded())


# ---- leverage scores ----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 10.0])
@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(0.2)], ids=repr)
def test_scores_of_few_rows_are_exact(kernel, alpha, rng):
    X = rng.randn(200, 3)
    found, _ = leverage_scores(kernel, X, np.ones(200), 20, alpha, seeded())
    np.testing.assert_allclose(found, reference.leverage(kernel(X, X), alpha), rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.3, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_many_rows_are_estimated_within_a_factor(alpha, seed, clusters):
    X, _ = clusters
    kernel = RBF(0.5)
    found, evaluations = leverage_scores(kernel, X, np.ones(len(X)), 100, alpha, seeded(seed))
    ratio = found / reference.leverage(kernel(X, X), alpha)
    assert ratio.min() > 0.8
    assert ratio.max() < 8.0
    assert 1.0 < np.median(ratio) < 3.0
    # each level is half the next, so that all together cost no more than twice the last
    assert evaluations < 2.7 * 256 * len(X)


def test_a_row_that_stands_for_several_has_the_scores_of_all(rng):
    X, counts = rng.randn(60, 3), rng.randint(1, 4, 60)
    kernel, repeated = RBF(0.5), np.repeat(np.arange(60), counts)
    found, _ = leverage_scores(kernel, X, counts.astype(float), 20, 0.5, seeded())
    alone = reference.leverage(kernel(X[repeated], X[repeated]), 0.5)
    np.testing.assert_allclose(found, np.bincount(repeated, alone), rtol=1e-8)


@pytest.mark.parametrize("n", [1, 5, 20, 100])
def test_ridge_suits_the_number_of_landmarks(n, rng):
    """The scores sum to the effective dimension, n / log n, or n / 2 for few landmarks."""
    X = rng.randn(250, 5)
    found, _ = leverage_scores(RBF(0.2), X, np.ones(250), n, None, seeded())
    assert found.sum() == pytest.approx(n / max(np.log(n), 2.0), rel=1e-6)


def test_without_a_suiting_ridge_scores_are_those_of_the_span(rng):
    X = rng.randn(250, 3)
    found, _ = leverage_scores(Linear(), X, np.ones(250), 50, None, seeded())
    Q, _ = np.linalg.qr(X)
    # rounding of k(x, x), some 1e-15, over the least ridge, 1e-8
    np.testing.assert_allclose(found, (Q**2).sum(axis=1), rtol=0, atol=1e-6)


def test_landmarks_are_drawn_in_proportion_to_the_scores(rng):
    X = np.array([0.0, 0.1, 0.2, 0.3, 3.0, 3.1, 9.0])[:, None]
    problem, trials = problem_of(X), 1500
    exact = reference.leverage(problem.kernel(X, X), 0.1)
    selector = LeverageScores(alpha=0.1)
    first = [selector.select(problem, 1, rng).indices[0] for _ in range(trials)]
    expected = trials * exact / exact.sum()
    seen = np.bincount(first, minlength=7)
    assert ((seen - expected) ** 2 / expected).sum() < chi2.ppf(0.999, 6)
    assert expected.max() > 2 * expected.min()


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e-13, 1e16, 1e18, 1e30])
def test_centroids_of_float64_rows_do_not_depend_on_their_unit(scale):
    """Squares of such numbers are out of the range of float32."""
    X = np.random.RandomState(0).randn(200, 3) + np.repeat([[0.0], [20.0]], 100, axis=0)
    expected, _ = centroids(
        factories.blocks(X).gather(np.arange(200)), 5, 6, np.random.RandomState(0)
    )
    rows = factories.blocks(scale * X).gather(np.arange(200))
    found, _ = centroids(rows, 5, 6, np.random.RandomState(0))
    np.testing.assert_allclose(found / scale, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", [Uniform(), KMeans(), GivenLandmarks(np.eye(3))], ids=repr)
def test_rules_without_a_kernel_evaluate_none(rule, rng):
    problem = factories.problem(rng.randn(50, 3))
    assert rule.select(problem, 3, rng).n_kernel_evaluations == 0


def test_classes_without_hardness_need_no_pilot(rng):
    X, y = factories.classes(60)
    rule = ClassCentroids(power=0, share="rows")
    assert rule.select(factories.problem(X, y), 6, rng).n_kernel_evaluations == 0
