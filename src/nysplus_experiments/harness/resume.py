"""Measure what a file of results lacks, so that an interrupted run resumes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

from nysplus_experiments.harness import records
from nysplus_experiments.harness.measurement import THREADS, environment
from nysplus_experiments.harness.tables import count

#: Entries of the environment that describe the machine.
MACHINE = ("processor", "cores", "system", "blas")
Task = tuple[Any, ...]
Outcome = Callable[[], Any]


def measure_missing(
    path: Path,
    row_class: type[Any],
    tasks: Iterable[Task],
    measure: Callable[..., Any],
    *,
    fresh: bool = False,
    settings: Mapping[str, Any] | None = None,
    prepare: Callable[[], object] | None = None,
    valid: Callable[[Any], bool] | None = None,
    workers: int = 0,
    any_machine: bool = False,
) -> None:
    """Append rows to a file for each task that has none; print one line for each.

    ``measure(*task)`` returns a row or a list of rows; a measurement that raises is reported and
    leaves no row, because a single failure must not end a run of hours. Tasks are told by the
    first columns of a row, or by its property ``key``.

    Parameters
    ----------
    settings : mapping, optional
        Entries of the environment that the numbers depend on, beside machine and versions.
    prepare : callable, optional
        Called once before the first measurement, for example to import libraries.
    valid : callable, optional
        Tasks of which all rows are rejected by this function are measured again.
    workers : int
        Single-threaded processes that share the tasks; 0 measures in this process.
    any_machine : bool
        Whether rows of another machine are kept if versions and settings are the same: for scores,
        which hardly depend on the machine. The environment stays that of the first row.
    """
    known = environment() | dict(settings or {})
    if any_machine:
        first = records.environment_of(path)
        known |= {name: first[name] for name in MACHINE if name in first}
    rows = records.begin(path, row_class, known, fresh)
    done = {row.key for row in rows if valid is None or valid(row)}
    missing = [task for task in tasks if tuple(task) not in done]
    if missing and prepare:
        prepare()
    try:
        failures = _measure(path, missing, _outcomes(missing, measure, workers))
    except BrokenProcessPool:
        raise SystemExit(
            "A worker died, possibly out of memory. The same command resumes the run."
        ) from None
    if failures:
        raise SystemExit(f"{count(failures, 'measurement')} failed. The same command tries again.")


def _measure(path: Path, tasks: Sequence[Task], outcomes: Iterator[tuple[Task, Outcome]]) -> int:
    """Append the rows as they come; return the number of failures."""
    start, failures = time.perf_counter(), 0
    for number, (task, outcome) in enumerate(outcomes, start=1):
        try:
            found = outcome()
        except BrokenProcessPool:
            raise
        except Exception as error:  # one failed task does not end the run
            failures += 1
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        else:
            rows = found if isinstance(found, list) else [found]
            for row in rows:
                records.append(path, row)
            text = _numbers(rows[-1])
        minutes = (time.perf_counter() - start) / 60
        words = " ".join(str(part) for part in task if part != "")
        print(f"{number} of {len(tasks)}, {minutes:.1f} min: {words}: {text}", flush=True)
    return failures


def _outcomes(
    tasks: Sequence[Task], measure: Callable[..., Any], workers: int
) -> Iterator[tuple[Task, Outcome]]:
    """Yield each task with a function that returns its rows or raises."""
    if not workers:
        for task in tasks:
            yield task, lambda task=task: measure(*task)  # type: ignore[misc]
        return
    # New processes read these variables when they load their libraries.
    with patch.dict(os.environ, dict.fromkeys(THREADS, "1")):
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker)
        try:
            running: dict[Future[Any], Task] = {pool.submit(measure, *task): task for task in tasks}
            for future in as_completed(running):
                yield running[future], future.result
        finally:
            pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Leave interrupts to the parent, and end with it: a killed parent cannot stop its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _numbers(row: records.Row) -> str:
    """Return the measured columns of a row."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in vars(row).items()
        if name not in row.key_columns and value not in (None, "")
    )
