"""Run an experiment: plan the rows, fit them one by one, append each to ``results.csv``.

A killed run resumes; what it adds does not depend on what was there, because rows have seeds.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from nysplus_experiments.paper.experiment import Experiment, Grid
from nysplus_experiments.paper.methods import (
    METHODS,
    VARIANTS,
    clustered_rows,
    fit_method,
)
from nysplus_experiments.paper.results import Key, Result, read_results
from nysplus_experiments.paper.trial import Trial, largest, seed_of

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

    Trials are the outermost loop: however early a run ends, every curve is there. Rows of a
    dataset, and among these rows that share a first stage, stand together, to be made once.
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
                fixed = METHODS[method].full and datasets.DATASETS[name].split == "fixed"
                for n, n_initial in _sizes(name, method, grid):
                    if reason := _too_large(name, method, max(n, n_initial or 0)):
                        notes[reason] = None
                        continue
                    for trial in range(1 if fixed else grid.trials):
                        tasks.add(Key(name, method, n, n_initial, trial))
    return Plan(tuple(sorted(tasks, key=_order)), tuple(notes))


def _sizes(name: str, method: str, grid: Grid) -> list[tuple[int, int | None]]:
    """Return each n with each n_0."""
    if METHODS[method].full:
        return [(datasets.DATASETS[name].counts[0], None)]
    if not METHODS[method].two_stage:
        return [(n, None) for n in grid.sizes]
    if grid.n_initial == "same":
        return [(n, n) for n in grid.sizes]
    return [(n, n_0) for n in grid.sizes for n_0 in grid.n_initial]


def _too_large(name: str, method: str, n: int) -> str:
    """Return the reason to leave a size out, or nothing."""
    row, kind = datasets.DATASETS[name], METHODS[method]
    if kind.max_rows is not None and n > kind.max_rows:
        return (
            f"{kind.name} is left out on {row.title}: its {n} training rows exceed the "
            f"limit of {kind.max_rows} for this method."
        )
    if n > row.counts[0]:
        return (
            f"{n} landmarks are left out on {row.title}, which has {row.counts[0]} training rows."
        )
    return ""


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
    """Progress of a run, before each row and after the last one, when ``task`` is None."""

    task: Key | None
    done: int
    total: int
    failed: int
    fraction: float
    seconds_left: float


#: Rows to fit next, in batches, given those of the plan and the results: see `missing`.
Choose = Callable[[Sequence[Key], list[Result]], list[tuple[Key, ...]]]


def missing(tasks: Sequence[Key], results: list[Result]) -> list[tuple[Key, ...]]:
    """Return the tasks without a result in one batch, or no batch."""
    finished = {row.key for row in results if row.ok}
    left = tuple(task for task in tasks if task not in finished)
    return [left] if left else []


def run(
    experiment: Experiment,
    out: Path,
    progress: Callable[[Step], None] = lambda step: None,
    *,
    choose: Choose = missing,
    times: bool = True,
    limit: float = math.inf,
) -> list[Result]:
    """Fit what ``out/results.csv`` lacks, failed rows again; return all rows of the file.

    ``choose`` is asked before each batch. Without ``times``, seconds are not recorded. No row is
    begun later than ``limit`` seconds after the start.
    """
    todo, path = plan(experiment), out / RESULTS_FILE
    records.begin(path, Result, environment=None)
    _note(out, left_out=list(todo.notes))
    done = len({row.key for row in read_results(path) if row.ok} & set(todo.tasks))
    failed: set[Key] = set()
    trial: Trial | None = None
    costs: list[float] = []
    start, spent = time.monotonic(), 0.0
    for task, costs in _queue(todo.tasks, path, choose, failed):
        if spent == 0.0:
            _warm_up()
        elapsed = time.monotonic() - start
        if elapsed > limit:
            break
        progress(Step(task, done, done + len(costs), len(failed), *_pace(spent, costs, elapsed)))
        result, trial = _fit(task, trial)
        if trial is not None:
            deviations = {task.dataset: list(trial.split.deviations)}
            _note(out, deviations=_notes(out)["deviations"] | deviations)
        records.append(path, result if times else _without_times(result))
        if not result.ok:
            failed.add(task)
        done, spent, costs = done + 1, spent + costs[0], costs[1:]
    pace = _pace(spent, costs, time.monotonic() - start)
    progress(Step(None, done, done + len(costs), len(failed), *pace))
    return read_results(path)


def _queue(
    tasks: Sequence[Key], path: Path, choose: Choose, failed: set[Key]
) -> Iterator[tuple[Key, list[float]]]:
    """Yield each row to fit, and the estimated seconds of it and of those behind it."""
    while batches := choose([t for t in tasks if t not in failed], read_results(path)):
        ahead = dict.fromkeys(task for batch in batches for task in batch)
        costs = estimate_seconds(ahead)
        for i, task in enumerate(batches[0]):
            yield task, costs[i:]


def _warm_up() -> None:
    """Start thread pools and load what loads on first use, or the first row would pay for it."""
    rng = numpy.random.RandomState(0)
    X, y = rng.rand(100, 3), rng.randint(2, size=100)
    fit_method("KNys+", Trial(datasets.Split("warm-up", X, y, X, y, gamma=1.0), 0), 10)


def _pace(spent: float, costs: list[float], elapsed: float) -> tuple[float, float]:
    """Return the share of the work that is done, and the seconds left at the pace so far."""
    left = sum(costs)
    # The estimates are trusted like some work that was done, until the own speed takes over.
    trust = max(min(10.0, 0.05 * (spent + left)), 1e-9)
    pace = (elapsed + trust) / (spent + trust)
    return spent / (spent + left) if left else 1.0, left * pace


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


def _without_times(row: Result) -> Result:
    return replace(row, first_stage_seconds=None, final_stage_seconds=None, predict_seconds=None)


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


def _notes(out: Path) -> dict[str, Any]:
    path = out / NOTES_FILE
    known = records.read_json(path) if path.exists() else {}
    notes = {"left_out": [], "deviations": {}} | known
    kinds = {name: type(notes[name]) for name in ("left_out", "deviations")}
    if kinds != {"left_out": list, "deviations": dict}:
        raise records.ResultsError(f"{path} has other notes than those of a run. Move it away.")
    return notes


def _note(out: Path, **changed: Any) -> None:
    old, path = _notes(out), out / NOTES_FILE
    new = old | changed
    if new != old or not path.exists():
        write_whole(path, (json.dumps(new, indent=2, ensure_ascii=False) + "\n").encode())


def read_notes(out: Path) -> list[str]:
    """Return all notes of a folder of results: what was left out, how datasets deviate."""
    notes = _notes(out)
    deviations = (note for each in notes["deviations"].values() for note in each)
    return list(dict.fromkeys([*notes["left_out"], *deviations]))


# -- rough estimates of time, enough for a dry run -----------------------------------------------

_PRODUCTS, _CLUSTERING = 95e9, 70e9  # operations a second in matrix products, and in k-means
_FIT_ENTRY, _PREDICT_ENTRY = 18e-9, 6e-9  # seconds for a kernel entry beside its products
_PAIR, _PAIR_FEATURE = 8e-9, 5e-11  # seconds of LIBSVM for a pair of rows, and for each feature
_EIGEN = 0.24e-9  # seconds for n³ of the two eigendecompositions
_OVERHEAD, _LOAD = 0.02, 2e-8  # seconds of any row, and of loading one number
# Operations of a fit on one row of the data, in units of n²: whitening, then the scatter. A
# standard map takes 2 + 1, five experts 2/5 + 1, a map of rank n/2 takes 1 + 1/4, Fourier 0 + 1.
_WORK = {"ENys": 1.4, "RNys": 1.25, "Fourier": 1.0}


def _fit_seconds(method: str, data: datasets.Dataset, n: int) -> float:
    """Return the time of a fit: moments, two eigendecompositions, and k-means where it is used."""
    operations = 2 * data.n_features + _WORK.get(method, 3.0) * n
    own = data.counts[0] * n * (operations / _PRODUCTS + _FIT_ENTRY) + _EIGEN * n**3
    return own + (_clustering(data, n) if method == "KNys" else 0.0)


def _scores(n_rows: int, data: datasets.Dataset, n: int) -> float:
    return n_rows * n * (2 * data.n_features / _PRODUCTS + _PREDICT_ENTRY)


def _clustering(data: datasets.Dataset, n: int) -> float:
    """Return the time of twenty Lloyd iterations."""
    rows = min(clustered_rows(data.name), data.counts[0])
    return 20 * rows * n * (2 * data.n_features + 10) / _CLUSTERING


def _final_stage(task: Key, data: datasets.Dataset) -> float:
    n, n_initial, method = task.n, task.n_initial or task.n, METHODS[task.method]
    rows = data.counts[0]
    if task.method == "KSVM":
        return rows**2 * (_PAIR + data.n_features * _PAIR_FEATURE)
    if task.method == "KRR":
        return rows**2 * ((2 * data.n_features + rows / 3) / _PRODUCTS + _FIT_ENTRY)
    if task.method in VARIANTS:
        return 0.0  # all of it is the first stage
    if task.method == "SC":
        return (
            _clustering(data, 3 * n)
            + _fit_seconds("Nys", data, n_initial)
            + _fit_seconds("Nys", data, n)
        )
    final = _fit_seconds(method.first, data, n)
    return final + (_scores(rows, data, n_initial) if method.two_stage else 0.0)


def estimate_seconds(tasks: Iterable[Key]) -> list[float]:
    """Return the seconds of each task; a shared first stage counts where it is fitted."""
    seconds: list[float] = []
    loaded: tuple[str, int] | None = None
    stage: tuple[str, int] | None = None
    for task in tasks:
        data, first = datasets.DATASETS[task.dataset], METHODS[task.method].first
        own = _OVERHEAD + _final_stage(task, data) + _scores(data.counts[1], data, task.n)
        if loaded != (task.dataset, task.trial):
            loaded, stage = (task.dataset, task.trial), None
            own += _LOAD * sum(data.counts) * data.n_features
        n_first = task.n_initial or task.n
        if first in VARIANTS and stage != (first, n_first):
            stage = (first, n_first)
            own += _fit_seconds(first, data, n_first)
        seconds.append(own)
    return seconds
