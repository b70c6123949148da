"""Numbers in fewer bits: exact where they can be, and coefficients that make up for the rest."""

from __future__ import annotations

import pickle
import warnings
from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
from factories import alter
from sklearn.model_selection import train_test_split

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.budget import STORAGE
from nysplus._bytes.quantise import pack_expansion, quantise, representable_types
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ValueTargets
from nysplus.expansion import KernelExpansion, PackedExpansion, pack_array
from nysplus.kernels import RBF

BYTES = {"float64": 8, "float32": 4, "float16": 2, "int8": 1}
# bits of the map and the linear term, the landmarks, and the coefficients
BITS = {
    "float64": (64, 64, 64),
    "float32": (32, 32, 32),
    "float16": (16, 16, 16),
    "int8": (8, 8, 8),
    "int5": (8, 5, 6),
    "int4": (6, 4, 6),
}


def _part_bytes(size, bits, n_columns, scale_bytes=4):
    """Return the bytes of the numbers of a part, and of their scales if they are integers."""
    return -(-size * bits // 8) + (scale_bytes * n_columns if bits <= 8 else 0)


def test_every_storage_type_has_bits_for_each_part():
    assert {name: tuple(bits) for name, bits in STORAGE.items()} == BITS


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_floats_are_rounded_to_the_nearest(rng, dtype):
    array = rng.standard_normal((7, 3))
    packed = pack_array(array, dtype)
    assert packed.values.dtype == dtype
    assert packed.scale is None
    assert packed.n_bytes == 21 * BYTES[dtype]
    unpacked = packed.unpacked()
    assert unpacked.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_array_equal(unpacked, array.astype(dtype))


def test_int8_rounds_halves_to_even():
    array = np.array([[127.0], [0.5], [1.5], [2.5], [-0.5], [-1.5]])
    assert pack_array(array, "int8").values.ravel().tolist() == [127, 0, 2, 2, 0, -2]


def test_int8_keeps_columns_of_zeros_and_multiples_of_the_scale_exactly():
    array = np.array([[0.0, 63.5], [0.0, -12.5], [0.0, 0.0]])
    np.testing.assert_array_equal(pack_array(array, "int8").unpacked(), array)


@pytest.mark.parametrize(
    ("dtype", "largest"), [("float16", 1e5), ("float32", 1e39), ("int8", 1e42)]
)
def test_numbers_that_do_not_fit_are_refused(dtype, largest):
    with pytest.raises(ValueError, match=rf"do not fit in {dtype}. Scale the features"):
        pack_array(np.array([[1.0], [largest]]), dtype)


@pytest.mark.parametrize("dtype", ["int1", "int9", "uint8"])
def test_unknown_types_are_refused(dtype):
    with pytest.raises(ValueError, match=f"'{dtype}' is not known"):
        pack_array(np.ones((2, 2)), dtype)


@pytest.mark.parametrize("scale_type", ["float32", "float16"])
@pytest.mark.parametrize("bits", range(2, 9))
def test_integers_have_a_scale_for_each_column_and_half_of_it_as_error(rng, bits, scale_type):
    array, m = rng.standard_normal((50, 4)) * [1e-3, 1.0, 0.0, 1e3], 2 ** (bits - 1) - 1
    packed = pack_array(array, f"int{bits}", scale_type)
    assert packed.type_name == f"int{bits}"
    assert packed.scale.dtype == scale_type
    np.testing.assert_allclose(packed.scale, np.abs(array).max(axis=0) / m, rtol=1e-3)
    assert np.abs(packed.values.astype(int)).max(axis=0).tolist() == [m, m, 0, m]
    assert packed.n_bytes == -(-200 * bits // 8) + 4 * np.dtype(scale_type).itemsize
    errors = np.abs(packed.unpacked() - array)
    # the type of the scale moves the largest number by less than a tenth of a step
    assert (errors <= 0.6 * packed.scale).all()


@pytest.fixture(scope="module")
def split(digits):
    X, y = digits
    return train_test_split(X, y, random_state=0)


@pytest.fixture(scope="module")
def fitted(split):
    X, _, y, _ = split
    return NystroemClassifier(100, random_state=0).fit(X, y).expansion_


@pytest.mark.parametrize("dtype", STORAGE)
def test_storage_is_what_an_expansion_computes_with(split, fitted, dtype):
    X, X_test, _, _ = split
    small = pack_expansion(fitted, dtype, X)
    storage = small.packed
    assert isinstance(storage, PackedExpansion)
    for name in ("landmarks", "dual_coef", "intercept"):
        np.testing.assert_array_equal(getattr(small, name), getattr(storage, name).unpacked())
    assert small.projection is None
    _, landmark_bits, coefficient_bits = BITS[dtype]
    Z_bytes = _part_bytes(6400, landmark_bits, 64, 2 if dtype in ("int4", "int5") else 4)
    b_bytes = 10 * (8 if dtype == "float64" else 4)
    assert small.n_bytes == Z_bytes + _part_bytes(1000, coefficient_bits, 10) + b_bytes
    again = KernelExpansion.unpacked(small.kernel, storage)
    np.testing.assert_array_equal(again(X_test), small(X_test))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(small))(X_test), small(X_test))


def test_float64_changes_nothing(split, fitted):
    X, X_test, _, _ = split
    np.testing.assert_array_equal(pack_expansion(fitted, "float64", X)(X_test), fitted(X_test))


@pytest.mark.parametrize(
    ("dtype", "most"),
    [("float32", 1e-5), ("float16", 1e-3), ("int8", 0.02), ("int5", 0.06), ("int4", 0.08)],
)
def test_scores_hardly_change(split, fitted, dtype, most):
    X, X_test, _, _ = split
    F = fitted(X_test)
    change = np.sqrt(((pack_expansion(fitted, dtype, X)(X_test) - F) ** 2).mean())
    assert change < most * F.std()


def test_solving_again_beats_rounding_alone(split, fitted):
    X, X_test, _, _ = split
    rounded = PackedExpansion(
        pack_array(fitted.landmarks, "int8"),
        pack_array(fitted.dual_coef, "int8"),
        pack_array(fitted.intercept, "float32"),
    )
    F = fitted(X_test)
    plain = np.sqrt(((KernelExpansion.unpacked(fitted.kernel, rounded)(X_test) - F) ** 2).mean())
    solved = np.sqrt(((pack_expansion(fitted, "int8", X)(X_test) - F) ** 2).mean())
    assert solved < plain / 3


@pytest.mark.parametrize("n", [30, 100, 300])
def test_int8_accuracy_is_within_half_a_point(split, n):
    X, X_test, y, y_test = split
    model = NystroemClassifier(n, random_state=0).fit(X, y)
    exact = model.score(X_test, y_test)
    alter(model, expansion=pack_expansion(model.expansion_, "int8", X))
    assert model.model_bytes_ < 1.1 * n * (64 + 10) + 4 * (64 + 10 + 10)
    assert model.score(X_test, y_test) >= exact - 0.005


def test_large_coefficients_that_cancel_are_solved_again(split):
    """A wide kernel with next to no ridge: coefficients of 1e5 for scores of 1."""
    X, X_test, y, y_test = split
    model = NystroemClassifier(200, gamma=1e-3, alpha=1e-7, random_state=0).fit(X, y)
    assert np.abs(model.dual_coef_).max() > 7e4  # beyond float16
    exact = model.score(X_test, y_test)
    full = model.expansion_
    # The error of the scores varies little with the processor, unlike the few rows between classes.
    most = {"float32": (0.1, 0.015), "float16": (0.15, 0.015), "int8": (0.25, 0.03)}
    for dtype, (error, loss) in most.items():
        alter(model, expansion=pack_expansion(full, dtype, X))
        assert np.sqrt(np.mean((model.expansion_(X_test) - full(X_test)) ** 2)) < error
        assert model.score(X_test, y_test) >= exact - loss


@pytest.fixture(scope="module", params=["diagonal", 5])
def projecting(request, split):
    """A model with a learned map."""
    X, _, y, _ = split
    return NystroemClassifier(60, metric=request.param, random_state=0).fit(X[:600], y[:600])


@pytest.mark.parametrize("dtype", STORAGE)
def test_projections_are_stored(split, projecting, dtype):
    X, X_test, _, y_test = split
    model, metric = copy(projecting), projecting.metric
    exact = model.score(X_test, y_test)
    P = model.expansion_.projection
    assert P is not None
    small = pack_expansion(model.expansion_, dtype, X[:600])
    alter(model, expansion=small)
    bits = BITS[dtype][0]
    expected = f"int{bits}" if bits <= 8 else dtype
    if bits <= 8 and metric == "diagonal":  # the units of features have no common scale
        expected = "float32"
    assert small.packed.projection.type_name == expected
    assert small.projection.shape == P.shape
    assert abs(model.score(X_test, y_test) - exact) <= (
        0.02 if dtype in ("int4", "int5") else 0.005
    )


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_units_of_features_survive(rng, dtype):
    """A diagonal map over features that differ by five decades."""
    X = rng.standard_normal((400, 3)) * [1e-3, 1.0, 100.0]
    P = np.array([1e3, 1.0, 0.01])
    Z = X[:20] * P
    full = KernelExpansion(RBF(0.3), Z, rng.standard_normal((20, 2)), np.zeros(2), P)
    small = pack_expansion(full, dtype, X)
    assert np.abs(small(X) - full(X)).max() < 0.05 * full(X).std()


def test_regression_with_few_rows_and_several_outputs(rng):
    X = rng.standard_normal((60, 3))
    Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
    model = NystroemRegressor(25, random_state=0).fit(X[:30], Y[:30])
    exact = model.predict(X)
    alter(model, expansion=pack_expansion(model.expansion_, "int8", X[:30]))
    assert np.sqrt(((model.predict(X) - exact) ** 2).mean()) < 0.05 * exact.std()


def test_constant_functions_stay_constant(rng):
    X = rng.standard_normal((50, 2))
    full = KernelExpansion(RBF(1.0), X[:5], np.zeros((5, 1)), np.array([0.25]))
    for dtype in STORAGE:
        np.testing.assert_array_equal(pack_expansion(full, dtype, X)(X), 0.25)


@pytest.mark.parametrize(("offset", "lost"), [(1e3, False), (1e6, True), (-1e6, True)])
def test_values_that_float32_cannot_tell_apart_are_warned_of(offset, lost, rng):
    """Rounding 1e6 changes it by 0.03, which is visible in values of this spread."""
    X = rng.randn(300, 2)
    blocks = Blocks(X, ValueTargets(np.sin(X) + offset))
    expansion = KernelExpansion(RBF(1.0), X[:20], rng.randn(20, 2), np.full(2, offset))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quantise(expansion, "float32", blocks, rng)
    assert ["Subtract the mean from y" in str(warning.message) for warning in caught] == [
        True
    ] * lost


def test_sparse_rows_beside_dense_landmarks(split, fitted):
    X = split[0]
    dense, sparse = (
        pack_expansion(fitted, "int8", X),
        pack_expansion(fitted, "int8", sp.csr_matrix(X)),
    )
    np.testing.assert_allclose(sparse(X[:50]), dense(X[:50]), atol=1e-2)


def test_csr_landmarks_stay_three_arrays(split):
    X, _, y, _ = split
    model = NystroemClassifier(50, random_state=0).fit(sp.csr_matrix(X), y)
    full = model.expansion_
    small = pack_expansion(full, "float32", sp.csr_matrix(X))
    assert small.packed is None
    assert sp.issparse(small.landmarks)
    Z = small.landmarks
    arrays = (Z.data, Z.indices, Z.indptr, small.dual_coef, small.intercept)
    assert small.n_bytes == sum(array.nbytes for array in arrays) < full.n_bytes
    assert np.abs(small(X[:50]) - full(X[:50])).max() < 1e-3
    with pytest.raises(ValueError, match="float64 or float32, not in 'int8'"):
        pack_expansion(full, "int8", X)


def test_a_map_is_rounded_so_that_rows_stay(rng):
    """One feature is rare and has a large entry; the others are alike and small."""
    d, r = 30, 4
    X = np.repeat(rng.standard_normal((500, 3)), 10, axis=1) + 0.1 * rng.standard_normal((500, d))
    X[:, 0] = rng.rand(500) < 0.002
    P = 0.05 * rng.standard_normal((d, r))
    P[0] = 10.0
    model = KernelExpansion(
        RBF(1.0), rng.standard_normal((20, r)), rng.standard_normal((20, 2)), np.zeros(2), P
    )
    found = pack_expansion(model, "int8", X).projection
    plain = pack_array(P, "int8").unpacked()
    changes = [np.sqrt((((found_map - P).T @ X.T) ** 2).mean()) for found_map in (found, plain)]
    assert changes[0] < 0.5 * changes[1]
    sparse = pack_expansion(model, "int8", sp.csr_matrix(X)).projection
    np.testing.assert_allclose(sparse, found, atol=1e-6)


@pytest.mark.parametrize("n", [0, 12])
@pytest.mark.parametrize("dtype", STORAGE)
def test_a_linear_term_is_rounded_like_the_other_numbers(n, dtype, rng):
    X, Z, A = rng.randn(500, 6), rng.randn(n, 6), rng.randn(n, 2)
    expansion = KernelExpansion(RBF(0.2), Z, A, rng.randn(2), linear=rng.randn(6, 2))
    small = pack_expansion(expansion, dtype, X)
    linear_bits, landmark_bits, coefficient_bits = BITS[dtype]
    n_bytes = _part_bytes(12, linear_bits, 2) + 2 * (8 if dtype == "float64" else 4)
    if n:
        n_bytes += _part_bytes(6 * n, landmark_bits, 6, 2 if dtype in ("int4", "int5") else 4)
        n_bytes += _part_bytes(2 * n, coefficient_bits, 2)
    assert small.n_bytes == n_bytes
    change = (small(X) - expansion(X)).std() / expansion(X).std()
    most = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "int8": 0.02, "int5": 0.05}
    assert change < most.get(dtype, 0.1)


def test_coefficients_make_up_for_the_rounding_of_the_linear_term(rng):
    X, Z = rng.randn(2000, 4), rng.randn(60, 4)
    linear = np.diag([1.0, 1e-2, 1e-2, 1e-2]) @ rng.randn(4, 1)
    expansion = KernelExpansion(RBF(0.1), Z, 0.01 * rng.randn(60, 1), np.zeros(1), linear=linear)
    small = pack_expansion(expansion, "int8", X)
    rounded = small.linear
    kernel_part = expansion(X) - X @ linear
    unsolved = X @ rounded + kernel_part
    change = (small(X) - expansion(X)).std()
    assert change < 0.5 * (unsolved - expansion(X)).std()


@pytest.mark.parametrize(("unit", "fits"), [(1e-6, False), (1e-2, True), (1e3, True), (1e6, False)])
def test_few_bits_need_scales_that_float16_represents(unit, fits, rng):
    """int8 has scales in float32, and takes the place of few bits."""
    X = rng.standard_normal((300, 3))
    X[:, 0] *= unit
    expansion = KernelExpansion(RBF(0.3), X[:20], rng.standard_normal((20, 1)), np.zeros(1))
    found = representable_types(expansion, ("int4", "int5", "int8"))
    assert found == (("int4", "int5", "int8") if fits else ("int8",))


def test_units_of_targets_do_not_matter_to_few_bits(rng):
    X = rng.standard_normal((400, 3))
    A = rng.standard_normal((20, 1))
    small, large = (
        pack_expansion(KernelExpansion(RBF(0.3), X[:20], unit * A, np.zeros(1)), "int5", X)
        for unit in (1.0, 1e12)
    )
    np.testing.assert_allclose(large(X), 1e12 * small(X), rtol=1e-3, atol=1e9)


def test_rounding_in_turn_beats_rounding_alone_in_few_bits(split, fitted):
    X, X_test, _, _ = split
    F = fitted(X_test)
    small = pack_expansion(fitted, "int4", X)
    plain = PackedExpansion(
        small.packed.landmarks,
        pack_array(fitted.dual_coef, "int6"),
        pack_array(fitted.intercept, "float32"),
    )
    changes = [
        np.sqrt(((model(X_test) - F) ** 2).mean())
        for model in (small, KernelExpansion.unpacked(fitted.kernel, plain))
    ]
    assert changes[0] < changes[1] / 3
