"""The types of columns: one for all files, and what the texts of a file stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nysplus.encoding.frames import TRUTH_LEVELS
from nysplus.encoding.schema import TableColumn, TableSchema


class TypesChanged(Exception):
    """Rows contradict the types that rows before them were read with: read all of them again."""


class TextColumns:
    """The types of columns that are stored as text.

    The type of a column is the first one that all of its entries have, wherever they are in the
    files. It is found by reading: a type that entries contradict gives way to the next one.

    Parameters
    ----------
    names : iterable of str
        Columns that are stored as text.
    gaps : list of str
        Texts that stand for a gap, such as "" and "NA".
    schema : TableSchema, optional
        What the columns contained in training, and should contain now.

    Attributes
    ----------
    changed : bool
        Whether entries were read with types that later ones contradicted.
    """

    def __init__(
        self, names: Iterable[str], gaps: list[str], schema: TableSchema | None = None
    ) -> None:
        self._gaps = gaps
        self._possible = {name: list(CASTS) for name in names}
        if schema is not None and schema.names is not None:
            known = {column.name: _types_of(column) for column in schema.columns}
            self._possible |= {name: known[name] for name in self._possible if name in known}
        self.changed = False
        self._filled: set[str] = set()  # columns of which entries were read

    @property
    def names(self) -> list[str]:
        """The columns that are stored as text."""
        return list(self._possible)

    def read(self, table: Any) -> Any:
        """Return a pyarrow table whose text columns have their types."""
        for name in self._possible:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, self._typed(name, table.column(place)))
        return table

    def _typed(self, name: str, column: Any) -> Any:
        import pyarrow as pa
        from pyarrow import compute

        gap = compute.is_in(column, value_set=pa.array(self._gaps, pa.string()))
        if compute.any(gap).as_py():
            column = compute.if_else(gap, pa.scalar(None, column.type), column)
        while True:
            try:
                typed = CASTS[self._possible[name][0]](column)
            except pa.ArrowInvalid:
                del self._possible[name][0]
                self.changed |= name in self._filled
            else:
                if typed.null_count < len(typed):
                    self._filled.add(name)
                return typed


def _types_of(column: TableColumn) -> list[str]:
    """Return the types that the entries of a known column may have, and text for all others."""
    if column.kind == "number" or column.numbered:
        return ["number", "text"]
    if column.kind == "date":
        return ["date", "date with time zone", "text"]
    return ["truth", "text"] if set(column.levels) <= set(TRUTH_LEVELS) else ["text"]


def _numbers(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return compute.ascii_trim_whitespace(column).cast(pa.float64())


def _truth(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    lower = compute.utf8_lower(column)
    if compute.all(compute.is_in(lower, value_set=pa.array(["true", "false", None]))).as_py():
        return compute.equal(lower, "true")
    raise pa.ArrowInvalid("other entries than truth values")


def _dates(zone: str | None) -> Callable[[Any], Any]:
    def cast(column: Any) -> Any:
        import pyarrow as pa

        return column.cast(pa.timestamp("us", zone))

    return cast


# Types in the order in which they are tried, and the functions that give them to text.
CASTS: dict[str, Callable[[Any], Any]] = {
    "number": _numbers,
    "truth": _truth,
    "date": _dates(None),
    "date with time zone": _dates("UTC"),
    "text": lambda column: column,
}


def common_type(name: str, given: Any, stored: list[Any]) -> Any:
    """Return the type to read a column with, or raise.

    Parameters
    ----------
    name : str
    given : pyarrow.DataType
        Its type in the dataset, which the user may have chosen.
    stored : list of pyarrow.DataType
        Its types in the files; none for a column that is in their paths.
    """
    import pyarrow as pa

    is_a, found = pa.types, [kind for kind in dict.fromkeys(stored) if not pa.types.is_null(kind)]
    if stored and given not in stored:
        return given
    if len(found) <= 1:
        return found[0] if found else given
    numbers = (is_a.is_integer, is_a.is_floating, is_a.is_decimal)
    texts = (is_a.is_string, is_a.is_large_string, is_a.is_string_view, is_a.is_dictionary)
    dates = (is_a.is_date, is_a.is_timestamp)
    for tests, kind in (numbers, pa.float64()), (texts, pa.string()), (dates, pa.timestamp("us")):
        if all(any(test(each) for test in tests) for each in found):
            return kind
    raise ValueError(
        f"The column {name!r} has several types in the files of X: {', '.join(map(str, found))}. "
        "Write all files with one type."
    )
