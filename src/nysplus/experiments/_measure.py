"""Time and memory of one step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


@dataclass
class Measure:
    """What a step took; filled in when it ends.

    Attributes
    ----------
    seconds : float
    peak_rss_mb : float or None
        Largest resident memory of the process during the step, in MiB; None where the
        operating system cannot tell it for a part of a process's life.
    """

    seconds: float = 0.0
    peak_rss_mb: float | None = None


@contextmanager
def measure() -> Iterator[Measure]:
    """Measure the body. Do not nest: an inner measurement resets the memory mark of the outer."""
    result = Measure()
    resettable = _reset_peak()
    start = time.perf_counter()
    yield result
    result.seconds = time.perf_counter() - start
    result.peak_rss_mb = _read_peak() if resettable else None


def largest_peak(*peaks: float | None) -> float | None:
    """Return the largest of the peaks that are known, or None."""
    return max((peak for peak in peaks if peak is not None), default=None)


def _reset_peak() -> bool:
    try:
        _CLEAR_REFS.write_text("5")  # proc(5): 5 resets the peak resident set size
    except OSError:
        return False
    return True


def _read_peak() -> float | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return None
