"""From rows and landmarks to the start of training, and from trained parameters to a model."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._learning.gradients import Gradient
from nysplus._learning.setup import TrainingSetup, score_unit
from nysplus._learning.training import TrainingOptions
from nysplus._rows.blocks import Block
from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus.kernels import RBF, Matern

D, R, N = 5, 3, 6
KINDS = ["classes", "two", "labels", "values"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [R, D])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [RBF(7.0), Matern(7.0, nu=2.5)], ids=repr)
def test_the_expansion_is_what_was_trained(kind, rank, sparse, kernel, targets_of, rng):
    X = rng.standard_normal((80, D)) * [1e-3, 1.0, 1.0, 50.0, 0.0] + [5.0, 0.0, 0.0, 100.0, 1.0]
    given = sp.csr_matrix(X) if sparse else X
    block = Block(given, np.arange(80), targets_of(kind, 80))
    setup = TrainingSetup.of(block, rank, rng, kernel)
    p = setup.first(setup.coordinates(given[:N]), 0.15)
    p.A[:] += 0.1 * rng.standard_normal(p.A.shape)
    expansion = setup.expansion(p, np.dtype(np.float64), score_unit=2.0)
    expected = Gradient(p, setup.b, 80, setup.rows.shift).scores(setup.rows.X) / 2.0
    if kind == "values":
        expected = expected * block.Y.std(axis=0) + block.Y.mean(axis=0) / 2.0
    np.testing.assert_allclose(expansion(given), expected, rtol=2e-4, atol=2e-5)
    assert expansion.landmarks.shape == (N, rank)
    assert expansion.projection.shape == (D, rank)


def test_values_are_learned_in_their_own_units(rng):
    X, weight = rng.standard_normal((80, D)), rng.randint(1, 4, 80).astype(float)
    Y = np.stack([1e6 + 1e3 * rng.standard_normal(80), 1e-3 * rng.rand(80), np.full(80, 7.0)], 1)
    block = Block(X, np.arange(80), ValueTargets(Y), weight)
    setup = TrainingSetup.of(block, D, rng)
    scaled, share = setup.rows.loss.Y, weight / weight.sum()
    np.testing.assert_allclose(share @ scaled, 0.0, atol=1e-5)
    np.testing.assert_allclose(share @ scaled**2, [1.0, 1.0, 0.0], atol=1e-5)
    expansion = setup.expansion(setup.first(setup.coordinates(X[:N]), 0.15), np.dtype(np.float64))
    # before training, and far from all landmarks ever after
    np.testing.assert_allclose(expansion(X), np.tile(share @ Y, (80, 1)), rtol=1e-12)


def test_the_intercept_is_the_share_of_the_classes(rng):
    X, weight = rng.standard_normal((100, 2)), np.repeat([1.0, 3.0], 50)
    codes = np.repeat([0, 1, 2, 0], [30, 20, 25, 25])
    setup = TrainingSetup.of(Block(X, np.arange(100), ClassTargets(codes, 3), weight), 2, rng)
    np.testing.assert_allclose(np.exp(setup.b), [105 / 200, 20 / 200, 75 / 200], atol=0.01)
    assert np.exp(setup.b).sum() == pytest.approx(1.0)
    two = TrainingSetup.of(Block(X, np.arange(100), ClassTargets(codes // 2, 2), weight), 2, rng)
    assert two.b == pytest.approx([np.log(75 / 125)], abs=0.02)


def test_the_first_width_is_in_units_of_the_nearest_landmarks(targets_of, rng):
    X = rng.standard_normal((200, D))
    setup = TrainingSetup.of(Block(X, np.arange(200), targets_of("classes", 200)), D, rng)
    Z = X[:20]
    p = setup.first(setup.coordinates(Z), 0.15)
    D2 = ((setup.U[:, None] - (Z - setup.mean)) ** 2).sum(axis=2)
    typical = np.median(np.sort(D2, axis=1)[:, :3].mean(axis=1))
    scale = np.sqrt(0.15 / typical)
    np.testing.assert_allclose(p.Z, scale * (Z - setup.mean), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p.P, scale * np.diag(setup.unit), rtol=1e-5)


def test_sparse_rows_train_as_dense_ones_do(rng):
    X, targets = rng.uniform(-2, 2, (300, 6)), ClassTargets(rng.randint(3, size=300), 3)
    rows = sp.csr_matrix(X)
    models = []
    for given in (X, rows):
        block = Block(given, np.arange(300), targets)
        setup = TrainingSetup.of(block, 6, np.random.RandomState(0))
        p = setup.train(
            setup.first(setup.coordinates(X[:15]), 0.15), TrainingOptions(30, 32), seed=0
        )
        models.append(setup.expansion(p, np.dtype(np.float64)))
    np.testing.assert_allclose(models[1](rows), models[0](X), rtol=1e-2, atol=1e-3)


def test_training_continues_with_all_rows(targets_of, rng):
    """Rows that were held out before change the result; `continue_training` starts from it."""
    X = rng.standard_normal((80, D))
    setup = TrainingSetup.of(Block(X, np.arange(80), targets_of("classes", 80)), D, rng)
    options = TrainingOptions(20, 16)
    trained = setup.train(setup.first(setup.coordinates(X[:N]), 0.15), options, 0, np.arange(40))
    found = setup.continue_training(trained, options, 0)
    expected = setup.train(trained, options.continued(), 0, np.arange(80))
    np.testing.assert_array_equal(found.flat, expected.flat)


def test_scores_of_classes_are_at_most_one():
    assert score_unit(np.array([[3.0, -5.0]])) == 5.0
    assert score_unit(np.zeros((2, 1))) > 0.0
