"""Read the claims of the paper's text, ``claims.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any

from nysplus_experiments.paper import evidence, rules
from nysplus_experiments.paper.evidence import At
from nysplus_experiments.paper.rules import Evidence, Rule
from nysplus_experiments.paper.runs import Curve, Runs

_NAMED_RULES: dict[str, Rule] = {
    "wide range": rules.WIDE_RANGE,
    "some range": rules.SOME_RANGE,
    "no gain": rules.NoGain(),
}
# Arguments of measures that are not curves.
_PLAIN = ("above_kb", "full", "reason", "threshold")


@dataclass(frozen=True)
class Statement:
    """One claim on one dataset: ``measure`` turns results into evidence, ``rule`` judges it.

    ``dataset`` is empty for claims that are about none in particular, ``detail`` names the size or
    the methods compared, ``paper`` has the paper's figures.
    """

    where: str
    text: str
    dataset: str
    detail: str
    paper: str
    measure: Callable[[Runs, str], Evidence]
    rule: Rule


def statements() -> list[Statement]:
    """Return all claims: section by section, then those that accuracies and times cannot test."""
    text = resources.files(__package__).joinpath("claims.toml").read_text("utf-8")
    found = []
    for claim in tomllib.loads(text)["claim"]:
        cases = claim.get("cases") or [{"on": name} for name in claim.get("on", [""])]
        for case in cases:
            args = claim.get("args", {}) | case.get("args", {})
            found.append(_statement(claim | case | {"args": args}))
    return found


def _statement(entry: dict[str, Any]) -> Statement:
    args = {name: _argument(name, value) for name, value in entry["args"].items()}
    return Statement(
        where=entry["where"],
        text=entry["text"],
        dataset=entry["on"],
        detail=entry.get("detail", ""),
        paper=entry.get("paper", ""),
        measure=partial(getattr(evidence, entry["measure"]), **args),
        rule=_rule(entry.get("rule", {"name": "Better"})),
    )


def _argument(name: str, value: Any) -> Any:
    if name in _PLAIN:
        return value
    if name == "at":
        return At(**value)
    return _curves(value)


def _curves(value: Any) -> Any:
    """Return the curve of a name such as "Nys" or "Nys+ (500)", or the curves of a list."""
    if isinstance(value, list):
        return tuple(_curves(each) for each in value)
    name, _, n_0 = value.rstrip(")").partition(" (")
    return Curve(name, int(n_0) if n_0.isdigit() else "largest" if n_0 else "same")


def _rule(entry: str | dict[str, Any]) -> Rule:
    if isinstance(entry, str):
        return _NAMED_RULES[entry]
    fields = {key: value for key, value in entry.items() if key != "name"}
    rule: Rule = getattr(rules, entry["name"])(**fields)
    return rule
