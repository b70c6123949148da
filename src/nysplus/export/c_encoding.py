"""Codes of tables as C, and the same arithmetic in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Power,
    Ramps,
    TableCode,
    Term,
)
from nysplus.expansion import PackedArray
from nysplus.export.c_kernels import in_type, literal, number
from nysplus.export.c_tables import C_TYPES, entry, summand
from nysplus.export.c_text import filled, indented

# The name of the table of B; @_linear is the function of a term.
LINEAR = "linear_coef"
# The names of types in names of tables and functions.
TYPE_NAMES = {"float64": "double", "float32": "float", "float16": "half"}


# -- tables --------------------------------------------------------------------------------------


def arrays_of(term: Term) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a term, by their names."""
    found = {field.name: getattr(term, field.name) for field in fields(term)}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


def in_c_types(code: TableCode, dtype: str) -> TableCode:
    """Return a code with its arrays in the types of a header.

    Parameters
    ----------
    code : TableCode
    dtype : {"auto", "float32", "float64"}
        "auto" keeps all types; no type becomes smaller, because knots must stay apart.
    """
    if dtype == "auto":
        return code
    terms = []
    for term in code.terms:
        wide: Any = {
            name: array.astype(np.result_type(array, dtype))
            for name, array in arrays_of(term).items()
        }
        terms.append(replace(term, **wide))
    return TableCode(code.n_inputs, tuple(terms))


def code_tables(code: TableCode) -> dict[str, PackedArray]:
    """Return the tables of a code: one for each type, with the arrays of all terms in turn."""
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    for term in code.terms:
        for array in arrays_of(term).values():
            parts.setdefault(array.dtype.name, []).append(array.ravel())
    return {
        f"code_{TYPE_NAMES[dtype]}": PackedArray(np.concatenate(parts[dtype]))
        for dtype in sorted(parts)
    }


# -- functions -----------------------------------------------------------------------------------


@dataclass
class _Writer:
    """The calls of a function that encodes rows, and the functions that it calls.

    Attributes
    ----------
    row : "float" or "double"
        Type of raw numbers.
    calls : list of str
        Statements, one for each term.
    functions : dict
        Texts by the names of functions.
    places : dict
        The next position in the table of each type.
    column : int
        The next code column.
    """

    row: str
    calls: list[str]
    functions: dict[str, str]
    places: dict[str, int]
    column: int = 0

    def raw(self, value: float) -> str:
        """Return a number in the type of raw numbers."""
        return literal(value) if self.row == "float" else repr(float(value))

    def function(self, kind: str, name: str, **words: Any) -> None:
        """Write a function, if it is not yet there."""
        words = {"name": name, "row": self.row, **words}
        self.functions.setdefault(f"{kind}_{name}", filled(f"code_{kind}", **words))

    def pointer(self, array: npt.NDArray[Any]) -> str:
        """Return the expression of an array, which is the next one in the table of its type."""
        dtype = array.dtype.name
        place = self.places.get(dtype, 0)
        self.places[dtype] = place + array.size
        return f"@_code_{TYPE_NAMES[dtype]} + {place}"

    def call(self, function: str, term: Term, *arguments: Any) -> None:
        """Call a function for the next columns of the code."""
        given = ", ".join(["u", str(self.column), f"x[{term.column}]", *map(str, arguments)])
        self.calls.append(f"@_{function}({given});")
        self.column += term.n_columns


def _number_type(array: npt.NDArray[Any]) -> str:
    """Return the type of the numbers of a table, once they are read."""
    return "double" if array.dtype == np.float64 else "float"


def _knot_words(knots: npt.NDArray[Any]) -> dict[str, str]:
    at = {"first": "0", "at_gap": "gap", "here": "k", "next": "k + 1"}
    words = {word: entry("knots", knots.dtype, index) for word, index in at.items()}
    return {**words, "stored": C_TYPES[knots.dtype.name], "number": _number_type(knots)}


def _write_linear(term: Linear, writer: _Writer) -> None:
    writer.function("linear", "")
    numbers = (writer.raw(value) for value in (term.offset, term.scale, term.fill))
    writer.call("linear", term, *numbers)


def _write_ramps(term: Ramps, writer: _Writer) -> None:
    name = TYPE_NAMES[term.knots.dtype.name]
    writer.function("ramps", name, **_knot_words(term.knots))
    knots = writer.pointer(term.knots)
    writer.call(f"ramps_{name}", term, knots, term.n_columns, term.gap, number(term.height))


def _write_curve(term: Curve, writer: _Writer) -> None:
    knots, values = term.knots, term.values
    name = f"{TYPE_NAMES[knots.dtype.name]}_{TYPE_NAMES[values.dtype.name]}"
    writer.function(
        "curve",
        name,
        stored_values=C_TYPES[values.dtype.name],
        value=entry("values", values.dtype, "k"),
        next_value=entry("values", values.dtype, "k + 1"),
        **_knot_words(knots),
    )
    pointers = writer.pointer(knots), writer.pointer(values)
    writer.call(f"curve_{name}", term, pointers[0], len(knots) - 1, term.gap, pointers[1])


def _write_one_hot(term: OneHot, writer: _Writer) -> None:
    writer.function("one_hot", "")
    writer.call("one_hot", term, term.n_levels, int(term.gaps))


def _write_lookup(term: Lookup, writer: _Writer) -> None:
    dtype = term.table.dtype
    name = TYPE_NAMES[dtype.name]
    cell = entry("table", dtype, "row * columns + c")
    writer.function("lookup", name, stored=C_TYPES[dtype.name], cell=cell)
    pointer = writer.pointer(term.table)
    writer.call(f"lookup_{name}", term, pointer, len(term.table) - 2, term.n_columns)


def _write_circle(term: Circle, writer: _Writer) -> None:
    writer.function("circle", "", f="f" if writer.row == "float" else "")
    writer.call("circle", term, writer.raw(term.origin), writer.raw(term.period))


def _write_missing(term: Missing, writer: _Writer) -> None:
    writer.function("missing", "")
    writer.call("missing", term, number(term.present), number(term.missing))


def _write_power(term: Power, writer: _Writer) -> None:
    writer.function("power", "", f="f" if writer.row == "float" else "")
    numbers = (term.exponent, term.origin, term.unit, term.offset, term.scale, term.fill)
    writer.call("power", term, int(term.signed), *map(writer.raw, numbers))


_WRITERS: dict[type[Term], Callable[[Any, _Writer], None]] = {
    Circle: _write_circle,
    Curve: _write_curve,
    Linear: _write_linear,
    Lookup: _write_lookup,
    Missing: _write_missing,
    OneHot: _write_one_hot,
    Power: _write_power,
    Ramps: _write_ramps,
}


def encoding(
    code: TableCode, row: str, projection: PackedArray | None, linear: PackedArray | None
) -> str:
    """Return the function that encodes a row, after the functions that it calls.

    Parameters
    ----------
    code : TableCode
        In types of C.
    row : "float" or "double"
        Type of raw numbers.
    projection : PackedArray or None
        P. If it is a matrix, its rows are added to u, times the code columns that are not zero.
        Otherwise u becomes the code.
    linear : PackedArray or None
        B. Its rows are added to the numbers of u behind those of P, times the same code columns.
    """
    bits = (
        {"bits": "uint32_t", "all": "0x7fffffffu", "infinity": "0x7f800000u"}
        if row == "float"
        else {"bits": "uint64_t", "all": "0x7fffffffffffffffu", "infinity": "0x7ff0000000000000u"}
    )
    adding, what = use_of_columns(projection, linear)
    texts = [filled("code_gap", row=row, **bits), adding]
    writer = _Writer(row, [], {}, {})
    for term in code.terms:
        _WRITERS[type(term)](term, writer)
    calls = indented("\n".join(writer.calls), 1)
    return "\n".join(
        [*texts, *writer.functions.values(), filled("encode", row=row, what=what, calls=calls)]
    )


def use_of_columns(projection: PackedArray | None, linear: PackedArray | None) -> tuple[str, str]:
    """Return the function that takes a code column, and what it does, for comments.

    Parameters
    ----------
    projection, linear : PackedArray or None
        P and B, see :func:`encoding`.
    """
    more = ""
    if linear is not None:
        cell = summand(LINEAR, linear, "i * @@_SCORES + c", "c")
        more = f"for (int c = 0; c < @@_SCORES; c++) u[@@_RANK + c] += value * {cell};"
    if projection is not None and projection.values.ndim == 2:
        cell = summand("projection", projection, "i * @@_RANK + j", "j")
        adding = filled("code_into_map", entry=cell, linear=indented(more, 1))
        what = "adds the code, times P,"
    else:
        adding = filled("code_into_row", linear=indented(more, 1))
        what = "sets the code"
    return adding, what if linear is None else f"{what} and adds the code, times B,"


# -- the same arithmetic in NumPy ----------------------------------------------------------------


def encoded(code: TableCode, X: Float, real: npt.DTypeLike) -> Float:
    """Return the code columns of raw numbers with the arithmetic of the header.

    Parameters
    ----------
    code : TableCode
        In types of C.
    X : ndarray of shape (N, d)
        In the type of the header's rows.
    real : dtype
        Type of the header's arithmetic.
    """
    columns = [_ARITHMETIC[type(term)](term, X[:, term.column], real) for term in code.terms]
    return np.hstack([found.astype(real) for found in columns])


def _readable(array: npt.NDArray[Any]) -> Float:
    """Return the numbers of a table as C reads them: float16 as float."""
    numbers: Float = array.astype(np.result_type(array, np.float32))
    return numbers


def _linear(term: Linear, x: Float, real: npt.DTypeLike) -> Float:
    offset, scale, fill = (in_type(x, v) for v in (term.offset, term.scale, term.fill))
    filled = np.where(np.isnan(x), x.dtype.type(fill), x)
    return ((filled - x.dtype.type(offset)) * x.dtype.type(scale))[:, None]


def _shares(knots: Float, gap: int, x: Float, real: npt.DTypeLike) -> tuple[Float, Float]:
    """Return raw numbers without gaps, and the share of each bin that is below them."""
    x = np.where(np.isnan(x), knots[gap].astype(x.dtype), x)[:, None]
    low, high = knots[:-1], knots[1:]
    shares: Float = ((x - low) / (high - low)).astype(real)
    shares = np.where(x < high, shares, shares.dtype.type(1.0))
    return x, np.where(x > low, shares, shares.dtype.type(0.0))


def _ramps(term: Ramps, x: Float, real: npt.DTypeLike) -> Float:
    _, shares = _shares(_readable(term.knots), term.gap, x, real)
    return shares * shares.dtype.type(in_type(shares, term.height))


def _curve(term: Curve, x: Float, real: npt.DTypeLike) -> Float:
    knots, values = _readable(term.knots), _readable(term.values).astype(real)
    x, shares = _shares(knots, term.gap, x, real)
    k = (x >= knots[1:]).sum(axis=1)
    bins = np.minimum(k, len(knots) - 2)
    rise = np.diff(values)[bins] * shares[np.arange(len(x)), bins]
    found: Float = np.where(k > bins, values[-1], values[bins] + rise)
    return found[:, None]


def _exactly(term: Term, x: Float, real: npt.DTypeLike) -> Float:
    """Return the columns of a term that needs no arithmetic."""
    return term.of(x.astype(np.float64))


def _circle(term: Circle, x: Float, real: npt.DTypeLike) -> Float:
    origin, period = (x.dtype.type(in_type(x, v)) for v in (term.origin, term.period))
    turns = (x - origin) / period
    share: Float = (turns - np.floor(turns)).astype(real)
    angle = share * share.dtype.type(2.0 * np.pi)
    point: Float = np.nan_to_num(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return point


def _power(term: Power, x: Float, real: npt.DTypeLike) -> Float:
    names = ("exponent", "origin", "unit", "offset", "scale", "fill")
    numbers: Any = {name: x.dtype.type(in_type(x, getattr(term, name))) for name in names}
    own = replace(term, **numbers)  # which computes in the type of its numbers
    u = (np.where(np.isnan(x), own.fill, x) - own.origin) * own.unit
    return ((own._transformed(u) - own.offset) * own.scale)[:, None]


_ARITHMETIC: dict[type[Term], Callable[[Any, Float, npt.DTypeLike], Float]] = {
    Circle: _circle,
    Curve: _curve,
    Linear: _linear,
    Lookup: _exactly,
    Missing: _exactly,
    OneHot: _exactly,
    Power: _power,
    Ramps: _ramps,
}
