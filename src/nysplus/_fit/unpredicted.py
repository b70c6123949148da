"""Warn of classes that a fitted model never predicts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import FEW_OF_A_CLASS
from nysplus._rows.blocks import Block, Blocks
from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float

# Rows of a class that are scored together, once its first rows were not found.
SCORED_ROWS = 4096
# Rows from which on it is worth a warning: of fewer, chance may leave a class out.
MIN_ROWS = 200
# Classes that a warning names.
MAX_NAMED = 10


def warn_of_unpredicted(model: Callable[[Any], Float], rows: Blocks, code: TargetCode) -> None:
    """Warn if there are classes, or labels, that a model predicts for none of their own rows.

    O(classes · n d): 20 rows of each class are scored, and the others of a class until one is
    found. Fewer than 200 rows are not looked at.

    Parameters
    ----------
    model : callable
        From rows to scores.
    rows : Blocks
        Training rows.
    code : TargetCode
        Of the targets in `rows`.
    """
    missed = unpredicted(model, rows) if rows.n_candidates >= MIN_ROWS else ()
    if len(missed) == 0:
        return
    kind, weights = "classes", "class_weight='balanced'"
    if code.kind == "labels":
        kind, weights = "labels", "sample_weight"
    named = code.classes[missed[:MAX_NAMED]].tolist()
    warnings.warn(
        f"The model predicts {len(missed)} of the {len(code.classes)} {kind} for none of their own "
        f"training rows: {named}{', …' if len(missed) > MAX_NAMED else ''}. Give these rows more "
        f"weight ({weights}), raise n_components, lower alpha, or use a selection with the labels "
        "such as 'negative-margin'.",
        stacklevel=6,
    )


def unpredicted(model: Callable[[Any], Float], rows: Blocks) -> npt.NDArray[np.intp]:
    """Return the numbers of the classes that a model predicts for none of their own rows."""
    first = rows.class_rows.first
    missed = _missed(model, rows.gather(np.unique(first[first >= 0])))
    assert rows.targets is not None
    labels, more = rows.targets.labels, []
    for number in missed:
        others = labels.rows_of(number)[FEW_OF_A_CLASS:]
        parts = (others[i : i + SCORED_ROWS] for i in range(0, len(others), SCORED_ROWS))
        if not any(_finds(model, rows.gather(part), number) for part in parts):
            more.append(number)
    return np.array(more, dtype=np.intp)


def _missed(model: Callable[[Any], Float], some: Block) -> npt.NDArray[np.intp]:
    """Return the numbers of the classes of some rows of which not a single row is found."""
    weighing = _weighing(some)
    there = some.labels.class_rows(weighing).counts > 0
    return np.flatnonzero(there & (some.labels.found(model(some.X), weighing) == 0))


def _finds(model: Callable[[Any], Float], some: Block, number: int) -> bool:
    """Return whether a row of one class is found."""
    return bool(some.labels.found(model(some.X), _weighing(some))[number] > 0)


def _weighing(some: Block) -> Float:
    """Return 1 for each row that has a weight, and 0 for rows of classes without weight."""
    return (some.weight > 0).astype(np.float64)
