"""Name the raw numbers of a table and the levels of its categories in C."""

from __future__ import annotations

from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.export.c_text import Names, shown

# Macros of a header, without its name in front of them.
MACROS = ("BACKGROUND", "CLASSES", "FEATURES", "H", "LANDMARKS", "NODES", "RANK", "SCORES")
_MEANINGS = {
    "number": "a number",
    "category": "a category: a constant of the enum of its levels",
    "date": "a date: seconds since 1970 in UTC",
}


def input_comment(schema: TableSchema) -> str:
    """Return lines of a comment with the name and the meaning of each raw number."""
    lines = [
        f" *     x[{i}]: {shown(column.name)}, {_meaning(column)}\n"
        for i, column in enumerate(schema.columns)
    ]
    return "".join([" * The numbers of a row x, NAN for a gap:\n", *lines])


def _meaning(column: TableColumn) -> str:
    meaning = _MEANINGS[column.kind]
    if column.kind == "category" and not column.refuses_others:
        meaning += ", -1 for any other level"
    return f"{meaning}; without gaps" if column.refuses_gaps else meaning


def constants(schema: TableSchema) -> str:
    """Return the enums of the positions of raw numbers, and of the levels of each category."""
    names = Names(f"@@_{macro}" for macro in MACROS)
    inputs = [
        (names.name("X", column.name), i, column.name) for i, column in enumerate(schema.columns)
    ]
    texts = [_enum("positions of the numbers of a row", inputs)]
    for column in schema.columns:
        if column.kind == "category":
            texts.append(_enum(f"levels of {shown(column.name)}", _levels(column, names)))
    return "\n".join(texts) + "\n"


def _levels(column: TableColumn, names: Names) -> list[tuple[str, int, str]]:
    others = (names.name(column.name, "OTHER"), -1, "")
    return [others] + [
        (names.name(column.name, level), i, level) for i, level in enumerate(column.levels)
    ]


def _enum(what: str, constants: list[tuple[str, int, str]]) -> str:
    lines = [
        f"    {name} = {value}," + (f" /* {shown(label)} */" if label else "")
        for name, value, label in constants
    ]
    return "\n".join([f"/* {what} */", "enum {", *lines, "};", ""])
