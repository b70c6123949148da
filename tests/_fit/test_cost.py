from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._fit import cost as _cost


@pytest.fixture
def clock(monkeypatch):
    """Make a fit take a second, and a millisecond for every row."""
    fits = []

    def timed(estimator, X, y):
        fits.append((len(X), X.shape[1], X.dtype, np.unique(y).size))
        return 1.0 + len(X) / 1000, 3

    monkeypatch.setattr(_cost, "_timed", timed)
    return fits


@pytest.mark.parametrize("n_rows", [500, 40_000, 60_000, 10_000_000])
def test_seconds_follow_the_line_through_two_fits(clock, n_rows):
    cost = NystroemClassifier(100).estimate_cost((n_rows, 5))
    assert cost.seconds == pytest.approx(1.0 + n_rows / 1000)
    assert cost.passes == 3
    assert max(rows for rows, *_ in clock) == min(n_rows, _cost.TRIAL_ROWS)


@pytest.mark.slow
def test_trials_get_smaller_as_landmarks_and_features_get_more(clock):
    for n, d in [(10, 5), (2000, 5), (10, 5000)]:
        NystroemClassifier(n).estimate_cost((10**8, d))
    largest = [max(rows for rows, width, *_ in clock if width == d) for d in (5, 5000)]
    assert largest[1] * 5000 * 8 <= _cost.TRIAL_BYTES
    assert largest[0] == _cost.TRIAL_ROWS


def test_rows_are_invented_as_asked(clock):
    NystroemClassifier(20).estimate_cost((1000, 7), n_outputs=5, dtype="float32")
    assert clock[-1] == (1000, 7, np.float32, 5)


def test_typical_rows_are_repeated_where_they_are_few(clock):
    X, y = np.ones((300, 2)), np.arange(300) % 3
    NystroemClassifier(20).estimate_cost((10_000, 2), rows=(X, y))
    assert clock[-1][0] == 10_000
    assert clock[-1][3] == 3


@pytest.mark.parametrize("estimator", [NystroemClassifier, NystroemRegressor])
def test_real_fits_leave_the_estimator_alone(estimator):
    model = estimator(20, selection="uniform", random_state=0)
    cost = model.estimate_cost((3000, 4))
    assert cost.seconds > 0
    assert cost.passes >= 1
    assert not hasattr(model, "expansion_")
    assert str(cost).endswith("passes")


def test_bytes_are_matrices_and_blocks_within_working_memory(clock):
    model = NystroemClassifier(500)
    with config_context(working_memory=16):
        small = model.estimate_cost((10**6, 20)).bytes
    with config_context(working_memory=4096):
        large = model.estimate_cost((10**6, 20)).bytes
    matrices = 6 * 8 * 500**2
    assert small == matrices + 16 * 2**20
    assert matrices < small < large < matrices + 4096 * 2**20


@pytest.mark.parametrize("shape", [(0, 3), (10, 0), (10.5, 3)])
def test_shapes_that_make_no_sense(shape):
    with pytest.raises(ValueError, match=r"shape\[\d\]=.* must be an integer of at least 1"):
        NystroemClassifier(5).estimate_cost(shape)
