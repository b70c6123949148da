"""The record of a fit whose kernel, metric and code are settled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nysplus._bytes.budget import Budget
from nysplus._fit.table import Table
from nysplus._rows.blocks import RowBlocks
from nysplus._rows.encoded import Encoding, encoded
from nysplus._typing import Float
from nysplus.encoding.code import Code
from nysplus.landmarks import LandmarkSelector, Problem


@dataclass(frozen=True)
class Resolved:
    """A fit whose kernel and metric are settled.

    Attributes
    ----------
    problem : Problem
        The rows as the kernel sees them, and the kernel with its width.
    selector : LandmarkSelector
    projection : ndarray or None
        The linear map between the given rows and those of `problem`.
    given : RowBlocks
        The rows before the map, minus the centre.
    center : ndarray or None
        Subtracted from all rows: the stages after this one do not see it.
    budget : Budget or None
        The bytes of everything but the centre and the code.
    code : Code or None
        Of a table or of images: all stages after this one see code columns.
    table : Table or None
    images : RowBlocks or None
        Images before their code.
    """

    problem: Problem
    selector: LandmarkSelector
    projection: Float | None
    given: RowBlocks
    center: Float | None = None
    budget: Budget | None = None
    code: Code | None = None
    table: Table | None = None
    images: RowBlocks | None = None

    @property
    def sees_given_rows(self) -> bool:
        """Whether the kernel sees rows as they were given, or minus a centre."""
        return self.projection is None and self.table is None

    def with_code(self, code: Code | None) -> Resolved:
        """Return the same fit with another code of the table."""
        if code is None or self.table is None:
            return self
        return replace(self, given=encoded(self.table.rows, Encoding(code)), code=code)
