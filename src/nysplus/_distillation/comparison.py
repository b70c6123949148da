"""Compare a student with a model that was fitted to y alone, on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nysplus._fit.report import Choice

STUDENT, FITTED = "student", "model fitted to y"


def better_of(student: Any, fitted: Any) -> Any:
    """Return the student, unless the model fitted to y is better on held-out rows.

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
    gain = taught.value - own.value if own.standard_error is not None else own.value - taught.value
    return noted(student, STUDENT, compared) if gain >= 0.0 else noted(fitted, FITTED, compared)


def noted(model: Any, kept: str, reason: str) -> Any:
    """Return the model with the entry "distillation" in its report."""
    fitted = model._model
    choices = (*fitted.report.choices, Choice("distillation", f"{kept} kept", reason))
    model._adopt(replace(fitted, report=replace(fitted.report, choices=choices)))
    return model
