"""The order of the measurements against other libraries, and how often each is repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nysplus_experiments.speed.peers import FLOOR, System
from nysplus_experiments.speed.rows import Cell, Measurement

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
    """Yield the measurements of one repeat. Systems that do the same work are neighbours in time.

    ``sizes`` may be empty for those of `DATASETS`.
    """
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
    wanted = next(repeats for limit, repeats in REPEATS_BY_SECONDS if seconds <= limit)
    return min(wanted, REPEATS_LARGE) if row.n is None or row.n >= LARGE else wanted
