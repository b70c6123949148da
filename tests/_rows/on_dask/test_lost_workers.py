"""Workers are killed at any moment of a fit: the fit is the same, or it ends with an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
from dask_rows import (
    LOCAL,
    MARKS,
    as_array,
    assert_same,
    bounds_of,
    counting,
    make_classifier,
)
from distributed import Client, LocalCluster, wait

from nysplus._rows import dask_workers

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = [*MARKS, pytest.mark.filterwarnings("ignore:.*exited without calling join")]

N_WORKERS = 3
# Of each subset of the workers.
N_REPEATS = 3
SUBSETS = [
    subset for size in range(1, N_WORKERS + 1) for subset in combinations(range(N_WORKERS), size)
]
# Seconds in which workers are killed; fits with slow partitions take longer.
MOMENTS = 4.0
# Seconds after which a fit counts as hanging, on a machine that is busy with other work.
LIMIT = 240.0


@pytest.fixture(scope="module")
def restarting():
    """A cluster whose workers come back, however long that takes."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        LocalCluster(n_workers=N_WORKERS, processes=True, **LOCAL) as cluster,
    ):
        yield cluster


def _slowly(block, seconds):
    time.sleep(seconds)
    return block


def _slow_rows(kind, X, y, client):
    """Return rows in partitions that take a while to make, in 8 passes or so."""
    make = dask.delayed(_slowly, pure=False)
    cut = bounds_of(12)
    if kind == "delayed":
        return ([make((X[i:j], y[i:j]), 0.1) for i, j in cut],)
    shape = X.shape[1:]
    parts = [da.from_delayed(make(X[i:j], 0.1), (j - i, *shape), X.dtype) for i, j in cut]
    rows = da.concatenate(parts), as_array(y, cut)
    if kind == "persisted":
        rows = client.persist(rows)
        wait(rows)
    return rows


def _kill(cluster, worker):
    """Kill the process of a worker, unless it is dead already."""
    process = cluster.workers[worker].process
    pid = None if process is None or process.process is None else process.process.pid
    if pid is not None:
        os.kill(pid, signal.SIGKILL)


def _fit_while(deed, rows):
    """Fit while another thread does something; return the model, or None if the fit hangs."""
    found = []
    fit = threading.Thread(target=lambda: found.append(make_classifier().fit(*rows)), daemon=True)
    fit.start()
    deed()
    fit.join(LIMIT)
    return found[0] if found else None


def _runs():
    """Return every subset of the workers, some times each."""
    for number, subset in enumerate(SUBSETS * N_REPEATS):
        yield number, subset, ["delayed", "array", "persisted"][number % 3]


# Workers that are killed in known passes are part of every run, see `test_workers.py`.
@pytest.mark.all_combinations
@pytest.mark.parametrize(("seed", "subset", "kind"), _runs())
def test_workers_killed_at_random_moments(restarting, data, seed, subset, kind):
    X, y, _ = data
    memory, rng = make_classifier().fit(X, y), np.random.RandomState(seed)
    moments = sorted(zip(rng.uniform(0, MOMENTS, len(subset)), subset, strict=True))

    def kill_all():
        start = time.monotonic()
        for moment, worker in moments:
            time.sleep(max(0.0, start + moment - time.monotonic()))
            _kill(restarting, worker)

    with Client(restarting) as client:
        client.wait_for_workers(N_WORKERS, timeout=LIMIT)
        model = _fit_while(kill_all, _slow_rows(kind, X, y, client))
    assert model is not None, "the fit hangs"
    assert_same(model, memory)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, marks=[] if call == 2 else [pytest.mark.all_combinations])
        for call in range(1, 6)
    ],
)
def test_the_only_worker_is_killed_in_any_pass(tmp_path, data, call):
    """It takes along its partitions, the sums so far and the function of the pass."""
    X, y, _ = data
    memory = make_classifier(selection="uniform").fit(X, y)
    parts = counting(tmp_path / "calls", X, y, {0: call})
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        LocalCluster(n_workers=1, processes=True, **LOCAL) as cluster,
        Client(cluster),
    ):
        model = make_classifier(selection="uniform").fit(parts)
    assert (tmp_path / "calls" / "killed-0").exists()
    assert_same(model, memory)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(dask_workers, "WORKER_SECONDS", 2.0)
    monkeypatch.setattr(dask_workers, "LOOK_SECONDS", 0.1)


def test_a_cluster_without_workers(impatient, data):
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", **LOCAL) as cluster,
        Client(cluster),
        pytest.raises(TimeoutError, match=r"no worker for 2 s.*Start workers"),
    ):
        make_classifier().fit(*map(as_array, data[:2]))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, marks=[] if call == 2 else [pytest.mark.all_combinations])
        for call in (1, 2, 4)
    ],
)
def test_the_last_worker_does_not_come_back(impatient, tmp_path, data, call):
    X, y, _ = data
    parts = counting(tmp_path / "calls", X, y, {0: call})
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", **LOCAL) as cluster:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        options = ["--no-nanny", "--nthreads=1", "--host=127.0.0.1", "--no-dashboard"]
        worker = subprocess.Popen(
            [*command, *options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # helpers of the tests
            stderr=subprocess.DEVNULL,
        )
        try:
            with Client(cluster) as client:
                client.wait_for_workers(1, timeout=LIMIT)
                with pytest.raises(TimeoutError, match="no worker for 2 s"):
                    make_classifier().fit(parts)
        finally:
            worker.kill()
            worker.wait()
    assert (tmp_path / "calls" / "killed-0").exists()


def test_rows_that_were_sent_are_lost(tmp_path, data):
    """They cannot be computed again."""
    X, y, _ = data
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        LocalCluster(n_workers=1, processes=True, **LOCAL) as cluster,
        Client(cluster) as client,
    ):
        sent = client.scatter((X, y), broadcast=True)
        block = dask.delayed(tuple)(sent)
        parts = counting(tmp_path / "calls", X, y, {0: 2})
        with pytest.raises(RuntimeError, match=r"workers were lost.*client\.scatter"):
            make_classifier().fit([block, *parts])
