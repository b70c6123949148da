"""Measure the bytes of a model in each export format, and the speed of predictions there.

A classifier is fitted to float32 rows and stored in float32, in int8, and with landmarks in 4 bits.
Each is written in every format and, if the format computes, predicts the same test rows: all at
once, and one at a time. Times are medians of five.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nysplus import NystroemClassifier
from nysplus._bytes.quantise import pack_expansion
from nysplus.export import to_c, to_json, to_onnx
from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.problems import chosen_datasets, load_problem
from nysplus_experiments.harness.records import Row

DATASETS = ("digits", "usps")
STORAGE = ("float32", "int8", "int4")
LANDMARKS = 200
MAX_TRAIN_ROWS, MAX_TEST_ROWS = 5_000, 2_000
SINGLE_ROWS = 200
REPEATS = 5


@dataclass(frozen=True)
class Export(Row, key="dataset storage"):
    """One row of ``exports.csv``: a model in a format; None where the format only stores.

    ``bytes`` are those of the file, for Python of the stored numbers, for C of the tables.
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


class Measured(NamedTuple):
    """Bytes, microseconds per row, and scores of a format."""

    n_bytes: int
    batch_us: float | None = None
    single_us: float | None = None
    scores: np.ndarray | None = None


def _microseconds(call: Callable[[], Any], n_rows: int) -> float:
    times = [measurement.measure(call).seconds for _ in range(REPEATS)]
    return 1e6 * statistics.median(times) / n_rows


def _timed(n_bytes: int, scores: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> Measured:
    found, few = scores(X), X[:SINGLE_ROWS]  # the first call is not timed
    batch = _microseconds(lambda: scores(X), len(X))
    single = _microseconds(lambda: [scores(row[None]) for row in few], len(few))
    return Measured(n_bytes, batch, single, found)


def _safetensors(model: NystroemClassifier, X: np.ndarray) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return Measured(path.stat().st_size)


def _onnx(model: NystroemClassifier, X: np.ndarray) -> Measured:
    import onnxruntime

    made = to_onnx(model, scores=True).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = measurement.n_threads()
    session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    return _timed(len(made), lambda rows: session.run(["scores"], {"X": rows})[0], X)


def _c(model: NystroemClassifier, X: np.ndarray) -> Measured:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        to_c(model, folder / "nysplus.h")
        sizes = (f"-DROWS={len(X)}", f"-DREPEATS={REPEATS}")
        program = str(Path(__file__).with_name("predict_rows.c"))
        command = ["gcc", "-std=c99", "-O2", "-I.", *sizes, program, "-lm", "-o", "main"]
        subprocess.run(command, cwd=folder, check=True)
        done = subprocess.run([folder / "main"], input=X.tobytes(), capture_output=True, check=True)
    each = 1e6 * statistics.median(map(float, done.stderr.split())) / len(X)
    scores = np.frombuffer(done.stdout, dtype=np.float32).reshape(len(X), -1)
    return Measured(model.model_bytes_, each, each, scores)


FORMATS: dict[str, Callable[[NystroemClassifier, np.ndarray], Measured]] = {
    "Python": lambda model, X: _timed(model.model_bytes_, model.decision_function, X),
    "safetensors": _safetensors,
    "JSON": lambda model, X: Measured(len(to_json(model).encode())),
    "ONNX": _onnx,
    "C": _c,
}


def measure(dataset: str, storage: str, max_rows: int) -> list[Export]:
    """Fit a model, store it, and try all formats."""
    problem = load_problem(dataset, 0, max_rows, MAX_TEST_ROWS)
    X, X_test = problem.X.astype(np.float32), problem.X_test.astype(np.float32)
    model = NystroemClassifier(LANDMARKS, random_state=0).fit(X, problem.y)
    model._adopt(replace(model._model, expansion=pack_expansion(model.expansion_, storage, X)))
    expected = model.decision_function(X_test)
    accuracy = 100 * model.score(X_test, problem.y_test)
    sizes = (LANDMARKS, X.shape[1], len(model.classes_))
    rows = []
    for name, export in FORMATS.items():
        n_bytes, batch, single, scores = export(model, X_test)
        change = None
        if scores is not None:
            change = float(np.abs(scores.reshape(expected.shape) - expected).max())
        times = (batch, single, change)
        rows.append(
            Export(
                dataset, storage, name, *sizes, n_bytes, *times, accuracy, measurement.n_threads()
            )
        )
    return rows


def run(options: BenchOptions) -> None:
    """Measure the models that are not in the file yet."""
    options.expect()
    max_rows = 500 if options.smoke else MAX_TRAIN_ROWS
    tasks = itertools.product(chosen_datasets(options, DATASETS), STORAGE)
    options.measure("exports.csv", Export, tasks, partial(measure, max_rows=max_rows))
