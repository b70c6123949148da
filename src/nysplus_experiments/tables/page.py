"""Tables and figure of docs/results/tables.md."""

from __future__ import annotations

from pathlib import Path

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import machine
from nysplus_experiments.tables import comparison, summaries
from nysplus_experiments.tables.figure import margin_figure
from nysplus_experiments.tables.fits import PEERS_FILE

#: Parts of the page, each a function of `summaries`.
TABLES = (
    *("against-lightgbm", "against-best", "other-libraries", "all-rows", "all-rows-tables"),
    *("few-rows", "new-rows", "twins", "classification", "regression", "sizes"),
)
CSV_TABLES = ("csv", "pipelines")
_LIBRARIES = {"lightgbm": "LightGBM", "xgboost-cpu": "XGBoost", "catboost": "CatBoost"}


def parts(results: Path) -> dict[str, str]:
    """Return the text of each marked part."""
    fits, csv_fits = comparison.read(results), summaries.read_csv_fits(results)
    known = records.environment_of(results / "tables" / PEERS_FILE)
    made = {name: getattr(summaries, name.replace("-", "_"))(fits) for name in TABLES}
    made |= {name: getattr(summaries, name)(csv_fits) for name in CSV_TABLES}
    made["times"] = summaries.times(summaries.read_seconds(results))
    made["agreement"] = summaries.agreement(summaries.read_exports(results))
    versions = ", ".join(
        f"{title} {known['versions'][package]}"
        for package, title in _LIBRARIES.items()
        if package in known["versions"]
    )
    return made | {"machine": f"{machine(known)} Threads: {known['threads']}; {versions}."}


def draw(results: Path, docs: Path) -> None:
    """Draw the figure."""
    path = docs / "results" / "figures" / "tables.png"
    figures.save(margin_figure(comparison.read(results)), path)


PAGE = Page("results/tables.md", parts, draw)
