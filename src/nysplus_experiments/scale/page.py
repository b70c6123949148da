"""Write docs/too_big.md and its figure from a template and the CSV files, and nothing else.

python benchmarks/too_big_page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import benchmark_figures as figures
import csv_rows
import pages
from benchmark_runs import percent, short, size, spread, table
from cluster import ClusterFit
from matplotlib.ticker import FixedLocator, NullLocator
from out_of_core import COUNTED_SELECTIONS, FEATURES, OutOfCore, Pass, PassCount, listed
from too_big_plan import (
    BANDWIDTH,
    PLAN_PARTITIONS,
    PLAN_ROWS,
    PLAN_SELECTION,
    PLAN_WORKERS,
    Constants,
    PlannedPass,
    constants,
    pass_counts,
    plan,
)

from nysplus import NystroemClassifier
from nysplus._solvers import DIRECT_MATRICES, direct_bytes

TEMPLATE = Path(__file__).with_name("too_big.template.md")

# What memory is to stay under, and how far time per row may grow: the goals of the measurement.
MEMORY_GOAL_MB = 1536
COVTYPE_GOAL_MB = 2048
MATRIX_SIZES = (500, 2000, 10_000)

TITLES = {"parquet": "Parquet", "memmap": "memory map", "array": "in memory"}
LOOKS = {
    ("parquet", "negative-margin"): (figures.VERMILLION, "o", "-"),
    ("parquet", "kmeans"): (figures.VERMILLION, "s", (0, (4, 2))),
    ("memmap", "negative-margin"): (figures.BLUE, "^", "-"),
    ("memmap", "kmeans"): (figures.BLUE, "D", (0, (4, 2))),
}
Lines = list[str]


# -- rows on disk --------------------------------------------------------------------------------


def latest(rows: Iterable[Any]) -> list[Any]:
    """Return the last measurement of each kind: what was disturbed is measured again."""
    return list({row.key: row for row in rows}.values())


def cells(fits: Iterable[OutOfCore]) -> dict[tuple[str, str, int], list[OutOfCore]]:
    """Return the fits by source, selection and number of rows, in the order of the page."""
    found: dict[tuple[str, str, int], list[OutOfCore]] = {}
    order = list(TITLES)
    for fit in sorted(fits, key=lambda f: (order.index(f.source), f.selection, f.rows, f.repeat)):
        found.setdefault((fit.source, fit.selection, fit.rows), []).append(fit)
    return found


def rows_figure(fits: Sequence[OutOfCore]) -> figures.Figure:
    """Draw time and memory against rows."""
    figure, (left, right) = figures.panels(2, height=4.6)
    grouped = cells(fits)
    sizes = sorted({rows for _, _, rows in grouped})
    for (source, selection), look in LOOKS.items():
        label = f"{TITLES[source]}, {selection}"
        own = {
            rows: fits for (s, c, rows), fits in grouped.items() if (s, c) == (source, selection)
        }
        for ax, column in ((left, "fit_seconds"), (right, "peak_mb")):
            values = {rows: [getattr(fit, column) for fit in fits] for rows, fits in own.items()}
            if values:
                figures.times_curve(ax, values, label, *look)
    data_mb = [rows * FEATURES * 8 / 2**20 for rows in sizes]
    right.plot(sizes, data_mb, color=figures.GREY, linestyle=(0, (1, 1.5)), linewidth=1.6)
    right.annotate(
        "the rows alone",
        *((sizes[0], data_mb[0]), (16, -6)),
        textcoords="offset points",
        color=figures.GREY,
        fontsize=11,
    )
    right.axhline(MEMORY_GOAL_MB, color=figures.BLACK, linewidth=1.2)
    right.annotate(
        "goal: below 1.5 GB",
        *((sizes[0], MEMORY_GOAL_MB), (0, 5)),
        textcoords="offset points",
        fontsize=11,
    )
    for ax, label in ((left, "fit time (s)"), (right, "peak resident memory (MB)")):
        figures.log_ticks(ax.xaxis)
        figures.log_ticks(ax.yaxis)
        ax.xaxis.set_major_locator(FixedLocator(sizes))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("rows N", fontsize=12)
        ax.set_ylabel(label, fontsize=12)
        figures.finish(ax)
    right.set_ylim(100, 2600)
    right.yaxis.set_major_locator(FixedLocator([100, 200, 500, 1000, 2000]))
    right.yaxis.set_minor_locator(NullLocator())
    left.legend(fontsize=11, frameon=False, loc="upper left")
    return figure


def cost_table(fits: Sequence[OutOfCore]) -> Lines:
    """Return the measurements, one line a cell."""
    return table(
        ("rows", "from", "selection", "passes", "fit, s", "µs a row", "peak, MB", "accuracy, %"),
        (
            [
                *(f"{rows:,}", TITLES[source], f"`{selection}`", str(own[0].passes)),
                spread([fit.fit_seconds for fit in own]),
                spread([fit.microseconds_per_row for fit in own]),
                spread([fit.peak_mb for fit in own]),
                percent(statistics.median(fit.accuracy for fit in own)),
            ]
            for (source, selection, rows), own in cells(fits).items()
        ),
    )


def row_time_ratio(fits: Sequence[OutOfCore], source: str, selection: str) -> float:
    """Return time per row at the largest size in units of that at the smallest, of medians."""
    grouped = cells(fits)
    sizes = sorted(rows for s, c, rows in grouped if (s, c) == (source, selection))
    low, high = (
        statistics.median(fit.microseconds_per_row for fit in grouped[source, selection, rows])
        for rows in (sizes[0], sizes[-1])
    )
    return high / low


def disk_ratio(fits: Sequence[OutOfCore], source: str, selection: str) -> list[float]:
    """Return times from disk in units of those in memory, of the same repeat."""
    by_key = {(f.source, f.selection, f.rows, f.repeat): f.fit_seconds for f in fits}
    return [
        by_key[source, selection, rows, repeat] / seconds
        for (s, c, rows, repeat), seconds in by_key.items()
        if (s, c) == ("array", selection) and (source, selection, rows, repeat) in by_key
    ]


def cost_text(fits: Sequence[OutOfCore]) -> str:
    """Say in words how time and memory grow, and what reading costs."""
    sizes = sorted({fit.rows for fit in fits})
    on_disk = [fit for fit in fits if fit.source != "array"]
    ratios = [row_time_ratio(on_disk, *look) for look in LOOKS]
    disk = [
        f"{spread(disk_ratio(fits, *look))} ({TITLES[look[0]]}, `{look[1]}`)"
        for look in LOOKS
        if disk_ratio(fits, *look)
    ]
    peak = max(fit.peak_mb for fit in on_disk)
    return (
        f"With {sizes[-1] // sizes[0]} times the rows, each row takes {min(ratios):.2f} to "
        f"{max(ratios):.2f} times as long. The largest peak is {peak:.0f} MB; the "
        f"rows alone are {sizes[-1] * FEATURES * 8 / 2**20:.0f} MB. From disk a fit to "
        f"{sizes[0]:,} rows takes this many times as long as in memory: {', '.join(disk)}."
    )


def covtype_text(fits: Sequence[OutOfCore]) -> str:
    """Say what CovType takes; nothing where it was not measured."""
    by_source = {fit.source: fit for fit in fits}
    if "memmap" not in by_source:
        return ""
    own = by_source["memmap"]
    text = (
        f"CovType, {own.rows:,} rows of 54 features, n = {own.n}, `{own.selection}`: "
        f"{own.fit_seconds:.0f} s and {own.peak_mb:.0f} MB from a memory map, "
        f"{percent(own.accuracy)} % of the test rows right (`{own.solver}`)"
    )
    if "array" in by_source:
        other = by_source["array"]
        text += (
            f"; {other.fit_seconds:.0f} s and {other.peak_mb:.0f} MB in memory, rows included, "
            f"{percent(other.accuracy)} % (`{other.solver}`)"
        )
    return text + "."


def stage_table(fit: OutOfCore) -> Lines:
    """Return what a fit has reported of its stages."""
    return table(
        ("stage", "rows", "s", "rows a second"),
        ([p.stage, f"{p.rows:,}", f"{p.seconds:.1f}", _speed(p)] for p in listed(fit.stages)),
    )


def _speed(stage: Pass) -> str:
    """Return the rows a second, in millions, if there are enough seconds to tell."""
    return f"{stage.rows / stage.seconds / 1e6:.2f} million" if stage.seconds >= 1 else "–"


def passes_table(counts: Sequence[PassCount]) -> Lines:
    """Return the passes of every selection and source."""
    found = {(c.source, c.selection, c.alpha): c.passes for c in counts}

    def cell(source: str, selection: str) -> str:
        chosen, given = (found[source, selection, alpha] for alpha in ("auto", "number"))
        return str(chosen) if chosen == given else f"{chosen} / {given}"

    return table(
        ("`selection`", "files, blocks", "memory map", "arrays"),
        (
            [f"`{name}`", *(cell(source, name) for source in ("parquet", "memmap", "array"))]
            for name in COUNTED_SELECTIONS
        ),
    )


# -- a cluster -----------------------------------------------------------------------------------


def speedups(fits: Sequence[ClusterFit], selection: str) -> list[float]:
    """Return time of one worker over time of two, of the same repeat."""
    times = {(f.workers, f.repeat): f.fit_seconds for f in fits if f.selection == selection}
    return [
        times[1, repeat] / times[2, repeat]
        for _, repeat in sorted(times)
        if _ == 1 and (2, repeat) in times
    ]


def speed_table(fits: Sequence[ClusterFit]) -> Lines:
    """Return times of one and two workers."""

    def times(selection: str, workers: int) -> str:
        own = [f.fit_seconds for f in fits if (f.selection, f.workers) == (selection, workers)]
        return spread(own)

    return table(
        ("selection", "1 worker, s", "2 workers, s", "1 / 2", "accuracy, %"),
        (
            [
                *(f"`{name}`", times(name, 1), times(name, 2), spread(speedups(fits, name))),
                percent(statistics.median(f.accuracy for f in fits if f.selection == name)),
            ]
            for name in dict.fromkeys(fit.selection for fit in fits)
        ),
    )


_CONTENTS = {
    "summed": "sums of partitions",
    "joined": "sums of sums",
    "taken": "rows asked for by number",
    "bundle": "partitions",
    "Job": "what is sent to all workers",
    "surveyed": "first looks",
    "described": "shape of the first partition",
}


def transfer_table(fits: Sequence[ClusterFit]) -> Lines:
    """Return what moved in the fits of two workers: per fit, medians, and the largest message."""
    lines = []
    for selection in dict.fromkeys(fit.selection for fit in fits):
        own = [fit for fit in fits if (fit.selection, fit.workers) == (selection, 2)]
        moved: dict[str, list[list[int]]] = {}
        for fit in own:
            for sent in fit.list_transfers():
                numbers = [sent.messages, sent.n_bytes, sent.largest]
                moved.setdefault(sent.kind, []).append(numbers)
        for kind, numbers in sorted(moved.items(), key=lambda item: -max(n[1] for n in item[1])):
            # fits in which nothing of the kind moved count with zeros
            padded = numbers + [[0, 0, 0]] * (len(own) - len(numbers))
            messages, n_bytes, largest = zip(*padded, strict=True)
            words = " and ".join(_CONTENTS.get(part, part) for part in kind.split("+"))
            lines.append(
                [
                    *(f"`{selection}`", words, f"{statistics.median(messages):g}"),
                    *(_bytes(statistics.median(n_bytes)), _bytes(max(largest))),
                ]
            )
    return table(("selection", "what", "messages", "bytes a fit", "largest message"), lines)


# -- the plan -----------------------------------------------------------------------------------


def plan_table(passes: Sequence[PlannedPass], known: Constants) -> Lines:
    """Return the plan, one line a kind of pass."""
    lines = []
    for p in passes:
        micro = 1e6 * known.seconds.get(p.kind, 0.0)
        lines.append(
            [
                *(p.kind, str(p.count), short(micro) if micro else "–", short(p.rows)),
                *(short(p.tasks), short(p.tree), short(p.broadcast), short(p.count * p.seconds)),
                _bytes(p.count * p.moved_bytes),
            ]
        )
    header = ("pass", "times", "t, µs", "rows, s", "tasks, s", "tree, s", "sent to all, s")
    return table((*header, "together, s", "moved, at most"), lines)


def reading_seconds(fits: Sequence[OutOfCore]) -> float:
    """Return what reading Parquet takes for a row, by the passes that do nothing else."""
    own = [fit for fit in fits if fit.source == "parquet"]
    largest = max(fit.rows for fit in own)
    stages = [s for fit in own if fit.rows == largest for s in listed(fit.stages)]
    return statistics.median(s.seconds / s.rows for s in stages if s.stage.endswith(" rows"))


def plan_text(fits: Sequence[ClusterFit], known: Constants, reading: float) -> str:
    """Say what the plan adds up to, and how far the formula is off where it can be checked."""
    two = [f for f in fits if (f.what, f.workers, f.selection) == ("fit", 2, PLAN_SELECTION)]
    counts = pass_counts(two[0])
    passes = plan(known, counts, PLAN_ROWS, PLAN_WORKERS, PLAN_PARTITIONS)
    total = sum(p.count * p.seconds for p in passes) + known.client
    moved = sum(p.count * p.moved_bytes for p in passes)
    check = plan(known, counts, two[0].rows, 2, two[0].partitions)
    expected = sum(p.count * p.seconds for p in check) + known.client
    measured = statistics.median(fit.fit_seconds for fit in two)
    rows_bytes = PLAN_ROWS * FEATURES * 8
    share = sum(p.count * p.rows for p in passes) / total
    return (
        f"With {short(known.client)} s at the client that is {total / 60:.0f} minutes and at most "
        f"{_bytes(moved)} moved, for {_bytes(rows_bytes)} of rows in {PLAN_PARTITIONS:,} "
        f"partitions of {PLAN_ROWS // PLAN_PARTITIONS:,} ({_bytes(rows_bytes / PLAN_WORKERS)} a "
        f"worker, if they are persisted). {100 * share:.0f} % of the time is work on the rows, "
        f"which more workers share. Rows that stay in Parquet files add {short(1e6 * reading)} µs "
        f"to t in every pass, as the gathers from files above show. For the {two[0].rows:,} rows "
        f"on two workers the formula says {short(expected)} s, the clock {short(measured)} s."
    )


def _bytes(count: float) -> str:
    """Write a number of bytes of any size.

    >>> _bytes(2_000_000_000), _bytes(3_000_000), _bytes(448), _bytes(0)
    ('1.9 GB', '2.9 MB', '0.4 kB', '0')
    """
    if count >= 2**30:
        return f"{count / 2**30:.1f} GB"
    return size(count) if count >= 10 * 2**10 else f"{count / 2**10:.1f} kB" if count else "0"


# -- the page ------------------------------------------------------------------------------------


def estimate_section() -> str:
    """Say how to ask beforehand, once estimators can tell."""
    if not hasattr(NystroemClassifier, "estimate_cost"):
        return ""
    return """## What it will take

```python
cost = NystroemClassifier(100, selection="kmeans").estimate_cost((1_000_000, 8))
print(f"{cost.seconds:.0f} s, {cost.bytes / 2**20:.0f} MiB")
```

Measured by small fits to rows of that shape, on this machine.

"""


def headline(fits: Sequence[OutOfCore]) -> str:
    """Return one sentence on the largest fit."""
    largest = max(fit.rows for fit in fits)
    own = [fit for fit in fits if fit.rows == largest and fit.selection == "kmeans"]
    best = min(own, key=lambda fit: fit.peak_mb)
    return (
        f"{best.rows:,} rows of {FEATURES} features, {best.n} landmarks, "
        f"{best.fit_seconds:.0f} s, {best.peak_mb:.0f} MB ([measured](#what-it-costs))."
    )


def how_measured(known: dict, clustered: dict, fits: Sequence[OutOfCore]) -> str:
    """Say how the numbers were made, and on what."""
    versions = ", ".join(
        f"{name} {known['versions'][name]}"
        for name in ("nysplus", "numpy", "scikit-learn")
        if name in known["versions"]
    )
    wrong = "two classes that no plane separates, 5 % of the labels wrong"
    return (
        f"Made by `benchmarks/out_of_core.py --covtype`, `benchmarks/cluster.py`, then "
        f"`benchmarks/too_big_page.py` on {known['cores']} cores of {known['processor']} "
        f"({known['system']}), {known['threads']} threads, `working_memory` "
        f"{known['working_memory']} MiB. Python {known['python']}, {versions}, pyarrow "
        f"{known['pyarrow']}, Dask {clustered['dask']}. Synthetic rows of {FEATURES} float64 "
        f"features, {wrong}, n = {fits[0].n}, everything else by default. Each fit is a process of "
        "its own, which never held the rows in memory (except in the lines that say so); its peak "
        "includes the interpreter and all libraries, and pages of a memory map. Files were dropped "
        "from the system's cache before each fit; later passes may find them there again. Median "
        "[smallest, largest] where there are repeats."
    )


def others_text(*groups: Sequence[Any]) -> str:
    """Say how much other processes took of the CPU at worst, and where nobody looked."""
    rows = [row for group in groups for row in group]
    known = [row.others for row in rows if row.others is not None]
    if not known:
        return ""
    which = "any fit" if len(known) == len(rows) else f"{len(known)} of the {len(rows)} fits"
    rest = "" if len(known) == len(rows) else "; during the rest it was not recorded"
    return f" Other processes took at most {max(known):.0f} % of the CPU during {which}{rest}."


def values(results: Path, figure: str) -> dict[str, str]:
    """Return what takes the place of each name in the template."""
    everything = latest(csv_rows.read(results / "out_of_core.csv", OutOfCore))
    fits = [fit for fit in everything if fit.data == "synthetic"]
    counts = csv_rows.read(results / "out_of_core_passes.csv", PassCount)
    clustered = latest(csv_rows.read(results / "cluster.csv", ClusterFit))
    if not (fits and counts and clustered):
        raise SystemExit(
            f"Measurements are missing in {results}. Run benchmarks/out_of_core.py and "
            "benchmarks/cluster.py first."
        )
    notes = [
        json.loads((results / name).read_text(encoding="utf-8"))
        for name in ("out_of_core.json", "cluster.json")
    ]
    real = [fit for fit in clustered if fit.what == "fit"]
    known = constants(clustered, PLAN_SELECTION)
    passes = plan(known, pass_counts(real[0]), PLAN_ROWS, PLAN_WORKERS, PLAN_PARTITIONS)
    shown = max(
        (fit for fit in fits if (fit.source, fit.selection) == ("parquet", "negative-margin")),
        key=lambda fit: (fit.rows, -fit.repeat),
    )
    from_files = [c.passes for c in counts if c.source == "parquet"]
    tables = {
        "passes_table": passes_table(counts),
        "stage_table": stage_table(shown),
        "cost_table": cost_table(fits),
        "speed_table": speed_table(real),
        "transfer_table": transfer_table(real),
        "plan_table": plan_table(passes, known),
    }
    return {name: "\n".join(lines) for name, lines in tables.items()} | {
        "headline": headline(fits),
        "direct_matrices": str(DIRECT_MATRICES),
        "matrices": ", ".join(f"{_bytes(direct_bytes(n))} for n = {n:,}" for n in MATRIX_SIZES),
        "estimate": estimate_section(),
        "stage_rows": f"{shown.rows:,}",
        "stage_n": str(shown.n),
        "stage_selection": shown.selection,
        "task_ms": short(1e3 * known.task),
        "how_measured": how_measured(*notes, fits) + others_text(everything, clustered),
        "figure": figure,
        "cost_text": cost_text(fits),
        "covtype_text": covtype_text([fit for fit in everything if fit.data == "covtype"]),
        "cluster_text": cluster_text(real),
        "transfer_text": transfer_text(real),
        "plan_rows": _power(PLAN_ROWS),
        "plan_workers": str(PLAN_WORKERS),
        "plan_n": str(real[0].n),
        "plan_text": plan_text(clustered, known, reading_seconds(fits)),
        "sum_size": size(known.sum_bytes),
        "broadcast_size": size(known.broadcast_bytes),
        "bandwidth": f"{BANDWIDTH * 8 / 1e9:g} Gbit/s",
        "fewest_passes": str(min(from_files)),
        "most_passes": str(max(from_files)),
    }


def cluster_text(fits: Sequence[ClusterFit]) -> str:
    """Say what the comparison of one and two workers is."""
    first = fits[0]
    return (
        f"{first.rows:,} persisted rows in {first.partitions} partitions, n = {first.n}, workers "
        "of one thread on this machine, a fresh cluster for each fit; the client and the scheduler "
        "share the cores with them. Ratios are of the same repeat."
    )


def transfer_text(fits: Sequence[ClusterFit]) -> str:
    """Compare what moved with the sums that have to."""
    first = fits[0]
    largest = max(
        sent.largest
        for fit in fits
        for sent in fit.list_transfers()
        if {"summed", "joined"} >= set(sent.kind.split("+"))
    )
    return (
        f"A sum of moments has n² + n L + n + 2 L numbers, {size(first.sum_bytes)}; the largest "
        f"message of sums, of which several may travel together, is {size(largest)}. Sent to every "
        f"worker before a pass: {size(first.broadcast_bytes)}. What workers have sent, to each "
        "other and towards the client, in fits on two of them:"
    )


def _power(count: int) -> str:
    """Write a power of ten.

    >>> _power(1_000_000_000)
    '10⁹'
    """
    digits = str(round(math.log10(count)))
    return "10" + digits.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def write_page(results: Path, docs: Path) -> Path:
    """Write the page and its figure; return the page."""
    fits = latest(csv_rows.read(results / "out_of_core.csv", OutOfCore))
    caption = (
        "Time and memory against rows. Both axes logarithmic; bars: smallest to largest of the "
        "repeats. The dotted line is what the rows alone would take."
    )
    picture = f"![{caption.split('.')[0]}](figures/too_big.png)\n\n*{caption}*"
    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values(results, picture))
    synthetic = [fit for fit in fits if fit.data == "synthetic"]
    figures.save(rows_figure(synthetic), docs / "figures" / "too_big.png")
    return pages.write(docs / "too_big.md", filled)


if __name__ == "__main__":
    pages.main(__doc__, write_page)
