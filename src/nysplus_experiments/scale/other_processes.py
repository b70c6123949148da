"""Measure the CPU time of other processes, which disturb a measurement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil

# Percent of the CPU that other processes may take; the system itself takes some.
MOST_OTHERS = 4.0


@dataclass
class Others:
    """CPU time of other processes, in percent of all cores; None where it is unknown."""

    percent: float | None = None


@contextlib.contextmanager
def watch_others() -> Iterator[Others]:
    """Measure the CPU time of processes other than this one and its living children."""
    result = Others()
    before, start = _busy_seconds(), _own_seconds()
    yield result
    after, end = _busy_seconds(), _own_seconds()
    if before is not None and after is not None:
        busy, total = (b - a for a, b in zip(before, after, strict=True))
        others = max(busy - (end - start), 0.0)
        result.percent = round(100 * others / max(total, 1e-9), 1)


def undisturbed(row: Any) -> bool:
    """Return whether other processes took little CPU time during a measurement."""
    return row.others is None or row.others <= MOST_OTHERS


def _busy_seconds() -> tuple[float, float] | None:
    """Return the used and the available CPU seconds of all cores; None outside of Linux."""
    if not psutil.LINUX:
        return None
    times = psutil.cpu_times()
    # Guests are part of user and nice.
    total = sum(times) - times.guest - times.guest_nice
    return total - times.idle - times.iowait, total


def _own_seconds() -> float:
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total
