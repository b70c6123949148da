"""Run a piece of code on hostile input, and check what it may do: see `violation`."""

from __future__ import annotations

import gc
import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

ALLOWED_ERRORS = (ValueError, TypeError, OSError)
MAX_SECONDS = 5.0
MAX_BYTES, BYTES_PER_BYTE = 64 * 10**6, 20

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Hanging(BaseException):
    """Raised in code that runs too long."""


def _interrupt(number: int, frame: object) -> None:
    raise Hanging


def _status(name: str) -> int:
    """Return a line of the status of this process in bytes; 0 on systems without it."""
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return int(found[1]) * 1024 if found else 0


def _begin_peak() -> int:
    """Let the peak of memory start from now, and return the memory now."""
    if CLEAR.exists():
        CLEAR.write_text("5")
    return _status("VmRSS")


def violation(function: Callable[[], object], n_bytes: int) -> str | None:
    """Return a description of a broken promise, or None.

    Code that reads a file of `n_bytes` bytes may raise some types of errors only, ends in
    `MAX_SECONDS`, and takes no more than `MAX_BYTES + BYTES_PER_BYTE · n_bytes` of memory.
    """
    before, start = _begin_peak(), time.monotonic()
    previous = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function()
    except ALLOWED_ERRORS:
        pass
    except Hanging:
        return f"more than {MAX_SECONDS} s: {_place(traceback.format_exc())}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}: {_place(traceback.format_exc())}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    peak = _status("VmHWM") - before
    if peak > MAX_BYTES + BYTES_PER_BYTE * n_bytes:
        gc.collect()
        return f"{peak / 1e6:.0f} MB for {n_bytes} bytes, in {time.monotonic() - start:.1f} s"
    return None


def _place(text: str) -> str:
    """Return the last lines of a traceback that are in this library."""
    places = re.findall(r'File ".*?(nysplus\w*/[^"]+)", line (\d+), in (\w+)', text)
    return " < ".join(f"{file}:{line} {name}" for file, line, name in reversed(places[-3:]))
