"""Tables of docs/results/distillation.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.distillation.students import (
    DESIGN,
    FILE,
    FOREST,
    LIGHTGBM,
    SVM,
    TABLES,
    TEACHERS,
    Student,
)
from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.raw_tables import SOURCES
from nysplus_experiments.harness.statistics import estimate
from nysplus_experiments.harness.tables import MISSING, interval, machine, markdown

TITLES = {LIGHTGBM: "LightGBM", SVM: "SVC / SVR", FOREST: "random forest"}
SCORES = ["fitted_score", "teacher_score", "student_score", "kept_score"]
AGREEMENTS = ["fitted_agreement", "student_agreement"]
# A teacher is ahead by more than this: points of accuracy, or the share of an error.
AHEAD_POINTS, AHEAD_SHARE = 0.5, 0.01


def cases(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the seeds of every table and teacher, with gains over a fit to y.

    ``gap`` is the lead of the teacher and ``gain`` that of the model that is kept: points of
    accuracy, or per cent of the error. ``recovered`` is the ratio of both.
    """
    for name, order in {"table": TABLES, "teacher": [*TEACHERS]}.items():
        rows = rows.assign(**{name: pd.Categorical(rows[name], order)})
    grouped = rows.groupby(["table", "teacher"], observed=True)
    found = grouped[[*SCORES, *AGREEMENTS]].mean()
    found["students"] = grouped["kept"].agg(lambda kept: (kept == "student").sum())
    found["seeds"] = grouped.size()
    found = found.reset_index().astype({"table": str, "teacher": str})
    found["regression"] = [SOURCES[table].regression for table in found["table"]]
    for name, score in {"gap": "teacher_score", "gain": "kept_score"}.items():
        points = found[score] - found["fitted_score"]
        shares = -100.0 * points / found["fitted_score"]
        found[name] = points.where(~found["regression"], shares)
    least = found["regression"].map({False: AHEAD_POINTS, True: 100.0 * AHEAD_SHARE})
    found["ahead"] = found["gap"] > least
    found["recovered"] = found["gain"] / found["gap"]
    return found


def parts(results: Path) -> dict[str, str]:
    """Return the text of each marked part."""
    file = results / "distillation" / FILE
    found = cases(records.frame(file, Student))
    return {
        "machine": f"*{machine(records.environment_of(file))}*",
        "summary": summary(found),
        "classes": table_of(found[~found["regression"]]),
        "values": table_of(found[found["regression"]]),
    }


def summary(found: pd.DataFrame) -> str:
    """Count the cases in which a student helps, by whether its teacher is ahead."""
    lines = []
    groups = {
        "teacher ahead": found["ahead"],
        "teacher ahead, tables not used for the design": found["ahead"]
        & ~found["table"].isin(DESIGN),
        "teacher not ahead": ~found["ahead"],
    }
    for title, chosen in groups.items():
        for regression, kind in ((False, "classes, points"), (True, "values, % of the RMSE")):
            own = found[chosen & (found["regression"] == regression)]
            if own.empty:
                continue
            ahead = "not" not in title or "not used" in title
            half = int((own["recovered"] >= 0.5).sum())
            lines.append(
                [
                    title,
                    kind,
                    str(len(own)),
                    interval(estimate(own["gap"]), sign=True),
                    interval(estimate(own["gain"]), sign=True),
                    f"{half} of {len(own)}" if ahead else MISSING,
                ]
            )
    header = ["cases", "targets", "number", "lead of the teacher", "gain of distillation"]
    return markdown([*header, "at least half recovered"], lines)


def table_of(found: pd.DataFrame) -> str:
    """List the scores of every table and teacher."""
    lines = []
    for case in found.itertuples():
        decimals = 3 if case.regression else 2
        scores = [f"{getattr(case, name):.{decimals}f}" for name in (*SCORES, *AGREEMENTS)]
        recovered = f"{100 * case.recovered + 0.0:.0f} %" if case.ahead else MISSING
        star = r"\*" if case.table in DESIGN else ""
        kept = f"{case.students} of {case.seeds}"
        lines.append([case.table + star, TITLES[case.teacher], *scores[:4], kept, recovered])
        lines[-1] += scores[4:]
    header = ["table", "teacher", "fitted to y", "teacher", "student", "result of `distill`"]
    header += ["students kept", "gap recovered", "agreement: fitted to y", "agreement: student"]
    return markdown(header, lines)


PAGE = Page("results/distillation.md", parts)
