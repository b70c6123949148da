"""The bytes of a model before it is fitted, and the sizes within a budget."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nysplus._bytes.budget import TYPES, Budget, ModelShape, Size, csr_model_bytes, make_budget
from nysplus._bytes.quantise import pack_expansion
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF


@pytest.mark.parametrize(
    ("budget", "n_bytes"),
    [("64kB", 65536), ("16 KB", 16384), ("1.5MB", 1572864), ("100b", 100), (np.int64(7), 7)],
)
def test_sizes_are_read(budget, n_bytes):
    assert make_budget(budget) == Budget(n_bytes)


@pytest.mark.parametrize("budget", ["64", "kB", "-1kB", 0, -5, 1.5, True, "64 kilobytes", b"64kB"])
def test_what_is_no_size_is_named(budget):
    with pytest.raises(ValueError, match="is not a size"):
        make_budget(budget)


@pytest.mark.parametrize("dtype", ["int4", "int5", *TYPES])
@pytest.mark.parametrize("map_shape", [(), (7,), (7, 4)])
def test_as_many_landmarks_fit_as_are_stored(dtype, map_shape, rng):
    """With one landmark more than the formula says, the stored model exceeds the budget."""
    d, L = 7, 3
    r = map_shape[-1] if map_shape else d
    # a diagonal map is counted in float32, and stored in float16 beside float16 landmarks
    spare = 2 * d if len(map_shape) == 1 and dtype == "float16" else 0
    n = Budget(1000).landmarks(ModelShape(r, L, map_shape), dtype)
    taken = []
    for count in (n, n + 1):
        P = rng.uniform(0.5, 1.5, map_shape) if map_shape else None
        Z, A = rng.standard_normal((count, r)), rng.standard_normal((count, L))
        model = KernelExpansion(RBF(1.0), Z, A, np.zeros(L), P)
        taken.append(pack_expansion(model, dtype, rng.standard_normal((200, d))).n_bytes)
    assert taken[0] + spare <= 1000 < taken[1] + spare


@pytest.mark.parametrize("diagonal", [False, True])
def test_bytes_of_csr_landmarks_are_those_that_are_stored(diagonal, rng):
    Z = sp.random(12, 7, 0.4, format="csr", random_state=rng)
    P = rng.uniform(0.5, 1.5, 7) if diagonal else None
    model = KernelExpansion(RBF(1.0), Z, rng.standard_normal((12, 3)), np.zeros(3), P)
    assert csr_model_bytes(Z, 3, P) == pack_expansion(model, "float32", Z).n_bytes


def test_every_size_names_the_types_that_it_fits_in():
    shape = ModelShape(6, 4)
    sizes, dtypes = Budget(1000).sizes(shape, most=10**6), ("int5", *TYPES)
    assert [size.dtypes for size in sizes] == [dtypes, dtypes[:3], dtypes[:2], dtypes[:1]]
    assert [size.n for size in sizes] == [24, 49, 94, 141]
    assert Budget(1000).sizes(shape, most=30) == [
        Size(24, None, dtypes),
        Size(30, None, dtypes[:3]),
    ]
    assert Budget(10).sizes(shape, most=30) == []
    csr = ModelShape(6, 4, csr_bytes=20.0)
    assert Budget(1000).sizes(csr, most=100) == [Size(27, None, ("float32",))]


@pytest.mark.parametrize(
    "shape", [ModelShape(6, 4), ModelShape(6, 4, (6,)), ModelShape(3, 4, (9, 3))]
)
def test_one_landmark_takes_the_least_bytes(shape):
    least = shape.least_bytes()
    assert Budget(least).checked_sizes(shape, most=30)[0].n == 1
    with pytest.raises(ValueError, match=f"no room for a single landmark .* takes {least} bytes"):
        Budget(least - 1).checked_sizes(shape, most=30)


def test_sizes_that_hardly_differ_are_not_compared():
    shape = ModelShape(6, 4)
    assert [size.n for size in Budget(1000).checked_sizes(shape, most=30)] == [24, 30]
    assert [size.n for size in Budget(1000).checked_sizes(shape, most=29)] == [24]
    assert [size.n for size in Budget(1000).checked_sizes(shape, most=110)] == [24, 49, 94]


@pytest.mark.parametrize(("r", "smallest"), [(1, "int5"), (32, "int5"), (33, "int4")])
def test_landmarks_of_many_columns_have_four_bits(r, smallest):
    assert ModelShape(r, 4).dtypes == (smallest, *TYPES)


@given(
    n_bytes=st.integers(60, 5000),
    r=st.integers(1, 40),
    L=st.integers(1, 12),
    map_shape=st.sampled_from(["none", "diagonal", "dense"]),
    dtype=st.sampled_from(["int4", "int5", *TYPES]),
)
def test_the_most_landmarks_are_within_the_budget(n_bytes, r, L, map_shape, dtype):
    shape = ModelShape(r, L, {"none": (), "diagonal": (r,), "dense": (9, r)}[map_shape])
    n = Budget(n_bytes).landmarks(shape, dtype)
    if n:
        assert shape.n_bytes(dtype, n) <= n_bytes
    assert shape.n_bytes(dtype, n + 1) > n_bytes


def test_fewer_landmarks_are_built_until_they_fit():
    tried = []

    def build(n):
        tried.append(n)
        return 100 + 3 * n

    shape = ModelShape(6, 4)
    assert Budget(130).largest_within(100, shape, build, int) == 130
    assert (tried[0], tried[-1]) == (100, 10)
    assert tried == sorted(tried, reverse=True)
    with pytest.raises(ValueError, match="takes 103 bytes"):
        Budget(102).largest_within(100, shape, build, int)
