"""Draw and save figures in one style: colours, panels, axes."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nysplus._runtime.atomic_file import write_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is too pale here.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#767676"
#: Looks of curves that have no colour or marker of their own, in order.
COLORS = (VERMILLION, BLUE, GREEN, PURPLE, ORANGE, BLACK, SKY)
MARKERS = "o^sDvXP"
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1.5))
DPI = 150
#: Label of an axis on which `accuracy_axis` spaces accuracies.
ACCURACY_LABEL = "test accuracy (%), logarithmic in the error"


def new(
    count: int, height: float = 4.3, width: float = 5.8, columns: int = 2, **layout: Any
) -> tuple[Figure, list[Any]]:
    """Return an empty figure with panels of this size in inches, and its axes."""
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
    """Space errors in percent by their logarithm, and label them as accuracies."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    low, high = low / 1.1, high * 1.1
    ax.set_ylim(high, low)
    steps = [0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 80]
    inside = [step for step in steps if low <= step <= high]
    if len(inside) < 4:  # a short axis, on which equal steps are about equally long
        inside = [
            x
            for x in MaxNLocator(6, steps=(1, 2, 5, 10)).tick_values(low, high)
            if low <= x <= high
        ]
    # At most about eight, and never so few that the scale cannot be read.
    fixed_ticks(ax.yaxis, inside[:: max(1, len(inside) // 8 + 1)])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{100 - error:.4g}"))


def curve(
    ax: Any, x: Any, y: Any, label: str, color: str, marker: str, dashes: Any = "-", **style: Any
) -> Any:
    """Draw points with bars, ``xerr`` or ``yerr``, joined by a line; hollow markers if asked."""
    face = "white" if style.pop("hollow", False) else color
    look = {"color": color, "marker": marker, "markerfacecolor": face, "linestyle": dashes}
    size = 10 if marker == "*" else 7
    look |= {"linewidth": 1.6, "markersize": size, "elinewidth": 1.2, "capsize": 2.5}
    return ax.errorbar(x, y, label=label, **look | style)


def range_curve(ax: Any, rows: pd.DataFrame, x: str, y: str, label: str, *look: Any) -> None:
    """Draw medians of a column with bars from the smallest to the largest value."""
    middle, low, high = (rows.groupby(x)[y].agg(name) for name in ("median", "min", "max"))
    curve(ax, middle.index, middle, label, *look, yerr=(middle - low, high - middle))


def legend(figure: Any, handles: Mapping[str, Any], size: float = 11, place: str = "lower") -> None:
    """Write one legend for all panels, outside of them, in rows of about equal length."""
    entry = size * (0.08 + 0.0077 * max(map(len, handles)))  # inches: the line and the letters
    rows = math.ceil(len(handles) / max(2, int(figure.get_figwidth() / entry)))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc=f"outside {place} center",
        ncols=math.ceil(len(handles) / rows),
        fontsize=size,
        frameon=False,
        handlelength=2.8,
    )


def axes_titles(ax: Any, x: str, y: str, title: str = "") -> None:
    """Write the labels of both axes and the title of a panel, and set the grid."""
    ax.set_xlabel(x, fontsize=12)
    ax.set_ylabel(y, fontsize=12)
    ax.set_title(title, fontsize=13, fontweight="bold")
    finish(ax)


def fixed_ticks(axis: Any, ticks: Sequence[float]) -> None:
    """Show these ticks only."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())


def finish(ax: Any) -> None:
    """Set the grid, the size of tick labels, and two spines."""
    ax.grid(color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=11)
    ax.spines[["top", "right"]].set_visible(False)
