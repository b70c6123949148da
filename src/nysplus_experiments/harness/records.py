"""Read and write CSV files of measurements: frozen dataclasses, appended as they are made.

A run that is killed loses one line at most, and the next run continues where it stopped.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args, get_type_hints

from nysplus._runtime.atomic_file import write_whole

if TYPE_CHECKING:
    import pandas as pd

AnyRow = TypeVar("AnyRow")


class Row:
    """Base of row classes; ``key`` names the columns of the task that a row belongs to."""

    key_columns: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, key: str) -> None:
        cls.key_columns = tuple(key.split())

    @property
    def key(self) -> tuple[Any, ...]:
        """The task that the row belongs to."""
        return tuple(getattr(self, name) for name in self.key_columns)


class ResultsError(ValueError):
    """A results file has other columns or values than its row class."""


def begin(
    path: Path, row_class: type[AnyRow], environment: dict[str, Any] | None, fresh: bool = False
) -> list[AnyRow]:
    """Prepare a file for appending and return the rows that need not be measured again.

    ``environment`` (machine, versions, settings) is kept beside the rows as JSON, unless None; a
    file of another environment, or any with ``fresh``, is renamed to ``<name>.old``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".json")
    if path.exists():
        same = environment is None or _known(beside) == environment
        if fresh or not same:
            why = "as asked" if fresh else "measured elsewhere, or with other versions or settings"
            aside = path.with_name(path.name + ".old")
            print(f"{path.name} put aside as {aside.name}: {why}.")
            os.replace(path, aside)
    if environment is not None:
        write_whole(beside, (json.dumps(environment, indent=2) + "\n").encode())
    if not path.exists():
        write_whole(path, _line(_columns(row_class)))
    whole = _whole_lines(path)
    _check_header(path, row_class, whole.partition(b"\n")[0].decode("utf-8", "replace"))
    os.truncate(path, len(whole))
    return read(path, row_class)


def append(path: Path, row: Any) -> None:
    """Append one row in one write and wait until it is on disk."""
    line = _line("" if value is None else value for value in astuple(row))
    # Python's own buffering could split a long row over two writes.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, row_class: type[AnyRow]) -> list[AnyRow]:
    """Return the rows of a file without a torn last line; none where there is no file."""
    if not path.exists():
        return []
    header, _, body = _text(path, _whole_lines(path)).partition("\n")
    _check_header(path, row_class, header)
    columns, hints = _columns(row_class), get_type_hints(row_class)
    rows = []
    for number, values in _numbered_rows(path, body):
        try:
            pairs = zip(columns, values, strict=True)
            rows.append(row_class(**{name: _parse(hints[name], text) for name, text in pairs}))
        except ValueError as error:
            raise ResultsError(
                f"{path}, line {number} is not a row of {len(columns)} columns ({error}). Delete "
                "the line; the next run measures it again."
            ) from error
    return rows


def _numbered_rows(path: Path, body: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of a CSV text, with the number of its line in the file."""
    rows, number = csv.reader(io.StringIO(body)), 1
    while True:
        number += 1
        try:
            values = next(rows, None)
        except csv.Error as error:
            raise ResultsError(f"{path}, line {number} is not CSV: {error}. Delete it.") from error
        if values is None:
            return
        yield number, values


def read_last(path: Path, row_class: type[AnyRow]) -> list[AnyRow]:
    """Return the last row of each key: a failed or disturbed row and its retry count once."""
    found: dict[Hashable, AnyRow] = {}
    for row in read(path, row_class):
        key = row.key  # type: ignore[attr-defined]  # rows have one
        found.pop(key, None)
        found[key] = row
    return list(found.values())


def frame(rows: Iterable[Any] | Path, row_class: type[Any]) -> pd.DataFrame:
    """Return rows, or those of a file, as a table of pandas."""
    import pandas as pd

    rows = read(rows, row_class) if isinstance(rows, Path) else rows
    return pd.DataFrame([astuple(row) for row in rows], columns=list(_columns(row_class)))


def environment_of(path: Path) -> dict[str, Any]:
    """Return the environment that was kept beside a CSV file; empty where there is none."""
    return _known(path.with_suffix(".json")) or {}


def _known(path: Path) -> dict[str, Any] | None:
    return read_json(path) if path.exists() else None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or raise a ResultsError that says what is wrong with it."""
    try:
        content = json.loads(_text(path, path.read_bytes()))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ResultsError(f"{path} is not JSON ({error}). Move it away.") from error
    if not isinstance(content, dict):
        raise ResultsError(f"{path} must have a JSON object. Move it away.")
    return content


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultsError(f"{path} is not UTF-8 ({error}). Move the file away.") from error


def _columns(row_class: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(row_class))


def _line(values: Iterable[Any]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(list(values))
    return buffer.getvalue().encode()


def _whole_lines(path: Path) -> bytes:
    """Return everything up to the last line end: the rest was torn by a kill."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def _check_header(path: Path, row_class: type[Any], header: str) -> None:
    expected = ",".join(_columns(row_class))
    if header.rstrip("\r") != expected:
        raise ResultsError(
            f"{path} does not start with the columns of this version: got {header[:80]!r}, "
            f"expected {expected[:80]!r}…. Move the file away or choose another folder."
        )


def _parse(hint: Any, text: str) -> Any:
    """Return the value of a cell; an empty cell of an optional column is None."""
    kinds = get_args(hint) or (hint,)
    if not text and type(None) in kinds:
        return None
    if bool in kinds:
        return text == "True"
    if int in kinds:
        return int(text)
    return float(text) if float in kinds else text
