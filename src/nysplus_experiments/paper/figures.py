"""The paper's figures 1 to 5: means over trials with bands of 95 % intervals.

A dataset without the curves of a figure has no panel, and a figure without panels is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nysplus_experiments.harness import figures as style
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.runs import FULL_METHODS, Curve, Runs, dataset_title, method_label

_MARGIN = 0.06  # of the visible range of accuracies, above and below


@dataclass(frozen=True)
class _Line:
    """A curve with its style. Full kernel machines become horizontal lines."""

    curve: Curve
    label: str
    color: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"


class _Axis(NamedTuple):
    """A column of `Runs.fits` on the horizontal axis."""

    label: str
    column: str


_LANDMARKS = _Axis("number of landmarks $n_f$", "n")
_SIZE = _Axis("model size (kB)", "kb")
_TIME = _Axis("training time (s); “+”: steps 3–6 only", "final_stage_seconds")

_NYS = _Line(Curve("Nys"), "Nys", style.BLACK, "o", style.DASHED)
_NYS_PLUS = _Line(Curve("Nys+"), "Nys+", style.VERMILLION, "s")
_KNYS = _Line(Curve("KNys"), "KNys", style.PURPLE, "D", style.DASHED)
_UNSUPERVISED = (
    _NYS,
    _Line(Curve("ENys"), "ENys", style.SKY, "^", style.DASHED),
    _Line(Curve("RNys"), "RNys", style.ORANGE, "v", style.DASHED),
)
_SUPERVISED = (
    _NYS_PLUS,
    _Line(Curve("ENys+"), "ENys+", style.BLUE, "P"),
    _Line(Curve("RNys+"), "RNys+", style.GREEN, "X"),
)
_KNYS_PLUS = _Line(Curve("KNys+"), "KNys+", style.GREEN, "s")
_CENTROIDS = _Line(Curve("SC"), method_label("SC"), style.BLUE, "^")


class _Figure(NamedTuple):
    """Lines of each dataset, the axis, and methods of which a dataset needs one for a panel."""

    lines: Callable[[Runs, str], tuple[_Line, ...]]
    axis: _Axis
    needed: set[str]


def _same(*lines: _Line) -> Callable[[Runs, str], tuple[_Line, ...]]:
    return lambda runs, dataset: lines


def _figure1_lines(runs: Runs, dataset: str) -> tuple[_Line, ...]:
    """Return Std Nys, one line for each ``n_0``, Fourier and the full machines."""
    every = sorted({n_0 for name in runs.datasets for n_0 in runs.fixed_n_initials(name)})
    colors = (style.SKY, style.GREEN, style.BLUE, style.VERMILLION, style.PURPLE)
    plus = []
    for i, n_0 in enumerate(every):
        dashes = ("-", (0, (6, 1)), (0, (3, 1, 1, 1)))[i // len(colors) % 3]
        look = (colors[i % len(colors)], "^vsDP"[i % len(colors)], dashes)
        plus.append(_Line(Curve("Nys+", n_0), f"Nys+, $n_0$ = {n_0}", *look))
    if not runs.fixed_n_initials(dataset):
        plus = [_Line(Curve("Nys+"), "Nys+, $n_0$ = $n_f$", style.VERMILLION, "s")]
    return (
        _Line(Curve("Nys"), "Std Nys", style.BLACK, "o", style.DASHED),
        *plus,
        _Line(Curve("Fourier"), "Fourier", style.ORANGE, "X", style.DOTTED),
        _Line(Curve("KRR"), "KRR", style.GREY, "", (0, (6, 2))),
        _Line(Curve("KSVM"), "KSVM", style.GREY, "", (0, (5, 1, 1, 1))),
    )


_FIGURES = {
    1: _Figure(_figure1_lines, _LANDMARKS, {"Fourier"}),
    2: _Figure(_same(*_UNSUPERVISED, _KNYS, *_SUPERVISED), _SIZE, {"ENys+", "RNys+"}),
    3: _Figure(_same(*_UNSUPERVISED, *_SUPERVISED), _TIME, {"ENys+", "RNys+"}),
    4: _Figure(_same(_KNYS, _KNYS_PLUS), _SIZE, {"KNys+"}),
    5: _Figure(_same(_NYS, _NYS_PLUS, _KNYS, _CENTROIDS), _SIZE, {"SC"}),
}


def draw_all(results: list[Result], out: Path, only: set[int] | None = None) -> list[Path]:
    """Write the figures that have something to show, or ``only`` some; return the files."""
    unknown = sorted((only or set()) - set(_FIGURES))
    if unknown:
        raise ValueError(f"There is no figure {unknown[0]}. Choose from 1 to {max(_FIGURES)}.")
    written = []
    for number in sorted(only or _FIGURES):
        figure = draw(number, results)
        if figure is not None:
            written.append(style.save(figure, out / f"figure{number}.png"))
    return written


def _new_figure(n_panels: int) -> tuple[Any, list[Any]]:
    columns = 2 if n_panels == 4 else min(3, n_panels)
    # Two panels or less would leave too little width for the legend below them.
    width = 10.0 if n_panels == 4 else {1: 5.6, 2: 8.4, 3: 11.0}[columns]
    rows = math.ceil(n_panels / columns)
    figure, axes = style.new(n_panels, 3.2, width / columns, columns, w_pad=0.08, h_pad=0.08)
    figure.set_figheight(3.2 * rows + 0.9)  # room for the legend
    return figure, axes


def draw(number: int, results: Sequence[Result]) -> Any | None:
    """Return a figure of the paper with one panel a dataset, or None with nothing to show."""
    runs, (lines, axis, needed) = Runs(results), _FIGURES[number]
    chosen = {
        name: lines(runs, name)
        for name in runs.datasets
        if not needed.isdisjoint(runs.methods(name))
    }
    if not chosen:
        return None
    figure, axes = _new_figure(len(chosen))
    handles: dict[str, Any] = {}
    for ax, (name, own) in zip(axes, chosen.items(), strict=True):
        handles |= _panel(ax, runs, name, own, axis)
    columns = axes[0].get_gridspec().ncols
    for i, ax in enumerate(axes):
        if i + columns >= len(axes):  # the lowest panel of its column
            ax.set_xlabel(axis.label, fontsize=11)
        if i % columns == 0:
            ax.set_ylabel("test accuracy (%)", fontsize=11)
    order = dict.fromkeys(line.label for own in chosen.values() for line in own)
    style.legend(figure, {label: handles[label] for label in order if label in handles})
    return figure


def _panel(
    ax: Any, runs: Runs, dataset: str, lines: tuple[_Line, ...], axis: _Axis
) -> dict[str, Any]:
    """Draw one dataset; return a handle for each label that was drawn."""
    handles: dict[str, Any] = {}
    drawn: list[tuple[_Line, np.ndarray[Any, Any]]] = []
    levels: list[float] = []
    for line in lines:
        points = _points(runs, dataset, line, axis)
        if len(points) and line.curve.method in FULL_METHODS:
            levels.append(float(points[:, 1].mean()))
            handles[line.label] = ax.axhline(
                levels[-1], color=line.color, linestyle=line.dashes, linewidth=1.5, zorder=1
            )
        elif len(points):
            handles[line.label] = _curve(ax, line, points)
            drawn.append((line, points))
    low, high = _limits(drawn, levels)
    ax.set_ylim(low, high)
    for line, points in drawn:
        below = points[points[:, 1] < low, 0]
        edge = np.full(len(below), low + 0.04 * (high - low))
        ax.plot(below, edge, linestyle="", marker=r"$\downarrow$", color=line.color, markersize=8)
    _finish(ax, runs, dataset, np.concatenate([points[:, 0] for _, points in drawn]))
    return handles


def _points(runs: Runs, dataset: str, line: _Line, axis: _Axis) -> np.ndarray[Any, Any]:
    """Return x, mean, low and high of each size; the interval is NaN for a single trial."""
    fits = runs.curve(dataset, line.curve).dropna(subset=axis.column)
    rows = []
    for _, cell in fits.groupby("n"):
        found = estimate(cell["accuracy"])
        rows.append((cell[axis.column].mean(), found.mean, found.low, found.high))
    return np.array(rows, dtype=float).reshape(-1, 4)


def _curve(ax: Any, line: _Line, points: np.ndarray[Any, Any]) -> Any:
    x, mean, low, high = points.T
    band = np.isfinite(low)
    ax.fill_between(x[band], low[band], high[band], color=line.color, alpha=0.18, linewidth=0)
    style = {"color": line.color, "marker": line.marker, "linestyle": line.dashes}
    return ax.plot(x, mean, **style, linewidth=1.6, markersize=5, markeredgewidth=0)[0]


def _limits(
    drawn: Sequence[tuple[_Line, np.ndarray[Any, Any]]], levels: Sequence[float]
) -> tuple[float, float]:
    """Return limits that show the upper three quarters of the Nyström curves well.

    A few very low points at tiny sizes leave the picture. Random features, often far below, are
    visible from their best point on if that takes no more than half of the height.
    """
    fourier = [points[:, 1] for line, points in drawn if line.curve.method == "Fourier"]
    others = [points[:, 1] for line, points in drawn if line.curve.method != "Fourier"]
    means = np.concatenate([*(others or fourier), np.array(levels)])
    top = max(float(values.max()) for values in (means, *fourier))
    low = max(float(means.min()), top - 2 * (top - float(np.quantile(means, 0.25))))
    if fourier and float(fourier[0].max()) < low:
        low = max(float(fourier[0].max()), top - 2 * (top - low))
    margin = max(_MARGIN * (top - low), 0.02)
    return low - margin, min(top + margin, 100.0 + margin / 2)


def _finish(ax: Any, runs: Runs, dataset: str, x: np.ndarray[Any, Any]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if x.min() > 0 and x.max() / x.min() > 20:
        ax.set_xscale("log")
        decades = math.log10(x.max() / x.min())
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,)))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    style.finish(ax)
    ax.tick_params(labelsize=10)
    ax.set_title(_title(runs, dataset), fontsize=11)


def _title(runs: Runs, dataset: str) -> str:
    fits = runs.fits[runs.fits["dataset"] == dataset]
    n_train, n_features = fits[["n_train", "n_features"]].astype(float).iloc[0]
    title = dataset_title(dataset)
    if np.isnan(n_train + n_features):
        return title
    return f"{title}: {n_train:,.0f} train, {n_features:,.0f} features"
