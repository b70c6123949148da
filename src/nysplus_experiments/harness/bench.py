"""Options of a benchmark step, as ``nysplus bench`` passes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from nysplus_experiments.harness.records import Row
from nysplus_experiments.harness.resume import Task, measure_missing

_REPOSITORY = Path(__file__).resolve().parents[3]
#: The repository's own folders, or folders of this name here where the package is installed.
ROOT = _REPOSITORY if (_REPOSITORY / "pyproject.toml").is_file() else Path()
RESULTS = ROOT / "results"
DOCS = ROOT / "docs"


class BenchError(ValueError):
    """An option of a benchmark is not allowed."""


@dataclass(frozen=True)
class BenchOptions:
    """Options of one step; ``extra`` are those of the step alone, given as ``--set key=value``."""

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
        """Return the datasets of the command line, or by default ``default`` or all known ones."""
        return _checked("--datasets", self.datasets or default or known, known)

    def texts(self, name: str, default: Sequence[str], choices: Sequence[str] = ()) -> list[str]:
        """Return an option that is a list of words, separated by commas."""
        given = self.extra.get(name)
        return _checked(f"--set {name}", given.split(",") if given else default, choices)

    def integer(self, name: str, default: int) -> int:
        """Return an option that is a whole number."""
        return int(self.number(name, default, int))

    def integers(self, name: str, default: Sequence[int]) -> list[int]:
        """Return an option that is a list of whole numbers, separated by commas."""
        return [int(_number(name, text, int)) for text in self.texts(name, [*map(str, default)])]

    def number(self, name: str, default: float, kind: type[float] = float) -> float:
        """Return an option that is a number."""
        return _number(name, self.extra.get(name, str(default)), kind)

    def measure(
        self, file: str, row_class: type[Row], tasks: Iterable[Task], measure: Any, **how: Any
    ) -> None:
        """Measure the tasks that a file of results lacks; see `measure_missing`."""
        measure_missing(self.path(file), row_class, tasks, measure, fresh=self.fresh, **how)


@cache
def load_from_tests(name: str) -> Any:
    """Return a module of the repository's folder ``tests``, such as "reference"."""
    path = ROOT / "tests" / f"{name}.py"
    spec = spec_from_file_location(f"nysplus_{name}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise BenchError(f"{path} was not found. Run this step in a checkout of the repository.")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


#: A step of an experiment; ``STEPS`` of its package has all of them in the order of a full run.
BenchStep = Callable[[BenchOptions], None]


def steps(package: str, modules: Mapping[str, str]) -> dict[str, BenchStep]:
    """Return the steps of an experiment: ``run`` of each module, imported when it is called."""
    return {name: partial(_run, f"{package}.{module}") for name, module in modules.items()}


def _run(module: str, options: BenchOptions) -> None:
    import_module(module).run(options)


def _number(name: str, text: str, kind: type[float]) -> float:
    try:
        return kind(text)
    except ValueError as error:
        raise BenchError(f"--set {name}={text} is not a number.") from error


def _checked(option: str, values: Sequence[str], choices: Sequence[str]) -> list[str]:
    for value in values:
        if choices and value not in choices:
            raise BenchError(f"{option}: {value!r} is unknown. Choose from {', '.join(choices)}.")
    return list(values)
