"""The figures of the benchmark page, drawn from the CSV files without fitting anything."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_runs import Runs, dataset_title
from growth import Growth
from label_placement import place_labels
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from measurement import Cell

# Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is too pale here.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#767676"
_DPI = 150


@dataclass(frozen=True)
class Look:
    """How a system is drawn; ``key`` is its name and the type of its rows."""

    key: tuple[str, str]
    label: str
    color: str
    marker: str
    dashes: Any = "-"
    hollow: bool = False


LOOKS = (
    Look(("nysplus", "float32"), "nysplus", VERMILLION, "o"),
    Look(("nysplus-defaults", "float32"), "nysplus defaults", VERMILLION, "s", (0, (4, 2)), True),
    Look(("sklearn-nystroem", "float32"), "Nystroem float32", BLUE, "v", (0, (4, 2)), True),
    Look(("sklearn-nystroem", "float64"), "Nystroem float64", BLUE, "^"),
    Look(("sklearn-rbfsampler", "float64"), "RBFSampler", GREY, "X", (0, (1, 1.5))),
    Look(("sklearn-svc", "float64"), "SVC", BLACK, "D"),
    Look(("intelex-svc", "float64"), "SVC intelex", PURPLE, "P"),
    Look(("lightgbm", "float32"), "LightGBM", GREEN, "*"),
    Look(("xgboost", "float32"), "XGBoost", ORANGE, "h"),
)


@dataclass(frozen=True)
class Axis:
    """What is on the horizontal axis: a column of the measurements, in units of ``unit``."""

    column: str
    unit: float
    label: str


FIT_TIME = Axis("fit_seconds", 1.0, "fit time (s)")
MODEL_SIZE = Axis("model_bytes", 2.0**10, "model size (kB)")


def accuracy_figure(runs: Runs, axis: Axis) -> Figure:
    """Draw accuracy against time or size, one panel a dataset."""
    figure, axes = panels(len(runs.datasets), height=4.3)
    for ax, dataset in zip(axes, runs.datasets, strict=True):
        labels, bars = [], []
        for look in LOOKS:
            cells = [cell for cell in runs.cells(dataset) if cell[1:3] == look.key]
            if cells:
                points, own_bars = _curve(ax, runs, cells, look, axis)
                labels.append((look.label, look.color, points))
                bars += own_bars
        accuracy_axis(ax)
        log_ticks(ax.xaxis)
        ax.set_xlabel(axis.label, fontsize=12)
        ax.set_ylabel("test accuracy (%)", fontsize=12)
        ax.set_title(dataset_title(dataset), fontsize=13, fontweight="bold")
        finish(ax)
        place_labels(ax, labels, bars)
    return figure


def _curve(
    ax: Any, runs: Runs, cells: Sequence[Cell], look: Look, axis: Axis
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw one system; return its points as (x, error) pairs, and the ends of its bars."""
    x = np.array([[f(runs.values(c, axis.column)) for f in _MIDDLE_LOW_HIGH] for c in cells])
    x = x / axis.unit
    # 100 % would be at infinity on a logarithmic scale; no dataset here is solved.
    error = np.array([max(100 - runs.median(cell, "accuracy"), 1e-3) for cell in cells])
    ax.errorbar(
        x[:, 0],
        error,
        xerr=(x[:, 0] - x[:, 1], x[:, 2] - x[:, 0]),
        color=look.color,
        marker=look.marker,
        markerfacecolor="white" if look.hollow else look.color,
        markersize=10 if look.marker == "*" else 7,
        linestyle=look.dashes,
        linewidth=1.6,
        elinewidth=1.2,
        capsize=2.5,
    )
    ends = np.stack([x[:, 1:], np.column_stack([error, error])], axis=-1)
    return np.column_stack([x[:, 0], error]), list(ends)


_MIDDLE_LOW_HIGH: tuple[Callable[[Iterable[float]], float], ...] = (statistics.median, min, max)


def accuracy_axis(ax: Any) -> None:
    """Space accuracies by the logarithm of the error: 98 and 99 % are as far apart as 80 and 90."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(high * 1.1, low / 1.1)
    steps = [0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 80]
    inside = [step for step in steps if low / 1.1 <= step <= high * 1.1]
    # At most about eight, and never so few that the scale cannot be read.
    ax.yaxis.set_major_locator(FixedLocator(inside[:: max(1, len(inside) // 8 + 1)]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{100 - error:g}"))


# -- growth --------------------------------------------------------------------------------------


def growth_figure(rows: Sequence[Growth]) -> Figure:
    """Draw fit time against rows and against landmarks, with fitted exponents."""
    figure, axes = panels(2, height=4.6)
    looks = {"float32": (VERMILLION, "o", "-"), "float64": (BLUE, "^", (0, (4, 2)))}
    for ax, against in zip(axes, ("N", "n"), strict=True):
        own = [row for row in rows if row.against == against]
        for dtype, (color, marker, dashes) in looks.items():
            times: dict[int, list[float]] = defaultdict(list)
            for row in own:
                if row.dtype == dtype:
                    times[row.rows if against == "N" else row.n].append(row.fit_seconds)
            if len(times) > 1:
                label = f"{dtype} rows: time ∝ ${against}^{{{exponent(times):.2f}}}$"
                times_curve(ax, times, label, color, marker, dashes)
        ax.set_yscale("log")
        log_ticks(ax.xaxis)
        log_ticks(ax.yaxis)
        if against == "n":  # doublings, which decades would not show
            ax.xaxis.set_major_locator(FixedLocator(sorted({row.n for row in own})))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.set_ylabel("fit time (s)", fontsize=12)
        fixed = f"n = {own[0].n} landmarks" if against == "N" else f"N = {own[0].rows:,} rows"
        ax.set_xlabel("rows N" if against == "N" else "landmarks n", fontsize=12)
        ax.set_title(fixed, fontsize=13, fontweight="bold")
        finish(ax)
        ax.legend(fontsize=12, frameon=False, loc="upper left")
    return figure


def exponent(times: dict[int, list[float]]) -> float:
    """Return the slope of log time over log size, by least squares over the medians of the three
    largest sizes.
    """
    x = np.log(sorted(times)[-3:])
    y = np.log([statistics.median(times[size]) for size in sorted(times)[-3:]])
    # The formula in full, because polyfit warns about two points.
    return float(((x - x.mean()) * (y - y.mean())).sum() / np.square(x - x.mean()).sum())


def crossover_figure(series: dict[str, dict[int, list[float]]]) -> Figure:
    """Draw seconds against landmarks, one line a solver."""
    figure, axes = panels(1, height=4.6)
    looks = zip((VERMILLION, BLUE, GREEN, PURPLE, ORANGE, BLACK), "o^sDvX", strict=True)
    for (label, times), (color, marker) in zip(series.items(), looks, strict=False):
        times_curve(axes[0], times, label, color, marker, "-")
    axes[0].set_yscale("log")
    log_ticks(axes[0].xaxis)
    log_ticks(axes[0].yaxis)
    axes[0].xaxis.set_major_locator(
        FixedLocator(sorted({n for own in series.values() for n in own}))
    )
    axes[0].xaxis.set_minor_locator(NullLocator())
    axes[0].set_xlabel("landmarks n", fontsize=12)
    axes[0].set_ylabel("fit time (s)", fontsize=12)
    axes[0].legend(fontsize=11, frameon=False)
    finish(axes[0])
    return figure


def times_curve(
    ax: Any, times: dict[int, list[float]], label: str, color: str, marker: str, dashes: Any
) -> None:
    x = sorted(times)
    middle, low, high = (np.array([f(times[k]) for k in x]) for f in _MIDDLE_LOW_HIGH)
    ax.errorbar(
        x,
        middle,
        yerr=(middle - low, high - middle),
        color=color,
        marker=marker,
        linestyle=dashes,
        linewidth=1.6,
        markersize=7,
        capsize=2.5,
        label=label,
    )


# -- shared --------------------------------------------------------------------------------------


def panels(count: int, height: float) -> tuple[Figure, list[Any]]:
    """Return an empty figure of two columns, tied to no window, and its axes."""
    columns = min(2, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(5.8 * columns, height * rows), layout="constrained", dpi=_DPI)
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for unused in axes[count:]:
        unused.set_axis_off()
    return figure, axes[:count]


def log_ticks(axis: Any) -> None:
    """Make an axis logarithmic with plain numbers on it: 0.1, 1, 10, or 1, 2, 5 if it is short."""
    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    low, high = axis.get_data_interval()
    short = high / low < 60
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if short else (1,), numticks=12))
    axis.set_minor_locator(NullLocator() if short else LogLocator(subs=range(2, 10), numticks=12))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def finish(ax: Any) -> None:
    ax.grid(color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=11)
    ax.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG of 256 colours, a third of the size of a full one and no different to the eye."""
    from PIL import Image  # comes with matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    flat = picture.quantize(256, dither=Image.Dither.NONE)
    flat.save(path, format="PNG", optimize=True, dpi=(_DPI, _DPI))
