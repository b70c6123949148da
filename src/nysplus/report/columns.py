"""The columns of the user: their entries as texts, and a summary of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysplus._rows.opening import schema_of
from nysplus._typing import Float
from nysplus.encoding.schema import TableColumn
from nysplus.report.wording import few

# Levels of a category that are listed.
LISTED_LEVELS = 4


def columns_of(model: Any) -> tuple[TableColumn, ...]:
    """Return the columns that a fitted model uses, in the order of its raw numbers."""
    schema = schema_of(model)
    if schema is not None:
        return schema.columns
    n = model.n_features_in_
    names = getattr(model, "feature_names_in_", [f"column {j}" for j in range(n)])
    return tuple(TableColumn(j, str(name), "number") for j, name in enumerate(names))


def entry_text(column: TableColumn, number: float) -> str:
    """Return the entry of a column that a raw number stands for."""
    if np.isnan(number):
        return "missing"
    if column.kind == "category":
        return column.levels[int(number)] if number >= 0 else "rare or new level"
    if column.kind == "date":
        return date_text(number)
    return f"{number:,.0f}" if number == round(number) else f"{number:.4g}"


def date_text(seconds: float) -> str:
    """Return a time in seconds since 1970 as a date, with the time of the day if it has one."""
    day, rest = divmod(seconds, 86_400)
    text = str(np.datetime64(int(day), "D"))
    return text if rest == 0 else f"{text} {str(np.datetime64(int(seconds), 's'))[11:16]}"


def column_row(column: TableColumn, numbers: Float) -> tuple[str, str, str, str]:
    """Return the name of a column, its kind, the share of missing entries, and its content."""
    known = numbers[~np.isnan(numbers)]
    share = 100.0 * (1.0 - len(known) / max(len(numbers), 1))
    missing = "" if len(known) == len(numbers) else f"{share:.1f} %" if share >= 0.1 else "<0.1 %"
    return column.name, column.kind, missing, _content(column, known)


def _content(column: TableColumn, known: Float) -> str:
    if not len(known):
        return ""
    if column.kind == "category":
        positions, counts = np.unique(known.astype(int), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        shares = [
            f"{entry_text(column, positions[i])} {100 * counts[i] / len(known):.0f} %"
            for i in order
        ]
        return few(shares, LISTED_LEVELS)
    low, middle, high = np.quantile(known, [0.0, 0.5, 1.0], method="nearest")
    ends = f"{entry_text(column, low)} to {entry_text(column, high)}"
    return f"{ends}, median {entry_text(column, middle)}"
