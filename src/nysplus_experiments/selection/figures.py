"""Figures of the comparison of landmark selectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from nysplus_experiments.harness import figures
from nysplus_experiments.harness.statistics import Estimate
from nysplus_experiments.selection.comparison import Comparison

# Colour and marker of each size, smallest first; more sizes start over.
_COLORS = (figures.ORANGE, figures.BLUE, figures.GREEN, figures.PURPLE)
_LOOKS = tuple(zip(_COLORS, "os^D", strict=True))
_STEP = 0.24  # between the sizes of a rule, where rules are 1 apart
# Losses and gains are linear up to this many points and logarithmic beyond: most are below one
# point, and some are above thirty.
_LINEAR = 1.0
_TICKS = (0, 0.5, 1, 2, 5, 10, 20, 50)


def loss_figure(compared: Comparison) -> Figure:
    """Draw the loss of every rule in every cell, and its mean; one row a rule, best on top."""
    figure, ax, rules = _rows(compared)
    losses = compared.losses
    jitter = np.random.RandomState(0)  # cells of equal loss lie beside each other
    for row, rule in enumerate(rules):
        own = losses[:, compared.rules.index(rule)]
        for offset, n, (color, marker) in _sizes(compared):
            x = own[[cell.n == n for cell in compared.cells]]
            y = row + offset + jitter.uniform(-0.08, 0.08, len(x))
            style = {"s": 22, "alpha": 0.55, "linewidths": 0}
            ax.scatter(x, y, color=color, marker=marker, **style)
        _point(ax, compared.mean_loss(rule), row, figures.BLACK, "D", "white")
    ax.set_xlim(left=-0.05)
    _axis_label(ax, "loss against the best selector for a dataset and a kernel width")
    mean = Line2D([], [], color=figures.BLACK, marker="D", markerfacecolor="white", markersize=7)
    _legend(ax, compared, (mean, "mean, 95 % interval over trials"))
    return figure


def gain_figure(compared: Comparison, over: str = "uniform") -> Figure:
    """Draw the mean gain over a rule by size, with intervals over trials and over datasets."""
    figure, ax, rules = _rows(compared, without=over)
    for row, rule in enumerate(rules):
        for offset, n, (color, marker) in _sizes(compared):
            part = compared.part(n=n)
            wide = part.gain_over_datasets(rule, over)
            if wide.has_interval:
                ax.plot((wide.low, wide.high), [row + offset] * 2, color=color, linewidth=1)
            _point(ax, part.gain(rule, over), row + offset, color, marker, color)
    ax.axvline(0, color=figures.BLACK, linewidth=1)
    _axis_label(ax, f"gain over {over}")
    thick = Line2D([], [], color=figures.GREY, linewidth=4)
    thin = Line2D([], [], color=figures.GREY, linewidth=1)
    bars = ((thick, "95 % over trials"), (thin, "95 % over datasets"))
    _legend(ax, compared, *bars)
    return figure


def _rows(compared: Comparison, without: str = "") -> tuple[Figure, Any, list[str]]:
    """Return a figure with one row a rule, its axes, and the rules from top to bottom."""
    rules = [rule for rule in compared.ranked() if rule != without]
    figure, (ax,) = figures.new(1, height=1.6 + 0.55 * len(rules), width=9)
    ax.set_xscale("symlog", linthresh=_LINEAR, linscale=1.2)
    ticks = sorted({sign * tick for tick in _TICKS for sign in (-1, 1)})
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    ax.set_yticks(range(len(rules)), rules)
    ax.set_ylim(len(rules) - 0.5, -0.5)
    figures.finish(ax)
    ax.tick_params(axis="y", labelsize=12, length=0)
    for label in ax.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == "auto" else "normal")
    return figure, ax, rules


def _axis_label(ax: Any, text: str) -> None:
    scale = f"linear up to {_LINEAR:g}, logarithmic beyond"
    ax.set_xlabel(f"{text}\n(points of accuracy; {scale})", fontsize=12)


def _sizes(compared: Comparison) -> list[tuple[float, int, tuple[str, str]]]:
    """Return the vertical offset, the size, and the colour and marker of each size."""
    sizes = compared.sizes
    middle = (len(sizes) - 1) / 2
    return [(_STEP * (i - middle), n, _LOOKS[i % len(_LOOKS)]) for i, n in enumerate(sizes)]


def _point(ax: Any, value: Estimate, y: float, color: str, marker: str, face: str) -> None:
    if value.has_interval:
        ends = (value.low, value.high)
        ax.plot(ends, (y, y), color=color, linewidth=4, solid_capstyle="butt", zorder=3)
    style = {"markersize": 7, "markerfacecolor": face, "zorder": 4}
    ax.plot(value.mean, y, color=color, marker=marker, linestyle="none", **style)


def _legend(ax: Any, compared: Comparison, *more: tuple[Line2D, str]) -> None:
    """Put the legend above the axes."""
    entries = [
        (Line2D([], [], color=color, marker=marker, linestyle="none"), f"n = {n}")
        for _, n, (color, marker) in _sizes(compared)
    ]
    handles, labels = zip(*entries, *more, strict=True)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 5, "frameon": False}
    ax.legend(handles, labels, fontsize=11, columnspacing=1.4, handletextpad=0.4, **place)
