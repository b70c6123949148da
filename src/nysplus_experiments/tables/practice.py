"""Tables on fit times, CSV files and exported models, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.tables import MISSING, markdown, percent, short
from nysplus_experiments.tables import csv_files, exports, seconds
from nysplus_experiments.tables.summaries import signed

#: Methods of which seconds are divided by those of LightGBM: with and without a search.
RATIOS = ("64kB", "fast")


def read_seconds(results: Path) -> pd.DataFrame:
    """Return the fits that were timed, the last of each key."""
    rows = records.read_last(results / "tables" / seconds.FILE, seconds.TimedFit)
    return records.frame(rows, seconds.TimedFit)


def times(timed: pd.DataFrame) -> str:
    """Return the seconds of fits on each table, their ratios to LightGBM, and the medians."""
    by_table = timed.groupby(["table", "method"])["fit_cpu_seconds"].mean().unstack()
    wide = by_table.reindex(index=list(seconds.TABLES), columns=list(seconds.METHODS))
    ratios = wide[list(RATIOS)].div(wide[seconds.LIGHTGBM], axis=0)
    numbers = pd.concat([wide, ratios], axis=1)
    rows = timed.groupby("table")["rows"].first()
    lines = [
        [table, f"{rows[table]:,}" if table in rows else MISSING, *map(short, numbers.loc[table])]
        for table in seconds.TABLES
    ]
    lines.append(["median", MISSING, *map(short, numbers.median())])
    titles = [f"{seconds.METHODS[name].title}, s" for name in wide]
    against = [f"{seconds.METHODS[name].title} / LightGBM" for name in ratios]
    return markdown(("table", "training rows", *titles, *against), lines)


def read_exports(results: Path) -> pd.DataFrame:
    """Return the checks of exported models, the last of each key."""
    rows = records.read_last(results / "tables" / exports.FILE, exports.ExportCheck)
    return records.frame(rows, exports.ExportCheck)


def agreement(found: pd.DataFrame) -> str:
    """Return how far each exported format is from Python, over all tables."""
    lines = []
    for name, own in found.groupby("format", sort=False):
        worst = own.loc[own["difference"].idxmax()]
        lines.append(
            [
                *(str(name), str(len(own)), f"{own['rows'].sum():,}", f"{own['gaps'].sum():,}"),
                f"{own['unseen'].sum():,}",
                f"{worst['difference']:.1e} ({worst['table']})",
                str(own["other_labels"].sum()),
            ]
        )
    header = ("format", "tables", "rows", "gaps", "unseen levels", "largest difference")
    return markdown((*header, "other labels"), lines)


def read_csv_fits(results: Path) -> pd.DataFrame:
    """Return the fits on CSV files, the last of each key."""
    rows = records.read_last(results / "tables" / csv_files.FILE, csv_files.CsvFit)
    return records.frame(rows, csv_files.CsvFit)


def csv(found: pd.DataFrame) -> str:
    """Return the raw frame against the hand-made pipeline with the best mean test accuracy."""
    lines = []
    for table in csv_files.TABLES:
        own = found[found["table"] == table]
        means = own.pivot(index="seed", columns="pipeline", values="accuracy").mean()
        hand_made = means.drop(csv_files.RAW, errors="ignore")
        raw = means.get(csv_files.RAW)
        if hand_made.empty:
            continue
        best = hand_made.max()
        cells = [MISSING, MISSING] if raw is None else [percent(raw), signed(raw - best)]
        lines.append([table, cells[0], str(hand_made.idxmax()), percent(best), cells[1]])
    header = ("table", "raw frame, %", "best pipeline", "its accuracy, %", "difference, points")
    return markdown(header, lines)


def pipelines(found: pd.DataFrame) -> str:
    """Return the mean accuracy of every pipeline on the rows of CSV files."""
    names: Sequence[str] = (csv_files.RAW, *csv_files.PIPELINES)
    means = found.groupby(["table", "pipeline"])["accuracy"].mean().unstack()
    texts = means.reindex(columns=list(names)).map(percent)
    lines = [[name, *texts.loc[name]] for name in csv_files.TABLES if name in texts.index]
    return markdown(("table", *names), lines)
