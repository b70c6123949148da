"""Write docs/benchmarks.md and its figures from the CSV files of the benchmarks, and nothing else.

python benchmarks/benchmark_page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import benchmark_figures as figures
import benchmark_losses
import benchmark_tables as tables
import csv_rows
import optional_sections
import overhead
import pages
from benchmark_runs import Runs, dataset_title, spread, system_title, table
from growth import Growth
from measurement import Measurement
from peers import RHO, SVC_C

Section = list[str]
SaveFigure = Callable[[figures.Figure, str, str], Section]


def introduction(runs: Runs, known: dict) -> Section:
    """Say how the page was made, on what, and what was compared."""
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    rows = {d: next(iter(runs.rows(runs.cells(d)[0]).values())) for d in runs.datasets}
    trees = (
        "sleep, as they do for every system here"
        if known["tree_waiting"] == "passive"
        else "wait as the libraries make them wait; those of all other systems sleep"
    )
    return [
        "<!-- Written by benchmarks/benchmark_page.py. Do not edit: change the benchmarks. -->",
        "# Benchmarks",
        "",
        "*Made by `make bench` (`benchmarks/speed.py`, `crossover.py`, `growth.py`, `overhead.py`, "
        "`sweep.py`, then "
        f"`benchmark_page.py`) on {known['cores']} cores of {known['processor']} "
        f"({known['system']}), {known['threads']} threads for every system. Python "
        f"{known['python']}, {versions}; {' and '.join(known['blas'])}.*",
        "",
        "Same rows, landmarks, kernel, γ (the paper's) and seed for `nysplus` and for "
        f"scikit-learn's `Nystroem` + `RidgeClassifier`; ρ = {RHO:g} and uniform landmarks, except "
        "in the lines that say *defaults* (`selection` and `alpha` left to `nysplus`, γ the same). "
        f"`SVC` has C = {SVC_C:g} and the same γ; gradient boosting has its defaults, and its "
        f"waiting threads {trees}. Each measurement is a process of its own, after a small "
        "warm-up; all systems take turns within each repeat. Ratios are between measurements of "
        "the same repeat: *median [smallest, largest]*. Memory is the peak beyond what was "
        f"resident before the fit. A system that does not finish in {known['time_limit']:g} s is "
        "stopped. Long fits are repeated less, the longest run once (column *runs* at the end).",
        "",
        *table(
            ("data", "training rows", "test rows", "features"),
            (
                [dataset_title(d), f"{r.rows:,}", f"{r.test_rows:,}", str(r.features)]
                for d, r in rows.items()
            ),
        ),
        "",
        *_failures(runs),
    ]


def _failures(runs: Runs) -> Section:
    lines = [
        f"- {dataset_title(row.dataset)}, {system_title(row.cell)}"
        f"{'' if row.n is None else f', n = {row.n}'}: {row.status} ({row.note})."
        for row in runs.failures()
    ]
    return ["Not in the tables and figures:", "", *lines, ""] if lines else []


def accuracy_figures(runs: Runs, save: SaveFigure) -> Section:
    """Show accuracy against fit time and against model size."""
    sizes = ", ".join(map(str, runs.sizes))
    curves = (
        f"Curves join n = {sizes} landmarks or random features. The accuracy axis is spaced by the "
        "logarithm of the error."
    )
    return [
        "## Accuracy against fit time and model size",
        "",
        *save(
            figures.accuracy_figure(runs, figures.FIT_TIME),
            "accuracy_by_fit_time",
            f"Up and to the left is better. {curves} Bars: smallest to largest of the repeats.",
        ),
        *save(
            figures.accuracy_figure(runs, figures.MODEL_SIZE),
            "accuracy_by_model_size",
            f"What a user has to store to predict. {curves}",
        ),
    ]


def growth_section(rows: list[Growth], save: SaveFigure) -> Section:
    """Show how the cost grows."""
    cells = dict.fromkeys((row.against, row.rows, row.n, row.dtype) for row in rows)
    lines = []
    for cell in cells:
        own = [row for row in rows if (row.against, row.rows, row.n, row.dtype) == cell]
        peaks = [row.peak_mb for row in own if row.peak_mb is not None]
        _, n_rows, n, dtype = cell
        times = spread([row.fit_seconds for row in own])
        lines.append([f"{n_rows:,}", str(n), dtype, times, spread(peaks), own[0].solver or "–"])
    return [
        "## How the cost grows",
        "",
        *save(
            figures.growth_figure(rows),
            "growth",
            "Fit time on synthetic rows, both axes logarithmic. Exponents by least squares over "
            "the three largest sizes, where fixed costs count least; bars: smallest to "
            "largest of the repeats.",
        ),
        *table(("N", "n", "rows", "fit, s", "memory beyond the data, MB", "solver"), lines),
        "",
    ]


def overhead_section(rows: list[overhead.Overhead]) -> Section:
    """Show what import and calls cost."""
    return [
        "## Overhead",
        "",
        f"Fits of {overhead.ROWS} rows, predictions of few rows, n = {overhead.LANDMARKS}, "
        f"d = {overhead.FEATURES}, float64.",
        "",
        *table(("what", "median [smallest, largest]"), overhead.summary(rows)),
        "",
    ]


def write_page(results: Path, docs: Path) -> Path:
    """Write the page and its figures; return the page."""

    def save(figure: figures.Figure, name: str, caption: str) -> Section:
        figures.save(figure, docs / "figures" / f"{name}.png")
        return [f"![{caption.split('.')[0]}](figures/{name}.png)", "", f"*{caption}*", ""]

    runs = Runs(csv_rows.read(results / "speed.csv", Measurement))
    if not runs.datasets:
        raise SystemExit(f"There are no measurements in {results}. Run benchmarks/speed.py first.")
    known = json.loads((results / "speed.json").read_text(encoding="utf-8"))
    lines = [
        *introduction(runs, known),
        *accuracy_figures(runs, save),
        *(tables.same_work(runs) + tables.instead(runs) + tables.floor(runs)),
        *(tables.defaults(runs) + tables.objective_gaps(runs)),
        *[*benchmark_losses.section(runs), ""],
    ]
    if grown := csv_rows.read(results / "growth.csv", Growth):
        lines += growth_section(grown, save)
    if paid := csv_rows.read(results / "overhead.csv", overhead.Overhead):
        lines += overhead_section(paid)
    lines += optional_sections.sections(results, save) + tables.everything(runs)
    return pages.write(docs / "benchmarks.md", "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    pages.main(__doc__, write_page)
