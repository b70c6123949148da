"""Levels beyond those that a code has columns for."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus.encoding.code import OneHot


@pytest.mark.parametrize("gaps", [False, True])
def test_a_rarer_level_is_no_gap(gaps):
    """Level 2 of a code of two levels has zeros, although gaps have the column after them."""
    code = OneHot(0, 2, gaps).of(np.array([0.0, 1.0, 2.0, 3.0, -1.0, np.nan]))
    expected = np.zeros((6, 2 + gaps))
    expected[0, 0] = expected[1, 1] = 1.0
    if gaps:
        expected[5, 2] = 1.0
    np.testing.assert_array_equal(code, expected)
