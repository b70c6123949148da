"""Few rows of a class count as much as their class: they are found, or a warning says so."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

from nysplus import NystroemClassifier

N = 30_000
FAR = 13.0


def _rows(n_rare, seed=0, d=5):
    """Return rows of one class, among them `n_rare` of another one far away."""
    rng = np.random.RandomState(seed)
    X, y = rng.standard_normal((N, d)), np.zeros(N, dtype=int)
    rare = rng.choice(N, n_rare, replace=False)
    X[rare, 0] += FAR
    y[rare] = 1
    return X, y


def _found(model, X, y, label=1):
    return np.mean(model.predict(X[y == label]) == label)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_rare", [5, 10, 40])
def test_a_rare_class_far_away_is_found(n_rare, seed):
    X, y = _rows(n_rare, seed)
    model = NystroemClassifier(50, random_state=seed).fit(X, y)
    assert _found(model, X, y) >= 0.5
    assert np.mean(model.predict(X) == y) >= 1 - n_rare / (2 * N)


@pytest.mark.parametrize("elsewhere", ["blocks", "memmap", "dask"])
def test_rows_elsewhere_give_the_same_model(elsewhere, tmp_path):
    X, y = _rows(10)
    model = NystroemClassifier(20, random_state=0)
    expected = model.fit(X, y).decision_function(X[:200]), model.alpha_
    if elsewhere == "memmap":
        np.save(tmp_path / "X.npy", X)
        model.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    elif elsewhere == "dask":
        dask = pytest.importorskip("dask", reason="dask is not installed")
        da = pytest.importorskip("dask.array", reason="dask is not installed")
        with dask.config.set(scheduler="synchronous"):
            model.fit(*(da.from_array(array, chunks=7000) for array in (X, y)))
    else:
        cuts = [0, 999, 10_000, 10_001, N]
        model.fit([(X[a:b], y[a:b]) for a, b in pairwise(cuts)])
    assert model.alpha_ == expected[1]
    np.testing.assert_allclose(model.decision_function(X[:200]), expected[0], atol=1e-6)


def test_a_rare_class_beside_two_that_overlap():
    """Noise in the accuracy of large classes is larger than a whole rare class."""
    X, y = _rows(10)
    rng = np.random.RandomState(1)
    y[(y == 0) & (X[:, 1] + 0.7 * rng.standard_normal(N) > 0)] = 2
    model = NystroemClassifier(50, random_state=0).fit(X, y)
    assert _found(model, X, y) >= 0.5


def test_a_rare_label_is_found():
    X, y = _rows(20)
    labels = np.c_[1 - y, y]
    model = NystroemClassifier(50, random_state=0).fit(X, labels)
    assert model.predict(X[y == 1])[:, 1].mean() >= 0.5


# ---- warnings ------------------------------------------------------------------------------------

NEVER = "The model predicts 1 of the 2 classes for none of their own training rows: \\[1\\]"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["arrays", "blocks"])
def test_a_class_that_is_never_predicted(elsewhere):
    X, y = _rows(5)
    model = NystroemClassifier(10, selection="uniform", random_state=0)
    with pytest.warns(UserWarning, match=f"{NEVER}.*class_weight='balanced'.*n_components"):
        model.fit([(X, y)]) if elsewhere else model.fit(X, y)
    assert _found(model, X, y) == 0.0


@pytest.mark.parametrize(
    "params", [{"class_weight": "balanced"}, {"selection": "negative-margin"}], ids=str
)
def test_the_advice_of_the_warning_helps(params):
    X, y = _rows(10)
    model = NystroemClassifier(50, random_state=0, **params)
    assert _found(model.fit(X, y), X, y) >= 0.5


def test_a_label_that_is_never_predicted():
    X, y = _rows(3)
    labels = np.c_[X[:, 1] > 0, y]
    model = NystroemClassifier(10, selection="uniform", random_state=0)
    with pytest.warns(UserWarning, match="1 of the 2 labels.*: \\[1\\].*sample_weight"):
        model.fit(X, labels)


def test_a_class_without_weight_is_not_warned_of():
    X, y = _rows(100)
    y[:200] = 2
    weights = {0: 1.0, 1: 1.0, 2: 0.0}
    model = NystroemClassifier(20, class_weight=weights, random_state=0).fit(X, y)
    assert 2 not in model.predict(X)


def test_a_class_that_is_found_late_is_not_warned_of():
    """Its first 20 rows are among the other class, the next ones are not."""
    X, y = _rows(300)
    rare = np.flatnonzero(y)
    X[rare[:25], 0] -= FAR
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NystroemClassifier(50, random_state=0).fit(X, y)
    assert not model.predict(X[rare[:20]]).any()
    assert model.predict(X[rare[25:]]).mean() >= 0.5


def test_few_rows_are_not_warned_of():
    X, y = np.random.RandomState(0).rand(200, 3), np.arange(200) % 3 == 0
    model = NystroemClassifier(5, alpha=1e6, random_state=0)
    with pytest.warns(UserWarning, match="The model predicts 1 of the 2 classes"):
        model.fit(X, y)
    assert not model.fit(X[:199], y[:199]).predict(X).any()
