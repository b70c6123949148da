from __future__ import annotations

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern as GaussianProcessMatern
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from nysplus._rows.blocks import Blocks
from nysplus.kernels import (
    KERNELS,
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
    make_kernel,
)
from nysplus.kernels.precomputed import GramMatrix

CASES = [
    (RBF(gamma=0.7), reference.rbf, {"gamma": 0.7}),
    (Laplacian(gamma=0.7), reference.laplacian, {"gamma": 0.7}),
    (Matern(gamma=0.7, nu=0.5), reference.matern, {"gamma": 0.7, "nu": 0.5}),
    (Matern(gamma=0.7, nu=1.5), reference.matern, {"gamma": 0.7, "nu": 1.5}),
    (Matern(gamma=0.7, nu=2.5), reference.matern, {"gamma": 0.7, "nu": 2.5}),
    (
        Polynomial(gamma=0.7, coef0=0.5, degree=2),
        reference.polynomial,
        {"gamma": 0.7, "coef0": 0.5, "degree": 2},
    ),
    (Sigmoid(gamma=0.7, coef0=0.5), reference.sigmoid, {"gamma": 0.7, "coef0": 0.5}),
    (Cosine(), reference.cosine, {}),
    (Linear(), lambda x, z: float(np.dot(x, z)), {}),
    (AdditiveChi2(), reference.additive_chi2, {}),
    (Chi2(gamma=0.7), lambda x, z: np.exp(0.7 * reference.additive_chi2(x, z)), {}),
    (FunctionKernel(lambda x, z: float(np.abs(x - z).max())), lambda x, z: abs(x - z).max(), {}),
]
IDS = [f"{type(kernel).__name__}-{getattr(kernel, 'nu', '')}" for kernel, *_ in CASES]
POSITIVE = [case for case in CASES if type(case[0]) not in (Sigmoid, AdditiveChi2, FunctionKernel)]


@pytest.mark.parametrize(("kernel", "entry", "params"), CASES, ids=IDS)
def test_matrix_equals_double_loop(kernel, entry, params, rng):
    X, Z = rng.rand(7, 4), rng.rand(5, 4)
    np.testing.assert_allclose(kernel(X, Z), reference.matrix(entry, X, Z, **params), rtol=1e-12)


@pytest.mark.parametrize("kernel", [case[0] for case in CASES], ids=IDS)
def test_separable_kernels_are_products_or_sums_over_features(kernel, rng):
    X, Z = rng.rand(7, 4), rng.rand(5, 4)
    X[0], Z[0] = 0.0, 0.0  # chi-squared distances divide by their sum
    if kernel.separable is None:
        with pytest.raises(NotImplementedError, match="neither a product nor a sum"):
            kernel.per_feature(X, Z)
        return
    combine = {"product": np.prod, "sum": np.sum}[kernel.separable]
    parts = kernel.per_feature(X, Z)
    assert parts.shape == (4, 7, 5)
    np.testing.assert_allclose(combine(parts, axis=0), kernel(X, Z), rtol=1e-12, atol=1e-15)


def test_the_separable_kernels():
    found = {name: kind().separable for name, kind in KERNELS.items() if kind().separable}
    assert found == {
        "additive_chi2": "sum",
        "chi2": "product",
        "laplacian": "product",
        "linear": "sum",
        "rbf": "product",
    }


@pytest.mark.parametrize("kernel", [case[0] for case in POSITIVE], ids=repr)
def test_symmetric_and_positive_semidefinite(kernel, rng):
    X = rng.rand(30, 3)
    K = kernel(X, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10 * len(X)


@pytest.mark.parametrize("kernel", [RBF(0.7), Matern(0.7), Laplacian(0.7), Cosine(), Linear()])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_integers_do_not_overflow_and_float32_stays(kernel, dtype, rng):
    X, Z = rng.randint(0, 255, (6, 50)).astype(dtype), rng.randint(0, 255, (4, 50)).astype(dtype)
    K = kernel(X, Z)
    expected = kernel(X.astype(np.float64), Z.astype(np.float64))
    assert K.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(K, expected, rtol=1e-4 if dtype == np.float32 else 1e-13, atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [RBF(0.7), Matern(0.7), Laplacian(0.7), Polynomial(0.7), Linear()]
)
@pytest.mark.parametrize("sparse_Z", [True, False])
def test_sparse_equals_dense(kernel, sparse_Z, rng):
    X = sp.random(20, 10, 0.3, format="csr", random_state=0)
    Z = X[:6] if sparse_Z else X[:6].toarray()
    np.testing.assert_allclose(kernel(X, Z), kernel(X.toarray(), X[:6].toarray()), rtol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(gamma=1.0), Matern(gamma=1.0, nu=2.5)])
def test_rows_far_from_the_origin_do_not_cancel(kernel, rng):
    X, Z = rng.rand(20, 3), rng.rand(5, 3)
    # Adding 2**20 rounds the rows themselves to 1e-10, so compare at the rounded rows.
    far_X, far_Z = X + 2.0**20, Z + 2.0**20
    np.testing.assert_allclose(
        kernel(far_X, far_Z), kernel(far_X - 2.0**20, far_Z - 2.0**20), rtol=1e-12
    )


@pytest.mark.parametrize("name", sorted(set(PAIRWISE_KERNEL_FUNCTIONS)))
def test_every_name_of_scikit_learn_means_the_same_here(name, rng):
    assert name in KERNELS
    X, Z = rng.rand(6, 3), rng.rand(4, 3)
    kernel = make_kernel(name, gamma=None).resolve(Blocks(X), rng)
    np.testing.assert_allclose(kernel(X, Z), pairwise_kernels(X, Z, metric=name), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_equals_gaussian_process_matern(nu, rng):
    X, Z = rng.rand(6, 3), rng.rand(4, 3)
    gamma = 0.3
    peer = GaussianProcessMatern(length_scale=(2 * gamma) ** -0.5, nu=nu)
    np.testing.assert_allclose(Matern(gamma, nu=nu)(X, Z), peer(X, Z), rtol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, np.float32])
def test_gamma_scale_is_that_of_svc(container, rng):
    X = container(rng.rand(50, 4) * (rng.rand(50, 4) > 0.4))
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    kernel = RBF(gamma="scale").resolve(Blocks(X), rng)
    assert kernel.gamma == pytest.approx(1 / (4 * dense.var()), rel=1e-12)


def test_gamma_scale_counts_rows_by_weight(rng):
    X = rng.rand(10, 3)
    weight = rng.randint(0, 4, 10).astype(float)
    weighted = RBF("scale").resolve(Blocks(X, sample_weight=weight), rng)
    repeated = RBF("scale").resolve(Blocks(np.repeat(X, weight.astype(int), axis=0)), rng)
    assert weighted.gamma == pytest.approx(repeated.gamma, rel=1e-12)


def test_gamma_median(rng):
    X = np.array([[0.0], [1.0], [3.0]])  # distances 1, 2, 3
    assert RBF("median").resolve(Blocks(X), rng).gamma == pytest.approx(1 / 8)
    assert Laplacian("median").resolve(Blocks(X), rng).gamma == pytest.approx(1 / 2)
    assert Chi2("median").resolve(Blocks(X), rng).gamma == pytest.approx(1.0)  # 1, 1, 3
    assert RBF("median").resolve(Blocks(X / 100), rng).gamma == pytest.approx(1e4 / 8)
    assert Laplacian("median").resolve(Blocks(X / 100), rng).gamma == pytest.approx(100 / 2)
    assert Chi2("median").resolve(Blocks(X / 100), rng).gamma == pytest.approx(100.0)


@pytest.mark.parametrize("gamma", ["scale", "median"])
@pytest.mark.parametrize("kind", [RBF, Laplacian, Chi2, Matern])
def test_constant_rows_get_a_usable_gamma(gamma, kind, rng):
    kernel = kind(gamma=gamma).resolve(Blocks(np.ones((5, 2))), rng)
    assert np.isfinite(kernel.gamma)
    assert kernel.gamma > 0


@pytest.mark.parametrize("kind", [RBF, Matern, Laplacian, Polynomial, Sigmoid, Chi2])
def test_width_follows_the_data_by_default_and_says_so_without_data(kind):
    assert kind().gamma == "scale"
    with pytest.raises(ValueError, match="gamma='scale' depends on the data"):
        kind()(np.ones((2, 2)), np.ones((1, 2)))


def test_resolve_leaves_the_users_object_alone(rng):
    kernel = RBF("scale")
    kernel.resolve(Blocks(rng.rand(5, 2)), rng)
    assert kernel.gamma == "scale"


def test_kernels_are_parameters_like_any_other():
    kernel = Polynomial(gamma=0.5, degree=2)
    copy = clone(kernel).set_params(degree=4)
    assert (copy.gamma, copy.degree, kernel.degree) == (0.5, 4, 2)
    assert repr(kernel) == "Polynomial(degree=2, gamma=0.5)"


def test_function_kernel_passes_its_parameters_and_checks_the_shape(rng):
    X = rng.rand(3, 2)
    kernel = FunctionKernel(lambda x, z, p: float(x @ z) ** p, params={"p": 2})
    np.testing.assert_allclose(kernel(X, X), (X @ X.T) ** 2)
    with pytest.raises(ValueError, match=r"returned shape \(3,\).*must return \(3, 3\)"):
        FunctionKernel(lambda X, Z: np.ones(3), vectorized=True)(X, X)


def test_function_kernel_may_return_a_sparse_matrix(rng):
    X = sp.csr_matrix(rng.rand(5, 4) * (rng.rand(5, 4) < 0.5))
    kernel = FunctionKernel(lambda X, Z: X @ Z.T, vectorized=True)
    np.testing.assert_allclose(kernel(X, X[:2]), Linear()(X, X[:2]))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF(gamma=-1.0), "gamma=-1.0 is not allowed"),
        (RBF(gamma=float("nan")), "gamma=nan is not allowed"),
        (RBF(gamma="wide"), "gamma='wide' is not allowed.*'scale', 'median'"),
        (Matern(nu=1.0), "nu=1.0 is not available.*0.5, 1.5 and 2.5"),
        (Polynomial(gamma="median"), "needs a kernel of distances"),
    ],
)
def test_bad_parameters(kernel, message, rng):
    with pytest.raises(ValueError, match=message):
        kernel.resolve(Blocks(rng.rand(5, 2)), rng)


def test_histogram_kernels_say_what_they_need(rng):
    with pytest.raises(ValueError, match="non-negative features"):
        Chi2(1.0)(-np.ones((2, 2)), np.ones((1, 2)))
    with pytest.raises(TypeError, match="dense rows only"):
        AdditiveChi2()(sp.eye(3, format="csr"), np.ones((1, 3)))


def test_make_kernel():
    assert isinstance(make_kernel("matern", gamma=2.0), Matern)
    assert isinstance(make_kernel("linear", gamma=2.0), Linear)  # ignored, as in SVC
    assert make_kernel(RBF(3.0), gamma="scale").gamma == 3.0
    with pytest.raises(
        ValueError, match=r"kernel='gauss' is not known. Allowed are \['additive_chi2'"
    ):
        make_kernel("gauss")
    for gamma in (2.0, "median"):
        with pytest.raises(ValueError, match=f"gamma={gamma!r} has no effect beside kernel=RBF"):
            make_kernel(RBF(), gamma=gamma)


# ---- many rows against the same landmarks ------------------------------------------------------


@pytest.mark.parametrize(("kernel", "entry", "params"), CASES, ids=IDS)
def test_bound_kernels_are_the_kernels(kernel, entry, params, rng):
    X, Z = rng.rand(7, 4), rng.rand(5, 4)
    bound = kernel.bind(Z)
    for rows in (X, X[:1], X[3:]):  # one bound kernel serves any number of blocks
        expected = reference.matrix(entry, rows, Z, **params)
        np.testing.assert_allclose(bound(rows), expected, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e5])
def test_bound_rbf_equals_double_loop_far_from_the_origin(dtype, tolerance, offset, rng):
    # halves and quarters: float32 holds them exactly even at 1e5
    X = (rng.randint(0, 8, (9, 4)) / 4 + offset).astype(dtype)
    Z = (rng.randint(0, 8, (6, 4)) / 4 + offset).astype(dtype)
    K = RBF(0.3).bind(Z)(X)
    assert K.dtype == dtype
    expected = reference.matrix(
        reference.rbf, X.astype(np.float64), Z.astype(np.float64), gamma=0.3
    )
    # moving float32 rows to the mean of Z rounds at the size of the offset
    far = 0.3 * 16 * abs(offset) * np.finfo(dtype).eps
    np.testing.assert_allclose(K, expected, rtol=tolerance + far)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("gamma", [1e-8, 1.0, 1e4])
def test_no_point_is_more_than_equal_to_itself(dtype, gamma, rng):
    X = (100 + rng.rand(50, 30)).astype(dtype)
    K = RBF(gamma).bind(X)(X)
    assert K.max() <= 1.0
    # the exponent cancels to the rounding of γ‖x − z̄‖²
    size = gamma * 30 * np.finfo(dtype).eps
    assert np.diag(K).min() >= np.exp(-4 * size) - np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse_Z", [True, False])
def test_bound_rbf_takes_sparse_rows(dtype, sparse_Z, rng):
    X = sp.random(20, 10, 0.3, format="csr", random_state=0).astype(dtype)
    Z = X[:6] if sparse_Z else X[:6].toarray()
    bound = RBF(0.7).bind(Z)
    dense = X.toarray().astype(np.float64)
    expected = reference.matrix(reference.rbf, dense, dense[:6], gamma=0.7)
    assert bound(X).dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(bound(X), expected, rtol=tolerance)
    np.testing.assert_allclose(bound(X[:1]), expected[:1], rtol=tolerance)


def test_bound_rbf_leaves_rows_and_landmarks_alone(rng):
    X, Z = rng.rand(8, 3), rng.rand(4, 3)
    copies = X.copy(), Z.copy()
    RBF(1.0).bind(Z)(X)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(Z, copies[1])


@pytest.mark.parametrize("values", [1, 10, 64, 2**18])
def test_pieces_of_a_block_change_nothing(values, rng):
    X, Z = rng.rand(33, 4), rng.rand(5, 4)
    expected = reference.matrix(reference.rbf, X, Z, gamma=0.7)
    np.testing.assert_allclose(RBF(0.7).bind(Z, values)(X), expected, rtol=1e-12)


@pytest.mark.parametrize("parts", [1, 2, 7, 60])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_gamma_scale_does_not_depend_on_the_parts(parts, container, rng, monkeypatch):
    X = rng.rand(60, 4) * (rng.rand(60, 4) > 0.4) + (1e4 if container is np.asarray else 0)
    monkeypatch.setattr("nysplus._rows.blocks.VARIANCE_CELLS", 4 * (60 // parts - 1))
    kernel = RBF("scale").resolve(Blocks(container(X)), rng)
    assert kernel.gamma == pytest.approx(1 / (4 * X.var()), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e15])
@pytest.mark.parametrize("kernel", [RBF(0.25), Matern(0.25), Matern(0.25, nu=2.5)])
def test_rows_are_like_themselves_however_narrow_the_kernel(kernel, scale, dtype, rng):
    Z = (scale * rng.randn(30, 3)).astype(dtype)
    error = 2 * np.sqrt(np.finfo(dtype).eps)
    np.testing.assert_allclose(np.diag(kernel(Z, Z)), 1.0, rtol=0, atol=error)
    np.testing.assert_allclose(np.diag(kernel.bind(Z)(Z)), 1.0, rtol=0, atol=error)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Polynomial(1.0, coef0=0.0), True),
        (Polynomial(1.0, coef0=0.5, degree=2), True),
        (Polynomial(1.0, coef0=-0.1), False),
        (Polynomial(1.0, degree=2.5), False),
        (Sigmoid(1.0), False),
        (AdditiveChi2(), False),
        (GramMatrix(np.eye(2)), False),
        (RBF(1.0), True),
    ],
    ids=repr,
)
def test_which_kernels_are_known_to_be_positive_semidefinite(kernel, expected):
    assert kernel.positive_semidefinite is expected


@pytest.mark.parametrize("kind", [RBF, Laplacian, Matern])
@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_the_width_of_constant_rows_is_one(kind, gamma, rng):
    assert kind(gamma).resolve(Blocks(np.full((20, 3), 7.0)), rng).gamma == 1.0
