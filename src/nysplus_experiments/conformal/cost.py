"""Processor seconds of fits with and without prediction sets, intervals and novelty.

Both fits follow each other, in turns. The fit without has probabilities and nothing else from
leave-one-out scores; its model is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from nysplus._fit.calibration import LeftOut, scaling_of
from nysplus_experiments.conformal.coverage import MODELS, chosen
from nysplus_experiments.conformal.rows import split_of
from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row

FILE = "cost.csv"
DATASETS = ("segment", "letter", "churn", "adult", "concrete", "kin8nm")
REPEATS = 7


@dataclass(frozen=True)
class Cost(Row, key="dataset"):
    """One row of ``cost.csv``: medians of processor seconds, and of the ratio of a pair of fits."""

    dataset: str
    rows: int
    cpu_seconds: float
    cpu_seconds_without: float
    ratio: float


def _probabilities(left_out: Any, code: Any, *others: Any) -> LeftOut:
    return LeftOut(scaling_of(left_out, code), None, None)


@contextmanager
def without() -> Iterator[None]:
    """Fit without bounds, novelty and the rows that they come from."""
    with ExitStack() as patches:
        for name, function in (
            ("_fit.pipeline.calibrate_ridge", _probabilities),
            ("_fit.pipeline.novelty_of_fit", lambda *_: None),
            ("landmarks.class_centroids._members", lambda *_: None),
        ):
            patches.enter_context(patch(f"nysplus.{name}", function))
        yield


def measure(dataset: str) -> Cost:
    """Fit a model of 100 landmarks several times in both ways."""
    split, seconds = split_of(dataset, 0), []
    model = MODELS["landmarks"](split, 0)
    model.fit(split.X, split.y)  # imports and caches
    for _ in range(REPEATS):
        whole = measurement.measure(model.fit, split.X, split.y).cpu_seconds
        with without():
            less = measurement.measure(model.fit, split.X, split.y).cpu_seconds
        seconds.append((whole, less, whole / less))
    return Cost(dataset, len(split.y), *np.median(seconds, axis=0).tolist())


def run(options: BenchOptions) -> None:
    """Measure fits with and without. This step has no options of its own."""
    options.expect()
    tasks = [(name,) for name in chosen(options, DATASETS)]
    options.measure(FILE, Cost, tasks, measure, settings={"threads": 1})
