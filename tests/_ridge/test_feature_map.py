from __future__ import annotations

import numpy as np
import pytest
import reference
from sklearn.kernel_approximation import Nystroem as ScikitNystroem

from nysplus._ridge.feature_map import (
    EnsembleMap,
    RandomizedMap,
    StandardMap,
    _triangular,
    make_approximation,
)
from nysplus.kernels import RBF, AdditiveChi2, FunctionKernel, Linear, Polynomial, Sigmoid


def gram(features):
    """What a ridge regression sees of a feature map: inner products."""
    return features @ features.T


def eigenvalues(feature_map):
    """Those of B whose eigenvectors the only expert of a principal map has kept: λ = 1/‖u/√λ‖²."""
    (expert,) = feature_map.experts
    return 1 / (expert.whitening**2).sum(axis=0)


@pytest.fixture
def points(rng):
    return rng.rand(40, 3), rng.rand(12, 3)


@pytest.mark.parametrize("rank", [None, 5])
def test_standard_equals_dense_definition(points, rank, rng):
    X, Z = points
    kernel = RBF(2.0)
    features = StandardMap(rank).build(kernel, Z, rng).features()(X)
    expected = kernel(X, Z) @ reference.whitening(kernel(Z, Z), rank)
    assert features.shape == expected.shape
    np.testing.assert_allclose(gram(features), gram(expected), atol=1e-9)


def test_ensemble_equals_dense_definition(points, rng):
    X, Z = points
    kernel = RBF(2.0)
    features = EnsembleMap(n_experts=5).build(kernel, Z, rng).features()(X)
    expected = kernel(X, Z) @ reference.ensemble_whitening(kernel(Z, Z), 5)
    np.testing.assert_allclose(gram(features), gram(expected), atol=1e-9)


def test_ensemble_shares_its_rank(points, rng):
    feature_map = EnsembleMap(n_experts=5, rank=7).build(RBF(2.0), points[1], rng)
    assert [expert.whitening.shape[1] for expert in feature_map.experts] == [2, 2, 1, 1, 1]


def test_ensemble_never_has_more_experts_than_landmarks(points, rng):
    feature_map = EnsembleMap(n_experts=50).build(RBF(2.0), points[1], rng)
    assert len(feature_map.experts) == 12


def test_ensemble_of_one_is_standard(points, rng):
    X, Z = points
    one = EnsembleMap(n_experts=1).build(RBF(2.0), Z, rng).features()(X)
    np.testing.assert_allclose(one, StandardMap().build(RBF(2.0), Z, rng).features()(X))


def test_randomized_at_full_rank_is_standard(points, rng):
    X, Z = points
    randomized = RandomizedMap(rank=12).build(RBF(2.0), Z, rng).features()(X)
    standard = StandardMap().build(RBF(2.0), Z, rng).features()(X)
    np.testing.assert_allclose(gram(randomized), gram(standard), atol=1e-8)


def test_randomized_finds_the_leading_eigenvalues(rng):
    Z = rng.rand(200, 4)
    exact = eigenvalues(StandardMap(rank=20).build(RBF(1.0), Z, rng))
    np.testing.assert_allclose(exact, np.linalg.eigvalsh(RBF(1.0)(Z, Z))[::-1][:20], rtol=1e-9)
    sketched = eigenvalues(RandomizedMap(rank=20).build(RBF(1.0), Z, rng))
    np.testing.assert_allclose(sketched, exact, rtol=1e-3)


def test_randomized_takes_half_the_landmarks_by_default(points, rng):
    assert RandomizedMap().build(RBF(2.0), points[1], rng).rank == 6


def test_features_are_whitened_on_the_landmarks(points, rng):
    _, Z = points
    feature_map = StandardMap().build(RBF(2.0), Z, rng)
    np.testing.assert_allclose(gram(feature_map.features()(Z)), RBF(2.0)(Z, Z), atol=1e-8)


@pytest.mark.parametrize("approximation", [StandardMap(), RandomizedMap(), EnsembleMap()])
def test_collapse_is_the_same_function(points, approximation, rng):
    X, Z = points
    feature_map = approximation.build(RBF(2.0), Z, rng)
    W = rng.randn(feature_map.rank, 3)
    np.testing.assert_allclose(
        RBF(2.0)(X, Z) @ feature_map.collapse(W), feature_map.features()(X) @ W, atol=1e-9
    )


def test_duplicate_landmarks_are_dropped_not_divided_by(points, rng):
    X, Z = points
    twice = StandardMap().build(RBF(2.0), np.vstack([Z, Z]), rng)
    once = StandardMap().build(RBF(2.0), Z, rng)
    assert twice.rank == once.rank == 12
    np.testing.assert_allclose(gram(twice.features()(X)), gram(once.features()(X)), atol=1e-7)


def test_a_kernel_of_zeros_has_no_features(rng):
    feature_map = StandardMap().build(Linear(), np.zeros((4, 2)), rng)
    assert feature_map.rank == 0
    assert feature_map.features()(np.ones((3, 2))).shape == (3, 0)
    assert not feature_map.allows_float32


@pytest.mark.parametrize("kernel", [RBF(1.0), Sigmoid(1.0, coef0=0.0)], ids=["rbf", "sigmoid"])
def test_same_inner_products_as_scikit_learn(kernel, rng):
    X = rng.randn(60, 3)
    name = type(kernel).__name__.lower()
    peer = ScikitNystroem(kernel=name, gamma=1.0, coef0=0.0, n_components=15, random_state=0).fit(X)
    features = StandardMap().build(kernel, peer.components_, rng).features()(X)
    np.testing.assert_allclose(gram(features), gram(peer.transform(X)), atol=1e-6)


def test_float32_is_refused_where_the_spectrum_is_steep(rng):
    assert not StandardMap().build(RBF(0.01), rng.rand(50, 2), rng).allows_float32
    assert StandardMap().build(RBF(1.0), rng.rand(50, 20), rng).allows_float32


@pytest.mark.parametrize(("noise", "allowed"), [(6e-6, True), (2.4e-5, False)])
def test_the_error_up_to_which_features_are_float32(rng, noise, allowed):
    """With linear landmarks a and a + b the smallest eigenvalue of B is about b² / 2."""
    step = np.finfo(np.float32).eps / noise * np.sqrt(2.0)
    Z = np.array([[1.0, 0.0], [1.0, step]], dtype=np.float32)
    feature_map = StandardMap().build(Linear(), Z, rng)
    assert feature_map.float32_noise == pytest.approx(noise, rel=0.1)
    assert feature_map.allows_float32 == allowed


def test_float32_is_refused_where_the_kernel_is_narrow(rng):
    Z = 100 * rng.randn(50, 20)  # K = I: no spectrum could be flatter
    assert not StandardMap().build(RBF(0.005), Z, rng).allows_float32
    assert StandardMap().build(RBF(1e-5), Z, rng).allows_float32


def test_names_and_errors():
    assert isinstance(make_approximation("ensemble"), EnsembleMap)
    assert make_approximation(StandardMap(rank=3)).rank == 3
    with pytest.raises(ValueError, match=r"approximation='fast' is not known.*'standard'"):
        make_approximation("fast")
    with pytest.raises(ValueError, match="rank=11 exceeds the 10 landmarks"):
        StandardMap(rank=11).check(10)
    with pytest.raises(ValueError, match="rank=0 must be an integer of at least 1 or None"):
        RandomizedMap(rank=0).check(10)
    with pytest.raises(ValueError, match="n_iter=-1 must be an integer of at least 0"):
        RandomizedMap(n_iter=-1).check(10)
    with pytest.raises(ValueError, match="n_experts=0 must be an integer of at least 1"):
        EnsembleMap(n_experts=0).check(10)
    with pytest.raises(ValueError, match="rank=3 leaves some of the 5 experts"):
        EnsembleMap(rank=3).check(10)


# ---- whitening three ways ----------------------------------------------------------------------


def test_triangular_pivoted_and_principal_whitening_span_the_same(points, rng):
    X, Z = points
    kernel = RBF(2.0)
    maps = {
        "triangular": StandardMap().build(kernel, Z, rng),
        "principal": StandardMap().build(kernel, Z, rng, principal=True),
        # a landmark of each kind twice, out of order: B is singular
        "pivoted": StandardMap().build(kernel, np.vstack([Z[3:9], Z]), rng),
    }
    assert [m.experts[0].triangular for m in maps.values()] == [True, False, True]
    assert len(maps["pivoted"].experts[0].columns) == len(Z)
    assert [m.rank for m in maps.values()] == [12, 12, 12]
    expected = gram(kernel(X, Z) @ reference.whitening(kernel(Z, Z)))
    for name, feature_map in maps.items():
        got = gram(feature_map.features()(X))
        np.testing.assert_allclose(got, expected, atol=1e-9, err_msg=name)


def test_dependent_landmarks_are_dropped_not_divided_by(rng):
    """A linear kernel in three dimensions has three features, however many landmarks."""
    X, Z = rng.randn(20, 3), rng.randn(50, 3)
    feature_map = StandardMap().build(Linear(), Z, rng)
    assert feature_map.rank == 3
    assert feature_map.smallest > 1e-3
    np.testing.assert_allclose(gram(feature_map.features()(X)), X @ X.T, atol=1e-9)


def test_principal_whitening_is_that_of_the_definition(points, rng):
    _, Z = points
    kernel = RBF(2.0)
    got = StandardMap().build(kernel, Z, rng, principal=True).experts[0].whitening
    expected = reference.whitening(kernel(Z, Z))
    np.testing.assert_allclose(np.abs(got), np.abs(expected), atol=1e-8)
    strengths = eigenvalues(StandardMap().build(kernel, Z, rng, principal=True))
    assert (np.diff(strengths) < 0).all()


@pytest.mark.parametrize("principal", [False, True])
def test_smallest_is_the_smallest_kept_eigenvalue(points, principal, rng):
    Z = points[1]
    B = 3.0 * RBF(2.0)(Z, Z)
    kernel = FunctionKernel(lambda X, Z: 3.0 * RBF(2.0)(X, Z), vectorized=True)
    feature_map = StandardMap().build(kernel, Z, rng, principal)
    exact = np.linalg.eigvalsh(B)[0] / 3.0  # in units of B's diagonal
    assert exact * (1 - 1e-6) <= feature_map.smallest <= 1.1 * exact
    truncated = StandardMap(rank=4).build(kernel, Z, rng)
    assert truncated.smallest == pytest.approx(np.linalg.eigvalsh(B)[-4] / 3.0, rel=1e-9)


MAPS = [
    StandardMap(),
    StandardMap(rank=7),
    RandomizedMap(),
    EnsembleMap(),
    EnsembleMap(n_experts=3, rank=8),
]


@pytest.mark.parametrize("approximation", MAPS, ids=repr)
def test_products_with_the_whitening_are_those_of_the_dense_matrix(points, approximation, rng):
    X, Z = points
    feature_map = approximation.build(RBF(2.0), Z, rng)
    k = feature_map.rank
    T = np.zeros((12, k))  # Â, written out
    stop = 0
    for expert in feature_map.experts:
        start, stop = stop, stop + expert.whitening.shape[1]
        T[expert.columns, start:stop] = expert.whitening
    assert stop == k
    K, G, W = RBF(2.0)(X, Z), rng.randn(12, 5), rng.randn(k, 3)
    size = np.abs(T).max()
    np.testing.assert_allclose(feature_map.columns(np.float64)(X), K, rtol=1e-12)
    np.testing.assert_allclose(feature_map.whitener(np.float64)(K), K @ T, atol=1e-12 * size)
    np.testing.assert_allclose(feature_map.features()(X), K @ T, atol=1e-12 * size)
    np.testing.assert_allclose(feature_map.transposed(G), T.T @ G, atol=1e-12 * size)
    fortran = np.asfortranarray(G)
    np.testing.assert_allclose(feature_map.transposed(fortran), T.T @ G, atol=1e-12 * size)
    np.testing.assert_allclose(feature_map.collapse(W), T @ W, atol=1e-12 * size)
    single = feature_map.features(np.float32)(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, K @ T, atol=1e-5 * size)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40])
def test_panels_of_a_triangular_whitening_leave_nothing_out(n, rng):
    Z, X = rng.rand(n, 6), rng.rand(5, 6)
    feature_map = StandardMap().build(RBF(1.0), Z, rng)
    assert feature_map.experts[0].triangular
    expected = RBF(1.0)(X, Z) @ feature_map.experts[0].whitening
    np.testing.assert_allclose(feature_map.features()(X), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(1.0), AdditiveChi2(), Polynomial(1.0, coef0=-1.0, degree=2)],
    ids=["sigmoid", "chi2", "polynomial"],
)
def test_indefinite_kernels_count_their_eigenvalues_by_size(kernel, rng):
    X, Z = rng.rand(20, 3), rng.rand(10, 3)
    B = kernel(Z, Z)
    values, vectors = np.linalg.eigh(B)
    assert values.min() < 0 < values.max()
    feature_map = StandardMap().build(kernel, Z, rng)
    assert not feature_map.experts[0].triangular
    kept = np.abs(values) > 10 * np.finfo(float).eps * np.abs(values).max()
    T = vectors[:, kept] / np.sqrt(np.abs(values[kept]))
    assert feature_map.rank == kept.sum()
    np.testing.assert_allclose(
        gram(feature_map.features()(X)), gram(kernel(X, Z) @ T), rtol=1e-6, atol=1e-6
    )


def test_repeated_landmarks_of_an_indefinite_kernel(rng):
    """The negative directions stay: a pivoted Cholesky factorisation would lose them."""
    Z = rng.randn(10, 3)
    once = StandardMap().build(Sigmoid(1.0), Z, rng)
    twice = StandardMap().build(Sigmoid(1.0), np.vstack([Z, Z]), rng)
    assert twice.rank == once.rank == 10


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_factors_of_nearly_singular_matrices_are_refused_at_every_scale(size):
    """The smallest eigenvalue must exceed n · eps · trace."""
    eps = np.finfo(np.float64).eps
    assert _triangular(size * np.diag([1.0, 3 * eps])) is not None
    assert _triangular(size * np.diag([1.0, 1.5 * eps])) is None
