from __future__ import annotations

import numpy as np
import pytest

from nysplus._ridge.nested import _completed


@pytest.mark.parametrize("n_chosen", [0, 1, 2, 3, 4])
def test_orders_are_completed_by_columns_that_are_independent(n_chosen, rng):
    """Five columns, of which the last repeats the first."""
    P = rng.randn(6, 5)
    P[:, 4] = P[:, 0]
    order, rank = _completed(P, np.arange(n_chosen), 5)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order[:n_chosen].tolist() == list(range(n_chosen))
    assert rank == 4
    assert {0, 4} - set(order[:4]) != set()  # of the two, one is enough
    assert np.linalg.matrix_rank(P[:, order[:4]]) == 4


def test_no_more_columns_are_counted_than_asked_for(rng):
    P = rng.randn(6, 5)
    for n in (1, 2, 5):
        assert _completed(P, np.arange(1), n)[1] == n
    assert _completed(P, np.arange(3), 2)[1] == 3
