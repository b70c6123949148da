"""Describe fitted models: size, kernel, landmarks, columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nysplus._rows.opening import schema_of
from nysplus._tuning.width import kernel_text
from nysplus.encoding.code import Curve, Linear, Lookup, Ramps, TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.report.wording import as_texts, few, size_text

CODES = {
    Ramps: "thermometer code of numbers",
    Linear: "standardised numbers",
    Curve: "Gaussian ranks of numbers",
}
# Entries of the table of two levels: these, other levels, and missing values.
TWO_LEVELS = 4


def chosen_text(model: Any) -> str:
    """Return the choices of a fit as text."""
    expansion = model.expansion_
    n, rank = expansion.landmarks.shape
    if n == 0:
        parts = ["a linear function of the code, without landmarks"]
    else:
        refined = "learned" if model._model.refined else "selected"
        parts = [f"{n:,} {refined} landmarks of {rank} columns", kernel_text(expansion.kernel)]
        if expansion.packed is not None:
            parts[0] += f" in {expansion.packed.landmarks.type_name}"
    if isinstance(expansion.encoder, TableCode):
        kinds = {type(term) for term in expansion.encoder.terms}
        parts += [text for kind, text in CODES.items() if kind in kinds]
        lookups = (term for term in expansion.encoder.terms if isinstance(term, Lookup))
        if any(len(term.table) > TWO_LEVELS for term in lookups):
            parts.append("mean targets of levels")
    return "; ".join(parts)


def columns_text(model: Any) -> list[tuple[str, str]]:
    """Return the columns that a model uses by their kinds."""
    schema, code = schema_of(model), model.expansion_.encoder
    if isinstance(code, ImageCode):
        return [("images", " × ".join(map(str, code.shape[:2])) + " pixels")]
    if schema is None:
        return [("columns", f"{model.n_features_in_:,} numbers, as they are")]
    rows = []
    for kind, text in ("number", "numbers"), ("category", "categories"), ("date", "dates"):
        found = [column for column in schema.columns if column.kind == kind]
        if found:
            names = few(
                f"{c.name} ({len(c.levels)})" if kind == "category" else c.name for c in found
            )
            rows.append((text, names))
    used = {column.name for column in schema.columns}
    if schema.names is not None and (unused := [n for n in schema.names if n not in used]):
        rows.append(("not used", few(unused)))
    return rows


def entries(model: Any, path: Path | None = None) -> dict[str, Any]:
    """Return the description of a model for JSON."""
    expansion, schema = model.expansion_, schema_of(model)
    classes = getattr(model, "classes_", None)
    return {
        "estimator": type(model).__name__,
        "task": "regress" if classes is None else "classify",
        **({} if classes is None else {"classes": as_texts(classes)}),
        "columns": None
        if schema is None
        else [
            {"name": c.name, "kind": c.kind, **({"levels": list(c.levels)} if c.levels else {})}
            for c in schema.columns
        ],
        "n_features": model.n_features_in_,
        "model_bytes": model.model_bytes_,
        **({} if path is None else {"file_bytes": path.stat().st_size}),
        "parts": {p.name: {"bytes": p.n_bytes, "type": p.type_name} for p in model.report_.parts},
        "kernel": type(expansion.kernel).__name__,
        "gamma": getattr(expansion.kernel, "gamma", None),
        "landmarks": int(expansion.landmarks.shape[0]),
        "landmark_columns": int(expansion.landmarks.shape[1]),
        "refined": model._model.refined,
        "solver": model._model.solver,
        "alpha": model._model.alpha,
    }


def size_line(model: Any, path: Path) -> str:
    """Return the bytes of a model and of its file."""
    return f"{size_text(model.model_bytes_)} of numbers, {size_text(path.stat().st_size)} in {path}"
