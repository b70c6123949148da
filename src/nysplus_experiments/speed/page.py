"""Fill the tables and draw the figures of docs/results/speed.md."""

from __future__ import annotations

from pathlib import Path

from nysplus_experiments.harness import figures as drawing
from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.speed import cost_tables, figures, tables
from nysplus_experiments.speed.tables import Runs

#: Parts of the page from ``speed.csv``, each a function of `tables`.
TABLES = (
    *("data", "failures", "same-work", "largest-models", "losses-same-size"),
    *("losses-same-accuracy", "defaults", "floor", "objective"),
)


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / "speed"
    runs = Runs(folder / "speed.csv")
    made = {name: getattr(tables, name.replace("-", "_"))(runs) for name in TABLES}
    return made | {
        "machine": machine(folder / "speed.csv"),
        "growth": cost_tables.growth(folder / "growth.csv"),
        "overhead": cost_tables.overhead(folder / "overhead.csv"),
        "crossover": cost_tables.crossover(folder / "iterative.csv"),
        "sweep": cost_tables.sweep(folder / "sweep.csv"),
        "all": tables.everything(runs),
    }


def machine(path: Path) -> str:
    """Return the machine, the threads and all versions of a file of results."""
    known = records.environment_of(path)
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    return (
        f"*Measured on {known['cores']} cores of {known['processor']} ({known['system']}), "
        f"{known['threads']} threads for every system. Python {known['python']}, {versions}; "
        f"{' and '.join(known['blas'])}.*"
    )


def draw(results: Path, docs: Path) -> None:
    """Draw the figures of the page."""
    folder, target = results / "speed", docs / "results" / "figures"
    runs = Runs(folder / "speed.csv")
    made = {
        "accuracy_by_fit_time": figures.accuracy_figure(runs, "fit_seconds", 1.0, "fit time (s)"),
        "accuracy_by_model_size": figures.accuracy_figure(
            runs, "model_bytes", 2.0**10, "model size (kB)"
        ),
        "growth": figures.growth_figure(folder / "growth.csv"),
        "iterative": figures.crossover_figure(folder / "iterative.csv"),
    }
    for name, figure in made.items():
        drawing.save(figure, target / f"{name}.png")


PAGE = Page("results/speed.md", parts, draw)
