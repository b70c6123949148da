"""Fill the tables of docs/background/numerics.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import MISSING, markdown
from nysplus_experiments.numerics.truth import Error

TYPES = ("float64", "float32")


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    rows = records.frame(results / "numerics" / "truth.csv", Error)
    return {"truth": result_table(rows), "kernels": kernel_table(rows)}


def result_table(rows: pd.DataFrame) -> str:
    """List counts, errors and gaps of each result by the type of the rows."""
    lines = []
    for (result, dtype), own in rows.groupby(["result", "dtype"]):
        allowed = own[own["allowed"]]
        lines.append(
            [
                *(result, dtype, str(len(own)), str(own["error"].isna().sum())),
                *(_digits(own["error"].median()), _digits(own["error"].max())),
                *(_digits(own["gap"].max()), str(len(allowed)), _digits(allowed["error"].max())),
                _digits(allowed["gap"].max()),
            ]
        )
    header = (
        *("result", "type of rows", "problems", "gave up", "median error", "worst error"),
        *("worst gap", "allowed", "worst error, allowed", "worst gap, allowed"),
    )
    return markdown(header, lines)


def kernel_table(rows: pd.DataFrame) -> str:
    """List the errors of kernel values and of fitted estimators by kernel."""
    lines = []
    for kernel, own in rows.groupby("kernel"):
        cells = []
        for result in ("kernel", "estimator"):
            for dtype in TYPES:
                errors = own.loc[(own["result"] == result) & (own["dtype"] == dtype), "error"]
                cells.append(f"{_digits(errors.median())}, {_digits(errors.max())}")
        lines.append([str(kernel), *cells])
    header = [
        f"{what}, {dtype} rows" for what in ("kernel values", "scores of fits") for dtype in TYPES
    ]
    return markdown(("kernel", *header), lines)


def _digits(value: float) -> str:
    return MISSING if pd.isna(value) else f"{value:.1e}"


PAGE = Page("background/numerics.md", parts)
