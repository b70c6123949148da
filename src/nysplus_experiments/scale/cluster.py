"""Measure fits on a Dask cluster: one worker against two, and the messages between them.

Persisted synthetic rows, the same partitions each time, workers of one thread on this machine.
Every fit has a cluster of its own, and those of one and two workers take turns. Many small
partitions show the overhead of a task.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask.utils import key_split
from distributed import Client, LocalCluster, wait
from sklearn import config_context

from nysplus import NystroemClassifier
from nysplus._ridge.moments import Moments
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.scale.out_of_core import LANDMARKS, SELECTIONS, WORKING_MEMORY
from nysplus_experiments.scale.row_files import FEATURES, TEST_ROWS, make_rows
from nysplus_experiments.scale.stages import undisturbed, watched_fit
from nysplus_experiments.speed.peers import SEED

WORKERS = (1, 2)
ROWS, PARTITIONS = 1_000_000, 20
# By default Dask's workers return every block of memory at once and have to ask for it again,
# which costs a fit up to a third of its time; these settings of glibc keep it for the next block.
# And the scheduler moves partitions to an idle worker unless it is told not to.
SETTINGS = {
    "distributed.scheduler.work-stealing": False,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}
# Partitions so small that a pass over them costs nothing but their tasks.
TINY_PARTITIONS, TINY_ROWS, TINY_LANDMARKS = 500, 20, 10

Key = tuple[str, str, int, int, int, int, int]


class Transfer(NamedTuple):
    """Messages of one kind from worker to worker or from workers to the client."""

    kind: str
    messages: int
    n_bytes: int
    largest: int


@dataclass(frozen=True)
class ClusterFit(Row, key="what selection workers rows partitions n repeat"):
    """One row of ``cluster.csv``: a fit; "tiny" ones have very small partitions.

    ``sum_bytes`` are those of the moments that a pass sums up, ``broadcast_bytes`` those of the
    largest pickled object sent to all workers, ``others`` is as in `OutOfCore`. ``transfers`` are
    "kind=messages=bytes=largest" joined by ";", ``stages`` the column of `stages.fit_and_record`.
    """

    what: str
    selection: str
    workers: int
    rows: int
    partitions: int
    n: int
    repeat: int
    fit_seconds: float
    passes: int
    solver: str
    accuracy: float | None
    sum_bytes: int
    broadcast_bytes: int
    others: float | None
    transfers: str
    stages: str

    def list_transfers(self) -> list[Transfer]:
        """Return the messages as records."""
        parts = [kind.rsplit("=", 3) for kind in self.transfers.split(";") if kind]
        return [Transfer(kind, *map(int, numbers)) for kind, *numbers in parts]


@contextlib.contextmanager
def open_cluster(n_workers: int) -> Iterator[Client]:
    """Open a cluster of single-threaded processes on this machine."""
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            processes=True,
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def persisted_rows(n_rows: int, partitions: int) -> tuple[Any, Any]:
    """Return rows and labels as Dask arrays, made on the workers and kept there."""
    size = n_rows // partitions
    blocks = [dask.delayed(make_rows, nout=2)(size, SEED + 1 + k) for k in range(partitions)]
    X = da.concatenate([da.from_delayed(X, (size, FEATURES), np.float64) for X, _ in blocks])
    y = da.concatenate([da.from_delayed(y, (size,), np.int8) for _, y in blocks])
    X, y = dask.persist(X, y)
    wait([X, y])
    return X, y


def outgoing(dask_worker: Any) -> list[tuple[list[str], int]]:
    """Return the messages that a worker has sent: the keys in them, and their bytes."""
    return [
        ([str(key) for key in sent["keys"]], sent["compressed"] or sent["total"])
        for sent in dask_worker.transfer_outgoing_log
    ]


def sum_up(messages: Sequence[tuple[list[str], int]]) -> list[Transfer]:
    """Group messages by their content."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for keys, n_bytes in messages:
        kinds = sorted({key_split(key).strip("_") for key in keys})
        sizes["+".join(kinds)].append(n_bytes)
    return [Transfer(kind, len(s), sum(s), max(s)) for kind, s in sorted(sizes.items())]


def measure(
    what: str, selection: str, workers: int, rows: int, partitions: int, n: int, repeat: int
) -> ClusterFit:
    """Fit after a warm-up on a new cluster."""
    tiny = what == "tiny"
    # The small fit chooses no ridge: it is about passes, not about the client's work on rows.
    alpha = 1.0 if tiny else "auto"
    with open_cluster(workers) as client, config_context(working_memory=WORKING_MEMORY):
        X, y = persisted_rows(rows, partitions)
        warm = X.partitions[: 2 * workers], y.partitions[: 2 * workers]
        NystroemClassifier(min(n, 50), random_state=SEED).fit(*warm)
        broadcast = watch_scatter(client)
        before = client.run(outgoing)
        model = NystroemClassifier(
            n, selection=selection, alpha=alpha, random_state=SEED, verbose=2
        )
        columns = watched_fit(model, X, y)
        after = client.run(outgoing)
    sent = [m for worker, sent in after.items() for m in sent[len(before[worker]) :]]
    return ClusterFit(
        *(what, selection, workers, rows, partitions, n, repeat),
        **columns,
        accuracy=None if tiny else round(100 * model.score(*make_rows(TEST_ROWS, SEED)), 3),
        sum_bytes=moments_bytes(n, model.dual_coef_.shape[1]),
        broadcast_bytes=max(broadcast, default=0),
        transfers=";".join("=".join(map(str, transfer)) for transfer in sum_up(sent)),
    )


def moments_bytes(n: int, n_outputs: int) -> int:
    """Return the bytes of the arrays of the moments of n features."""
    zero = Moments.zero(n, n_outputs)
    return sum(value.nbytes for value in vars(zero).values() if isinstance(value, np.ndarray))


def watch_scatter(client: Client) -> list[int]:
    """Return a list that every broadcast appends its pickled size to."""
    sizes: list[int] = []
    original = client.scatter

    def watched(data: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(len(cloudpickle.dumps(data)))
        return original(data, *args, **kwargs)

    client.scatter = watched
    return sizes


def plan(rows: int, partitions: int, n: int, repeats: int) -> Iterator[Key]:
    """Yield all fits; one and two workers take turns."""
    for repeat in range(repeats):
        for selection in SELECTIONS:
            for workers in WORKERS[:: -1 if repeat % 2 else 1]:
                yield "fit", selection, workers, rows, partitions, n, repeat
        tiny = TINY_PARTITIONS * TINY_ROWS, TINY_PARTITIONS, TINY_LANDMARKS
        yield "tiny", "uniform", WORKERS[-1], *tiny, repeat


def run(options: BenchOptions) -> None:
    """Measure the fits that are not in the file yet."""
    options.expect("rows", "partitions", "landmarks", "repeats")
    smoke = options.smoke
    tasks = plan(
        options.integer("rows", 20_000 if smoke else ROWS),
        options.integer("partitions", 4 if smoke else PARTITIONS),
        options.integer("landmarks", 50 if smoke else LANDMARKS),
        options.integer("repeats", 1 if smoke else 3),
    )
    options.measure(
        "cluster.csv",
        ClusterFit,
        list(tasks)[: 2 if smoke else None],
        measure,
        settings={"threads": 1, "working_memory": WORKING_MEMORY, "dask": dask.__version__},
        valid=undisturbed,
        workers=1,  # a process of one thread, whose settings the cluster's workers inherit
    )
