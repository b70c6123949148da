"""Tables and figure of docs/results/tables.md."""

from __future__ import annotations

from pathlib import Path

from nysplus_experiments.harness import figures, records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import machine
from nysplus_experiments.tables import again, comparison, fits, practice, summaries
from nysplus_experiments.tables.figure import byte_figure

#: Parts of the page, each a function of `summaries` on all sizes.
TABLES = (
    *("headline", "state", "mean-ranks", "against-defaults", "fronts", "unbeaten-cells", "losses"),
    *("log-losses", "costs", "sets"),
)
CSV_TABLES = ("csv", "pipelines")
_LIBRARIES = {"lightgbm": "LightGBM", "xgboost-cpu": "XGBoost", "catboost": "CatBoost"}


def _name(size: str) -> str:
    """Return the name of the part of a size."""
    return size.replace(" ", "-").replace(".", "-").lower()


def parts(results: Path) -> dict[str, str]:
    """Return the text of each marked part."""
    found = comparison.read(results)
    bench = comparison.Benchmark.of(found)
    made = {name: getattr(summaries, name.replace("-", "_"))(bench) for name in TABLES}
    made["coverage"] = summaries.coverage(found, bench)
    made |= {f"at-{_name(size)}": summaries.at_size(bench, size) for size in fits.SIZES}
    for size in summaries.SHOWN:
        for kind, regression in (("classes", False), ("numbers", True)):
            made[f"{kind}-{_name(size)}"] = summaries.scores(bench, size, regression)
    csv_fits = practice.read_csv_fits(results)
    made |= {name: getattr(practice, name)(csv_fits) for name in CSV_TABLES}
    made["times"] = practice.times(practice.read_seconds(results))
    made["agreement"] = practice.agreement(practice.read_exports(results))
    made["again"] = again.summary(again.read(results))
    return made | {"machine": _machine(results)}


def _machine(results: Path) -> str:
    known = records.environment_of(results / "tables" / fits.file_of(comparison.OURS))
    versions = ", ".join(
        f"{title} {known['versions'][package]}"
        for package, title in _LIBRARIES.items()
        if package in known["versions"]
    )
    return f"{machine(known)} Threads: {known['threads']}; {versions}."


def draw(results: Path, docs: Path) -> None:
    """Draw the figure."""
    bench = comparison.Benchmark.of(comparison.read(results))
    path = docs / "results" / "figures" / "tables.png"
    figures.save(byte_figure(bench), path)


PAGE = Page("results/tables.md", parts, draw)
