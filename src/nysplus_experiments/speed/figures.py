"""Draw the figures of the page on speed from the CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.figures import DASHED, DOTTED
from nysplus_experiments.harness.labels import place_labels
from nysplus_experiments.harness.statistics import median_range
from nysplus_experiments.speed.crossover import Crossover
from nysplus_experiments.speed.growth import Growth
from nysplus_experiments.speed.runs import Runs, dataset_title

#: Label, colour, marker, line and whether markers are hollow, by system and type of the rows.
LOOKS: dict[tuple[str, str], tuple[str, str, str, Any, bool]] = {
    ("nysplus", "float32"): ("nysplus", figures.VERMILLION, "o", "-", False),
    ("nysplus-defaults", "float32"): ("nysplus defaults", figures.VERMILLION, "s", DASHED, True),
    ("sklearn-nystroem", "float32"): ("Nystroem float32", figures.BLUE, "v", DASHED, True),
    ("sklearn-nystroem", "float64"): ("Nystroem float64", figures.BLUE, "^", "-", False),
    ("sklearn-rbfsampler", "float64"): ("RBFSampler", figures.GREY, "X", DOTTED, False),
    ("sklearn-svc", "float64"): ("SVC", figures.BLACK, "D", "-", False),
    ("intelex-svc", "float64"): ("SVC intelex", figures.PURPLE, "P", "-", False),
    ("lightgbm", "float32"): ("LightGBM", figures.GREEN, "*", "-", False),
    ("xgboost", "float32"): ("XGBoost", figures.ORANGE, "h", "-", False),
}


def accuracy_figure(runs: Runs, column: str, unit: float, label: str) -> Any:
    """Draw accuracy against a column of the measurements, one panel a dataset."""
    figure, axes = figures.new(len(runs.datasets))
    for ax, dataset in zip(axes, runs.datasets, strict=True):
        labels, bars = [], []
        for key, (name, *look) in LOOKS.items():
            cells = [cell for cell in runs.cells(dataset) if cell[1:3] == key]
            if cells:
                x = [median_range(runs.values(cell, column)) for cell in cells]
                # 100 % would be at infinity on a logarithmic scale; no dataset here is solved.
                error = [max(100 - runs.median(cell, "accuracy"), 1e-3) for cell in cells]
                points, ends = _curve(ax, np.array(x) / unit, np.array(error), *look)
                labels.append((name, look[0], points))
                bars += ends
        figures.accuracy_axis(ax)
        figures.log_ticks(ax.xaxis)
        ax.set_xlabel(label, fontsize=12)
        ax.set_ylabel("test accuracy (%)", fontsize=12)
        ax.set_title(dataset_title(dataset), fontsize=13, fontweight="bold")
        figures.finish(ax)
        place_labels(ax, labels, bars)
    return figure


def _curve(
    ax: Any, x: np.ndarray, error: np.ndarray, color: str, marker: str, dashes: Any, hollow: bool
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw one system; return its points as (x, error) pairs, and the ends of its bars."""
    ax.errorbar(
        x[:, 0],
        error,
        xerr=(x[:, 0] - x[:, 1], x[:, 2] - x[:, 0]),
        color=color,
        marker=marker,
        markerfacecolor="white" if hollow else color,
        markersize=10 if marker == "*" else 7,
        linestyle=dashes,
        linewidth=1.6,
        elinewidth=1.2,
        capsize=2.5,
    )
    ends = np.stack([x[:, 1:], np.column_stack([error, error])], axis=-1)
    return np.column_stack([x[:, 0], error]), list(ends)


def growth_figure(path: Path) -> Any:
    """Draw fit time against rows and against landmarks, with fitted exponents."""
    rows = records.frame(path, Growth)
    figure, axes = figures.new(2, height=4.6)
    looks = {"float32": (figures.VERMILLION, "o", "-"), "float64": (figures.BLUE, "^", DASHED)}
    for ax, against in zip(axes, ("N", "n"), strict=True):
        own = rows[rows["against"] == against]
        for dtype, look in looks.items():
            typed = own[own["dtype"] == dtype]
            times = _by(typed, "rows" if against == "N" else "n", "fit_seconds")
            if len(times) > 1:
                label = f"{dtype} rows: time ∝ ${against}^{{{exponent(times):.2f}}}$"
                figures.range_curve(ax, times, label, *look)
        _time_axes(ax, sorted(set(own["n"])) if against == "n" else ())
        fixed = own.iloc[0]
        ax.set_title(
            f"n = {fixed['n']} landmarks" if against == "N" else f"N = {fixed['rows']:,} rows",
            fontsize=13,
            fontweight="bold",
        )
        ax.set_xlabel("rows N" if against == "N" else "landmarks n", fontsize=12)
        ax.legend(fontsize=12, frameon=False, loc="upper left")
    return figure


def exponent(times: Mapping[int, Sequence[float]]) -> float:
    """Return the slope of log time over log size at the three largest sizes.

    By least squares over the medians.
    """
    sizes = sorted(times)[-3:]
    x = np.log(sizes)
    y = np.log([median_range(times[size]).median for size in sizes])
    # The formula in full, because polyfit warns about two points.
    return float(((x - x.mean()) * (y - y.mean())).sum() / np.square(x - x.mean()).sum())


def crossover_figure(path: Path) -> Any:
    """Draw seconds against landmarks, one line a solver."""
    rows = records.frame(path, Crossover)
    figure, (ax,) = figures.new(1, height=4.6)
    looks = zip(figures.COLORS, figures.MARKERS, strict=True)
    for (solver, own), look in zip(rows.groupby("solver"), looks, strict=False):
        figures.range_curve(ax, _by(own, "n", "seconds"), solver, *look)
    _time_axes(ax, sorted(set(rows["n"])))
    ax.set_xlabel("landmarks n", fontsize=12)
    ax.legend(fontsize=11, frameon=False)
    return figure


def _by(rows: Any, column: str, values: str) -> dict[int, list[float]]:
    return {int(key): list(own[values]) for key, own in rows.groupby(column)}


def _time_axes(ax: Any, ticks: Sequence[int] = ()) -> None:
    """Make both axes logarithmic; ``ticks`` are shown where decades would not be enough."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    figures.log_ticks(ax.xaxis)
    figures.log_ticks(ax.yaxis)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    ax.yaxis.set_minor_locator(NullLocator())
    if ticks:
        ax.xaxis.set_major_locator(FixedLocator(ticks))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylabel("fit time (s)", fontsize=12)
    figures.finish(ax)
