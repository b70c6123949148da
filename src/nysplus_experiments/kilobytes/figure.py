"""Figure of accuracy against model size, from the fits and published results."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from nysplus_experiments.harness import figures
from nysplus_experiments.harness.figures import DASHED, DOTTED
from nysplus_experiments.harness.mark_names import name_marks
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.kilobytes import fits as compact
from nysplus_experiments.kilobytes.earlier import frontier
from nysplus_experiments.kilobytes.tables import FIGURE_PARTS, OURS, PUBLISHED

BEFORE_METHOD = "before"


class Look(NamedTuple):
    """How the fits of a method are drawn."""

    method: str
    label: str
    color: str
    marker: str
    dashes: Any = "-"
    hollow: bool = False


# Models of one origin have one colour: ours with images black, scikit-learn blue, boosting green.
LOOKS = (
    Look(compact.REFINED, "nysplus, refined", figures.VERMILLION, "o"),
    Look(compact.IMAGE, "nysplus, images", figures.BLACK, "s"),
    Look(compact.AUGMENTED, "nysplus, images, augmented", figures.BLACK, "s", DASHED, True),
    Look(compact.UNREFINED, "nysplus, unrefined", figures.PURPLE, "^", DASHED),
    Look(BEFORE_METHOD, "nysplus 0.1.0, refined", figures.ORANGE, "o", DASHED, True),
    Look(compact.NYSTROEM, "scikit-learn Nystroem + ridge", figures.BLUE, "v", DOTTED),
    Look(compact.SVC, "scikit-learn SVC", figures.BLUE, "D", "none"),
    Look("lightgbm", "LightGBM", figures.GREEN, "*", "none"),
    Look("xgboost", "XGBoost", figures.GREEN, "h", "none"),
)
ELSEWHERE = "published elsewhere"
KB, MB = 2**10, 2**20
_SIZE_TICKS = {KB: "1 kB", 16 * KB: "16 kB", 256 * KB: "256 kB", 4 * MB: "4 MB", 64 * MB: "64 MB"}
_SMALL_TICKS = (4 * KB, 64 * KB, MB, 16 * MB)


def size_figure(fits: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes, one panel a dataset."""
    names = compact.FIGURE_DATASETS
    shown = fits[fits["part"].isin(FIGURE_PARTS) & fits["dataset"].isin(names)]
    shown = pd.concat([shown, _before()]).assign(error=lambda rows: 100 - rows["accuracy"])
    datasets = [name for name in names if (shown["dataset"] == name).any()]
    figure, axes = figures.new(len(datasets), height=3.9)
    handles: dict[str, Any] = {}
    sizes: list[tuple[float, float]] = []
    for ax, dataset in zip(axes, datasets, strict=True):
        for look in LOOKS:
            own = shown[(shown[["dataset", "method"]] == [dataset, look.method]).all(axis=1)]
            if not own.empty:
                handles[look.label] = _curve(ax, own, look)
        handles |= _published(ax, dataset)
        figures.accuracy_axis(ax)
        _size_axis(ax)
        sizes.append(ax.get_xlim())
        ax.set_title(SOURCES[dataset].title, fontsize=15, fontweight="bold")
        figures.finish(ax)
        ax.tick_params(labelsize=13)  # legible at half the size
    figure.supxlabel("model size, logarithmic", fontsize=15)
    figure.supylabel(figures.ACCURACY_LABEL, fontsize=15)
    order = [label for label in (*(look.label for look in LOOKS), ELSEWHERE) if label in handles]
    figures.legend(figure, {label: handles[label] for label in order}, 14, "upper")
    for ax, dataset in zip(axes, datasets, strict=True):
        ax.set_xlim(min(low for low, _ in sizes), max(high for _, high in sizes))
        _name_published(ax, dataset)
    return figure


def _before() -> pd.DataFrame:
    """Return the models of version 0.1.0 that are more accurate than all smaller ones."""
    best = pd.concat([frontier(name) for name in compact.FIGURE_DATASETS])
    return best[["dataset", "setting", "accuracy", "bytes"]].assign(method=BEFORE_METHOD)


def _curve(ax: Any, fits: pd.DataFrame, look: Look) -> Any:
    """Draw the medians of a curve with bars over the seeds."""
    cells = fits.groupby("setting").agg({"bytes": "median", "error": ["median", "min", "max"]})
    cells = cells.sort_values(("bytes", "median")).clip(lower=1e-3)
    x, error, low, high = cells.to_numpy().T
    bars = (error - low, high - error)
    # A ring around a mark of equal accuracy shows both; our new models are above all others.
    style: dict[str, Any] = {"hollow": look.hollow, "yerr": bars}
    if look.method == BEFORE_METHOD:
        style["markersize"] = 10
    if look.method in OURS:
        style["zorder"] = 4
    return figures.curve(ax, x, error, *look[1:5], **style)


def _published(ax: Any, dataset: str) -> dict[str, Any]:
    """Draw the published results; return a handle for the legend."""
    handles = {}
    for _, own in PUBLISHED[PUBLISHED["dataset"] == dataset].groupby("name"):
        x, error = own["bytes"].to_numpy(), 100 - own["accuracy"].to_numpy()
        look = (ELSEWHERE, figures.GREY, "X", DOTTED)
        handles[ELSEWHERE] = figures.curve(ax, x, error, *look, markersize=9, zorder=5)
    return handles


def _name_published(ax: Any, dataset: str) -> None:
    """Write the names of the published results beside the largest model of each."""
    last = PUBLISHED[PUBLISHED["dataset"] == dataset].groupby("name").last()
    names = [(str(own.Index), own.bytes, 100 - own.accuracy) for own in last.itertuples()]
    text = {"color": figures.GREY, "fontsize": 11, "fontweight": "bold", "zorder": 5}
    name_marks(ax, names, **text)


def _size_axis(ax: Any) -> None:
    ax.set_xscale("log")
    figures.fixed_ticks(ax.xaxis, list(_SIZE_TICKS))
    ax.xaxis.set_minor_locator(FixedLocator(_SMALL_TICKS))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _SIZE_TICKS.get(value, "")))
    ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
