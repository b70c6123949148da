"""Look-up in the measurements of ``speed.csv``, and how numbers are written on the page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from measurement import Cell, Measurement
from peers import FLOOR, SYSTEMS, TITLES

from nysplus.experiments.datasets import DATASETS


class Runs:
    """Measurements by cell: dataset, system, type of the rows, size."""

    def __init__(self, rows: Iterable[Measurement]) -> None:
        self._rows: dict[Cell, dict[int, Measurement]] = {}
        for row in rows:  # a repeated row (an error and its retry) counts as it was last
            self._rows.setdefault(row.cell, {})[row.repeat] = row
        self.datasets = list(dict.fromkeys(cell[0] for cell in self._rows))
        self.sizes = sorted({cell[3] for cell in self._rows if cell[3] is not None})

    def cells(self, dataset: str) -> list[Cell]:
        """Cells of a dataset that have numbers, in the order of the table of systems."""
        order = {(s.name, s.dtype): i for i, s in enumerate(SYSTEMS)}
        found = [cell for cell in self._rows if cell[0] == dataset and self.rows(cell)]
        found = [cell for cell in found if cell[1] != FLOOR]
        return sorted(found, key=lambda cell: (order[cell[1:3]], cell[3] or 0))

    def rows(self, cell: Cell) -> dict[int, Measurement]:
        """Successful measurements of a cell by repeat; none where there are none."""
        return {k: row for k, row in self._rows.get(cell, {}).items() if row.status == "ok"}

    def failures(self) -> list[Measurement]:
        """One measurement a cell that never succeeded, the last."""
        return [list(by.values())[-1] for cell, by in self._rows.items() if not self.rows(cell)]

    def values(self, cell: Cell, column: str) -> list[float]:
        """All values of a column, without the missing ones."""
        found = (getattr(row, column) for row in self.rows(cell).values())
        return [value for value in found if value is not None]

    def median(self, cell: Cell, column: str) -> float:
        """Median of a column, NaN where there is nothing."""
        values = self.values(cell, column)
        return statistics.median(values) if values else math.nan

    def ratios(self, above: Cell, below: Cell, column: str) -> list[float]:
        """Ratios of a column between measurements of the same repeat."""
        tops, bottoms = self.rows(above), self.rows(below)
        pairs = [
            (getattr(tops[repeat], column), getattr(bottoms[repeat], column))
            for repeat in sorted(tops.keys() & bottoms.keys())
        ]
        return [top / bottom for top, bottom in pairs if top is not None and bottom]

    def solver(self, cell: Cell) -> str:
        """What nysplus says it did; empty for others."""
        return next((row.solver for row in self.rows(cell).values()), "")

    def precision(self, cell: Cell) -> str:
        """Type that a cell was computed in: its solver's, or else that of its rows."""
        end = self.solver(cell).rpartition("-")[2]
        return end if end in ("float32", "float64") else cell[2]


# -- words ---------------------------------------------------------------------------------------


def dataset_title(name: str) -> str:
    """Name of a dataset as the paper prints it."""
    return DATASETS[name].title


def system_title(cell: Cell) -> str:
    """Name of a system, with the type of its rows where there are several."""
    several = len({system.dtype for system in SYSTEMS if system.name == cell[1]}) > 1
    return f"{TITLES[cell[1]]}, {cell[2]}" if several else TITLES[cell[1]]


# -- numbers -------------------------------------------------------------------------------------


def short(value: float) -> str:
    """Write a number with two or three digits and no exponent.

    >>> short(0.01234), short(3.14159), short(1234.5), short(float("nan"))
    ('0.012', '3.1', '1234', '–')
    """
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


def spread(values: Sequence[float]) -> str:
    """Write "median [smallest, largest]", or the number alone where there is one."""
    if not values:
        return "–"
    middle = short(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} [{short(min(values))}, {short(max(values))}]"


def size(n_bytes: float) -> str:
    """Write a number of bytes.

    >>> size(212_992), size(3_100_000)
    ('208 kB', '3.0 MB')
    """
    if not math.isfinite(n_bytes):
        return "–"
    return f"{n_bytes / 2**20:.1f} MB" if n_bytes >= 2**20 else f"{n_bytes / 2**10:.0f} kB"


def percent(accuracy: float) -> str:
    """Write an accuracy."""
    return f"{accuracy:.2f}" if math.isfinite(accuracy) else "–"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
