"""Record the stages that a fit reports with ``verbose=2``."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from typing import Any

# The line of a fit with verbose=2 on each pass.
_PASS = re.compile(r"^\[\w+\] (?P<stage>.+): (?P<rows>[\d,]+)(?: of [\d,]+)? rows, (?P<s>[\d.]+) s")
# Names of earlier versions in committed results, and today's names.
_RENAMED = {"margins": "scores"}


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
