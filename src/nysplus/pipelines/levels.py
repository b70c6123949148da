"""The levels of OneHotEncoder and OrdinalEncoder, and the numbers that they give them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import OneHotEncoder

from nysplus._typing import Float
from nysplus.encoding.frames import NUMBERS, TRUTH, is_gap, level_name
from nysplus.pipelines.columns import CannotFold, Column, LevelColumn, Levels, LinearColumn

# A text that no table contains, to see what an encoder makes of other levels.
OTHER = "\0another level\0"


@dataclass(frozen=True, eq=False)
class EncodedFeature:
    """The levels of an encoded column, and the numbers that each of them becomes.

    Attributes
    ----------
    levels : Levels
    table : ndarray of shape (n_levels + 2, k)
        The last two rows are for other levels and for gaps.
    """

    levels: Levels
    table: Float

    def columns(self, column: LinearColumn) -> list[Column]:
        """Return the encoded columns of a column in which gaps may be imputed."""
        levels, table = self.levels, self.table.copy()
        if column.fill is not None:
            name = level_name(column.fill)
            known = name in levels.names
            table[-1] = table[levels.names.index(name) if known else -2]
            refuses_gaps = levels.refuses_others and not known
            levels = Levels(levels.names, levels.numbered, levels.refuses_others, refuses_gaps)
        return [LevelColumn(column.source, levels, values) for values in table.T]


def transformed(step: Any, X: npt.NDArray[Any]) -> Float:
    """Return the result of a step for an array, whatever the step was fitted to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, and of unknown categories
        made = step.transform(X)
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)


def encoded_levels(step: Any) -> list[EncodedFeature]:
    """Return the levels and numbers of each column of a fitted encoder."""
    refuses = step.handle_unknown == "error"
    features = [list(categories) for categories in step.categories_]
    n_rows = max(len(categories) for categories in features)
    X = np.empty((n_rows + (not refuses), len(features)), dtype=object)
    for j, categories in enumerate(features):
        X[:, j] = categories[0]
        X[: len(categories), j] = categories
        if not refuses:
            X[-1, j] = OTHER if isinstance(categories[0], str) else _another_number(categories)
    made = transformed(step, X)
    stops = np.cumsum(_widths(step, features))
    parts = np.split(made, stops[:-1], axis=1)
    return [
        _feature(categories, part, refuses)
        for categories, part in zip(features, parts, strict=True)
    ]


def _another_number(categories: list[Any]) -> float:
    numbers = [float(each) for each in categories if not is_gap(each) and type(each) is not str]
    return max(numbers, default=0.0) + 1.0


def _widths(step: Any, features: list[list[Any]]) -> list[int]:
    """Return the number of columns that each feature becomes."""
    if not isinstance(step, OneHotEncoder):
        return [1] * len(features)
    rare = getattr(step, "infrequent_categories_", None) or [None] * len(features)
    dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * len(features)
    return [
        len(categories) - (0 if pooled is None else len(pooled) - 1) - (drop is not None)
        for categories, pooled, drop in zip(features, rare, dropped, strict=True)
    ]


def _feature(categories: list[Any], rows: Float, refuses: bool) -> EncodedFeature:
    gaps = [is_gap(each) for each in categories]
    known = [p for p, gap in enumerate(gaps) if not gap]
    present = [categories[p] for p in known]
    if sum(gaps) > 1:
        raise CannotFold("has None as well as NaN among its categories. Write gaps in one way")
    names = tuple(level_name(each) for each in present)
    numbered = [isinstance(each, NUMBERS) and not isinstance(each, TRUTH) for each in present]
    if len(set(numbered)) > 1 or len(set(names)) < len(names):
        raise CannotFold("has texts as well as numbers among the categories of a column")
    no_row = np.full(rows.shape[1], np.nan)
    other = no_row if refuses else rows[-1]
    gap = rows[gaps.index(True)] if True in gaps else other
    levels = Levels(names, any(numbered), refuses, refuses and True not in gaps)
    return EncodedFeature(levels, np.vstack([rows[known], other, gap]))
