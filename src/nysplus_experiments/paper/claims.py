"""The paper's claims next to what was measured, each with a verdict.

A claim about a difference is judged by the 95 % interval (Student's t) of the paired difference
over trials; trials of the same number use the same split.

- *held*: the interval lies on the claimed side of zero and does not fall short of the claimed size.
- *not held*: it lies on the other side, or it excludes the claimed size.
- *undecided*: it includes zero (or a claimed bound), or there was one trial only.
- *not testable here*: the dataset, the method or the size is not among the results.

A claim about many sizes counts the sizes whose interval lies above or below zero. The exact rules
are the classes of ``_verdicts``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nysplus_experiments.harness.statistics import Estimate
from nysplus_experiments.paper.evidence import NotTestable
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.rules import Judgement, Verdict, judge
from nysplus_experiments.paper.runs import Runs, dataset_title
from nysplus_experiments.paper.statements import Statement, statements

__all__ = ["VERDICTS", "Claim", "Estimate", "Verdict", "evaluate", "summary"]

VERDICTS: tuple[Verdict, ...] = ("held", "not held", "undecided", "not testable here")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its evidence.

    Attributes
    ----------
    where : str
        Section, figure or appendix of the paper.
    text : str
        The claim in our words.
    dataset, detail : str
        The dataset, empty where the claim is about none in particular, and the size or the methods.
    paper, measured : str
        The paper's figures and ours.
    estimate : Estimate or None
        Mean, 95 % interval and number of trials behind the verdict, in ``unit``; None where the
        claim is not testable.
    unit : str
    verdict : {"held", "not held", "undecided", "not testable here"}
    reason : str
        Why, in one sentence.
    smaller : bool
        Whether a claim that is not held has the claimed sign, only a smaller size.
    """

    where: str
    text: str
    dataset: str
    detail: str
    paper: str
    measured: str
    estimate: Estimate | None
    unit: str
    verdict: Verdict
    reason: str
    smaller: bool = False

    @property
    def subject(self) -> str:
        """The dataset's title with the detail."""
        title = dataset_title(self.dataset) if self.dataset else "any data"
        return ", ".join(part for part in (title, self.detail) if part)


def evaluate(results: Iterable[Result]) -> list[Claim]:
    """Judge every claim, in the order of the paper; rows with errors are left out."""
    runs = Runs(results)
    return [_claim(statement, runs) for statement in statements()]


def _claim(s: Statement, runs: Runs) -> Claim:
    try:
        evidence = s.measure(runs, s.dataset)
    except NotTestable as missing:
        judgement = Judgement("not testable here", missing.reason)
        found: tuple[str, Estimate | None, str] = (missing.measured, None, "")
    else:
        judgement = judge(s.rule, evidence)
        found = (evidence.text, evidence.total, evidence.unit)
    outcome = (judgement.verdict, judgement.reason, judgement.smaller)
    return Claim(s.where, s.text, s.dataset, s.detail, s.paper, *found, *outcome)


def summary(claims: Iterable[Claim]) -> str:
    """Return the outcome of all claims in three sentences."""
    claims = list(claims)
    tested = [claim for claim in claims if claim.estimate is not None]
    if not tested:
        return (
            f"None of the {len(claims)} claims can be tested on these results. They lack the "
            "datasets, methods or sizes that the claims are about. Run more of the grid."
        )
    counts = Counter(claim.verdict for claim in tested)
    trials = [claim.estimate.trials for claim in tested if claim.estimate]
    span = " to ".join(dict.fromkeys(map(str, (min(trials), max(trials)))))
    smaller = sum(claim.smaller for claim in claims)
    extra = f"; {smaller} of these have the claimed sign but a smaller size" if smaller else ""
    return (
        f"Of {len(claims)} claims in the paper's text, {len(tested)} can be tested on these "
        f"results, with {span} trial{'' if span == '1' else 's'} each: {counts['held']} held, "
        f"{counts['not held']} did not and {counts['undecided']} stay undecided. "
        f"Held: {_by_dataset(tested, 'held')}. Not held: {_by_dataset(tested, 'not held')}{extra}."
    )


def _by_dataset(tested: list[Claim], verdict: Verdict) -> str:
    """Return the counts of a verdict, as in "USPS 12 of 20, Letter 3 of 18"."""
    total = Counter(claim.dataset for claim in tested)
    found = Counter(claim.dataset for claim in tested if claim.verdict == verdict)
    parts = [f"{dataset_title(d)} {found[d]} of {total[d]}" for d in total if found[d]]
    return ", ".join(parts) or "none"
