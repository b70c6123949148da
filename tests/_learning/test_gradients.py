"""Gradients of the losses: finite differences, sparse rows, weights, single precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._learning.gradients import Gradient, Parameters
from nysplus._learning.losses import Squared, loss_of
from nysplus.kernels import RBF, Matern

ROWS, D, R, N = 17, 5, 3, 6
KINDS = ["classes", "two", "labels", "values", "soft", "soft two"]
KERNELS = [RBF(1.0), Matern(1.0, nu=1.5), Matern(1.0, nu=2.5)]


@pytest.fixture
def machine(targets_of, rng):
    """Return random parameters with their gradient, and the loss of random targets."""

    def make(kind, shift=None, kernel=KERNELS[0]):
        targets = targets_of(kind, ROWS)
        L = targets.n_outputs
        p = Parameters.of(
            0.4 * rng.standard_normal((D, R)),
            0.5 * rng.standard_normal((N, R)),
            rng.standard_normal((N, L)),
            np.float64,
            kernel,
        )
        loss = loss_of(targets, np.float64)
        return p, Gradient(p, rng.standard_normal(L), ROWS, shift), loss

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_equals_finite_differences(kind, smoothing, sparse, kernel, machine, rng):
    X, weight = rng.standard_normal((ROWS, D)), rng.rand(ROWS, 1)
    shift = rng.standard_normal(D) if sparse else None
    p, gradient, loss = machine(kind, shift, kernel)
    rows = sp.csr_matrix(X) if sparse else X
    got = gradient(rows, loss, weight, smoothing).flat.copy()

    def total():
        return float(weight[:, 0] @ loss.losses(gradient.scores(rows), smoothing))

    expected, step = np.empty_like(got), 1e-6
    for i, value in enumerate(p.flat):
        p.flat[i] = value + step
        above = total()
        p.flat[i] = value - step
        expected[i] = (above - total()) / (2 * step)
        p.flat[i] = value
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_scores_are_those_of_the_formula(kind, kernel, machine, rng):
    X = rng.standard_normal((ROWS, D))
    p, gradient, _ = machine(kind, kernel=kernel)
    K = kernel(X @ p.P, p.Z)
    np.testing.assert_allclose(gradient.scores(X), K @ p.A + gradient.b, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("rank", range(1, 9))
def test_single_precision_changes_no_gradient(rank, kernel, rng):
    """For every rank: NumPy and BLAS have special cases for some widths."""
    X, Y = rng.standard_normal((ROWS, D)), rng.standard_normal((ROWS, 1))
    P, Z, A = (rng.standard_normal(shape) for shape in ((D, rank), (N, rank), (N, 1)))
    single, double = (
        Gradient(Parameters.of(0.3 * P, Z, A, dtype, kernel), np.zeros(1), ROWS)(
            X.astype(dtype), Squared(Y.astype(dtype)), 1.0, 0.0
        )
        for dtype in (np.float32, np.float64)
    )
    np.testing.assert_allclose(single.flat, double.flat, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_row_at_a_landmark_has_a_gradient(kernel, machine, rng):
    X = rng.standard_normal((ROWS, D))
    p, gradient, loss = machine("values", kernel=kernel)
    p.Z[:] = X[:N] @ p.P
    assert np.isfinite(gradient(X, loss, 1.0, 0.0).flat).all()
    np.testing.assert_allclose(gradient._K[np.arange(N), np.arange(N)], 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_equal_repeated_rows(kind, machine, rng):
    X, counts = rng.standard_normal((ROWS, D)), rng.randint(4, size=ROWS)
    p, gradient, loss = machine(kind)
    weighted = gradient(X, loss, counts[:, None].astype(float), 0.1).flat.copy()
    repeated = np.repeat(np.arange(ROWS), counts)
    larger = Gradient(p, gradient.b, len(repeated))
    literal = larger(X[repeated], loss.take(repeated), 1.0, 0.1).flat
    np.testing.assert_allclose(weighted, literal, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_about_their_mean_equal_dense_ones(kind, machine, rng):
    X = sp.random(ROWS, D, 0.5, format="csr", random_state=0)
    mean = np.asarray(X.mean(axis=0)).ravel()
    p, gradient, loss = machine(kind)
    dense = gradient(X.toarray() - mean, loss, 1.0, 0.1).flat
    sparse = Gradient(p, gradient.b, ROWS, mean)(X, loss, 1.0, 0.1).flat
    np.testing.assert_allclose(sparse, dense, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_smaller_batches_use_the_same_memory(kernel, machine, rng):
    X = rng.standard_normal((ROWS, D))
    _, gradient, loss = machine("classes", kernel=kernel)
    some = np.arange(5)
    fresh = Gradient(gradient.parameters, gradient.b, 5)(X[:5], loss.take(some), 1.0, 0.0)
    gradient(X, loss, 1.0, 0.0)
    again = gradient(X[:5], loss.take(some), 1.0, 0.0)
    np.testing.assert_array_equal(again.flat, fresh.flat)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_far_rows_have_no_numbers_that_slow_processors_down(kernel, machine, rng):
    p, gradient, loss = machine("classes", kernel=kernel)
    p.A[:] *= 1e3
    g = gradient(1e3 * rng.standard_normal((ROWS, D)), loss, 1.0, 0.0).flat.astype(np.float32)
    assert np.isfinite(g).all()
    sizes = np.abs(g[g != 0])
    assert (sizes > np.finfo(np.float32).tiny).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_outer_products_of_gradients_equal_finite_differences(kind, kernel, machine, rng):
    """By mapped rows: of a map that is the identity, so that rows are their own images."""
    p, _, _ = machine(kind, kernel=kernel)
    U, step = rng.standard_normal((ROWS, R)), 1e-6
    P = Parameters.of(np.eye(R), p.Z, p.A, np.float64, kernel)
    gradient = Gradient(P, np.zeros(p.L), ROWS)
    slopes = []
    for direction in step * np.eye(R):
        above = gradient.scores(U + direction).copy()
        slopes.append((above - gradient.scores(U - direction)) / (2 * step))
    expected = np.einsum("ril,sil->rs", slopes, slopes)
    np.testing.assert_allclose(gradient.outer_product(U), expected, rtol=1e-5, atol=1e-7)
