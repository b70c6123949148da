"""The variables of the template of a report."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

import numpy as np

from nysplus._fit.report import LEAST_SECONDS, score_text
from nysplus._rows.opening import schema_of
from nysplus.encoding.image_code import ImageCode
from nysplus.explain import FeatureImportance
from nysplus.explain.importance import permutation_importance
from nysplus.report import figures
from nysplus.report.card import card
from nysplus.report.columns import column_row, entry_text
from nysplus.report.evidence import Evidence
from nysplus.report.nearest import nearest_rows
from nysplus.report.scores import Score, confused, row_scores
from nysplus.report.trust import trust
from nysplus.report.wording import as_texts, size_text

# Columns above which there is neither importance nor a table of columns.
MAX_COLUMNS = 200
# Test rows of the importance, permutations of each column, and rows that may be the most similar
# to a landmark.
IMPORTANCE_ROWS, PERMUTATIONS, NEAREST_ROWS = 1000, 5, 5000
# Landmarks and columns of their table.
SHOWN_LANDMARKS, SHOWN_COLUMNS = 8, 8
# Classes whose numbers of rows are listed.
SHOWN_CLASSES = 40


def content(evidence: Evidence) -> dict[str, Any]:
    """Return all variables of the template."""
    model, drawn = evidence.model, figures.has_matplotlib()
    importance, no_importance = _importance(evidence)
    curve, no_curve = figures.curve_figure(evidence) if drawn else (None, "")
    judged = evidence.test is not None
    return {
        "title": evidence.title,
        "target": evidence.target,
        "task": evidence.task,
        "facts": _facts(evidence),
        "has_figures": drawn,
        "scores": _scores(evidence) if judged else None,
        "own_score": model.report_.held_out,
        "confused": _confused(evidence) if judged and evidence.task == "classify" else [],
        "result_figures": list(figures.result_figures(evidence)) if drawn and judged else [],
        "trust": _trust(evidence, drawn),
        "importance": _importance_rows(importance, evidence),
        "importance_figure": figures.importance_figure(importance, evidence.score)
        if drawn and importance
        else None,
        "no_importance": no_importance,
        "curve": curve,
        "no_curve": no_curve,
        "landmarks": _landmarks(evidence, importance),
        "landmark_images": figures.image_figure(evidence) if drawn else None,
        "data": _data(evidence),
        "choices": [(c.name, c.value, c.reason) for c in model.report_.choices],
        "trials": _trials(model),
        "refinement": figures.refinement_figure(evidence) if drawn else None,
        "parts": [*_parts(model)],
        "seconds": _seconds(model),
        "card": card(evidence),
    }


# -- the result ------------------------------------------------------------------------------------


def _facts(evidence: Evidence) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page, each with its meaning."""
    model, found = evidence.model, []
    if evidence.test is not None:
        score = evidence.score
        found.append((f"{score.value_text}", f"{score.metric}, {score.interval_text}"))
    found.append((size_text(model.model_bytes_), "of numbers in the model"))
    n = model.report_.n_landmarks
    found.append((f"{n:,}", "landmarks") if n else ("linear", "function, without landmarks"))
    if model.report_.seconds:
        found.append((f"{sum(model.report_.seconds.values()):.1f} s", "of training"))
    return found


def _scores(evidence: Evidence) -> dict[str, Any]:
    """Return the scores of all models, with the places of their intervals on a common axis."""
    named = [("this model", evidence.score), *reversed(evidence.baselines)]
    low, high = _axis([score for _, score in named])

    def place(value: float) -> float:
        return round(100 * float(np.clip((value - low) / (high - low), 0, 1)), 2)

    rows = [
        {
            "name": name,
            "value": score.value_text,
            "interval": score.interval_text.removeprefix("95 % interval "),
            "rmse": "" if score.rmse is None else f"{score.rmse:.4g}",
            "at": place(score.value),
            "left": place(score.low),
            "width": max(place(score.high) - place(score.low), 0.5),
        }
        for name, score in named
    ]
    ends = [f"{100 * end:.0f} %" if _is_share(evidence) else f"{end:.1f}" for end in (low, high)]
    return {
        "rows": rows,
        "ends": ends,
        "metric": evidence.score.metric,
        "n_rows": evidence.score.n_rows,
    }


def _is_image(evidence: Evidence) -> bool:
    return isinstance(evidence.model.expansion_.encoder, ImageCode)


def _is_share(evidence: Evidence) -> bool:
    return evidence.score.metric == "accuracy"


def _axis(scores: list[Score]) -> tuple[float, float]:
    """Return the ends of an axis with all intervals, in tenths; R² below −0.5 is cut off."""
    low = max(min(score.low for score in scores), -0.5)
    return min(np.floor(10 * low) / 10, 0.9), 1.0


def _confused(evidence: Evidence) -> list[str]:
    assert evidence.test is not None
    sizes = Counter(as_texts(evidence.test.y).tolist())
    return [
        f"{true} taken for {said}: {count:,} of {sizes[true]:,} test rows"
        for true, said, count in confused(evidence.test.y, evidence.predicted)
    ]


def _trust(evidence: Evidence, drawn: bool) -> dict[str, Any] | None:
    """Return the section on single predictions, with a figure for images."""
    found = trust(evidence)
    if found is None:
        return None
    figure = figures.pixels_figure(found["pixels"]) if drawn and found["pixels"] else None
    return {**found, "figure": figure}


# -- columns and landmarks -------------------------------------------------------------------------


def _importance(evidence: Evidence) -> tuple[FeatureImportance | None, str]:
    """Return the importance of columns, or the reason why there is none."""
    if evidence.test is None:
        return None, "The importance of columns needs test rows."
    if _is_image(evidence):
        return None, "Single pixels have no importance of their own. Look at the landmarks instead."
    if len(evidence.columns) > MAX_COLUMNS:
        return None, (
            f"The importance of {len(evidence.columns):,} columns is not computed; at most "
            f"{MAX_COLUMNS} are."
        )
    X, y = evidence.test.some(IMPORTANCE_ROWS, evidence.rng)
    names = [column.name for column in evidence.columns]
    score = row_scores(evidence.model._model, y)
    found = permutation_importance(score, X, PERMUTATIONS, evidence.rng)
    return FeatureImportance(names, *found), ""


def _importance_rows(
    importance: FeatureImportance | None, evidence: Evidence
) -> list[tuple[str, ...]]:
    if importance is None:
        return []
    factor, digits = (100.0, 1) if _is_share(evidence) else (1.0, 3)

    def text(loss: float) -> str:
        return f"{round(factor * loss, digits) + 0.0:.{digits}f}"  # no −0.0

    return [
        (
            importance.feature_names[i],
            text(importance.permutation[i]),
            " to ".join(map(text, importance.permutation_interval[i])),
        )
        for i in importance.order
    ]


def _landmarks(evidence: Evidence, importance: FeatureImportance | None) -> dict[str, Any] | None:
    """Return the rows that are most similar to landmarks, in the columns that matter most."""
    sample = evidence.train or evidence.test
    n = evidence.model.report_.n_landmarks
    if sample is None or not n or _is_image(evidence):
        return None
    X, _ = sample.some(NEAREST_ROWS, evidence.rng)
    found = nearest_rows(evidence.model._model, X, SHOWN_LANDMARKS)
    order = np.arange(len(evidence.columns)) if importance is None else importance.order
    columns = [(j, evidence.columns[j]) for j in order[:SHOWN_COLUMNS]]
    return {
        "header": ["weight", "votes for", "similarity", *(column.name for _, column in columns)],
        "rows": [
            [
                f"{100 * each.weight:.0f} %",
                each.votes_for,
                f"{each.similarity:.2f}",
                *(entry_text(column, X[each.row, j]) for j, column in columns),
            ]
            for each in found
        ],
        "n": n,
        "n_columns": len(evidence.columns),
        "of": "training" if evidence.train else "test",
    }


def _data(evidence: Evidence) -> dict[str, Any]:
    """Return numbers of rows, the columns, the classes, and the columns that are left out."""
    sample = evidence.train or evidence.test
    columns: list[tuple[str, ...]] = []
    if sample is not None and len(evidence.columns) <= MAX_COLUMNS and not _is_image(evidence):
        X, _ = sample.some(NEAREST_ROWS, evidence.rng)
        columns = [column_row(c, X[:, j]) for j, c in enumerate(evidence.columns)]
    schema = schema_of(evidence.model)
    return {
        "n_train": None if evidence.train is None else len(evidence.train.y),
        "n_test": None if evidence.test is None else len(evidence.test.y),
        "n_columns": len(evidence.columns),
        "columns": columns,
        "of": "training" if evidence.train else "test",
        "n_summarised": 0 if sample is None else min(len(sample.y), NEAREST_ROWS),
        "dropped": [] if schema is None else [str(dropped) for dropped in schema.dropped],
        "notes": evidence.notes,
        **_targets(evidence),
    }


def _targets(evidence: Evidence) -> dict[str, Any]:
    """Return the rows of each class, or the range of the values."""
    samples = [sample for sample in (evidence.train, evidence.test) if sample is not None]
    if evidence.task == "regress":
        values = np.concatenate([sample.y for sample in samples] or [np.zeros(0)])
        range_text = f"{values.min():.4g} to {values.max():.4g}" if len(values) else ""
        return {"classes": [], "n_classes": 0, "range": range_text}
    counts = [Counter(as_texts(sample.y).tolist()) for sample in samples]
    rows = [(name, *(f"{count[name]:,}" for count in counts)) for name in evidence.classes.tolist()]
    return {"classes": rows[:SHOWN_CLASSES], "n_classes": len(rows), "range": ""}


# -- the fit ---------------------------------------------------------------------------------------


def _trials(model: Any) -> list[tuple[str, list[tuple[str, str, str, bool]]]]:
    """Return the models that the fit compared, by comparison."""

    def comparison(trial: Any) -> tuple[str, str, str, int]:
        return trial.stage, trial.step, trial.metric, trial.n_rows

    return [
        (
            f"{stage}{f', {step}' if step else ''}: {metric} on {n_rows:,} rows",
            [
                (
                    trial.model,
                    "" if trial.n_bytes is None else size_text(trial.n_bytes),
                    score_text(metric, trial.score),
                    trial.chosen,
                )
                for trial in group
            ],
        )
        for (stage, step, metric, n_rows), group in groupby(model.report_.trials, comparison)
    ]


def _parts(model: Any) -> Any:
    total = max(model.model_bytes_, 1)
    for part in model.report_.parts:
        share = f"{100 * part.n_bytes / total:.0f} %"
        yield part.name, part.type_name, f"{part.n_bytes:,}", share
    yield "total", "", f"{model.model_bytes_:,}", _budget_share(model)


def _budget_share(model: Any) -> str:
    """Return the share of the budget that a model takes."""
    budget = model.report_.budget
    return "" if not budget else f"{100 * model.model_bytes_ / budget:.0f} % of the budget"


def _seconds(model: Any) -> list[tuple[str, str]]:
    found = model.report_.seconds or {}
    return [(name, f"{s:.2f}") for name, s in found.items() if s >= LEAST_SECONDS]
