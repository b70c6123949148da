"""Measure how much the arithmetic of an exported model changes its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.encoding.code import TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.expansion import KernelExpansion, PackedArray
from nysplus.export.contents import Contents
from nysplus.export.table_rows import table_rows

# Rows at which scores are compared, at most and at least, and the number of terms of kernel values
# for which there may be more than the least.
MAX_ROWS, MIN_ROWS, MAX_TERMS = 512, 16, 3e7


def in_type(content: Contents, dtype: npt.DTypeLike) -> KernelExpansion:
    """Return the function of the contents, with numbers rounded to a floating type."""
    stored = content.stored

    def numbers(array: PackedArray) -> Float:
        with np.errstate(over="ignore"):
            return array.unpacked().astype(dtype)

    return KernelExpansion(
        content.kernel,
        numbers(stored.landmarks),
        numbers(stored.dual_coef),
        numbers(stored.intercept),
        None if stored.projection is None else numbers(stored.projection),
        center=None if stored.center is None else stored.center.unpacked(),
        encoder=content.encoder,
        linear=None if stored.linear is None else numbers(stored.linear),
    )


def compared_rows(content: Contents) -> Float:
    """Return rows at landmarks and halfway between them: numbers of their type, in float64.

    Rows of tables are near landmarks, and random.
    """
    exact = in_type(content, np.float64)
    most = int(np.clip(MAX_TERMS / exact.landmarks.size, MIN_ROWS, MAX_ROWS))
    code = exact.encoder
    if isinstance(code, TableCode):
        return table_rows(exact, code, most)
    Z = exact.origins()
    rows = np.vstack([Z, (Z + np.roll(Z, 1, axis=0)) / 2.0])
    rows = rows[:: -(-len(rows) // most)]
    if exact.center is not None:
        rows = rows + exact.center
    if isinstance(code, ImageCode):
        rows = code.images(rows)
    with np.errstate(over="ignore"):
        return rows.astype(content.row_type).astype(np.float64)


def largest_change(exact: Float, scores: Float) -> float:
    """Return the largest change of a score over the largest score; infinite if it is no number."""
    largest = np.abs(exact).max()
    change = np.abs(scores.astype(np.float64) - exact).max()
    if not np.isfinite(change):
        return float("inf")
    return float(change / largest) if largest > 0 else 0.0


def product_error(content: Contents) -> float:
    """Return the error of float32 arithmetic with matrix products, for rows in float32.

    Their numbers are taken as exact.
    """
    rows = compared_rows(content)
    with np.errstate(all="ignore"):
        single = rows.astype(np.float32)
        exact = in_type(content, np.float64)(single.astype(np.float64))
        return largest_change(exact, in_type(content, np.float32)(single))


def row_error(content: Contents, kept: Sequence[int] = ()) -> float:
    """Return the change of scores by rounding rows to float32, but for columns that are `kept`."""
    rows, exact = compared_rows(content), in_type(content, np.float64)
    with np.errstate(all="ignore"):
        single = rows.astype(np.float32).astype(np.float64)
        single[:, kept] = rows[:, kept]
        return largest_change(exact(rows), exact(single))


def exact_scores(content: Contents, rows: Any) -> Float:
    """Return the scores in float64."""
    return in_type(content, np.float64)(rows)
