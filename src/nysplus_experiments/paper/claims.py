"""The paper's claims next to what was measured, each with a verdict.

A claim about a difference is judged by the 95 % interval (Student's t) of the paired difference
over trials; trials of the same number use the same split.

- *held*: the interval lies on the claimed side of zero and does not fall short of the claimed size.
- *not held*: it lies on the other side, or it excludes the claimed size.
- *undecided*: it includes zero (or a claimed bound), or there was one trial only.
- *not testable here*: the dataset, the method or the size is not among the results.

A claim about many sizes counts the sizes whose interval lies above or below zero.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from nysplus_experiments.harness.statistics import Estimate
from nysplus_experiments.paper import evidence, rules
from nysplus_experiments.paper.evidence import At
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.rules import Evidence, Judgement, Rule, Verdict
from nysplus_experiments.paper.runs import Curve, Runs, dataset_title

VERDICTS: tuple[Verdict, ...] = ("held", "not held", "undecided", "not testable here")
_NAMED_RULES: dict[str, Rule] = {
    "wide range": rules.WIDE_RANGE,
    "some range": rules.SOME_RANGE,
    "no gain": rules.NoGain(),
}
# Arguments of measures that are not curves.
_PLAIN = ("above_kb", "full", "reason", "threshold")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its evidence and verdict.

    ``dataset`` is empty where the claim is about none in particular, ``estimate`` None where it is
    not testable. ``smaller``: a claim that is not held has the claimed sign, only a smaller size.
    ``outlook`` says how many trials would decide an undecided claim.
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
    outlook: str = ""

    @property
    def subject(self) -> str:
        """The dataset's title with the detail."""
        title = dataset_title(self.dataset) if self.dataset else "any data"
        return ", ".join(part for part in (title, self.detail) if part)


def evaluate(results: Iterable[Result]) -> list[Claim]:
    """Judge every claim of ``claims.toml``; rows with errors are left out."""
    runs = Runs(results)
    return [_claim(entry, runs) for entry in entries()]


def entries() -> Iterator[dict[str, Any]]:
    """Yield the claims in the order of the paper, once for each dataset."""
    text = resources.files(__package__).joinpath("claims.toml").read_text("utf-8")
    for claim in tomllib.loads(text)["claim"]:
        for case in claim.get("cases") or [{"on": name} for name in claim.get("on", [""])]:
            yield claim | case | {"args": claim.get("args", {}) | case.get("args", {})}


def measure(entry: dict[str, Any], runs: Runs) -> Evidence:
    """Return the evidence on an entry, or raise `NotTestable`."""
    args = {
        name: value if name in _PLAIN else At(**value) if name == "at" else _curves(value)
        for name, value in entry["args"].items()
    }
    found: Evidence = getattr(evidence, entry["measure"])(runs, entry["on"], **args)
    return found


def _claim(entry: dict[str, Any], runs: Runs) -> Claim:
    found: Evidence | None = None
    text = ""
    try:
        found = measure(entry, runs)
    except evidence.NotTestable as missing:
        judgement, text = Judgement("not testable here", missing.reason), missing.measured
    else:
        judgement = rules.judge(rule_of(entry), found)
    return Claim(
        where=entry["where"],
        text=entry["text"],
        dataset=entry["on"],
        detail=entry.get("detail", ""),
        paper=entry.get("paper", ""),
        measured=found.text if found else text,
        estimate=found.total if found else None,
        unit=found.unit if found else "",
        verdict=judgement.verdict,
        reason=judgement.reason,
        smaller=judgement.smaller,
        outlook=judgement.outlook,
    )


def _curves(value: Any) -> Any:
    """Return the curve of a name such as "Nys" or "Nys+ (500)", or the curves of a list."""
    if isinstance(value, list):
        return tuple(_curves(each) for each in value)
    name, _, n_0 = value.rstrip(")").partition(" (")
    return Curve(name, int(n_0) if n_0.isdigit() else "largest" if n_0 else "same")


def rule_of(entry: dict[str, Any]) -> Rule:
    """Return the rule that judges an entry: by default, that its difference is positive."""
    given = entry.get("rule", {"name": "Better"})
    if isinstance(given, str):
        return _NAMED_RULES[given]
    fields = {key: value for key, value in given.items() if key != "name"}
    rule: Rule = getattr(rules, given["name"])(**fields)
    return rule


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
