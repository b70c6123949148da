"""Compare a student with a model that was fitted to y alone, on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nysplus._fit.report import Choice, HeldOutScore
from nysplus._holdout import NOISE_SHARE

STUDENT, FITTED = "student", "model fitted to y"


def better_of(student: Any, fitted: Any) -> Any:
    """Return the student, unless the model fitted to y is better on held-out rows.

    A difference of less than a quarter of a standard error counts as a tie, in which the student is
    kept.

    Both have been scored inside their fits, with the targets y. A student that was not refined has
    been scored on synthetic rows as well, and is not kept.

    Parameters
    ----------
    student, fitted : NystroemClassifier or NystroemRegressor
        Their reports get a note of the comparison.
    """
    taught, own = student.report_.held_out, fitted.report_.held_out
    if taught is None or own is None or not student.refined_:
        return noted(fitted, FITTED, "training on the teacher's predictions gave no better model")
    compared = f"student: {taught}; {FITTED}: {own}"
    worse = _loss(taught, own) > NOISE_SHARE * _relative_error(own)
    return noted(fitted, FITTED, compared) if worse else noted(student, STUDENT, compared)


def _loss(taught: HeldOutScore, own: HeldOutScore) -> float:
    """Return how much the student is worse, relative to the score of the model fitted to y."""
    sign = 1.0 if own.standard_error is not None else -1.0
    return sign * (own.value - taught.value) / own.value if own.value else 0.0


def _relative_error(score: HeldOutScore) -> float:
    """Return the relative standard error of a score; of a root mean square for normal errors."""
    if score.standard_error is None:
        return float((2.0 * score.n_rows) ** -0.5)
    return score.standard_error / score.value if score.value else 0.0


def noted(model: Any, kept: str, reason: str) -> Any:
    """Return the model with the entry "distillation" in its report."""
    fitted = model._model
    choices = (*fitted.report.choices, Choice("distillation", f"{kept} kept", reason))
    model._adopt(replace(fitted, report=replace(fitted.report, choices=choices)))
    return model
