"""The columns of a table: what they are, and how their entries become raw numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.encoding.frames import (
    TRUTH_LEVELS,
    ColumnKind,
    ColumnValues,
    frame_names,
    is_frame,
    read_columns,
)
from nysplus.encoding.summary import (
    DEFAULT_RULES,
    ColumnSummary,
    SchemaRules,
    TableSummary,
    category_positions,
    plural,
)

# A date, or a date and a time, as ISO 8601 has them.
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?")


@dataclass(frozen=True)
class TableColumn:
    """A column of a table that is used.

    Attributes
    ----------
    position : int
        Among the columns of the table.
    name : str
        The name, or "column 3" where columns have no names.
    kind : {"number", "category", "date"}
    levels : tuple of str
        Levels of a category, the most frequent first.
    numbered : bool
        Whether the levels are numbers in the table.
    gaps : bool
        Whether entries were missing in training.
    refuses_gaps, refuses_others : bool
        Whether gaps, and levels other than `levels`, are an error, as in a pipeline of scikit-learn
        without an imputer, and with ``OneHotEncoder(handle_unknown="error")``.
    """

    position: int
    name: str
    kind: ColumnKind
    levels: tuple[str, ...] = ()
    numbered: bool = False
    gaps: bool = False
    refuses_gaps: bool = False
    refuses_others: bool = False

    def raw_numbers(self, values: ColumnValues) -> Float:
        """Return the raw numbers of a column: levels by their positions, −1 for other levels."""
        if self.kind == "category" and self.numbered:
            values = values.as_category()
        values = self._with_truth(values)
        if values.kind not in (None, self.kind):
            raise TypeError(self._wrong_kind(values))
        if np.isinf(values.numbers).any():
            raise ValueError(infinity_in(self.name))
        gap = np.isnan(values.numbers)
        if self.refuses_gaps and gap.any():
            raise ValueError(
                f"The column {self.name!r} has gaps, which the model has no value for. Fill them."
            )
        if self.kind != "category" or values.kind is None:
            return values.numbers
        place = {level: float(p) for p, level in enumerate(self.levels)}
        codes = np.array([*(place.get(level, -1.0) for level in values.levels), np.nan])
        numbers: Float = codes[np.where(gap, len(values.levels), values.numbers).astype(np.intp)]
        if self.refuses_others and (numbers < 0).any():
            other = values.levels[int(values.numbers[numbers < 0][0])]
            raise ValueError(
                f"The column {self.name!r} contains {other!r}, which the model does not know. Its "
                f"levels are {list(self.levels[:10])}{' …' if len(self.levels) > 10 else ''}."
            )
        return numbers

    def _with_truth(self, values: ColumnValues) -> ColumnValues:
        """Return truth values as the numbers 0 and 1, or these as truth values, if needed."""
        if self.kind == "number" and values.levels == TRUTH_LEVELS:
            return ColumnValues(values.name, "number", values.numbers)
        is_truth = self.kind == "category" and set(self.levels) <= set(TRUTH_LEVELS)
        if is_truth and values.kind == "number":
            numbers = values.numbers
            if (np.isnan(numbers) | (numbers == 0.0) | (numbers == 1.0)).all():
                return ColumnValues(values.name, "category", numbers, TRUTH_LEVELS)
        return values

    def _wrong_kind(self, values: ColumnValues) -> str:
        got = f"texts such as {values.levels[0]!r}" if values.levels else plural(values.kind)
        advice = {
            "number": "Convert it to numbers",
            "category": f"Pass levels such as {list(self.levels[:3])}",
            "date": "Convert it to dates",
        }[self.kind]
        return (
            f"The column {self.name!r} contained {plural(self.kind)} in training and contains "
            f"{got} now. {advice}."
        )


@dataclass(frozen=True)
class Dropped:
    """A column that is left out.

    Attributes
    ----------
    name : str
    reason : str
    guessed : bool
        Whether the column varies, and is left out because of what it seems to be.
    """

    name: str
    reason: str
    guessed: bool

    def __str__(self) -> str:
        return f"The column {self.name!r} {self.reason}, and is left out."


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table that are used, and how to read them.

    Attributes
    ----------
    n_features : int
        Number of columns of the table.
    names : tuple of str or None
        Their names; None where columns are known by their positions.
    columns : tuple of TableColumn
        The columns that are used.
    dropped : tuple of Dropped
        The columns that are left out.
    notes : tuple of str
        What else the user should know of the columns.
    """

    n_features: int
    names: tuple[str, ...] | None
    columns: tuple[TableColumn, ...]
    dropped: tuple[Dropped, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def of(
        cls,
        summary: TableSummary,
        categories: Sequence[str | int] = (),
        rules: SchemaRules = DEFAULT_RULES,
    ) -> TableSchema:
        """Return the schema of a table."""
        chosen = category_positions(categories, summary.names, len(summary.columns))
        columns, dropped, notes = [], [], []
        for position, column in enumerate(summary.columns):
            if column.too_large:
                raise ValueError(infinity_in(column.name, f" or a number beyond {rules.largest:g}"))
            constant = _why_constant(column, rules)
            guess = None if position in chosen else _why_no_feature(column, rules)
            if len(summary.columns) == 1 and column.kind == "number":
                guess = None  # such as the time of a series
            if constant is None and position not in chosen:
                notes += note_of_texts(column, rules)
            if constant or guess:
                dropped.append(Dropped(column.name, constant or guess or "", constant is None))
            else:
                columns.append(_table_column(position, column, rules))
        if not columns:
            raise ValueError(
                f"No column of X can be used, with n_samples = {summary.n_rows}. "
                + " ".join([*map(str, dropped), *notes, "Pass other columns."])
            )
        return cls(
            len(summary.columns), summary.names, tuple(columns), tuple(dropped), tuple(notes)
        )

    def read(self, X: Any) -> Float:
        """Return the raw numbers of a table, of shape (N, number of used columns), in float64.

        Columns are found by their names where they have some, in any order, and other columns are
        ignored; in arrays they are found by their positions.
        """
        positions = self._positions(X)
        values = read_columns(X, positions)
        raw = np.empty((X.shape[0], len(self.columns)))
        for i, (column, found) in enumerate(zip(self.columns, values, strict=True)):
            raw[:, i] = column.raw_numbers(found)
        return raw

    def _positions(self, X: Any) -> list[int]:
        if self.names is not None and is_frame(X):
            there = frame_names(X)
            lacking = [column.name for column in self.columns if column.name not in there]
            if lacking:
                raise ValueError(
                    f"X has no columns {lacking}, which the model uses. Its columns are {there}."
                )
            twice = [c.name for c in self.columns if there.count(c.name) > 1]
            if twice:
                raise ValueError(f"X has several columns of one name: {twice}. Pass one of each.")
            return [there.index(column.name) for column in self.columns]
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} columns, and the model was fitted to {self.n_features}. Pass "
                "the same columns in the same order, or a frame with their names."
            )
        return [column.position for column in self.columns]


def _why_constant(column: ColumnSummary, rules: SchemaRules) -> str | None:
    """Return why a column does not vary; None if it does."""
    if column.n_gaps == column.n_rows:
        return "has no entries"
    if column.overflowing:
        return None
    share, few = rules.near_constant
    differing = column.n_rows - max(*column.counts.values(), column.n_gaps)
    if differing == 0:
        return "is constant"
    if differing <= min(few, share * column.n_rows):
        return f"is nearly constant ({differing} of {column.n_rows:,} entries differ)"
    return None


def _why_no_feature(column: ColumnSummary, rules: SchemaRules) -> str | None:
    """Return why a column that varies seems to be no feature; None if it may be one."""
    if column.n_rows < rules.few_rows or column.kind == "date":
        return None
    if column.kind == "number":
        return "numbers the rows" if column.counting else None
    n_counted = sum(column.counts.values())
    letters = sum(len(level) * n for level, n in column.counts.items())
    if letters > rules.text_letters * n_counted:
        return "is free text"
    n_there, n_levels = column.n_rows - column.n_gaps, len(column.counts)
    if column.overflowing or n_levels > rules.unique_share * n_there:
        found = f"more than {rules.counted_levels:,}" if column.overflowing else f"{n_levels:,}"
        return f"has {found} different texts in {n_there:,} rows, as identifiers have"
    return None


def _table_column(position: int, column: ColumnSummary, rules: SchemaRules) -> TableColumn:
    assert column.kind is not None
    gaps = column.n_gaps > 0
    if column.kind != "category":
        return TableColumn(position, column.name, column.kind, gaps=gaps)
    # with few rows, levels of fewer rows are kept: half of what the most frequent level has
    needed = min(rules.min_level_rows, max(column.counts.values()) // 2)
    ordered = sorted(column.counts.items(), key=lambda item: (-item[1], item[0]))
    levels = tuple(level for level, n in ordered[: rules.max_levels] if n >= needed)
    numbered = column.entries == "numbers"
    return TableColumn(position, column.name, "category", levels, numbered, gaps)


def note_of_texts(column: ColumnSummary, rules: SchemaRules) -> list[str]:
    """Return a note on a column of texts that are numbers or dates, as text files have them."""
    if column.entries != "texts":
        return []
    for what, convert, is_one in (
        ("numbers", "pandas.to_numeric", _is_number),
        ("dates", "pandas.to_datetime", DATE.fullmatch),
    ):
        found = [level for level in column.counts if is_one(level)]
        if len(found) >= rules.written_share * len(column.counts):
            other = next((level for level in column.counts if not is_one(level)), None)
            gaps = "" if other is None else f", with a gap in place of {other!r}"
            return [
                f"The column {column.name!r} has {what} as texts, such as {found[0]!r}. Convert it "
                f"to {what}{gaps}, for example with {convert}, or name it in "
                "TableEncoder(categories=…) if it is a category."
            ]
    return []


def _is_number(text: str) -> bool:
    """Return whether a text is a finite number; digits after a zero, as in 00123, are a code."""
    try:
        finite = bool(np.isfinite(float(text)))
    except ValueError:
        return False
    digits = text.strip().lstrip("+-")
    return finite and not (len(digits) > 1 and digits[0] == "0" and digits[1].isdigit())


def warn_of_columns(schema: TableSchema) -> None:
    """Warn, once, of columns that vary and are left out, and of texts to be converted."""
    notes = [str(dropped) for dropped in schema.dropped if dropped.guessed]
    if notes:
        notes.append(
            "Leave such columns out of X, or name them in TableEncoder(categories=…) to use them "
            "as categories."
        )
    if notes or schema.notes:
        warnings.warn(" ".join([*notes, *schema.notes]), stacklevel=2)


def infinity_in(name: str, more: str = "") -> str:
    """Return the message of a column that contains infinities, or numbers that are as bad."""
    return (
        f"The column {name!r} contains infinity{more}. Replace it by another number, or by NaN for "
        "a gap."
    )
