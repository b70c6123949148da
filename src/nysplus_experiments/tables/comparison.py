"""Compare methods table by table: differences of accuracy, ratios of errors, wins and losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.raw_tables import SOURCES
from nysplus_experiments.tables import fits
from nysplus_experiments.tables.peers import CATBOOST, LIGHTGBM, LIGHTGBM_CODES, XGBOOST

#: Tables on which the recipe of tables was designed.
DESIGN = (
    *("abalone", "adult", "artificial_characters", "churn", "concrete", "credit_default"),
    *("eeg_eye_state", "elevators", "house_16h", "krkopt", "miami_housing", "parkinsons"),
    *("segment", "seoul_bike", "spambase", "vehicle_coupon", "wall_robot", "wine_quality_white"),
)
GROUPS: dict[str, Callable[[str], bool]] = {
    "all": lambda table: True,
    "design": lambda table: table in DESIGN,
    "others": lambda table: table not in DESIGN,
}
# Smaller differences are ties: points of accuracy, and the share of an error.
TIE_POINTS, TIE_SHARE = 0.2, 0.01


def read(results: Path) -> pd.DataFrame:
    """Return the fits of all methods, the last of each key."""
    files = (results / "tables" / file for file in (fits.PEERS_FILE, fits.OURS_FILE))
    rows = [row for file in files for row in records.read_last(file, fits.TableFit)]
    return records.frame(rows, fits.TableFit)


def is_regression(table: str) -> bool:
    """Tell tables of numbers from tables of classes."""
    return SOURCES[table].regression


def by_method(found: pd.DataFrame, mode: str = fits.CAPPED, column: str = "score") -> pd.DataFrame:
    """Return the scores of a mode, one row a table and seed, one column a method."""
    own = found[found["mode"] == mode]
    return own.pivot(index=["table", "seed"], columns="method", values=column).astype(float)


@dataclass(frozen=True)
class Opponent:
    """The best of some methods on each table, by the mean of its test scores over the seeds."""

    title: str
    methods: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def scores(self, wide: pd.DataFrame) -> pd.Series:
        """Return scores by table and seed, for tables that have all methods."""
        chosen = [self._best(str(table), own) for table, own in wide.groupby(level="table")]
        return pd.concat([*chosen, pd.Series(dtype=float, index=wide.index[:0])])

    def _best(self, table: str, own: pd.DataFrame) -> pd.Series:
        found = own.reindex(columns=[*self.methods, *self.optional]).dropna(axis=1, how="all")
        if not set(self.methods) <= set(found.columns):
            return pd.Series(dtype=float, index=own.index[:0])
        common = found.dropna()
        means = common.mean()
        return common[means.idxmin() if is_regression(table) else means.idxmax()]


LIGHTGBM_BETTER = Opponent("LightGBM", (LIGHTGBM,), (LIGHTGBM_CODES,))
UNREFINED = Opponent("the unrefined model", ("unrefined",))
BEST_OF_THREE = Opponent("best of three", (LIGHTGBM, XGBOOST, CATBOOST), (LIGHTGBM_CODES,))


def margins(own: pd.Series, theirs: pd.Series) -> pd.Series:
    """Return by table and seed the difference in points, or the ratio of the errors."""
    first, second = own.dropna().align(theirs.dropna(), join="inner")
    regression = [is_regression(table) for table in first.index.get_level_values("table")]
    return (first / second).where(regression, first - second)


def by_table(margin: pd.Series) -> pd.Series:
    """Return the mean difference, or the geometric mean of the ratios, of each table."""
    means = {
        str(table): float(np.exp(np.log(own).mean()) if is_regression(str(table)) else own.mean())
        for table, own in margin.groupby(level="table")
    }
    return pd.Series(means, dtype=float)


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
        wins, losses = int((own < 1 - TIE_SHARE).sum()), int((own > 1 + TIE_SHARE).sum())
    else:
        mean, worst = float(own.mean()), own.idxmin()
        wins, losses = int((own > TIE_POINTS).sum()), int((own < -TIE_POINTS).sum())
    ties = len(own) - wins - losses
    return Verdict(mean, float(own.median()), float(own[worst]), str(worst), wins, ties, losses)
