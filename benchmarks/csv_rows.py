"""CSV files of the benchmarks: one row a measurement, written as it comes, read back with types.

A row class is a frozen dataclass whose attributes are the columns. A run that is killed loses one
line at most, and the next run goes on where it stopped.
"""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from nysplus.experiments.results import append

__all__ = ["append", "begin", "read"]

Row = TypeVar("Row")


def begin(path: Path, row_class: type[Row], environment: dict[str, Any], fresh: bool) -> list[Row]:
    """Prepare a file for appending and return the rows that need not be measured again.

    A file that was measured elsewhere, or with other versions or settings, is put aside as
    ``<name>.old`` first, as is any file where ``fresh`` is set. The environment is written beside
    the rows, as JSON.
    """
    beside = path.with_suffix(".json")
    if path.exists():
        same = beside.exists() and json.loads(beside.read_text(encoding="utf-8")) == environment
        if fresh or not same:
            why = "as asked" if fresh else "measured elsewhere, or with other versions or settings"
            aside = path.with_name(path.name + ".old")
            print(f"{path.name} put aside as {aside.name}: {why}.")
            os.replace(path, aside)
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(beside, json.dumps(environment, indent=2) + "\n")
    if not path.exists():
        _replace(path, ",".join(_columns(row_class)) + "\n")
    os.truncate(path, len(_whole_lines(path)))
    return read(path, row_class)


def read(path: Path, row_class: type[Row]) -> list[Row]:
    """Read a file; a torn last line is left out, and a file that is not there has no rows."""
    if not path.exists():
        return []
    header, _, body = _whole_lines(path).decode("utf-8").partition("\n")
    names = _columns(row_class)
    if header != ",".join(names):
        raise SystemExit(
            f"{path} has other columns than this version writes: got {header[:80]!r}. Pass --fresh "
            "to measure again."
        )
    hints = get_type_hints(row_class)
    return [
        row_class(**{name: _parse(hints[name], x) for name, x in zip(names, values, strict=True)})
        for values in csv.reader(io.StringIO(body))
    ]


def _columns(row_class: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(row_class))


def _whole_lines(path: Path) -> bytes:
    """Return everything up to the last line end: what follows it was torn by a kill."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}-{os.getpid()}.part")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _parse(hint: Any, text: str) -> Any:
    if hint in (int, int | None):
        return int(text) if text else None
    if hint in (float, float | None):
        return float(text) if text else None
    return text
