"""The paper's figures 1 to 5, drawn from results without fitting anything.

Lines are means over trials, bands are 95 % intervals. A dataset without the curves of a figure has
no panel in it, and a figure without panels is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nysplus_experiments.harness import figures as looks
from nysplus_experiments.harness.figures import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
)
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.runs import (
    FULL_METHODS,
    Curve,
    Runs,
    accuracy,
    dataset_title,
    kilobytes,
    method_label,
    series,
    training_seconds,
)

__all__ = ["CAPTIONS", "draw_all", "figure1", "figure2", "figure3", "figure4", "figure5"]

CAPTIONS = {
    1: "Accuracy against the number of landmarks n_f. Std Nys has uniform landmarks; Nys+ chooses "
    "them by the negative margin of a first model with n_0 landmarks. Horizontal lines are the "
    "full kernel machines. Fourier counts random features.",
    2: "Accuracy against model size, n (d + L) · 8 bytes as the paper counts it, with n_0 = n_f. "
    "Dashed: landmarks chosen without labels. Solid: with support vector selection.",
    3: "Accuracy against training time, with n_0 = n_f. Solid curves show the time of the second "
    "stage alone (steps 3–6 of Algorithm 1), as in the paper; the first stage takes the time of "
    "the dashed curve. Not shown, as in the paper: KNys.",
    4: "Accuracy against model size for k-means landmarks (KNys) and for k-means on the rows of "
    "largest negative margin (KNys+, appendix B).",
    5: "Accuracy against model size for support centroid selection (appendix C): centroids chosen "
    "by their negative margin, against uniform landmarks, support vector selection and k-means.",
}

_MARGIN = 0.06  # of the visible range of accuracies, above and below


@dataclass(frozen=True)
class _Line:
    """A curve with its looks. Full kernel machines become horizontal lines."""

    curve: Curve
    label: str
    color: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"


@dataclass(frozen=True)
class _Axis:
    """What is on the horizontal axis."""

    label: str
    value: Callable[[Result], float | None]


_LANDMARKS = _Axis("number of landmarks $n_f$", lambda result: float(result.n))
_SIZE = _Axis("model size (kB)", kilobytes)
_TIME = _Axis("training time (s); “+”: steps 3–6 only", training_seconds)

_NYS = _Line(Curve("Nys"), "Nys", BLACK, "o", DASHED)
_NYS_PLUS = _Line(Curve("Nys+"), "Nys+", VERMILLION, "s")
_KNYS = _Line(Curve("KNys"), "KNys", PURPLE, "D", DASHED)
_UNSUPERVISED = (
    _NYS,
    _Line(Curve("ENys"), "ENys", SKY, "^", DASHED),
    _Line(Curve("RNys"), "RNys", ORANGE, "v", DASHED),
)
_SUPERVISED = (
    _NYS_PLUS,
    _Line(Curve("ENys+"), "ENys+", BLUE, "P"),
    _Line(Curve("RNys+"), "RNys+", GREEN, "X"),
)
_KNYS_PLUS = _Line(Curve("KNys+"), "KNys+", GREEN, "s")
_CENTROIDS = _Line(Curve("SC"), method_label("SC"), BLUE, "^")


# -- one function a figure -----------------------------------------------------------------------


def figure1(results: Sequence[Result]) -> Any:
    """Draw accuracy against landmarks for several ``n_0``, as a matplotlib figure or None."""
    runs = Runs(results)
    lines = {name: _figure1_lines(runs, name) for name in runs.datasets}
    return _draw(runs, lines, _LANDMARKS, needed={"Fourier"})


def figure2(results: Sequence[Result]) -> Any:
    """Draw accuracy against model size for all variants, as a matplotlib figure or None."""
    runs = Runs(results)
    lines = dict.fromkeys(runs.datasets, (*_UNSUPERVISED, _KNYS, *_SUPERVISED))
    return _draw(runs, lines, _SIZE, needed={"ENys+", "RNys+"})


def figure3(results: Sequence[Result]) -> Any:
    """Draw accuracy against training time for all variants, as a matplotlib figure or None."""
    runs = Runs(results)
    lines = dict.fromkeys(runs.datasets, (*_UNSUPERVISED, *_SUPERVISED))
    return _draw(runs, lines, _TIME, needed={"ENys+", "RNys+"})


def figure4(results: Sequence[Result]) -> Any:
    """Draw k-means against supervised k-means by size, as a matplotlib figure or None."""
    runs = Runs(results)
    return _draw(runs, dict.fromkeys(runs.datasets, (_KNYS, _KNYS_PLUS)), _SIZE, needed={"KNys+"})


def figure5(results: Sequence[Result]) -> Any:
    """Draw support centroids against the others by size, as a matplotlib figure or None."""
    runs = Runs(results)
    lines = dict.fromkeys(runs.datasets, (_NYS, _NYS_PLUS, _KNYS, _CENTROIDS))
    return _draw(runs, lines, _SIZE, needed={"SC"})


_FIGURES = {1: figure1, 2: figure2, 3: figure3, 4: figure4, 5: figure5}


def draw_all(results: list[Result], out: Path, only: set[int] | None = None) -> list[Path]:
    """Draw the paper's figures and write them as PNG files.

    Parameters
    ----------
    results : list of Result
        Rows with the status "error" are left out.
    out : Path
        Folder for ``figure1.png`` to ``figure5.png``; made if it does not exist.
    only : set of int, optional
        The figures to draw; all by default.

    Returns
    -------
    list of Path
        The files written, each whole; figures with nothing to show are skipped.
    """
    unknown = sorted((only or set()) - set(_FIGURES))
    if unknown:
        raise ValueError(f"There is no figure {unknown[0]}. Choose from 1 to {max(_FIGURES)}.")
    written = []
    for number, draw in _FIGURES.items():
        figure = draw(results) if only is None or number in only else None
        if figure is not None:
            written.append(looks.save(figure, out / f"figure{number}.png"))
    return written


def _figure1_lines(runs: Runs, dataset: str) -> tuple[_Line, ...]:
    """Return Std Nys, one line for each ``n_0``, Fourier and the full machines."""
    every = sorted({n_0 for name in runs.datasets for n_0 in runs.fixed_n_initials(name)})
    styles = tuple(zip((SKY, GREEN, BLUE, VERMILLION, PURPLE), "^vsDP", strict=True))
    plus = []
    for i, n_0 in enumerate(every):
        color, marker = styles[i % len(styles)]
        dashes = ("-", (0, (6, 1)), (0, (3, 1, 1, 1)))[i // len(styles) % 3]
        plus.append(_Line(Curve("Nys+", n_0), f"Nys+, $n_0$ = {n_0}", color, marker, dashes))
    if not runs.fixed_n_initials(dataset):
        plus = [_Line(Curve("Nys+"), "Nys+, $n_0$ = $n_f$", VERMILLION, "s")]
    return (
        _Line(Curve("Nys"), "Std Nys", BLACK, "o", DASHED),
        *plus,
        _Line(Curve("Fourier"), "Fourier", ORANGE, "X", DOTTED),
        _Line(Curve("KRR"), "KRR", GREY, "", (0, (6, 2))),
        _Line(Curve("KSVM"), "KSVM", GREY, "", (0, (5, 1, 1, 1))),
    )


# -- drawing -------------------------------------------------------------------------------------


def _new_figure(n_panels: int) -> tuple[Any, list[Any]]:
    columns = 2 if n_panels == 4 else min(3, n_panels)
    # Two panels or less would leave too little width for the legend below them.
    width = 10.0 if n_panels == 4 else {1: 5.6, 2: 8.4, 3: 11.0}[columns]
    rows = math.ceil(n_panels / columns)
    figure, axes = looks.new(n_panels, 3.2, width / columns, columns, w_pad=0.08, h_pad=0.08)
    figure.set_figheight(3.2 * rows + 0.9)  # room for the legend
    return figure, axes


def _draw(
    runs: Runs, lines: Mapping[str, tuple[_Line, ...]], axis: _Axis, needed: set[str]
) -> Any | None:
    """Draw one panel for each dataset that has a method of ``needed``; None where none has."""
    chosen = {
        name: own
        for name, own in lines.items()
        if any(x.curve.method in needed and runs.curve(name, x.curve) for x in own)
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
    _legend(figure, {label: handles[label] for label in order if label in handles})
    return figure


def _legend(figure: Any, handles: Mapping[str, Any]) -> None:
    """Write one legend for all panels, below them, in rows of about equal length."""
    entry = 0.75 + 0.085 * max(map(len, handles))  # inches: the line, its gaps, the letters
    rows = math.ceil(len(handles) / max(2, int(figure.get_figwidth() / entry)))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=math.ceil(len(handles) / rows),
        fontsize=11,
        frameon=False,
        handlelength=2.8,
    )


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
    rows = []
    for cell in runs.curve(dataset, line.curve).values():
        x, y = series(cell, axis.value), series(cell, accuracy)
        if x and y:
            found = estimate(y.values())
            rows.append((float(np.mean(list(x.values()))), found.mean, found.low, found.high))
    return np.array(rows).reshape(-1, 4)


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

    A few very low points at tiny sizes leave the picture rather than squash the rest. Random
    features, often far below, are made visible from their best point on if that takes no more than
    half of the height.
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
    looks.finish(ax)
    ax.tick_params(labelsize=10)
    ax.set_title(_title(runs, dataset), fontsize=11)


def _title(runs: Runs, dataset: str) -> str:
    found = next(
        result
        for method in runs.methods(dataset)
        for cell in runs.cells(dataset, method).values()
        for result in cell.values()
    )
    title = dataset_title(dataset)
    if found.n_train is None or found.n_features is None:
        return title
    return f"{title}: {found.n_train:,} train, {found.n_features:,} features"
