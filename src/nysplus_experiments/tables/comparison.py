"""Compare systems table by table at each size: ranks, fronts, margins, wins and losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from nysplus_experiments.harness import records
from nysplus_experiments.harness.raw_tables import SOURCES
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.tables import fits
from nysplus_experiments.tables.systems import all_systems

OURS, CONSTANT, LIGHTGBM = "nysplus", "constant", "lightgbm"
BOOSTING = (LIGHTGBM, "xgboost", "catboost")
#: Tables on which the recipe of tables was designed, and datasets whose test scores were in view
#: when the defaults of `refine` and `budget` were developed.
DESIGN = (
    *("abalone", "adult", "artificial_characters", "churn", "concrete", "credit_default"),
    *("eeg_eye_state", "elevators", "house_16h", "krkopt", "miami_housing", "parkinsons"),
    *("segment", "seoul_bike", "spambase", "vehicle_coupon", "wall_robot", "wine_quality_white"),
    *("letter", "usps", "mnist", "pendigits", "ijcnn1", "covtype", "magic"),
)
GROUPS: dict[str, Callable[[str], bool]] = {
    "all": lambda table: True,
    "design": lambda table: table in DESIGN,
    "others": lambda table: table not in DESIGN,
}
# Share of our tables from which on a system is compared, and share of the tables on which it must
# have a model of a size to be shown there.
COVERED, MOST = 0.9, 0.5
# Smaller differences are ties: points of accuracy, and the share of an error.
TIE_POINTS, TIE_SHARE = 0.2, 0.01


def is_regression(table: str) -> bool:
    """Tell tables of numbers from tables of classes."""
    return SOURCES[table].regression


def read(results: Path) -> pd.DataFrame:
    """Return the fits of all systems, the last of each key."""
    rows = [
        row
        for system in all_systems()
        for row in records.read_last(results / "tables" / fits.file_of(system), fits.TableFit)
    ]
    found = records.frame(rows, fits.TableFit)
    numbers = ["score", "new_score", "log_loss", "bytes", "predict_cpu_seconds", "fit_mb"]
    return found.astype(dict.fromkeys(numbers, float))


@dataclass(frozen=True)
class Benchmark:
    """The fits of the tables and systems that can be compared.

    In an unfinished run a system counts once it has all sizes of nine tenths of the tables that we
    have, a table once all of these systems have all its sizes. Each table has the seeds that all of
    these systems have in common.
    """

    fits: pd.DataFrame
    tables: tuple[str, ...]
    systems: tuple[str, ...]

    @classmethod
    def of(cls, found: pd.DataFrame) -> Benchmark:
        """Choose tables, systems and seeds."""
        seeds = _complete_seeds(found)
        ours = [table for table in fits.BENCHMARK if (OURS, table) in seeds]
        systems = tuple(
            name
            for name in dict.fromkeys(found["system"])
            if sum((name, table) in seeds for table in ours) >= COVERED * len(ours)
        )
        common = {t: set.intersection(*(seeds.get((s, t), set()) for s in systems)) for t in ours}
        keys = zip(found["system"], found["table"], found["seed"], strict=True)
        keep = [name in systems and seed in common.get(table, ()) for name, table, seed in keys]
        return cls(found[keep], tuple(table for table in ours if common[table]), systems)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Scores by table, size and seed, one column a system.

        Where a system has no model of a size, the score is that of the constant prediction.
        """
        scores = self.fits.set_index(["table", "size", "seed", "system"])["score"].unstack()
        return scores.apply(lambda column: column.fillna(scores[CONSTANT]))

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Means over the seeds by table, size and system; ``model`` tells where there is one."""
        scores = self.scores.stack()
        means = scores.groupby(["table", "size", "system"]).mean().rename("score").to_frame()
        grouped = self.fits.groupby(["table", "size", "system"])
        seconds = ("fit_cpu_seconds", "predict_cpu_seconds")
        for column in ("new_score", "log_loss", "bytes", *seconds, "fit_mb"):
            means[column] = grouped[column].mean()
        means["model"] = grouped["score"].count() > 0
        return means

    @property
    def compared(self) -> list[str]:
        """The systems without the constant prediction, ours first."""
        others = [name for name in self.systems if name not in (OURS, CONSTANT)]
        return [OURS, *others]

    def wide(self, size: str, column: str = "score") -> pd.DataFrame:
        """Return the means of a size: one row a table, one column a system."""
        own = self.cells[self.cells.index.get_level_values("size") == size][column]
        own = own.droplevel("size").unstack("system")
        return own.reindex(index=list(self.tables), columns=self.compared)

    def with_models(self, size: str) -> list[str]:
        """Return the compared systems that have a model of a size on most tables."""
        share = self.wide(size, "model").eq(True).mean()
        return [name for name in self.compared if share[name] >= MOST]

    def some(self, keep: Callable[[str], bool]) -> Benchmark:
        """Return the benchmark of some of the tables."""
        tables = tuple(table for table in self.tables if keep(table))
        return Benchmark(self.fits[self.fits["table"].isin(tables)], tables, self.systems)


def _complete_seeds(found: pd.DataFrame) -> dict[tuple[str, str], set[int]]:
    """Return the seeds for which a system has all sizes of a table."""
    sizes = found.groupby(["system", "table", "seed"])["size"].nunique()
    seeds: dict[tuple[str, str], set[int]] = {}
    for (system, table, seed), count in sizes.items():
        if count == len(fits.SIZES) and table in fits.BENCHMARK:
            seeds.setdefault((system, table), set()).add(seed)
    return seeds


# -- ranks and fronts ----------------------------------------------------------------------------


def _signed_errors(scores: pd.DataFrame) -> pd.DataFrame:
    """Return numbers of which smaller ones are better: errors, or minus the accuracy."""
    sign = np.array([1.0 if is_regression(table) else -1.0 for table in scores.index])
    return scores.mul(sign, axis=0)


def ranks(bench: Benchmark, size: str) -> pd.DataFrame:
    """Return the rank of each system on each table, 1 for the best; ties share their ranks."""
    return _signed_errors(bench.wide(size)).rank(axis=1)


def critical_difference(n_systems: int, n_tables: int) -> float:
    """Return the difference of mean ranks beyond which two systems differ (Nemenyi, 5 %).

    >>> round(critical_difference(5, 30), 2)
    1.11
    """
    q = stats.studentized_range.ppf(0.95, n_systems, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_systems * (n_systems + 1) / (6 * n_tables)))


def front(bench: Benchmark, table: str) -> pd.DataFrame:
    """Return the models of a table that no other one beats in bytes and score, smallest first."""
    own = bench.cells.loc[table]
    own = own[own["model"] & (own.index.get_level_values("system") != CONSTANT)]
    order = own.assign(error=own["score"] if is_regression(table) else -own["score"])
    order = order.sort_values(["bytes", "error"])
    best_before = order["error"].cummin().shift(fill_value=np.inf)
    return order[order["error"] < best_before]


def better(first: float, second: float, regression: bool) -> int:
    """Return 1 if the first score is better, −1 if it is worse, 0 for a tie."""
    if regression:
        return int(first < second * (1 - TIE_SHARE)) - int(first > second * (1 + TIE_SHARE))
    return int(first > second + TIE_POINTS) - int(first < second - TIE_POINTS)


def own_front(bench: Benchmark, size: str) -> pd.Series:
    """Return our best score on each table among the sizes up to one: our front at this size."""
    sizes = [*fits.SIZES]
    smaller = sizes[: sizes.index(size) + 1]
    own = pd.DataFrame({each: bench.wide(each)[OURS] for each in smaller})
    regression = own.index.map(is_regression).astype(bool)
    return own.min(axis=1).where(regression, own.max(axis=1))


def outcomes(bench: Benchmark, size: str, other: str, ours: pd.Series | None = None) -> pd.Series:
    """Return 1, 0 or −1 for each table: we are better than another model of the size, or worse.

    ``ours`` are our scores, by default those of our models of the size.
    """
    wide = bench.wide(size)
    own = wide[OURS] if ours is None else ours
    return pd.Series(
        {t: better(own[t], wide.loc[t, other], is_regression(t)) for t in wide.index}, dtype=float
    )


def not_behind(bench: Benchmark, size: str, ours: pd.Series | None = None) -> pd.DataFrame:
    """Return for each table and each other system whether we are as good, ties included."""
    others = {other: outcomes(bench, size, other, ours) >= 0 for other in bench.compared[1:]}
    return pd.DataFrame(others, index=list(bench.tables), dtype=bool)


def not_clearly_behind(bench: Benchmark, size: str) -> pd.DataFrame:
    """Return for each table and each other system whether its lead may be one of the splits alone.

    A lead is clear if its 95 % interval over the splits, paired, lies beyond a tie. Tables of one
    split have no interval, and are left out.
    """
    found = {}
    for table in bench.tables:
        scores = bench.scores.loc[table, size]
        if len(scores) > 1:
            leads, tie = _leads(scores, is_regression(table))
            found[table] = {name: not estimate(leads[name]).low > tie for name in leads}
    return pd.DataFrame.from_dict(found, orient="index", columns=bench.compared[1:], dtype=bool)


def _leads(scores: pd.DataFrame, regression: bool) -> tuple[pd.DataFrame, float]:
    """Return the leads over ours by split, in points or as a share of the error, and a tie."""
    others = scores.drop(columns=[OURS, CONSTANT])
    if regression:
        return others.rdiv(scores[OURS], axis=0) - 1, TIE_SHARE
    return others.sub(scores[OURS], axis=0), TIE_POINTS


def normalised(bench: Benchmark) -> pd.DataFrame:
    """Return scores from 0, the constant prediction, to 1, the best model of all sizes.

    One row a table and size, one column a system; worse than constant is 0.
    """
    scores = bench.cells["score"].unstack("system")
    tables = scores.index.get_level_values("table")
    sign = np.array([1.0 if is_regression(table) else -1.0 for table in tables])
    errors = scores.mul(sign, axis=0)
    best = errors.min(axis=1).groupby(tables).transform("min")
    span = (errors[CONSTANT] - best).clip(lower=1e-12)
    share = errors.rsub(errors[CONSTANT], axis=0).div(span, axis=0).clip(lower=0.0)
    return share.reindex(columns=bench.compared)


# -- margins over models with defaults -----------------------------------------------------------


@dataclass(frozen=True)
class Opponent:
    """The best of some systems without a limit on each table, by its mean test score."""

    title: str
    systems: tuple[str, ...]

    def scores(self, bench: Benchmark) -> pd.Series:
        """Return the score of each table; none where a system is missing."""
        if not set(self.systems) <= set(bench.systems):
            return pd.Series(dtype=float)
        wide = bench.wide(fits.UNLIMITED)[list(self.systems)]
        return pd.Series(
            {t: wide.loc[t].min() if is_regression(t) else wide.loc[t].max() for t in wide.index},
            dtype=float,
        )


LIGHTGBM_DEFAULTS = Opponent("LightGBM, defaults", (LIGHTGBM,))
BEST_OF_THREE = Opponent("best of three, defaults", BOOSTING)


def margins(own: pd.Series, theirs: pd.Series) -> pd.Series:
    """Return by table the difference in points, or the ratio of the errors."""
    first, second = own.dropna().align(theirs.dropna(), join="inner")
    regression = [is_regression(table) for table in first.index]
    return (first / second).where(regression, first - second)


@dataclass(frozen=True)
class Verdict:
    """Margins of some tables of one kind: their mean, median and worst, wins, ties and losses."""

    mean: float
    median: float
    worst: float
    worst_table: str
    wins: int
    ties: int
    losses: int


def verdict(margin: pd.Series, regression: bool) -> Verdict | None:
    """Summarise the margins of the classification or the regression tables; None without any."""
    own = margin[[is_regression(table) == regression for table in margin.index]]
    if own.empty:
        return None
    if regression:
        mean, worst = float(np.exp(np.log(own).mean())), own.idxmax()
        signs = [better(ratio, 1.0, True) for ratio in own]
    else:
        mean, worst = float(own.mean()), own.idxmin()
        signs = [better(points, 0.0, False) for points in own]
    counts = (signs.count(1), signs.count(0), signs.count(-1))
    return Verdict(mean, float(own.median()), float(own[worst]), str(worst), *counts)
