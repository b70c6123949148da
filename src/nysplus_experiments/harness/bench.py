"""Options of a benchmark step, as ``nysplus bench`` passes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

T = TypeVar("T", int, float)
_REPOSITORY = Path(__file__).resolve().parents[3]
#: The repository's own folders, or folders of this name here where the package is installed.
ROOT = _REPOSITORY if (_REPOSITORY / "pyproject.toml").is_file() else Path()
RESULTS = ROOT / "results"
DOCS = ROOT / "docs"


class BenchError(ValueError):
    """An option of a benchmark is not allowed."""


@dataclass(frozen=True)
class BenchOptions:
    """Options of one step.

    Attributes
    ----------
    name : str
        The experiment, e.g. "speed"; also the name of its folder of results.
    results : Path
        Folder with one sub-folder an experiment.
    fresh : bool
        Measure again what is there.
    smoke : bool
        Measure a little in some seconds, to show that the step works.
    datasets : tuple of str or None
        Datasets to measure; None for the step's own choice.
    extra : mapping from str to str
        Options of the step alone, given as ``--set key=value``.
    """

    name: str
    results: Path = RESULTS
    fresh: bool = False
    smoke: bool = False
    datasets: tuple[str, ...] | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def path(self, file: str) -> Path:
        """Return the path of a file of this experiment's results."""
        return self.results / self.name / file

    def expect(self, *names: str) -> None:
        """Raise `BenchError` for a ``--set`` option that is not among ``names``."""
        for name in self.extra:
            if name not in names:
                allowed = ", ".join(names) or "none"
                raise BenchError(
                    f"--set {name}=… is not an option of this step. Options: {allowed}."
                )

    def choose_datasets(self, known: Sequence[str], default: Sequence[str] = ()) -> list[str]:
        """Return the datasets asked for, ``default`` (or all known ones) without any."""
        return _checked("--datasets", self.datasets or default or known, known)

    def text(self, name: str, default: str, choices: Sequence[str] = ()) -> str:
        """Return an option that is a word."""
        return _checked(f"--set {name}", [self.extra.get(name, default)], choices)[0]

    def texts(self, name: str, default: Sequence[str], choices: Sequence[str] = ()) -> list[str]:
        """Return an option that is a list of words, separated by commas."""
        given = self.extra.get(name)
        return _checked(f"--set {name}", given.split(",") if given else default, choices)

    def integer(self, name: str, default: int) -> int:
        """Return an option that is a whole number."""
        return self._number(name, int, self.extra[name]) if name in self.extra else default

    def integers(self, name: str, default: Sequence[int]) -> list[int]:
        """Return an option that is a list of whole numbers, separated by commas."""
        given = self.extra.get(name)
        return [self._number(name, int, x) for x in given.split(",")] if given else list(default)

    def number(self, name: str, default: float) -> float:
        """Return an option that is a number."""
        return self._number(name, float, self.extra[name]) if name in self.extra else default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is "yes" or "no"."""
        word = "yes" if default else "no"
        return self.text(name, word, ("yes", "no")) == "yes"

    def _number(self, name: str, kind: Callable[[str], T], text: str) -> T:
        try:
            return kind(text)
        except ValueError as error:
            raise BenchError(f"--set {name}={text} is not a number.") from error


#: A step of an experiment; ``STEPS`` of its package has all of them in the order of a full run.
BenchStep = Callable[[BenchOptions], None]


def _checked(option: str, values: Sequence[str], choices: Sequence[str]) -> list[str]:
    for value in values:
        if choices and value not in choices:
            raise BenchError(f"{option}: {value!r} is unknown. Choose from {', '.join(choices)}.")
    return list(values)
