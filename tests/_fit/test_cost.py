from __future__ import annotations

import numpy as np
import pytest
from sampling import sampled
from sklearn import config_context

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._fit import cost as _cost
from nysplus._runtime.threads import thread_count
from nysplus.encoding import ImageEncoder


@pytest.fixture
def clock(monkeypatch):
    """Make a fit take 10 ms and, in three passes, 10 µs for every row."""
    fits = []

    def timed(estimator, X, y):
        fits.append((len(X), X.shape[1], X.dtype, np.unique(y).size))
        passes = len(X) / 1e5
        return _cost.Trial(len(X), 0.01 + passes, passes, 3)

    monkeypatch.setattr(_cost, "_timed", timed)
    monkeypatch.setattr(_cost, "_seconds_per_operation", lambda: 1e-11)
    return fits


@pytest.mark.parametrize("n_rows", [500, 40_000, 60_000, 10_000_000])
def test_passes_take_time_in_proportion_to_rows(clock, n_rows):
    cost = NystroemClassifier(100).estimate_cost((n_rows, 5))
    assert cost.seconds == pytest.approx(0.01 + n_rows / 1e5)
    assert cost.passes == 3
    assert cost.reason is None
    assert max(rows for rows, *_ in clock) == min(n_rows, _cost.TRIAL_ROWS)


def test_samples_may_grow_up_to_the_largest_trial():
    trial = _cost.Trial(6000, seconds=5.0, pass_seconds=3.0, passes=2)
    assert trial.interval(6000) == (5.0, 5.0)
    assert trial.interval(12_000) == (8.0, 10.0)
    assert trial.interval(600_000) == (302.0, 320.0)


def _taking(seconds, share):
    """Return trials that take some seconds for a number of rows, a share of it in passes."""

    def timed(estimator, X, y):
        taken = seconds(len(X))
        timed.total += taken
        return _cost.Trial(len(X), taken, share * taken, 2)

    timed.total = 0.0
    return timed


@pytest.mark.parametrize(
    "seconds",
    [lambda b: 1e-6 * b, lambda b: 3e-4 * b, lambda b: 1.0 + 1e-4 * b, lambda b: 1e-7 * b**1.5],
    ids=["fast", "slow", "constant", "superlinear"],
)
def test_trials_end_in_time(monkeypatch, seconds):
    timed = _taking(seconds, share=1.0)
    monkeypatch.setattr(_cost, "_timed", timed)
    NystroemClassifier(100).estimate_cost((10**6, 5))
    assert 0.0 < timed.total < 5.0


def test_a_time_that_trials_cannot_tell(monkeypatch):
    """Most of a short trial is work on samples that may or may not grow."""
    monkeypatch.setattr(_cost, "_timed", _taking(lambda b: 3e-3 * b, share=0.01))
    cost = NystroemClassifier(100).estimate_cost((10**5, 5))
    assert cost.seconds is None
    assert cost.passes is None
    assert "reach 400 rows" in cost.reason
    assert str(cost).startswith("unknown time")


def test_trials_that_would_take_too_long_are_not_started(clock, monkeypatch):
    monkeypatch.setattr(_cost, "_seconds_per_operation", lambda: 1e-9)
    cost = NystroemClassifier(2000).estimate_cost((10**6, 5))
    assert not clock
    assert cost.seconds is None
    assert cost.bytes > 0
    assert "a trial fit with 2000 landmarks would take more than 4 s" in cost.reason


@pytest.mark.parametrize("more", [{}, {"budget": "16kB"}], ids=str)
def test_the_time_of_training_is_unknown(clock, more):
    cost = NystroemClassifier(100, refine=True, **more).estimate_cost((40_000, 8))
    assert not clock
    assert cost.seconds is None
    assert cost.passes is None
    assert "refine" in cost.reason


@pytest.mark.slow
@sampled(
    ("n_rows", "params"),
    [2000, 70_000],
    [
        {},
        {"alpha": 0.1},
        {"selection": "kmeans"},
        {"selection": "negative-margin"},
        {"gamma": "auto"},
        {"budget": "200B"},
    ],
)
def test_passes_are_those_of_the_fit(monkeypatch, params, n_rows):
    monkeypatch.setattr(_cost, "TRIAL_SECONDS", 600.0)
    X, y = _cost.invented_rows(3, "float64", "classes", 2)
    take = np.arange(n_rows) % len(y)
    model = NystroemClassifier(10, random_state=0, **params)
    cost = model.estimate_cost((n_rows, 3))
    assert cost.passes == model.fit(X[take], y[take]).n_passes_


def test_trials_get_smaller_as_features_get_more(clock):
    NystroemClassifier(10).estimate_cost((10**8, 5000))
    assert max(rows for rows, *_ in clock) * 5000 * 8 <= _cost.TRIAL_BYTES


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
    cost = model.estimate_cost((300, 4))
    assert cost.seconds is None or cost.seconds > 0  # None on a machine that is very busy
    assert not hasattr(model, "expansion_")
    assert " MiB, " in str(cost)


def test_trials_do_not_warn_of_a_class_that_they_lose(rng, monkeypatch):
    X, y = rng.rand(300, 2), (np.arange(300) < 2).astype(int)
    model = NystroemClassifier(5, random_state=0)
    with pytest.warns(UserWarning, match="The model predicts 1 of the 2 classes"):
        model.fit(X, y)
    monkeypatch.setattr(_cost, "TRIAL_ROWS", 300)
    assert model.estimate_cost(X.shape, rows=(X, y)).seconds > 0


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


def test_the_estimated_memory_is_that_of_cosines():
    """A budget holds as many landmarks as for rows of 36 columns, and blocks have 28 more."""
    images = NystroemClassifier(
        budget="16kB", encoder=ImageEncoder((8, 8), n_cosines=6), refine=True
    )
    rows = NystroemClassifier(budget="16kB", refine=True)
    n_rows = 1000
    more = images.estimate_cost((n_rows, 64)).bytes - rows.estimate_cost((n_rows, 36)).bytes
    assert more == 8 * 28 * n_rows * thread_count()
