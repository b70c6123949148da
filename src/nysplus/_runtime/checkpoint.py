"""Checkpoints of long fits: a file with the sums over the rows that are complete so far.

A fit is a sequence of sums over the rows, and the arithmetic between them follows from the sums
and the seed. A file of the sums is therefore enough: a fit that is started again goes through the
same sequence, takes the recorded sums from the file and continues after the last of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Generic, Self, TypeVar

import joblib
import numpy as np
import numpy.typing as npt

from nysplus._runtime.atomic_file import atomic_write, remove_unfinished
from nysplus._runtime.file_lock import FileLock
from nysplus._runtime.memory import working_bytes
from nysplus._typing import Additive

# Version of the file format.
FORMAT = 2

Total = TypeVar("Total", bound=Additive)

Arrays = dict[str, npt.NDArray[Any]]


def parameter_fingerprint(value: Any) -> Any:
    """Return a hashable description of a parameter.

    Functions are described by their bytecode, because lambdas share a name.
    """
    if isinstance(value, CodeType):
        constants = [parameter_fingerprint(part) for part in value.co_consts]
        return value.co_code, value.co_names, constants
    if isinstance(value, FunctionType):
        enclosed = [parameter_fingerprint(cell.cell_contents) for cell in value.__closure__ or ()]
        code = parameter_fingerprint(value.__code__)
        return value.__qualname__, code, value.__defaults__, enclosed
    if hasattr(value, "get_params"):
        params = value.get_params(deep=False)
        own = {name: parameter_fingerprint(part) for name, part in params.items()}
        return type(value).__qualname__, own
    return value


def fit_fingerprint(
    estimator: str, parameters: Mapping[str, Any], rows_fingerprint: str, schema: Any = None
) -> dict[str, str]:
    """Return the hashes that identify a fit: of its parameters and of its rows.

    The working memory is one of them: it decides how many rows are added at once, and so the
    rounding of the sums. `verbose` is not.

    Parameters
    ----------
    estimator : str
        Name of the class.
    parameters : mapping from str to object
    rows_fingerprint : str
        Hash of the rows, targets and weights.
    schema : object, optional
        How the columns of a table are read: the hash of its rows is one of numbers.
    """
    known = {
        name: joblib.hash(parameter_fingerprint(value))
        for name, value in parameters.items()
        if name != "verbose"
    }
    known["working_memory"] = str(working_bytes())
    if schema is not None:
        known["the columns"] = joblib.hash(repr(schema))
    return {"estimator": estimator, **known, "the rows": rows_fingerprint}


@dataclass(frozen=True)
class Checkpoint:
    """The file that a long fit records its sums in, and how often it does.

    Parameters
    ----------
    path : str or path
        A file. It is replaced in one step, so that it is valid at any moment, and removed at the
        end of the fit. Fits that run at the same time need a file each.
    seconds : float, default=60
        Least time between two writes.
    """

    path: str | os.PathLike[str]
    seconds: float = 60.0


class Step(Generic[Total]):
    """One sum over the rows, complete up to some position.

    Attributes
    ----------
    total : Additive
        The sum so far.
    position : int
        Number of rows in the sum.
    complete : bool
        Whether all rows are in the sum.
    """

    def __init__(self, journal: Journal, total: Total, position: int, complete: bool) -> None:
        self.total = total
        self.position = position
        self.complete = complete
        self._journal = journal

    def add(self, addend: Total, position: int) -> None:
        """Add the sum over the rows from the present position to the given one."""
        self.total = self.total.__iadd__(addend)  # mypy knows no += of type variables
        self.position = position
        self._journal.keep(self)

    def finish(self) -> Total:
        """Return the sum over all rows."""
        self.complete = True
        self._journal.close(self)
        return self.total


class Journal:
    """Hand out the sums of a fit, without a record. A context, which a fit runs in."""

    recording = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the use of the record, which stays after an error."""

    def begin(
        self, fingerprint: Callable[[], dict[str, str]], rng: np.random.RandomState
    ) -> np.random.RandomState:
        """Open the record of the fit, and return its random generator.

        Parameters
        ----------
        fingerprint : callable
            Returns the :func:`fit_fingerprint`; called only where there is a record.
        rng : RandomState
            Generator of a fit that starts from the beginning.
        """
        return rng

    def step(self, zero: Callable[[], Total]) -> Step[Total]:
        """Return the next sum of the fit, which starts from ``zero()``."""
        return Step(self, zero(), 0, complete=False)

    def keep(self, step: Step[Any]) -> None:
        """Record a sum that has grown, if it is time to."""

    def close(self, step: Step[Any]) -> None:
        """Record a complete sum."""

    def remove(self) -> None:
        """Delete the record at the end of the fit."""


class FileJournal(Journal):
    """Hand out the sums of a fit, and record them in a file, which no other fit may use."""

    recording = True

    def __init__(self, checkpoint: Checkpoint | str | os.PathLike[str]) -> None:
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        self._path = Path(checkpoint.path)
        self._seconds: Any = checkpoint.seconds
        if not self._path.parent.is_dir() or self._path.is_dir():
            raise ValueError(
                f"checkpoint={str(self._path)!r} must name a file in a folder that exists."
            )
        if not (isinstance(self._seconds, (int, float)) and self._seconds >= 0):
            raise ValueError(f"seconds={self._seconds!r} must be a number of at least 0.")
        self._header: dict[str, Any] = {}
        self._generator: Arrays = {}
        self._finished: list[Arrays] = []
        self._running: tuple[int, Arrays] | None = None
        self._handed_out = 0
        self._written = time.monotonic()
        own = Path(os.path.realpath(self._path))
        self._lock = FileLock(own.with_name(f".{own.name}.lock"))

    def __enter__(self) -> Self:
        if not self._lock.acquire():
            raise ValueError(
                f"The checkpoint {self._path} is in use by a fit that is still running. Wait for "
                "its end, or pass another path: each fit needs a checkpoint of its own."
            )
        return self

    def __exit__(self, *error: object) -> None:
        """Let other fits use the file."""
        self._lock.release()

    def begin(
        self, fingerprint: Callable[[], dict[str, str]], rng: np.random.RandomState
    ) -> np.random.RandomState:
        """Read the file if it exists, and refuse the record of another fit."""
        self._header = {"format": FORMAT, **fingerprint()}
        _, keys, *numbers = rng.get_state(legacy=True)
        self._generator = {"keys": np.asarray(keys), "numbers": np.array(numbers, dtype=float)}
        if not self._path.exists():
            return rng
        self._read()
        keys, (place, has_gauss, gauss) = self._generator["keys"], self._generator["numbers"]
        own = np.random.RandomState()
        own.set_state(("MT19937", keys, int(place), int(has_gauss), float(gauss)))
        return own

    def step(self, zero: Callable[[], Total]) -> Step[Total]:
        """Return the next sum of the fit, as far as the file has it."""
        number, total = self._handed_out, zero()
        self._handed_out += 1
        if number < len(self._finished):
            return Step(self, _restored(total, self._finished[number]), 0, complete=True)
        if self._running is not None:
            position, arrays = self._running
            self._running = None
            return Step(self, _restored(total, arrays), position, complete=False)
        return Step(self, total, 0, complete=False)

    def keep(self, step: Step[Any]) -> None:
        """Write the file if the last write is long enough ago."""
        if time.monotonic() - self._written >= self._seconds:
            self._write((step.position, _arrays_of(step.total)))

    def close(self, step: Step[Any]) -> None:
        """Keep a complete sum in memory, to be written with the next one."""
        if len(self._finished) < self._handed_out:
            self._finished.append(_arrays_of(step.total))

    def remove(self) -> None:
        """Delete the file, and the temporary files of writes that were killed."""
        Path(os.path.realpath(self._path)).unlink(missing_ok=True)
        remove_unfinished(self._path)

    def _write(self, running: tuple[int, Arrays]) -> None:
        """Write all complete sums and the running one; warn if that is not possible."""
        position, arrays = running
        header = {**self._header, "position": position}
        content: dict[str, Any] = {f"generator.{name}": a for name, a in self._generator.items()}
        for number, recorded in enumerate([*self._finished, arrays]):
            content |= {f"{number}.{name}": array for name, array in recorded.items()}
        content["header"] = np.array(json.dumps({**header, "sha256": _digest(content)}))
        try:
            with atomic_write(self._path) as file:
                np.savez(file, **content)
        except OSError as error:
            last = "the last one stays valid" if self._path.exists() else "there is none yet"
            warnings.warn(
                f"The checkpoint {self._path} could not be written ({error}): {last}. The fit "
                "continues, but a killed fit loses all work since the last checkpoint. Free some "
                "disk space.",
                stacklevel=2,
            )
        self._written = time.monotonic()

    def _read(self) -> None:
        try:
            header, recorded, generator = _records_in(self._path)
        except Exception as error:  # the readers raise many types on a file that is no record
            raise ValueError(
                f"{self._path} is no checkpoint of a fit, or a damaged one ({error}). Delete it to "
                "start from the beginning, or pass another path."
            ) from error
        differing = [name for name, value in self._header.items() if header.get(name) != value]
        if differing:
            raise ValueError(
                f"The checkpoint {self._path} was written by another fit: "
                f"{', '.join(sorted(differing))} differ. Delete it to start from the beginning, "
                "pass another path, or use the parameters and rows of that fit."
            )
        self._generator = generator
        *self._finished, running = recorded
        self._running = header["position"], running


def _records_in(path: Path) -> tuple[dict[str, Any], list[Arrays], Arrays]:
    """Return the header, the sums and the generator's state in a file.

    Damaged files raise exceptions of many types.
    """
    # opened here, because numpy does not close a file that is no archive
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if sum(part.file_size for part in archive.zip.infolist()) > path.stat().st_size:
            raise ValueError("its parts are larger than the file")
        header = dict(json.loads(str(archive["header"])))
        content = {name: archive[name] for name in archive.files if name != "header"}
    if header["sha256"] != _digest(content):
        raise ValueError("parts are missing or changed")
    generator: Arrays = {}
    recorded: list[Arrays] = [{} for _ in range(len({*map(_number, content)}) - 1)]
    for name, array in content.items():
        number, part = _number(name), name.partition(".")[2]
        (generator if number == "generator" else recorded[int(number)])[part] = array
    if type(header["position"]) is not int or header["position"] < 0:
        raise ValueError(f"position={header['position']!r} is no number of rows")
    return header, recorded, generator


def _number(name: str) -> str:
    """Return the number of the sum that a part of a file belongs to."""
    return name.partition(".")[0]


def _digest(content: Mapping[str, Any]) -> str:
    """Return a hash of named arrays: a file holds exactly what a fit has written, or is refused."""
    digest = hashlib.sha256()
    for name, value in sorted(content.items()):
        array = np.asarray(value, order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _arrays_of(total: Any) -> Arrays:
    """Return the fields of a sum as arrays."""
    if is_dataclass(total):
        return {field.name: np.asarray(getattr(total, field.name)) for field in fields(total)}
    return {"values": np.asarray(total)}


def _restored(zero: Any, arrays: Arrays) -> Any:
    """Return a sum of the type of `zero` with the given fields."""
    if isinstance(zero, np.ndarray):
        return arrays["values"]
    numbers = {
        name: array if isinstance(getattr(zero, name), np.ndarray) else array.item()
        for name, array in arrays.items()
    }
    return replace(zero, **numbers)
