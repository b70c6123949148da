"""Raw CSV files into a model, against hand-made preprocessing in front of the same model.

Nominal codes are written as strings such as "level 3", gaps are left empty, and pandas reads the
file without being told anything about its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import (
    SYNTHETIC,
    TableSplit,
    available_tables,
    load_table,
    nominal_columns,
)
from nysplus_experiments.harness.records import Row
from nysplus_experiments.tables.fits import MAX_TRAIN, Scores, in_single_threads
from nysplus_experiments.tables.pipelines import PIPELINES, preprocessing
from nysplus_experiments.tables.systems.nysplus import estimator

FILE, BUDGET, SEEDS = "csv.csv", "64kB", (0, 1, 2)
TABLES = ("adult", "churn", "hr_job_change", "vehicle_coupon", "spambase")
RAW = "raw frame"


@dataclass(frozen=True)
class CsvFit(Row, key="table pipeline seed"):
    """One row of ``csv.csv``: accuracy in percent, bytes of the model alone."""

    table: str
    pipeline: str
    seed: int
    accuracy: float
    bytes: int
    fit_cpu_seconds: float
    rows: int
    test_rows: int


def read_back(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame as pandas reads it from a CSV file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        return pd.read_csv(path)


@lru_cache(maxsize=1)  # the fits of a split follow each other
def split_of(name: str, seed: int) -> TableSplit:
    """Return the rows of a fit: the split of the table, as its CSV file has it."""
    table = load_table(name)
    return replace(table, frame=read_back(table.frame)).split(seed, MAX_TRAIN)


def make_model(pipeline: str, seed: int) -> Any:
    """Return an unfitted pipeline that ends in a model of this library."""
    if pipeline == RAW:
        return make_pipeline(estimator(False, seed, BUDGET))
    before = preprocessing(*PIPELINES[pipeline])
    return make_pipeline(before, estimator(False, seed, BUDGET, encoder=None))


def measure(table: str, pipeline: str, seed: int) -> CsvFit:
    """Fit one model to the rows of a CSV file."""
    split = split_of(table, seed)
    model = make_model(pipeline, seed)
    np.random.seed(seed)  # the folds of TargetEncoder, which has no seed in newer versions
    fitted = measurement.measure(model.fit, split.X, split.y)
    scores = Scores(split, fitted.result.predict(split.X_test))
    return CsvFit(
        *(table, pipeline, seed),
        accuracy=scores.on(np.ones(len(split.y_test), bool)),
        bytes=int(fitted.result[-1].model_bytes_),
        fit_cpu_seconds=fitted.cpu_seconds,
        rows=len(split.y),
        test_rows=len(split.y_test),
    )


def plan(
    tables: Sequence[str], pipelines: Sequence[str], seeds: Sequence[int]
) -> Iterator[tuple[str, str, int]]:
    """Yield all fits; without nominal columns the encodings of categories are one."""
    nominal = {name: bool(nominal_columns(load_table(name).frame)) for name in tables}
    for seed in seeds:
        for table in tables:
            for pipeline in pipelines:
                one_hot = pipeline == RAW or PIPELINES[pipeline][1] == "one-hot"
                if nominal[table] or one_hot:
                    yield table, pipeline, seed


def run(options: BenchOptions) -> None:
    """Measure models of CSV files. Options: kinds (raw, hand-made), seeds, workers."""
    options.expect("kinds", "seeds", "workers")
    kinds = {"raw": [RAW], "hand-made": [*PIPELINES]}
    chosen = [name for kind in options.texts("kinds", [*kinds], [*kinds]) for name in kinds[kind]]
    seeds = options.integers("seeds", [0] if options.smoke else SEEDS)
    tables = [SYNTHETIC] if options.smoke else available_tables(options.choose_datasets(TABLES))
    options.measure(
        *(FILE, CsvFit, plan(tables, chosen, seeds), measure),
        **in_single_threads(options),
    )
