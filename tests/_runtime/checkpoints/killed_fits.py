"""Fits that are killed, and compared with fits that are not."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._runtime.checkpoint import Checkpoint, Step

N, D = 1200, 3


def _data():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N, D))
    score = X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(N)
    targets = {
        "classes": np.searchsorted([-0.5, 0.5], score),
        "labels": np.c_[score > 0, X[:, 2] > 0].astype(int),
        "values": np.c_[np.sin(2 * X[:, 0]), score],
    }
    return X, targets, rng.choice([0.0, 0.5, 1.0, 3.0], N)


X, TARGETS, WEIGHT = _data()


def make_model(target="classes", **params):
    kind = NystroemRegressor if target == "values" else NystroemClassifier
    rule = "uniform" if target == "values" else "negative-margin"  # with passes to be recorded
    own = {"n_components": 15, "gamma": 0.5, "selection": rule, "random_state": 0}
    return kind(**own | params)


def as_memmap(folder, X, y):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y


def as_parquet(folder, X, y):
    frame = pd.DataFrame(X, columns=list("abc")[: X.shape[1]])
    names = ["y"] if y.ndim == 1 else [f"y{j}" for j in range(y.shape[1])]
    frame[names] = y.reshape(len(X), -1)
    frame.to_parquet(folder / "rows.parquet", row_group_size=100)
    return folder / "rows.parquet", "y" if y.ndim == 1 else names


STORES = {
    "ndarray": lambda folder, X, y: (X, y),
    "memmap": as_memmap,
    "parquet": as_parquet,
    "blocks": lambda folder, X, y: (
        [(X[i : i + 70], y[i : i + 70]) for i in range(0, len(X), 70)],
    ),
}
every_store = pytest.mark.parametrize("store", STORES)


class Killed(BaseException):
    """Stands in for a signal that nothing survives."""


@contextmanager
def watched(monkeypatch, stop=None, at=None):
    """Count the blocks that are added to sums; be killed after `stop` of them.

    `at` maps numbers of blocks to what is called after them.
    """
    added = []

    def add(step, addend, position, original=Step.add):
        original(step, addend, position)
        added.append(position)
        (at or {}).get(len(added), lambda: None)()
        if len(added) == stop:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Step, "add", add)
        yield added


def kill(monkeypatch, model, args, path, stop, **more):
    with watched(monkeypatch, stop, **more), pytest.raises(Killed):
        model.fit(*args, checkpoint=Checkpoint(path, seconds=0))


def assert_identical(model, other):
    for name in ("landmarks_", "dual_coef_", "intercept_", "landmark_indices_", "alpha_", "gamma_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    assert model.solver_ == other.solver_
    assert model.n_kernel_evaluations_ == other.n_kernel_evaluations_
    assert model.n_passes_ == other.n_passes_


def assert_goes_on(monkeypatch, make, args, path, stops):
    """Kill a fit after each of `stops`, a share of all blocks, and compare what comes of it."""
    with watched(monkeypatch) as added:
        whole = make().fit(*args, checkpoint=Checkpoint(path, seconds=0))
    total = len(added)
    assert total >= 5
    for stop in sorted({int(share * (total - 1)) + 1 for share in stops}):
        kill(monkeypatch, make(), args, path, stop)
        with watched(monkeypatch) as rest:
            model = make().fit(*args, checkpoint=path)
        assert len(rest) == total - stop
        assert_identical(model, whole)
        assert not list(path.parent.glob(f"{path.name}*"))
    return whole
