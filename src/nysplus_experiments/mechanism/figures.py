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
# Ticks of the errors of the pilot per landmark.
_RATIOS = (0.2, 0.5, 1, 2, 5, 10, 20)
# Distances between the datasets of one level, and between the sizes of one rule.
_SHIFT, _STEP = 0.09, 0.26


def error_figure(cells: list[ErrorCell]) -> Figure:
    """Draw the gain against the rows that the pilot predicts wrong per landmark, by dataset."""
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    figure, axes = figures.new(len(datasets), height=3.0, width=4.3, columns=3)
    for place, (ax, dataset) in enumerate(zip(axes, datasets, strict=True)):
        own = [cell for cell in cells if cell.dataset == dataset]
        x, means = [cell.ratio for cell in own], [cell.gain.mean for cell in own]
        bars = _bars([cell.gain for cell in own])
        figures.curve(ax, x, means, "", *_LOOKS[place % len(_LOOKS)], "none", yerr=bars)
        _gain_axis(ax)
        ax.set_xscale("log")
        ax.set_xlim(_RATIOS[0], 2 * _RATIOS[-1])
        figures.fixed_ticks(ax.xaxis, _RATIOS)
        ax.set_xticklabels([f"{ratio:g}" for ratio in _RATIOS])
        ax.axvline(1, color=figures.GREY, linestyle=figures.DASHED, linewidth=1.2)
        figures.axes_titles(ax, "wrong rows per landmark", "gain (points)", title(dataset))
    low, high = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(low), max(high))
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
    height = 1.3 + 0.36 * len(RULES)
    figure, axes = figures.new(len(datasets), height=height, width=5.2, columns=3)
    handles: dict[str, Any] = {}
    for ax, dataset in zip(axes, datasets, strict=True):
        own = frame[frame["dataset"] == dataset]
        rules = [rule for rule in RULES if rule in set(own["rule"])]
        sizes = sorted(set(own["n"]))
        for place, (n, words) in enumerate(zip(sizes, ("smaller n", "larger n"), strict=True)):
            part = own[own["n"] == n].groupby("rule")["gain"]
            y = [row + _STEP * (place - 0.5) for row in range(len(rules))]
            values = [estimate(part.get_group(rule)) for rule in rules]
            handles[words] = _dots(ax, values, y, *_LOOKS[place])
        ax.axvline(0, color=figures.BLACK, linewidth=1)
        ax.set_yticks(range(len(rules)), rules)
        ax.set_ylim(len(rules) - 0.5, -0.5)
        name = f"{title(dataset)}, n = {' and '.join(map(str, sizes))}"
        figures.axes_titles(ax, "gain over uniform landmarks (points)", "", name)
        _embolden(ax)
    figures.legend(figure, handles)
    return figure


def _dots(ax: Any, values: list[Estimate], y: list[float], color: str, marker: str) -> Any:
    style = {"color": color, "marker": marker, "markersize": 6, "capsize": 2.5, "elinewidth": 1.3}
    means = [value.mean for value in values]
    return ax.errorbar(means, y, xerr=_bars(values), linestyle="none", **style)


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
