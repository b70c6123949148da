"""Statistics of rules that are compared on many datasets, sizes and kernel widths.

A *cell* is a dataset, a size and a width; its value for a rule is the mean over trials. The *loss*
of a rule in a cell is its distance from the best rule there. There are two kinds of intervals. Over
trials: Student's t of the trials' means over all cells, for other splits and seeds of the same
datasets. Over datasets: the bootstrap with whole datasets drawn, for other datasets of this kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.statistics import Estimate, estimate

WIDTHS = ("scale", "4 scale", "auto")
WIDTH_TITLES = {"scale": '`"scale"`', "4 scale": '4 × `"scale"`', "auto": '`gamma="auto"`'}
BOOTSTRAPS = 10_000


class Cell(NamedTuple):
    """A dataset, a size and a width."""

    dataset: str
    n: int
    width: str

    @property
    def title(self) -> str:
        """The cell in words."""
        return f"{SOURCES[self.dataset].title}, n = {self.n}, {WIDTH_TITLES[self.width]}"


@dataclass(frozen=True)
class Comparison:
    """Values (cells × rules × trials, larger is better) without gaps."""

    cells: tuple[Cell, ...]
    rules: tuple[str, ...]
    trials: tuple[int, ...]
    values: np.ndarray

    def where(self, condition: Callable[[Cell], bool]) -> Comparison:
        """Return the comparison in the cells that fulfil a condition."""
        kept = [i for i, cell in enumerate(self.cells) if condition(cell)]
        return replace(self, cells=tuple(self.cells[i] for i in kept), values=self.values[kept])

    def part(self, **fixed: object) -> Comparison:
        """Return the comparison in the cells of a dataset, a size or a width."""
        return self.where(lambda cell: fixed.items() <= cell._asdict().items())

    def of(self, rule: str) -> np.ndarray:
        """Return the values of a rule, cells × trials."""
        return self.values[:, self.rules.index(rule)]

    def differences(self, rule: str, other: str) -> np.ndarray:
        """Return the mean of a rule minus that of another in each cell."""
        return (self.of(rule) - self.of(other)).mean(axis=1)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets in the order of their first cell."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))

    @property
    def sizes(self) -> list[int]:
        """Sizes, ascending."""
        return sorted({cell.n for cell in self.cells})

    @property
    def widths(self) -> list[str]:
        """Widths in the order of `WIDTHS`."""
        return sorted({cell.width for cell in self.cells}, key=WIDTHS.index)

    @property
    def losses(self) -> np.ndarray:
        """Distance of each rule from the best of its cell, cells × rules."""
        means = self.values.mean(axis=2)
        return means.max(axis=1, keepdims=True) - means

    def ranked(self) -> list[str]:
        """Return the rules by mean loss, smallest first."""
        order = np.argsort(self.losses.mean(axis=0), kind="stable")
        return [self.rules[i] for i in order]

    def mean(self, rule: str) -> Estimate:
        """Return the mean over cells, with its interval over trials."""
        return estimate(self.of(rule).mean(axis=0))

    def mean_loss(self, rule: str) -> Estimate:
        """Return the mean distance from the rule that is best over all trials, over trials."""
        best = self.values.mean(axis=2).argmax(axis=1)
        best_values = self.values[np.arange(len(best)), best]
        return estimate((best_values - self.of(rule)).mean(axis=0))

    def mean_regret(self, rule: str) -> Estimate:
        """Return the mean distance to the rule that is best in the other trials.

        The best of several noisy means is too good by chance, which makes losses too large. Here
        the choice and the comparison share no trial. May be negative.
        """
        total = self.values.sum(axis=2, keepdims=True)
        best = (total - self.values).argmax(axis=1)[:, None]
        best_values = np.take_along_axis(self.values, best, axis=1)[:, 0]
        return estimate((best_values - self.of(rule)).mean(axis=0))

    def worst(self, rule: str) -> tuple[float, Cell]:
        """Return the largest loss and its cell."""
        losses = self.losses[:, self.rules.index(rule)]
        return float(losses.max()), self.cells[int(losses.argmax())]

    def mean_rank(self, rule: str) -> float:
        """Return the mean rank over cells; 1 is best, ties share."""
        ranks = rankdata(-self.values.mean(axis=2), axis=1).mean(axis=0)
        return float(ranks[self.rules.index(rule)])

    def gain(self, rule: str, over: str) -> Estimate:
        """Return the mean gain over another rule, with its interval over trials."""
        return estimate((self.of(rule) - self.of(over)).mean(axis=0))

    def gain_over_datasets(self, rule: str, over: str) -> Estimate:
        """Return the mean gain over another rule, with its bootstrap interval over datasets."""
        differences = self.differences(rule, over)
        owner = np.array([self.datasets.index(cell.dataset) for cell in self.cells])
        sums, counts = np.bincount(owner, weights=differences), np.bincount(owner)
        if len(sums) == 1:
            return Estimate(float(differences.mean()), math.nan, math.nan, 1)
        draws = np.random.RandomState(0).randint(len(sums), size=(BOOTSTRAPS, len(sums)))
        low, high = np.percentile(sums[draws].sum(1) / counts[draws].sum(1), (2.5, 97.5))
        return Estimate(float(differences.mean()), float(low), float(high), len(sums))

    def clear(self, rule: str, over: str) -> tuple[list[Cell], list[Cell]]:
        """Return the cells whose interval of the difference lies above, and below, zero."""
        found = list(zip(self.cells, map(estimate, self.of(rule) - self.of(over)), strict=True))
        above = [cell for cell, difference in found if difference.low > 0]
        return above, [cell for cell, difference in found if difference.high < 0]


def compare(frame: pd.DataFrame, rule: str, value: str = "accuracy") -> Comparison | None:
    """Return the comparison of the rules in a table of fits; None for an empty table.

    An incomplete run is compared in the cells where every rule has run in the first trial, and in
    the trials that have all of these.
    """
    places = {"dataset": list(SOURCES), "width": ["", *WIDTHS]}
    frame = frame.dropna(subset=[value])
    if frame.empty:
        return None
    frame = frame if "width" in frame else frame.assign(width="")
    frame = frame.sort_values(
        [*Cell._fields, "trial"],
        key=lambda column: (
            column.map(places[column.name].index) if column.name in places else column
        ),
    )
    index = [*Cell._fields, rule, "trial"]
    wide = frame.drop_duplicates(index, keep="last").set_index(index)[value]
    first = wide.xs(frame["trial"].min(), level="trial").unstack(rule, sort=False)
    rules, complete = sorted(first.columns), first.dropna().index
    if complete.empty:
        return None
    table = wide.unstack("trial").reindex(
        pd.MultiIndex.from_tuples([(*cell, name) for cell in complete for name in rules])
    )
    table = table.dropna(axis="columns").sort_index(axis="columns")
    values = table.to_numpy().reshape(len(complete), len(rules), -1)
    cells = tuple(Cell(dataset, int(n), width) for dataset, n, width in complete)
    return Comparison(cells, tuple(rules), tuple(map(int, table.columns)), values)
