"""The encoder of images as a transformer of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.fft import dctn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from nysplus.encoding import ImageEncoder


# checks have rows of many widths
@parametrize_with_checks([ImageEncoder((-1, 1)), ImageEncoder((1, -1, 1), n_cosines=2)])
def test_contract(estimator, check):
    check(estimator)


def test_the_first_cosines_of_digits(digits):
    X, _ = digits
    found = ImageEncoder((8, 8), n_cosines=3).fit_transform(X)
    expected = dctn(X.reshape(-1, 8, 8), axes=(1, 2), norm="ortho")[:, :3, :3]
    np.testing.assert_allclose(found, expected.reshape(-1, 9), atol=1e-6)
    assert found.dtype == np.float32


def test_sparse_rows_become_dense(digits):
    X, _ = digits
    encoder = ImageEncoder((8, 8)).fit(sp.csr_matrix(X))
    np.testing.assert_array_equal(encoder.transform(sp.csr_matrix(X)), encoder.transform(X))


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((2, 2), ["cosine 0 0", "cosine 0 1", "cosine 1 0", "cosine 1 1"]),
        ((1, 2, 2), [f"cosine 0 {j} channel {c}" for j in (0, 1) for c in (0, 1)]),
    ],
)
def test_columns_have_names(shape, names):
    X = np.random.RandomState(0).rand(5, 4)
    encoder = ImageEncoder(shape).set_output(transform="pandas")
    assert list(encoder.fit_transform(X).columns) == names
    assert encoder.get_feature_names_out().tolist() == names


def test_a_size_of_minus_one_follows_from_the_columns(rng):
    X = rng.rand(4, 24)
    fitted = ImageEncoder((4, -1, 3)).fit(X)
    assert fitted.code_.shape == (4, 2, 3)
    np.testing.assert_array_equal(fitted.transform(X), ImageEncoder((4, 2, 3)).fit_transform(X))


@pytest.mark.parametrize(
    ("n_bytes", "k"),
    [(None, 16), (1, 8), (4096, 8), (4097, 10), (8192, 10), (8193, 12), (10**6, 12)],
)
def test_automatic_cosines_follow_the_budget(n_bytes, k):
    assert ImageEncoder((28, 28)).code(784, n_bytes).code_shape == (k, k, 1)
    assert ImageEncoder((5, 28)).code(140, n_bytes).code_shape == (5, k, 1)
    assert ImageEncoder((28, 28), n_cosines=9).code(784, n_bytes).code_shape == (9, 9, 1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"shape": 28}, "shape=28 must be height and width"),
        ({"shape": (28,)}, "must be height and width"),
        ({"shape": (4, 4, 4, 4)}, "must be height and width"),
        ({"shape": (0, 4)}, "must be height and width"),
        ({"shape": (-1, -1)}, "One of them may be -1"),
        ({"shape": (4.0, 4)}, "must be height and width"),
        ({"shape": "ab"}, "must be height and width"),
        ({"shape": (4, 4), "n_cosines": "all"}, "n_cosines='all' is not known"),
        ({"shape": (4, 4), "augment": "flip"}, "augment='flip' is not known"),
        ({"shape": (4, 4), "augment": 3}, "augment=3 is not known"),
        ({"shape": (4, 4), "n_cosines": 0}, "n_cosines=0 must be an integer of at least 1"),
    ],
)
def test_parameters_are_checked_before_any_work(params, message):
    with pytest.raises(ValueError, match=message):
        ImageEncoder(**params).check()
    with pytest.raises(ValueError, match=message):
        ImageEncoder(**params).fit(np.ones((3, 16)))


@pytest.mark.parametrize(
    ("shape", "allowed"), [((4, 5), "have 20"), ((4, 5, -1), "a multiple of 20")]
)
def test_another_number_of_columns_raises(shape, allowed):
    with pytest.raises(ValueError, match=f"X has 16 features.*{allowed}.*Pass rows"):
        ImageEncoder(shape).fit(np.ones((3, 16)))


def test_gaps_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        ImageEncoder((1, 2)).fit([[1.0, np.nan]])


def test_in_a_pipeline(digits):
    X, y = digits
    model = make_pipeline(ImageEncoder((8, 8), n_cosines=6), LogisticRegression(max_iter=500))
    assert clone(model).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
