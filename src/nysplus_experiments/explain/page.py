"""Fill the tables of docs/results/explain.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.explain.exactness import Exactness
from nysplus_experiments.explain.peers import Peer
from nysplus_experiments.explain.times import Time
from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.tables import machine, markdown, short


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / "explain"
    return {
        "machine": _machine(folder),
        "exactness": exactness_table(records.frame(folder / "exactness.csv", Exactness)),
        "times": time_table(records.frame(folder / "times.csv", Time)),
        "peers": peer_table(records.frame(folder / "peers.csv", Peer)),
    }


def _machine(folder: Path) -> str:
    known = records.environment_of(folder / "peers.csv")
    return f"*{machine(known)} One thread; shap {known['shap']}.*"


def exactness_table(rows: pd.DataFrame) -> str:
    """List the largest errors by kernel, map and kind of rows."""
    lines = [
        [
            *(str(kernel), str(kind), "tables" if table else "numbers", str(len(own))),
            *(f"{own['error'].max():.1e}", f"{own['additivity'].max():.1e}"),
        ]
        for (kernel, kind, table), own in rows.groupby(["kernel", "map", "table"])
    ]
    worst = (f"{rows['error'].max():.1e}", f"{rows['additivity'].max():.1e}")
    lines.append(["all", "", "", str(len(rows)), *worst])
    header = ("kernel", "map", "rows", "models", "largest error", "largest error of the sum")
    return markdown(header, lines)


def time_table(rows: pd.DataFrame) -> str:
    """List the time of a row by the sizes of model and background."""
    header = (
        *("form of the model", "landmarks", "columns", "background rows", "rows of a call"),
        "ms per row",
    )
    lines = [
        [row.form, *map(str, (row.landmarks, row.columns, row.background, row.rows)),
         short(row.cpu_ms_per_row)]
        for row in rows.itertuples()
    ]  # fmt: skip
    return markdown(header, lines)


def peer_table(rows: pd.DataFrame) -> str:
    """List time and error of shap's explainers beside exact values."""
    header = (
        *("explainer of shap", "evaluations", "model", "landmarks"),
        *("s per row, shap", "ms per row, nysplus"),
        *("time ratio", "difference from exact values", "error of shap, from two runs"),
    )
    lines = [
        [
            *(row.peer, f"{row.evaluations:,}", row.model, str(row.landmarks)),
            short(row.cpu_s_per_row),
            *(short(row.cpu_ms_per_row_nysplus), f"{row.ratio:,.0f}"),
            *(f"{row.difference:.1e}", f"{row.own_error:.1e}"),
        ]
        for row in rows.itertuples()
    ]
    return markdown(header, lines)


PAGE = Page("results/explain.md", parts)
