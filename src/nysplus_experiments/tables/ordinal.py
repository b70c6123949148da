"""Frames as float32 matrices for trees: levels in the order of their mean target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from nysplus_experiments.harness.raw_tables import nominal_columns
from nysplus_experiments.tables.system import Rows

#: Bytes of a nominal column (its kind and number), and of the rank of a level.
COLUMN_BYTES, RANK_BYTES = 2, 1


@dataclass(frozen=True)
class OrdinalCode:
    """The rank of each level of the nominal columns; gaps and new levels are NaN.

    Levels are in the order of their mean target, or in their own order for three classes and more,
    where no order suits all classes; then no rank is stored.
    """

    columns: tuple[str, ...]
    ranks: dict[str, dict[str, int]]
    stored_ranks: bool
    gaps: bool

    @classmethod
    def of(cls, rows: Rows) -> OrdinalCode:
        """Learn the ranks from training rows."""
        by_target, ranks = rows.n_classes <= 2, {}
        for name in nominal_columns(rows.X):
            column = rows.X[name]
            levels = list(column.cat.categories)
            if by_target:
                means = pd.Series(rows.y, dtype=float).groupby(column.astype(str)).mean()
                levels = sorted(levels, key=lambda level, m=means: m.get(level, 0.0))  # type: ignore[misc]
            ranks[name] = {level: rank for rank, level in enumerate(levels)}
        return cls(tuple(rows.X.columns), ranks, by_target, bool(rows.X.isna().any(axis=None)))

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the matrix of a frame."""
        codes = {
            name: frame[name].astype(object).map(ranks).astype(np.float32)
            for name, ranks in self.ranks.items()
        }
        return frame.assign(**codes)[list(self.columns)].to_numpy(np.float32)

    @property
    def n_bytes(self) -> int:
        """Bytes of the ranks."""
        levels = sum(map(len, self.ranks.values())) if self.stored_ranks else 0
        return COLUMN_BYTES * len(self.ranks) + RANK_BYTES * levels
