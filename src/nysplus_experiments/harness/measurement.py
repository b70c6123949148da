"""Measure time and memory of a call, here or in a child process; describe the machine.

Children are forked and share the parent's data; the parent itself must never have called BLAS or
OpenMP, whose threads do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, TypeVar

from threadpoolctl import threadpool_info

Result = TypeVar("Result")

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")

_WAITING = "OMP_WAIT_POLICY"
# Every library that the benchmarks call takes its number of threads from one of these.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LIBRARIES = (
    *("nysplus", "numpy", "scipy", "scikit-learn"),
    *("scikit-learn-intelex", "lightgbm", "xgboost-cpu", "catboost"),
)


@dataclass(frozen=True)
class Measure(Generic[Result]):
    """The result of a call with its time and memory.

    ``peak_mb`` is the largest resident memory of the process during the call, in MiB; None where
    the system cannot reset the mark. ``before_mb`` is the memory when the call began.
    """

    result: Result
    seconds: float
    cpu_seconds: float
    peak_mb: float | None
    before_mb: float

    @property
    def added_mb(self) -> float | None:
        """Peak memory beyond the memory before the call."""
        return None if self.peak_mb is None else max(self.peak_mb - self.before_mb, 0.0)


def measure(function: Callable[..., Result], *args: Any, **options: Any) -> Measure[Result]:
    """Measure a call. Do not nest calls: the inner one resets the memory mark."""
    before = _status_mb("VmRSS") or 0.0
    try:
        _CLEAR_REFS.write_text("5")  # proc(5): 5 resets the peak resident set size
        resettable = True
    except OSError:
        resettable = False
    cpu, start = time.process_time(), time.perf_counter()
    result = function(*args, **options)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = _status_mb("VmHWM") if resettable else None
    return Measure(result, seconds, cpu, peak, before)


def _status_mb(name: str) -> float | None:
    try:
        status = _STATUS.read_text()
    except OSError:
        return None
    return int(status.split(f"{name}:")[1].split()[0]) / 1024


class TimeLimit(Exception):
    """The child did not finish in time and was killed."""


class ChildError(Exception):
    """The child raised, or died; the text says what happened."""


def n_threads() -> int:
    """Return the number of threads that every measured system may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(os.environ.get("OMP_NUM_THREADS") or cores or 1)


def restart_with_fixed_threads() -> None:
    """Start the program anew with the thread settings that libraries read when they are loaded.

    Waiting OpenMP threads must sleep: two libraries with a pool of spinning threads each would
    slow each other down, and their spinning would count as CPU time.
    """
    requested = {name: str(n_threads()) for name in THREADS} | {_WAITING: "passive"}
    if any(os.environ.get(name) != value for name, value in requested.items()):
        os.environ.update(requested)
        sys.stdout.flush()
        os.execv(sys.executable, sys.orig_argv)


def run_in_child(
    function: Callable[..., Any],
    *args: Any,
    time_limit: float | None = None,
    library_waiting: bool = False,
) -> Any:
    """Return ``function(*args)`` of a child; raise `TimeLimit` or `ChildError`.

    With ``library_waiting`` threads wait as their library does by itself. Such a child is a new
    interpreter, not a fork: libraries read this setting once, and the parent's may be shared.
    """
    context: Any = multiprocessing.get_context("spawn" if library_waiting else "fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, function, args), daemon=True)
    if library_waiting:
        del os.environ[_WAITING]
    try:
        child.start()
    finally:
        os.environ[_WAITING] = "passive"
    sender.close()  # otherwise the parent would wait for ever for a child that died
    try:
        if not receiver.poll(time_limit):
            raise TimeLimit(f"no result after {time_limit:g} s")
        answer, error = receiver.recv()
        child.join(timeout=5)
    except EOFError:
        child.join()
        raise ChildError(f"the child process died with exit code {child.exitcode}") from None
    finally:
        child.kill()  # does nothing to a child that has ended
        child.join()
        receiver.close()
    if error:
        raise ChildError(error)
    return answer


def _answer(sender: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        sender.send((function(*args), ""))
    except Exception as error:  # whatever a peer raises is a row of the table
        sender.send((None, f"{type(error).__name__}: {error}"))


def environment() -> dict[str, Any]:
    """Return the processor, the number of threads and the versions of libraries."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": n_threads(),
        "system": platform.system(),
        "python": platform.python_version(),
        "blas": sorted({f"{b['internal_api']} {b['version']} ({b['architecture']})" for b in blas}),
        "versions": versions,
    }


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
