"""Tables and figure of docs/results/kilobytes.md."""

from __future__ import annotations

from pathlib import Path

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import machine
from nysplus_experiments.kilobytes import summary, tables
from nysplus_experiments.kilobytes.figure import size_figure
from nysplus_experiments.kilobytes.fits import FILE, PEERS, TREES

#: Parts of the page, each a function of `tables`.
TABLES = (
    *("data", "accuracy", "before", "seconds", "svc", "any-size", "other-libraries", "published"),
    *("tabular", "stable", "wrong-labels", "draws", "regression", "others", "refinement-time"),
)


def parts(results: Path) -> dict[str, str]:
    """Return the text of each marked part."""
    fits = tables.read(results)
    known = records.environment_of(results / "kilobytes" / FILE)
    boosting = ", ".join(
        f"{PEERS[name].title} {known['versions'][PEERS[name].package]}"
        for name in TREES
        if PEERS[name].package in known["versions"]
    )
    made = {"summary": summary.text(fits)}
    made |= {name: getattr(tables, name.replace("-", "_"))(fits) for name in TABLES}
    return made | {"machine": f"{machine(known)} Threads: {known['threads']}; {boosting}."}


def draw(results: Path, docs: Path) -> None:
    """Draw the figure."""
    path = docs / "results" / "figures" / "kilobytes.png"
    figures.save(size_figure(tables.read(results)), path)


PAGE = Page("results/kilobytes.md", parts, draw)
