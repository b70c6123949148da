"""Read the description of an experiment, a TOML file.

::

    description = "What a reader should know"
    trials = 5

    [[run]]
    figures = [2, 3]                # the figures that these rows are for
    datasets = ["usps", "cod_rna"]
    methods = ["Nys", "Nys+", "KRR"]
    sizes = [100, 500, 1000]        # n; not needed for KRR and KSVM, which use all rows
    n_initial = "same"              # n_0: "same" (n_0 = n, the default) or a list of numbers

    [run.override.cod_rna]          # sizes, n_initial and trials of one dataset
    sizes = [10, 20, 50]
"""

from __future__ import annotations

import reprlib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.paper.methods import METHODS

PROFILES = ("smoke", "standard", "covtype", "times", "paper")
FIGURES = (1, 2, 3, 4, 5)
# The largest of the profiles has 3 kB; the time to parse TOML may grow with the square of its size.
MAX_BYTES = 2**16
# Each of them takes a second or more.
MAX_ROWS = 10**5

Sizes = tuple[int, ...]


class ExperimentError(ValueError):
    """A description of an experiment cannot be followed."""


@dataclass(frozen=True)
class Grid:
    """Sizes, n_0 and number of trials of a run on one dataset."""

    sizes: Sizes
    n_initial: Literal["same"] | Sizes
    trials: int

    @property
    def n_rows(self) -> int:
        """Number of rows of each method, at most."""
        initial = 1 if self.n_initial == "same" else len(self.n_initial)
        return self.trials * max(len(self.sizes), 1) * initial


@dataclass(frozen=True)
class Run:
    """One ``[[run]]``: methods × datasets × sizes × trials, and the figures it is for."""

    figures: tuple[int, ...]
    methods: tuple[str, ...]
    grids: Mapping[str, Grid]


@dataclass(frozen=True)
class Experiment:
    """All runs of a TOML file."""

    description: str
    runs: tuple[Run, ...] = field(default=())

    def narrow(
        self, figures: Collection[int] | None = None, names: Collection[str] | None = None
    ) -> Experiment:
        """Return the part that some figures need, on the datasets of some names."""
        runs = []
        for run in self.runs:
            if figures is not None and not set(figures) & set(run.figures):
                continue
            kept = {k: grid for k, grid in run.grids.items() if names is None or k in names}
            if kept:
                runs.append(replace(run, grids=kept))
        if not runs:
            has = sorted({figure for run in self.runs for figure in run.figures})
            known = sorted({name for run in self.runs for name in run.grids})
            raise ExperimentError(
                f"Nothing is left to run: the experiment has the figures {has} and the datasets "
                f"{', '.join(known)}. Ask for some of these."
            )
        return replace(self, runs=tuple(runs))


def load_profile(name: str) -> Experiment:
    """Return one of the experiments that come with the package."""
    if name not in PROFILES:
        raise ExperimentError(f"Unknown profile {name!r}. Known profiles: {', '.join(PROFILES)}.")
    file = resources.files(__package__).joinpath("profiles", f"{name}.toml")
    return parse_experiment(file.read_text(encoding="utf-8"), f"profile {name}")


def load_experiment(path: Path) -> Experiment:
    """Return the experiment that a TOML file describes."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise ExperimentError(f"{path} could not be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ExperimentError(
            f"{path} is not UTF-8: byte {error.start} is {content[error.start]:#04x}. Save it as "
            "UTF-8 text."
        ) from error
    if len(content) > MAX_BYTES:
        raise ExperimentError(f"{path} has more than {MAX_BYTES} bytes. Write several experiments.")
    return parse_experiment(text, str(path))


def parse_experiment(text: str, where: str = "experiment") -> Experiment:
    """Return the experiment that a TOML text describes; errors call the text ``where``."""
    try:
        content = tomllib.loads(text)
    except RecursionError as error:
        raise ExperimentError(f"{where} has values that are nested too deep.") from error
    except ValueError as error:  # that of TOML, and that of numbers with thousands of digits
        raise ExperimentError(f"{where} is not TOML: {error}.") from error
    _check_keys(content, {"description", "trials", "run"}, where)
    trials = _count({"trials": 1} | content, "trials", where)
    runs = content.get("run", [])
    if not isinstance(runs, list) or not runs:
        raise ExperimentError(f"{where} has no [[run]]. Write at least one.")
    parsed = tuple(_run(run, trials, f"{where}, run {i}") for i, run in enumerate(runs, start=1))
    n_rows = sum(len(run.methods) * grid.n_rows for run in parsed for grid in run.grids.values())
    if n_rows > MAX_ROWS:
        raise ExperimentError(
            f"{where} has {n_rows} rows, more than {MAX_ROWS}. Lower trials, or leave sizes out."
        )
    return Experiment(str(content.get("description", "")), parsed)


def _run(content: dict[str, Any], trials: int, where: str) -> Run:
    allowed = {"figures", "datasets", "methods", "sizes", "n_initial", "trials", "override"}
    _check_keys(content, allowed, where)
    names = _known(content, "datasets", DATASETS, where)
    methods = _known(content, "methods", METHODS, where)
    figures = _counts(content, "figures", where, "a list of some of 1, 2, 3, 4, 5", empty=True)
    if not set(figures) <= set(FIGURES):
        raise ExperimentError(
            f"{where}: figures={list(figures)} is not allowed. The paper's figures are 1 to 5."
        )
    overrides = content.get("override", {})
    _check_keys(overrides, set(names), f"{where}, override", "a dataset of the run")
    grids = {}
    for name in names:
        override = overrides.get(name, {})
        place = f"{where}, override {name}" if override else where
        _check_keys(override, {"sizes", "n_initial", "trials"}, place)
        grids[name] = _grid({"trials": trials, **content, **override}, methods, place)
    return Run(figures, methods, grids)


def _grid(content: dict[str, Any], methods: tuple[str, ...], where: str) -> Grid:
    form = "a list of positive whole numbers"
    full = all(METHODS[name].full for name in methods)
    sizes = _counts(content, "sizes", where, form, empty=full)
    n_initial: Literal["same"] | Sizes = "same"
    if content.get("n_initial", "same") != "same":
        n_initial = _counts(content, "n_initial", where, f'"same" or {form}')
    return Grid(sizes, n_initial, _count(content, "trials", where))


def _check_keys(content: Any, allowed: set[str], where: str, what: str = "a known key") -> None:
    if not isinstance(content, dict):
        raise ExperimentError(
            f"{where} must be a table of keys and values, got {reprlib.repr(content)}."
        )
    for key in content.keys() - allowed:
        names = ", ".join(sorted(allowed))
        got = reprlib.repr(key)
        raise ExperimentError(f"{where}: {got} is not {what}. Allowed: {names}.")


def _take(content: dict[str, Any], key: str, where: str, form: str, valid: Any) -> Any:
    value = content.get(key)
    if not valid(value):
        raise ExperimentError(f"{where}: {key}={reprlib.repr(value)} must be {form}.")
    return value


def _known(content: dict[str, Any], key: str, known: Iterable[str], where: str) -> tuple[str, ...]:
    form = "a list of names, not empty"
    names = _take(content, key, where, form, lambda x: isinstance(x, list) and x)
    for name in names:
        if not isinstance(name, str) or name not in known:
            got, names_known = reprlib.repr(name), ", ".join(known)
            raise ExperimentError(
                f"{where}: {got} is none of the {key}. Known names: {names_known}."
            )
    return tuple(dict.fromkeys(names))


def _count(content: dict[str, Any], key: str, where: str) -> int:
    form = "a positive whole number"
    return _take(content, key, where, form, lambda x: type(x) is int and x > 0)


def _counts(content: dict[str, Any], key: str, where: str, form: str, empty: bool = False) -> Sizes:
    """Return a list of positive whole numbers as a tuple without repetitions."""

    def valid(values: Any) -> bool:
        whole = isinstance(values, list) and all(type(v) is int and v > 0 for v in values)
        return (whole and bool(values or empty)) or (values is None and empty)

    return tuple(dict.fromkeys(_take(content, key, where, form, valid) or ()))
