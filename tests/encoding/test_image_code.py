"""Cosines of images, against scipy's discrete cosine transform."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.fft import dctn

from nysplus.encoding.image_code import BLOCK_ROWS, ImageCode, cosines

CODES = [
    ImageCode((8, 8, 1), 5),
    ImageCode((6, 4, 3), 5),
    ImageCode((1, 9, 1), 4),
    ImageCode((3, 5, 2), 7),
]


def images(code, n_rows, seed=0):
    return np.random.RandomState(seed).standard_normal((n_rows, code.n_inputs))


def literal(code, X):
    """Return the first cosines of scipy's transform of each channel."""
    first, second, _ = code.code_shape
    waves = dctn(X.reshape(-1, *code.shape), axes=(1, 2), norm="ortho")
    return waves[:, :first, :second].reshape(len(X), -1)


@pytest.mark.parametrize("code", CODES)
def test_the_code_is_the_cosine_transform(code):
    X = images(code, 20)
    np.testing.assert_allclose(code(X, np.float64), literal(code, X), atol=1e-12)
    assert code(X).dtype == np.float32
    np.testing.assert_allclose(code(X), literal(code, X), atol=1e-6)


@pytest.mark.parametrize("code", CODES)
def test_the_number_of_columns_is_that_of_the_shapes(code):
    h, w, channels = code.shape
    k = code.n_cosines
    assert code.n_inputs == h * w * channels
    assert code.n_columns == min(k, h) * min(k, w) * channels
    assert code(images(code, 0)).shape == (0, code.n_columns)
    assert code.n_bytes == 0


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (7, 3), (28, 28)])
def test_cosines_are_orthonormal(n, k):
    M = cosines(n, k)
    np.testing.assert_allclose(M.T @ M, np.eye(k), atol=1e-14)


def test_all_cosines_keep_distances():
    code = ImageCode((4, 6, 2), 6)
    X = images(code, 10)
    E = code(X, np.float64)
    np.testing.assert_allclose(E @ E.T, X @ X.T, atol=1e-12)


@pytest.mark.parametrize("code", CODES)
def test_images_of_a_code_have_this_code(code):
    E = np.random.RandomState(1).standard_normal((5, code.n_columns))
    np.testing.assert_allclose(code(code.images(E), np.float64), E, atol=1e-12)


def test_blocks_and_types_of_rows_make_no_difference():
    code = ImageCode((5, 4, 1), 3)
    X = np.random.RandomState(0).randint(0, 255, (2 * BLOCK_ROWS + 3, 20)).astype(np.uint8)
    whole = code(X, np.float64)
    for other in (X.astype(np.float32), sp.csr_matrix(X), sp.csr_array(X)):
        np.testing.assert_array_equal(code(other, np.float64), whole)
    rows = [code(X[i : i + 1], np.float64)[0] for i in (0, BLOCK_ROWS, len(X) - 1)]
    np.testing.assert_allclose(rows, whole[[0, BLOCK_ROWS, len(X) - 1]], atol=1e-10)


def test_codes_of_the_same_columns_are_the_same():
    code = ImageCode((4, 4, 1), 4)
    assert code.same(ImageCode((4, 4, 1), 9))
    assert not code.same(ImageCode((4, 4, 1), 3))
    assert not code.same(ImageCode((2, 8, 1), 4))
    assert not code.same(None)
