"""What a fit costs when its rows stay on disk: seconds, memory and passes, up to ten million rows.

Synthetic rows of 20 features in two classes with some wrong labels, as Parquet files and as a
memory map, in memory for comparison; and CovType as a memory map. Every fit is a child process of
its own that has never held the data; another one writes them, a million rows at a time. The files
are dropped from the system's cache before each fit. Repeats are the outermost loop, and a run
that was stopped goes on.

    python benchmarks/out_of_core.py [--rows N ...] [--repeats 2] [--folder DIR] [--covtype]

The largest size takes 3.5 GB of disk. CovType needs the datasets (NYSPLUS_DATA names their folder).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import math
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import csv_rows
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import sklearn
from child_process import environment, n_threads, restart_with_fixed_threads, run_in_child
from measurement import RESULTS
from peers import SEED

from nysplus import NystroemClassifier
from nysplus.experiments.datasets import load
from nysplus.landmarks import SELECTORS

FEATURES = 20
LANDMARKS = 500
SELECTIONS = ("negative-margin", "kmeans")
SOURCES = ("parquet", "memmap", "array")
ROWS = (1_000_000, 3_000_000, 10_000_000)
# The rows in memory show what reading costs; more of them would show nothing else.
MOST_IN_MEMORY = 1_000_000
TEST_ROWS = 100_000
# Rows that are made at a time, those of a Parquet file (at most), and of its row groups.
FILE_ROWS, GROUP_ROWS = 1_000_000, 250_000
WRONG_LABELS = 0.05
WORKING_MEMORY = 256  # MiB
# Percent of the CPU that others may take; the system itself, and who looks at the log, take some.
MOST_OTHERS = 4.0
COVTYPE, COVTYPE_LANDMARKS = "covtype", 2000
# Passes are counted on small data; beyond 10000 rows leave-one-out takes some of them only.
COUNTED_ROWS, COUNTED_LANDMARKS = 25_000, 50
COUNTED_SELECTIONS = tuple(sorted(set(SELECTORS) - {"residual"}))  # which is for values

# What a fit with verbose=2 says of each pass.
_PASS = re.compile(r"^\[\w+\] (?P<stage>.+): (?P<rows>[\d,]+)(?: of [\d,]+)? rows, (?P<s>[\d.]+) s")


@dataclass(frozen=True)
class Pass:
    """One stage of a fit: its name, the rows it went through, seconds."""

    stage: str
    rows: int
    seconds: float


@dataclass(frozen=True)
class OutOfCore:
    """One row of ``out_of_core.csv``: a fit.

    Attributes
    ----------
    data : "synthetic" or "covtype"
    source : "parquet", "memmap" or "array"
        Where the rows are.
    rows, n : int
        Rows and landmarks.
    peak_mb : float
        Largest resident memory of the process, interpreter and libraries included, in MiB.
    passes : int
        What ``n_passes_`` says.
    accuracy : float
        Of held-out rows, in percent.
    others : float or None
        CPU time that other processes took during the fit, in percent of all there is; None where
        the system does not tell. Such a fit was disturbed, and is measured again by the next run.
    stages : str
        What the fit reported of its passes: "name=rows=seconds", several joined by ";".
    """

    data: str
    source: str
    selection: str
    rows: int
    n: int
    repeat: int
    fit_seconds: float
    peak_mb: float
    passes: int
    solver: str
    accuracy: float
    threads: int
    others: float | None
    stages: str

    @property
    def key(self) -> tuple[str, str, str, int, int, int]:
        """What was measured."""
        return self.data, self.source, self.selection, self.rows, self.n, self.repeat

    @property
    def microseconds_per_row(self) -> float:
        """Time of the fit for each row, all passes together."""
        return 1e6 * self.fit_seconds / self.rows


@dataclass(frozen=True)
class PassCount:
    """One row of ``out_of_core_passes.csv``: how often a small fit has read its rows.

    ``alpha`` is "auto", where leave-one-out chooses the ridge, or "number".
    """

    source: str
    selection: str
    alpha: str
    passes: int
    stages: str


# -- data ----------------------------------------------------------------------------------------


def make_rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal rows and two classes that no plane separates, some labels wrong."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n_rows, FEATURES))
    wrong = rng.uniform(size=n_rows) < WRONG_LABELS
    return X, ((X[:, 0] * X[:, 1] + X[:, 2] > 0) ^ wrong).astype(np.int8)


def write_rows(folder: Path, n_rows: int, file_rows: int) -> None:
    """Write the same rows as a memory map and as Parquet files, and rows to test with."""
    stored = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (n_rows, FEATURES))
    labels = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, (n_rows,))
    names = [f"x{j}" for j in range(FEATURES)]
    for number, start in enumerate(range(0, n_rows, file_rows)):
        X, y = make_rows(file_rows, SEED + 1 + number)
        stored[start : start + len(X)], labels[start : start + len(X)] = X, y
        table = pa.table(dict(zip([*names, "label"], [*X.T, y], strict=True)))
        pa.parquet.write_table(table, _file(folder, number), row_group_size=GROUP_ROWS)
    stored.flush()
    labels.flush()
    np.savez(folder / "test.npz", **dict(zip("Xy", make_rows(TEST_ROWS, SEED), strict=True)))
    _sync(folder)


def write_covtype(folder: Path, n_rows: int) -> None:
    """Write CovType, scaled as in the paper, as a memory map, and its test rows."""
    split = load(COVTYPE)
    np.save(folder / "X.npy", split.X_train[:n_rows])
    np.save(folder / "y.npy", split.y_train[:n_rows])
    np.savez(folder / "test.npz", X=split.X_test, y=split.y_test)
    _sync(folder)


def _file(folder: Path, number: int) -> Path:
    return folder / f"rows-{number:03d}.parquet"


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def forget(folder: Path) -> None:
    """Drop the files from the system's cache, where it can be asked to."""
    if hasattr(os, "posix_fadvise"):
        for path in folder.iterdir():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_rows(folder: Path, source: str, n_rows: int) -> tuple[Any, Any]:
    """Return what `fit` gets as X and y: the first rows of the folder, which end with a file."""
    if source == "parquet":
        file_rows = pa.parquet.read_metadata(_file(folder, 0)).num_rows
        files = [str(_file(folder, number)) for number in range(n_rows // file_rows)]
        return pa.dataset.dataset(files), "label"
    X, y = (np.load(folder / name, mmap_mode="r")[:n_rows] for name in ("X.npy", "y.npy"))
    return (X, y) if source == "memmap" else (np.array(X), np.array(y))


# -- who else is at work -------------------------------------------------------------------------


@dataclass
class Others:
    """CPU time of other processes, in percent of all there is; filled in at the end."""

    percent: float | None = None


@contextlib.contextmanager
def watch_others() -> Iterator[Others]:
    """Measure what processes other than this one and its living children use of the CPU."""
    result = Others()
    before, start = _busy_seconds(), _own_seconds()
    yield result
    after, end = _busy_seconds(), _own_seconds()
    if before is not None and after is not None:
        (busy, total), own = (b - a for a, b in zip(before, after, strict=True)), end - start
        result.percent = round(100 * max(busy - own, 0.0) / max(total, 1e-9), 1)


def _busy_seconds() -> tuple[float, float] | None:
    """Return CPU seconds that were used, and all there were, on all cores; None if unknown."""
    try:
        line = Path("/proc/stat").read_text().splitlines()[0]
    except OSError:
        return None
    # proc(5): user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already
    ticks = [int(word) for word in line.split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / tick, sum(ticks) / tick


def _own_seconds() -> float:
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def undisturbed(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the measurements during which nobody else was at work."""
    return (row for row in rows if row.others is None or row.others <= MOST_OTHERS)


# -- measurement ---------------------------------------------------------------------------------


def fit_once(folder: Path, source: str, n_rows: int, n: int, selection: str) -> dict[str, Any]:
    """Fit with the defaults; return columns of `OutOfCore`."""
    X, y = open_rows(folder, source, n_rows)
    model = NystroemClassifier(n, selection=selection, random_state=SEED, verbose=2)
    with sklearn.config_context(working_memory=WORKING_MEMORY):
        with watch_others() as others:
            start = time.perf_counter()
            stages = fit_and_listen(model, X, y)
            seconds = time.perf_counter() - start
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with np.load(folder / "test.npz") as test:
            names = getattr(model, "feature_names_in_", None)
            rows = test["X"] if names is None else pd.DataFrame(test["X"], columns=names)
            accuracy = 100 * model.score(rows, test["y"])
    return {
        "fit_seconds": round(seconds, 3),
        "peak_mb": round(peak_kb / 1024, 1),
        "passes": model.n_passes_,
        "solver": model.solver_,
        "accuracy": round(accuracy, 3),
        "others": others.percent,
        "stages": stages,
    }


def fit_and_listen(model: NystroemClassifier, X: Any, y: Any) -> str:
    """Fit a model of ``verbose=2`` and return what it says of its passes, as one column."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        model.fit(X, y)
    return ";".join(f"{p.stage}={p.rows}={p.seconds}" for p in parse_passes(said.getvalue()))


def listed(stages: str) -> list[Pass]:
    """Return the stages of a column as records.

    >>> listed("survey=1000=0.5")
    [Pass(stage='survey', rows=1000, seconds=0.5)]
    """
    parts = [stage.rsplit("=", 2) for stage in stages.split(";") if stage]
    return [Pass(name, int(rows), float(seconds)) for name, rows, seconds in parts]


def parse_passes(text: str) -> list[Pass]:
    """Return the passes that a fit with ``verbose=2`` has reported.

    >>> parse_passes("[NystroemClassifier] survey: 1,000 of 1,000 rows, 0.5 s, 2,000 rows/s")
    [Pass(stage='survey', rows=1000, seconds=0.5)]
    """
    found = (_PASS.match(line) for line in text.splitlines())
    return [
        Pass(match["stage"], int(match["rows"].replace(",", "")), float(match["s"]))
        for match in found
        if match
    ]


def plan(rows: list[int], repeats: int) -> Iterator[tuple[str, str, int, int]]:
    """Yield source, selection, number of rows and repeat; sources take turns."""
    for repeat in range(repeats):
        for n_rows in sorted(rows):
            for selection in SELECTIONS:
                for source in SOURCES[:: -1 if repeat % 2 else 1]:
                    if source == "array" and n_rows > MOST_IN_MEMORY:
                        continue
                    yield source, selection, n_rows, repeat


def measure_synthetic(options: argparse.Namespace, done: set) -> None:
    """Measure the synthetic rows that are not in the file yet."""
    tasks = [
        task
        for task in plan(options.rows, options.repeats)
        if ("synthetic", *task[:3], options.landmarks, task[3]) not in done
    ]
    if not tasks:
        return
    with _scratch(options.folder) as folder:
        most = max(n_rows for _, _, n_rows, _ in tasks)
        print(f"Writing {most:,} rows.", flush=True)
        run_in_child(write_rows, folder, most, math.gcd(FILE_ROWS, *options.rows))
        for source, selection, n_rows, repeat in tasks:
            forget(folder)
            columns = run_in_child(fit_once, folder, source, n_rows, options.landmarks, selection)
            row = OutOfCore(
                *("synthetic", source, selection, n_rows, options.landmarks, repeat),
                threads=n_threads(),
                **columns,
            )
            _record(options.out, row)


def measure_covtype(options: argparse.Namespace, done: set) -> None:
    """Measure CovType, as a memory map and in memory."""
    sources = ("memmap", "array")
    n_rows, n, selection = options.covtype_rows, options.covtype_landmarks, "negative-margin"
    tasks = [s for s in sources if (COVTYPE, s, selection, n_rows, n, 0) not in done]
    if not tasks:
        return
    with _scratch(options.folder) as folder:
        run_in_child(write_covtype, folder, n_rows)
        for source in tasks:
            forget(folder)
            columns = run_in_child(fit_once, folder, source, n_rows, n, selection)
            names = (COVTYPE, source, selection, n_rows, n, 0)
            _record(options.out, OutOfCore(*names, threads=n_threads(), **columns))


def count_passes(options: argparse.Namespace) -> None:
    """Count the passes of every selection that is not in the file yet."""
    found = csv_rows.begin(options.passes, PassCount, environment(), options.fresh)
    done = {(row.source, row.selection, row.alpha) for row in found}
    wanted = itertools.product(SOURCES, COUNTED_SELECTIONS, ("auto", "number"))
    tasks = [task for task in wanted if task not in done]
    if not tasks:
        return
    with _scratch(options.folder) as folder:
        run_in_child(write_rows, folder, COUNTED_ROWS, COUNTED_ROWS)
        for task in tasks:
            row = PassCount(*task, *run_in_child(count_once, folder, *task))
            csv_rows.append(options.passes, row)
    print(f"Counted the passes of {len(tasks)} small fits.", flush=True)


def count_once(folder: Path, source: str, selection: str, alpha: str) -> tuple[int, str]:
    """Return the passes of a small fit, and their names."""
    X, y = open_rows(folder, source, COUNTED_ROWS)
    ridge = "auto" if alpha == "auto" else 1.0
    model = NystroemClassifier(
        COUNTED_LANDMARKS, selection=selection, alpha=ridge, random_state=SEED, verbose=2
    )
    stages = fit_and_listen(model, X, y)
    return model.n_passes_, ";".join(p.stage for p in listed(stages))


@contextlib.contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="nysplus-rows-", dir=folder) as name:
        yield Path(name)


def _record(out: Path, row: OutOfCore) -> None:
    csv_rows.append(out, row)
    print(
        f"{row.repeat + 1}. {row.data} {row.rows:>10,d} rows  {row.source:8s}{row.selection:16s}"
        f"{row.fit_seconds:7.1f} s {row.microseconds_per_row:7.2f} µs/row {row.peak_mb:6.0f} MB "
        f"{row.passes} passes  {row.accuracy:.2f} %  {row.solver}  others {row.others} %",
        flush=True,
    )


def main() -> None:
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--landmarks", type=int, default=LANDMARKS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to write the rows for the time being")
    parser.add_argument("--covtype", action="store_true", help="measure CovType too")
    parser.add_argument("--covtype-rows", type=int, default=500_000)
    parser.add_argument("--covtype-landmarks", type=int, default=COVTYPE_LANDMARKS)
    parser.add_argument("--out", type=Path, default=RESULTS / "out_of_core.csv")
    parser.add_argument("--passes", type=Path, default=RESULTS / "out_of_core_passes.csv")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    options = parser.parse_args()
    known = environment() | {"working_memory": WORKING_MEMORY, "pyarrow": pa.__version__}
    found = csv_rows.begin(options.out, OutOfCore, known, options.fresh)
    done = {row.key for row in undisturbed(found)}
    try:
        count_passes(options)
        measure_synthetic(options, done)
        if options.covtype:
            measure_covtype(options, done)
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")


if __name__ == "__main__":
    main()
