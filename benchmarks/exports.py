"""How large a model is in each format, and how fast it predicts there.

A classifier is fitted to float32 rows and stored in float32 and in int8; each is written in every
format and, where a format computes, predicts the same test rows: all at once, and one at a time.
Rows are read, split and scaled to [0, 1] as for `selection`. Times are medians of five.
`formats_page.py` puts the table into docs/formats.md.

    python benchmarks/exports.py [--datasets digits usps] [--smoke] [--fresh]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import csv_rows
import numpy as np
import onnxruntime
from benchmark_runs import short, table
from child_process import environment, n_threads, restart_with_fixed_threads
from measurement import RESULTS
from selection import SMOKE, SOURCES, Problem, load_problem

from nysplus import NystroemClassifier
from nysplus._bytes.quantise import pack_expansion
from nysplus.experiments.datasets import DatasetNotFound
from nysplus.export.c_header import to_c
from nysplus.export.json_text import to_json
from nysplus.export.onnx_graph import to_onnx

DATASETS = ("digits", "usps")
STORAGE = ("float32", "int8")
LANDMARKS = 200
MAX_TRAIN_ROWS, MAX_TEST_ROWS = 5_000, 2_000
SINGLE_ROWS = 200
REPEATS = 5

# Predicts all rows several times and prints seconds of each pass; writes the last scores.
C_PROGRAM = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include "nysplus.h"
static float rows[%(rows)d][NYSPLUS_FEATURES], scores[%(rows)d][NYSPLUS_SCORES];
int main(void)
{
    if (fread(rows, sizeof rows, 1, stdin) != 1) return 1;
    for (int repeat = 0; repeat < %(repeats)d; repeat++) {
        struct timespec start, stop;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int i = 0; i < %(rows)d; i++) nysplus_scores(rows[i], scores[i]);
        clock_gettime(CLOCK_MONOTONIC, &stop);
        const double seconds = (double)(stop.tv_sec - start.tv_sec);
        fprintf(stderr, "%%.9f\\n", seconds + 1e-9 * (double)(stop.tv_nsec - start.tv_nsec));
    }
    fwrite(scores, sizeof scores, 1, stdout);
    return 0;
}
"""


@dataclass(frozen=True)
class Export:
    """One row of ``exports.csv``: a model in a format.

    Attributes
    ----------
    bytes : int
        Of the file; for Python those of the stored numbers, for C those of the tables.
    batch_us, single_us : float or None
        Microseconds a row of all rows at once, and of one row a call; None where the format only
        stores.
    change : float or None
        Largest difference of a score from Python's.
    """

    dataset: str
    storage: str
    format: str
    landmarks: int
    features: int
    classes: int
    bytes: int
    batch_us: float | None
    single_us: float | None
    change: float | None
    accuracy: float
    threads: int

    @property
    def key(self) -> tuple[str, str]:
        """The model."""
        return self.dataset, self.packed


class Measured(NamedTuple):
    """What a format makes of a model and of rows; times in seconds a row."""

    n_bytes: int
    batch: float | None = None
    single: float | None = None
    scores: np.ndarray | None = None


# -- measuring -----------------------------------------------------------------------------------


def _seconds(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _timed(n_bytes: int, scores: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> Measured:
    found, few = scores(X), X[:SINGLE_ROWS]  # the first call is not timed
    return Measured(
        n_bytes,
        _seconds(lambda: scores(X)) / len(X),
        _seconds(lambda: [scores(few[i : i + 1]) for i in range(len(few))]) / len(few),
        found,
    )


def _python(model: NystroemClassifier, X: np.ndarray) -> Measured:
    return _timed(model.model_bytes_, model.decision_function, X)


def _safetensors(model: NystroemClassifier, X: np.ndarray) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return Measured(path.stat().st_size)


def _json(model: NystroemClassifier, X: np.ndarray) -> Measured:
    return Measured(len(to_json(model).encode()))


def _onnx(model: NystroemClassifier, X: np.ndarray) -> Measured:
    made = to_onnx(model, scores=True).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads()
    session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    return _timed(len(made), lambda rows: session.run(["scores"], {"X": rows})[0], X)


def _c(model: NystroemClassifier, X: np.ndarray) -> Measured:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        to_c(model, folder / "nysplus.h")
        (folder / "main.c").write_text(C_PROGRAM % {"rows": len(X), "repeats": REPEATS})
        command = ["gcc", "-std=c99", "-O2", "main.c", "-lm", "-o", "main"]
        subprocess.run(command, cwd=folder, check=True)
        done = subprocess.run([folder / "main"], input=X.tobytes(), capture_output=True, check=True)
    seconds = statistics.median(map(float, done.stderr.split())) / len(X)
    scores = np.frombuffer(done.stdout, dtype=np.float32).reshape(len(X), -1)
    return Measured(model.model_bytes_, seconds, seconds, scores)


FORMATS: dict[str, Callable[[NystroemClassifier, np.ndarray], Measured]] = {
    "Python": _python,
    "safetensors": _safetensors,
    "JSON": _json,
    "ONNX": _onnx,
    "C": _c,
}


def measure(dataset: str, storage: str, problem: Problem) -> list[Export]:
    """Fit a model, store it, and try all formats."""
    X, X_test = problem.X.astype(np.float32), problem.X_test.astype(np.float32)
    model = NystroemClassifier(LANDMARKS, random_state=0).fit(X, problem.y)
    model.expansion_ = pack_expansion(model.expansion_, storage, X)
    expected, accuracy = model.decision_function(X_test), model.score(X_test, problem.y_test)
    rows = []
    for name, export in FORMATS.items():
        found = export(model, X_test)
        change = None
        if found.scores is not None:
            change = float(np.abs(found.scores.reshape(expected.shape) - expected).max())
        rows.append(
            Export(
                dataset,
                storage,
                name,
                LANDMARKS,
                X.shape[1],
                len(model.classes_),
                found.n_bytes,
                None if found.batch is None else 1e6 * found.batch,
                None if found.single is None else 1e6 * found.single,
                change,
                100 * accuracy,
                n_threads(),
            )
        )
    return rows


def run(options: argparse.Namespace) -> None:
    """Measure every model that is not in the file yet."""
    done = {row.key for row in csv_rows.begin(options.out, Export, environment(), options.fresh)}
    for dataset in options.datasets:
        try:
            problem = load_problem(dataset, 0, options.train_rows, MAX_TEST_ROWS)
        except DatasetNotFound as error:
            print(f"{dataset} is left out. {error}")
            continue
        for storage in STORAGE:
            if (dataset, storage) in done:
                continue
            for row in measure(dataset, storage, problem):
                csv_rows.append(options.out, row)


# -- reporting -----------------------------------------------------------------------------------


def exports_table(rows: Sequence[Export]) -> list[str]:
    """Return the lines of a Markdown table: data and formats, with columns for each storage."""
    found = {(row.dataset, row.format, row.packed): row for row in rows}
    columns: dict[str, Callable[[Export], str]] = {
        "kB": lambda row: f"{row.bytes / 1024:.1f}",
        "µs a row, all at once": lambda row: _time(row.batch_us),
        "µs a row, one at a time": lambda row: _time(row.single_us),
    }
    lines = []
    for dataset, name in dict.fromkeys((row.dataset, row.format) for row in rows):
        own = [found.get((dataset, name, storage)) for storage in STORAGE]
        changes = [row.change for row in own if row is not None and row.change is not None]
        lines.append(
            [
                SOURCES[dataset].title,
                name,
                *("–" if row is None else write(row) for write in columns.values() for row in own),
                scientific(max(changes)) if changes else "–",
            ]
        )
    header = [f"{column}: {storage}" for column in columns for storage in STORAGE]
    return table(["data", "format", *header, "largest change of a score"], lines)


def _time(microseconds: float | None) -> str:
    return "–" if microseconds is None else short(microseconds)


def scientific(change: float) -> str:
    """Write a change of a score; nothing but zero is written as zero."""
    return f"{change:.0e}" if change else "0"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--smoke", action="store_true", help="seconds: digits, few rows")
    parser.add_argument("--out", type=Path, help="default: in results/; in build/ for smoke")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    options = parser.parse_args()
    options.train_rows = 500 if options.smoke else MAX_TRAIN_ROWS
    if options.smoke:
        options.datasets = (SMOKE,)
    folder = RESULTS.parents[1] / "build" if options.smoke else RESULTS
    options.out = options.out or folder / "exports.csv"
    return options


def main() -> None:
    restart_with_fixed_threads()
    options = parse()
    try:
        run(options)
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")
    print("\n" + "\n".join(exports_table(csv_rows.read(options.out, Export))))


if __name__ == "__main__":
    main()
