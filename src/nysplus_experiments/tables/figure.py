"""Figure of the margins over LightGBM, one line a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from nysplus_experiments.harness import figures
from nysplus_experiments.tables.comparison import (
    DESIGN,
    LIGHTGBM_BETTER,
    Opponent,
    by_method,
    by_table,
    is_regression,
    margins,
)
from nysplus_experiments.tables.peers import CATBOOST, XGBOOST

_OTHERS = Opponent("better of XGBoost and CatBoost", (XGBOOST, CATBOOST))
_LINE = 0.38  # inches a table
_LINEAR = 2.0  # points of accuracy up to which the axis is linear
# Ticks that have room beside each other.
_POINTS: tuple[float, ...] = (-50, -20, -5, -2, -1, 0, 1, 2, 5, 20)
_RATIOS: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4)
_WIDE_RATIOS: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5)


class Look(NamedTuple):
    """How the margins of a method are drawn."""

    label: str
    color: str
    marker: str
    hollow: bool = False


LOOKS = {
    "64kB": Look("nysplus, 64 kB", figures.VERMILLION, "o"),
    "4kB": Look("nysplus, 4 kB", figures.ORANGE, "s", True),
    _OTHERS.title: Look(_OTHERS.title, figures.BLUE, "D", True),
}


def margin_figure(found: pd.DataFrame) -> Figure:
    """Draw differences of accuracy on the left and ratios of errors on the right."""
    wide = by_method(found)
    wide = wide.assign(**{_OTHERS.title: _OTHERS.scores(wide)})
    theirs = LIGHTGBM_BETTER.scores(wide)
    drawn = {name: margins(wide[name], theirs) for name in LOOKS if name in wide}
    drawn = {name: margin for name, margin in drawn.items() if len(margin)}
    tables = {str(table) for margin in drawn.values() for table in margin.index.unique("table")}
    longest = max(sum(is_regression(t) == kind for t in tables) for kind in (False, True))
    figure, axes = figures.new(2, height=_LINE * longest + 1.6)
    handles: dict[str, Any] = {}
    for ax, regression in zip(axes, (False, True), strict=True):
        own = {
            name: margin[[is_regression(t) == regression for t in margin.index.get_level_values(0)]]
            for name, margin in drawn.items()
        }
        handles |= _panel(ax, own, regression)
    figure.supxlabel("* tables on which the method was designed", fontsize=12)
    figures.legend(figure, handles, 14, "upper")
    return figure


def _panel(ax: Any, drawn: dict[str, pd.Series], regression: bool) -> dict[str, Any]:
    """Draw one kind of tables, the best at the top; return the handles of the legend."""
    first = by_table(next(iter(drawn.values())))
    order = list(first.sort_values(ascending=not regression).index)  # from below
    handles = {}
    for shift, (name, margin) in zip((0.0, -0.3, 0.3), drawn.items(), strict=False):
        means = by_table(margin)
        means = means[[table for table in order if table in means.index]]
        low, high = (margin.groupby(level="table").agg(f)[means.index] for f in ("min", "max"))
        y = [order.index(table) + shift for table in means.index]
        look = LOOKS[name]
        style: dict[str, Any] = {
            "hollow": look.hollow,
            "linewidth": 0,
            "markersize": 6,
            "zorder": 3,
        }
        bars = ((means - low).clip(lower=0), (high - means).clip(lower=0))
        handles[look.label] = figures.curve(ax, means, y, *look[:3], xerr=bars, **style)
    ax.axvline(1.0 if regression else 0.0, color=figures.BLACK, linewidth=1.2, zorder=1)
    ax.set_yticks(range(len(order)), [f"{t} *" if t in DESIGN else t for t in order])
    ax.set_ylim(-0.7, len(order) - 0.3)
    text = "RMSE / RMSE of LightGBM\n(logarithmic; left is better)"
    if not regression:
        text = f"points of accuracy above LightGBM\n(linear up to ±{_LINEAR:g}, logarithmic beyond)"
    figures.finish(ax)
    _margin_axis(ax, regression)
    ax.set_title("Regression" if regression else "Classification", fontsize=15, fontweight="bold")
    ax.set_xlabel(text, fontsize=14)
    ax.tick_params(labelsize=12.5)  # legible at half the size
    return handles


def _margin_axis(ax: Any, regression: bool) -> None:
    """Space ratios by their logarithm, and large differences too."""
    if regression:
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ticks = _WIDE_RATIOS if high > 3 * low else _RATIOS
    else:
        ax.set_xscale("symlog", linthresh=_LINEAR)
        ax.set_xlim(*(1.15 * limit for limit in ax.get_xlim()))  # marks at the ends stay whole
        ticks = _POINTS
    low, high = ax.get_xlim()
    figures.fixed_ticks(ax.xaxis, [tick for tick in ticks if low <= tick <= high])
    sign = "" if regression else "+"
    write = FuncFormatter(lambda x, _: f"{x:{sign if x else ''}g}".replace("-", "−"))
    ax.xaxis.set_major_formatter(write)
