"""One self-contained HTML page: claims, figures, tables, deviations, failures, machine.

It is computed from results alone; writing it again fits nothing.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from nysplus.experiments import _page
from nysplus.experiments._page import cell, paragraph, prose, section, table, text
from nysplus_experiments.paper.runs import (
    FULL_METHODS,
    METHODS,
    Cell,
    Runs,
    dataset_title,
    estimate,
    kilobytes,
    method_label,
    series,
    training_seconds,
)
from nysplus_experiments.paper.claims import Claim, evaluate, summary
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.paper.figures import CAPTIONS
from nysplus_experiments.paper.results import Result

__all__ = ["write_report"]

_TITLE = "Supervised Nyström methods: the paper's experiments, run again"
_MARKS = {"held": "✓", "not held": "✗", "undecided": "?", "not testable here": "–"}
_SECTIONS = {
    "summary": "Summary",
    "claims": "The paper's claims",
    "figures": "Figures",
    "tables": "Tables",
    "deviations": "Deviations from the paper",
    "failures": "Failures",
    "machine": "Machine and versions",
}


def write_report(
    results: list[Result],
    figures: list[Path],
    out: Path,
    notes: list[str],
    *,
    command: str = "nysplus reproduce --profile standard --out DIR",
) -> Path:
    """Write the report of an experiment as one HTML page.

    Parameters
    ----------
    results : list of Result
    figures : list of Path
        PNG files of `figures.draw_all`; they are embedded in the page.
    out : Path
        The file to write, ``report.html`` in ``out`` where it does not end in ``.html``.
    notes : list of str
        Further deviations from the paper, as plain sentences.
    command : str
        The command that runs the experiment again.

    Returns
    -------
    Path
        The file, which appears whole or not at all.
    """
    path = out if out.suffix == ".html" else out / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}-{os.getpid()}.part")
    try:
        partial.write_text(_report(results, figures, notes, command), encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _report(results: list[Result], figures: list[Path], notes: list[str], command: str) -> str:
    runs, claims = Runs(results), evaluate(results)
    content = {
        "summary": [paragraph(summary(claims), "summary")],
        "claims": _claims(claims),
        "figures": [_figure(path) for path in figures] or [paragraph("No figure was drawn.")],
        "tables": _tables(runs),
        "deviations": _deviations(runs, notes),
        "failures": _failures(results),
        "machine": _machine(results),
    }
    links = "".join(f'<li><a href="#{n}">{text(t)}</a></li>' for n, t in _SECTIONS.items())
    body = [_introduction(results, command), f"<nav><ul>{links}</ul></nav>"]
    body += [section(name, title, *content[name]) for name, title in _SECTIONS.items()]
    return _page.page(_TITLE, "\n".join(body))


def _introduction(results: list[Result], command: str) -> str:
    good = sum(r.status == "ok" for r in results)
    return (
        "<p>The experiments of Mert Al, Thee Chanyaswad and Sun-Yuan Kung, <cite>Supervising "
        "Nyström Methods via Negative Margin Support Vector Selection</cite> (2018), run again "
        f"with <code>nysplus</code>: {good:,} fitted models, each claim of the paper beside what "
        "was measured. This page was made by</p>"
        f"<pre>{text(command)}</pre>"
        "<p>From finished results, <code>nysplus figures DIR</code> and <code>nysplus report "
        "DIR</code> write figures and page again without fitting. Rows that other experiment files "
        "(<code>--config</code>) added to the same folder are shown as well.</p>"
    )


# -- claims --------------------------------------------------------------------------------------

_RULES = (
    "Held: the 95 % interval of the paired difference lies on the claimed side of zero and does "
    "not fall short of the claimed size.",
    "Not held: it lies on the other side of zero, or it excludes the claimed size, even if the "
    "sign is right.",
    "Undecided: the interval includes zero or a claimed bound, or there is one trial only.",
    "A claim about many sizes: “a wide range”, “consistently” and “all but a few” need a clear "
    "difference at half of the sizes and the clear reverse at no more than a fifth; “a range” "
    "needs a quarter, and no more than half against.",
    "“No improvement” is held if the interval excludes a gain of 0.1 points.",
)
_INTERVALS = (
    "Brackets are 95 % intervals by Student's t over trials, of the difference within each trial "
    "where two methods are compared. They cover the draw of landmarks, and of the split where it "
    "is random, not the choice of a fixed test set. They are not corrected for the number of "
    "claims: about one clear difference in twenty is expected by chance where there is none. "
    "Accuracies are in percent, differences in points, sizes in kB of 1024 bytes."
)


def _claims(claims: Sequence[Claim]) -> list[str]:
    tested = [c for c in claims if c.verdict != "not testable here"]
    missing = [c for c in claims if c.verdict == "not testable here"]
    parts = [_page.bullets(_RULES), paragraph(_INTERVALS, "dim")]
    if tested:
        parts.append(table(("on", "paper", "measured", "verdict"), _rows(tested), "stack claims"))
    if missing:
        parts.append(f"<h3>Not testable here ({len(missing)})</h3>")
        parts.append(
            table(("claim", "on, paper, why not"), _missing_rows(missing), "stack missing")
        )
    return parts


def _rows(claims: Iterable[Claim]) -> list[str]:
    rows = []
    for (claim, where), group in groupby(claims, key=lambda c: (c.text, c.where)):
        head = f'{prose(claim)} <span class="dim">{text(where)}</span>'
        rows.append(f'<tr class="group"><th colspan="4" scope="colgroup">{head}</th></tr>')
        rows += [_row(c) for c in group]
    return rows


def _missing_rows(claims: Iterable[Claim]) -> list[str]:
    """Return one row a claim, with a line for everything that it is about."""
    rows = []
    for (claim, where), group in groupby(claims, key=lambda c: (c.text, c.where)):
        lines = [_missing_line(c) for c in group]
        head = cell(f'{prose(claim)} <span class="dim">{text(where)}</span>')
        rows.append(f"<tr>{head}{cell('<br>'.join(lines))}</tr>")
    return rows


def _missing_line(claim: Claim) -> str:
    paper = f": {prose(claim.paper)}" if claim.paper else ""
    measured = f" At the largest size: {claim.measured}." if claim.measured else ""
    reason = f'<span class="dim">{prose(claim.reason + measured)}</span>'
    return f"<strong>{prose(claim.subject)}</strong>{paper}. {reason}"


def _row(claim: Claim) -> str:
    kind = claim.verdict.replace(" ", "-")
    verdict = f'<span class="verdict {kind}">{_MARKS[claim.verdict]} {text(claim.verdict)}</span>'
    cells = (
        cell(f"<strong>{prose(claim.subject)}</strong>"),
        cell(prose(claim.paper), "paper"),
        cell(prose(claim.measured), "measured"),
        cell(f'{verdict}<br><span class="dim">{prose(claim.reason)}</span>'),
    )
    return f"<tr>{''.join(cells)}</tr>"


# -- figures and tables --------------------------------------------------------------------------


def _figure(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    found = re.fullmatch(r"figure(\d+)", path.stem)
    caption = CAPTIONS.get(int(found[1]), "") if found else ""
    label = f"Figure {found[1]}. " if found else ""
    bands = " Lines are means over trials, bands 95 % intervals; an arrow marks a point below."
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{text(label + caption)}">'
        f"<figcaption><strong>{label}</strong>{prose(caption + bands)}</figcaption></figure>"
    )


_COLUMNS = (
    *("method", "n", "n_0", "accuracy % ± 95 %", "trials", "model kB", "stored kB"),
    *("steps 1–2 s", "steps 3–6 or fit s", "predict s"),
)


def _tables(runs: Runs) -> list[str]:
    if not runs.datasets:
        return [paragraph("There are no results.")]
    legend = (
        "Means over trials. “model kB” counts n (d + L) numbers of 8 bytes as the paper does, "
        "“stored kB” the arrays that the model really keeps. Methods of one stage have the time of "
        "their whole fit under “steps 3–6 or fit”; “predict” classifies all test rows."
    )
    return [paragraph(legend, "dim"), *(_dataset_table(runs, name) for name in runs.datasets)]


def _dataset_table(runs: Runs, dataset: str) -> str:
    rows = []
    for method in runs.methods(dataset):
        for (n, n_0), found in runs.cells(dataset, method).items():
            values = (n, "" if n_0 is None else n_0, *_numbers(found))
            numbers = "".join(cell(text(value), kind="number") for value in values)
            rows.append(f"<tr>{cell(text(method_label(method)))}{numbers}</tr>")
    body = table(_COLUMNS, rows, numbers=len(_COLUMNS) - 1)
    return f"<details open><summary>{text(dataset_title(dataset))}</summary>{body}</details>"


def _numbers(found: Cell) -> tuple[str, ...]:
    value = estimate(series(found).values())
    spread = f" ± {value.high - value.mean:.2f}" if value.has_interval else ""
    stored = _mean(series(found, lambda r: r.stored_bytes).values(), 1 / 1024)
    first = _mean(series(found, lambda r: r.first_stage_seconds).values())
    final = _mean(series(found, training_seconds).values())
    predict = _mean(series(found, lambda r: r.predict_seconds).values())
    size = _mean(series(found, kilobytes).values())
    return f"{value.mean:.2f}{spread}", str(value.trials), size, stored, first, final, predict


def _mean(values: Iterable[float], factor: float = 1.0) -> str:
    """Return the mean with about three figures, or nothing where there are no values."""
    found = list(values)
    if not found:
        return ""
    mean = float(np.mean(found)) * factor
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"


# -- deviations, failures, machine ---------------------------------------------------------------


def _deviations(runs: Runs, notes: Sequence[str]) -> list[str]:
    missing = [r.title for r in DATASETS.values() if r.paper and r.name not in runs.datasets]
    sentences = [f"There are no results on {', '.join(missing)}."] if missing else []
    rows = []
    for name in runs.datasets:
        cells = [c for method in runs.methods(name) for c in runs.cells(name, method).values()]
        found = [result for c in cells for result in c.values()]
        sentences += _counts_note(name, found[0])
        sentences += DATASETS[name].notes if name in DATASETS else ()
        rows.append(_extent_row(runs, name))
    header = ("dataset", "sizes n", "n_0", "trials (paper: 30)", "not run")
    extent = "What was run of the paper's grid:"
    unique = list(dict.fromkeys([*sentences, *notes]))
    parts = [_page.bullets(unique) if unique else paragraph("None is known.")]
    return [*parts, paragraph(extent), table(header, rows)] if rows else parts


def _counts_note(name: str, result: Result) -> list[str]:
    """Return the sentence that `datasets.load` would add on the number of rows."""
    row, got = DATASETS.get(name), (result.n_train, result.n_test)
    if row is None or row.paper is None or None in got or got == row.paper:
        return []
    return [
        f"{row.title} has {got[0]} training and {got[1]} test rows here, "
        f"{row.paper[0]} and {row.paper[1]} in the paper."
    ]


def _extent_row(runs: Runs, name: str) -> str:
    methods = runs.methods(name)
    approximate = [m for m in methods if m not in FULL_METHODS] or methods
    keys = {key for m in approximate for key in runs.cells(name, m)}
    trials = [len(c) for m in approximate for c in runs.cells(name, m).values()]
    sizes = sorted({n for n, _ in keys})
    fixed = runs.fixed_n_initials(name)
    n_0 = ["= n_f" if any(n == n_0 for n, n_0 in keys) else "", *map(str, fixed)]
    span = f"{min(trials)}" if min(trials) == max(trials) else f"{min(trials)} to {max(trials)}"
    absent = [method_label(m) for m in METHODS if m not in methods]
    values = (
        dataset_title(name),
        ", ".join(map(str, sizes)),
        ", ".join(filter(None, n_0)),
        span,
        ", ".join(absent),
    )
    return f"<tr>{''.join(cell(prose(value)) for value in values)}</tr>"


def _failures(results: Iterable[Result]) -> list[str]:
    failed = [r for r in results if r.status == "error"]
    if not failed:
        return [paragraph("No run failed.")]
    rows = []
    for r in failed:
        n_0 = "" if r.n_initial is None else r.n_initial
        values = (dataset_title(r.dataset), method_label(r.method), r.n, n_0, r.trial, r.error)
        rows.append(f"<tr>{''.join(cell(text(value)) for value in values)}</tr>")
    return [table(("dataset", "method", "n", "n_0", "trial", "error"), rows)]


def _machine(results: Iterable[Result]) -> list[str]:
    header = ("machine", "Python", "nysplus", "numpy", "scipy", "scikit-learn")
    found = dict.fromkeys(
        (r.machine, r.python, r.nysplus, r.numpy, r.scipy, r.sklearn) for r in results if r.python
    )
    rows = [f"<tr>{''.join(cell(text(value)) for value in each)}</tr>" for each in found]
    return [table(header, rows) if rows else paragraph("There are no results.")]
