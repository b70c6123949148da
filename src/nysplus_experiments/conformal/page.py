"""Fill the tables of docs/results/conformal.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from nysplus_experiments.conformal.cost import FILE as COST_FILE
from nysplus_experiments.conformal.cost import Cost
from nysplus_experiments.conformal.coverage import CONFIDENCE, DRAWS, FILE, Coverage
from nysplus_experiments.conformal.peers import FILE as PEERS_FILE
from nysplus_experiments.conformal.peers import TITLES, Peer
from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.tables import MISSING, machine, markdown, percent

MODELS = {
    "landmarks": "100 landmarks",
    "disk": "100 landmarks, rows on disk",
    "budget": "16 kB",
    "refined": "4 kB, refined",
}
#: Coverages within so many points count as met.
POINTS = 1.0


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    path = results / "conformal" / FILE
    rows = records.frame(path, Coverage)
    peers = records.frame(results / "conformal" / PEERS_FILE, Peer)
    costs = records.frame(results / "conformal" / COST_FILE, Cost)
    return {
        "machine": f"*{machine(records.environment_of(path))}*",
        "summary": summary_table(rows),
        "novelty": novelty_table(rows),
        "peers": peers_table(peers),
        "cost": cost_table(costs),
        "classification": dataset_table(rows[rows["classes"] > 0], "classes in a set"),
        "regression": dataset_table(rows[rows["classes"] == 0], "width, deviations"),
    }


def by_dataset(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds, and the standard error that drawing rows alone would cause.

    Calibration rows and test rows are drawn; errors of seeds, and of the draws of calibration rows
    of a seed, are taken as independent.
    """
    variance = CONFIDENCE * (1 - CONFIDENCE) * 100**2
    rows = rows.assign(
        error=variance * (1 / rows["test_rows"] + 1 / rows["calibration_rows"]),
        own_error=variance
        * (1 / (rows["test_rows"] - rows["own_rows"]) + 1 / rows["own_rows"])
        / DRAWS,
        seeds=1,
    )
    groups = rows.groupby(["dataset", "model"], sort=False)
    mean = groups.mean(numeric_only=True)
    counts = groups["seeds"].sum()
    for name in ("error", "own_error"):
        mean[name] = np.sqrt(mean[name] / counts)
    return mean.assign(seeds=counts)


def _within(coverage: pd.Series, error: pd.Series | float) -> str:
    inside = (coverage - 100 * CONFIDENCE).abs() <= POINTS + 2 * error
    return f"{int(inside.sum())} of {len(inside)}"


def summary_table(rows: pd.DataFrame) -> str:
    """Count the datasets whose coverage is near the confidence, by model and kind of target."""
    means, lines = by_dataset(rows).reset_index(), []
    kinds = {"classes": means["classes"] > 0, "values": means["classes"] == 0}
    for model, title in MODELS.items():
        for kind, chosen in kinds.items():
            own = means[chosen & (means["model"] == model)]
            if own.empty:
                continue
            for after, c, e in (
                ("`fit`", own["coverage"], own["error"]),
                ("`calibrate`", own["own_coverage"], own["own_error"]),
            ):
                cells = [percent(c.mean()), percent(c.min()), percent(c.max()), percent(e.mean())]
                lines.append([title, kind, after, *cells, _within(c, 0.0), _within(c, e)])
    header = ("model", "targets", "after", "mean coverage, %", "lowest", "highest")
    more = ("mean standard error", "within 1 point", "within 1 point and 2 standard errors")
    return markdown((*header, *more), lines)


def novelty_table(rows: pd.DataFrame) -> str:
    """List means of the areas under ROC curves over the datasets, by model."""
    means, lines = by_dataset(rows).reset_index(), []
    for model, title in MODELS.items():
        own = means[means["model"] == model]
        cells = []
        for name in ("foreign", "swapped", "scaled"):
            known = own[name].dropna()
            share = f"{int((known >= 0.9).sum())} of {len(known)}"
            cells += [f"{known.mean():.3f}", share] if len(known) else [MISSING] * 2
        if len(own):
            lines.append([title, *cells, percent(own["false_alarms"].mean())])
    kinds = ("rows of another table", "columns in another order", "scaled rows of another table")
    header = [cell for kind in kinds for cell in (kind, "at least .9")]
    return markdown(("model", *header, "test rows above .99, %"), lines)


def peers_table(rows: pd.DataFrame) -> str:
    """List coverage, size and fit time of each method by dataset."""
    groups = rows.groupby(["dataset", "method"], sort=False)
    means, counts, lines = groups.mean(numeric_only=True), groups.size(), []
    for dataset in rows["dataset"].unique():
        for method, title in TITLES.items():
            if (dataset, method) in means.index:
                row = means.loc[(dataset, method)]
                seconds = f"{row['fit_cpu_seconds']:.2f}"
                cells = [percent(row["coverage"]), f"{row['size']:.3f}", seconds]
                cells.append(str(counts[(dataset, method)]))
                lines.append([_title(dataset), title, *cells])
    header = ("data", "method", "coverage, %", "size", "fit, processor s", "seeds")
    return markdown(header, lines)


def cost_table(rows: pd.DataFrame) -> str:
    """List processor seconds of fits with and without sets, intervals and novelty."""
    lines = []
    for _, row in rows.iterrows():
        seconds = [f"{row[name]:.3f}" for name in ("cpu_seconds", "cpu_seconds_without")]
        cells = [f"{row['rows']:,}", *seconds, f"{row['ratio']:.3f}"]
        lines.append([_title(row["dataset"]), *cells])
    return markdown(("data", "rows", "with, processor s", "without", "ratio"), lines)


def dataset_table(rows: pd.DataFrame, size: str) -> str:
    """List coverage and size after a fit and after `calibrate`, by dataset and model."""
    lines = []
    for (dataset, model), row in by_dataset(rows).iterrows():
        cells = [
            *(percent(row["coverage"]), percent(row["error"]), f"{row['size']:.2f}"),
            *(percent(row["own_coverage"]), f"{row['own_size']:.2f}", f"{row['seeds']:.0f}"),
        ]
        lines.append([_title(dataset), MODELS[model], *cells])
    header = ("data", "model", "coverage, %", "standard error", size)
    return markdown((*header, "after `calibrate`, %", size, "seeds"), lines)


def _title(dataset: str) -> str:
    return SOURCES[dataset].title if dataset in SOURCES else dataset


PAGE = Page("results/conformal.md", parts)
