"""A fit that was killed goes on where it was, and ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from killed_fits import (
    STORES,
    TARGETS,
    WEIGHT,
    X,
    as_memmap,
    assert_goes_on,
    assert_identical,
    every_store,
    kill,
    make_model,
    watched,
)
from sampling import sampled
from threadpoolctl import threadpool_limits

from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.rules import SolverRules
from nysplus._runtime.checkpoint import Checkpoint
from nysplus.kernels import RBF

pytestmark = pytest.mark.slow

# ---- going on -----------------------------------------------------------------------------------


@sampled(("store", "target"), STORES.keys(), TARGETS.keys())
def test_killed_anywhere(monkeypatch, tmp_path, path, store, target):
    args = STORES[store](tmp_path, X, TARGETS[target])
    assert_goes_on(monkeypatch, lambda: make_model(target), args, path, [0, 0.3, 0.6, 1])


def test_killed_after_every_single_block(monkeypatch, path):
    shares = np.linspace(0, 1, 200)
    assert_goes_on(monkeypatch, make_model, (X, TARGETS["classes"]), path, shares)


@sampled(("store", "threads"), STORES.keys(), [2, 3])
def test_several_threads(monkeypatch, tmp_path, path, store, threads):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    with threadpool_limits(threads, user_api="blas"):
        assert_goes_on(monkeypatch, lambda: make_model(alpha=0.1), args, path, [0.2, 0.5, 0.8])


@sampled(
    ("store", "params"),
    ["ndarray", "blocks"],
    [
        {"selection": "uniform", "alpha": 0.1},
        {"selection": "kmeans"},
        {"selection": "supervised-kmeans", "alpha": [0.1, 1.0]},
        {"selection": "support-centroids", "alpha": [0.1, 1.0]},
        {"selection": X[:15], "gamma": "scale"},
        {"gamma": "median", "approximation": "randomized"},
        {"approximation": "ensemble", "class_weight": "balanced"},
        {"kernel": RBF("median"), "gamma": "scale"},
    ],
)
def test_every_parameter(monkeypatch, tmp_path, path, store, params):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    assert_goes_on(monkeypatch, lambda: make_model(**params), args, path, [0.2, 0.8])


def test_weighted_rows(monkeypatch, tmp_path, path):
    args = *as_memmap(tmp_path, X, TARGETS["classes"]), WEIGHT
    assert_goes_on(monkeypatch, make_model, args, path, [0.3, 0.7])


SOLVERS = {
    "direct-float64": (np.float64, True),
    "direct-float32": (np.float32, True),
    "direct-float32 polished": (np.float32, False),
    "gram-float64": (np.float64, True),
    "gram-float64 polished": (np.float64, False),
}


def _use(monkeypatch, rules):
    """Let estimators fit by these rules: they have no parameter for them."""
    monkeypatch.setitem(fit_expansion.__kwdefaults__, "rules", rules)


@pytest.mark.parametrize(("store", "alpha"), [("ndarray", "auto"), ("memmap", 0.1)])
@pytest.mark.parametrize("case", SOLVERS)
def test_every_solver(monkeypatch, tmp_path, path, case, store, alpha):
    dtype, certified = SOLVERS[case]
    solvers = (case.removesuffix(" polished"), "direct-float64")
    tolerance = np.inf if certified else 0.0
    _use(monkeypatch, SolverRules(solvers=solvers, tolerance=tolerance, fine_tolerance=1e-13))
    args = STORES[store](tmp_path, X.astype(dtype), TARGETS["classes"])
    model = assert_goes_on(
        monkeypatch,
        lambda: make_model(selection=X[:15], alpha=alpha),
        args,
        path,
        [0.2, 0.6, 0.9],
    )
    assert case.startswith(model.solver_) or case == "direct-float32 polished"


@pytest.mark.parametrize("target", TARGETS)
def test_the_iterative_solver_is_not_recorded(monkeypatch, path, target):
    """What it stores between passes is in memory only."""
    free = dict.fromkeys(("exponential_cost", "stored_value_cost", "sketched_value_cost"), 0.0)
    _use(monkeypatch, SolverRules(typical_iterations=0, **free))
    args = X, TARGETS[target]
    assert make_model(target).fit(*args).solver_.startswith("iterative")
    model = assert_goes_on(monkeypatch, lambda: make_model(target), args, path, [0.2, 0.8])
    assert not model.solver_.startswith("iterative")


@every_store
def test_a_seed_that_nobody_gave(monkeypatch, tmp_path, path, store):
    args = STORES[store](tmp_path, X, TARGETS["classes"])
    kill(monkeypatch, make_model(random_state=None), args, path, 12)
    with np.load(path) as file:
        keys, numbers = file["generator.keys"], file["generator.numbers"]
    seed = np.random.RandomState()
    seed.set_state(("MT19937", keys, int(numbers[0]), int(numbers[1]), float(numbers[2])))
    model = make_model(random_state=None).fit(*args, checkpoint=path)
    assert_identical(model, make_model(random_state=seed).fit(*args))


def test_a_generator_as_seed(monkeypatch, path):
    args = X, TARGETS["classes"]
    whole = make_model(random_state=np.random.RandomState(7)).fit(*args)
    kill(monkeypatch, make_model(random_state=np.random.RandomState(7)), args, path, 12)
    model = make_model(random_state=np.random.RandomState(7)).fit(*args, checkpoint=path)
    assert_identical(model, whole)


def test_a_checkpoint_changes_nothing(tmp_path, path):
    for store in STORES:
        args = STORES[store](tmp_path, X, TARGETS["classes"])
        assert_identical(
            make_model().fit(*args, checkpoint=Checkpoint(path, 0)), make_model().fit(*args)
        )
        assert not path.exists()


def test_verbosity_may_change(monkeypatch, path, capsys):
    args = X, TARGETS["classes"]
    kill(monkeypatch, make_model(), args, path, 12)
    with watched(monkeypatch) as rest:
        make_model(verbose=2).fit(*args, checkpoint=str(path))
    with watched(monkeypatch) as added:
        make_model().fit(*args)
    assert len(rest) == len(added) - 12


def test_time_between_writes(monkeypatch, path):
    def nothing_is_written():
        assert not path.exists()

    with watched(monkeypatch, at={5: nothing_is_written, 20: nothing_is_written}):
        make_model().fit(X, TARGETS["classes"], checkpoint=path)


# ---- a real signal ------------------------------------------------------------------------------

SLOW_FIT = """
import sys, time
import numpy as np, sklearn
from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._rows.accumulators import TopRows
from nysplus._runtime.checkpoint import Checkpoint
from nysplus._ridge.path import Moments

folder, pause, *cases = sys.argv[1:]
rows = []

def slowly(cls):
    def of(cls, first, second, third, original=cls.of.__func__):
        rows.append(1)
        time.sleep(float(pause))
        return original(cls, first, second, third)
    cls.of = classmethod(of)

slowly(Moments)
slowly(TopRows)
X = np.load(folder + "/X.npy")
sklearn.set_config(working_memory=0.1)
for case in cases:
    store, target = case.split(".")
    y = np.load(folder + f"/{target}.npy")
    names = "y" if y.ndim == 1 else [f"y{j}" for j in range(y.shape[1])]
    args = {
        "ndarray": lambda: (X, y),
        "memmap": lambda: (np.load(folder + "/X.npy", mmap_mode="r"), y),
        "parquet": lambda: (folder + "/rows.parquet", names),
        "blocks": lambda: ([(X[i : i + 70], y[i : i + 70]) for i in range(0, len(X), 70)],),
    }[store]()
    kind = NystroemRegressor if target == "values" else NystroemClassifier
    rule = "uniform" if target == "values" else "negative-margin"
    model = kind(15, gamma=0.5, selection=rule, random_state=0)
    rows.clear()
    model.fit(*args, checkpoint=Checkpoint(f"{folder}/{case}.checkpoint", seconds=0))
    np.savez(
        f"{folder}/{case}.npz",
        landmarks=model.landmarks_, coef=model.dual_coef_, intercept=model.intercept_,
        indices=model.landmark_indices_, alpha=model.alpha_, blocks=len(rows),
    )
"""
# What a fit has behind it when it is killed: sums over all rows.
CASES = {"ndarray.classes": 3, "memmap.values": 0, "parquet.classes": 1, "blocks.labels": 3}


def _finished_sums(path):
    """Return how many passes the record of a fit has behind it."""
    if not path.exists():
        return -1
    with np.load(path) as file:
        return len({name.partition(".")[0] for name in file.files} - {"header", "generator"}) - 1


def test_killed_by_a_signal(monkeypatch, tmp_path):
    stored = {}
    for case in CASES:
        store, target = case.split(".")
        stored[case] = STORES[store](tmp_path, X, TARGETS[target])
        np.save(tmp_path / f"{target}.npy", TARGETS[target])
    command = [sys.executable, "-c", SLOW_FIT, str(tmp_path)]
    for case, sums in CASES.items():
        path = tmp_path / f"{case}.checkpoint"
        with subprocess.Popen([*command, "0.02", case]) as process:
            until = time.monotonic() + 60
            while _finished_sums(path) < sums and time.monotonic() < until:
                assert process.poll() is None
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert _finished_sums(path) >= sums
    subprocess.run([*command, "0", *CASES], check=True)
    assert not [*tmp_path.glob("*.checkpoint"), *tmp_path.glob("*.part")]
    for case, args in stored.items():
        with watched(monkeypatch) as added:
            whole = make_model(case.split(".")[1]).fit(*args)
        with np.load(tmp_path / f"{case}.npz") as result:
            np.testing.assert_array_equal(result["landmarks"], whole.landmarks_)
            np.testing.assert_array_equal(result["coef"], whole.dual_coef_)
            np.testing.assert_array_equal(result["intercept"], whole.intercept_)
            np.testing.assert_array_equal(result["indices"], whole.landmark_indices_)
            assert result["alpha"] == whole.alpha_
            assert 0 < result["blocks"] < len(added)


def test_records_are_on_the_disk_before_they_replace_others(monkeypatch, path):
    done = []
    monkeypatch.setattr(os, "fsync", lambda file: done.append("on disk"))
    monkeypatch.setattr(os, "replace", lambda *names: done.append("in place"))
    kill(monkeypatch, make_model(), (X, TARGETS["classes"]), path, 2)
    assert done == ["on disk", "in place"] * 2
