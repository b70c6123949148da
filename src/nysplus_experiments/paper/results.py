"""Results: one CSV row per fitted model, appended so that a killed run loses one line at most."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

__all__ = ["COLUMNS", "Key", "Result", "ResultsError", "append", "read_results", "start"]


class ResultsError(ValueError):
    """A results file is not one of ours."""


class Key(NamedTuple):
    """What a row is about; no two rows of a finished experiment share it."""

    dataset: str
    method: str
    n: int
    n_initial: int | None
    trial: int


@dataclass(frozen=True)
class Result:
    """One row of ``results.csv``; the attributes are its columns, in this order.

    Attributes
    ----------
    dataset, method : str
        Keys of `datasets.DATASETS` and `methods.METHODS`.
    n : int
        Landmarks of the final model (the paper's n_f), random features, or all training rows.
    n_initial : int or None
        Landmarks of the first stage (the paper's n_0); None for one-stage methods.
    trial : int
    seed : int
        Where all random draws of the row start; depends on dataset, trial and the size of the
        first stage only, so methods are compared on the same draws.
    status : {"ok", "error"}
    error : str
        What went wrong, on one line; empty where nothing did.
    accuracy : float or None
        Test rows classified right, in percent.
    first_stage_seconds : float or None
        Steps 1 and 2 of Algorithm 1; None for one-stage methods. Rows that share a first stage
        repeat its time. Support centroids are clustered, scored and chosen in one call, which
        counts here as a whole (steps 1 to 4).
    final_stage_seconds : float or None
        Steps 3 to 6 for two-stage methods, the whole fit for all others.
    predict_seconds : float or None
        Classifying all test rows.
    paper_bytes : int or None
        Model size as the paper counts it: ``n (d + L) · 8``, one output for two classes. Random
        features and full machines: 8 bytes for every number they store.
    stored_bytes : int or None
        Bytes of the fitted arrays, intercepts included.
    kernel_evaluations : int or None
        Both stages, training only; None where the solver does not tell.
    peak_rss_mb : float or None
        Largest resident memory of the process in MiB during the row's fit and prediction:
        interpreter, data and what the allocator kept of earlier rows included. Linux only, where
        the mark can be reset for each row; None elsewhere, because the mark of the whole
        process never falls and would say nothing about the row.
    n_train, n_test, n_features, n_outputs : int or None
    python, numpy, scipy, sklearn, nysplus, machine : str
        Versions and processor.
    """

    dataset: str
    method: str
    n: int
    n_initial: int | None
    trial: int
    seed: int
    status: Literal["ok", "error"]
    error: str = ""
    accuracy: float | None = None
    first_stage_seconds: float | None = None
    final_stage_seconds: float | None = None
    predict_seconds: float | None = None
    paper_bytes: int | None = None
    stored_bytes: int | None = None
    kernel_evaluations: int | None = None
    peak_rss_mb: float | None = None
    n_train: int | None = None
    n_test: int | None = None
    n_features: int | None = None
    n_outputs: int | None = None
    python: str = ""
    numpy: str = ""
    scipy: str = ""
    sklearn: str = ""
    nysplus: str = ""
    machine: str = ""

    @property
    def ok(self) -> bool:
        """Whether the row has numbers."""
        return self.status == "ok"

    @property
    def key(self) -> Key:
        """What the row is about."""
        return Key(self.dataset, self.method, self.n, self.n_initial, self.trial)


COLUMNS = tuple(field.name for field in fields(Result))

_HINTS = get_type_hints(Result)


def _parse(column: str, text: str) -> Any:
    hint = _HINTS[column]
    if hint in (int, int | None):
        return int(text) if text or hint is int else None
    if hint == float | None:
        return float(text) if text else None
    return text


def _line(values: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(["" if v is None else v for v in values])
    return buffer.getvalue()


def _whole_lines(content: bytes) -> bytes:
    """Return everything up to the last line end: what follows it was torn by a kill."""
    return content[: content.rfind(b"\n") + 1]


def _check_header(path: Path, line: str) -> None:
    if line.rstrip("\r\n") != ",".join(COLUMNS):
        raise ResultsError(
            f"{path} does not start with the columns of this version: got {line.strip()[:80]!r}, "
            f"expected {','.join(COLUMNS)[:80]!r}…. Move the file away or choose another folder."
        )


def start(path: Path) -> None:
    """Create a results file with its header, or cut the torn last line off an existing one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}-{os.getpid()}.part")
        partial.write_text(_line(COLUMNS), encoding="utf-8")
        os.replace(partial, path)
        return
    content = path.read_bytes()
    whole = _whole_lines(content)
    _check_header(path, whole.split(b"\n", 1)[0].decode("utf-8", "replace"))
    if len(whole) < len(content):
        os.truncate(path, len(whole))


def append(path: Path, result: Result) -> None:
    """Append one row in one write and wait until it is on disk."""
    line = _line(astuple(result)).encode("utf-8")
    # Python's own buffering could split a long row over two writes.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_results(path: Path) -> list[Result]:
    """Read a results file; a torn last line is dropped, and of rows that share a key (a failed
    row and its retry) the last one counts.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of Result
        In the order of the file.
    """
    text = _whole_lines(path.read_bytes()).decode("utf-8")
    header, _, body = text.partition("\n")
    _check_header(path, header)
    results: dict[Key, Result] = {}
    for number, values in enumerate(csv.reader(io.StringIO(body)), start=2):
        try:
            pairs = zip(COLUMNS, values, strict=True)
            result = Result(**{column: _parse(column, value) for column, value in pairs})
        except ValueError as error:
            raise ResultsError(
                f"{path}, line {number} is not a row of {len(COLUMNS)} columns ({error}). Delete "
                "the line; the next run fits it again."
            ) from error
        results.pop(result.key, None)
        results[result.key] = result
    return list(results.values())
