"""Compare exact Shapley values with sums over all coalitions.

The models are random (`separable_model` of tests/factories.py): up to 12 columns, every kernel that
is a product or a sum over features, tables with categories and gaps, diagonal maps, classes and
values. Each has two rows and one to four background rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysplus.explain.function import ExplainedFunction, raw_rows
from nysplus.explain.shapley import shapley_values
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions, load_from_tests
from nysplus_experiments.harness.records import Row

MODELS = 200


@dataclass(frozen=True)
class Exactness(Row, key="model"):
    """One row of ``exactness.csv``: the largest errors of the values of one model.

    ``error`` is the largest difference from the sum over all coalitions, over the largest value or
    1. ``additivity`` is the largest difference between the score and the sum of base and values.
    Both are taken in float64, from the stored numbers of the model.
    """

    model: int
    kernel: str
    map: str
    table: bool
    columns: int
    landmarks: int
    outputs: int
    error: float
    additivity: float


def measure(seed: int) -> Exactness:
    """Return the errors of one model."""
    reference = load_from_tests("reference")
    model, X, background = load_from_tests("factories").separable_model(seed)
    found = shapley_values(model, X, background)
    if not found.exact:
        raise AssertionError("The values of a separable kernel must be exact.")
    score = ExplainedFunction.of(model._model).expansion
    rows, others = raw_rows(model, X), raw_rows(model, background)
    expected = np.stack([reference.shapley_values(score, row, others) for row in rows])
    values = found.values.reshape(expected.shape)
    total = found.base_values.reshape(len(rows), -1) + values.sum(axis=1)
    return Exactness(
        seed,
        model.kernel,
        model.metric or "none",
        model.encoder is not None,
        rows.shape[1],
        len(model.landmarks_),
        expected.shape[2],
        float(f"{np.abs(values - expected).max() / max(1.0, np.abs(expected).max()):.2g}"),
        float(f"{np.abs(total - score(rows)).max() / max(1.0, np.abs(total).max()):.2g}"),
    )


def run(options: BenchOptions) -> None:
    """Measure the models that are not in the file yet; print the largest errors."""
    options.expect("models")
    count = options.integer("models", 6 if options.smoke else MODELS)
    tasks = [(seed,) for seed in range(count)]
    options.measure("exactness.csv", Exactness, tasks, measure, any_machine=True)
    frame = records.frame(options.path("exactness.csv"), Exactness)
    print(frame.groupby(["kernel", "map", "table"])[["error", "additivity"]].max().to_string())
