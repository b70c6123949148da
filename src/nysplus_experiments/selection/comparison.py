"""Statistics of ``selection.csv``, and the tables made from them as lines of Markdown.

A *cell* is a dataset, a size and a width; its value for a rule is the mean over trials. The *loss*
of a rule in a cell is how far it is below the best rule there. Intervals are of two kinds. Over
trials: Student's t of the trials' means over all cells, which says what other splits and seeds
would change on the same datasets. Over datasets: the bootstrap with whole datasets drawn, which
says what other datasets of this kind would change.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from benchmark_runs import short, table
from scipy.stats import rankdata
from selection import SOURCES, WIDTHS, SelectionFit

from nysplus.experiments._runs import Estimate, estimate
from nysplus.experiments._verdicts import interval_text

Lines = list[str]
# The published test rows of IJCNN are drawn unlike its training rows, so that no rule that looks
# at training rows alone can be judged by them. Shown apart.
APART = "ijcnn1"
RESPLIT = "ijcnn1-resplit"
BOOTSTRAPS = 10_000


class Cell(NamedTuple):
    """What rules are compared in."""

    dataset: str
    n: int
    width: str

    @property
    def words(self) -> str:
        """The cell as the page names it."""
        return f"{SOURCES[self.dataset].title}, n = {self.n}, {width_title(self.width)}"


# -- statistics ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Every rule in every cell and trial; nothing is missing.

    Attributes
    ----------
    cells, rules, trials : tuple
    values : ndarray of shape (cells, rules, trials)
        Larger is better.
    """

    cells: tuple[Cell, ...]
    rules: tuple[str, ...]
    trials: tuple[int, ...]
    values: np.ndarray

    def where(self, wanted: Callable[[Cell], bool]) -> Comparison:
        """Return the comparison in some of the cells."""
        kept = [i for i, cell in enumerate(self.cells) if wanted(cell)]
        return replace(self, cells=tuple(self.cells[i] for i in kept), values=self.values[kept])

    def part(self, **wanted: object) -> Comparison:
        """Return the comparison in the cells of a dataset, a size or a width."""
        return self.where(lambda cell: wanted.items() <= cell._asdict().items())

    def of(self, rule: str) -> np.ndarray:
        """Return the values of a rule, cells × trials."""
        return self.values[:, self.rules.index(rule)]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets in the order of their first cell."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))

    @property
    def sizes(self) -> list[int]:
        """The sizes, ascending."""
        return sorted({cell.n for cell in self.cells})

    @property
    def widths(self) -> list[str]:
        """The widths, in the order of `WIDTHS`."""
        return sorted({cell.width for cell in self.cells}, key=WIDTHS.index)

    @property
    def losses(self) -> np.ndarray:
        """How far each rule is below the best of its cell, cells × rules."""
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
        """Return the mean loss, with its interval over trials.

        The best rule of a cell is that of the mean over all trials, also in each single one.
        """
        best = self.values.mean(axis=2).argmax(axis=1)
        best_values = self.values[np.arange(len(best)), best]
        return estimate((best_values - self.of(rule)).mean(axis=0))

    def mean_regret(self, rule: str) -> Estimate:
        """Return the mean distance to the rule that is best in the other trials.

        The best of several noisy means is too good by chance, which makes losses too large; here
        the choice and the comparison do not share trials. May be negative.
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
        """Return the same mean with its bootstrap interval over datasets."""
        differences = (self.of(rule) - self.of(over)).mean(axis=1)
        owner = np.array([self.datasets.index(cell.dataset) for cell in self.cells])
        sums = np.bincount(owner, weights=differences)
        counts = np.bincount(owner)
        if len(sums) == 1:
            return Estimate(float(differences.mean()), math.nan, math.nan, 1)
        draws = np.random.RandomState(0).randint(len(sums), size=(BOOTSTRAPS, len(sums)))
        low, high = np.percentile(sums[draws].sum(1) / counts[draws].sum(1), (2.5, 97.5))
        return Estimate(float(differences.mean()), float(low), float(high), len(sums))

    def clear(self, rule: str, over: str) -> tuple[list[Cell], list[Cell]]:
        """Return the cells where a rule is above, and below, another beyond the noise of trials.

        That is where the 95 % interval over trials of the difference leaves out zero. Of cells
        without any difference one in forty would be in either list.
        """
        above, below = [], []
        for cell, difference in zip(self.cells, self.of(rule) - self.of(over), strict=True):
            found = estimate(difference)
            if found.low > 0:
                above.append(cell)
            elif found.high < 0:
                below.append(cell)
        return above, below


class Observation(NamedTuple):
    """One value of one rule."""

    cell: Cell
    rule: str
    trial: int
    value: float


def compare(observations: Iterable[Observation]) -> Comparison | None:
    """Return the comparison of all values; None where there are none.

    Of a run that was stopped these are the cells where every rule has run in the first trial, and
    the trials that have all of them. Cells are in the order of their first value.
    """
    found: dict[int, dict[Cell, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for cell, rule, trial, value in observations:
        found[trial][cell][rule] = value
    if not found:
        return None
    first = found[min(found)]
    rules = tuple(sorted({rule for by_rule in first.values() for rule in by_rule}))
    cells = [cell for cell, by_rule in first.items() if len(by_rule) == len(rules)]
    trials = [
        trial
        for trial, by_cell in sorted(found.items())
        if all(set(rules) <= by_cell[cell].keys() for cell in cells)
    ]
    values = [[[found[t][cell][rule] for t in trials] for rule in rules] for cell in cells]
    return Comparison(tuple(cells), rules, tuple(trials), np.array(values)) if cells else None


def compare_selectors(
    fits: Iterable[SelectionFit], value: Callable[[SelectionFit], float | None]
) -> Comparison | None:
    """Return the comparison of the fits that have a value, in the order of the datasets."""

    def place(fit: SelectionFit) -> tuple[int, int, int]:
        return list(SOURCES).index(fit.dataset), fit.n, WIDTHS.index(fit.width)

    pairs = [(fit, value(fit)) for fit in sorted(fits, key=place)]
    return compare(
        Observation(Cell(fit.dataset, fit.n, fit.width), fit.selector, fit.trial, number)
        for fit, number in pairs
        if number is not None
    )


# -- words ---------------------------------------------------------------------------------------


def width_title(width: str) -> str:
    """Name of a width on the page."""
    return {"scale": '`"scale"`', "4 scale": '4 × `"scale"`', "auto": '`gamma="auto"`'}[width]


def code(rule: str) -> str:
    """Name of a rule on the page."""
    return f"`{rule}`"


def points(value: Estimate, sign: bool = False) -> str:
    """Return "mean [low, high]" in points of accuracy, or the mean alone for a single trial."""
    spec = "+.2f" if sign else ".2f"
    return f"{value.mean:{spec}}" + (f" {bounds(value, spec)}" if value.has_interval else "")


def bounds(value: Estimate, spec: str = "+.2f") -> str:
    """Return "[low, high]", or a dash where there is no interval."""
    return f"[{value.low:{spec}}, {value.high:{spec}}]" if value.has_interval else "–"


def names(cells: Sequence[Cell], most: int = 6) -> str:
    """List some cells, and say how many more there are."""
    listed = "; ".join(cell.words for cell in cells[:most])
    return listed + (f"; and {len(cells) - most} more" if len(cells) > most else "")


# -- tables --------------------------------------------------------------------------------------


def summary(compared: Comparison) -> Lines:
    """Return one line a rule over all cells."""
    several = len(compared.trials) > 1

    def line(rule: str) -> list[str]:
        loss, cell = compared.worst(rule)
        return [
            *(code(rule), points(compared.mean(rule)), f"{compared.mean_rank(rule):.1f}"),
            points(compared.mean_loss(rule)),
            points(compared.mean_regret(rule)) if several else "–",
            f"{loss:.2f} ({cell.words})",
        ]

    return table(
        ("`selection`", "accuracy, %", "rank", "loss, points", "regret, points", "largest loss"),
        map(line, compared.ranked()),
    )


def gains(compared: Comparison) -> Lines:
    """Return one line a rule: gains over uniform rows and over the negative margin."""
    others = [rule for rule in ("uniform", "negative-margin") if rule in compared.rules]

    def line(rule: str) -> list[str]:
        cells = [code(rule)]
        for over in others:
            if over == rule:
                cells += ["–", "–"]
            else:
                trials, datasets = (
                    compared.gain(rule, over),
                    compared.gain_over_datasets(rule, over),
                )
                cells += [points(trials, sign=True), bounds(datasets)]
        return cells

    header = [part for over in others for part in (f"over `{over}`, points", "over datasets")]
    return table(("`selection`", *header), map(line, compared.ranked()))


def by_size(compared: Comparison) -> Lines:
    """Return accuracy and loss of each rule by size."""
    parts = {f"n = {n}": compared.part(n=n) for n in compared.sizes}
    return _parts(compared, parts)


def by_width(compared: Comparison) -> Lines:
    """Return accuracy and loss of each rule by width."""
    parts = {width_title(width): compared.part(width=width) for width in compared.widths}
    return _parts(compared, parts)


def by_dataset(compared: Comparison) -> Lines:
    """Return accuracy and loss of each rule by dataset."""
    parts = {SOURCES[name].title: compared.part(dataset=name) for name in compared.datasets}
    rules = compared.ranked()
    return table(
        ("data", *map(code, rules)),
        (
            [title, *(_both(part, rule) for rule in rules)]
            for title, part in parts.items()
        ),
    )  # fmt: skip


def _parts(compared: Comparison, parts: dict[str, Comparison]) -> Lines:
    return table(
        ("`selection`", *parts),
        (
            [code(rule), *(_both(part, rule) for part in parts.values())]
            for rule in compared.ranked()
        ),
    )


def _both(part: Comparison, rule: str) -> str:
    return f"{part.mean(rule).mean:.2f} ({part.mean_loss(rule).mean:.2f})"


def all_cells(compared: Comparison, width: str = "scale") -> Lines:
    """Return the accuracy of every rule in every cell of a width, the best in bold."""
    part = compared.part(width=width)
    rules = compared.ranked()
    lines = []
    for cell, values in zip(part.cells, part.values, strict=True):
        found = [estimate(values[part.rules.index(rule)]) for rule in rules]
        best = max(value.mean for value in found)
        texts = [_plus_minus(value) for value in found]
        texts = [
            f"**{text}**" if value.mean == best else text
            for text, value in zip(texts, found, strict=True)
        ]
        lines.append([SOURCES[cell.dataset].title, str(cell.n), *texts])
    return table(("data", "n", *map(code, rules)), lines)


def _plus_minus(value: Estimate) -> str:
    half = f" ± {value.high - value.mean:.1f}" if value.has_interval else ""
    return f"{value.mean:.1f}{half}"


def against(compared: Comparison, rule: str = "auto") -> Lines:
    """Return, for every other rule, how often and how far it differs from one."""

    def line(other: str) -> list[str]:
        above, below = compared.clear(other, rule)
        differences = (compared.of(other) - compared.of(rule)).mean(axis=1)
        largest = int(differences.argmax())
        where = compared.cells[largest].words
        most = (
            f"{differences[largest]:.2f} ({where})" if differences[largest] > 0 else "never above"
        )
        return [code(other), str(len(above)), str(len(below)), most]

    header = ("`selection`", "clearly above", "clearly below", "most above, points")
    return table(header, (line(other) for other in compared.ranked() if other != rule))


def ijcnn(compared: Comparison) -> Lines:
    """Return the accuracies on both splits of IJCNN, one line a size and width."""
    part = compared.where(lambda cell: cell.dataset in (APART, RESPLIT))
    rules = part.ranked() if part.cells else []
    values = dict(zip(part.cells, part.values.mean(axis=2), strict=True))
    lines = [
        [
            *(str(cell.n), width_title(cell.width)),
            *(
                f"{values[cell][part.rules.index(rule)]:.1f} / "
                f"{values[cell._replace(dataset=RESPLIT)][part.rules.index(rule)]:.1f}"
                for rule in rules
            ),
        ]
        for cell in part.cells
        if cell.dataset == APART and cell._replace(dataset=RESPLIT) in values
    ]
    return table(("n", "width", *map(code, rules)), lines) if lines else []


def seconds(compared: Comparison, over: str = "uniform") -> Lines:
    """Return times in units of those of another rule, by size; values are -log seconds."""
    sizes = compared.sizes

    def cell(rule: str, n: int) -> str:
        part = compared.part(n=n)
        return interval_text(part.gain(over, rule).map(math.exp))

    def typical(n: int) -> str:
        part = compared.part(n=n)
        return f"{short(math.exp(-part.mean(over).mean))} s"

    ordered = sorted(compared.rules, key=lambda rule: -compared.mean(rule).mean)
    return table(
        ("`selection`", *(f"n = {n}" for n in sizes)),
        (
            [code(rule), *(typical(n) if rule == over else cell(rule, n) for n in sizes)]
            for rule in ordered
        ),
    )


def regression(compared: Comparison) -> Lines:
    """Return errors in units of those of uniform rows and of k-means; values are -log RMSE."""
    others = [rule for rule in ("uniform", "kmeans") if rule in compared.rules]
    ordered = compared.ranked()
    lines = []
    for dataset in compared.datasets:
        for n in compared.sizes:
            part = compared.part(dataset=dataset, n=n)
            for rule in ordered if part.cells else []:
                ratios = (
                    "–" if rule == over else interval_text(part.gain(over, rule).map(math.exp))
                    for over in others
                )
                error = f"{math.exp(-part.mean(rule).mean):.3f}"
                lines.append([SOURCES[dataset].title, str(n), code(rule), error, *ratios])
    header = (f"RMSE / `{over}`'s" for over in others)
    return table(("data", "n", "`selection`", "RMSE", *header), lines)
