"""Sections from benchmarks that are not part of every run; each is left out without its file."""

from __future__ import annotations

import csv
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_figures as figures
from benchmark_runs import short, spread, table

SaveFigure = Callable[[Any, str, str], list[str]]


def sections(results: Path, save: SaveFigure) -> list[str]:
    """Return the sections whose CSV files are there."""
    lines = []
    if rows := _read(results / "iterative.csv"):
        lines += iterative(rows, save)
    if rows := _read(results / "sweep.csv"):
        lines += sweep(rows)
    return lines


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def iterative(rows: list[dict[str, str]], save: SaveFigure) -> list[str]:
    """Show where an iterative solver overtakes a direct one.

    Columns: n, rows, solver, seconds, peak_mb, objective, gap, iterations.
    """
    cells: dict[tuple[int, int, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        cells[int(row["rows"]), int(row["n"]), row["solver"]].append(row)
    several = len({n_rows for n_rows, _, _ in cells}) > 1
    series: dict[str, dict[int, list[float]]] = defaultdict(dict)
    lines = []
    for (n_rows, n, solver), own in sorted(cells.items()):
        seconds = _numbers(own, "seconds")
        gaps = [abs(gap) for gap in _numbers(own, "gap")]
        iterations = _numbers(own, "iterations")
        if seconds:
            name = f"{solver}, N = {n_rows:,}" if several else solver
            series[name][n] = seconds
        lines.append(
            [
                *(f"{n_rows:,}", str(n), solver, spread(seconds)),
                spread(_numbers(own, "peak_mb")),
                f"{max(gaps):.1e}" if gaps else "–",
                short(statistics.median(iterations)) if iterations else "–",
            ]
        )
    header = ("N", "n", "solver", "fit, s", "memory, MB", "objective gap", "iterations")
    return [
        "## Direct or iterative",
        "",
        *(
            save(
                figures.crossover_figure(series),
                "iterative",
                "Fit time by solver. Where the curves cross, the iterative solver takes over.",
            )
            if series
            else []
        ),
        *table(header, lines),
        "",
    ]


def sweep(rows: list[dict[str, str]]) -> list[str]:
    """Sum up the sweep over problems, kernels, widths and ridges: counts and the largest gap.

    Columns: problem, kernel, gamma, alpha, rows, n, dtype, solver, gap, status.
    """
    lines = []
    for solver in sorted({row["solver"] for row in rows}):
        own = [row for row in rows if row["solver"] == solver]
        gaps = _numbers([row for row in own if "uncertain" not in row["status"]], "gap")
        counts = Counter(row["status"] for row in own)
        statuses = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        largest = f"{max(gaps):.1e}" if gaps else "–"
        lines.append([solver or "–", str(len(own)), statuses, largest])
    problems = len({row["problem"] for row in rows})
    return [
        "## Every solver on many problems",
        "",
        f"{len(rows)} fits of {problems} problems over kernels, widths and ridges, compared with a "
        "dense float64 reference. *Fitted*: by the solver that the rules chose; *forced*: by every "
        "other one that its own rule admits; *gave up*: its check failed, as it should, and the "
        "next solver would follow. The gap is how far the objective is above the reference's, "
        "relative to it; where the reference itself is uncertain (a few problems of which rounding "
        "decides the rank) it says nothing and is left out.",
        "",
        *table(("solver", "fits", "status", "largest objective gap"), lines),
        "",
    ]


def _numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    values = [float(row[column]) for row in rows if row.get(column)]
    return [value for value in values if math.isfinite(value)]
