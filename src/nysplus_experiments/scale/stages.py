"""Record the stages that a fit reports, and the CPU time of other processes, which disturb it."""

from __future__ import annotations

import contextlib
import io
import re
import time
from dataclasses import dataclass
from typing import Any

import psutil

# The line of a fit with verbose=2 on each pass.
_PASS = re.compile(r"^\[\w+\] (?P<stage>.+): (?P<rows>[\d,]+)(?: of [\d,]+)? rows, (?P<s>[\d.]+) s")
# Names of earlier versions in committed results, and today's names.
_RENAMED = {"margins": "scores"}
# Percent of the CPU that other processes may take; the system itself takes some.
MOST_OTHERS = 4.0


@dataclass(frozen=True)
class Stage:
    """One stage of a fit: its name, the rows it passed over, seconds."""

    name: str
    rows: int
    seconds: float

    @property
    def kind(self) -> str:
        """The name without the part of the fit: "moments" of "pilot: moments"."""
        kind = self.name.rpartition(": ")[2]
        return _RENAMED.get(kind, kind)


def fit_and_record(model: Any, X: Any, y: Any) -> str:
    """Fit with ``verbose=2``; return its stages as "name=rows=seconds", joined by ";"."""
    reported = io.StringIO()
    with contextlib.redirect_stderr(reported):
        model.fit(X, y)
    stages = parse_report(reported.getvalue())
    return ";".join(f"{stage.name}={stage.rows}={stage.seconds}" for stage in stages)


def parse_report(text: str) -> list[Stage]:
    """Return the stages in the report of a fit.

    >>> parse_report("[NystroemClassifier] survey: 1,000 of 1,000 rows, 0.5 s, 2,000 rows/s")
    [Stage(name='survey', rows=1000, seconds=0.5)]
    """
    found = (_PASS.match(line) for line in text.splitlines())
    return [
        Stage(match["stage"], int(match["rows"].replace(",", "")), float(match["s"]))
        for match in found
        if match
    ]


def parse_column(column: str) -> list[Stage]:
    """Return the stages of a column."""
    parts = [stage.rsplit("=", 2) for stage in column.split(";") if stage]
    return [Stage(name, int(rows), float(seconds)) for name, rows, seconds in parts]


def watched_fit(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Fit a model; return the columns on the fit, and on other processes during it."""
    before, own_before = _busy_seconds(), _own_seconds()
    start = time.perf_counter()
    stages = fit_and_record(model, X, y)
    seconds = time.perf_counter() - start
    busy, total = (b - a for a, b in zip(before, _busy_seconds(), strict=True))
    others = max(busy - (_own_seconds() - own_before), 0.0)
    return {
        "fit_seconds": round(seconds, 3),
        "passes": model.n_passes_,
        "solver": model.solver_,
        "others": round(100 * others / max(total, 1e-9), 1) if psutil.LINUX else None,
        "stages": stages,
    }


def undisturbed(row: Any) -> bool:
    """Return whether other processes took little CPU time during a measurement."""
    return row.others is None or row.others <= MOST_OTHERS


def _busy_seconds() -> tuple[float, float]:
    """Return the used and the available CPU seconds of all cores; known on Linux only."""
    if not psutil.LINUX:
        return 0.0, 0.0
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
