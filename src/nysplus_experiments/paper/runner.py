"""Run an experiment: plan the rows, fit them one by one, append each to ``results.csv``.

A run can be killed at any moment. The next one cuts a torn last line off, skips the rows that
are there and goes on; what it adds does not depend on what was there, because every row has a
seed of its own.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

import nysplus
from nysplus._runtime.atomic_file import write_whole
from nysplus_experiments.harness import datasets, records
from nysplus_experiments.harness.measurement import measure, processor
from nysplus_experiments.paper.duration import estimate_seconds
from nysplus_experiments.paper.experiment import Experiment, Grid
from nysplus_experiments.paper.methods import FULL_ROWS, METHODS, Trial, fit_method, seed_of
from nysplus_experiments.paper.results import Key, Result, read_results
from nysplus_experiments.paper.trial import largest

RESULTS_FILE = "results.csv"
NOTES_FILE = "notes.json"


# -- planning ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Rows to fit, in order and none twice, and notes on rows that are left out."""

    tasks: tuple[Key, ...]
    notes: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Rough estimate of the time it takes on two cores."""
        return sum(estimate_seconds(self.tasks))


def plan(experiment: Experiment) -> Plan:
    """Return the rows of an experiment that can be fitted here, in the order to fit them.

    Trial 0 of everything comes first, then trial 1, and so on: however early a run ends, every
    curve is there, only with a wider band. Within a trial all rows of a dataset stand together
    (its data are loaded once), and within these the rows that share a first stage (it is fitted
    once, and only the last one is kept in memory).

    Full machines draw nothing at random; where the split is fixed they run once, as trial 0.
    """
    present = {row.dataset.name for row in datasets.describe() if row.present}
    tasks: set[Key] = set()
    notes: dict[str, None] = {}
    for part in experiment.runs:
        for name, grid in part.grids.items():
            if name not in present:
                notes[_absent(name)] = None
                continue
            for method in part.methods:
                for task, reason in _rows(name, method, grid):
                    if reason:
                        notes[reason] = None
                    else:
                        tasks.add(task)
    return Plan(tuple(sorted(tasks, key=_order)), tuple(notes))


def _rows(name: str, method: str, grid: Grid) -> Iterable[tuple[Key, str]]:
    """Yield all rows of a method on a dataset, each with the reason to leave it out, or ""."""
    row, kind = datasets.DATASETS[name], METHODS[method]
    n_train = row.counts[0]
    trials = 1 if kind.full and row.split == "fixed" else grid.trials
    sizes: list[tuple[int, int | None]] = [(n_train, None)]
    if not kind.full:
        sizes = [(n, n_0) for n in grid.sizes for n_0 in _first_sizes(method, grid, n)]
    for n, n_initial in sizes:
        reason = ""
        if kind.full and n > FULL_ROWS:
            reason = (
                f"{kind.title} is left out on {row.title}: its {n} training rows exceed the "
                f"limit of {FULL_ROWS} for a full kernel matrix."
            )
        elif max(n, n_initial or 0) > n_train:
            reason = (
                f"{max(n, n_initial or 0)} landmarks are left out on {row.title}, which has "
                f"{n_train} training rows."
            )
        for trial in range(trials):
            yield Key(name, method, n, n_initial, trial), reason


def _first_sizes(method: str, grid: Grid, n: int) -> tuple[int | None, ...]:
    if not METHODS[method].two_stage:
        return (None,)
    return (n,) if grid.n_initial == "same" else grid.n_initial


def _absent(name: str) -> str:
    title = datasets.DATASETS[name].title
    return (
        f"{title} is skipped: {name}.npz is neither in NYSPLUS_DATA nor in the cache. Get it with "
        f"`nysplus datasets fetch {name}` or `nysplus datasets prepare DIR`."
    )


def _order(task: Key) -> tuple[Any, ...]:
    kind = METHODS[task.method]
    names, methods = list(datasets.DATASETS), list(METHODS)
    stage = (methods.index(kind.first), task.n_initial or task.n)
    return task.trial, names.index(task.dataset), *stage, kind.two_stage, task.n


# -- running -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Progress of a run, reported before each row and after the last one.

    Attributes
    ----------
    task : Key or None
        The row that is fitted next; None at the end.
    done, total : int
        Rows finished, those of earlier runs included, and rows of the plan.
    failed : int
        Rows of this run that ended with an error.
    fraction : float
        Share of the work that is done, by estimated time.
    seconds_left : float
        Estimate, corrected by the speed of this run so far.
    """

    task: Key | None
    done: int
    total: int
    failed: int
    fraction: float
    seconds_left: float


def run(
    experiment: Experiment,
    out: Path,
    progress: Callable[[Step], None] = lambda step: None,
) -> list[Result]:
    """Fit what is missing and append it to ``out/results.csv``.

    Parameters
    ----------
    experiment : Experiment
    out : Path
        Folder, made where it does not exist. Rows with status "ok" that are in its
        ``results.csv`` are kept; failed ones are tried once more.
    progress : callable, optional

    Returns
    -------
    list of Result
        All rows of the file, those of other experiments included.
    """
    todo, path = plan(experiment), out / RESULTS_FILE
    records.begin(path, Result, environment=None)
    _write_notes(out, list(todo.notes), {})
    finished = {row.key for row in read_results(path) if row.ok}
    tasks = [task for task in todo.tasks if task not in finished]
    if tasks:
        _warm_up()
    clock = _Clock(tasks, len(todo.tasks))
    trial: Trial | None = None
    for task in tasks:
        progress(clock.step(task))
        result, trial = _fit(task, trial)
        if trial is not None:
            _write_notes(out, None, {task.dataset: list(trial.split.deviations)})
        records.append(path, result)
        clock.tick(result)
    progress(clock.step(None))
    return read_results(path)


def _warm_up() -> None:
    """Start thread pools and load what loads on first use, or the first row would pay for it."""
    rng = numpy.random.RandomState(0)
    X, y = rng.rand(100, 3), rng.randint(2, size=100)
    fit_method("KNys+", Trial(datasets.Split("warm-up", X, y, X, y, gamma=1.0), 0), 10)


class _Clock:
    """Counts rows and estimates the time left."""

    def __init__(self, tasks: list[Key], total: int) -> None:
        self._costs = estimate_seconds(tasks)
        self._total = total
        self._done = self._failed = 0
        self._start = time.monotonic()

    def tick(self, result: Result) -> None:
        self._done += 1
        self._failed += not result.ok

    def step(self, task: Key | None) -> Step:
        spent, left = sum(self._costs[: self._done]), sum(self._costs[self._done :])
        elapsed = time.monotonic() - self._start
        earlier = self._total - len(self._costs)
        whole = spent + left
        # The constants are trusted like some work that was done, until the own speed takes over.
        trust = max(min(10.0, 0.05 * whole), 1e-9)
        pace = (elapsed + trust) / (spent + trust)
        return Step(
            task=task,
            done=earlier + self._done,
            total=self._total,
            failed=self._failed,
            fraction=spent / whole if whole else 1.0,
            seconds_left=left * pace,
        )


def _fit(task: Key, trial: Trial | None) -> tuple[Result, Trial | None]:
    """Return the row of a task, whatever happens, and the trial it was fitted on."""
    seed = seed_of(task.dataset, task.trial, task.n_initial or task.n)
    row = Result(*task, seed=seed, status="ok", **_versions())
    try:
        if trial is None or (trial.split.name, trial.number) != (task.dataset, task.trial):
            trial = None  # frees the old rows before the new ones come
            split = datasets.load(task.dataset, task.trial, download=False)
            trial = Trial(split, task.trial)
        return _measured(row, task, trial), trial
    except Exception as error:  # any failure is a row of its own, not the end of the run
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return replace(row, status="error", error=message), trial


def _measured(row: Result, task: Key, trial: Trial) -> Result:
    split = trial.split
    fitted = fit_method(task.method, trial, task.n, task.n_initial)
    prediction = measure(fitted.predict, split.X_test)
    peak = largest(fitted.peak_rss_mb, prediction.peak_mb)
    first = fitted.first_stage_seconds
    return replace(
        row,
        accuracy=round(trial.accuracy(prediction.result), 6),
        first_stage_seconds=None if first is None else round(first, 6),
        final_stage_seconds=round(fitted.final_stage_seconds, 6),
        predict_seconds=round(prediction.seconds, 6),
        paper_bytes=fitted.paper_bytes,
        stored_bytes=fitted.stored_bytes,
        kernel_evaluations=fitted.kernel_evaluations,
        peak_rss_mb=None if peak is None else round(peak, 1),
        n_train=len(split.X_train),
        n_test=len(split.X_test),
        n_features=split.X_train.shape[1],
        n_outputs=trial.targets.n_outputs,
    )


@cache
def _versions() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "nysplus": nysplus.__version__,
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
    }


# -- notes ---------------------------------------------------------------------------------------


def _write_notes(out: Path, left_out: list[str] | None, deviations: dict[str, list[str]]) -> None:
    """Replace what the last plan left out, add to what datasets deviate in."""
    path = out / NOTES_FILE
    old = _read_notes(path)
    new = {
        "left_out": old["left_out"] if left_out is None else left_out,
        "deviations": {**old["deviations"], **deviations},
    }
    if new == old and path.exists():
        return
    write_whole(path, (json.dumps(new, indent=2, ensure_ascii=False) + "\n").encode())


def _read_notes(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"left_out": [], "deviations": {}}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def read_notes(out: Path) -> list[str]:
    """Return all notes of a folder of results: what was left out, how datasets deviate."""
    content = _read_notes(out / NOTES_FILE)
    sentences = [
        *content["left_out"],
        *(s for each in content["deviations"].values() for s in each),
    ]
    return list(dict.fromkeys(sentences))
