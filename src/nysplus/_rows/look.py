"""Summarise the columns of a table that is not in memory, in a first pass over its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysplus._rows.readers import Chunk
from nysplus.encoding import TableEncoder
from nysplus.encoding.frames import take_rows
from nysplus.encoding.summary import SchemaRules, TableSummary


@dataclass
class Look:
    """The summary of a table's columns in some rows; those of the rows after them are added.

    Attributes
    ----------
    summary : TableSummary
        Of the rows of positive weight.
    rules : SchemaRules
    n_rows : int
        Number of all rows.
    """

    summary: TableSummary
    rules: SchemaRules
    n_rows: int

    @classmethod
    def at(cls, chunk: Chunk, encoder: TableEncoder) -> Look:
        """Return the summary of rows as they are given."""
        X, weight = chunk.X, chunk.sample_weight
        if weight is not None and not weight.all():
            X = take_rows(X, np.flatnonzero(weight))
        return cls(encoder.summary(X), encoder.schema_rules, chunk.n_rows)

    def __iadd__(self, other: Look) -> Look:
        self.summary.add(other.summary, self.rules)
        self.n_rows += other.n_rows
        return self
