"""Fit a random tenth of the benchmark again, and compare the scores."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.harness.tables import MISSING, markdown
from nysplus_experiments.tables import comparison, fits
from nysplus_experiments.tables.fits import TableFit, in_single_threads
from nysplus_experiments.tables.summaries import signed, title_of
from nysplus_experiments.tables.systems import all_systems

FILE, SHARE = "again.csv", 0.1
KEY = list(TableFit.key_columns)


def drawn(
    found: pd.DataFrame, done: pd.DataFrame, seed: int, share: float
) -> list[tuple[str, str, str, int]]:
    """Return the keys of fits to make again, those of a split one after the other.

    With those made again before they are a random share of the fits, also where a benchmark has
    grown since.
    """
    keys, before = (set(rows[KEY].itertuples(index=False, name=None)) for rows in (found, done))
    left = sorted(keys - before)
    n_more = max(0, math.ceil(share * len(keys)) - len(keys & before))
    chosen = np.random.default_rng(seed).permutation(len(left))[:n_more]
    return sorted((left[i] for i in chosen), key=lambda key: (key[3], key[0], key[1]))


def _made_again(results: Path) -> pd.DataFrame:
    return records.frame(records.read_last(results / "tables" / FILE, TableFit), TableFit)


def read(results: Path) -> pd.DataFrame:
    """Return the fits that were made twice, with both scores."""
    again = _made_again(results).astype({"score": float, "bytes": float})
    both = comparison.read(results).merge(again, on=KEY, suffixes=("", "_again"))
    both["change"] = both["score_again"] - both["score"]
    both["interval"] = [_half_width(*row) for row in both[["table", "score", "test_rows"]].values]
    return both


def _half_width(table: str, score: float, test_rows: int) -> float:
    """Return half the 95 % interval of a test score: binomial, or that of a standard deviation."""
    if comparison.is_regression(table):
        return float(1.96 * score / math.sqrt(2 * test_rows))
    accuracy = score / 100
    return float(196 * math.sqrt(accuracy * (1 - accuracy) / test_rows))


def summary(both: pd.DataFrame) -> str:
    """Return how far the scores of the second fits are from those of the first."""
    lines = []
    for name in [*dict.fromkeys(both["system"]), None]:
        own = both if name is None else both[both["system"] == name]
        scored = own.dropna(subset=["score", "score_again"])
        same = (scored["change"] == 0) & (scored["bytes"] == scored["bytes_again"])
        inside = scored["change"].abs() <= scored["interval"]
        missing = own["score"].isna(), own["score_again"].isna()
        neither, one = int((missing[0] & missing[1]).sum()), int((missing[0] ^ missing[1]).sum())
        classes = scored[~scored["table"].map(comparison.is_regression).astype(bool)]
        counts = (len(own), neither, one, int(same.sum()), int(inside.sum()))
        title = "all" if name is None else title_of(name)
        lines.append([title, *map(str, counts), *_points(classes["change"])])
    header = ("system", "fits", "no model in both runs", "in one run", "equal score and bytes")
    differences = ("largest difference, points", "mean difference, points")
    return markdown((*header, "score within its interval", *differences), lines)


def _points(changes: pd.Series) -> tuple[str, str]:
    """Return the largest difference, and the mean difference with its 95 % interval."""
    if changes.empty:
        return MISSING, MISSING
    mean = estimate(changes)
    interval = f" [{signed(mean.low)}, {signed(mean.high)}]" if mean.has_interval else ""
    return f"{changes.abs().max():.2f}", signed(mean.mean) + interval


def run(options: BenchOptions) -> None:
    """Fit a share of the cells of installed systems again.

    Options: share, seed (draw), systems (those among the drawn to fit now), workers.
    """
    options.expect("share", "seed", "systems", "workers")
    chosen = fits.chosen_systems(options)
    found = comparison.read(options.results)
    installed = [name for name, system in all_systems().items() if system.installed]
    found = found[found["system"].isin(installed) & (found["system"] != comparison.CONSTANT)]
    done = _made_again(options.results).iloc[: 0 if options.fresh else None]
    cells = drawn(found, done, options.integer("seed", 0), options.number("share", SHARE))
    tasks = [cell for cell in cells if cell[1] in chosen]
    options.measure(FILE, TableFit, tasks, fits.measure, **in_single_threads(options))
    print(summary(read(options.results)))
