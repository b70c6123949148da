"""Figure of accuracy against model size, from the fits and published results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from nysplus_experiments.harness import figures
from nysplus_experiments.harness.labels import place_labels
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.kilobytes.fits import (
    FIGURE_DATASETS,
    NYSTROEM,
    REFINED,
    SELECTED,
    SVC,
    in_bytes,
)
from nysplus_experiments.kilobytes.published import KB, MB, RECORDS, Record
from nysplus_experiments.kilobytes.tables import FIGURE_PARTS


@dataclass(frozen=True)
class Look:
    """How a curve is drawn: fits of a method, with sizes in bytes, in landmarks or without any."""

    method: str
    sizes: str
    label: str
    color: str
    marker: str
    dashes: Any = "-"
    hollow: bool = False

    @property
    def style(self) -> dict[str, Any]:
        """Options of matplotlib for the line and its markers."""
        return {
            "color": self.color,
            "linewidth": 1.8,
            "marker": self.marker,
            "markerfacecolor": "white" if self.hollow else self.color,
            "markersize": 13 if self.marker == "*" else 8,
        }


BYTES, LANDMARKS = "bytes", "landmarks"
_DASHED, _DOTTED = figures.DASHED, figures.DOTTED
LOOKS = (
    Look(REFINED, BYTES, "nysplus, refined, given a budget", figures.VERMILLION, "o"),
    Look(REFINED, LANDMARKS, "nysplus, refined, float32", figures.ORANGE, "s", _DASHED, True),
    Look(SELECTED, BYTES, "nysplus, selected, given a budget", figures.PURPLE, "^", _DASHED),
    Look(NYSTROEM, LANDMARKS, "scikit-learn Nystroem + ridge", figures.BLUE, "v", _DOTTED),
    Look(SVC, "", "scikit-learn SVC", figures.BLACK, "D"),
    Look("lightgbm", "", "LightGBM", figures.GREEN, "*"),
    Look("xgboost", "", "XGBoost", figures.SKY, "h"),
)
_RECORD_STYLE: dict[str, Any] = {
    "color": figures.GREY,
    "marker": "X",
    "markersize": 10,
    "markeredgecolor": "white",
    "zorder": 5,  # on top: there are few of them
}
_SIZE_TICKS = {4 * KB: "4 kB", 64 * KB: "64 kB", MB: "1 MB", 16 * MB: "16 MB", 256 * MB: "256 MB"}
_SMALL_TICKS = (KB, 16 * KB, 256 * KB, 4 * MB, 64 * MB)


def size_figure(fits: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes, one panel a dataset."""
    shown = fits[fits["part"].isin(FIGURE_PARTS) & fits["dataset"].isin(FIGURE_DATASETS)]
    shown = shown.assign(sizes=shown["setting"].map(_kind_of_size), error=100 - shown["accuracy"])
    datasets = [name for name in FIGURE_DATASETS if (shown["dataset"] == name).any()]
    figure, axes = figures.new(len(datasets), height=3.9)
    drawn: set[str] = set()
    for ax, dataset in zip(axes, datasets, strict=True):
        lines: list[np.ndarray] = []
        for look in LOOKS:
            keys = [dataset, look.method, look.sizes]
            own = shown[(shown[["dataset", "method", "sizes"]] == keys).all(axis=1)]
            if not own.empty:
                lines += _curve(ax, own, look)
                drawn.add(look.label)
        labels = _records(ax, [record for record in RECORDS if record.dataset == dataset])
        figures.accuracy_axis(ax)
        _size_axis(ax)
        ax.set_title(SOURCES[dataset].title, fontsize=15, fontweight="bold")
        figures.finish(ax)
        ax.tick_params(labelsize=13)  # legible at half the size
        place_labels(ax, labels, lines)
    figure.supxlabel("model size", fontsize=15)
    figure.supylabel("test accuracy (%)", fontsize=15)
    _legend(figure, [look for look in LOOKS if look.label in drawn])
    return figure


def _kind_of_size(setting: str) -> str:
    return "" if not setting else BYTES if in_bytes(setting) else LANDMARKS


def _curve(ax: Any, fits: pd.DataFrame, look: Look) -> list[np.ndarray]:
    """Draw the medians of a curve with bars over the seeds; return the lines that it has drawn."""
    cells = fits.groupby("setting").agg(
        bytes=("bytes", "median"),
        middle=("error", "median"),
        low=("error", "min"),
        high=("error", "max"),
    )
    x, error, low, high = cells.sort_values("bytes").clip(lower=1e-3).to_numpy().T
    bars = (error - low, high - error)
    style = {"linestyle": look.dashes, "elinewidth": 1.4, "capsize": 3, **look.style}
    ax.errorbar(x, error, yerr=bars, **style)
    ends = [np.column_stack([[a, a], pair]) for a, *pair in zip(x, low, high, strict=True)]
    return [np.column_stack([x, error]), *ends]


def _records(ax: Any, records: Sequence[Record]) -> list[tuple[str, str, np.ndarray]]:
    """Draw the published results; return their names with their points."""
    labels = []
    for name in dict.fromkeys(record.name for record in records):
        points = np.array([(r.bytes, 100 - r.accuracy) for r in records if r.name == name])
        ax.plot(*points.T, linewidth=1.2, linestyle=_DOTTED, **_RECORD_STYLE)
        labels.append((name, figures.GREY, points))
    return labels


def _size_axis(ax: Any) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(_SIZE_TICKS)))
    ax.xaxis.set_minor_locator(FixedLocator(_SMALL_TICKS))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _SIZE_TICKS.get(value, "")))
    ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    ax.yaxis.set_minor_locator(NullLocator())


def _legend(figure: Figure, looks: Sequence[Look]) -> None:
    """Put one legend above all panels."""
    handles = [
        Line2D(
            [], [], linestyle=look.dashes if look.sizes else "none", label=look.label, **look.style
        )
        for look in looks
    ]
    handles.append(Line2D([], [], linestyle="none", label="published elsewhere", **_RECORD_STYLE))
    figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=14, frameon=False)
