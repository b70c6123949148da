"""Tables and figures of docs/results/mechanism.md."""

from __future__ import annotations

from pathlib import Path

from nysplus_experiments.harness import figures as harness_figures
from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import count, machine
from nysplus_experiments.mechanism import conditions, figures, full_kernel, landmarks, tables
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.runner import RESULTS_FILE

NAME = "mechanism"


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / NAME
    chosen = records.frame(folder / landmarks.FILE, landmarks.LandmarkStatistics)
    changed = records.frame(folder / conditions.FILE, conditions.Gain)
    full = records.frame(folder / full_kernel.FILE, full_kernel.FullKernel)
    paper = records.frame(results / "paper" / RESULTS_FILE, Result)
    made_on = machine(records.environment_of(folder / landmarks.FILE))
    counts = [count(frame["trial"].nunique(), "trial") for frame in (chosen, changed, full)]
    return {
        "machine": f"*{made_on} {counts[0]} of the tables on landmarks and rules, {counts[1]} of "
        f"the tables on conditions, {counts[2]} of the table on full kernel ridge regression.*",
        "paper-gains": tables.paper_gains(paper, landmarks.DATASETS),
        "rows": tables.chosen_rows(chosen),
        "classes": tables.class_table(chosen),
        "redundancy": tables.redundancy(chosen),
        "easy-and-hard": tables.easy_and_hard(chosen),
        "rules": tables.rule_table(chosen),
        "pool": tables.condition_table(changed, "pool"),
        "gamma": tables.condition_table(changed, "gamma"),
        "rho": tables.condition_table(changed, "rho"),
        "scaling": tables.condition_table(changed, "scaling"),
        "weights": tables.weight_table(changed),
        "errors": tables.error_table(tables.error_cells(chosen, changed)),
        "full-kernel": tables.full_table(full),
        "directions": tables.direction_table(full),
    }


def draw(results: Path, docs: Path) -> None:
    """Draw the figures."""
    folder, drawn = results / NAME, docs / "results" / "figures"
    changed = records.frame(folder / conditions.FILE, conditions.Gain)
    chosen = records.frame(folder / landmarks.FILE, landmarks.LandmarkStatistics)
    made = {
        "errors": figures.error_figure(tables.error_cells(chosen, changed)),
        "conditions": figures.condition_figure(changed),
        "rules": figures.rule_figure(chosen),
    }
    for name, figure in made.items():
        harness_figures.save(figure, drawn / f"mechanism_{name}.png")


PAGE = Page("results/mechanism.md", parts, draw)
