"""Fill the tables and draw the figure of docs/results/scale.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.figures import DASHED, DOTTED
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import machine
from nysplus_experiments.scale import tables
from nysplus_experiments.scale.cluster import ClusterFit
from nysplus_experiments.scale.out_of_core import OutOfCore
from nysplus_experiments.scale.passes import PassCount
from nysplus_experiments.scale.plan import constants
from nysplus_experiments.scale.row_files import FEATURES

LOOKS = {
    ("parquet", "negative-margin"): (figures.VERMILLION, "o", "-"),
    ("parquet", "kmeans"): (figures.VERMILLION, "s", DASHED),
    ("memmap", "negative-margin"): (figures.BLUE, "^", "-"),
    ("memmap", "kmeans"): (figures.BLUE, "D", DASHED),
}


def read_fits(folder: Path, data: str) -> list[OutOfCore]:
    """Return the last measurement of each fit: disturbed ones were measured again."""
    rows = records.read_last(folder / "out_of_core.csv", OutOfCore)
    return [row for row in rows if row.data == data]


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / "scale"
    fits = read_fits(folder, "synthetic")
    clustered = records.read_last(folder / "cluster.csv", ClusterFit)
    known = constants(clustered, tables.PLAN_SELECTION)
    return {
        "machine": versions(folder, [*fits, *clustered]),
        "costs": tables.costs(fits),
        "disk": tables.disk_ratios(fits),
        "covtype": tables.covtype(read_fits(folder, "covtype")),
        "stages": tables.stages(fits),
        "passes": tables.passes(records.read(folder / "out_of_core_passes.csv", PassCount)),
        "workers": tables.workers(clustered),
        "transfers": tables.transfers(clustered),
        "constants": tables.planned_constants(clustered, known, tables.reading_seconds(fits)),
        "plan": tables.planned_passes(clustered, known),
        "total": tables.planned_total(clustered, known),
    }


def versions(folder: Path, rows: Sequence[OutOfCore | ClusterFit]) -> str:
    """Return the machine, the versions and the disturbance by other processes."""
    known = records.environment_of(folder / "out_of_core.csv")
    clustered = records.environment_of(folder / "cluster.csv")
    others = max((row.others for row in rows if row.others is not None), default=0.0)
    return (
        f"*{machine(known).rstrip('.')}, pyarrow {known['pyarrow']}, Dask {clustered['dask']}; "
        f"{known['threads']} threads, `working_memory` {known['working_memory']} MiB. Other "
        f"processes took at most {others:.0f} % of the CPU during any fit.*"
    )


def rows_figure(folder: Path) -> Any:
    """Draw time and memory against rows."""
    fits = records.frame(read_fits(folder, "synthetic"), OutOfCore)
    figure, (left, right) = figures.new(2, height=4.6)
    sizes = sorted(set(fits["rows"]))
    for (source, selection), look in LOOKS.items():
        own = fits[(fits["source"] == source) & (fits["selection"] == selection)]
        label = f"{tables.TITLES[source]}, {selection}"
        figures.range_curve(left, own, "rows", "fit_seconds", label, *look)
        figures.range_curve(right, own, "rows", "peak_mb", label, *look)
    data_mb = [n_rows * FEATURES * 8 / 2**20 for n_rows in sizes]
    style = {"color": figures.GREY, "fontsize": 11, "textcoords": "offset points"}
    right.plot(sizes, data_mb, color=figures.GREY, linestyle=DOTTED, linewidth=1.6)
    right.annotate("size of the rows", (sizes[0], data_mb[0]), (16, -6), **style)
    for ax, label in ((left, "fit time (s)"), (right, "peak resident memory (MB)")):
        figures.log_ticks(ax.xaxis)
        figures.log_ticks(ax.yaxis)
        figures.fixed_ticks(ax.xaxis, sizes)
        figures.axes_titles(ax, "rows N", label)
    right.set_ylim(100, 2000)
    left.legend(fontsize=11, frameon=False, loc="upper left")
    return figure


def draw(results: Path, docs: Path) -> None:
    """Draw the figure of the page."""
    figures.save(rows_figure(results / "scale"), docs / "results" / "figures" / "too_big.png")


PAGE = Page("results/scale.md", parts, draw)
