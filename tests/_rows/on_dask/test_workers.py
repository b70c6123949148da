"""Workers and clients that die, messages between workers, and their memory."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context

from nysplus import NystroemClassifier
from nysplus.kernels import RBF

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
from dask_rows import LOCAL, MARKS, D, assert_same, calls_in, counting, make_classifier
from distributed import Client, LocalCluster, wait

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = MARKS


# ---- workers that die ---------------------------------------------------------------------------


def test_workers_are_killed_in_two_passes(tmp_path, data):
    X, y, _ = data
    memory = make_classifier().fit(X, y)
    with LocalCluster(n_workers=2, processes=True, **LOCAL) as cluster, Client(cluster):
        model = make_classifier().fit(counting(tmp_path / "calls", X, y, {1: 1, 3: 5}))
    assert len(list(tmp_path.glob("calls/killed-*"))) == 2
    assert_same(model, memory)


RESUMED = """
import sys
import cloudpickle
from distributed import Client, LocalCluster
from nysplus import NystroemClassifier
from nysplus._runtime.checkpoint import Checkpoint

parts, checkpoint, result = sys.argv[1:]
if __name__ == "__main__":
    here = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **here) as cluster:
        with Client(cluster):
            model = NystroemClassifier(12, selection="uniform", random_state=0)
            with open(parts, "rb") as file:
                model.fit(cloudpickle.load(file), checkpoint=Checkpoint(checkpoint, seconds=0))
            with open(result, "wb") as file:
                cloudpickle.dump(model, file)
"""


def test_a_killed_client_goes_on(tmp_path, client, data):
    """Killed in its last pass, which looks for the ridge: the moments are not summed up again."""
    X, y, _ = data
    whole = make_classifier(selection="uniform").fit(counting(tmp_path / "whole", X, y))
    passes = calls_in(tmp_path / "whole")
    parts = counting(tmp_path / "calls", X, y, {3: passes[3]})
    (tmp_path / "parts").write_bytes(cloudpickle.dumps(parts))
    files = [str(tmp_path / name) for name in ("parts", "checkpoint", "model")]
    command = [sys.executable, "-c", RESUMED, *files]
    killed = subprocess.run(command, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert (tmp_path / "checkpoint").exists()
    before = calls_in(tmp_path / "calls")
    subprocess.run(command, check=True, capture_output=True)
    again = np.subtract(calls_in(tmp_path / "calls"), before)
    assert not (tmp_path / "checkpoint").exists()
    assert_same(pickle.loads((tmp_path / "model").read_bytes()), whole)
    # killed in the last pass, with the two before it on record
    np.testing.assert_array_equal(again, np.subtract(passes, 2))


# ---- what travels -------------------------------------------------------------------------------

ROWS, COLUMNS, LANDMARKS = 20_000, 50, 30
PARTITION = 8 * ROWS * COLUMNS
OVERHEAD = 4096
MOMENTS = 8 * LANDMARKS * (LANDMARKS + 4) + OVERHEAD
POINTS = 8 * LANDMARKS * COLUMNS + OVERHEAD
# of the rows that scale probabilities: number, score, target, weight, count and leverage
SCORES = 48 * 1000 + OVERHEAD
# The numbers of the largest broadcast: landmarks as given and as the kernel uses them, with two
# more columns, whitening, inverse, and 1000 row numbers. Its functions name the files of their
# code, so that their bytes depend on the folder of the library.
BROADCAST = 8 * (2 * LANDMARKS * (COLUMNS + 2) + 2 * LANDMARKS**2 + 1000)
FUNCTIONS = 4 * OVERHEAD


def _made(seed):
    X = np.random.RandomState(seed).standard_normal((ROWS, COLUMNS))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _large(kind):
    """Return 4 partitions that the workers make."""
    if kind == "delayed":
        return [dask.delayed(_made)(seed) for seed in range(4)], None
    X = da.random.RandomState(0).standard_normal((4 * ROWS, COLUMNS), chunks=(ROWS, COLUMNS))
    if kind == "y apart":
        return X, da.random.RandomState(1).randint(0, 2, 4 * ROWS, chunks=ROWS)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _forget(dask_worker):
    dask_worker.transfer_incoming_log.clear()
    dask_worker.transfer_outgoing_log.clear()


def _sent(dask_worker):
    """Return the messages of a worker to others and to the client: keys, and bytes on the wire."""
    log = dask_worker.transfer_outgoing_log
    return [([str(key) for key in entry["keys"]], entry["compressed"]) for entry in log]


def _transfers(client, fit):
    """Return the bytes for each broadcast, and the most for each value of anything else."""
    client.run(_forget)
    fit()
    sent = [message for worker in client.run(_sent).values() for message in worker]
    is_job = [any("job" in key.lower()[:4] for key in keys) for keys, _ in sent]
    jobs = [size for (_, size), job in zip(sent, is_job, strict=True) if job]
    others = {
        keys[0]: size / len(keys) for (keys, size), job in zip(sent, is_job, strict=True) if not job
    }
    assert any("_joined" in key for key in others)
    return jobs, others


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("delayed", marks=pytest.mark.all_combinations),
        "array",
        pytest.param("persisted", marks=pytest.mark.all_combinations),
        pytest.param("y apart", marks=pytest.mark.all_combinations),
    ],
)
def test_rows_stay_where_they_are(client, kind):
    X, y = _large(kind)
    if kind == "persisted":
        X, y = client.persist([X, y])
        wait([X, y])
    # labels that do not come with the rows go to where these are
    most = 8 * ROWS + OVERHEAD if kind == "y apart" else max(MOMENTS, POINTS, SCORES)
    for _ in range(4):  # where a task runs is not the same each time
        model = make_classifier(LANDMARKS, gamma=0.01, alpha=1.0)
        jobs, others = _transfers(client, lambda model=model: model.fit(X, y))
        assert max(others.values()) <= most, others
        # landmarks and whitening, in four passes: to one worker, and from there to the other, or
        # twice if that asks for them while they are on the way
        assert len(jobs) <= 8
        assert BROADCAST < max(jobs) <= BROADCAST + FUNCTIONS


@pytest.mark.parametrize(
    "parameters", [{"selection": "kmeans", "alpha": 1.0}, {"selection": "uniform"}], ids=str
)
def test_samples_are_what_travels_most(client, parameters):
    """K-means clusters 20,000 rows of all partitions; a ridge is chosen on 10,000."""
    model = make_classifier(LANDMARKS, gamma=0.01, **parameters)
    most = 20_000 if "alpha" in parameters else 10_000
    _, others = _transfers(client, lambda: model.fit(*_large("array")))
    largest = max(others.values())
    assert largest < PARTITION / 2
    expected = 8 * (COLUMNS + 1) * most / 4
    assert 0.9 * expected < largest < 1.1 * expected + OVERHEAD


def test_much_that_has_to_be_sent_is_no_warning(client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "20kB"}):
        make_classifier(60, gamma=0.01, alpha=1.0, selection="uniform").fit(_large("delayed")[0])


# ---- memory -------------------------------------------------------------------------------------


@dataclass(repr=False, eq=False)
class Noting(RBF):
    """A kernel that writes down how many rows it gets at once."""

    folder: str = ""

    def bind(self, Z):
        bound = super().bind(Z)

        def noting(X):
            Path(self.folder, str(X.shape[0])).touch()
            return bound(X)

        return noting


def _largest_block(folder, data):
    folder.mkdir()
    X, y = da.from_array(data[0], (4000, D)), da.from_array(data[1], 4000)
    kernel = Noting(0.1, str(folder))
    NystroemClassifier(30, kernel=kernel, alpha=1.0, selection="uniform", random_state=0).fit(X, y)
    return max(int(path.name) for path in folder.iterdir())


@pytest.fixture
def many(rng):
    X = rng.standard_normal((8000, D))
    return X, (X[:, 0] > 0).astype(int)


ROW_BYTES = 8 * (2 * D + 3 * 30)


def test_working_memory_holds_on_workers(client, many, tmp_path):
    assert _largest_block(tmp_path / "free", many) == 4000
    with config_context(working_memory=0.5):
        assert 100 < _largest_block(tmp_path / "bound", many) <= 0.5 * 2**20 / ROW_BYTES


def test_blocks_leave_a_worker_room(many, tmp_path):
    # the limit is that of the test's own process, which is larger
    watch = ("target", "spill", "pause", "terminate")
    with (
        dask.config.set({f"distributed.worker.memory.{what}": False for what in watch}),
        LocalCluster(
            n_workers=1, processes=False, protocol="tcp", memory_limit="4MiB", **LOCAL
        ) as cluster,
        Client(cluster),
    ):
        assert 100 < _largest_block(tmp_path / "bound", many) <= 0.5 * 2**20 / ROW_BYTES
