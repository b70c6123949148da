"""Count the passes over the rows of small fits, for every selector and source."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nysplus import NystroemClassifier
from nysplus.landmarks import SELECTORS
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.measurement import run_in_child
from nysplus_experiments.harness.records import Row
from nysplus_experiments.scale.row_files import open_rows, write_rows
from nysplus_experiments.scale.stages import fit_and_record, parse_column
from nysplus_experiments.speed.peers import SEED

SOURCES = ("parquet", "memmap", "array")
# Leave-one-out takes a sample of more than 10,000 rows, as it does of large data.
ROWS, LANDMARKS = 25_000, 50
SELECTIONS = tuple(sorted(set(SELECTORS) - {"residual"}))  # which is for regression


@dataclass(frozen=True)
class PassCount(Row, key="source selection alpha"):
    """One row of ``out_of_core_passes.csv``; ``alpha`` is "auto" (leave-one-out) or "number"."""

    source: str
    selection: str
    alpha: str
    passes: int
    stages: str


def count_passes(folder: Path, source: str, selection: str, alpha: str) -> PassCount:
    """Return the passes of a small fit, and their names."""
    X, y = open_rows(folder, source, ROWS)
    ridge = "auto" if alpha == "auto" else 1.0
    model = NystroemClassifier(
        LANDMARKS, selection=selection, alpha=ridge, random_state=SEED, verbose=2
    )
    stages = parse_column(fit_and_record(model, X, y))
    names = ";".join(stage.name for stage in stages)
    return PassCount(source, selection, alpha, model.n_passes_, names)


def run(options: BenchOptions) -> None:
    """Count the passes that are not in the file yet."""
    options.expect("folder")
    selections = ("uniform", "negative-margin") if options.smoke else SELECTIONS
    tasks = list(itertools.product(SOURCES, selections, ("auto", "number")))
    with tempfile.TemporaryDirectory(dir=options.extra.get("folder")) as name:
        folder = Path(name)
        options.measure(
            "out_of_core_passes.csv",
            PassCount,
            tasks,
            lambda *task: run_in_child(count_passes, folder, *task),
            prepare=lambda: run_in_child(write_rows, folder, ROWS, ROWS),
        )
