"""Make the tables on growth, overhead and solvers, in Markdown."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.tables import MISSING, markdown, short, spread
from nysplus_experiments.speed.crossover import Crossover
from nysplus_experiments.speed.growth import Growth
from nysplus_experiments.speed.overhead import BATCHES, CLUSTERED_ROWS, COMPARED, Overhead
from nysplus_experiments.speed.sweep import Sweep

_FACTORS = {"ms": 1e3, "µs": 1e6, "×": 1.0}


def growth(path: Path) -> str:
    """List time and memory of fits by rows, landmarks and type."""
    rows = [
        [
            *(f"{n_rows:,}", str(n), dtype, spread(own["fit_seconds"])),
            *(spread(own["peak_mb"]), own["solver"].iloc[0] or MISSING),
        ]
        for (_, n_rows, n, dtype), own in records.frame(path, Growth).groupby(
            ["against", "rows", "n", "dtype"], sort=False
        )
    ]
    header = ("N", "n", "type of rows", "fit, s", "memory beyond the data, MB", "solver")
    return markdown(header, rows)


def crossover(path: Path) -> str:
    """List time, memory and objective of each solver."""
    rows = [
        [
            *(f"{n_rows:,}", str(n), solver, spread(own["seconds"])),
            *(spread(own["peak_mb"]), f"{own['gap'].abs().max():.1e}"),
            f"{own['iterations'].median():g}",
        ]
        for (n_rows, n, solver), own in records.frame(path, Crossover).groupby(
            ["rows", "n", "solver"]
        )
    ]
    header = ("N", "n", "solver", "fit, s", "memory, MB", "objective gap", "iterations")
    return markdown(header, rows)


def sweep(path: Path) -> str:
    """Count the fits of each solver by status, with the largest gap."""
    rows = []
    for solver, own in records.frame(path, Sweep).groupby("solver"):
        counts = own["status"].value_counts().sort_index()
        statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
        gap = own.loc[~own["status"].str.contains("uncertain"), "gap"].max()
        rows.append([solver, str(len(own)), statuses, f"{gap:.1e}"])
    return markdown(("solver", "fits", "status", "largest objective gap"), rows)


def overhead(path: Path) -> str:
    """List the costs that are paid once or per call."""
    frame = records.frame(path, Overhead)
    frame["rows"] = frame["rows"].fillna(0).astype(int)
    seconds = frame.set_index(["what", "system", "rows", "repeat"])["seconds"].sort_index()

    def get(what: str, system: str, rows: int = 0) -> pd.Series:
        return seconds.loc[what, system, rows]

    imports, import_sklearn = get("import", "nysplus"), get("import", "scikit-learn")
    lines = [
        ("import nysplus", _spread(imports, "ms")),
        ("import sklearn.kernel_approximation", _spread(import_sklearn, "ms")),
        ("import: nysplus − scikit-learn", _spread(imports - import_sklearn, "ms")),
        ("import: nysplus / scikit-learn", _spread(imports / import_sklearn, "×")),
    ]
    for system in COMPARED:
        first, second = get("first fit", system), get("second fit", system)
        lines += [
            (f"first / second fit of a process, {system}", _spread(first / second, "×")),
            (f"first − second fit of a process, {system}", _spread(first - second, "ms")),
        ]
    one, check = get("predict", "nysplus", 1), get("check", "scikit-learn", 1)
    lines += [
        ("predict 1 row, nysplus", _spread(one, "µs")),
        ("scikit-learn's validation of 1 row, part of the above", _spread(check, "µs")),
        ("predict 1 row, nysplus, without validation", _spread(one - check, "µs")),
    ]
    for batch in BATCHES:
        ours, theirs = (get("predict", system, batch) for system in COMPARED)
        what = f"predict {batch} row{'s' if batch > 1 else ''}"
        lines += [
            (f"{what}, scikit-learn's pipeline", _spread(theirs, "µs")),
            (f"{what}, scikit-learn / nysplus", _spread(theirs / ours, "×")),
        ]
    ours = get("k-means", "nysplus", CLUSTERED_ROWS)
    for name in ("Lloyd, float64", "Lloyd, float32", "Elkan, float32"):
        ratio = get("k-means", name, CLUSTERED_ROWS) / ours
        what = f"k-means of {CLUSTERED_ROWS:,} rows, scikit-learn ({name}) / nysplus"
        lines.append((what, _spread(ratio, "×")))
    return markdown(("cost", "median [smallest, largest]"), lines)


def _spread(values: pd.Series, unit: str) -> str:
    """Write "median [smallest, largest] unit" of seconds or ratios with three digits."""
    scaled = _FACTORS[unit] * values
    return f"{spread(scaled, lambda x: f'{x:.3g}' if abs(x) < 1000 else short(x))} {unit}"
