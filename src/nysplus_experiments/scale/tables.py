"""Make the tables on rows larger than memory and on clusters, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.tables import MISSING, markdown, percent, short, size, spread
from nysplus_experiments.scale.cluster import ClusterFit
from nysplus_experiments.scale.out_of_core import OutOfCore
from nysplus_experiments.scale.passes import PassCount
from nysplus_experiments.scale.plan import BANDWIDTH, Constants, pass_counts, plan, total_seconds
from nysplus_experiments.scale.row_files import FEATURES
from nysplus_experiments.scale.stages import parse_column

TITLES = {"parquet": "Parquet", "memmap": "memory map", "array": "in memory"}
PLAN_ROWS, PLAN_WORKERS, PLAN_PARTITIONS = 1_000_000_000, 100, 1000
PLAN_SELECTION = "negative-margin"
#: Names of Dask's tasks by the content of their messages.
CONTENTS = {
    "summed": "sums of partitions",
    "joined": "sums of sums",
    "taken": "gathered rows",
    "bundle": "partitions",
    "Job": "broadcast of landmarks",
    "surveyed": "survey of partitions",
    "described": "shape of the first partition",
}


def costs(fits: Sequence[OutOfCore]) -> str:
    """List time, memory and accuracy of the fits to synthetic rows."""
    frame = records.frame(fits, OutOfCore)
    frame["source"] = pd.Categorical(frame["source"], list(TITLES))
    rows = [
        [
            *(f"{n_rows:,}", TITLES[source], f"`{selection}`", str(own["passes"].iloc[0])),
            spread(own["fit_seconds"]),
            spread(1e6 * own["fit_seconds"] / n_rows),
            spread(own["peak_mb"]),
            percent(own["accuracy"].median()),
        ]
        for (source, selection, n_rows), own in frame.groupby(
            ["source", "selection", "rows"], observed=True
        )
    ]
    header = ("rows", "from", "selection", "passes", "fit, s", "µs per row", "peak, MB")
    return markdown((*header, "accuracy, %"), rows)


def disk_ratios(fits: Sequence[OutOfCore]) -> str:
    """Compare the time of fits from disk with that in memory, within a repeat."""
    frame = records.frame(fits, OutOfCore)
    seconds = frame.set_index(["selection", "rows", "repeat", "source"])["fit_seconds"].unstack()
    ratios = seconds.div(seconds["array"], axis=0).drop(columns="array").dropna()
    rows = [
        [f"{n_rows:,}", f"`{selection}`", *(spread(own[s]) for s in ("parquet", "memmap"))]
        for (selection, n_rows), own in ratios.groupby(level=["selection", "rows"])
    ]
    return markdown(("rows", "selection", "Parquet / in memory", "memory map / in memory"), rows)


def covtype(fits: Sequence[OutOfCore]) -> str:
    """List the fits to CovType."""
    rows = [
        [
            *(f"{fit.rows:,}", TITLES[fit.source], f"`{fit.selection}`", str(fit.n)),
            *(short(fit.fit_seconds), short(fit.peak_mb), percent(fit.accuracy), fit.solver),
        ]
        for fit in fits
    ]
    header = ("rows", "from", "selection", "n", "fit, s", "peak, MB", "accuracy, %", "solver")
    return markdown(header, rows)


def stages(fits: Sequence[OutOfCore]) -> str:
    """List the stages of the largest fit from Parquet files with a pilot model."""
    own = [fit for fit in fits if (fit.source, fit.selection) == ("parquet", "negative-margin")]
    shown = max(own, key=lambda fit: (fit.rows, -fit.repeat))
    rows = [
        [
            *(stage.name, f"{stage.rows:,}", f"{stage.seconds:.1f}"),
            # Shorter stages are reported with too few digits.
            f"{stage.rows / stage.seconds / 1e6:.2f} million" if stage.seconds >= 1 else MISSING,
        ]
        for stage in parse_column(shown.stages)
    ]
    return markdown(("stage", "rows", "s", "rows per second"), rows)


def passes(counts: Sequence[PassCount]) -> str:
    """List the passes by selector and source, with ``alpha="auto"`` and with a number."""
    found = {count.key: count.passes for count in counts}

    def cell(source: str, selection: str) -> str:
        chosen, given = (found[source, selection, alpha] for alpha in ("auto", "number"))
        return str(chosen) if chosen == given else f"{chosen} / {given}"

    names = sorted({count.selection for count in counts})
    rows = [[f"`{name}`", *(cell(source, name) for source in TITLES)] for name in names]
    return markdown(("`selection`", "files, blocks", "memory map", "arrays"), rows)


def workers(fits: Sequence[ClusterFit]) -> str:
    """Compare one worker with two."""
    frame = records.frame([fit for fit in fits if fit.what == "fit"], ClusterFit)
    rows = []
    for selection, own in frame.groupby("selection", sort=False):
        seconds = own.pivot(index="repeat", columns="workers", values="fit_seconds")
        ratio = list((seconds[1] / seconds[2]).dropna())
        times = (spread(seconds[count]) for count in (1, 2))
        rows.append([f"`{selection}`", *times, spread(ratio), percent(own["accuracy"].median())])
    return markdown(("selection", "1 worker, s", "2 workers, s", "1 / 2", "accuracy, %"), rows)


def transfers(fits: Sequence[ClusterFit]) -> str:
    """List the messages of fits on two workers: medians, and the largest message."""
    two = [fit for fit in fits if (fit.what, fit.workers) == ("fit", 2)]
    frame = pd.DataFrame(
        {"selection": fit.selection, "repeat": fit.repeat, **sent._asdict()}
        for fit in two
        for sent in fit.list_transfers()
    )
    rows = []
    for selection, own in frame.groupby("selection", sort=False):
        # Fits without messages of a kind count with zeros.
        kinds = own.pivot(index="repeat", columns="kind").fillna(0)
        order = kinds["n_bytes"].max().sort_values(ascending=False, kind="stable").index
        for kind in order:
            words = " and ".join(CONTENTS.get(part, part) for part in kind.split("+"))
            messages, n_bytes = (kinds[c, kind].median() for c in ("messages", "n_bytes"))
            largest = kinds["largest", kind].max()
            numbers = (f"{messages:g}", write_bytes(n_bytes), write_bytes(largest))
            rows.append([f"`{selection}`", words, *numbers])
    return markdown(("selection", "content", "messages", "bytes per fit", "largest message"), rows)


def planned_constants(fits: Sequence[ClusterFit], known: Constants, reading: float) -> str:
    """List the constants of the formula."""
    n = next(fit.n for fit in fits if fit.what == "fit")
    rows = [
        ["t₁", "overhead of a task, per partition", f"{short(1e3 * known.task)} ms"],
        ["S", f"sum of moments at n = {n}, n² + n L + n + 2 L numbers", size(known.sum_bytes)],
        ["J", f"broadcast to every worker at n = {n}", size(known.broadcast_bytes)],
        ["B", "bandwidth between two machines, assumed", f"{BANDWIDTH * 8 / 1e9:g} Gbit/s"],
        ["", "work of the client, per fit", f"{short(known.client)} s"],
        ["", "reading Parquet files, to be added to t", f"{short(1e6 * reading)} µs"],
    ]
    return markdown(("symbol", "quantity", "value"), rows)


def planned_passes(fits: Sequence[ClusterFit], known: Constants) -> str:
    """List the predicted passes of a fit on a large cluster."""
    rows = []
    for p in _planned(fits, known, PLAN_ROWS, PLAN_WORKERS, PLAN_PARTITIONS):
        micro = 1e6 * known.seconds.get(p.kind, 0.0)
        rows.append(
            [
                *(p.kind, str(p.count), short(micro) if micro else MISSING),
                *map(short, (p.rows, p.tasks, p.tree, p.broadcast, p.count * p.seconds)),
                write_bytes(p.count * p.moved_bytes),
            ]
        )
    header = ("pass", "times", "t, µs", "rows, s", "tasks, s", "tree, s", "broadcast, s")
    return markdown((*header, "all passes, s", "moved, at most"), rows)


def planned_total(fits: Sequence[ClusterFit], known: Constants) -> str:
    """List predicted fits, and the measured time where there is one."""
    two = [f for f in fits if (f.what, f.workers, f.selection) == ("fit", 2, PLAN_SELECTION)]
    measured = statistics.median(fit.fit_seconds for fit in two)
    cases = (
        (two[0].rows, 2, two[0].partitions, f"{short(measured)} s"),
        (PLAN_ROWS, PLAN_WORKERS, PLAN_PARTITIONS, MISSING),
    )
    rows = []
    for n_rows, n_workers, partitions, clock in cases:
        made = _planned(fits, known, n_rows, n_workers, partitions)
        total = total_seconds(known, made)
        share = sum(p.count * p.rows for p in made) / total
        rows.append(
            [
                *(f"{n_rows:,}", write_bytes(n_rows * FEATURES * 8), str(n_workers)),
                *(f"{partitions:,}", f"{short(total)} s", clock, f"{100 * share:.0f} %"),
                write_bytes(sum(p.count * p.moved_bytes for p in made)),
            ]
        )
    header = ("rows", "bytes of rows", "workers", "partitions", "predicted", "measured")
    return markdown((*header, "share of work on rows", "moved, at most"), rows)


def _planned(fits: Sequence[ClusterFit], known: Constants, *size: int) -> list[Any]:
    own = next(fit for fit in fits if (fit.what, fit.selection) == ("fit", PLAN_SELECTION))
    return plan(known, pass_counts(own), *size)


def reading_seconds(fits: Sequence[OutOfCore]) -> float:
    """Return the seconds per row of reading Parquet files, from passes that only gather rows."""
    own = [fit for fit in fits if fit.source == "parquet"]
    largest = max(fit.rows for fit in own)
    found = [s for fit in own if fit.rows == largest for s in parse_column(fit.stages)]
    return statistics.median(s.seconds / s.rows for s in found if s.name.endswith(" rows"))


def write_bytes(count: float) -> str:
    """Write a number of bytes of any size."""
    if count >= 2**30:
        return f"{count / 2**30:.1f} GB"
    return size(count) if count >= 10 * 2**10 else f"{count / 2**10:.1f} kB" if count else "0"
