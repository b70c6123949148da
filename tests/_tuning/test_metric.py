"""Slopes of kernels, gradients of models, and the metric that is learned from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.blocks import Blocks
from nysplus._rows.projected import project, projected
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus._tuning.metric import (
    LearnedMetric,
    Metric,
    MetricSearch,
    choose_map,
    learn_metric,
    make_metric,
    through,
)
from nysplus._tuning.outer_product import gradient_outer_product, metric_of
from nysplus._tuning.width import tune_kernel
from nysplus.expansion import KernelExpansion
from nysplus.kernels import KERNELS, RBF, FunctionKernel, Laplacian, Matern
from nysplus.landmarks import GivenLandmarks, KMeans, Problem, Uniform

SMOOTH = [RBF(0.7), Matern(0.7, nu=1.5), Matern(0.7, nu=2.5)]
D, R = 4, 3
PROJECTIONS = {"none": None, "diagonal": (D,), "square": (D, D), "narrow": (D, R)}


# ---- slopes -------------------------------------------------------------------------------------


def _gradient(function, x, step=1e-5):
    """Central differences, coordinate by coordinate."""
    moves = step * np.eye(len(x))
    return np.array([(function(x + e) - function(x - e)) / (2 * step) for e in moves])


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_slopes_equal_finite_differences(kernel, rng):
    X, Z = rng.standard_normal((5, D)), rng.standard_normal((3, D))
    slopes = kernel.slopes(X, Z)
    assert slopes.shape == (5, 3)
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            expected = _gradient(lambda a, z=z: kernel(a[None], z[None])[0, 0], x)
            np.testing.assert_allclose(slopes[i, j] * (x - z), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_slopes_are_finite_at_the_landmark_and_the_same_for_sparse_rows(kernel, rng):
    X = sp.random(8, D, 0.5, format="csr", random_state=0)
    dense = kernel.slopes(X.toarray(), X[:3].toarray())
    assert np.isfinite(dense).all()
    assert (dense < 0).all()
    np.testing.assert_allclose(kernel.slopes(X, X[:3]), dense, rtol=1e-9)


def test_kernels_tell_whether_they_have_slopes():
    smooth = {name for name, kind in KERNELS.items() if kind().differentiable}
    assert smooth == {"rbf", "matern"}
    assert not Matern(nu=0.5).differentiable
    for kernel in (Laplacian(1.0), Matern(1.0, nu=0.5), FunctionKernel(np.dot)):
        with pytest.raises(NotImplementedError, match="RBF has slopes, and Matern"):
            kernel.slopes(np.ones((2, 2)), np.ones((2, 2)))


# ---- the average gradient outer product ---------------------------------------------------------


def _expansion(kernel=None, projection=None, n=7, L=3):
    rng = np.random.RandomState(1)
    P = None if projection is None else rng.standard_normal(projection)
    Z = rng.standard_normal((n, D if P is None else P.shape[-1]))
    return KernelExpansion(kernel or RBF(0.3), Z, rng.standard_normal((n, L)), np.ones(L), P)


def _literal(expansion, X, weight):
    """Return the product by its definition, with gradients from finite differences."""
    M = np.zeros((X.shape[1],) * 2)
    for x, w in zip(X, weight, strict=True):
        J = _gradient(lambda a: expansion(a[None])[0], x)  # (d, L)
        M += w * J @ J.T
    return M / weight.sum()


@pytest.mark.parametrize("projection", PROJECTIONS.values(), ids=PROJECTIONS)
@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_outer_product_equals_its_definition(projection, kernel, weighted, rng):
    X = rng.standard_normal((12, D))
    weight = rng.choice([0.0, 0.5, 3.0], 12) if weighted else None
    expansion = _expansion(kernel, projection)
    M = gradient_outer_product(expansion, X, weight)
    expected = _literal(expansion, X, np.ones(12) if weight is None else weight)
    np.testing.assert_allclose(M, expected, rtol=1e-6, atol=1e-8)
    diagonal = gradient_outer_product(expansion, X, weight, diagonal_only=True)
    np.testing.assert_allclose(diagonal, np.diagonal(M), rtol=1e-12)


@pytest.mark.parametrize("projection", PROJECTIONS.values(), ids=PROJECTIONS)
@pytest.mark.parametrize("diagonal_only", [False, True])
def test_blocks_threads_and_sparse_rows_change_nothing(projection, diagonal_only, rng):
    X, expansion = rng.standard_normal((200, D)), _expansion(None, projection)
    whole = gradient_outer_product(expansion, X, None, diagonal_only)
    sparse = sp.csr_matrix(X)
    np.testing.assert_allclose(
        gradient_outer_product(expansion, sparse, None, diagonal_only), whole, rtol=1e-10
    )
    with threadpool_limits(2, user_api="blas"), config_context(working_memory=0.01):
        cut = gradient_outer_product(expansion, X, None, diagonal_only)
    np.testing.assert_allclose(cut, whole, rtol=1e-10)


def test_sparse_landmarks_and_float32(rng):
    X, expansion = rng.standard_normal((40, D)), _expansion()
    M = gradient_outer_product(expansion, X)
    sparse = replace(expansion, landmarks=sp.csr_matrix(expansion.landmarks))
    np.testing.assert_allclose(gradient_outer_product(sparse, sp.csr_matrix(X)), M, rtol=1e-10)
    single = replace(expansion, dual_coef=expansion.dual_coef.astype(np.float32))
    of_single = gradient_outer_product(single, X.astype(np.float32))
    assert of_single.dtype == np.float64
    np.testing.assert_allclose(of_single, M, rtol=1e-4, atol=1e-5)


def test_rows_far_from_the_origin(rng):
    """Differences of rows count, and do not cancel."""
    X, expansion = rng.standard_normal((40, D)), _expansion()
    far = replace(expansion, landmarks=expansion.landmarks + 1e6)
    np.testing.assert_allclose(
        gradient_outer_product(far, X + 1e6), gradient_outer_product(expansion, X), rtol=1e-7
    )


# ---- from the product to a map ------------------------------------------------------------------


def _positive(rng):
    G = rng.standard_normal((50, D)) * [1.0, 2.0, 0.1, 5.0]
    return G.T @ G


def _scaled(M):
    return M * len(M) / np.trace(M) + 1e-3 * np.eye(len(M))


def test_full_map_gives_the_distances_of_the_matrix(rng):
    M = _positive(rng)
    P = metric_of(M, "full")
    assert P.shape == (D, D)
    np.testing.assert_allclose(P, P.T, atol=1e-12)
    np.testing.assert_allclose(P @ P.T, _scaled(M), rtol=1e-9, atol=1e-12)


def test_diagonal_map_is_the_root_of_the_diagonal(rng):
    M = _positive(rng)
    expected = np.sqrt(np.diagonal(_scaled(M)))
    np.testing.assert_allclose(metric_of(M, "diagonal"), expected)
    np.testing.assert_allclose(metric_of(np.diagonal(M), "diagonal"), expected)


@pytest.mark.parametrize("rank", [1, 2, D])
def test_a_rank_keeps_the_strongest_directions(rank, rng):
    M = _positive(rng)
    P = metric_of(M, rank)
    assert P.shape == (D, rank)
    values, vectors = np.linalg.eigh(_scaled(M))
    best = (vectors[:, -rank:] * values[-rank:]) @ vectors[:, -rank:].T
    np.testing.assert_allclose(P @ P.T, best, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["diagonal", "full", 2])
def test_a_constant_function_leaves_distances_alone(kind):
    P = metric_of(np.zeros((D, D)), kind)
    P = np.diag(P) if P.ndim == 1 else P
    np.testing.assert_allclose(np.linalg.svd(P, compute_uv=False), 1.0, rtol=1e-3)


def test_product_is_not_changed(rng):
    M = _positive(rng)
    before = M.copy()
    for kind in ("diagonal", "full", 2):
        metric_of(M, kind)
    np.testing.assert_array_equal(M, before)


# ---- parameters ---------------------------------------------------------------------------------


def test_make_metric():
    assert make_metric(None) is None
    for kind in ("diagonal", "full", 3, np.int64(3)):
        assert make_metric(kind).kind == kind
    own = LearnedMetric("full", n_rounds=3)
    assert make_metric(own) is own
    assert clone(own).get_params() == {"kind": "full", "n_rounds": 3, "max_rows": 12_000}
    assert [make_metric(kind).rounds for kind in ("diagonal", "full", 2)] == [2, 1, 2]


@pytest.mark.parametrize("metric", ["diag", "", 0, -1, True, 1.5, np.eye(2), object()])
def test_other_metrics_are_refused(metric):
    with pytest.raises(ValueError, match="Allowed are None, 'diagonal', 'full', an integer"):
        make_metric(metric)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (LearnedMetric("diag"), "kind='diag' is not known"),
        (LearnedMetric(0), "kind=0 is not known"),
        (LearnedMetric(n_rounds=0), "n_rounds=0 must be"),
        (LearnedMetric(n_rounds=6), "n_rounds=6 is more than 5"),
        (LearnedMetric(max_rows=4), "max_rows=4 must be an integer of at least 8"),
        (LearnedMetric(11), "11 directions exceed the 10 features"),
    ],
)
def test_parameters_are_checked(metric, said):
    with pytest.raises(ValueError, match=said):
        metric.check(RBF(), 10)


@pytest.mark.parametrize("kernel", [Laplacian(), Matern(nu=0.5)], ids=repr)
def test_kernels_without_gradients_are_refused(kernel):
    with pytest.raises(ValueError, match=r"Use RBF, or Matern with nu=1\.5 or 2\.5"):
        LearnedMetric().check(kernel, 10)
    LearnedMetric(n_rounds=5).check(Matern(), 10)


@pytest.mark.parametrize("kind", ["full", 20])
def test_matrices_of_many_features_are_refused(kind):
    with pytest.raises(ValueError, match="up to 4096 features are allowed"):
        LearnedMetric(kind).check(RBF(), 4097)
    LearnedMetric(kind).check(RBF(), 4096)
    LearnedMetric().check(RBF(), 5000)


def test_given_landmarks_go_behind_the_map(rng):
    points, P = rng.standard_normal((5, D)), rng.standard_normal((D, R))
    np.testing.assert_allclose(through(GivenLandmarks(points), P).points, points @ P)
    assert through(GivenLandmarks(points), None).points is points
    uniform = Uniform()
    assert through(uniform, P) is uniform


# ---- learning -----------------------------------------------------------------------------------


ALPHAS = (1e-3, 1e-1, 10.0)


def _relevant(N=2000, d=20, seed=0):
    """Two classes that five of the features tell apart, and not by a plane."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((N, d))
    a, b, c, e, f = X[:, :5].T
    return X, (np.sin(2 * a) + b * c + e**2 - 1 + f > 0).astype(int)


def _values(N=600, d=8, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((N, d))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2])[:, None]


def _learned(X, targets, metric, n=60, selector=None, kernel=None, alphas=None, **weights):
    blocks = Blocks(X, targets, **weights)
    problem = Problem(blocks, kernel or RBF(), StandardMap(), alphas or ALPHAS)
    return learn_metric(problem, selector or KMeans(), n, metric, np.random.RandomState(0))


def _scores(found, X, targets, X_test, n):
    """Return the scores of the final model on other rows."""
    blocks, rng = projected(Blocks(X, targets), found.projection), np.random.RandomState(0)
    points = KMeans().select(Problem(blocks, found.kernel, StandardMap(), ALPHAS), n, rng).points
    fit = fit_expansion(blocks, points, found.kernel, StandardMap(), ALPHAS, rng)
    return replace(fit.expansion, projection=found.projection)(X_test)


def test_gradients_find_the_features_that_matter():
    X, y = _relevant()
    blocks = Blocks(X, ClassTargets(y, 2))
    fit = fit_expansion(blocks, X[:150], RBF(0.03), StandardMap(), (1.0,), np.random.RandomState(0))
    strength = gradient_outer_product(fit.expansion, X, diagonal_only=True)
    assert strength[:5].min() > 1.5 * strength[5:].max()


@pytest.mark.parametrize(("kind", "gain"), [("diagonal", 0.08), ("full", 0.04), (5, 0.04)])
def test_a_learned_metric_beats_plain_distances(kind, gain):
    X, y = _relevant()
    X_test, y_test = _relevant(4000, seed=1)
    targets = ClassTargets(y, 2)
    found = _learned(X, targets, LearnedMetric(kind), 100)
    problem = Problem(Blocks(X, targets), RBF(), StandardMap(), ALPHAS)
    plain = tune_kernel(problem, KMeans(), 100, np.random.RandomState(0))
    before, after = (
        ((_scores(one, X, targets, X_test, 100)[:, 0] > 0) == y_test).mean()
        for one in (Metric(None, plain, ()), found)
    )
    assert after > before + gain
    assert found.projection.shape == {"diagonal": (20,), "full": (20, 20), 5: (20, 5)}[kind]
    if kind == "diagonal":
        assert found.projection[:5].min() > 1.5 * found.projection[5:].max()


def test_values_are_predicted_better_too():
    X, Y = _values(2000)
    X_test, Y_test = _values(1000, seed=1)
    found = _learned(X, ValueTargets(Y), LearnedMetric(n_rounds=3), kernel=Matern(nu=2.5))
    assert isinstance(found.kernel, Matern)
    assert len(found.errors) == 5
    assert min(found.errors[2:]) < 0.7 * min(found.errors[:2])
    error = ((_scores(found, X, ValueTargets(Y), X_test, 60) - Y_test) ** 2).mean()
    assert error < 0.5 * Y_test.var()


@pytest.mark.parametrize("kind", ["diagonal", "full", 8])
def test_a_metric_of_larger_error_is_used_only_for_its_rank(kind):
    X, Y = _values()
    problem = Problem(Blocks(X, ValueTargets(Y)), RBF(), StandardMap(), ALPHAS)
    search = MetricSearch.begin(problem, KMeans(), 60, 12_000, np.random.RandomState(0))
    starts = [search.score(None), search.score(1 / X.std(axis=0))]
    blind = search.score(np.r_[1e-3, np.ones(7)])  # hides the feature that matters most
    found = choose_map(starts, [blind], kind)
    assert found.errors == (*(start.error for start in starts), blind.error)
    assert blind.error > max(found.errors[:2])
    best = blind if kind == 8 else starts[int(np.argmin(found.errors))]
    assert found.projection is best.projection
    assert found.kernel is best.width.kernel


def test_a_rank_is_kept_even_if_all_directions_are_better():
    X, Y = _values()
    found = _learned(X, ValueTargets(Y), LearnedMetric(1))
    assert found.projection.shape == (8, 1)
    assert min(found.errors[2:]) > min(found.errors[:2])


@pytest.mark.parametrize("kind", ["diagonal", "full", 3])
def test_units_of_the_features_do_not_matter(kind):
    """Metres or millimetres: the start of unit variance is the better one, and rounds follow."""
    X, Y = _values()
    powers = np.array([3, -3, 0, 2, -2, 1, 4, -4])
    images, found = [], []
    for units in (10.0**powers, 10.0**-powers):
        found.append(_learned(X * units, ValueTargets(Y), LearnedMetric(kind)))
        assert found[-1].errors[1] < found[-1].errors[0]
        images.append(project(X * units, found[-1].projection))
    np.testing.assert_allclose(found[0].errors[1:], found[1].errors[1:], rtol=1e-6)
    K = [one.kernel(image[:50], image[50:90]) for one, image in zip(found, images, strict=True)]
    np.testing.assert_allclose(*K, rtol=1e-5, atol=1e-7)


def test_constant_features_and_float32_rows():
    X, Y = _values()
    X = np.c_[X, np.full(len(X), 0.1), np.zeros(len(X))].astype(np.float32)
    found = _learned(X, ValueTargets(Y), LearnedMetric())
    assert found.projection.dtype == np.float32
    assert np.isfinite(found.projection).all()
    assert found.projection[-2:].max() < 0.1 * found.projection[:3].min()


@pytest.mark.parametrize("kind", ["diagonal", "full", 3])
def test_sparse_rows_have_the_metric_of_dense_ones(kind):
    X, Y = _values()
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    # one ridge, because rounding decides between ridges of nearly equal errors
    options = {"selector": Uniform(), "alphas": (1e-2,)}
    dense = _learned(X, ValueTargets(Y), LearnedMetric(kind), **options)
    sparse = _learned(sp.csr_matrix(X), ValueTargets(Y), LearnedMetric(kind), **options)
    # the map of the smallest error is kept; iterations amplify the rounding of those after it
    kept = int(np.argmin(dense.errors)) + 1
    np.testing.assert_allclose(sparse.errors[:kept], dense.errors[:kept], rtol=1e-6)
    np.testing.assert_allclose(sparse.errors, dense.errors, rtol=1e-3)
    np.testing.assert_allclose(np.abs(sparse.projection), np.abs(dense.projection), rtol=1e-4)


def test_given_landmarks_serve_every_round():
    X, Y = _values()
    found = _learned(X, ValueTargets(Y), LearnedMetric("full"), selector=GivenLandmarks(X[:60]))
    assert min(found.errors[2:]) < min(found.errors[:2])


def test_the_same_seed_gives_the_same_metric():
    X, Y = _values()
    first, second = (_learned(X, ValueTargets(Y), LearnedMetric(max_rows=400)) for _ in range(2))
    np.testing.assert_array_equal(first.projection, second.projection)
    assert first.errors == second.errors


def test_too_few_rows_and_no_targets_are_refused(rng):
    X = rng.standard_normal((20, 3))
    weight = np.r_[np.ones(7), np.zeros(13)]
    with pytest.raises(ValueError, match="7 rows with a positive weight, too few"):
        _learned(X, ValueTargets(X[:, :1]), LearnedMetric(), sample_weight=weight)
    with pytest.raises(ValueError, match=r"there are none\. Pass y"):
        _learned(X, None, LearnedMetric())
    found = _learned(X[:8], ValueTargets(X[:8, :1]), LearnedMetric(), n=3)
    assert np.isfinite(found.errors).all()
