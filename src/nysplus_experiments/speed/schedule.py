"""What `speed` measures, in which order and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from measurement import Cell, Measurement
from peers import FLOOR, System

# Default sizes. At 2000, two tables with many rows would add minutes to the run and no insight;
# --sizes measures them.
DATASETS = {
    "letter": (250, 1000, 2000),
    "usps": (250, 1000, 2000),
    "cod_rna": (250, 1000),
    "ijcnn1": (250, 1000),
    "mnist": (250, 1000, 2000),
    "covtype": (250, 1000, 2000),
}
# How often a fit of up to so many seconds is measured. Long ones vary little, and cost much.
REPEATS_BY_SECONDS = ((2.0, 5), (8.0, 3), (20.0, 2), (float("inf"), 1))
# Large models, and systems whose time is not compared product by product, need no narrow spread.
LARGE, REPEATS_LARGE = 2000, 3


@dataclass(frozen=True)
class Task:
    """One measurement to make; ``system`` is None for the BLAS floor."""

    dataset: str
    system: System | None
    dtype: str
    n: int | None
    repeat: int

    @property
    def cell(self) -> Cell:
        """What is measured, whatever the repeat."""
        return self.dataset, self.system.name if self.system else FLOOR, self.dtype, self.n


def plan(
    datasets: list[str], sizes: list[int] | None, repeats: int, systems: list[System]
) -> Iterator[Task]:
    """Yield all measurements. Systems that do the same work are neighbours in time."""
    for repeat in range(repeats):
        # Neither side always comes right after the same, perhaps hot, neighbour.
        ordered = systems[:: -1 if repeat % 2 else 1]
        for dataset in datasets:
            for n in sizes or DATASETS[dataset]:
                for dtype in ("float32", "float64"):
                    yield Task(dataset, None, dtype, n, repeat)
                for system in ordered:
                    if system.sized:
                        yield Task(dataset, system, system.dtype, n, repeat)
            for system in ordered:
                if not system.sized:
                    yield Task(dataset, system, system.dtype, None, repeat)


def wanted_repeats(row: Measurement) -> int:
    """Return how often a cell is to be measured, judging by one measurement of it."""
    if row.status != "ok" or row.fit_seconds is None:
        return 1
    seconds = row.fit_seconds
    wanted = next(repeats for limit, repeats in REPEATS_BY_SECONDS if seconds <= limit)
    return min(wanted, REPEATS_LARGE) if row.n is None or row.n >= LARGE else wanted
