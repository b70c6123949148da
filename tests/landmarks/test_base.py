from __future__ import annotations

import itertools
from functools import partial

import factories
import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone

from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.accumulators import TopRows
from nysplus._rows.targets import ClassTargets, IndicatorTargets
from nysplus.kernels import RBF
from nysplus.landmarks import (
    SELECTORS,
    GivenLandmarks,
    KMeans,
    NegativeMargin,
    SupervisedKMeans,
    SupportCentroids,
    Uniform,
    make_selector,
    select_landmarks,
)

GAMMA, ALPHA = 2.0, 1e-3


problem_of = partial(factories.problem, kernel=RBF(GAMMA), alphas=(ALPHA,))


@pytest.fixture
def three_classes(rng):
    y = rng.randint(0, 3, 120)
    return rng.randn(120, 2) * 0.8 + np.array([[0, 0], [2, 0], [0, 2]])[y], y


ROW_RULES = [Uniform(), NegativeMargin(), NegativeMargin(n_initial=10)]
ALL_RULES = [*ROW_RULES, KMeans(), SupervisedKMeans(), SupportCentroids()]


@pytest.mark.parametrize("selector", ROW_RULES, ids=repr)
@pytest.mark.parametrize("n", [1, 20, 119])
def test_rows_are_distinct_and_their_own(selector, n, three_classes):
    X, y = three_classes
    got = selector.select(problem_of(X, y), n, np.random.RandomState(0))
    assert len(set(got.indices.tolist())) == n
    np.testing.assert_array_equal(got.points, X[got.indices])


@pytest.mark.parametrize("selector", ALL_RULES, ids=repr)
def test_same_seed_same_landmarks_whatever_the_block_size(selector, three_classes):
    X, y = three_classes
    once = selector.select(problem_of(X, y), 20, np.random.RandomState(0))
    with config_context(working_memory=0.01):  # a few rows a block
        again = selector.select(problem_of(X, y), 20, np.random.RandomState(0))
    np.testing.assert_allclose(again.points, once.points, rtol=1e-12)
    other = selector.select(problem_of(X, y), 20, np.random.RandomState(1))
    assert not np.array_equal(other.points, once.points)


@pytest.mark.parametrize("selector", ALL_RULES, ids=repr)
def test_sparse_rows_give_the_same_landmarks(selector, three_classes):
    X, y = three_classes
    dense = selector.select(problem_of(X, y), 12, np.random.RandomState(0)).points
    sparse = selector.select(problem_of(sp.csr_matrix(X), y), 12, np.random.RandomState(0)).points
    sparse = sparse.toarray() if sp.issparse(sparse) else sparse
    np.testing.assert_allclose(sparse, dense, atol=1e-7)


@pytest.mark.parametrize("selector", ROW_RULES, ids=repr)
def test_rows_without_weight_are_never_chosen(selector, three_classes):
    X, y = three_classes
    weight = (np.arange(len(X)) % 2).astype(float)
    got = selector.select(problem_of(X, y, sample_weight=weight), 40, np.random.RandomState(0))
    assert (got.indices % 2 == 1).all()


def test_uniform_draws_as_scikit_learn_does(rng):
    X = rng.rand(50, 2)
    rows = Uniform().select(factories.problem(X), 7, np.random.RandomState(3)).indices
    np.testing.assert_array_equal(rows, np.random.RandomState(3).permutation(50)[:7])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [5, 30])
def test_negative_margin_with_all_rows_is_literal_algorithm_1(three_classes, n_classes, n):
    X, y = three_classes
    X, y = X[y < n_classes], y[y < n_classes]
    selector = NegativeMargin(n_initial=len(X))
    got = selector.select(problem_of(X, y), n, np.random.RandomState(0)).indices
    expected = reference.algorithm_1(X, y, GAMMA, ALPHA, np.arange(len(X)), n)
    assert set(got.tolist()) == expected


def test_negative_margin_with_few_initial_rows_is_literal_algorithm_1(three_classes):
    X, y = three_classes
    first = np.random.RandomState(0).permutation(len(X))[:15]
    got = NegativeMargin(n_initial=15).select(problem_of(X, y), 20, np.random.RandomState(0))
    assert set(got.indices.tolist()) == reference.algorithm_1(X, y, GAMMA, ALPHA, first, 20)


def test_one_pilot_serves_many_sizes(three_classes):
    X, y = three_classes
    problem, selector = problem_of(X, y), NegativeMargin(n_initial=15)
    rng = np.random.RandomState(0)
    pilot = selector.pilot(problem, 40, rng)
    for n in (5, 40):
        apart = selector.choose(problem, pilot, n, rng).indices
        together = selector.select(problem, n, np.random.RandomState(0)).indices
        np.testing.assert_array_equal(apart, together)


def test_pilot_has_its_own_map(three_classes):
    X, y = three_classes
    problem = problem_of(X, y)
    pilot = NegativeMargin(15, StandardMap(rank=3)).pilot(problem, 20, np.random.RandomState(0))
    first = problem.blocks.gather(np.random.RandomState(0).permutation(len(X))[:15]).X
    expected = fit_expansion(
        problem.blocks,
        first,
        problem.kernel,
        StandardMap(rank=3),
        (ALPHA,),
        np.random.RandomState(0),
    )
    np.testing.assert_array_equal(pilot.expansion.dual_coef, expected.expansion.dual_coef)
    full = NegativeMargin(15).pilot(problem, 20, np.random.RandomState(0))
    assert not np.allclose(full.expansion.dual_coef, pilot.expansion.dual_coef)


def test_multilabel_margin_is_that_of_the_worst_label():
    targets = IndicatorTargets(np.array([[1.0, -1.0], [1.0, 1.0]]))
    scores = np.array([[0.5, 0.2], [2.0, -0.3]])
    np.testing.assert_array_equal(targets.negative_margins(scores), [0.2, 0.3])


def test_support_centroids_prefer_the_boundary(rng):
    X = rng.randn(600, 2) + np.repeat([[-3, 0], [3, 0]], 300, axis=0)
    y = np.repeat([0, 1], 300)
    problem = problem_of(X, y)
    seeds = [np.random.RandomState(seed) for seed in range(20)]
    support = [SupportCentroids().select(problem, 10, seed).points for seed in seeds]
    plain = [KMeans().select(problem, 10, seed).points for seed in seeds]
    assert support[0].shape == (10, 2)
    assert np.abs(np.array(support)[:, :, 0]).min(axis=1).mean() < 0.8 * (
        np.abs(np.array(plain)[:, :, 0]).min(axis=1).mean()
    )


def test_votes_are_majorities():
    labels = ClassTargets(np.array([0, 2, 2, 1, 1, 0]), 3)
    cluster = np.array([0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(labels.vote(cluster, np.ones(6)).codes, [2, 1])
    heavy = np.array([5.0, 1, 1, 1, 1, 5])
    np.testing.assert_array_equal(labels.vote(cluster, heavy).codes, [0, 0])
    several = IndicatorTargets(np.array([[1.0, -1], [1, 1], [-1, 1]]))
    voted = several.vote(np.array([0, 0, 0]), np.ones(3)).Y
    np.testing.assert_array_equal(voted, [[1, 1]])


def test_supervised_kmeans_clusters_only_hard_rows(three_classes):
    X, y = three_classes
    problem = problem_of(X, y)
    selector = SupervisedKMeans(n_initial=20, n_candidates=10)
    points = selector.select(problem, 10, np.random.RandomState(0)).points
    rng = np.random.RandomState(0)
    pilot = selector.pilot(problem, 10, rng)
    margins = problem.blocks.targets.negative_margins(pilot.expansion(X))
    hardest = X[np.argsort(-margins)[:10]]  # ten clusters of ten rows: the rows themselves
    np.testing.assert_allclose(np.sort(points, axis=0), np.sort(hardest, axis=0), atol=1e-12)


@pytest.mark.parametrize("selector", [KMeans(), SupportCentroids(), SupervisedKMeans()], ids=repr)
def test_centroid_rules_survive_rows_that_are_all_equal(selector):
    X, y = np.ones((30, 2)), np.arange(30) % 2
    points = selector.select(problem_of(X, y), 4, np.random.RandomState(0)).points
    np.testing.assert_allclose(points, 1.0)


def test_more_landmarks_than_rows_takes_all_rows_and_warns(three_classes):
    X, y = three_classes
    problem = problem_of(X, y)
    with pytest.warns(UserWarning, match="n_components=200 exceeds the 120 rows"):
        got = select_landmarks(NegativeMargin(), problem, 200, np.random.RandomState(0))
    np.testing.assert_array_equal(got.indices, np.arange(120))
    exact = select_landmarks(NegativeMargin(), problem, 120, np.random.RandomState(0))
    assert len(exact.indices) == 120


def test_largest_breaks_ties_by_position():
    scores = np.array([1.0, 3.0, 3.0 + 1e-12, 2.0])
    np.testing.assert_array_equal(TopRows.of(3, scores, slice(0, 4)).best(), [1, 2, 3])


def test_largest_of_blocks_is_the_largest_of_all(rng):
    scores = np.round(rng.randn(5000), 1)
    scores[::7] = -np.inf
    for cuts in ([], [1], [100, 101, 3000], list(range(50, 5000, 50))):
        found = TopRows.zero(37)
        for start, stop in itertools.pairwise([0, *cuts, 5000]):
            found += TopRows.of(37, scores[start:stop], slice(start, stop))
        expected = np.argsort(-scores, kind="stable")[:37]
        np.testing.assert_array_equal(found.best(), expected)


def test_selectors_are_parameters_like_any_other():
    selector = clone(NegativeMargin(n_initial=5)).set_params(n_initial=7)
    assert repr(selector) == "NegativeMargin(n_initial=7)"


def test_make_selector():
    assert isinstance(make_selector([[1.0, 2.0]]), GivenLandmarks)
    for name in SELECTORS:
        assert isinstance(make_selector(name), SELECTORS[name])
    for bad in ("best", None, 3, [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"selection=.* is not known.*'negative-margin'"):
            make_selector(bad)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (NegativeMargin(n_initial=0), "n_initial=0 must be an integer of at least 1 or None"),
        (NegativeMargin(n_initial=2.5), "n_initial=2.5 must be an integer"),
        (NegativeMargin(5, StandardMap(rank=6)), "rank=6 exceeds the 5 landmarks"),
        (NegativeMargin(approximation="fast"), "approximation='fast' is not known"),
        (SupervisedKMeans(n_candidates=9), "n_candidates=9 rows cannot form 10 clusters"),
        (SupportCentroids(n_initial=31), "n_initial=31 exceeds the 30 centroids"),
        (SupportCentroids(oversampling=0), "oversampling=0 must be"),
        (KMeans(max_rows=0), "max_rows=0 must be"),
    ],
)
def test_bad_parameters_are_found_before_any_work(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.check(10, StandardMap())
