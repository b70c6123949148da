"""The measurements against other libraries: their rows, order and repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nysplus_experiments.harness.records import Row
from nysplus_experiments.speed.peers import FLOOR, System

#: Dataset, system, type of the rows, number of landmarks or random features.
Cell = tuple[str, str, str, int | None]


@dataclass(frozen=True)
class Measurement(Row, key="dataset system dtype n repeat"):
    """One fit of one system, and its predictions.

    ``status`` is "ok", "time limit" or "error", ``note`` the error or first warning. Accuracy is
    in percent. Memory is the peak beyond the resident memory before the fit, in MiB.
    """

    dataset: str
    system: str
    dtype: str
    n: int | None
    rows: int
    test_rows: int
    features: int
    repeat: int
    status: str
    note: str = ""
    fit_seconds: float | None = None
    fit_cpu_seconds: float | None = None
    predict_seconds: float | None = None
    predict_cpu_seconds: float | None = None
    accuracy: float | None = None
    model_bytes: int | None = None
    peak_mb: float | None = None
    predict_peak_mb: float | None = None
    objective: float | None = None
    solver: str = ""
    threads: int = 0

    @property
    def cell(self) -> Cell:
        """Everything that identifies the measurement but the repeat."""
        return self.dataset, self.system, self.dtype, self.n


# Default sizes. At 2000, two tables with many rows would add minutes to the run and no insight.
DATASETS = {
    "letter": (250, 1000, 2000),
    "usps": (250, 1000, 2000),
    "cod_rna": (250, 1000),
    "ijcnn1": (250, 1000),
    "mnist": (250, 1000, 2000),
    "covtype": (250, 1000, 2000),
}
# Pairs (s, repeats): how often a fit of up to s seconds is measured. Long fits vary little.
REPEATS_BY_SECONDS = ((2.0, 5), (8.0, 3), (20.0, 2), (float("inf"), 1))
# Large models, and systems whose time is not compared product by product, need no narrow spread.
LARGE, REPEATS_LARGE = 2000, 3


def plan(
    datasets: Sequence[str], sizes: Sequence[int], systems: Sequence[System], repeat: int
) -> Iterator[Cell]:
    """Yield the measurements of one repeat; systems that do the same work are neighbours."""
    # Neither side always comes right after the same, perhaps hot, neighbour.
    ordered = systems[:: -1 if repeat % 2 else 1]
    for dataset in datasets:
        for n in sizes or DATASETS[dataset]:
            for dtype in ("float32", "float64"):
                yield dataset, FLOOR, dtype, n
            for system in ordered:
                if system.sized:
                    yield dataset, system.name, system.dtype, n
        for system in ordered:
            if not system.sized:
                yield dataset, system.name, system.dtype, None


def wanted_repeats(row: Measurement) -> int:
    """Return how often a cell is to be measured, given one measurement of it."""
    if row.status != "ok" or row.fit_seconds is None:
        return 1
    seconds = row.fit_seconds
    requested = next(repeats for limit, repeats in REPEATS_BY_SECONDS if seconds <= limit)
    return min(requested, REPEATS_LARGE) if row.n is None or row.n >= LARGE else requested
