"""Fill the tables and draw the figures of docs/results/speed.md."""

from __future__ import annotations

from pathlib import Path

from nysplus_experiments.harness import figures as drawing
from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.speed import cost_tables, figures, tables
from nysplus_experiments.speed.tables import Runs


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / "speed"
    runs = Runs(folder / "speed.csv")
    return {
        "machine": machine(folder / "speed.csv"),
        "data": tables.data(runs),
        "failures": tables.failures(runs),
        "same-work": tables.same_work(runs),
        "largest-models": tables.largest_models(runs),
        "losses-same-size": tables.losses_same_size(runs),
        "losses-same-accuracy": tables.losses_same_accuracy(runs),
        "defaults": tables.defaults(runs),
        "floor": tables.floor(runs),
        "objective": tables.objective(runs),
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
