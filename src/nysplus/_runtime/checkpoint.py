"""Long fits that survive being killed: what the passes have summed up so far, in a file.

A fit is a sequence of sums over the rows with arithmetic between them that follows from the sums
and the seed. So the sums are all that has to be written down: a fit that is started again goes
through the same sequence, takes what is recorded from the file and continues where that ends.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
import numpy.typing as npt

from nysplus._runtime.memory import working_bytes

FORMAT = 1


def parameter_fingerprint(value: Any) -> Any:
    """Return what a parameter is told from others by: functions have no names to be found by."""
    if isinstance(value, CodeType):
        return (
            value.co_code,
            value.co_names,
            [parameter_fingerprint(part) for part in value.co_consts],
        )
    if isinstance(value, FunctionType):
        enclosed = [parameter_fingerprint(cell.cell_contents) for cell in value.__closure__ or ()]
        return (
            value.__qualname__,
            parameter_fingerprint(value.__code__),
            value.__defaults__,
            enclosed,
        )
    if hasattr(value, "get_params"):
        own = {
            name: parameter_fingerprint(part) for name, part in value.get_params(deep=False).items()
        }
        return type(value).__qualname__, own
    return value


def identity(estimator: Any, blocks: Any) -> dict[str, str]:
    """Return hashes by which a fit is told from another: of its parameters and of its rows.

    How many rows are read at once, and summed up before others, follows the working memory.
    """
    parameters = estimator.get_params(deep=False)
    parameters.pop("verbose")
    known = {name: joblib.hash(parameter_fingerprint(value)) for name, value in parameters.items()}
    known["working_memory"] = str(working_bytes())
    return {"estimator": type(estimator).__name__, **known, "the rows": blocks.fingerprint()}


Total = TypeVar("Total")

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Checkpoint:
    """Where a long fit is written down, and how often.

    Parameters
    ----------
    path : str or path
        A file. It is replaced in one step, so that it is valid at any moment, and removed when
        the fit is done.
    seconds : float, default=60
        Time between two writes, at least.
    """

    path: str | os.PathLike[str]
    seconds: float = 60.0


class Step(Generic[Total]):
    """One sum over the rows, from where it stands.

    Attributes
    ----------
    total
        The sum so far.
    position : int
        How many rows are in it.
    complete : bool
        Whether these are all rows.
    """

    def __init__(self, journal: Journal, total: Total, position: int, complete: bool) -> None:
        self.total = total
        self.position = position
        self.complete = complete
        self._journal = journal

    def add(self, addend: Total, position: int) -> None:
        """Add what the rows before `position` give that are not in the sum yet."""
        self.total += addend  # type: ignore[operator]  # moments and arrays both add
        self.position = position
        self._journal.keep(self)

    def finish(self) -> Total:
        """Return the sum over all rows."""
        self.complete = True
        self._journal.close(self)
        return self.total


class Journal:
    """Hands out the sums of a fit; this one writes nothing down."""

    recording = False

    def begin(
        self, identity: Callable[[], dict[str, str]], rng: np.random.RandomState
    ) -> np.random.RandomState:
        """Open the record of the fit with this `identity`; return the generator it goes on with."""
        return rng

    def step(self, zero: Callable[[], Total]) -> Step[Total]:
        """Return the next sum, which starts from ``zero()``."""
        return Step(self, zero(), 0, complete=False)

    def keep(self, step: Step[Any]) -> None:
        """Note that a sum has grown."""

    def close(self, step: Step[Any]) -> None:
        """Note that a sum is complete."""

    def remove(self) -> None:
        """Forget everything: the fit is done."""


class FileJournal(Journal):
    """A journal that keeps the sums in a file."""

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

    def begin(
        self, identity: Callable[[], dict[str, str]], rng: np.random.RandomState
    ) -> np.random.RandomState:
        """Read the file if there is one, and refuse the record of another fit."""
        self._header = {"format": FORMAT, **identity()}
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
        """Return the next sum as the file has it."""
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
        """Write everything down if it is time to."""
        if time.monotonic() - self._written >= self._seconds:
            self._write((step.position, _arrays_of(step.total)))

    def close(self, step: Step[Any]) -> None:
        """Keep a complete sum, to be written with the next one."""
        if len(self._finished) < self._handed_out:
            self._finished.append(_arrays_of(step.total))

    def remove(self) -> None:
        """Delete the file, and what a kill in the middle of writing has left."""
        self._path.unlink(missing_ok=True)
        self._unfinished.unlink(missing_ok=True)

    @property
    def _unfinished(self) -> Path:
        return self._path.with_name(self._path.name + ".part")

    def _write(self, running: tuple[int, Arrays]) -> None:
        """Write to a temporary name and move that into place."""
        position, arrays = running
        header = {**self._header, "position": position, "finished": len(self._finished)}
        content: dict[str, Any] = {f"generator.{name}": a for name, a in self._generator.items()}
        for number, recorded in enumerate([*self._finished, arrays]):
            content |= {f"{number}.{name}": array for name, array in recorded.items()}
        content["header"] = np.array(json.dumps({**header, "content": sorted(content)}))
        try:
            with open(self._unfinished, "wb") as file:
                np.savez(file, **content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._unfinished, self._path)
        except OSError as error:
            self._unfinished.unlink(missing_ok=True)
            kept = "the one before it stays valid" if self._path.exists() else "there is none yet"
            warnings.warn(
                f"The checkpoint {self._path} could not be written ({error}): {kept}. The fit "
                "goes on; free some space, or the work since then is lost if it is killed.",
                stacklevel=2,
            )
        self._written = time.monotonic()

    def _read(self) -> None:
        try:
            header, recorded, generator = _records_in(self._path)
        except Exception as error:  # whatever a file that is no record makes of its readers
            raise ValueError(
                f"{self._path} is no checkpoint of a fit, or a damaged one ({error}). Delete it to "
                "start anew, or pass another path."
            ) from error
        differing = [name for name, value in self._header.items() if header.get(name) != value]
        if differing:
            raise ValueError(
                f"The checkpoint {self._path} was written by another fit: "
                f"{', '.join(sorted(differing))} differ. Delete it to start anew, pass another "
                "path, or restore what differs."
            )
        self._generator = generator
        *self._finished, running = recorded
        self._running = header["position"], running


def _records_in(path: Path) -> tuple[dict[str, Any], list[Arrays], Arrays]:
    """Return header, sums and state of the generator of a file, or raise anything."""
    # opened here because numpy leaves a file open that is no archive
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        header = dict(json.loads(str(archive["header"])))
        content = {name: archive[name] for name in archive.files if name != "header"}
    if sorted(content) != header["content"]:
        raise ValueError("parts are missing")
    generator: Arrays = {}
    recorded: list[Arrays] = [{} for _ in range(header["finished"] + 1)]
    for name, array in content.items():
        number, _, part = name.partition(".")
        (generator if number == "generator" else recorded[int(number)])[part] = array
    return header, recorded, generator


def _arrays_of(total: Any) -> Arrays:
    """Return the numbers of a sum by name."""
    if is_dataclass(total):
        return {field.name: np.asarray(getattr(total, field.name)) for field in fields(total)}
    return {"values": np.asarray(total)}


def _restored(zero: Any, arrays: Arrays) -> Any:
    """Return a sum of the kind of `zero` with the given numbers."""
    if isinstance(zero, np.ndarray):
        return arrays["values"]
    numbers = {
        name: array if isinstance(getattr(zero, name), np.ndarray) else array.item()
        for name, array in arrays.items()
    }
    return replace(zero, **numbers)
