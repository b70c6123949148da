from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from nysplus._validation import as_values, check_count, flat_labels


@pytest.mark.parametrize("value", [1, 7, np.int32(3), np.uint8(200)])
def test_counts_are_integers(value):
    check_count("n", value)
    check_count("n", value, optional=True)


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, np.bool_(True), None, np.nan])
def test_other_values_are_no_counts(value):
    with pytest.raises(ValueError, match=r"n=.* must be an integer of at least 1\.$"):
        check_count("n", value)


def test_the_least_count_and_none_can_be_allowed():
    check_count("n", 0, at_least=0)
    check_count("n", None, optional=True)
    with pytest.raises(ValueError, match="n=1 must be an integer of at least 2 or None"):
        check_count("n", 1, at_least=2, optional=True)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_values_have_squares_that_can_be_summed(sign):
    largest = sign * np.array([1.0, 1e100])
    np.testing.assert_array_equal(as_values(largest), largest)
    with pytest.raises(ValueError, match=r"a value of size 1\.1e\+100, and 1e\+100 is the largest"):
        as_values(1.1 * largest)


def test_a_column_of_classes_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        assert flat_labels(np.array([[0], [1], [2]])).tolist() == [0, 1, 2]
