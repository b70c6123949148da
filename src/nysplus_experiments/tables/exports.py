"""Exported models of tables against Python, on rows with gaps and levels never seen in training.

The file, ONNX and JSON get the columns in another order than the fit; C takes raw numbers in the
order of its header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from nysplus import Refinement, load
from nysplus.export import to_json, to_onnx
from nysplus_experiments.harness.bench import BenchOptions, load_from_tests
from nysplus_experiments.harness.raw_tables import TABLES, available_tables, nominal_columns
from nysplus_experiments.harness.records import Row
from nysplus_experiments.tables.fits import (
    SMOKE_TABLES,
    in_single_threads,
    split_of,
)
from nysplus_experiments.tables.systems.nysplus import estimator

FILE = "exports.csv"
N_ROWS = 2000
#: Share of the entries that are removed, and of the levels that are replaced by an unseen one.
CHANGED = 0.05
#: Two scores that differ by a smaller share of the largest score are a tie.
TIE = 1e-4


@dataclass(frozen=True)
class ExportCheck(Row, key="table format"):
    """One row of ``exports.csv``.

    ``difference`` is the largest difference of a score, in units of the largest score (of ONNX
    classifiers, which give no scores, of a probability);
    ``other_labels`` counts rows that get another label although they are no ties.
    """

    table: str
    format: str
    rows: int
    gaps: int
    unseen: int
    difference: float
    other_labels: int


@dataclass(frozen=True)
class Fitted:
    """A model, rows with their columns in another order, and the scores of Python."""

    model: Any
    rows: pd.DataFrame
    raw: np.ndarray
    unseen: int

    def scores(self, format: str) -> np.ndarray:
        """Return the expected outputs: probabilities for classes in ONNX, scores otherwise."""
        if format == "onnx" and hasattr(self.model, "classes_"):
            return np.asarray(self.model.predict_proba(self.rows))
        return np.asarray(self.model.expansion_(self.raw))


def changed(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
    """Return rows with gaps and unseen levels, columns reversed, and the number of the latter."""
    rng = np.random.RandomState(seed)
    rows = frame.iloc[rng.randint(len(frame), size=N_ROWS)].reset_index(drop=True)
    unseen = 0
    nominal = set(nominal_columns(frame))
    for name in rows.columns:
        draw = rng.uniform(size=N_ROWS)
        if name in nominal:
            strange = (draw >= CHANGED) & (draw < 2 * CHANGED)
            rows[name] = rows[name].astype(object).where(~strange, "a new level")
            unseen += int(strange.sum())
        else:
            rows[name] = rows[name].astype(np.float64)
        rows[name] = rows[name].where(draw >= CHANGED)
    return rows[rows.columns[::-1]], unseen


def small_model(regression: bool) -> Any:
    """Return an unfitted model of few bits that takes little time."""
    return estimator(regression, 0, "4kB", refine=Refinement(search=False))


@lru_cache(maxsize=1)  # the formats of a table follow each other
def fitted(table: str) -> Fitted:
    """Return the model of a table, and the rows to compare."""
    split = split_of(table, 0)
    model = small_model(split.regression).fit(split.X, split.y)
    rows, unseen = changed(split.X_test, 0)
    raw = model._model.columns.schema.read(rows)
    return Fitted(model, rows, raw, unseen)


def _file_scores(case: Fitted, folder: Path) -> np.ndarray:
    case.model.save(folder / "model.safetensors")
    loaded = load(folder / "model.safetensors")
    scores: np.ndarray = loaded.expansion_(loaded._model.columns.schema.read(case.rows))
    return scores


def _onnx_scores(case: Fitted, folder: Path) -> np.ndarray:
    exported = load_from_tests("exported")
    feeds = exported.onnx_feeds(case.model._model.columns.schema, case.raw)
    outputs = exported.onnx_outputs(to_onnx(case.model), feeds)
    scores: np.ndarray = outputs.get("probabilities", outputs.get("variable"))
    return scores.reshape(len(case.raw), -1)


def _c_scores(case: Fitted, folder: Path) -> np.ndarray:
    scores: np.ndarray = load_from_tests("exported").c_scores(folder, case.model, case.raw)
    return scores


def _json_scores(case: Fitted, folder: Path) -> np.ndarray:
    scores: np.ndarray = load_from_tests("exported").json_scores(to_json(case.model), case.raw)
    return scores


FORMATS: dict[str, Callable[[Fitted, Path], np.ndarray]] = {
    "safetensors": _file_scores,
    "onnx": _onnx_scores,
    "c": _c_scores,
    "json": _json_scores,
}


def other_labels(scores: np.ndarray, others: np.ndarray) -> int:
    """Return the number of rows whose label differs, ties left out."""
    if scores.shape[1] == 1:
        scores, others = np.hstack([-scores, scores]), np.hstack([-others, others])
    ordered = np.sort(scores, axis=1)
    tie = ordered[:, -1] - ordered[:, -2] < TIE * np.abs(scores).max()
    return int(np.sum((scores.argmax(axis=1) != others.argmax(axis=1)) & ~tie))


def measure(table: str, format: str) -> ExportCheck:
    """Compare one format of the model of a table with Python."""
    case = fitted(table)
    expected = case.scores(format)
    with TemporaryDirectory() as folder:
        scores = FORMATS[format](case, Path(folder))
    regression = split_of(table, 0).regression
    return ExportCheck(
        table,
        format,
        rows=len(case.raw),
        gaps=int(np.isnan(case.raw).sum()),
        unseen=case.unseen,
        difference=float(np.abs(scores - expected).max() / np.abs(expected).max()),
        other_labels=0 if regression else other_labels(expected, scores),
    )


def run(options: BenchOptions) -> None:
    """Compare all formats on all tables. Options of this step: formats, workers."""
    options.expect("formats", "workers")
    formats = options.texts("formats", [*FORMATS], [*FORMATS])
    names = (
        [*SMOKE_TABLES] if options.smoke else available_tables(options.choose_datasets([*TABLES]))
    )

    def plan() -> Iterator[tuple[str, str]]:
        yield from ((table, format) for table in names for format in formats)

    options.measure(FILE, ExportCheck, plan(), measure, **in_single_threads(options))
