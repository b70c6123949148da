"""Figures of docs/results/mechanism.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from nysplus_experiments.harness import figures
from nysplus_experiments.harness.statistics import Estimate, estimate
from nysplus_experiments.mechanism.rules import MARGIN, RULES
from nysplus_experiments.mechanism.tables import (
    HEADINGS,
    ErrorCell,
    gains,
    level_gains,
    levels,
    title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = tuple(zip(figures.COLORS, figures.MARKERS, strict=True))
_PANELS = {
    "pool": "rows of largest negative margin that\nn landmarks are drawn from",
    "gamma": "factor of the paper's γ\n(to the right: narrower kernel)",
    "rho": "ridge ρ (the paper's is 1e-5)\n",
}
_TITLES = {"pool": "Pool", "gamma": "Kernel width", "rho": "Ridge"}
# Gains are linear up to one point and logarithmic beyond: some are beyond minus ten.
_LINEAR = 1.0
_GAIN = "gain over uniform landmarks (points;\nlinear up to 1, logarithmic beyond)"
# Distances between the datasets of one level, and between the sizes of one rule.
_SHIFT, _STEP = 0.09, 0.26


def error_figure(cells: list[ErrorCell]) -> Figure:
    """Draw the gain against the rows that the pilot predicts wrong per landmark."""
    figure, (ax,) = figures.new(1, height=4.8, width=8.0)
    handles = {}
    for place, dataset in enumerate(dict.fromkeys(cell.dataset for cell in cells)):
        own = [cell for cell in cells if cell.dataset == dataset]
        color, marker = _LOOKS[place % len(_LOOKS)]
        x, means = [cell.ratio for cell in own], [cell.gain.mean for cell in own]
        bars = _bars([cell.gain for cell in own])
        name = title(dataset)
        handles[name] = figures.curve(ax, x, means, name, color, marker, yerr=bars)
    _gain_axis(ax)
    figures.log_ticks(ax.xaxis)
    ax.axvline(1, color=figures.GREY, linestyle=figures.DASHED, linewidth=1.2)
    label = "training rows that the pilot predicts wrong, per landmark"
    figures.axes_titles(ax, label, _GAIN)
    figures.legend(figure, handles)
    return figure


def condition_figure(rows: pd.DataFrame) -> Figure:
    """Draw the gain against the pool, the width and the ridge, one curve a dataset."""
    figure, axes = figures.new(len(_PANELS), height=4.4, width=4.9, columns=3)
    handles: dict[str, Any] = {}
    for ax, (factor, label) in zip(axes, _PANELS.items(), strict=True):
        found = level_gains(rows, factor)
        middle = (len(found) - 1) / 2
        for place, (dataset, values) in enumerate(found.items()):
            x = [position + _SHIFT * (place - middle) for position in range(len(values))]
            color, marker = _LOOKS[place % len(_LOOKS)]
            n = int(rows.loc[rows["dataset"] == dataset, "n"].iloc[0])
            name = f"{title(dataset)}, n = {n}"
            means = [value.mean for value in values]
            handles[name] = figures.curve(ax, x, means, name, color, marker, yerr=_bars(values))
        names = [HEADINGS.get(factor, {}).get(level, level) for level in levels(rows, factor)]
        ax.set_xticks(range(len(names)), [name.replace(" (Algorithm 1)", "") for name in names])
        _gain_axis(ax)
        figures.axes_titles(ax, label, _GAIN if ax is axes[0] else "", _TITLES[factor])
    figures.legend(figure, handles)
    return figure


def rule_figure(rows: pd.DataFrame) -> Figure:
    """Draw the gain of every rule, one panel a dataset and one marker a size."""
    frame = gains(rows)
    datasets = list(dict.fromkeys(frame["dataset"]))
    rules = [rule for rule in RULES if rule in set(frame["rule"])]
    height = 1.4 + 0.38 * len(rules)
    figure, axes = figures.new(len(datasets), height=height, width=5.2, columns=3)
    for ax, dataset in zip(axes, datasets, strict=True):
        own = frame[frame["dataset"] == dataset]
        for place, (n, part) in enumerate(own.groupby("n")):
            color, marker = _LOOKS[place]
            for row, rule in enumerate(rules):
                values = part.loc[part["rule"] == rule, "gain"]
                if len(values):
                    _dot(ax, estimate(values), row + _STEP * (place - 0.5), color, marker)
            ax.plot([], [], color=color, marker=marker, linestyle="none", label=f"n = {n}")
        ax.axvline(0, color=figures.BLACK, linewidth=1)
        ax.set_yticks(range(len(rules)), rules)
        ax.set_ylim(len(rules) - 0.5, -0.5)
        ax.legend(fontsize=10, frameon=True, loc="best")
        figures.axes_titles(ax, "gain over uniform landmarks (points)", "", title(dataset))
        _embolden(ax)
    return figure


def _dot(ax: Any, value: Estimate, y: float, color: str, marker: str) -> None:
    bars = _bars([value])
    style = {"color": color, "marker": marker, "markersize": 6, "capsize": 2.5}
    ax.errorbar([value.mean], [y], xerr=bars, linestyle="none", elinewidth=1.3, **style)


def _embolden(ax: Any) -> None:
    """Print the paper's rule in bold letters."""
    for label in ax.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == MARGIN else "normal")


def _bars(values: list[Estimate]) -> list[list[float]] | None:
    """Return the lengths of the bars on both sides; None where there is a single trial."""
    if not all(value.has_interval for value in values):
        return None
    below = [value.mean - value.low for value in values]
    return [below, [value.high - value.mean for value in values]]


def _gain_axis(ax: Any) -> None:
    """Draw a line at zero, and space gains linearly up to one point."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.axhline(0, color=figures.BLACK, linewidth=1)
    ax.set_yscale("symlog", linthresh=_LINEAR)
    ticks = (0, 0.25, 0.5, 1, 2, 5, 10, 20, 50)
    ax.yaxis.set_major_locator(FixedLocator(sorted({s * t for t in ticks for s in (-1, 1)})))
    ax.yaxis.set_minor_locator(NullLocator())
    signed = FuncFormatter(lambda x, _: f"{x:+g}".replace("-", "−") if x else "0")
    ax.yaxis.set_major_formatter(signed)
