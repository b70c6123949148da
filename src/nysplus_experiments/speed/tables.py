"""The tables of the benchmark page that come from ``speed.csv``, as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable

from benchmark_runs import Runs, dataset_title, percent, short, size, spread, system_title, table
from measurement import Cell
from peers import FLOOR

Section = list[str]


def same_work(runs: Runs) -> Section:
    """Compare with scikit-learn's pipeline at the same landmarks."""
    pairs = (("float32", "float32"), ("float32", "float64"), ("float64", "float64"))
    rows = []
    for dataset in runs.datasets:
        for n in runs.sizes:
            for own, other in pairs:
                ours: Cell = (dataset, "nysplus", own, n)
                theirs: Cell = (dataset, "sklearn-nystroem", other, n)
                if runs.rows(ours) and runs.rows(theirs):
                    rows.append(_same_work_row(runs, ours, theirs))
    header = (
        "data", "n", "rows: ours / theirs", "our fit, s", "fit: theirs / ours",
        "predict: theirs / ours", "accuracy %: ours / theirs", "memory, MB: ours / theirs",
        "model: ours / theirs",
    )  # fmt: skip
    return [
        "## Same work: scikit-learn's `Nystroem` + `RidgeClassifier`",
        "",
        "How many times longer scikit-learn takes for the same landmarks.",
        "",
        *table(header, rows),
        "",
    ]


def _same_work_row(runs: Runs, ours: Cell, theirs: Cell) -> list[str]:
    def both(write: Callable[[float], str], column: str) -> str:
        return " / ".join(write(runs.median(cell, column)) for cell in (ours, theirs))

    return [
        dataset_title(ours[0]),
        str(ours[3]),
        f"{ours[2]} / {theirs[2]}",
        short(runs.median(ours, "fit_seconds")),
        spread(runs.ratios(theirs, ours, "fit_seconds")),
        spread(runs.ratios(theirs, ours, "predict_seconds")),
        both(percent, "accuracy"),
        both(short, "peak_mb"),
        both(size, "model_bytes"),
    ]


def instead(runs: Runs) -> Section:
    """Compare the largest model of each dataset with systems that have no size to choose."""
    rows = []
    for dataset in runs.datasets:
        sizes = [n for n in runs.sizes if runs.rows((dataset, "nysplus", "float32", n))]
        if not sizes:
            continue
        ours: Cell = (dataset, "nysplus", "float32", max(sizes))
        for theirs in runs.cells(dataset):
            if theirs[3] is None:
                ratios = ("fit_seconds", "predict_seconds", "model_bytes")
                rows.append(
                    [
                        *(dataset_title(dataset), system_title(theirs), str(max(sizes))),
                        *(percent(runs.median(cell, "accuracy")) for cell in (theirs, ours)),
                        *(spread(runs.ratios(theirs, ours, column)) for column in ratios),
                    ]
                )
    header = (
        "data", "system", "our n", "accuracy %: theirs", "ours", "fit: theirs / ours",
        "predict: theirs / ours", "bytes: theirs / ours",
    )  # fmt: skip
    return [
        "## What a user would take instead",
        "",
        "Against our largest model of each dataset here, on float32 rows: uniform landmarks, fixed "
        "ridge. How many times more time and bytes the other system takes.",
        "",
        *table(header, rows),
        "",
    ]


def floor(runs: Runs) -> Section:
    """Compare the fit with the matrix products alone."""
    rows = []
    for dataset in runs.datasets:
        for n in runs.sizes:
            for dtype in ("float32", "float64"):
                ours: Cell = (dataset, "nysplus", dtype, n)
                below: Cell = (dataset, FLOOR, runs.precision(ours), n)
                if runs.rows(ours) and runs.rows(below):
                    rows.append(
                        [
                            *(dataset_title(dataset), str(n), dtype),
                            runs.solver(ours) or runs.precision(ours),
                            *(short(runs.median(c, "fit_seconds")) for c in (ours, below)),
                            spread(runs.ratios(ours, below, "fit_seconds")),
                        ]
                    )
    header = ("data", "n", "rows", "solver", "fit, s", "floor, s", "fit / floor")
    return [
        "## How far from the floor",
        "",
        "The floor is what three matrix products take by themselves, in the precision that the fit "
        "used and with the same threads: `X Zᵀ`, the whitening by a triangular product or solve "
        "(the faster of the two), and the symmetric rank-k update. It is measured in the same run "
        "on blocks of a few thousand rows, and the median block is scaled linearly to all rows. A "
        "solver that needs fewer products can be below it.",
        "",
        *table(header, rows),
        "",
    ]


def defaults(runs: Runs) -> Section:
    """Show what the defaults cost and bring."""
    rows = []
    for dataset in runs.datasets:
        for n in runs.sizes:
            plain: Cell = (dataset, "nysplus", "float32", n)
            full: Cell = (dataset, "nysplus-defaults", "float32", n)
            if runs.rows(plain) and runs.rows(full):
                rows.append(
                    [
                        *(dataset_title(dataset), str(n)),
                        short(runs.median(full, "fit_seconds")),
                        spread(runs.ratios(full, plain, "fit_seconds")),
                        *(percent(runs.median(cell, "accuracy")) for cell in (plain, full)),
                    ]
                )
    header = (
        "data", "n", "fit with defaults, s", "defaults / uniform and fixed ridge",
        "accuracy %: uniform, fixed ridge", "accuracy %: defaults",
    )  # fmt: skip
    return ["## What the defaults cost", "", *table(header, rows), ""]


def objective_gaps(runs: Runs) -> Section:
    """Show how far fits are from the fit of float64 rows, as the training objective tells it."""
    others = (
        ("nysplus", "float32"),
        ("sklearn-nystroem", "float32"),
        ("sklearn-nystroem", "float64"),
    )
    rows = []
    for dataset in runs.datasets:
        for n in runs.sizes:
            reference = runs.values((dataset, "nysplus", "float64", n), "objective")
            if not reference:
                continue
            gaps = []
            for name, dtype in others:
                found = runs.values((dataset, name, dtype, n), "objective")
                gaps.append(f"{found[0] / reference[0] - 1:.1e}" if found else "–")
            solver = runs.solver((dataset, "nysplus", "float32", n)) or "–"
            rows.append([dataset_title(dataset), str(n), short(reference[0]), solver, *gaps])
    header = (
        "data", "n", "J, nysplus float64", "solver of float32 rows", "nysplus float32",
        "scikit-learn float32", "scikit-learn float64",
    )  # fmt: skip
    return [
        "## Objective",
        "",
        "`J = ‖K(X,Z)A + b − Y‖² + ρ tr(AᵀK(Z,Z)A)` of each fit over that of `nysplus` on float64 "
        "rows, minus one; below zero is better. All rows hold the same values, J is evaluated in "
        "float64 outside of the timing. `make exactness` compares with a dense reference.",
        "",
        *table(header, rows),
        "",
    ]


def everything(runs: Runs) -> Section:
    """List all medians, folded away."""
    lines = ["## All measurements", "", "Medians of the repeats.", ""]
    for dataset in runs.datasets:
        rows = [
            [
                system_title(cell),
                "" if cell[3] is None else str(cell[3]),
                percent(runs.median(cell, "accuracy")),
                *(
                    short(runs.median(cell, column))
                    for column in (
                        *("fit_seconds", "fit_cpu_seconds"),
                        *("predict_seconds", "predict_cpu_seconds"),
                        *("peak_mb", "predict_peak_mb"),
                    )
                ),
                size(runs.median(cell, "model_bytes")),
                str(len(runs.rows(cell))),
            ]
            for cell in runs.cells(dataset)
        ]
        header = (
            "system", "n", "accuracy %", "fit, s", "fit, CPU s", "predict, s", "predict, CPU s",
            "memory of fit, MB", "of predict, MB", "model", "runs",
        )  # fmt: skip
        summary = f"<summary>{dataset_title(dataset)}</summary>"
        lines += ["<details>", summary, "", *table(header, rows), "", "</details>", ""]
    return lines
