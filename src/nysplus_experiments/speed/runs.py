"""Look up the measurements of ``speed.csv``: values, medians, and ratios within a repeat."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.speed.peers import FLOOR, SYSTEMS, TITLES
from nysplus_experiments.speed.schedule import Measurement

#: Dataset, system, type of the rows, size; the size is 0 for systems without one.
Cell = tuple[str, str, str, int]
_CELL = ["dataset", "system", "dtype", "n"]
_ORDER = {(system.name, system.dtype): i for i, system in enumerate(SYSTEMS)}


class Runs:
    """Measurements by cell: successful ``runs``, their ``medians``, and ``failures``."""

    def __init__(self, path: Path) -> None:
        frame = records.frame(path, Measurement)
        if frame.empty:
            raise records.ResultsError(f"{path} has no rows. Run nysplus bench speed peers first.")
        frame["n"] = frame["n"].fillna(0).astype(int)
        frame = frame.drop_duplicates([*_CELL, "repeat"], keep="last")  # an error and its retry
        self.datasets = list(frame["dataset"].unique())
        self.sizes = sorted(set(frame["n"]) - {0})
        self.runs = frame[frame["status"] == "ok"].set_index([*_CELL, "repeat"]).sort_index()
        self.medians = self.runs.groupby(level=_CELL).median(numeric_only=True)
        last = frame.drop_duplicates(_CELL, keep="last").set_index(_CELL)
        self.failures = last[~last.index.isin(self.medians.index)]

    def __contains__(self, cell: Cell) -> bool:
        return cell in self.medians.index

    def cells(self, dataset: str) -> list[Cell]:
        """Return the cells of a dataset without the floor, in the order of the systems."""
        found = [cell for cell in self.medians.index if cell[0] == dataset and cell[1] != FLOOR]
        return sorted(found, key=lambda cell: (_ORDER[cell[1:3]], cell[3]))

    def values(self, cell: Cell, column: str) -> pd.Series:
        """Return a column of a cell by repeat, without missing values."""
        return self.runs.loc[cell, column].dropna()

    def median(self, cell: Cell, column: str) -> float:
        """Return the median of a column, NaN where there is no value."""
        return float(self.medians.loc[cell, column])

    def ratios(self, above: Cell, below: Cell, column: str) -> list[float]:
        """Return ratios of a column between measurements of the same repeat."""
        return list((self.values(above, column) / self.values(below, column)).dropna())

    def solver(self, cell: Cell) -> str:
        """Return ``solver_`` of a nysplus model, empty for other systems."""
        return str(self.runs.loc[cell, "solver"].iloc[0])

    def pairs(self, *groups: Sequence[tuple[str, str]]) -> Iterator[tuple[Cell, ...]]:
        """Yield cells at equal dataset and size, for each group of systems and types."""
        for dataset, n, group in itertools.product(self.datasets, self.sizes, groups):
            cells = tuple((dataset, *system, n) for system in group)
            if all(cell in self for cell in cells):
                yield cells


def dataset_title(name: str) -> str:
    """Return the name of a dataset as the paper prints it."""
    return DATASETS[name].title


def system_title(name: str, dtype: str) -> str:
    """Return the name of a system, with the type of its rows if there are several."""
    several = sum(system.name == name for system in SYSTEMS) > 1
    return f"{TITLES[name]}, {dtype}" if several else TITLES[name]
