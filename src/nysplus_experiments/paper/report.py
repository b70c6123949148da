"""Write one HTML page: claims, figures, tables, deviations, failures, machine."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from nysplus._runtime.atomic_file import write_whole
from nysplus.report.page import environment
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.paper.claims import VERDICTS, Claim, evaluate, summary
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.runs import (
    FULL_METHODS,
    METHODS,
    Runs,
    dataset_title,
    method_label,
)

__all__ = ["write_report"]

_TITLE = "Supervised Nyström methods: the paper's experiments, run again"
_MARKS = {"held": "✓", "not held": "✗", "undecided": "?", "not testable here": "–"}
# Columns of means in the tables, and the unit that they are divided by.
_MEANS = (
    *(("kb", 1), ("stored_bytes", 1024), ("first_stage_seconds", 1)),
    *(("final_stage_seconds", 1), ("predict_seconds", 1)),
)
_COLUMNS = (
    *("method", "n", "n_0", "accuracy % ± 95 %", "trials", "model kB", "stored kB"),
    *("steps 1–2 s", "steps 3–6 or fit s", "predict s"),
)


def write_report(
    results: list[Result],
    figures: list[Path],
    out: Path,
    notes: list[str],
    *,
    command: str = "nysplus reproduce",
) -> Path:
    """Write the report, with figures embedded, to ``out`` or ``out/report.html``."""
    path = out if out.suffix == ".html" else out / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _render(_content(results, figures, notes, command)).encode())
    return path


def _render(content: dict[str, Any]) -> str:
    made = environment(__package__)
    made.filters["prose"] = _prose
    return made.get_template("paper.html").render(content)


def _prose(value: object) -> Any:
    """Return text as HTML, with the paper's n_0 and n_f set with a subscript."""
    from markupsafe import Markup, escape  # comes with jinja2

    return Markup(re.sub(r"\bn_([0f])\b", r"n<sub>\1</sub>", str(escape(value))))


def _content(
    results: list[Result], figures: list[Path], notes: list[str], command: str
) -> dict[str, Any]:
    """Return the variables of the template."""
    runs, claims = Runs(results), evaluate(results)
    missing = [claim for claim in claims if claim.verdict == "not testable here"]
    return {
        "title": _TITLE,
        "n_models": sum(result.ok for result in results),
        "command": command,
        "summary": summary(claims),
        "outcomes": _outcomes(claims),
        "marks": _MARKS,
        "tested": _grouped(claim for claim in claims if claim not in missing),
        "n_tested": len(claims) - len(missing),
        "missing": _grouped(missing),
        "n_missing": len(missing),
        "figures": [_figure(path) for path in figures],
        "columns": _COLUMNS,
        "tables": [(dataset_title(name), _dataset_rows(runs, name)) for name in runs.datasets],
        "deviations": _deviations(runs, notes),
        "extents": [_extent(runs, name) for name in runs.datasets],
        "failures": [_failure(row) for row in results if not row.ok],
        "machines": list(
            dict.fromkeys(
                (r.machine, r.python, r.nysplus, r.numpy, r.scipy, r.sklearn)
                for r in results
                if r.python
            )
        ),
    }


def _outcomes(claims: list[Claim]) -> dict[str, Any]:
    """Return the number of claims with each outcome, a row a dataset with tested claims."""
    tested = {claim.dataset for claim in claims if claim.estimate is not None}
    names = [name for name in dict.fromkeys(claim.dataset for claim in claims) if name in tested]
    counts = Counter((claim.dataset, claim.verdict) for claim in claims)
    rows = [
        [dataset_title(name) if name else "any data", *(counts[name, v] for v in VERDICTS)]
        for name in names
    ]
    total = Counter(claim.verdict for claim in claims)
    if rows:
        rows.append(["all claims", *(total[verdict] for verdict in VERDICTS)])
    return {"header": ["data", *VERDICTS], "rows": rows}


def _grouped(claims: Iterable[Claim]) -> list[tuple[tuple[str, str], list[Claim]]]:
    """Return the claims by text and place."""
    groups = groupby(claims, key=lambda claim: (claim.text, claim.where))
    return [(key, list(group)) for key, group in groups]


def _figure(path: Path) -> tuple[str, str]:
    """Return the number of a figure, or nothing, and its bytes as text."""
    found = re.fullmatch(r"figure(\d+)", path.stem)
    return found[1] if found else "", base64.b64encode(path.read_bytes()).decode("ascii")


def _dataset_rows(runs: Runs, dataset: str) -> list[tuple[object, ...]]:
    """Return a row for each method and size: accuracy, sizes and times."""
    rows: list[tuple[object, ...]] = []
    for method in runs.methods(dataset):
        groups = runs.rows(dataset, method).groupby(["n", "n_initial"], dropna=False)
        for (n, n_0), cell in groups:
            value = estimate(cell["accuracy"])
            spread = f" ± {value.high - value.mean:.2f}" if value.has_interval else ""
            means = (_number(cell[name].astype(float).mean() / unit) for name, unit in _MEANS)
            first = "" if np.isnan(n_0) else int(n_0)
            accuracy = f"{value.mean:.2f}{spread}"
            rows.append((method_label(method), n, first, accuracy, value.trials, *means))
    return rows


def _number(mean: float) -> str:
    """Return a number with about three figures; nothing for NaN."""
    if np.isnan(mean):
        return ""
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"


def _deviations(runs: Runs, notes: Sequence[str]) -> list[str]:
    missing = [r.title for r in DATASETS.values() if r.paper and r.name not in runs.datasets]
    sentences = [f"There are no results on {', '.join(missing)}."] if missing else []
    for name in runs.datasets:
        if name in DATASETS:
            counts = runs.rows(name, runs.methods(name)[0])[["n_train", "n_test"]].iloc[0]
            known = counts.notna().all()
            sentences += DATASETS[name].count_notes(*counts.astype(int)) if known else []
            sentences += DATASETS[name].notes
    return list(dict.fromkeys([*sentences, *notes]))


def _extent(runs: Runs, name: str) -> tuple[str, ...]:
    """Return the part of the paper's grid that was run on a dataset."""
    methods, fits = runs.methods(name), runs.fits[runs.fits["dataset"] == name]
    part = fits[~fits["method"].isin(FULL_METHODS)]
    part = fits if part.empty else part
    trials = part.groupby(["method", "n", "n_initial"], dropna=False).size()
    same = ["= n_f"] if (part["n"] == part["n_initial"]).any() else []
    return (
        dataset_title(name),
        ", ".join(map(str, sorted(part["n"].unique()))),
        ", ".join([*same, *map(str, runs.fixed_n_initials(name))]),
        " to ".join(dict.fromkeys(map(str, (trials.min(), trials.max())))),
        ", ".join(method_label(m) for m in METHODS if m not in methods),
    )


def _failure(row: Result) -> tuple[object, ...]:
    names = (dataset_title(row.dataset), method_label(row.method))
    return *names, row.n, row.n_initial or "", row.trial, row.error
