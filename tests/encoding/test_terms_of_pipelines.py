"""Terms and columns that folded pipelines of scikit-learn need."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nysplus.encoding.code import Missing, Power, TableCode
from nysplus.encoding.schema import TableColumn, TableSchema


@pytest.mark.parametrize("exponent", [-1.5, 0.0, 1e-9, 0.5, 1.0, 2.0, 3.7])
@pytest.mark.parametrize("signed", [False, True])
def test_power_transforms_are_those_of_scipy(rng, exponent, signed):
    x = np.abs(rng.randn(50)) + 0.1 if not signed else 3 * rng.randn(50)
    transform = stats.yeojohnson if signed else stats.boxcox
    term = Power(0, exponent, signed, 5.0, 0.5, offset=1.0, scale=2.0, fill=5.0 + 2.0 * x[3])
    raw = np.append(5.0 + 2.0 * x, np.nan)
    expected = 2.0 * (transform(x, exponent) - 1.0)
    np.testing.assert_allclose(term.of(raw)[:-1, 0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(term.of(raw)[-1, 0], expected[3], rtol=1e-12, atol=1e-12)


def test_numbers_that_have_no_logarithm():
    term = Power(2, 0.5, False, 0.0, 1.0, 0.0, 1.0, fill=1.0)
    with pytest.raises(ValueError, match=r"column 2 is one of positive numbers.* contains -3\."):
        term.of(np.array([1.0, -3.0]))


def test_flags_have_two_numbers():
    x = np.array([3.0, np.nan])
    np.testing.assert_array_equal(Missing(0).of(x)[:, 0], [0.0, 1.0])
    np.testing.assert_array_equal(Missing(0, -0.5, 2.0).of(x)[:, 0], [-0.5, 2.0])
    assert TableCode(1, (Missing(0),)).n_bytes < TableCode(1, (Missing(0, -0.5, 2.0),)).n_bytes


def test_gaps_and_other_levels_can_be_errors():
    frame = pd.DataFrame({"size": [1.0, np.nan], "colour": ["red", "mauve"]})

    def schema(**refused):
        columns = (
            TableColumn(0, "size", "number"),
            TableColumn(1, "colour", "category", ("red", "blue"), **refused),
        )
        return TableSchema(2, ("size", "colour"), columns)

    np.testing.assert_array_equal(schema().read(frame), [[1.0, 0.0], [np.nan, -1.0]])
    with pytest.raises(ValueError, match=r"'colour' contains 'mauve'.* levels are \['red', 'blue'"):
        schema(refuses_others=True).read(frame)
    frame["colour"] = ["red", None]
    schema(refuses_others=True).read(frame)
    with pytest.raises(ValueError, match=r"'colour' has gaps.* Fill them"):
        schema(refuses_gaps=True).read(frame)


def test_truth_values_are_numbers():
    column = TableColumn(0, "a", "number")
    frame = pd.DataFrame({"a": [True, False]})
    np.testing.assert_array_equal(TableSchema(1, ("a",), (column,)).read(frame), [[1.0], [0.0]])


def test_levels_that_are_fractions():
    column = TableColumn(0, "a", "category", ("0.1", "2"), numbered=True)
    frame = pd.DataFrame({"a": [0.1, 2.0, 3.0]})
    np.testing.assert_array_equal(TableSchema(1, ("a",), (column,)).read(frame), [[0], [1], [-1]])
