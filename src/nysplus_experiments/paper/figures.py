"""The paper's figures 1 to 5: means over trials with bands of 95 % intervals.

Intervals of more than half the height of a panel are thin lines: bands would cover everything else.
A dataset without the curves of a figure has no panel, and a figure without panels is not drawn. A
size that one curve of a panel lacks, between sizes that all have, is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

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
    """Return Std Nys, Nys+ with the smallest and the largest ``n_0``, Fourier and full machines.

    More curves would cover each other.
    """
    fixed = runs.fixed_n_initials(dataset)
    if fixed:
        ends = dict.fromkeys((fixed[0], fixed[-1]))
        first, *others = (Curve("Nys+", n_0) for n_0 in ends)
        plus = [_Line(first, "Nys+, smallest $n_0$", style.VERMILLION, "s")]
        plus += [_Line(c, "Nys+, largest $n_0$", style.BLUE, "^", (0, (6, 1))) for c in others]
    else:
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
    width = 10.0 if n_panels == 4 else {1: 5.6, 2: 9.2, 3: 12.0}[columns]
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
            ax.set_xlabel(axis.label, fontsize=13)
        if i % columns == 0:
            ax.set_ylabel("test accuracy (%)", fontsize=13)
    order = dict.fromkeys(line.label for own in chosen.values() for line in own)
    _legend(figure, {label: handles[label] for label in order if label in handles}, len(chosen))
    return figure


def _legend(figure: Any, handles: dict[str, Any], n_panels: int) -> None:
    """Write the legend in the place of a panel that is free, or below all panels."""
    free = figure.axes[n_panels:]
    if free:
        free[0].legend(handles.values(), handles.keys(), loc="center", fontsize=14, frameon=False)
    else:
        style.legend(figure, handles, 13)


def _panel(
    ax: Any, runs: Runs, dataset: str, lines: tuple[_Line, ...], axis: _Axis
) -> dict[str, Any]:
    """Draw one dataset; return a handle for each label that was drawn."""
    fits = [runs.curve(dataset, line.curve).dropna(subset=axis.column) for line in lines]
    gaps = _gaps(own for own in fits if len(own) and own["method"].iloc[0] not in FULL_METHODS)
    found = [(line, _points(own, axis, gaps)) for line, own in zip(lines, fits, strict=True)]
    full = [(line, p) for line, p in found if len(p) and line.curve.method in FULL_METHODS]
    drawn = [(line, p) for line, p in found if len(p) and line.curve.method not in FULL_METHODS]
    levels = {line: float(points[:, 1].mean()) for line, points in full}
    low, high = _limits(drawn, list(levels.values()))
    ax.set_ylim(low, high)
    handles: dict[str, Any] = {
        line.label: ax.axhline(
            level, color=line.color, linestyle=line.dashes, linewidth=1.5, zorder=1
        )
        for line, level in levels.items()
    }
    for line, points in drawn:
        handles[line.label] = _curve(ax, line, points, low, high)
    _finish(ax, runs, dataset, np.concatenate([points[:, 0] for _, points in drawn]))
    _arrows(ax, drawn, low, high)
    initial = [line.curve.n_initial for line in lines if isinstance(line.curve.n_initial, int)]
    if initial:
        text = "$n_0$: " + " and ".join(map(str, initial))
        ax.text(0.98, 0.05, text, transform=ax.transAxes, ha="right", fontsize=13)
    return handles


def _arrows(
    ax: Any, drawn: Sequence[tuple[_Line, np.ndarray[Any, Any]]], low: float, high: float
) -> None:
    """Point at means below the panel, with arrows side by side where there are several."""
    from matplotlib.transforms import ScaledTranslation

    below = [(line, x) for line, points in drawn for x in points[points[:, 1] < low, 0]]
    seen: list[float] = []
    for line, x in below:
        shift = ScaledTranslation(0.1 * seen.count(x), 0, ax.figure.dpi_scale_trans)
        look = {"linestyle": "", "marker": r"$\downarrow$", "color": line.color, "markersize": 8}
        ax.plot(x, low + 0.04 * (high - low), transform=ax.transData + shift, **look)
        seen.append(x)


def _gaps(curves: Iterable[pd.DataFrame]) -> set[int]:
    """Return the sizes between those of all curves that some curve lacks.

    A straight line over a gap lies below the curve, and the curve seems worse than others there.
    """
    sizes = [set(own["n"]) for own in curves]
    shared = set.intersection(*sizes) if sizes else set()
    if not shared:
        return set()
    return {n for n in set.union(*sizes) - shared if min(shared) < n < max(shared)}


def _points(fits: pd.DataFrame, axis: _Axis, gaps: Collection[int]) -> np.ndarray[Any, Any]:
    """Return x, mean, low and high of each size; the interval is NaN for a single trial."""
    rows = []
    for _, cell in fits[~fits["n"].isin(gaps)].groupby("n"):
        found = estimate(cell["accuracy"])
        rows.append((cell[axis.column].mean(), found.mean, found.low, found.high))
    return np.array(rows, dtype=float).reshape(-1, 4)


def _curve(ax: Any, line: _Line, points: np.ndarray[Any, Any], bottom: float, top: float) -> Any:
    """Draw means joined by a line, and their intervals as a band, or as thin lines if wide."""
    x, mean, low, high = points.T
    wide = high - low > (top - bottom) / 2  # never for a single trial, which has NaN
    band = np.isfinite(low) & ~wide
    ax.fill_between(x, low, high, where=band, color=line.color, alpha=0.18, linewidth=0)
    seen = wide & (mean >= bottom)
    ax.vlines(x[seen], low[seen], high[seen], color=line.color, alpha=0.6, linewidth=1)
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
    ax.tick_params(labelsize=12)  # legible at half the size
    ax.set_title(_title(runs, dataset), fontsize=12.5)


def _title(runs: Runs, dataset: str) -> str:
    fits = runs.fits[runs.fits["dataset"] == dataset]
    n_train, n_features = fits[["n_train", "n_features"]].astype(float).iloc[0]
    title = dataset_title(dataset)
    if np.isnan(n_train + n_features):
        return title
    return f"{title}: {n_train:,.0f} train, {n_features:,.0f} features"
