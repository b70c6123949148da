"""Draw the figures of the page on speed from the CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.figures import DASHED, DOTTED
from nysplus_experiments.harness.statistics import median_range
from nysplus_experiments.speed.crossover import Crossover
from nysplus_experiments.speed.growth import Growth
from nysplus_experiments.speed.tables import Runs

#: Label, colour, marker, line and whether markers are hollow, by system and type of the rows.
LOOKS: dict[tuple[str, str], tuple[str, str, str, Any, bool]] = {
    ("nysplus", "float32"): ("nysplus", figures.VERMILLION, "o", "-", False),
    ("nysplus-defaults", "float32"): ("nysplus defaults", figures.VERMILLION, "s", DASHED, True),
    ("sklearn-nystroem", "float32"): ("Nystroem float32", figures.BLUE, "v", DASHED, True),
    ("sklearn-nystroem", "float64"): ("Nystroem float64", figures.BLUE, "^", "-", False),
    ("sklearn-rbfsampler", "float64"): ("RBFSampler", figures.GREY, "X", DOTTED, False),
    ("sklearn-svc", "float64"): ("SVC", figures.BLACK, "D", "none", False),
    ("intelex-svc", "float64"): ("SVC intelex", figures.PURPLE, "P", "none", False),
    ("lightgbm", "float32"): ("LightGBM", figures.GREEN, "*", "none", False),
    ("xgboost", "float32"): ("XGBoost", figures.ORANGE, "h", "none", False),
}


def accuracy_figure(runs: Runs, column: str, unit: float, label: str) -> Any:
    """Draw accuracy against a column of the measurements, one panel a dataset."""
    figure, axes = figures.new(len(runs.datasets))
    handles: dict[str, Any] = {}
    for ax, dataset in zip(axes, runs.datasets, strict=True):
        for key, (name, *look, hollow) in LOOKS.items():
            cells = [cell for cell in runs.cells(dataset) if cell[1:3] == key]
            if cells:
                found = [median_range(runs.values(cell, column)) for cell in cells]
                x, low, high = np.array(found).T / unit
                # 100 % would be at infinity on a logarithmic scale; no dataset here is solved.
                error = [max(100 - runs.median(cell, "accuracy"), 1e-3) for cell in cells]
                bars = (x - low, high - x)
                handles[name] = figures.curve(ax, x, error, name, *look, hollow=hollow, xerr=bars)
        figures.accuracy_axis(ax)
        figures.log_ticks(ax.xaxis)
        figures.axes_titles(ax, "", "", DATASETS[dataset].title)
        ax.tick_params(labelsize=13)  # legible at half the size
    figure.supxlabel(label, fontsize=15)
    figure.supylabel(figures.ACCURACY_LABEL, fontsize=15)
    figures.legend(figure, handles, 14, "upper")
    return figure


def growth_figure(path: Path) -> Any:
    """Draw fit time against rows and against landmarks, with fitted exponents."""
    rows = records.frame(path, Growth)
    figure, axes = figures.new(2, height=4.6)
    looks = {"float32": (figures.VERMILLION, "o", "-"), "float64": (figures.BLUE, "^", DASHED)}
    for ax, (against, column) in zip(axes, {"N": "rows", "n": "n"}.items(), strict=True):
        own = rows[rows["against"] == against]
        for dtype, look in looks.items():
            typed = own[own["dtype"] == dtype]
            if typed[column].nunique() > 1:
                power = exponent(typed.groupby(column)["fit_seconds"].median())
                label = f"{dtype} rows: time ∝ ${against}^{{{power:.2f}}}$"
                figures.range_curve(ax, typed, column, "fit_seconds", label, *look)
        _time_axes(ax)
        n, n_rows = own.iloc[0][["n", "rows"]]
        if against == "N":
            figures.axes_titles(ax, "rows N", "fit time (s)", f"n = {n} landmarks")
        else:
            figures.fixed_ticks(ax.xaxis, sorted(set(own["n"])))
            figures.axes_titles(ax, "landmarks n", "fit time (s)", f"N = {n_rows:,} rows")
        ax.legend(fontsize=12, frameon=False, loc="upper left")
    return figure


def exponent(times: pd.Series) -> float:
    """Return the slope of log time over log size at the three largest sizes."""
    x, y = (np.log(np.array(part[-3:])) for part in (times.index, times))
    # The formula in full, because polyfit warns about two points.
    return float(((x - x.mean()) * (y - y.mean())).sum() / np.square(x - x.mean()).sum())


def crossover_figure(path: Path) -> Any:
    """Draw seconds against landmarks, one line a solver."""
    rows = records.frame(path, Crossover)
    figure, (ax,) = figures.new(1, height=4.6)
    looks = zip(figures.COLORS, figures.MARKERS, strict=True)
    for (solver, own), look in zip(rows.groupby("solver"), looks, strict=False):
        figures.range_curve(ax, own, "n", "seconds", solver, *look)
    _time_axes(ax)
    figures.fixed_ticks(ax.xaxis, sorted(set(rows["n"])))
    figures.axes_titles(ax, "landmarks n", "fit time (s)")
    ax.legend(fontsize=11, frameon=False)
    return figure


def _time_axes(ax: Any) -> None:
    """Make both axes logarithmic, with close ticks for the time."""
    from matplotlib.ticker import LogLocator, NullLocator

    figures.log_ticks(ax.xaxis)
    figures.log_ticks(ax.yaxis)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    ax.yaxis.set_minor_locator(NullLocator())
