"""Write one self-contained HTML page: claims, figures, tables, deviations, failures, machine.

It is computed from results alone; writing it again fits nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from nysplus._files import write_whole
from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.paper.claims import Claim, evaluate, summary
from nysplus_experiments.paper.figures import CAPTIONS
from nysplus_experiments.paper.results import Result
from nysplus_experiments.paper.runs import (
    FULL_METHODS,
    METHODS,
    Cell,
    Runs,
    dataset_title,
    kilobytes,
    method_label,
    series,
    training_seconds,
)

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
_COLUMNS = (
    *("method", "n", "n_0", "accuracy % ± 95 %", "trials", "model kB", "stored kB"),
    *("steps 1–2 s", "steps 3–6 or fit s", "predict s"),
)
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
    write_whole(path, _render(_content(results, figures, notes, command)).encode())
    return path


def _render(content: dict[str, Any]) -> str:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "The report needs jinja2, which is not installed. Run "
            'pip install "nysplus[experiments]".'
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["prose"] = _prose
    return environment.get_template("report.html").render(content)


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
        "sections": _SECTIONS,
        "summary": summary(claims),
        "rules": _RULES,
        "intervals": _INTERVALS,
        "marks": _MARKS,
        "tested": _grouped(claim for claim in claims if claim not in missing),
        "missing": _grouped(missing),
        "n_missing": len(missing),
        "figures": [_figure(path) for path in figures],
        "columns": _COLUMNS,
        "tables": [(dataset_title(name), _dataset_rows(runs, name)) for name in runs.datasets],
        "deviations": _deviations(runs, notes),
        "extents": [_extent(runs, name) for name in runs.datasets],
        "failures": [_failure(result) for result in results if not result.ok],
        "machines": _machines(results),
    }


def _grouped(claims: Iterable[Claim]) -> list[tuple[tuple[str, str], list[Claim]]]:
    """Return the claims by text and place."""
    groups = groupby(claims, key=lambda claim: (claim.text, claim.where))
    return [(key, list(group)) for key, group in groups]


def _figure(path: Path) -> dict[str, str]:
    found = re.fullmatch(r"figure(\d+)", path.stem)
    return {
        "data": base64.b64encode(path.read_bytes()).decode("ascii"),
        "label": f"Figure {found[1]}. " if found else "",
        "caption": CAPTIONS.get(int(found[1]), "") if found else "",
    }


def _dataset_rows(runs: Runs, dataset: str) -> list[tuple[object, ...]]:
    return [
        (method_label(method), n, "" if n_0 is None else n_0, *_numbers(found))
        for method in runs.methods(dataset)
        for (n, n_0), found in runs.cells(dataset, method).items()
    ]


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


def _deviations(runs: Runs, notes: Sequence[str]) -> list[str]:
    missing = [r.title for r in DATASETS.values() if r.paper and r.name not in runs.datasets]
    sentences = [f"There are no results on {', '.join(missing)}."] if missing else []
    for name in runs.datasets:
        cells = runs.cells(name, runs.methods(name)[0]).values()
        sentences += _counts_note(name, next(r for cell in cells for r in cell.values()))
        sentences += DATASETS[name].notes if name in DATASETS else ()
    return list(dict.fromkeys([*sentences, *notes]))


def _counts_note(name: str, result: Result) -> list[str]:
    """Return the sentence that `datasets.load` would add on the number of rows."""
    row, got = DATASETS.get(name), (result.n_train, result.n_test)
    if row is None or row.paper is None or None in got or got == row.paper:
        return []
    return [
        f"{row.title} has {got[0]} training and {got[1]} test rows here, "
        f"{row.paper[0]} and {row.paper[1]} in the paper."
    ]


def _extent(runs: Runs, name: str) -> tuple[str, ...]:
    """Return the part of the paper's grid that was run on a dataset."""
    methods = runs.methods(name)
    approximate = [m for m in methods if m not in FULL_METHODS] or methods
    keys = {key for m in approximate for key in runs.cells(name, m)}
    trials = [len(c) for m in approximate for c in runs.cells(name, m).values()]
    sizes = sorted({n for n, _ in keys})
    fixed = runs.fixed_n_initials(name)
    n_0 = ["= n_f" if any(n == n_0 for n, n_0 in keys) else "", *map(str, fixed)]
    span = f"{min(trials)}" if min(trials) == max(trials) else f"{min(trials)} to {max(trials)}"
    absent = [method_label(m) for m in METHODS if m not in methods]
    return (
        dataset_title(name),
        ", ".join(map(str, sizes)),
        ", ".join(filter(None, n_0)),
        span,
        ", ".join(absent),
    )


def _failure(r: Result) -> tuple[object, ...]:
    n_0 = "" if r.n_initial is None else r.n_initial
    return dataset_title(r.dataset), method_label(r.method), r.n, n_0, r.trial, r.error


def _machines(results: Iterable[Result]) -> list[tuple[str, ...]]:
    found = (
        (r.machine, r.python, r.nysplus, r.numpy, r.scipy, r.sklearn) for r in results if r.python
    )
    return list(dict.fromkeys(found))
