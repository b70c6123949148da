"""Prediction sets, intervals and novelty in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus.conformal import NOVELTY_LEVELS, Novelty
from nysplus.expansion import PackedArray
from nysplus.export.c_kernels import CKernel
from nysplus.export.c_kernels import number as marked
from nysplus.export.c_model import CModel
from nysplus.export.c_tables import number, tables
from nysplus.export.c_text import filled, indented
from nysplus.export.contents import Trust


def trust_functions(model: CModel, kernel: CKernel, trust: Trust, projecting: str) -> str:
    """Return tables and functions of the prediction set or interval, and of the novelty.

    Parameters
    ----------
    model : CModel
    kernel : CKernel
    trust : Trust
    projecting : str
        Statements that compute u.
    """
    named: dict[str, Any] = {"row": model.row, "confidence": f"{trust.confidence:g}"}
    bound, made = marked(float(trust.bounds[0])), ""
    if len(trust.bounds) > 1:
        bound, made = "@_bounds[c]", _table("bounds", trust.bounds)
    kind = "interval" if model.content.kind == "values" else "set"
    parts = [made + filled(kind, bound=bound, **named)]
    if trust.familiar is not None:
        made, along = _novelty_tables(trust.familiar)
        Z = model.content.stored.landmarks
        parts.append(
            made
            + filled(
                "novelty",
                row=model.row,
                projecting=indented(projecting, 1),
                start=indented(kernel.start, 2),
                coordinate=number("landmarks", Z, "i * @@_RANK + j", "j"),
                terms=indented(kernel.terms, 3),
                final=indented(kernel.final, 2),
                value=kernel.value,
                along=along,
                n_levels=len(NOVELTY_LEVELS),
            )
        )
    return "\n".join(parts)


def _novelty_tables(familiar: Novelty) -> tuple[str, str]:
    """Return the tables of a novelty, and the statements of its directions, if it has any."""
    made = _table("similarities", familiar.similarities) + _table("novelties", NOVELTY_LEVELS)
    if familiar.directions is None:
        return made, ""
    for name in ("center", "weights", "distances"):
        made += _table(f"direction_{name}", getattr(familiar.directions, name))
    n = familiar.directions.weights.shape[1]
    return made, filled("directions", n_directions=n, n_levels=len(NOVELTY_LEVELS))


def _table(name: str, numbers: Any) -> str:
    return tables(f"@_{name}", PackedArray(np.asarray(numbers, dtype=np.float32))) + "\n"
