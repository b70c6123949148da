"""Rules that turn what was measured on a claim into a verdict, by 95 % intervals alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from nysplus_experiments.harness.statistics import Estimate

#: Differences below half of the smallest one that the paper's section 4 counts, in points.
NEGLIGIBLE = 0.1
# A mean whose sign needs more trials than that is zero for all purposes.
_MOST_TRIALS = 10_000
Verdict = Literal["held", "not held", "undecided", "not testable here"]


@dataclass(frozen=True)
class Evidence:
    """The per-trial mean over all cells, each cell alone, both in words, and the sizes ``n``."""

    total: Estimate
    cells: tuple[Estimate, ...]
    text: str
    unit: str = "points"
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and whether a claim that is not held has the right sign all the same.

    ``outlook`` says how many trials would decide an undecided claim.
    """

    verdict: Verdict
    reason: str
    smaller: bool = False
    outlook: str = ""


def judge(rule: Rule, evidence: Evidence) -> Judgement:
    """Apply a rule; a single trial has no interval and leaves everything undecided."""
    if not evidence.total.has_interval:
        return Judgement("undecided", "One trial only, so there is no interval.")
    judgement = rule.judge(evidence)
    if judgement.verdict == "undecided":
        return replace(judgement, outlook=_outlook(rule, evidence))
    return judgement


def _outlook(rule: Rule, evidence: Evidence) -> str:
    """Return the number of trials that would decide a claim, and a difference that is too small."""
    total, needed = evidence.total, rule.trials_needed(evidence)
    if needed <= _MOST_TRIALS:
        text = f"About {_round_up(max(needed, total.trials + 1)):,} trials would decide it."
    else:
        text = f"{_MOST_TRIALS:,} trials would not decide it."
    if evidence.unit == "points" and total.low > -NEGLIGIBLE and total.high < NEGLIGIBLE:
        text += f" A mean difference of {NEGLIGIBLE:g} points is excluded."
    return text


def _round_up(number: float) -> int:
    """Return a number with two digits that is not smaller."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return math.ceil(number / unit) * unit


def trials_to_exclude(value: Estimate, bound: float) -> float:
    """Return the trials after which the interval excludes a bound if mean and spread stay.

    Infinite where 10,000 do not suffice. O(10⁴) time.
    """
    t = stats.t.ppf(0.975, value.trials - 1)
    deviation = (value.high - value.mean) * math.sqrt(value.trials) / t
    trials = np.arange(2, _MOST_TRIALS + 1)
    half = stats.t.ppf(0.975, trials - 1) * deviation / np.sqrt(trials)
    enough = trials[half < abs(value.mean - bound)]
    return float(enough[0]) if len(enough) else math.inf


def clear(cells: Iterable[Estimate]) -> tuple[int, int]:
    """Return how many intervals lie above zero, and how many below."""
    cells = list(cells)
    return sum(c.low > 0 for c in cells), sum(c.high < 0 for c in cells)


@dataclass(frozen=True)
class Better:
    """The difference is positive and, up to the paper's rounding, not smaller than ``size``."""

    size: float | None = None
    rounding: float = 0.005

    def judge(self, evidence: Evidence) -> Judgement:
        """Held above zero with the size not excluded from above; not held if it is, or below."""
        low, high = evidence.total.low, evidence.total.high
        if high < 0:
            return Judgement("not held", "The interval lies below zero: the order is reversed.")
        if self.size is not None and high < self.size - self.rounding:
            claimed = f"the paper's {self.size:+g}"
            if low > 0:
                reason = f"The sign is right, but the interval lies below {claimed}."
                return Judgement("not held", reason, smaller=True)
            return Judgement("not held", f"The interval includes zero and excludes {claimed}.")
        if low <= 0:
            return Judgement("undecided", "The interval includes zero.")
        if self.size is None:
            return Judgement("held", "The interval lies above zero.")
        if low > self.size + self.rounding:
            return Judgement("held", f"The interval lies above the paper's {self.size:+g}.")
        return Judgement("held", f"Above zero, and the interval includes {self.size:+g}.")

    def trials_needed(self, evidence: Evidence) -> float:
        """Return the trials that exclude zero, or the claimed size if that is sooner."""
        bounds = [0.0] if self.size is None else [0.0, self.size - self.rounding]
        return min(trials_to_exclude(evidence.total, bound) for bound in bounds)


@dataclass(frozen=True)
class NoGain:
    """No improvement, or a negligible one."""

    tolerance: float = NEGLIGIBLE

    def judge(self, evidence: Evidence) -> Judgement:
        """Not held above zero; held if the interval ends below the tolerance."""
        if evidence.total.low > 0:
            return Judgement("not held", "The interval lies above zero: there is an improvement.")
        if evidence.total.high < self.tolerance:
            return Judgement("held", f"An improvement of {self.tolerance:g} points is excluded.")
        reason = f"The interval includes zero and {self.tolerance:g} points."
        return Judgement("undecided", reason)

    def trials_needed(self, evidence: Evidence) -> float:
        """Return the trials that exclude zero or the tolerance."""
        return min(trials_to_exclude(evidence.total, bound) for bound in (0.0, self.tolerance))


@dataclass(frozen=True)
class Over:
    """Clearly positive in a share of the sizes, clearly negative in few of them."""

    share: float
    against: float

    def judge(self, evidence: Evidence) -> Judgement:
        """Not held with too many sizes against; held with enough in favour; else undecided."""
        return self._judge(*clear(evidence.cells), len(evidence.cells))

    def _judge(self, above: int, below: int, total: int) -> Judgement:
        if below > self.against * total:
            reason = f"The reverse is clear in more than {100 * self.against:g} % of the cases."
            return Judgement("not held", reason)
        if above >= self.share * total:
            return Judgement("held", f"Clear in {100 * self.share:g} % of the cases or more.")
        reason = (
            f"Clear in less than {100 * self.share:g} % of the cases; other intervals include 0."
        )
        return Judgement("undecided", reason)

    def trials_needed(self, evidence: Evidence) -> float:
        """Return the trials after which enough sizes are clear on either side."""
        cells = [cell for cell in evidence.cells if cell.has_interval]
        needed = {cell: trials_to_exclude(cell, 0.0) for cell in cells}
        for trials in sorted(needed.values()):
            means = [cell.mean for cell in cells if needed[cell] <= trials]
            above, below = sum(mean > 0 for mean in means), sum(mean < 0 for mean in means)
            if self._judge(above, below, len(evidence.cells)).verdict != "undecided":
                return trials
        return math.inf


WIDE_RANGE = Over(share=0.5, against=0.2)
SOME_RANGE = Over(share=0.25, against=0.5)


@dataclass(frozen=True)
class Between:
    """A number lies between two bounds, one of which may be infinite."""

    low: float = -math.inf
    high: float = math.inf
    rounding: float = 0.0

    def judge(self, evidence: Evidence) -> Judgement:
        """Held inside, not held outside, undecided across a bound."""
        total, low, high = evidence.total, self.low - self.rounding, self.high + self.rounding
        if total.high < low:
            return Judgement("not held", f"The interval lies below {self.low:g}.")
        if total.low > high:
            return Judgement("not held", f"The interval lies above {self.high:g}.")
        if low <= total.low and total.high <= high:
            bounds = {f"above {self.low:g}": low, f"below {self.high:g}": high}
            sides = " and ".join(side for side, bound in bounds.items() if math.isfinite(bound))
            return Judgement("held", f"The interval lies {sides}.")
        return Judgement(
            "undecided", f"The interval includes {self.low if total.low < low else self.high:g}."
        )

    def trials_needed(self, evidence: Evidence) -> float:
        """Return the trials that exclude both bounds; intervals of ratios are those of logs."""
        bounds = [
            b for b in (self.low - self.rounding, self.high + self.rounding) if math.isfinite(b)
        ]
        if evidence.unit != "times":
            return max(trials_to_exclude(evidence.total, bound) for bound in bounds)
        logs = evidence.total.map(math.log)
        return max(trials_to_exclude(logs, math.log(bound)) for bound in bounds)


Rule = Better | NoGain | Over | Between
