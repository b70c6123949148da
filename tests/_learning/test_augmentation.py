"""Changed images, against scipy's affine maps and the code without changes."""

from __future__ import annotations

from dataclasses import replace

import factories
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.ndimage import affine_transform

from nysplus._learning.augmentation import (
    AFFINE_RULES,
    AffineImages,
    AffineRules,
    Augmentation,
    resampling,
)
from nysplus._learning.setup import TrainingSetup
from nysplus._rows.projected import project
from nysplus.encoding.image_code import ImageCode

CODE = ImageCode((7, 6, 1), 4)
STILL = AffineRules(n_maps=3, shift=0.0, degrees=0.0, scale=0.0, shear=0.0)


def images(code, n_rows, seed=0):
    return np.random.RandomState(seed).rand(n_rows, code.n_inputs).astype(np.float32)


def augmentation(X, augment, code=CODE, **more):
    """Return the augmentation of images, and the setup of training on their codes."""
    y = np.arange(X.shape[0]) % 3
    rows = project(code(X.toarray() if sp.issparse(X) else X), None, more.get("center"))
    block = factories.blocks(rows, y).gather(np.arange(len(y)))
    setup = TrainingSetup.of(block, 2, np.random.RandomState(0))
    return Augmentation(factories.blocks(X, y), augment, code, **more), setup


def test_the_maps_are_affine(rng):
    h, w = 9, 7
    image = rng.rand(h, w)
    M = np.array([[0.9, 0.2], [-0.1, 1.05]])
    shift, center = np.array([0.7, -1.2]), np.array([(h - 1) / 2, (w - 1) / 2])
    expected = affine_transform(
        image, M, offset=center + shift - M @ center, order=1, mode="nearest"
    )
    found = (resampling(h, w, M, shift) @ image.ravel()).reshape(h, w)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_shift_by_whole_pixels_moves_them(rng):
    image = rng.rand(5, 6)
    moved = (resampling(5, 6, np.eye(2), np.array([1.0, 2.0])) @ image.ravel()).reshape(5, 6)
    np.testing.assert_allclose(moved[:-1, :-2], image[1:, 2:], atol=1e-15)


@pytest.mark.parametrize("code", [CODE, ImageCode((4, 5, 3), 3)])
def test_maps_that_change_nothing_give_the_code(code):
    X = images(code, 11)
    same = AffineImages.draw(code, np.random.RandomState(0), STILL)
    np.testing.assert_allclose(same(X, np.random.RandomState(0)), code(X), atol=1e-5)


@pytest.mark.parametrize("code", [CODE, ImageCode((4, 5, 3), 3)])
def test_parts_of_a_batch_go_through_maps_of_the_plane(code):
    """A dense product is the cosines of each channel of the changed image."""
    rules = AffineRules(n_maps=1)
    X = images(code, 6)
    maps = AffineImages.draw(code, np.random.RandomState(3), rules)
    rng = np.random.RandomState(3)
    angle = np.deg2rad(rng.uniform(-10, 10))
    shear, scale = rng.uniform(-0.1, 0.1), 1 + rng.uniform(-0.08, 0.08, 2)
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    M = turned @ np.array([[1, shear], [0, 1]]) @ np.diag(scale)
    h, w, channels = code.shape
    R = resampling(h, w, M, rng.uniform(-1.5 / 28, 1.5 / 28, 2) * [h, w])
    planes = X.reshape(6, h * w, channels)
    changed = np.stack([R @ planes[:, :, c].T for c in range(channels)], axis=-1)
    expected = code(changed.transpose(1, 0, 2).reshape(6, -1))
    np.testing.assert_allclose(maps(X, np.random.RandomState(0)), expected, atol=1e-5)


def test_maps_of_large_images_are_fewer():
    few = replace(AFFINE_RULES, memory_share=1e-5)
    assert len(AffineImages.draw(CODE, np.random.RandomState(0), few).maps) < 10
    assert len(AffineImages.draw(CODE, np.random.RandomState(0), AFFINE_RULES).maps) == 150


def test_a_batch_differs_from_the_next():
    X = images(CODE, 40)
    maps = AffineImages.draw(CODE, np.random.RandomState(0), AFFINE_RULES)
    rng = np.random.RandomState(0)
    first, second = maps(X, rng), maps(X, rng)
    assert np.abs(first - second).max() > 0.05
    np.testing.assert_array_equal(first, maps(X, np.random.RandomState(0)))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, np.float64])
@pytest.mark.parametrize("centred", [False, True])
def test_unchanged_images_are_the_training_rows(make, centred, rng):
    """Code, centre and units are those of the fit."""
    X = make(images(CODE, 60))
    center = rng.rand(16) if centred else None
    augment, setup = augmentation(X, lambda images, rng: images, center=center)
    batches = augment.batches(setup, np.arange(60), rng)
    some = np.array([5, 3, 40])
    np.testing.assert_allclose(batches(some, rng), setup.rows.X[some], atol=1e-4)
    assert batches(some, rng).dtype == np.float32


def test_a_function_gets_images_and_random_numbers(rng):
    X = images(CODE, 60)
    seen = []

    def brighter(some, rng):
        seen.append(some.shape)
        return some + rng.rand()

    augment, setup = augmentation(X, brighter)
    batches = augment.batches(setup, np.arange(60), rng)
    found = batches(np.arange(8), np.random.RandomState(1))
    code = CODE(X[:8] + np.random.RandomState(1).rand())
    np.testing.assert_allclose(found, (code - setup.mean) / setup.unit, atol=1e-4)
    assert seen == [(8, 42)]


def test_a_function_must_return_as_many_images(rng):
    augment, setup = augmentation(images(CODE, 60), lambda images, rng: images[:, :-1])
    batches = augment.batches(setup, np.arange(60), rng)
    with pytest.raises(ValueError, match=r"augment has returned an array of the shape \(8, 41\)"):
        batches(np.arange(8), rng)
