from __future__ import annotations

import numpy as np
import pytest
import reference
from sklearn.kernel_approximation import Nystroem as ScikitNystroem

from nysplus._feature_map import EnsembleMap, RandomizedMap, StandardMap, make_approximation
from nysplus.kernels import RBF, Linear, Sigmoid


def gram(features):
    """What a ridge regression sees of a feature map: inner products."""
    return features @ features.T


@pytest.fixture
def points(rng):
    return rng.rand(40, 3), rng.rand(12, 3)


@pytest.mark.parametrize("rank", [None, 5])
def test_standard_equals_dense_definition(points, rank, rng):
    X, Z = points
    kernel = RBF(2.0)
    features = StandardMap(rank).build(kernel, Z, rng).features(X)
    expected = kernel(X, Z) @ reference.whitening(kernel(Z, Z), rank)
    assert features.shape == expected.shape
    np.testing.assert_allclose(gram(features), gram(expected), atol=1e-9)


def test_ensemble_equals_dense_definition(points, rng):
    X, Z = points
    kernel = RBF(2.0)
    features = EnsembleMap(n_experts=5).build(kernel, Z, rng).features(X)
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
    one = EnsembleMap(n_experts=1).build(RBF(2.0), Z, rng).features(X)
    np.testing.assert_allclose(one, StandardMap().build(RBF(2.0), Z, rng).features(X))


def test_randomized_at_full_rank_is_standard(points, rng):
    X, Z = points
    randomized = RandomizedMap(rank=12).build(RBF(2.0), Z, rng).features(X)
    standard = StandardMap().build(RBF(2.0), Z, rng).features(X)
    np.testing.assert_allclose(gram(randomized), gram(standard), atol=1e-8)


def test_randomized_finds_the_leading_eigenvalues(rng):
    Z = rng.rand(200, 4)
    exact = StandardMap(rank=20).build(RBF(1.0), Z, rng).experts[0].eigenvalues
    sketched = RandomizedMap(rank=20).build(RBF(1.0), Z, rng).experts[0].eigenvalues
    np.testing.assert_allclose(sketched, exact, rtol=1e-3)


def test_randomized_takes_half_the_landmarks_by_default(points, rng):
    assert RandomizedMap().build(RBF(2.0), points[1], rng).rank == 6


def test_features_are_whitened_on_the_landmarks(points, rng):
    _, Z = points
    feature_map = StandardMap().build(RBF(2.0), Z, rng)
    np.testing.assert_allclose(gram(feature_map.features(Z)), RBF(2.0)(Z, Z), atol=1e-8)


@pytest.mark.parametrize("approximation", [StandardMap(), RandomizedMap(), EnsembleMap()])
def test_collapse_is_the_same_function(points, approximation, rng):
    X, Z = points
    feature_map = approximation.build(RBF(2.0), Z, rng)
    W = rng.randn(feature_map.rank, 3)
    np.testing.assert_allclose(
        RBF(2.0)(X, Z) @ feature_map.collapse(W), feature_map.features(X) @ W, atol=1e-9
    )


def test_duplicate_landmarks_are_dropped_not_divided_by(points, rng):
    X, Z = points
    twice = StandardMap().build(RBF(2.0), np.vstack([Z, Z]), rng)
    once = StandardMap().build(RBF(2.0), Z, rng)
    assert twice.rank == once.rank == 12
    np.testing.assert_allclose(gram(twice.features(X)), gram(once.features(X)), atol=1e-7)


def test_a_kernel_of_zeros_has_no_features(rng):
    feature_map = StandardMap().build(Linear(), np.zeros((4, 2)), rng)
    assert feature_map.rank == 0
    assert feature_map.features(np.ones((3, 2))).shape == (3, 0)
    assert not feature_map.allows_float32


@pytest.mark.parametrize("kernel", [RBF(1.0), Sigmoid(1.0, coef0=0.0)], ids=["rbf", "sigmoid"])
def test_same_inner_products_as_scikit_learn(kernel, rng):
    X = rng.randn(60, 3)
    name = type(kernel).__name__.lower()
    peer = ScikitNystroem(kernel=name, gamma=1.0, coef0=0.0, n_components=15, random_state=0).fit(X)
    features = StandardMap().build(kernel, peer.components_, rng).features(X)
    np.testing.assert_allclose(gram(features), gram(peer.transform(X)), atol=1e-6)


def test_float32_is_refused_where_the_spectrum_is_steep(rng):
    assert not StandardMap().build(RBF(0.01), rng.rand(50, 2), rng).allows_float32
    assert StandardMap().build(RBF(1.0), rng.rand(50, 20), rng).allows_float32


def test_float32_is_refused_where_the_kernel_is_narrow(rng):
    Z = 100 * rng.randn(50, 20)  # K = I: no spectrum could be flatter
    assert not StandardMap().build(RBF(1.0), Z, rng).allows_float32
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
