"""Tables of docs/results/distillation.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.distillation.students import (
    DESIGN,
    FILE,
    FOREST,
    LIGHTGBM,
    SCORES,
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
# Gains over the model fitted to y, and the scores that they are computed from.
GAINS = {"gap": "teacher_score", "student_gain": "student_score", "gain": "kept_score"}
AGREEMENTS = ["fitted_agreement", "student_agreement"]
# Tables are listed again without twins if at least this share of the test rows has a twin.
MANY_TWINS = 0.05
# A teacher is ahead by more than this: points of accuracy, or the share of an error.
AHEAD_POINTS, AHEAD_SHARE = 0.5, 0.01


def cases(rows: pd.DataFrame, new: bool = False) -> pd.DataFrame:
    """Return the means over the seeds of every table and teacher, with gains over a fit to y.

    ``gap`` is the lead of the teacher, ``gain`` that of the model that is kept and ``student_gain``
    that of the student: points of accuracy, or per cent of the error. ``recovered`` is the ratio of
    gain and gap, ``gains`` has the gain of each seed.

    Parameters
    ----------
    rows : DataFrame
        Of `Student`.
    new : bool, default=False
        Whether scores are those of the test rows that equal no training row.
    """
    for name, order in {"table": TABLES, "teacher": [*TEACHERS]}.items():
        rows = rows.assign(**{name: pd.Categorical(rows[name], order)})
    if new:
        rows = rows.assign(**{score: rows[f"new_{score}"] for score in SCORES})
    rows = rows.assign(regression=[SOURCES[table].regression for table in rows["table"]])
    for name, score in GAINS.items():
        points = rows[score] - rows["fitted_score"]
        shares = -100.0 * points / rows["fitted_score"]
        rows[name] = points.where(~rows["regression"], shares)
    grouped = rows.groupby(["table", "teacher"], observed=True)
    found = grouped[[*SCORES, *AGREEMENTS, *GAINS]].mean()
    found["gains"] = grouped["gain"].agg(list)
    found["students"] = grouped["kept"].agg(lambda kept: (kept == "student").sum())
    found["seeds"] = grouped.size()
    found["regression"] = grouped["regression"].first()
    found = found.reset_index().astype({"table": str, "teacher": str})
    least = found["regression"].map({False: AHEAD_POINTS, True: 100.0 * AHEAD_SHARE})
    found["ahead"] = found["gap"] > least
    found["recovered"] = found["gain"] / found["gap"]
    return found


def parts(results: Path) -> dict[str, str]:
    """Return the text of each marked part."""
    file = results / "distillation" / FILE
    rows = records.frame(file, Student)
    found, new = cases(rows), cases(rows, new=True)
    twins = rows.loc[rows["new_rows"] <= (1.0 - MANY_TWINS) * rows["test_rows"], "table"]
    return {
        "machine": f"*{machine(records.environment_of(file))}*",
        "summary": summary(found),
        "new": summary(new),
        "twins": table_of(new[new["table"].isin(twins)], agreement=False),
        "classes": table_of(found[~found["regression"]]),
        "values": table_of(found[found["regression"]]),
    }


def summary(found: pd.DataFrame) -> str:
    """Count the cases in which a student helps, by whether its teacher is ahead."""
    lines = []
    others = ~found["table"].isin(DESIGN)
    groups = {
        "teacher ahead": found["ahead"],
        "teacher ahead, tables not used for the design": found["ahead"] & others,
        "teacher not ahead": ~found["ahead"],
    }
    for title, chosen in groups.items():
        for regression, kind in ((False, "classes, points"), (True, "values, % of the RMSE")):
            own = found[chosen & (found["regression"] == regression)]
            if own.empty:
                continue
            gains = [interval(estimate(own[name]), sign=True) for name in GAINS]
            half = int((own["recovered"] >= 0.5).sum())
            counted = f"{half} of {len(own)}" if own["ahead"].all() else MISSING
            lines.append([title, kind, str(len(own)), *gains, counted])
    header = ["cases", "targets", "number", "lead of the teacher", "gain of the student"]
    return markdown([*header, "gain of `distill`", "at least half recovered"], lines)


def table_of(found: pd.DataFrame, agreement: bool = True) -> str:
    """List the scores of every table and teacher, and the agreement with the teacher."""
    lines = []
    names = ("fitted_score", *GAINS.values(), *(AGREEMENTS if agreement else ()))
    for case in found.itertuples():
        decimals = 3 if case.regression else 2
        scores = [f"{getattr(case, name):.{decimals}f}" for name in names]
        recovered = f"{100 * case.recovered + 0.0:.0f} %" if case.ahead else MISSING
        star = r"\*" if case.table in DESIGN else ""
        kept = f"{case.students} of {case.seeds}"
        gain = interval(estimate(case.gains), 2, sign=True)
        lines.append([case.table + star, TITLES[case.teacher], *scores[:4], kept, gain, recovered])
        lines[-1] += scores[4:]
    header = ["table", "teacher", "fitted to y", "teacher", "student", "result of `distill`"]
    header += ["students kept", "gain", "gap recovered"]
    if agreement:
        header += ["agreement: fitted to y", "agreement: student"]
    return markdown(header, lines)


PAGE = Page("results/distillation.md", parts)
