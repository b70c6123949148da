"""Wait for the results of a Dask cluster whose workers may be lost at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

# Seconds that a fit waits for a worker while there is none: a nanny starts one in a few seconds, a
# batch system in minutes.
WORKER_SECONDS = 300.0
# Seconds between two looks at the workers of a cluster.
LOOK_SECONDS = 1.0
# Looks in a row at which no task of a pass is on any worker, before the pass is started again: few
# if workers were lost during the pass, more if not.
IDLE_LOOKS, PATIENT_LOOKS = 2, 10
# Number of times that a pass is started if workers take along what it needs.
ATTEMPTS = 5

Result = TypeVar("Result")
Futures = dict[Any, Any]


class WorkersLost(Exception):
    """The workers that had a part of a pass are lost."""


def worker_threads(client: Any) -> list[str]:
    """Return the workers of a cluster, each once for each of its threads; wait for the first one.

    Raises
    ------
    TimeoutError
        If there is no worker for `WORKER_SECONDS`.
    """
    start = time.monotonic()
    while not (threads := client.nthreads()):
        if time.monotonic() - start > WORKER_SECONDS:
            raise _no_worker()
        time.sleep(LOOK_SECONDS)
    return [worker for worker, n in threads.items() for _ in range(n)]


def repeated(attempt: Callable[[], Result]) -> Result:
    """Return the result of an attempt, which is repeated if workers are lost that it relied on.

    The scheduler repeats the tasks of a lost worker. It cannot repeat a task whose inputs were
    sent by a client, if all workers that had them are lost.
    """
    from distributed.client import CancelledError

    for _ in range(ATTEMPTS):
        # the error is not kept: it would keep futures of the attempt, and so their tasks alive,
        # which wait for lost workers and are inputs of the next attempt
        with suppress(CancelledError, WorkersLost):
            return attempt()
    raise RuntimeError(
        f"A pass over the rows was started {ATTEMPTS} times, and each time workers were lost that "
        "had a part of it. If their logs show that they ran out of memory, use smaller partitions "
        "or fewer landmarks. Rows that were sent by client.scatter cannot be computed again: build "
        "the collection from functions or files."
    )


@contextmanager
def watched(client: Any, futures: Futures, keys: Callable[[], Iterable[Any]]) -> Iterator[None]:
    """Cancel futures that no worker will ever compute.

    If all workers are lost, the scheduler keeps the tasks that prefer one of them, although they
    may run elsewhere, until a worker of the same address comes back.

    Parameters
    ----------
    client : distributed.Client
    futures : dict from key to Future
        The unfinished futures; only the last one may depend on others. The caller may remove the
        others at any time. Empty at the end.
    keys : callable
        Returns the keys of all tasks that the futures may wait for.

    Raises
    ------
    TimeoutError
        If there is no worker for `WORKER_SECONDS`.
    """
    from distributed.client import CancelledError

    end, reasons = threading.Event(), list[Exception]()
    before = set(client.nthreads())

    def watch() -> None:
        for reason in _hopeless(client, before, keys, end):
            reasons.append(reason)
            # the scheduler fails on a future that other tasks depend on: the last one goes first
            *others, last = futures.values()
            client.cancel([last])
            client.cancel(others)

    thread = threading.Thread(target=watch, name="nysplus-dask-watch", daemon=True)
    thread.start()
    try:
        yield
    except CancelledError:
        if not reasons:
            raise
        raise reasons.pop() from None
    finally:
        end.set()
        thread.join()
        futures.clear()


def _hopeless(
    client: Any, before: set[str], keys: Callable[[], Iterable[Any]], end: threading.Event
) -> Iterator[Exception]:
    """Look at the workers until the end; yield the reason once no result can be expected."""
    seen, idle = time.monotonic(), 0
    while not end.wait(LOOK_SECONDS):
        # of a scheduler that is busy, or lost: then the client ends the fit
        with suppress(OSError):
            workers = set(client.nthreads())
            if workers:
                seen = time.monotonic()
            elif time.monotonic() - seen > WORKER_SECONDS:
                yield _no_worker()
                return
            idle = idle + 1 if workers and _is_idle(client, keys) else 0
            if idle >= (PATIENT_LOOKS if before <= workers else IDLE_LOOKS):
                yield WorkersLost("All workers of this pass are lost.")
                return


def _is_idle(client: Any, keys: Callable[[], Iterable[Any]]) -> bool:
    """Return whether no worker has one of the tasks with these keys."""
    at_work = {key for tasks in client.processing().values() for key in tasks}
    return not at_work or at_work.isdisjoint(keys())


def _no_worker() -> TimeoutError:
    return TimeoutError(
        f"The Dask cluster has had no worker for {WORKER_SECONDS:.0f} s, and the fit was stopped. "
        "Start workers, and see in the logs of the last ones why they ended."
    )
