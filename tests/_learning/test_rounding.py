"""Numbers of few bits: scales, rounding during training, and the stored model."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus._bytes.budget import Budget, ModelShape, PartBits
from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.rounding import Rounding, closest_scales, round_columns
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.training import TrainingOptions
from nysplus._rows.blocks import Block
from nysplus._rows.targets import ClassTargets
from nysplus.expansion import largest_integer
from nysplus.kernels import RBF

D, R, N = 5, 3, 6
KINDS = ["classes", "two", "labels", "values"]
UNITS = np.array([0.1, 1.0, 1.0, 50.0, 2.0])


def _errors(columns, scale, bits):
    return ((round_columns(columns, scale, bits, np.empty_like(columns)) - columns) ** 2).sum(0)


@pytest.mark.parametrize("bits", range(2, 9))
def test_scales_change_columns_least(bits, rng):
    columns = rng.standard_normal((200, 3)) * [1.0, 1e-6, 1e6]
    columns[0] *= 20.0  # outliers, which are worth clipping where steps are coarse
    scales = closest_scales(columns, bits)
    whole = np.abs(columns).max(axis=0) / largest_integer(bits)
    assert (_errors(columns, scales, bits) <= _errors(columns, whole, bits)).all()
    assert (scales <= whole).all()
    if bits < 5:
        assert (scales < whole).any()


def test_columns_of_zeros_stay_zeros():
    columns = np.zeros((4, 2), dtype=np.float32)
    scales = closest_scales(columns, 4)
    assert (scales > 0).all()
    np.testing.assert_array_equal(round_columns(columns, scales, 4, columns.copy()), columns)


@pytest.mark.parametrize("bits", [PartBits(2, 3, 4), PartBits(6, 5, 4), PartBits()])
def test_rounded_parameters_are_integers_times_scales(bits, rng):
    parts = (rng.standard_normal(shape) for shape in ((D, R), (N, R), (N, 2)))
    p = Parameters.of(*parts, np.float32)
    rounding = Rounding(p, bits, UNITS)
    p.flat[:] *= 1.5  # scales follow the numbers
    rounding.update(p)
    q = rounding.result()
    stored = q.P / UNITS[:, None], q.Z, q.A
    scales = q.scales.map, q.scales.landmarks, q.scales.coefficients
    for part, scale, n_bits in zip(stored, scales, bits, strict=True):
        integers = part / scale
        np.testing.assert_allclose(integers, np.rint(integers), atol=1e-3)
        assert np.abs(np.rint(integers)).max() <= largest_integer(n_bits)
    np.testing.assert_allclose(q.Z, p.Z, atol=1.5 * np.abs(p.Z).max() / 2 ** (bits.landmarks - 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [PartBits(3, 4, 5), PartBits()])
def test_the_stored_model_is_what_was_trained(kind, bits, targets_of, rng):
    X = rng.standard_normal((80, D)) * UNITS + [5.0, 0.0, 0.0, 100.0, 1.0]
    block = Block(X, np.arange(80), targets_of(kind, 80))
    setup = TrainingSetup.of(block, R, rng, RBF(1.0))
    p = setup.train(
        setup.first(setup.coordinates(X[:N]), 0.15), TrainingOptions(50, 32, bits=bits), seed=0
    )
    expansion = setup.expansion(p, np.dtype(np.float64), score_unit=2.0)
    expected = Gradient(p, setup.b, 80).scores(setup.rows.X) / 2.0
    if kind == "values":
        expected = expected * block.Y.std(axis=0) + block.Y.mean(axis=0) / 2.0
    np.testing.assert_allclose(expansion(X), expected, rtol=2e-4, atol=2e-5)
    packed = expansion.packed
    found = (packed.projection, packed.landmarks, packed.dual_coef)
    assert tuple(part.bits for part in found) == bits
    shape = ModelShape(R, block.Y.shape[1], (D, R))
    assert expansion.n_bytes == shape.bytes_in(bits, N)


def test_as_many_landmarks_as_there_is_room_for():
    shape, bits = ModelShape(7, 3, (11, 7)), PartBits(5, 3, 4)
    for n_bytes in range(150, 400, 7):
        n = Budget(n_bytes).landmarks_in(shape, bits)
        assert n == 0 or shape.bytes_in(bits, n) <= n_bytes
        assert shape.bytes_in(bits, n + 1) > n_bytes


def test_rounding_while_training_is_better_than_rounding_afterwards(moons):
    X, y = moons
    block = Block(X, np.arange(len(X)), ClassTargets(y, 2))
    setup = TrainingSetup.of(block, 2, np.random.RandomState(0), RBF(1.0))
    first, bits = setup.first(setup.coordinates(X[:20]), 0.15), PartBits(3, 3, 3)

    def loss(options):
        p = setup.train(first, options, seed=0)
        if p.scales is None:
            afterwards = Rounding(p, bits, setup.unit)
            afterwards.update(p)
            p = afterwards.rounded
        scores = Gradient(p, setup.b, len(X)).scores(setup.rows.X)
        return setup.rows.loss.losses(scores, 0.0).mean()

    assert loss(TrainingOptions(400, 64, bits=bits)) < 0.8 * loss(TrainingOptions(400, 64))
