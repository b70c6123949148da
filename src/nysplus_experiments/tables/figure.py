"""Figure of the benchmark of bytes: mean ranks and scores of all systems against the size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nysplus_experiments.harness import figures
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.tables import fits
from nysplus_experiments.tables.comparison import (
    OURS,
    Benchmark,
    critical_difference,
    normalised,
    ranks,
)
from nysplus_experiments.tables.summaries import title_of


class Look(NamedTuple):
    """Colour, marker and dashes of a system."""

    color: str
    marker: str
    dashes: Any = "-"


_OTHERS = Look(figures.GREY, "P", figures.DOTTED)
LOOKS = {
    OURS: Look(figures.VERMILLION, "o"),
    "lightgbm": Look(figures.BLUE, "^"),
    "xgboost": Look(figures.SKY, "v"),
    "catboost": Look(figures.GREEN, "s"),
    "svm": Look(figures.PURPLE, "D", figures.DASHED),
    "nystroem": Look(figures.ORANGE, "X", figures.DASHED),
    "mlp": Look(figures.BLACK, "*", figures.DASHED),
    "tree": Look(figures.BLUE, "<", figures.DOTTED),
    "linear": Look(figures.BLACK, "d", figures.DOTTED),
}


def byte_figure(bench: Benchmark) -> Figure:
    """Draw mean normalised scores on the left and mean ranks on the right, against the size."""
    figure, (left, right) = figures.new(2, height=5.8, width=6.4)
    share = normalised(bench)
    handles: dict[str, Any] = {}
    means = pd.DataFrame({size: ranks(bench, size).mean() for size in fits.SIZES})
    with_models = {size: bench.with_models(size) for size in fits.SIZES}
    x = np.arange(len(fits.SIZES))
    shifts = np.linspace(-0.12, 0.12, len(bench.compared))  # bars stand beside each other
    for name, shift in zip(bench.compared, shifts, strict=True):
        look = LOOKS.get(name, _OTHERS)
        width: dict[str, Any] = {
            "linewidth": 2.8 if name == OURS else 1.4,
            "zorder": 4 if name == OURS else 3,
        }
        found = [estimate(share.xs(size, level="size")[name]) for size in fits.SIZES]
        shown = np.array([name in with_models[size] for size in fits.SIZES])
        y = np.where(shown, [value.mean for value in found], np.nan)
        half = np.nan_to_num([value.high - value.mean for value in found])
        curve = figures.curve(left, x + shift, y, title_of(name), *look, yerr=half, **width)
        handles[title_of(name)] = curve
        rank = np.where(shown, means.loc[name], np.nan)
        figures.curve(right, x, rank, title_of(name), *look, **width)
    _critical_difference(right, bench, len(x))
    right.invert_yaxis()
    for ax in (left, right):
        figures.fixed_ticks(ax.xaxis, list(x))
        ax.set_xticklabels(fits.SIZES)
    figures.axes_titles(
        *(left, "model size at most", "share of the best model's gain over a constant"),
        "Score: mean over tables, 95 % interval",
    )
    figures.axes_titles(right, "model size at most", "mean rank (1 is best)", "Rank at each size")
    figures.legend(figure, handles, 12, "upper")
    return figure


def _critical_difference(ax: Any, bench: Benchmark, n_sizes: int) -> None:
    """Draw a bar as long as the difference of mean ranks that is significant."""
    needed = critical_difference(len(bench.compared), len(bench.tables))
    low = 1.2
    x = n_sizes - 0.35
    ax.errorbar([x], [low + needed / 2], yerr=needed / 2, color=figures.BLACK, capsize=5)
    ax.set_xlim(-0.4, n_sizes + 0.35)
    ax.annotate(
        "critical\ndifference", (x, low + needed / 2), (5, 0), textcoords="offset points",
        va="center", fontsize=9.5,
    )  # fmt: skip
