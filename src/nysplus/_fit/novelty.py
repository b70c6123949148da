"""The novelty of rows, from the training rows of a fit or from calibration rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._fit.model import Columns
from nysplus._fit.resolved import Resolved
from nysplus._learning.refine import Refined
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.projected import projected
from nysplus._typing import Float
from nysplus.conformal import Directions, Novelty
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import Landmarks


@dataclass(frozen=True)
class NoveltyRules:
    """Numbers of the rows and columns that novelty goes by.

    Attributes
    ----------
    rows : int
        Rows whose similarity to the nearest landmark is compared with: 1 in 1000 is seen.
    direction_rows, direction_columns : int
        Rows at least, and columns of numbers at most, of which a model with a map keeps the
        directions of least variance: they are 20 bytes for each column.
    """

    rows: int = 1000
    direction_rows: int = 100
    direction_columns: int = 256


DEFAULT_RULES = NoveltyRules()


def novelty_of_fit(
    resolved: Resolved,
    landmarks: Landmarks,
    stored: Refined,
    rows: Blocks | None,
    blocks: RowBlocks,
    columns: Columns,
) -> Novelty | None:
    """Return the novelty of a model, from rows in memory; None where there are none.

    Rows outside memory would take another pass, but the selector may have gathered some of them.

    Parameters
    ----------
    resolved : Resolved
    landmarks : Landmarks
    stored : Refined
        The model.
    rows : Blocks or None
        Rows in memory as the model sees them before its map: all rows, or some of them.
    blocks : RowBlocks
        All rows as they were given.
    columns : Columns
    """
    if rows is resolved.given:
        indices = None if stored.kept else landmarks.indices
        return novelty_of(stored.expansion, rows, indices, blocks, columns.numeric)
    same_code = resolved.table is None or not stored.kept
    if rows is None and landmarks.members is not None and resolved.projection is None and same_code:
        rows = landmarks.members.rows.blocks()
    if rows is None:
        return None
    uncoded = None
    if resolved.code is None:
        offset = None if resolved.center is None else -resolved.center
        uncoded = projected(rows, None, offset)
    return novelty_of(stored.expansion, rows, None, uncoded, columns.numeric)


def novelty_of(
    expansion: KernelExpansion,
    rows: RowBlocks,
    landmark_rows: npt.NDArray[np.intp] | None,
    uncoded: RowBlocks | None,
    numeric: npt.NDArray[np.bool_],
    rules: NoveltyRules = DEFAULT_RULES,
) -> Novelty | None:
    """Return the similarity of training rows to the landmarks; None for kernels without one.

    Parameters
    ----------
    expansion : KernelExpansion
        A function of `rows`.
    rows : RowBlocks
    landmark_rows : ndarray of int or None
        Numbers of rows that are landmarks, which are left out: they equal one.
    uncoded : RowBlocks or None
        The same rows as the model gets them; None where they are not in memory.
    numeric : ndarray of bool
        Which columns of these have numbers.
    rules : NoveltyRules, optional
    """
    if not expansion.measures_similarity:
        return None
    mapped = expansion.projection is not None and uncoded is not None
    most = 2 * rules.rows if mapped else rules.rows
    drawn = rows.sample(most, np.random.RandomState(0))
    if landmark_rows is not None:
        others = np.setdiff1d(drawn, landmark_rows)
        drawn = others if len(others) else drawn
    some = rows.gather(np.sort(drawn))
    X = uncoded.gather(np.sort(drawn)).X if mapped and uncoded is not None else None
    return _novelty(expansion.similarity(some.X), some.counts, X, numeric, rules)


def novelty_of_rows(
    expansion: KernelExpansion,
    rows: Block,
    numeric: npt.NDArray[np.bool_],
    rules: NoveltyRules = DEFAULT_RULES,
) -> Novelty:
    """Return the similarity of some rows to the landmarks, for a function of rows as given."""
    X = None if expansion.projection is None else rows.X
    return _novelty(expansion.similarity(rows.X), rows.counts, X, numeric, rules)


def _novelty(
    similarities: Float,
    counts: Float,
    X: Any,
    numeric: npt.NDArray[np.bool_],
    rules: NoveltyRules,
) -> Novelty:
    """Return the novelty by similarities alone, or by these and the directions of rows X.

    Every second row sets the directions, and the others the quantiles of both.
    """
    n, (first, second) = len(similarities), (slice(0, None, 2), slice(1, None, 2))
    many = n >= rules.direction_rows and np.count_nonzero(numeric) <= rules.direction_columns
    if X is None or sp.issparse(X) or not many:
        return Novelty.of(similarities, counts)
    found = Directions.of(X[first], counts[first], numeric)
    if found is None:
        return Novelty.of(similarities, counts)
    return Novelty.of_both(similarities[second], found.squares(X[second]), counts[second], found)
