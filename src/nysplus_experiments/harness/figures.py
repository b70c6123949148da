"""Draw and save figures in one style: colours, panels, axes."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nysplus._runtime.atomic_file import write_whole
from nysplus_experiments.harness.statistics import median_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is too pale here.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#767676"
#: Looks of curves that have no colour or marker of their own, in order.
COLORS = (VERMILLION, BLUE, GREEN, PURPLE, ORANGE, BLACK, SKY)
MARKERS = "o^sDvXP"
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1.5))
DPI = 150


def new(
    count: int, height: float = 4.3, width: float = 5.8, columns: int = 2, **layout: Any
) -> tuple[Figure, list[Any]]:
    """Return an empty figure, tied to no window and no global state, and its axes.

    Parameters
    ----------
    count : int
        Number of panels.
    height, width : float
        Of one panel, in inches.
    columns : int
        Panels side by side, at most.
    layout
        Options of matplotlib's ``ConstrainedLayoutEngine``, such as ``w_pad``.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError(
            'Figures need matplotlib, which is not installed. Run pip install "nysplus[plot]".'
        ) from error
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    engine = ConstrainedLayoutEngine(**layout)
    figure = Figure(figsize=(width * columns, height * rows), layout=engine, dpi=DPI)
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for unused in axes[count:]:
        unused.set_axis_off()
    return figure, axes[:count]


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG of 256 colours: a third of the bytes, and no different to the eye."""
    from PIL import Image  # comes with matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.set_dpi(DPI)
    figure.canvas.draw()
    pixels: Any = figure.canvas
    picture = Image.fromarray(np.asarray(pixels.buffer_rgba())).convert("RGB")
    content = io.BytesIO()
    flat = picture.quantize(256, dither=Image.Dither.NONE)
    flat.save(content, format="PNG", optimize=True, dpi=(DPI, DPI))
    write_whole(path, content.getvalue())
    return path


def log_ticks(axis: Any) -> None:
    """Make an axis logarithmic with plain numbers on it: 0.1, 1, 10, or 1, 2, 5 if it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    low, high = axis.get_data_interval()
    short = high / low < 60
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if short else (1,), numticks=12))
    axis.set_minor_locator(NullLocator() if short else LogLocator(subs=range(2, 10), numticks=12))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def accuracy_axis(ax: Any) -> None:
    """Space accuracies by the logarithm of the error: 98 and 99 % are as far apart as 80 and 90.

    The curves have errors in percent; ticks show accuracies.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(high * 1.1, low / 1.1)
    steps = [0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 80]
    inside = [step for step in steps if low / 1.1 <= step <= high * 1.1]
    # At most about eight, and never so few that the scale cannot be read.
    ax.yaxis.set_major_locator(FixedLocator(inside[:: max(1, len(inside) // 8 + 1)]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{100 - error:g}"))


def range_curve(
    ax: Any, values: dict[int, list[float]], label: str, color: str, marker: str, dashes: Any = "-"
) -> None:
    """Draw medians with bars from the smallest to the largest value, by the number below them."""
    x = sorted(values)
    middle, low, high = np.array([median_range(values[key]) for key in x]).T
    ax.errorbar(
        x,
        middle,
        yerr=(middle - low, high - middle),
        color=color,
        marker=marker,
        linestyle=dashes,
        linewidth=1.6,
        markersize=7,
        capsize=2.5,
        label=label,
    )


def finish(ax: Any) -> None:
    """Set the grid, the size of tick labels, and two spines."""
    ax.grid(color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=11)
    ax.spines[["top", "right"]].set_visible(False)
