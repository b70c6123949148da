"""Summaries of the columns of a table; summaries of parts of the rows can be merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus._validation import check_names, is_count
from nysplus.encoding.frames import (
    ColumnKind,
    ColumnValues,
    Entries,
    frame_names,
    is_frame,
    read_columns,
)


@dataclass(frozen=True)
class SchemaRules:
    """The numbers that decide what becomes of a column, and the reason for each.

    Attributes
    ----------
    min_level_rows : int
        Rows that a level of a category needs; rarer levels are pooled. The effect of fewer rows is
        mostly noise.
    max_levels : int
        Levels that are kept; rarer ones are pooled.
    near_constant : float
        Share of the rows, and number of them, up to which entries that differ from all others make
        no feature.
    unique_share : float
        Share of different texts in a column from which on it identifies rows.
    few_rows : int
        In fewer rows many entries differ by chance, and no column is taken for an identifier.
    text_letters : float
        Letters of an average entry from which on a column is free text.
    written_share : float
        Share of the different texts of a column that are numbers, or dates, from which on the
        column seems to be meant as one of these: marks for gaps, such as "?", are texts as well.
    largest : float
        Largest number in training: squares and differences are finite.
    counted_levels, counted_numbers : int
        Different texts and numbers that are counted, so that identifiers do not fill the memory.
    """

    min_level_rows: int = 10
    max_levels: int = 1000
    near_constant: tuple[float, int] = (1e-4, 2)
    unique_share: float = 0.5
    few_rows: int = 50
    text_letters: float = 60.0
    written_share: float = 0.9
    largest: float = 1e150
    counted_levels: int = 200_000
    counted_numbers: int = 1000


DEFAULT_RULES = SchemaRules()


@dataclass
class ColumnSummary:
    """Statistics of a column over some rows; summaries of other rows are added.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date"} or None
    n_rows, n_gaps : int
    counts : Counter
        Rows of each level, or of each number.
    overflowing : bool
        Whether there are more of them than are counted: only the most frequent ones are known.
    too_large : bool
        Whether a number is infinite, or so large that its square may be.
    ahead : float or None
        What every number exceeds the number of its row by; None where that is not one number.
    entries : {"levels", "texts", "numbers"}
        What a category consists of, as in :class:`~nysplus.encoding.frames.ColumnValues`.
    """

    name: str
    kind: ColumnKind | None
    n_rows: int
    n_gaps: int
    counts: Counter[Any]
    overflowing: bool = False
    too_large: bool = False
    ahead: float | None = None
    entries: Entries = "levels"

    @classmethod
    def of(cls, column: ColumnValues, rules: SchemaRules) -> ColumnSummary:
        """Return the summary of some rows."""
        x = column.numbers
        there = x[~np.isnan(x)]
        summary = cls(column.name, column.kind, len(x), len(x) - len(there), Counter())
        summary.entries = column.entries
        most = rules.counted_numbers
        if column.kind != "category" and len(np.unique(there[: 2 * most])) > most:
            summary.overflowing = True  # known without sorting all numbers
        else:
            distinct, rows = np.unique(there, return_counts=True)
            names: Sequence[Any] = distinct.tolist()
            if column.kind == "category":
                names = [column.levels[int(code)] for code in distinct]
            summary.counts.update(dict(zip(names, rows.tolist(), strict=True)))
        if column.kind == "number":
            summary.too_large = bool((np.abs(there) > rules.largest).any())
            ahead = x - np.arange(len(x))
            summary.ahead = float(ahead[0]) if len(x) and (ahead == ahead[0]).all() else None
        return summary._bounded(rules)

    @property
    def counting(self) -> bool:
        """Whether the numbers are 0, 1, 2, … or 1, 2, 3, …, as numbers of rows are."""
        return self.ahead in (0.0, 1.0)

    def _bounded(self, rules: SchemaRules) -> ColumnSummary:
        """Forget rare levels, where there are too many to count."""
        most = rules.counted_levels if self.kind == "category" else rules.counted_numbers
        if len(self.counts) > most:
            self.overflowing = True
            self.counts = Counter(dict(self.counts.most_common(most // 2)))
        return self

    def add(self, other: ColumnSummary, rules: SchemaRules) -> None:
        """Add the summary of the rows after these."""
        if None not in (self.kind, other.kind) and self.kind != other.kind:
            raise TypeError(
                f"The column {self.name!r} contains {plural(self.kind)} in some rows and "
                f"{plural(other.kind)} in others. Give it one type."
            )
        if self.kind is None:
            self.kind, self.entries = other.kind, other.entries
        elif other.kind is not None and self.entries != other.entries:
            self.entries = "levels"
        if self.n_rows == 0:
            self.ahead = other.ahead
        elif other.n_rows and (other.ahead is None or self.ahead != other.ahead - self.n_rows):
            self.ahead = None
        self.n_rows += other.n_rows
        self.n_gaps += other.n_gaps
        self.counts.update(other.counts)
        self.overflowing |= other.overflowing
        self.too_large |= other.too_large
        self._bounded(rules)


@dataclass
class TableSummary:
    """Summaries of all columns of a table, which are added over parts of its rows.

    Attributes
    ----------
    names : tuple of str or None
        None for arrays and for frames whose columns are numbered.
    columns : list of ColumnSummary
    n_rows : int
    """

    names: tuple[str, ...] | None
    columns: list[ColumnSummary]
    n_rows: int

    @classmethod
    def of(
        cls,
        X: Any,
        categories: Sequence[str | int] = (),
        rules: SchemaRules = DEFAULT_RULES,
    ) -> TableSummary:
        """Return the summary of a table, or of some of its rows."""
        names = table_names(X)
        chosen = category_positions(categories, names, X.shape[1])
        columns = [
            ColumnSummary.of(values.as_category() if p in chosen else values, rules)
            for p, values in enumerate(read_columns(X))
        ]
        return cls(names, columns, X.shape[0])

    def add(self, other: TableSummary, rules: SchemaRules = DEFAULT_RULES) -> None:
        """Add the summary of the rows after these."""
        for column, more in zip(self.columns, other.columns, strict=True):
            column.add(more, rules)
        self.n_rows += other.n_rows


def table_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of a table's columns, or None where they are numbers or there are none."""
    if not is_frame(X):
        return None
    names = frame_names(X)
    if not any(isinstance(name, str) for name in names):
        return None
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"Columns are named by texts and by other things: {names}. Name all of them by texts."
        )
    check_names(names)
    return tuple(names)


def category_positions(
    categories: Sequence[str | int], names: tuple[str, ...] | None, n_columns: int
) -> set[int]:
    """Return the positions of the columns that the user names as categories."""
    found = set()
    for which in categories:
        if isinstance(which, str) and names is not None and which in names:
            found.add(names.index(which))
        elif is_count(which) and -n_columns <= int(which) < n_columns:
            found.add(int(which) % n_columns)
        else:
            known = f"{n_columns} columns" if names is None else f"the columns {list(names)}"
            raise ValueError(
                f"categories contains {which!r}, and X has {known}. Name columns of X, or give "
                "their positions."
            )
    return found


def plural(kind: ColumnKind | None) -> str:
    """Return the word for the entries of a column."""
    return {"number": "numbers", "category": "categories", "date": "dates", None: "gaps"}[kind]
