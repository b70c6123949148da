"""Compare compiled integer headers with their emulation, bit by bit, and with floating point.

A million rows are test rows with random changes; one row in ten has any integers of its type.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nysplus.export import to_c
from nysplus.export.c_integer import IntegerModel, integer_model
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.integers.models import (
    BUDGETS,
    INPUT_TYPE,
    chosen,
    compiled,
    fitted,
    integer_problem,
    source,
)

ROWS, SMOKE_ROWS, BLOCK = 1_000_000, 2_000, 20_000
# Integers are changed by up to this share of their largest.
NOISE = 0.1
# One block in this many has any integers, and one row in this many is also predicted, which
# computes its scores once more.
ANY, LABELLED = 10, 10


@dataclass(frozen=True)
class IntegerAgreement(Row, key="dataset budget"):
    """One row of ``agreement.csv``.

    ``changed_labels`` are test rows whose label integer arithmetic changes. ``score_change`` is the
    root mean square change of their scores over the standard deviation. ``different_scores`` and
    ``different_labels`` are those that the compiled header and the emulation do not share; labels
    are predicted for one row in ten.
    """

    dataset: str
    budget: str
    bytes: int
    landmarks: int
    rank: int
    bits: str
    test_rows: int
    float_accuracy: float
    int_accuracy: float
    changed_labels: int
    score_change: float
    table_bytes: int
    rows: int
    different_scores: int
    different_labels: int


def differences(header: str, model: IntegerModel, rows: np.ndarray, n_rows: int) -> tuple[int, int]:
    """Return how many scores and labels of a compiled header differ from the emulation."""
    rng, kind = np.random.RandomState(0), np.dtype(model.rows.type_name)
    limits, reach = np.iinfo(kind), max(int(NOISE * rows.max()), 1)
    found = np.zeros(2, dtype=int)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nysplus.h").write_text(header)
        options = ["-std=c99", "-O3", f"-DROW={kind.name}_t", "-I."]
        compiled(["gcc", *options, source("score_rows.c"), "-o", "main"], folder)
        for block, start in enumerate(range(0, n_rows, BLOCK)):
            n = min(BLOCK, n_rows - start)
            x = rows[rng.randint(len(rows), size=n)]
            x = x + rng.randint(-reach, reach + 1, size=x.shape)
            if block % ANY == 0:
                x = rng.randint(limits.min, limits.max + 1, size=x.shape)
            x = x.clip(limits.min, limits.max).astype(kind)
            done = subprocess.run([folder / "main"], input=x.tobytes(), capture_output=True)
            out = np.frombuffer(done.stdout, dtype=np.int32).reshape(n, -1)
            scores = model.scores(x)
            labels = scores[::LABELLED].argmax(axis=1)
            found += (out[:, :-1] != scores).sum(), (out[::LABELLED, -1] != labels).sum()
    return int(found[0]), int(found[1])


def measure(dataset: str, budget: str, n_rows: int) -> IntegerAgreement:
    """Compare a model in integers with floating point and with its compiled header."""
    problem, model = integer_problem(dataset), fitted(dataset, budget)
    how: dict[str, Any] = {"X": problem.X, "input_type": INPUT_TYPE}
    header, integers = to_c(model, arithmetic="int", **how), integer_model(model, **how)
    exact, scores = (m.decision_function(problem.X_test) for m in (model, integers))
    labels, expected = integers.predict(problem.X_test), model.predict(problem.X_test)
    stored = integers.content.stored
    parts = (stored.projection, stored.landmarks, stored.dual_coef)
    different = differences(header, integers, problem.X_test.astype(np.int64), n_rows)
    return IntegerAgreement(
        dataset,
        budget,
        model.model_bytes_,
        stored.landmarks.values.shape[0],
        stored.landmarks.values.shape[1],
        "/".join("-" if part is None else str(part.bits) for part in parts),
        len(labels),
        100.0 * float(np.mean(expected == problem.y_test)),
        100.0 * float(np.mean(labels == problem.y_test)),
        int((labels != expected).sum()),
        float(np.sqrt(((scores - exact) ** 2).mean()) / exact.std()),
        int(header.split("Tables: ")[1].split()[0]),
        n_rows,
        *different,
    )


def run(options: BenchOptions) -> None:
    """Measure the models that are not in the file yet."""
    options.expect("rows")
    n_rows = options.integer("rows", SMOKE_ROWS if options.smoke else ROWS)
    budgets = BUDGETS[:1] if options.smoke else BUDGETS
    tasks = [(name, budget) for budget in budgets for name in chosen(options)]
    options.measure("agreement.csv", IntegerAgreement, tasks, partial(measure, n_rows=n_rows))
