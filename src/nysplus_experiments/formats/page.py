"""Fill the tables of docs/results/formats.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.formats.compress import Compression
from nysplus_experiments.formats.exports import STORAGE, Export
from nysplus_experiments.harness import records
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.tables import MISSING, machine, markdown, percent, short, spread


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / "formats"
    exports = records.frame(folder / "exports.csv", Export)
    compressed = records.frame(folder / "compress.csv", Compression)
    merging = compressed["dataset"].str.endswith("merging")
    return {
        "machine": f"*{machine(records.environment_of(folder / 'exports.csv'))}*",
        "exports": export_table(exports),
        "accuracy": accuracy_table(exports),
        "compress": compress_table(compressed[~merging]),
        "merging": compress_table(compressed[merging]),
    }


def export_table(rows: pd.DataFrame) -> str:
    """List bytes, times and changes of scores by dataset and format, types side by side."""
    columns = {
        "bytes": ("kB", lambda n_bytes: f"{n_bytes / 1024:.1f}"),
        "batch_us": ("µs per row, all at once", short),
        "single_us": ("µs per row, one at a time", short),
    }
    lines = []
    for (dataset, name), own in rows.groupby(["dataset", "format"], sort=False):
        by_storage = own.set_index("storage").reindex(list(STORAGE))
        cells = [
            MISSING if pd.isna(value) else write(value)
            for column, (_, write) in columns.items()
            for value in by_storage[column]
        ]
        change = own["change"].max()
        cells.append(MISSING if pd.isna(change) else f"{change:.0e}" if change else "0")
        lines.append([SOURCES[dataset].title, name, *cells])
    header = [f"{title}: {storage}" for title, _ in columns.values() for storage in STORAGE]
    return markdown(["data", "format", *header, "largest change of a score"], lines)


def accuracy_table(rows: pd.DataFrame) -> str:
    """List the test accuracy by dataset and type."""
    found = rows.groupby(["dataset", "storage"], sort=False)["accuracy"].first().unstack()
    lines = [
        [SOURCES[dataset].title, *(percent(row[storage]) for storage in STORAGE)]
        for dataset, row in found.iterrows()
    ]
    return markdown(["data", *(f"accuracy in {storage}, %" for storage in STORAGE)], lines)


def compress_table(rows: pd.DataFrame) -> str:
    """List size, accuracy, error of the scores and time: medians over the repeats."""
    lines = []
    for (dataset, way), own in rows.groupby(["dataset", "way"], sort=False):
        name, _, part = str(dataset).partition(" ")
        low = own[["n", "n_bytes"]].quantile(interpolation="lower").astype(int)
        middle = own[["accuracy", "error", "seconds"]].median()
        accuracy = spread(own["accuracy"], percent)
        error = MISSING if pd.isna(middle["error"]) else f"{middle['error']:.3f}"
        title = f"{DATASETS[name].title} SVC" if part == "svc" else DATASETS[name].title
        sizes = (str(low["n"]), f"{low['n_bytes']:,}")
        lines.append([title, str(way), *sizes, accuracy, error, f"{middle['seconds']:.1f}"])
    header = ["data", "model", "n", "bytes", "accuracy, %", "error of scores", "CPU s"]
    if rows["error"].isna().all():
        header.remove("error of scores")
        lines = [[*line[:5], line[6]] for line in lines]
    return markdown(header, lines)


PAGE = Page("results/formats.md", parts)
