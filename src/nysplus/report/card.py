"""The model card: use, data, limits, size, versions, and how to load the model."""

from __future__ import annotations

import hashlib
import platform
from importlib import metadata
from typing import Any

import numpy as np

from nysplus.persistence.container import library_version
from nysplus.report.description import chosen_text, columns_text
from nysplus.report.evidence import Evidence
from nysplus.report.wording import as_texts, few, size_text

LIBRARIES = ("numpy", "scipy", "scikit-learn")
# Test rows of a class below which its errors are hardly known.
FEW_ROWS = 30


def card(evidence: Evidence) -> dict[str, Any]:
    """Return the entries of the model card."""
    return {
        "entries": [
            ("Model", chosen_text(evidence.model)),
            ("Intended use", _use(evidence)),
            ("Training data", _training(evidence)),
            ("Evaluation", _evaluation(evidence)),
            *((name.capitalize(), text) for name, text in columns_text(evidence.model)),
            ("Size", _size(evidence)),
            ("Versions", _versions(evidence)),
        ],
        "limits": _limits(evidence),
        "file": None if evidence.model_file is None else evidence.model_file.name,
    }


def _use(evidence: Evidence) -> str:
    what = "values of"
    if evidence.task == "classify":
        what = f"one of {len(evidence.classes):,} classes of"
    return (
        f"To predict {what} {evidence.target} for rows of the same columns and from the same "
        "source as the training rows."
    )


def _training(evidence: Evidence) -> str:
    rows = "rows" if evidence.train is None else f"{len(evidence.train.y):,} rows"
    return f"{rows} of {len(evidence.columns):,} columns; see the section on data."


def _evaluation(evidence: Evidence) -> str:
    if evidence.test is None:
        return "No test rows were held out."
    return f"{evidence.score} on {evidence.score.n_rows:,} rows that were not part of the fit."


def _size(evidence: Evidence) -> str:
    model, file = evidence.model, evidence.model_file
    text = f"{model.model_bytes_:,} bytes of numbers"
    if file is None or not file.is_file():
        return f"{text}."
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return f"{text}, {size_text(len(content))} in {file.name} (SHA-256 {digest})."


def _versions(evidence: Evidence) -> str:
    known = [f"nysplus {library_version()}", f"Python {platform.python_version()}"]
    return ", ".join([*known, *(f"{name} {metadata.version(name)}" for name in LIBRARIES)])


def _limits(evidence: Evidence) -> list[str]:
    """Return the limits of the numbers of a report."""
    limits = []
    if evidence.test is not None:
        limits.append(
            f"The interval covers the draw of the {evidence.score.n_rows:,} test rows. It does not "
            "cover other sources of rows, or changes over time."
        )
        if evidence.task == "classify":
            limits += _rare_classes(evidence)
    limits += [
        _unusual_rows(evidence),
        "Importance tells which columns the model uses. It does not tell causes.",
        "Differences in errors between groups of people were not examined.",
    ]
    return limits


def _unusual_rows(evidence: Evidence) -> str:
    text = "Every row gets a prediction, also one unlike all training rows"
    if evidence.model._model.familiar is None:
        return f"{text}: numbers out of range, new levels and missing entries give no warning."
    return (
        f"{text}. model.novelty(X) finds such rows, as far as they differ in what the model uses; "
        "predict_or_abstain(X) leaves them out."
    )


def _rare_classes(evidence: Evidence) -> list[str]:
    assert evidence.test is not None
    names, counts = np.unique(as_texts(evidence.test.y), return_counts=True)
    there = dict(zip(names.tolist(), counts.tolist(), strict=True))
    rare = [
        f"{name} ({there.get(name, 0)})"
        for name in evidence.classes.tolist()
        if there.get(name, 0) < FEW_ROWS
    ]
    unknown = sorted(set(there) - set(evidence.classes.tolist()))
    found = []
    if rare:
        found.append(
            f"Classes with fewer than {FEW_ROWS} test rows, whose errors are hardly known: "
            f"{few(rare, 10)}."
        )
    if unknown:
        found.append(f"Test rows have classes that the model never predicts: {few(unknown, 10)}.")
    return found
