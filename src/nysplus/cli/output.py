"""Print results, notes and progress: for people, or as JSON."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from nysplus._runtime.progress import listening

# Time of the later passes of a refinement, as a share of the first, which compares short runs of
# all candidates, and of the second, in which the best of them go on. Shares of fits to tables of
# 5,000 to 20,000 rows.
LATER_PASSES = (0.5, 0.3)
# Characters of a line in a pipe or a file, which have no width of their own.
PIPE_WIDTH = 120


@dataclass
class Output:
    """Where a command prints: results to standard output, everything else to standard error.

    Attributes
    ----------
    as_json : bool
        Whether results are one JSON object.
    quiet : bool
        Whether only errors are printed, and JSON where it was requested.
    no_color : bool
    notes : list of str
        Notes so far; they are part of the JSON object.
    """

    as_json: bool = False
    quiet: bool = False
    no_color: bool = False
    notes: list[str] = field(default_factory=list)

    def console(self, stderr: bool = False) -> Console:
        """Return a console; without a terminal, lines are not wrapped at 80 characters."""
        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() else PIPE_WIDTH
        no_color = True if self.no_color else None  # None: as the environment has it
        return Console(stderr=stderr, no_color=no_color, width=width, highlight=False)

    def note(self, text: str) -> None:
        """Print a note to standard error."""
        self.notes.append(text)
        if not self.quiet:
            typer.echo(f"Note: {text}", err=True)

    def line(self, text: str, style: str = "") -> None:
        """Print a line of a result."""
        if not self.quiet and not self.as_json:
            self.console().print(Text(text, style=style), soft_wrap=True)

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print lines of a name and its value."""
        if self.quiet or self.as_json:
            return
        listed = list(rows)
        width = max(len(name) for name, _ in listed)
        for name, value in listed:
            self.line(f"  {name:<{width}}  {value}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table whose first column is text and whose other columns are numbers."""
        if self.quiet or self.as_json:
            return
        listed = [tuple(columns), *rows]
        widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
        for number, row in enumerate(listed):
            first, *others = (
                f"{cell:>{width}}" if place else f"{cell:<{width}}"
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            self.line("  ".join([f"  {first}", *others]).rstrip(), "bold" if number == 0 else "")

    def result(self, **entries: Any) -> None:
        """Print the result as JSON, if it was requested."""
        if self.as_json:
            if self.notes:
                entries["notes"] = self.notes
            typer.echo(json.dumps(entries, default=_plain, ensure_ascii=False))

    @contextmanager
    def noting_warnings(self) -> Iterator[None]:
        """Print the warnings of the library as notes, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            if not text.startswith("The column"):  # notes on columns come before the fit
                self.note(text)

    @contextmanager
    def progress(self, what: str, limit: float | None = None) -> Iterator[list[str]]:
        """Show the passes of fits on a terminal, with the time left; yield the fits' notes."""
        notes: list[str] = []
        console = self.console(stderr=True)
        shown = console.is_terminal and not self.quiet
        columns = (
            *(SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20)),
            *(_TimeLeft(limit), TimeElapsedColumn()),
        )
        bars = Progress(*columns, console=console, transient=True, disable=not shown)
        with bars, listening(_Passes(bars, what, notes)):
            yield notes


class _TimeLeft(ProgressColumn):
    """One estimate of the time left: of the limit, if there is one, else of the whole fit."""

    max_refresh = 0.5

    def __init__(self, limit: float | None) -> None:
        super().__init__()
        self._limit = limit

    def render(self, task: Task) -> Text:
        """Return the time left as text."""
        elapsed = task.elapsed or 0.0
        if self._limit is not None:
            return Text(f"about {max(self._limit - elapsed, 0.0):.0f} s left")
        if not task.total or not task.completed:
            return Text("")
        whole = (elapsed - task.fields["begin"]) * task.total / task.completed
        left = whole * (1.0 + task.fields["later"]) - (elapsed - task.fields["begin"])
        return Text(f"about {max(left, 0.0):.0f} s left")


class _Passes:
    """Show the current pass of a fit in one line: its name and a bar."""

    def __init__(self, bars: Progress, what: str, notes: list[str]) -> None:
        self._bars = bars
        self._what = what
        self._notes = notes
        self._bar = bars.add_task(what, total=None, begin=0.0, later=0.0)
        self._start = bars.get_time()
        self._shares = iter(LATER_PASSES)

    @contextmanager
    def stage(
        self, name: str, n_rows: int | None, n_blocks: int | None
    ) -> Iterator[Callable[[int], None]]:
        """Open a pass, and yield a function to call with the number of rows of each block."""
        begin, done = self._bars.get_time() - self._start, 0
        title = f"{self._what}: {name}"
        later = next(self._shares, 0.0) if name == "refine" else 0.0
        self._bars.update(
            self._bar, description=title, total=n_rows, completed=0, begin=begin, later=later
        )

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            # a finished bar would stop the clock
            most = math.inf if n_rows is None else n_rows - 0.5
            self._bars.update(self._bar, completed=min(done, most))

        yield advance

    def note(self, text: str) -> None:
        """Keep what the fit tells of its choices."""
        self._notes.append(text)


def _plain(value: Any) -> Any:
    """Return a value of numpy as one of Python."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
