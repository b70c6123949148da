"""The terms of a code against their definitions, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy.spatial.distance import cdist

from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Ramps,
    TableCode,
)

KNOTS = np.array([-2.0, -0.5, 0.0, 0.25, 3.0])
NUMBERS = np.r_[KNOTS, np.linspace(-5, 5, 41), 1e30, -1e30, np.nan]
LEVELS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 7.0, -1.0, np.nan])
DATES = np.r_[np.linspace(-(10**9), 2 * 10**9, 50), np.nan]
TERMS = [
    (Linear(0, 1.5, 0.25, -3.0), NUMBERS),
    (Ramps(0, KNOTS, 0.6, 2), NUMBERS),
    (Ramps(0, KNOTS.astype(np.float16), 0.6, 0), NUMBERS),
    (Ramps(0, KNOTS[:2], 1.0, 1), NUMBERS),
    (Curve(0, KNOTS, np.array([-2.0, -1.0, 0.5, 0.5, 1.0]), 3), NUMBERS),
    (Curve(0, KNOTS.astype(np.float32), np.arange(5, dtype=np.float16), 0), NUMBERS),
    (OneHot(0, 3, gaps=False), LEVELS),
    (OneHot(0, 3, gaps=True), LEVELS),
    (Lookup(0, np.arange(10, dtype=np.float16).reshape(5, 2)), LEVELS),
    (Circle(0, 86400.0, 3600.0, "hour"), DATES),
    (Missing(0), NUMBERS),
    (Missing(0, -0.5, 2.0), NUMBERS),
]


@pytest.mark.parametrize(("term", "x"), TERMS, ids=[type(term).__name__ for term, _ in TERMS])
def test_terms_are_their_definitions(term, x):
    found = term.of(x)
    assert found.shape == (len(x), term.n_columns)
    assert len(term.suffixes(("a", "b", "c"))) == term.n_columns
    expected = np.array([reference.code_of(term, number) for number in x])
    # angles of billions of seconds have lost some digits
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def test_squared_distances_of_thermometers_count_bins():
    term = Ramps(0, KNOTS, 0.5, 0)
    code = term.of(KNOTS)
    bins = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.testing.assert_allclose(cdist(code, code, "sqeuclidean"), 0.25 * bins, atol=1e-15)


def test_the_rbf_kernel_of_thermometers_is_the_laplacian_kernel_of_bins(rng):
    """Of knots; between knots the squared distance is at most the ℓ1 distance."""
    knots = [np.sort(rng.randn(6)), np.sort(rng.randn(9))]
    code = TableCode(2, tuple(Ramps(i, t, 0.7, 0) for i, t in enumerate(knots)))
    place = np.column_stack([rng.randint(0, 6, 40), rng.randint(0, 9, 40)])
    E = code(np.column_stack([t[p] for t, p in zip(knots, place.T, strict=True)]), np.float64)
    expected = reference.matrix(reference.laplacian, place, place, gamma=0.3 * 0.7**2)
    np.testing.assert_allclose(reference.rbf_matrix(E, E, 0.3), expected, rtol=1e-12)
    E = code(rng.randn(40, 2), np.float64)
    assert (cdist(E, E, "sqeuclidean") <= 0.7 * cdist(E, E, "cityblock") + 1e-12).all()


def test_a_code_is_its_terms_side_by_side(rng):
    terms = (Missing(2), Ramps(0, KNOTS, 0.6, 2), OneHot(1, 3, True), Linear(2, 0.0, 1.0, 0.0))
    code = TableCode(3, terms)
    raw = np.column_stack([rng.randn(20), rng.randint(-1, 3, 20), rng.randn(20)])
    raw[::4] = np.nan
    columns = [term.of(raw[:, term.column]) for term in terms]
    np.testing.assert_array_equal(code(raw, np.float64), np.hstack(columns))
    np.testing.assert_array_equal(code(raw), np.hstack(columns).astype(np.float32))
    assert code(raw).dtype == np.float32
    assert code.n_columns == 1 + 4 + 4 + 1
    np.testing.assert_array_equal(code.groups, [2, 0, 0, 0, 0, 1, 1, 1, 1, 2])
    assert code(raw[:0]).shape == (0, 10)


def test_bytes_are_those_of_the_numbers():
    ramps, flag = Ramps(0, KNOTS.astype(np.float16), 0.6, 2), Missing(0)
    assert TableCode(1, (ramps, flag)).n_bytes == (5 * 2 + 1) + 1 + 2 * 2
    assert Ramps(0, KNOTS, 0.6, 2).n_bytes == 5 * 8 + 1
    assert Lookup(0, np.zeros((5, 2), np.float16)).n_bytes == 20
    assert Linear(0, 0.5, 2.0, 0.5).n_bytes == 2 + 2
    assert Linear(0, 0.5, 2.0, 0.25).n_bytes == 2 + 2 + 2
    assert Linear(0, 0.1, 1e9, 0.5).n_bytes == 4 + 4 + 2


def test_same_codes_have_the_same_numbers():
    code = TableCode(2, (Ramps(0, KNOTS, 0.6, 2), OneHot(1, 3, True)))
    assert code.same(TableCode(2, (Ramps(0, KNOTS.copy(), 0.6, 2), OneHot(1, 3, True))))
    others = [
        TableCode(3, code.terms),
        TableCode(2, code.terms[:1]),
        TableCode(2, code.terms[::-1]),
        TableCode(2, (Ramps(0, KNOTS + 1, 0.6, 2), code.terms[1])),
        TableCode(2, (Ramps(0, KNOTS, 0.6, 1), code.terms[1])),
        TableCode(2, (code.terms[0], OneHot(1, 3, False))),
    ]
    assert not any(code.same(other) for other in others)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e-14])
def test_names_of_bins_differ(scale):
    term = Ramps(0, 1.0 + scale * np.arange(1.0, 6.0), 1.0, 0)
    assert len(set(term.suffixes(()))) == 4
