"""Rules that turn what was measured on a claim into a verdict, by 95 % intervals alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from nysplus_experiments.harness.statistics import Estimate

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
    """A verdict, why, and whether a claim that is not held has the right sign all the same."""

    verdict: Verdict
    reason: str
    smaller: bool = False


def judge(rule: Rule, evidence: Evidence) -> Judgement:
    """Apply a rule; a single trial has no interval and leaves everything undecided."""
    if not evidence.total.has_interval:
        return Judgement("undecided", "One trial only, so there is no interval.")
    return rule.judge(evidence)


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


@dataclass(frozen=True)
class NoGain:
    """No improvement; 0.1 is half of the smallest one that the paper's section 4 counts."""

    tolerance: float = 0.1

    def judge(self, evidence: Evidence) -> Judgement:
        """Not held above zero; held if the interval ends below the tolerance."""
        if evidence.total.low > 0:
            return Judgement("not held", "The interval lies above zero: there is an improvement.")
        if evidence.total.high < self.tolerance:
            return Judgement("held", f"An improvement of {self.tolerance:g} points is excluded.")
        reason = f"The interval includes zero and {self.tolerance:g} points."
        return Judgement("undecided", reason)


@dataclass(frozen=True)
class Over:
    """Clearly positive in a share of the sizes, clearly negative in few of them."""

    share: float
    against: float

    def judge(self, evidence: Evidence) -> Judgement:
        """Not held with too many sizes against; held with enough in favour; else undecided."""
        total = len(evidence.cells)
        above, below = clear(evidence.cells)
        if below > self.against * total:
            reason = f"The reverse is clear in more than {100 * self.against:g} % of the cases."
            return Judgement("not held", reason)
        if above >= self.share * total:
            return Judgement("held", f"Clear in {100 * self.share:g} % of the cases or more.")
        reason = (
            f"Clear in less than {100 * self.share:g} % of the cases; other intervals include 0."
        )
        return Judgement("undecided", reason)


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


Rule = Better | NoGain | Over | Between
