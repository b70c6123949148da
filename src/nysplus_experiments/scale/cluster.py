"""A fit on a Dask cluster: one worker against two, what moves between them, what a plan needs.

Persisted synthetic rows of 20 features, the same partitions each time, workers of one thread on
this machine. Every fit has a cluster of its own, those of one and two workers take turns, and a
run that was stopped goes on. Many small partitions show what a task costs beside its rows.

    python benchmarks/cluster.py [--rows N] [--repeats 3] [--fresh]
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import csv_rows
import dask
import dask.array as da
import numpy as np
from child_process import environment, restart_with_fixed_threads
from dask.utils import key_split
from distributed import Client, LocalCluster, wait
from measurement import RESULTS
from out_of_core import (
    FEATURES,
    LANDMARKS,
    SELECTIONS,
    TEST_ROWS,
    WORKING_MEMORY,
    fit_and_listen,
    make_rows,
    undisturbed,
    watch_others,
)
from peers import SEED
from sklearn import config_context

from nysplus import NystroemClassifier
from nysplus._ridge import Moments

WORKERS = (1, 2)
ROWS, PARTITIONS = 1_000_000, 20
# By default Dask's workers give every block of memory back at once and have to ask for it again,
# which costs a fit up to a third of its time; these settings of glibc keep it for the next block.
# And where a worker would be idle, the scheduler moves partitions unless it is told not to.
SETTINGS = {
    "distributed.scheduler.work-stealing": False,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}
# Partitions so small that a pass over them is nothing but their number.
TINY_PARTITIONS, TINY_ROWS, TINY_LANDMARKS = 500, 20, 10


@dataclass(frozen=True)
class Transfer:
    """Messages of one kind between workers, or to whom the client asks."""

    kind: str
    messages: int
    n_bytes: int
    largest: int


@dataclass(frozen=True)
class ClusterFit:
    """One row of ``cluster.csv``: a fit.

    Attributes
    ----------
    what : "fit" or "tiny"
        "tiny": a fit to very small partitions, for what a task costs.
    workers, partitions, rows, n : int
        One thread a worker.
    sum_bytes : int
        Bytes of the moments that a pass sums up, n² + n + n L + 2 L numbers.
    broadcast_bytes : int
        The largest thing, pickled, that is sent to all workers before a pass.
    accuracy : float or None
        Of held-out rows, in percent.
    others : float or None
        As in `out_of_core.OutOfCore`.
    transfers : str
        Messages that workers have sent, by what is in them: "kind=messages=bytes=largest", several
        joined by ";". "summed" and "joined" are sums of partitions, "taken" rows.
    stages : str
        What the client reported of the passes: "name=rows=seconds", several joined by ";".
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

    @property
    def key(self) -> tuple[str, str, int, int, int, int, int]:
        """What was measured."""
        size = self.rows, self.partitions, self.n
        return self.what, self.selection, self.workers, *size, self.repeat

    def list_transfers(self) -> list[Transfer]:
        """Return the messages as records."""
        parts = [kind.rsplit("=", 3) for kind in self.transfers.split(";") if kind]
        return [Transfer(kind, *map(int, numbers)) for kind, *numbers in parts]


@contextlib.contextmanager
def cluster_of(n_workers: int) -> Iterator[Client]:
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
    """Return the messages that a worker has sent: what was in them, and their bytes."""
    return [
        ([str(key) for key in sent["keys"]], sent["compressed"] or sent["total"])
        for sent in dask_worker.transfer_outgoing_log
    ]


def sum_up(messages: list[tuple[list[str], int]]) -> list[Transfer]:
    """Group messages by what is in them."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for keys, n_bytes in messages:
        kinds = sorted({key_split(key).strip("_") for key in keys})
        sizes["+".join(kinds)].append(n_bytes)
    return [Transfer(kind, len(s), sum(s), max(s)) for kind, s in sorted(sizes.items())]


def fit_once(n_workers: int, rows: int, partitions: int, n: int, selection: str) -> dict[str, Any]:
    """Fit after a warm-up on a new cluster; return columns of `ClusterFit`."""
    tiny = rows // partitions <= TINY_ROWS
    # The small fit chooses no ridge: it is about passes, not about what a client does with rows.
    options = {"alpha": 1.0} if tiny else {}
    with cluster_of(n_workers) as client, config_context(working_memory=WORKING_MEMORY):
        X, y = persisted_rows(rows, partitions)
        warm = X.partitions[: 2 * n_workers], y.partitions[: 2 * n_workers]
        NystroemClassifier(50 if not tiny else n, random_state=SEED).fit(*warm)
        broadcast = watch_scatter(client)
        before = client.run(outgoing)
        model = NystroemClassifier(n, selection=selection, random_state=SEED, verbose=2, **options)
        with watch_others() as others:
            start = time.perf_counter()
            stages = fit_and_listen(model, X, y)
            seconds = time.perf_counter() - start
        after = client.run(outgoing)
    messages = [m for worker, sent in after.items() for m in sent[len(before[worker]) :]]
    transfers = sum_up(messages)
    accuracy = None if tiny else 100 * model.score(*make_rows(TEST_ROWS, SEED))
    return {
        "fit_seconds": round(seconds, 3),
        "passes": model.n_passes_,
        "solver": model.solver_,
        "accuracy": None if accuracy is None else round(accuracy, 3),
        "sum_bytes": moments_bytes(n, model.dual_coef_.shape[1]),
        "broadcast_bytes": max(broadcast, default=0),
        "others": others.percent,
        "transfers": ";".join(f"{t.kind}={t.messages}={t.n_bytes}={t.largest}" for t in transfers),
        "stages": stages,
    }


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


def tasks_of(options: argparse.Namespace) -> Iterator[tuple[str, str, int, int, int, int, int]]:
    """Yield the keys of all measurements; one and two workers take turns."""
    for repeat in range(options.repeats):
        for selection in SELECTIONS:
            for workers in WORKERS[:: -1 if repeat % 2 else 1]:
                size = options.rows, options.partitions, options.landmarks
                yield "fit", selection, workers, *size, repeat
        tiny = TINY_PARTITIONS * TINY_ROWS, TINY_PARTITIONS, TINY_LANDMARKS
        yield "tiny", "uniform", WORKERS[-1], *tiny, repeat


def run(options: argparse.Namespace) -> None:
    """Measure everything that is not in the file yet."""
    known = environment() | {"working_memory": WORKING_MEMORY, "dask": dask.__version__}
    found = csv_rows.begin(options.out, ClusterFit, known, options.fresh)
    done = {row.key for row in undisturbed(found)}
    for key in tasks_of(options):
        if key in done:
            continue
        what, selection, workers, rows, partitions, n, repeat = key
        columns = fit_once(workers, rows, partitions, n, selection)
        row = ClusterFit(*key, **columns)
        csv_rows.append(options.out, row)
        largest = max((t.largest for t in row.list_transfers()), default=0)
        print(
            f"{repeat + 1}. {what:5s}{selection:16s}{workers} workers {rows:>10,d} rows "
            f"{row.fit_seconds:7.2f} s  {row.passes} passes; bytes: sums {row.sum_bytes:,d}, "
            f"largest message {largest:,d}, broadcast {row.broadcast_bytes:,d}; "
            f"others {row.others} %",
            flush=True,
        )


def main() -> None:
    # One thread for each worker, and for the client: workers take their settings from here.
    os.environ["OMP_NUM_THREADS"] = "1"
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--landmarks", type=int, default=LANDMARKS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "cluster.csv")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    try:
        run(parser.parse_args())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")


if __name__ == "__main__":
    main()
