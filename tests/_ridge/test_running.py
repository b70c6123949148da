from __future__ import annotations

import numpy as np

from nysplus._ridge.running import _same_arrays


def test_arrays_are_the_same_if_their_numbers_are():
    one = np.arange(3.0)
    assert _same_arrays(None, None)
    assert _same_arrays(one, one.copy())
    assert not _same_arrays(one, None)
    assert not _same_arrays(None, one)
    assert not _same_arrays(one, one + 1)
    assert not _same_arrays(one, one[:2])
