"""Rows of extreme numbers: the fit is right, or it is refused with a ValueError."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from cases import assert_agree, cases, exact_problem, scores_of
from hypothesis import assume, given
from hypothesis import strategies as st

# Subnormal numbers, a negative zero, numbers whose squares overflow or vanish, and large offsets.
ODD = [
    5e-324,
    1e-310,
    1e-160,
    1e-150,
    -1e-30,
    -0.0,
    1e9,
    1e9 + 2**-10,
    1e15,
    -1e100,
    1e150,
    1e155,
    1e300,
]
small_cases = cases(kernels=("rbf",)).filter(lambda case: case.X.size <= 60)


class Told(Exception):
    """The fit was refused with advice, or warned."""


@contextmanager
def advised():
    """Raise Told if the caller is told what to do, and every other error as it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except (ValueError, UserWarning) as error:
        if re.search("[Ss]cale|[Dd]ivide", str(error)) is None:
            raise
        raise Told from error


def check(case, X):
    with suppress(Told):
        with advised():
            model = case.fit(X)
        problem = exact_problem(case, X)
        assume(problem.decided)
        assert_agree(scores_of(model, X), problem.solve().scores, 1e-5)


@given(small_cases, st.integers(-1074, 1000))
def test_every_scale(case, exponent):
    check(case, np.ldexp(case.X, exponent))


@given(small_cases, st.sampled_from(ODD), st.data())
def test_single_entries(case, odd, data):
    X = case.X.copy()
    for _ in range(data.draw(st.integers(1, 3))):
        X[data.draw(st.integers(0, len(X) - 1)), data.draw(st.integers(0, X.shape[1] - 1))] = odd
    check(case, X)


@given(small_cases, st.sampled_from(ODD), st.data())
def test_a_column(case, odd, data):
    X = case.X.copy()
    X[:, data.draw(st.integers(0, X.shape[1] - 1))] *= odd
    check(case, X)


@given(small_cases, st.sampled_from(ODD))
def test_every_entry_the_same(case, odd):
    check(case, np.full_like(case.X, odd))


@given(cases(kernels=("rbf",), kinds=("values",)), st.integers(-1000, 1000))
def test_scales_of_targets(case, exponent):
    y = np.ldexp(case.y, exponent)
    try:
        with advised():
            found = scores_of(case.fit(y=y), case.X)
    except Told:
        return
    expected = scores_of(case.fit(), case.X)
    unit = max(np.abs(expected).max(), 1e-3)
    np.testing.assert_allclose(np.ldexp(found, -exponent) / unit, expected / unit, atol=1e-6)


KERNELS = ("cosine", "polynomial", "linear", "laplacian", "matern")


@pytest.mark.parametrize("kernel", KERNELS)
@given(case=small_cases, exponent=st.integers(-500, 500))
def test_other_kernels(kernel, case, exponent):
    """A power of two changes no digit of the rows; what does not overflow must agree."""
    X, alpha = np.ldexp(case.X, exponent), case.params["alpha"]
    same = {"kernel": kernel, "gamma": "scale"}
    try:
        with advised():
            scaled = case.fit(X, **same, alpha=np.ldexp(alpha, 2 * exponent * (kernel == "linear")))
    except Told:
        return
    assert_agree(scores_of(scaled, X), scores_of(case.fit(**same), case.X))
