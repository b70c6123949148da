"""The figure of the page on compact models, drawn from the fits and the published records alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

import benchmark_figures as figures
import numpy as np
from benchmark_figures import Figure, Look
from kilobytes import FIGURE_DATASETS, NYSTROEM, REFINED, SELECTED, SVC, CompactFit, in_bytes
from label_placement import place_labels
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from selection import SOURCES

KB, MB = 2.0**10, 2.0**20
PARTS = ("targets", "svc", "peers", "sizes")


class Record(NamedTuple):
    """An accuracy in percent that others have published, and the bytes of that model."""

    dataset: str
    name: str
    accuracy: float
    bytes: float


def expansion_bytes(n: int, d: int, n_scores: int) -> float:
    """Bytes of n landmarks of d features with coefficients, all in float32."""
    return 4.0 * n * (d + n_scores)


RECORDS = (
    Record("letter", "ProtoNN", 97.10, 64 * KB),
    Record("letter", "BSGD", 75.0, expansion_bytes(100, 16, 26)),
    Record("letter", "BSGD", 89.7, expansion_bytes(500, 16, 26)),
    Record("usps", "ProtoNN", 94.92, 64 * KB),
    Record("usps", "SNC", 94.77, 569 * KB),
    Record("usps", "BSGD", 92.3, expansion_bytes(100, 256, 10)),
    Record("usps", "BSGD", 93.1, expansion_bytes(500, 256, 10)),
    Record("mnist", "ProtoNN", 95.88, 64 * KB),
    Record("mnist", "SNC", 93.6, 4.2 * MB),
    Record("mnist", "Falkon", 95.87, expansion_bytes(1000, 784, 10)),
    Record("pendigits", "BSGD", 97.4, expansion_bytes(100, 16, 10)),
    Record("pendigits", "BSGD", 97.9, expansion_bytes(500, 16, 10)),
    Record("ijcnn1", "BSGD", 97.3, expansion_bytes(100, 22, 1)),
    Record("ijcnn1", "BSGD", 98.1, expansion_bytes(500, 22, 1)),
    Record("covtype", "BSGD", 74.1, expansion_bytes(100, 54, 7)),
    Record("covtype", "BSGD", 76.9, expansion_bytes(500, 54, 7)),
)

# A curve is a method, and whether its sizes are given in bytes.
BUDGET, LANDMARKS = "budget", "landmarks"
_DASHED, _DOTTED = (0, (4, 2)), (0, (1, 1.5))
LOOKS = (
    Look((REFINED, BUDGET), "nysplus, refined, given a budget", figures.VERMILLION, "o"),
    Look((REFINED, LANDMARKS), "nysplus, refined, float32", figures.ORANGE, "s", _DASHED, True),
    Look((SELECTED, BUDGET), "nysplus, selected, given a budget", figures.PURPLE, "^", _DASHED),
    Look((NYSTROEM, LANDMARKS), "scikit-learn Nystroem + ridge", figures.BLUE, "v", _DOTTED),
    Look((SVC, ""), "scikit-learn SVC", figures.BLACK, "D"),
    Look(("lightgbm", ""), "LightGBM", figures.GREEN, "*"),
    Look(("xgboost", ""), "XGBoost", figures.SKY, "h"),
)
_SIZE_TICKS = {4 * KB: "4 kB", 64 * KB: "64 kB", MB: "1 MB", 16 * MB: "16 MB", 256 * MB: "256 MB"}
_SMALL_TICKS = (KB, 16 * KB, 256 * KB, 4 * MB, 64 * MB)


_RECORD_MARKS: dict[str, Any] = {
    "color": figures.GREY,
    "marker": "X",
    "markersize": 10,
    "markeredgecolor": "white",
    "zorder": 5,  # on top: there are few of them
}


def curve_of(fit: CompactFit) -> tuple[str, str]:
    """Return which curve a fit belongs to, a `Look.key`."""
    if not fit.setting:
        return fit.method, ""
    return fit.method, BUDGET if in_bytes(fit.setting) else LANDMARKS


def drawn(fits: Iterable[CompactFit]) -> list[CompactFit]:
    """Return the fits that the figure shows."""
    return [fit for fit in fits if fit.part in PARTS and fit.dataset in FIGURE_DATASETS]


def size_figure(fits: Iterable[CompactFit]) -> Figure:
    """Draw accuracy against bytes, one panel a dataset."""
    shown = drawn(fits)
    datasets = [name for name in FIGURE_DATASETS if any(fit.dataset == name for fit in shown)]
    figure, axes = figures.panels(len(datasets), height=3.9)
    for ax, dataset in zip(axes, datasets, strict=True):
        own = [fit for fit in shown if fit.dataset == dataset]
        lines: list[np.ndarray] = []
        for look in LOOKS:
            lines += _curve(ax, [fit for fit in own if curve_of(fit) == look.key], look)
        labels = _records(ax, [record for record in RECORDS if record.dataset == dataset])
        figures.accuracy_axis(ax)
        _size_axis(ax)
        ax.set_title(SOURCES[dataset].title, fontsize=15, fontweight="bold")
        figures.finish(ax)
        ax.tick_params(labelsize=13)  # legible where a page shows the figure at half its size
        place_labels(ax, labels, lines)
    figure.supxlabel("model size", fontsize=15)
    figure.supylabel("test accuracy (%)", fontsize=15)
    _legend(figure, {curve_of(fit) for fit in shown})
    return figure


def _curve(ax: Any, fits: Sequence[CompactFit], look: Look) -> list[np.ndarray]:
    """Draw the medians of a curve with bars over the seeds; return what names must not cover."""
    cells: dict[str, list[CompactFit]] = {}
    for fit in fits:
        cells.setdefault(fit.setting, []).append(fit)
    if not cells:
        return []
    points = sorted(
        (
            median(fit.bytes for fit in own),
            *(f([100 - (fit.accuracy or 0.0) for fit in own]) for f in (median, min, max)),
        )
        for own in cells.values()
    )
    x, error, low, high = np.maximum(np.array(points), 1e-3).T
    ax.errorbar(
        x,
        error,
        yerr=(error - low, high - error),
        linestyle=look.dashes,
        elinewidth=1.4,
        capsize=3,
        **_marks(look),
    )
    bars = [np.column_stack([[a, a], ends]) for a, *ends in zip(x, low, high, strict=True)]
    return [np.column_stack([x, error]), *bars]


def _marks(look: Look) -> dict[str, Any]:
    """Return how the points and the line of a curve look."""
    return {
        "color": look.color,
        "linewidth": 1.8,
        "marker": look.marker,
        "markerfacecolor": "white" if look.hollow else look.color,
        "markersize": 13 if look.marker == "*" else 8,
    }


def _records(ax: Any, records: Sequence[Record]) -> list[tuple[str, str, np.ndarray]]:
    """Draw the published records; return their names with their points."""
    labels = []
    for name in dict.fromkeys(record.name for record in records):
        points = np.array([(r.bytes, 100 - r.accuracy) for r in records if r.name == name])
        ax.plot(*points.T, linewidth=1.2, linestyle=_DOTTED, **_RECORD_MARKS)
        labels.append((name, figures.GREY, points))
    return labels


def _size_axis(ax: Any) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(_SIZE_TICKS)))
    ax.xaxis.set_minor_locator(FixedLocator(_SMALL_TICKS))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _SIZE_TICKS.get(value, "")))
    ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    ax.yaxis.set_minor_locator(NullLocator())


def _legend(figure: Figure, curves: set[tuple[str, str]]) -> None:
    """Put one legend above all panels."""
    handles = [
        Line2D(
            [],
            [],
            linestyle=look.dashes if look.key[1] else "none",
            label=look.label,
            **_marks(look),
        )
        for look in LOOKS
        if look.key in curves
    ]
    handles.append(Line2D([], [], linestyle="none", label="published elsewhere", **_RECORD_MARKS))
    figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=14, frameon=False)
