"""Figure of accuracy against model size, from the fits and published results."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from nysplus_experiments.harness import figures
from nysplus_experiments.harness.figures import DASHED, DOTTED
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.kilobytes import fits as compact
from nysplus_experiments.kilobytes.tables import FIGURE_PARTS, PUBLISHED

# Where the name of a published result stands if another mark is on its right: offset, alignment.
PLACES = {
    ("mnist", "ProtoNN"): ((-7, -4), "right"),
    ("usps", "BSGD"): ((0, 9), "center"),
}


class Look(NamedTuple):
    """How a curve is drawn: fits of a method, with sizes in bytes, in landmarks or without any."""

    method: str
    sizes: str
    label: str
    color: str
    marker: str
    dashes: Any = "-"
    hollow: bool = False


BYTES, LANDMARKS = "bytes", "landmarks"
LOOKS = (
    Look(compact.REFINED, BYTES, "nysplus, refined, given a budget", figures.VERMILLION, "o"),
    Look(
        compact.REFINED, LANDMARKS, "nysplus, refined, float32", figures.ORANGE, "s", DASHED, True
    ),
    Look(compact.SELECTED, BYTES, "nysplus, selected, given a budget", figures.PURPLE, "^", DASHED),
    Look(compact.NYSTROEM, LANDMARKS, "scikit-learn Nystroem + ridge", figures.BLUE, "v", DOTTED),
    Look(compact.SVC, "", "scikit-learn SVC", figures.BLACK, "D"),
    Look("lightgbm", "", "LightGBM", figures.GREEN, "*"),
    Look("xgboost", "", "XGBoost", figures.SKY, "h"),
)
ELSEWHERE = "published elsewhere"
KB, MB = 2**10, 2**20
_SIZE_TICKS = {4 * KB: "4 kB", 64 * KB: "64 kB", MB: "1 MB", 16 * MB: "16 MB", 256 * MB: "256 MB"}
_SMALL_TICKS = (KB, 16 * KB, 256 * KB, 4 * MB, 64 * MB)


def size_figure(fits: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes, one panel a dataset."""
    names = compact.FIGURE_DATASETS
    shown = fits[fits["part"].isin(FIGURE_PARTS) & fits["dataset"].isin(names)]
    sized = shown["setting"].map(lambda s: s and (BYTES if compact.in_bytes(s) else LANDMARKS))
    shown = shown.assign(sizes=sized, error=100 - shown["accuracy"])
    datasets = [name for name in names if (shown["dataset"] == name).any()]
    figure, axes = figures.new(len(datasets), height=3.9)
    handles: dict[str, Any] = {}
    for ax, dataset in zip(axes, datasets, strict=True):
        for look in LOOKS:
            keys = [dataset, look.method, look.sizes]
            own = shown[(shown[["dataset", "method", "sizes"]] == keys).all(axis=1)]
            if not own.empty:
                handles[look.label] = _curve(ax, own, look)
        handles |= _published(ax, dataset)
        figures.accuracy_axis(ax)
        _size_axis(ax)
        ax.set_title(SOURCES[dataset].title, fontsize=15, fontweight="bold")
        figures.finish(ax)
        ax.tick_params(labelsize=13)  # legible at half the size
    figure.supxlabel("model size", fontsize=15)
    figure.supylabel("test accuracy (%)", fontsize=15)
    order = [label for label in (*(look.label for look in LOOKS), ELSEWHERE) if label in handles]
    figures.legend(figure, {label: handles[label] for label in order}, 14, "upper")
    return figure


def _curve(ax: Any, fits: pd.DataFrame, look: Look) -> Any:
    """Draw the medians of a curve with bars over the seeds."""
    cells = fits.groupby("setting").agg({"bytes": "median", "error": ["median", "min", "max"]})
    cells = cells.sort_values(("bytes", "median")).clip(lower=1e-3)
    x, error, low, high = cells.to_numpy().T
    bars = (error - low, high - error)
    return figures.curve(ax, x, error, *look[2:6], hollow=look.hollow, yerr=bars)


def _published(ax: Any, dataset: str) -> dict[str, Any]:
    """Draw the published results with their names; return a handle for the legend."""
    handles = {}
    for name, own in PUBLISHED[PUBLISHED["dataset"] == dataset].groupby("name"):
        x, error = own["bytes"].to_numpy(), 100 - own["accuracy"].to_numpy()
        look = (ELSEWHERE, figures.GREY, "X", DOTTED)
        handles[ELSEWHERE] = figures.curve(ax, x, error, *look, markersize=9, zorder=5)
        text = {"color": figures.GREY, "fontsize": 11, "fontweight": "bold", "zorder": 5}
        offset, side = PLACES.get((dataset, name), ((7, -4), "left"))
        place = {"textcoords": "offset points", "ha": side}
        ax.annotate(name, (x[-1], error[-1]), offset, **place, **text)
    return handles


def _size_axis(ax: Any) -> None:
    ax.set_xscale("log")
    figures.fixed_ticks(ax.xaxis, list(_SIZE_TICKS))
    ax.xaxis.set_minor_locator(FixedLocator(_SMALL_TICKS))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _SIZE_TICKS.get(value, "")))
    ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
