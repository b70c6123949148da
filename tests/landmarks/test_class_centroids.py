"""Class centroids, and the default rule that is made of them."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import pairwise_distances

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._ridge.feature_map import StandardMap
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, IndicatorTargets, ValueTargets
from nysplus.kernels import RBF, Chi2, FunctionKernel, Linear
from nysplus.landmarks import Auto, ClassCentroids, Landmarks, Problem
from nysplus.landmarks.auto import CANDIDATES, EVERY_ALPHA, _most_accurate
from nysplus.landmarks.class_centroids import _hardness, share_out

ALPHAS = (1e-3, 1e-1, 10.0)


def problem_of(X, targets, kernel=None, **weights):
    return Problem(Blocks(X, targets, **weights), kernel or RBF(1.0), StandardMap(), ALPHAS)


@pytest.fixture
def overlapping(rng):
    """Three classes of different sizes on a line; 0 and 1 overlap, 2 is far away."""
    y = np.repeat([0, 1, 2], [300, 200, 100])
    return rng.randn(600, 2) * 0.7 + np.array([[0, 0], [1.5, 0], [9, 0]])[y], y


# ---- sharing out -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "masses", "sizes", "expected"),
    [
        (10, [6, 3, 1], [100, 100, 100], [6, 3, 1]),
        (10, [98, 1, 1], [100, 100, 100], [8, 1, 1]),  # one each at least
        (10, [98, 1, 1], [4, 100, 100], [4, 3, 3]),  # no more than there are rows
        (2, [1, 5, 3], [100, 100, 100], [0, 1, 1]),  # fewer than classes: the heaviest
        (3, [1, 5, 3], [100, 0, 100], [1, 0, 2]),  # a class without rows gets none
        (7, [1, 1, 1], [100, 100, 100], [3, 2, 2]),
        (9, [1, 1], [4, 4], [4, 4]),
    ],
)
def test_shares(n, masses, sizes, expected):
    got = share_out(n, np.array(masses, dtype=float), np.array(sizes))
    assert sorted(got) == sorted(expected)
    assert got.tolist() == expected or len(set(masses)) < len(masses)


@pytest.mark.parametrize("seed", range(20))
def test_shares_add_up_and_follow_the_masses(seed):
    rng = np.random.RandomState(seed)
    k = rng.randint(2, 30)
    masses, sizes = rng.rand(k) ** 3 + 1e-3, rng.randint(1, 200, k)
    n = rng.randint(k, sizes.sum() + 1)
    got = share_out(n, masses, sizes)
    assert got.sum() == n
    assert (got >= 1).all()
    assert (got <= sizes).all()
    free = (got < sizes) & (got > 1)
    # among classes that no bound holds, none is further from its part than rounding
    wanted = masses[free] / masses[free].sum() * got[free].sum()
    assert (np.abs(got[free] - wanted) <= 2).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-50, 1.0, 1e14, 1e200])
def test_only_ratios_of_masses_count(scale):
    rng = np.random.RandomState(0)
    masses, sizes = rng.rand(6) ** 8, rng.randint(1, 60, 6)
    for n in (7, 20, sizes.sum() - 1, sizes.sum()):
        got = share_out(int(n), scale * masses, sizes)
        assert got.sum() == n
        np.testing.assert_array_equal(got, share_out(int(n), masses, sizes))


@pytest.mark.parametrize("weight", [1e-50, 1e12, 1e14])
@pytest.mark.parametrize("rule", ["auto", "class-centroids", "kmeans"])
def test_weights_of_any_size(rule, weight, overlapping):
    X, y = overlapping
    model = NystroemClassifier(45, selection=rule, alpha=weight, random_state=0)
    landmarks = model.fit(X, y, np.full(600, weight)).landmarks_
    assert landmarks.shape == (45, 2)
    expected = model.set_params(alpha=1.0).fit(X, y).landmarks_
    np.testing.assert_allclose(landmarks, expected, atol=1e-6)


def test_as_many_landmarks_as_rows_of_the_pool():
    X = np.random.RandomState(0).randn(44, 3)
    y = np.r_[0, np.ones(43)]
    for seed in range(5):
        model = NystroemClassifier(40, gamma="auto", alpha=1.0, random_state=seed).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.slow
def test_sparse_rows_stay_sparse():
    """2000 rows of 20000 features hold half a megabyte; a dense class would be 160."""
    X = sp.random(2000, 20_000, 0.001, "csr", random_state=0)
    tracemalloc.start()
    try:
        NystroemClassifier(20, alpha=1.0, random_state=0).fit(X, np.arange(2000) % 2)
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()


# ---- class centroids ---------------------------------------------------------------------------


def test_every_landmark_is_a_mean_of_rows_of_one_class(overlapping):
    X, y = overlapping
    points = (
        ClassCentroids()
        .select(problem_of(X, ClassTargets(y, 3)), 30, np.random.RandomState(0))
        .points
    )
    assert points.shape == (30, 2)
    far = points[:, 0] > 5
    assert 1 <= far.sum() < 10  # an easy class needs few
    assert not ((points[:, 0] > 4.5) & (points[:, 0] < 6.5)).any()


def test_hardness_is_the_distance_from_the_target(rng):
    X, y = rng.randn(5, 2), np.array([0, 1, 2, 1, 0])
    scores = rng.uniform(-1, 1, (5, 3))
    block = Blocks(X, ClassTargets(y, 3)).gather(np.arange(5))
    np.testing.assert_allclose(_hardness(block, scores), (1 - scores[np.arange(5), y]) / 2)
    # a third of the error, in units of the root mean squared error
    Y, weight = rng.randn(5, 2), np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    block = Blocks(X, ValueTargets(Y), sample_weight=weight).gather(np.arange(5))
    squares = ((Y - scores[:, :2]) ** 2).sum(axis=1)
    expected = np.sqrt(squares / np.average(squares, weights=weight)) / 3
    np.testing.assert_allclose(_hardness(block, scores[:, :2]), expected)
    np.testing.assert_array_equal(_hardness(block, Y), 0.0)


def test_the_pool_has_hardness_between_its_limits(overlapping):
    X, y = overlapping
    rule, problem = ClassCentroids(n_initial=30), problem_of(X, ClassTargets(y, 3))
    pool = rule.pool(problem, 20, np.random.RandomState(0))
    assert pool.hardness.min() == 0.05
    assert 0.5 < pool.hardness.max() <= 1.0
    far = pool.hardness[pool.rows.targets.codes == 2].mean()
    assert far < 0.7 * pool.hardness[pool.rows.targets.codes == 1].mean()


@pytest.mark.parametrize(("n", "groups"), [(1, 1), (3, 1), (4, 2), (100, 10)])
def test_groups_of_values_have_two_landmarks_or_more(n, groups, rng):
    X = rng.randn(200, 2)
    rule, problem = ClassCentroids(n_initial=10), problem_of(X, ValueTargets(X[:, :1]))
    pool = rule.pool(problem, n, np.random.RandomState(0))
    assert np.unique(pool.group).tolist() == list(range(groups))


def test_hard_classes_get_more_landmarks(overlapping):
    X, y = overlapping
    problem = problem_of(X, ClassTargets(y, 3))

    def far(selector):
        points = selector.select(problem, 30, np.random.RandomState(0)).points
        return int((points[:, 0] > 5).sum())

    assert far(ClassCentroids()) < far(ClassCentroids(power=0, share="rows"))
    assert far(ClassCentroids(power=0, share="rows")) == 5
    assert far(ClassCentroids(power=0, share="root")) > 5


def test_weights_draw_centroids_towards_the_boundary(overlapping):
    X, y = overlapping
    problem = problem_of(X, ClassTargets(y, 3))

    def gap(power):
        """Mean distance to the line between classes 0 and 1."""
        distances = []
        for seed in range(10):
            points = (
                ClassCentroids(power=power).select(problem, 20, np.random.RandomState(seed)).points
            )
            distances.append(np.abs(points[points[:, 0] < 5, 0] - 0.75).mean())
        return np.mean(distances)

    assert gap(2.0) < gap(0.5) < gap(0.0)


def test_fewer_landmarks_than_classes(overlapping):
    X, y = overlapping
    points = (
        ClassCentroids()
        .select(problem_of(X, ClassTargets(y, 3)), 2, np.random.RandomState(0))
        .points
    )
    assert (points[:, 0] < 5).all()  # the easy class is the one without
    np.testing.assert_allclose(sorted(points[:, 0]), [0.2, 1.3], atol=0.4)


def test_weights_equal_repeated_rows_where_nothing_is_drawn(overlapping):
    X, y = overlapping
    weight = np.where(np.arange(600) % 3 == 0, 2.0, 1.0)
    rule = ClassCentroids(power=0, share="rows")
    weighted = problem_of(X, ClassTargets(y, 3), sample_weight=weight)
    rows = np.repeat(np.arange(600), weight.astype(int))
    repeated = problem_of(X[rows], ClassTargets(y[rows], 3))
    one, other = (
        rule.select(problem, 3, np.random.RandomState(0)).points for problem in (weighted, repeated)
    )
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("convert", "kernel"),
    [
        (sp.csr_matrix, RBF(1.0)),
        (np.asarray, FunctionKernel(lambda A, B: RBF(1.0)(A, B), vectorized=True)),
    ],
    ids=["sparse", "function"],
)
@pytest.mark.parametrize("rule", [ClassCentroids(), Auto()], ids=["class-centroids", "auto"])
def test_landmarks_that_must_be_rows_are_the_nearest_ones(rule, convert, kernel, overlapping):
    X, y = overlapping
    got = rule.select(
        problem_of(convert(X), ClassTargets(y, 3), kernel), 20, np.random.RandomState(0)
    )
    dense = got.points.toarray() if sp.issparse(got.points) else got.points
    np.testing.assert_array_equal(dense, X[got.indices])
    assert len(set(got.indices.tolist())) == len(got.indices) > 15
    if isinstance(rule, ClassCentroids) and not sp.issparse(got.points):
        centroids = rule.select(
            problem_of(X, ClassTargets(y, 3)), 20, np.random.RandomState(0)
        ).points
        nearest = pairwise_distances(centroids, X).argmin(axis=1)
        assert len({*nearest} & {*got.indices}) >= 15  # of the same cluster, so nearly always


def test_multilabel_rows_are_grouped_by_their_labels(rng):
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])
    Y = corners[rng.randint(0, 3, 300)]
    X = 4 * Y + rng.randn(300, 2)
    points = (
        ClassCentroids()
        .select(problem_of(X, IndicatorTargets(Y)), 12, np.random.RandomState(0))
        .points
    )
    assert {tuple(np.sign(point)) for point in points} == {tuple(corner) for corner in corners}


def test_combinations_beyond_the_limit_share_a_group(rng):
    Y = np.where(rng.rand(200, 5) > 0.5, 1.0, -1.0)
    groups = IndicatorTargets(Y).groups(4)
    assert {*groups} == {0, 1, 2, 3}
    alone = [{tuple(row) for row in Y[groups == group]} for group in range(3)]
    assert all(len(combination) == 1 for combination in alone)


def test_values_are_grouped_by_quantiles(rng):
    values = rng.randn(1000) ** 3
    groups = ValueTargets(values[:, None]).groups(10)
    assert np.bincount(groups).tolist() == [100] * 10
    order = np.argsort(values)
    assert (np.diff(groups[order]) >= 0).all()
    assert {*ValueTargets(np.ones((5, 2))).groups(10)} <= {0, 1}


def test_values_get_landmarks_where_errors_are(rng):
    """A wave on the right half only: the flat half needs next to none."""
    X = rng.rand(2000, 1) * 10
    y = np.where(X > 5, np.sin(6 * X), 0.0)
    problem = problem_of(X, ValueTargets(y), RBF(5.0))
    points = (
        ClassCentroids(power=1, n_initial=20).select(problem, 40, np.random.RandomState(0)).points
    )
    assert (points > 5).mean() > 0.6


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (ClassCentroids(power=-1), "power=-1 must be a finite number of at least 0"),
        (ClassCentroids(power=np.inf), "power=inf must be"),
        (ClassCentroids(share="equal"), "share='equal' is not known.*'hardness'"),
        (ClassCentroids(n_initial=0), "n_initial=0 must be"),
        (ClassCentroids(max_iter=0), "max_iter=0 must be"),
        (ClassCentroids(max_rows=2.5), "max_rows=2.5 must be"),
    ],
)
def test_bad_parameters(selector, message):
    X, y = make_moons(50, random_state=0)
    with pytest.raises(ValueError, match=message):
        NystroemClassifier(5, selection=selector).fit(X, y)


# ---- auto --------------------------------------------------------------------------------------


def test_auto_keeps_the_best_of_its_candidates(overlapping):
    X, y = overlapping
    problem = problem_of(X, ClassTargets(y, 3))
    got = Auto().select(problem, 12, np.random.RandomState(0)).points
    rng = np.random.RandomState(0)
    pool = CANDIDATES[0].pool(problem, 12, rng)
    candidates = [rule.cluster(problem, pool, 12, rng).points for rule in CANDIDATES]
    pilot = replace(problem, blocks=pool.rows.blocks(), alphas=ALPHAS[::EVERY_ALPHA])
    scores = [pilot.fit(points, rng, with_score=True).score for points in candidates]
    assert len(scores) == 4
    np.testing.assert_array_equal(got, candidates[int(np.argmax(scores))])
    assert min(scores) < max(scores)  # there was a choice


def test_auto_compares_its_candidates_with_a_single_ridge(overlapping):
    """There is no ridge to choose, and the candidates are scored all the same."""
    X, y = overlapping
    problem = replace(problem_of(X, ClassTargets(y, 3)), alphas=(1e-2,))
    pool = CANDIDATES[0].pool(problem, 6, np.random.RandomState(1))
    candidates = [
        Landmarks(np.repeat(X[:1], 6, axis=0)),  # tells no class from another
        Landmarks(X[[0, 100, 300, 400, 500, 550]]),
    ]
    for order in (candidates, candidates[::-1]):
        best = _most_accurate(problem, pool, order, np.random.RandomState(2))
        np.testing.assert_array_equal(best.points, candidates[1].points)


def test_auto_with_many_landmarks_is_class_centroids(overlapping):
    X, y = overlapping
    problem = problem_of(X, ClassTargets(y, 3))
    for n, same in ((60, True), (40, True), (39, False)):
        one = Auto().select(problem, n, np.random.RandomState(3))
        other = ClassCentroids().select(problem, n, np.random.RandomState(3))
        # with few landmarks a model is fitted to each of several candidates
        assert (one.n_kernel_evaluations == other.n_kernel_evaluations) is same
        assert np.array_equal(one.points, other.points) or not same


@pytest.mark.parametrize("n", [20, 100])
def test_auto_beats_uniform_rows(n):
    X, y = load_digits(return_X_y=True)
    got = {
        rule: np.mean([
            NystroemClassifier(n, selection=rule, random_state=seed)
            .fit(X[:1200], y[:1200])
            .score(X[1200:], y[1200:])
            for seed in range(3)
        ])
        for rule in ("auto", "uniform", "negative-margin")
    }  # fmt: skip
    assert got["auto"] > got["uniform"] + 0.005
    assert got["auto"] > got["negative-margin"] + 0.005


def test_auto_for_values_lowers_the_error(rng):
    X = rng.rand(3000, 3)
    y = np.sin(8 * X[:, 0]) + 0.3 * np.cos(5 * X[:, 1])  # the third feature does not matter
    errors = {}
    for rule in ("auto", "kmeans", "uniform"):
        model = NystroemRegressor(30, selection=rule, random_state=0).fit(X[:2000], y[:2000])
        errors[rule] = np.sqrt(np.mean((model.predict(X[2000:]) - y[2000:]) ** 2))
    assert errors["auto"] < 0.6 * min(errors["kmeans"], errors["uniform"])


def test_auto_for_values_of_noise_is_no_worse_than_its_start(rng):
    X, y = rng.rand(600, 4), rng.randn(600)
    fresh, truth = rng.rand(2000, 4), 0.0
    errors = {
        rule: np.sqrt(np.mean([
            np.mean((
                NystroemRegressor(40, selection=rule, random_state=seed).fit(X, y).predict(fresh)
                - truth
            ) ** 2)
            for seed in range(4)
        ]))
        for rule in ("auto", "kmeans")
    }  # fmt: skip
    assert errors["auto"] < errors["kmeans"] + 0.1


@pytest.mark.parametrize("kernel", [Linear(), Chi2(1.0), RBF(1.0)], ids=["linear", "chi2", "rbf"])
def test_auto_for_values_with_any_kernel(kernel, rng):
    X, Y = rng.rand(300, 3), rng.randn(300, 2)
    model = NystroemRegressor(10, kernel=kernel, random_state=0).fit(X, Y)
    assert model.landmarks_.shape == (10, 3)
    assert model.predict(X).shape == (300, 2)


def test_auto_for_values_of_sparse_rows_takes_rows(rng):
    X = sp.random(300, 20, density=0.3, format="csr", random_state=0)
    model = NystroemRegressor(15, random_state=0).fit(X, np.asarray(X.sum(axis=1)).ravel())
    assert sp.issparse(model.landmarks_)
    assert (X[model.landmark_indices_] != model.landmarks_).nnz == 0


def test_auto_without_targets_takes_sparse_rows(rng):
    X = sp.random(60, 20, density=0.3, format="csr", random_state=0)
    got = Auto().select(problem_of(X, None), 7, rng)
    assert len(np.unique(got.indices)) == 7
    assert (X[got.indices] != got.points).nnz == 0


# ---- members ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_landmarks_are_the_means_of_their_members(overlapping, weighted):
    X, y = overlapping
    weight = np.random.RandomState(1).randint(1, 4, 600).astype(float) if weighted else None
    problem = problem_of(X, ClassTargets(y, 3), sample_weight=weight)
    found = ClassCentroids().select(problem, 12, np.random.RandomState(0))
    members = found.members
    # a share is that of one observation: rows of weight three have three
    parts = members.share * members.rows.counts
    for number, z in enumerate(found.points):
        own = members.landmark == number
        np.testing.assert_allclose(parts[own].sum(), 1.0)
        np.testing.assert_allclose(parts[own] @ members.rows.X[own], z, atol=1e-9)


def test_landmarks_that_are_rows_have_no_members(overlapping):
    X, y = overlapping
    problem = problem_of(sp.csr_matrix(X), ClassTargets(y, 3))
    assert ClassCentroids().select(problem, 12, np.random.RandomState(0)).members is None


def test_rows_that_have_not_moved_landmarks_have_no_share(rng):
    X = rng.rand(500, 3)
    problem = problem_of(X, ValueTargets(np.sin(X @ [1.0, 2.0, 3.0])[:, None]))
    members = Auto().select(problem, 15, rng).members
    assert len(members.rows) == 100
    assert not members.share.any()
