"""Make the tables on speed against other libraries, in Markdown, from ``speed.csv``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.tables import markdown, percent, short, size, spread
from nysplus_experiments.speed.peers import FLOOR, SYSTEMS, TITLES
from nysplus_experiments.speed.schedule import Measurement

NYSPLUS, NYSTROEM = "nysplus", "sklearn-nystroem"
_OURS = (NYSPLUS, "nysplus-defaults")
_COSTS = ("fit_seconds", "predict_seconds", "model_bytes")
# Less than this many points of accuracy is the same accuracy as printed.
_SAME = 0.005
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


def system_title(name: str, dtype: str) -> str:
    """Return the name of a system, with the type of its rows if there are several."""
    several = sum(system.name == name for system in SYSTEMS) > 1
    return f"{TITLES[name]}, {dtype}" if several else TITLES[name]


def data(runs: Runs) -> str:
    """List the datasets."""
    rows = []
    for dataset in runs.datasets:
        first = runs.runs.loc[dataset].iloc[0]
        counts = (f"{first['rows']:,}", f"{first['test_rows']:,}", str(first["features"]))
        rows.append([DATASETS[dataset].title, *counts])
    return markdown(("data", "training rows", "test rows", "features"), rows)


def failures(runs: Runs) -> str:
    """List the measurements that are missing, with the reason."""
    rows = []
    for (dataset, system, dtype, n), row in runs.failures.iterrows():
        reason = f"{row['status']} ({row['note']})"
        rows.append([DATASETS[dataset].title, system_title(system, dtype), str(n or ""), reason])
    return markdown(("data", "system", "n", "reason"), rows) if rows else "None."


def same_work(runs: Runs) -> str:
    """Compare with scikit-learn's pipeline at the same landmarks."""
    types = (("float32", "float32"), ("float32", "float64"), ("float64", "float64"))
    compared = [((NYSPLUS, own), (NYSTROEM, other)) for own, other in types]
    rows = []
    for cells in runs.pairs(*compared):
        ours, theirs = cells

        def both(write: Callable[[float], str], column: str, cells: Any = cells) -> str:
            return " / ".join(write(runs.median(cell, column)) for cell in cells)

        rows.append(
            [
                *(DATASETS[ours[0]].title, str(ours[3]), f"{ours[2]} / {theirs[2]}"),
                short(runs.median(ours, "fit_seconds")),
                *(spread(runs.ratios(theirs, ours, column)) for column in _COSTS[:2]),
                both(percent, "accuracy"),
                both(short, "peak_mb"),
                both(size, "model_bytes"),
            ]
        )
    header = (
        "data", "n", "type of rows", "fit, s", "fit time, ratio", "predict time, ratio",
        "accuracy, %", "memory, MB", "model",
    )  # fmt: skip
    return markdown(header, rows)


def largest_models(runs: Runs) -> str:
    """Compare the largest model of each dataset with systems that have no size to choose."""
    rows = []
    for dataset in runs.datasets:
        cells = [cell for cell in runs.cells(dataset) if cell[1:3] == (NYSPLUS, "float32")]
        for peer in runs.cells(dataset):
            if cells and peer[3] == 0:
                ours = cells[-1]
                rows.append(
                    [
                        *(DATASETS[dataset].title, system_title(*peer[1:3]), str(ours[3])),
                        *(percent(runs.median(cell, "accuracy")) for cell in (peer, ours)),
                        *(spread(runs.ratios(peer, ours, column)) for column in _COSTS),
                    ]
                )
    header = (
        "data", "system", "n of nysplus", "accuracy, %", "accuracy of nysplus, %",
        "fit time, ratio", "predict time, ratio", "bytes, ratio",
    )  # fmt: skip
    return markdown(header, rows)


def floor(runs: Runs) -> str:
    """Compare the fit with the matrix products alone, in the precision of the solver."""
    rows = []
    for (ours,) in runs.pairs(((NYSPLUS, "float32"),), ((NYSPLUS, "float64"),)):
        solver = runs.solver(ours)
        below = (ours[0], FLOOR, solver.rpartition("-")[2], ours[3])
        if below in runs:
            seconds = (short(runs.median(cell, "fit_seconds")) for cell in (ours, below))
            ratio = spread(runs.ratios(ours, below, "fit_seconds"))
            names = (DATASETS[ours[0]].title, str(ours[3]), ours[2], solver)
            rows.append([*names, *seconds, ratio])
    header = ("data", "n", "type of rows", "solver", "fit, s", "floor, s", "fit / floor")
    return markdown(header, rows)


def defaults(runs: Runs) -> str:
    """Compare the defaults with uniform landmarks and a fixed ridge."""
    rows = [
        [
            *(DATASETS[plain[0]].title, str(plain[3])),
            short(runs.median(full, "fit_seconds")),
            spread(runs.ratios(full, plain, "fit_seconds")),
            *(percent(runs.median(cell, "accuracy")) for cell in (plain, full)),
        ]
        for plain, full in runs.pairs(((NYSPLUS, "float32"), ("nysplus-defaults", "float32")))
    ]
    header = (
        "data", "n", "fit with defaults, s", "defaults / uniform and fixed ridge",
        "accuracy, uniform and fixed ridge, %", "accuracy, defaults, %",
    )  # fmt: skip
    return markdown(header, rows)


def objective(runs: Runs) -> str:
    """Compare training objectives with that of nysplus on float64 rows."""
    others = ((NYSPLUS, "float32"), (NYSTROEM, "float32"), (NYSTROEM, "float64"))
    rows = []
    for cells in runs.pairs(((NYSPLUS, "float64"), *others)):
        best, *found = (runs.values(cell, "objective").iloc[0] for cell in cells)
        gaps = (f"{value / best - 1:.1e}" for value in found)
        dataset, _, _, n = cells[0]
        rows.append([DATASETS[dataset].title, str(n), short(best), runs.solver(cells[1]), *gaps])
    header = (
        "data", "n", "J, nysplus float64", "solver of float32 rows", "nysplus float32",
        "scikit-learn float32", "scikit-learn float64",
    )  # fmt: skip
    return markdown(header, rows)


def everything(runs: Runs) -> str:
    """List all medians, folded away."""
    columns = (
        "fit_seconds", "fit_cpu_seconds", "predict_seconds", "predict_cpu_seconds", "peak_mb",
        "predict_peak_mb",
    )  # fmt: skip
    header = (
        "system", "n", "accuracy, %", "fit, s", "fit, CPU s", "predict, s", "predict, CPU s",
        "memory of fit, MB", "memory of predict, MB", "model", "repeats",
    )  # fmt: skip
    parts = []
    for dataset in runs.datasets:
        rows = [
            [
                *(system_title(*cell[1:3]), str(cell[3] or "")),
                percent(runs.median(cell, "accuracy")),
                *(short(runs.median(cell, column)) for column in columns),
                size(runs.median(cell, "model_bytes")),
                str(len(runs.runs.loc[cell])),
            ]
            for cell in runs.cells(dataset)
        ]
        summary = f"<summary>{DATASETS[dataset].title}</summary>"
        parts.append(f"<details>\n{summary}\n\n{markdown(header, rows)}\n\n</details>")
    return "\n\n".join(parts)


def losses_same_size(runs: Runs) -> str:
    """List the sizes at which scikit-learn's approximations are ahead of nysplus."""
    rows = []
    for dataset in runs.datasets:
        for peer in runs.cells(dataset):
            _, name, dtype, n = peer
            ours = (dataset, NYSPLUS, dtype, n)
            if not n or name in _OURS or ours not in runs:
                continue
            points = runs.median(peer, "accuracy") - runs.median(ours, "accuracy")
            lost = [f"{points:.2f} points" if points > _SAME else ""]
            lost += [_times(runs.median(ours, c) / runs.median(peer, c)) for c in _COSTS]
            if any(lost):
                rows.append([DATASETS[dataset].title, str(n), system_title(name, dtype), *lost])
    header = ("data", "n", "system", "accuracy", "fit", "predict", "model size")
    return markdown(header, rows) if rows else "None."


def losses_same_accuracy(runs: Runs) -> str:
    """List the systems without a size that are ahead of every nysplus model of their accuracy."""
    rows = []
    for dataset in runs.datasets:
        ours = [cell for cell in runs.cells(dataset) if cell[1] in _OURS]
        if not ours:
            continue
        best = max(ours, key=lambda cell: runs.median(cell, "accuracy"))
        for peer in runs.cells(dataset):
            if peer[1] in _OURS or peer[3]:
                continue
            accuracy = runs.median(peer, "accuracy")
            equal = [cell for cell in ours if runs.median(cell, "accuracy") > accuracy - _SAME]
            lost = [_cheapest(runs, equal or [best], peer, column) for column in _COSTS]
            if not equal or any(lost):
                shown = percent(accuracy) if equal else f"**{percent(accuracy)}**"
                highest = percent(runs.median(best, "accuracy"))
                names = (DATASETS[dataset].title, system_title(*peer[1:3]))
                rows.append([*names, shown, highest, *lost])
    header = ("data", "system", "accuracy, %", "best of nysplus, %", "fit", "predict", "model size")
    return markdown(header, rows) if rows else "None."


def _cheapest(runs: Runs, ours: list[Cell], peer: Cell, column: str) -> str:
    """Write by how much a system is ahead of the cheapest cell, or nothing."""
    cheapest = min(runs.median(cell, column) for cell in ours)
    theirs = runs.median(peer, column)
    times = _times(cheapest / theirs)
    write = size if column == "model_bytes" else lambda value: f"{short(value)} s"
    return f"{times} ({write(theirs)} against {write(cheapest)})" if times else ""


def _times(ratio: float) -> str:
    """Write a ratio that is above one as printed, otherwise nothing."""
    return f"{ratio:.2f}×" if ratio >= 1.005 else ""
