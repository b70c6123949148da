"""Tables as inputs of an ONNX graph, and the code of their rows as nodes.

Raw numbers and knots are subtracted in float64, whatever the type of the graph: numbers far from
zero keep their digits. The code itself is of moderate size, and has the type of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import groupby
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
from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.export.onnx_nodes import Graph, optional_library

# The domain of LabelEncoder, and the first version in which it has texts as keys of numbers.
ML_DOMAIN, ML_VERSION = "ai.onnx.ml", 2
# Exponents of power transforms below which u^λ − 1 has fewer digits than λ log(u).
ZERO_EXPONENT = 1e-9


# -- inputs --------------------------------------------------------------------------------------


def check_names(schema: TableSchema, outputs: Collection[str]) -> None:
    """Raise if the name of a column cannot be the name of an input."""
    for column in schema.columns:
        if column.name in outputs or not column.name:
            why = "is the name of an output" if column.name else "is empty"
            raise ValueError(
                f"The name {column.name!r} of a column {why} of the ONNX graph. Rename the column "
                "before fit, or pass inputs='matrix'."
            )


def input_type(column: TableColumn, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the input of a column, object for texts.

    Seconds since 1970 need float64: float32 divides them into steps of two minutes.
    """
    if column.kind == "category" and not column.numbered:
        return np.dtype(object)
    return np.dtype(np.float64) if column.kind == "date" else dtype


def column_inputs(schema: TableSchema, dtype: np.dtype[Any]) -> list[Any]:
    """Return an input of shape (rows, 1) for each column, with its name."""
    helper = optional_library("onnx").helper
    kinds = [
        helper.np_dtype_to_tensor_dtype(input_type(column, dtype)) for column in schema.columns
    ]
    return [
        helper.make_tensor_value_info(column.name, kind, [None, 1])
        for column, kind in zip(schema.columns, kinds, strict=True)
    ]


def columns_from_inputs(graph: Graph, schema: TableSchema, dtype: np.dtype[Any]) -> list[str]:
    """Return the raw numbers of each column, of shape (rows, 1), in float64."""
    found = []
    for column in schema.columns:
        if input_type(column, dtype).kind == "O":
            found.append(_from_texts(graph, column))
            continue
        value = graph.cast(column.name, np.float64)
        if column.kind == "category":
            value = _from_numbers(graph, value, column, dtype)
        found.append(value)
    return found


def columns_of_matrix(graph: Graph, n_columns: int) -> list[str]:
    """Return the columns of the input X, of shape (rows, 1), in float64."""
    X = graph.cast("X", np.float64)
    positions = np.arange(n_columns)[:, None]
    return [graph.node("Gather", X, graph.constant(p), axis=1) for p in positions]


def _from_texts(graph: Graph, column: TableColumn) -> str:
    """Return the positions of levels; the empty text is a gap, unless it is a level."""
    levels: dict[str, float] = {level: float(p) for p, level in enumerate(column.levels)}
    levels.setdefault("", np.nan)
    code = graph.node(
        "LabelEncoder",
        column.name,
        domain=ML_DOMAIN,
        keys_strings=list(levels),
        values_floats=list(levels.values()),
        default_float=-1.0,
    )
    return graph.cast(code, np.float64)


def _from_numbers(graph: Graph, x: str, column: TableColumn, dtype: np.dtype[Any]) -> str:
    """Return the positions of levels that are numbers in the table, as their type rounds them."""
    numbers = np.array([float(level) for level in column.levels]).astype(dtype).astype(np.float64)
    order = np.argsort(numbers)
    place = _place(graph, x, numbers[order])
    known = graph.node("Equal", x, _at(graph, numbers[order], place))
    code = graph.node("Where", known, _at(graph, order.astype(np.float64), place), _wide(graph, -1))
    return graph.node("Where", graph.node("IsNaN", x), x, code)


# -- numbers in float64 --------------------------------------------------------------------------


def _wide(graph: Graph, values: Any) -> str:
    """Add numbers in float64."""
    return graph.constant(np.asarray(values, dtype=np.float64), "wide")


def _at(graph: Graph, table: npt.NDArray[Any], place: str) -> str:
    """Return the rows of a table at places."""
    return graph.node("Gather", graph.constant(table, "table"), place, axis=0)


def _filled(graph: Graph, x: str, fill: Any) -> str:
    """Return numbers with another number in place of gaps."""
    return graph.node("Where", graph.node("IsNaN", x), _wide(graph, fill), x)


def _moved(graph: Graph, x: str, offset: Any, scale: Any) -> str:
    """Return ``(x − offset) · scale``."""
    return graph.node("Mul", graph.node("Sub", x, _wide(graph, offset)), _wide(graph, scale))


def _place(graph: Graph, x: str, knots: Float) -> str:
    """Return the number of the last knot that is at most x, 0 below all, by bisection."""
    n_halvings = max(len(knots) - 1, 1).bit_length()
    padded = np.full(2**n_halvings, np.nan)  # which no number reaches
    padded[: len(knots)] = knots
    table = graph.constant(padded, "knots")
    place = graph.constant(np.zeros((1, 1), dtype=np.int64), "place")
    for step in 2 ** np.arange(n_halvings)[::-1]:
        higher = graph.node("Add", place, graph.constant(np.array([[step]], dtype=np.int64)))
        reached = graph.node("GreaterOrEqual", x, graph.node("Gather", table, higher, axis=0))
        place = graph.node("Where", reached, higher, place)
    return place


# -- terms ---------------------------------------------------------------------------------------


def _linear(graph: Graph, terms: list[Linear], x: str) -> str:
    """Return several columns of the same kind at once."""
    x = _filled(graph, x, [[term.fill for term in terms]])
    offset, scale = ([[getattr(term, name) for term in terms]] for name in ("offset", "scale"))
    return graph.cast(_moved(graph, x, offset, scale), graph.dtype)


def _ramps(graph: Graph, term: Ramps, x: str) -> str:
    t = term.knots.astype(np.float64)
    ramps = _moved(graph, _filled(graph, x, t[term.gap]), t[None, :-1], 1.0 / np.diff(t)[None])
    ramps = graph.cast(ramps, graph.dtype)
    ramps = graph.node("Clip", ramps, graph.number(0.0), graph.number(1.0))
    return graph.node("Mul", ramps, graph.number(term.height))


def _curve(graph: Graph, term: Curve, x: str) -> str:
    t, v = term.knots.astype(np.float64), term.values.astype(np.float64)
    x = graph.node("Clip", _filled(graph, x, t[term.gap]), _wide(graph, t[0]), _wide(graph, t[-1]))
    place = _place(graph, x, t)
    slopes = np.append(np.diff(v) / np.diff(t), 0.0)
    rise = graph.node("Mul", graph.node("Sub", x, _at(graph, t, place)), _at(graph, slopes, place))
    return graph.cast(graph.node("Add", _at(graph, v, place), rise), graph.dtype)


def _one_hot(graph: Graph, term: OneHot, x: str) -> str:
    known = graph.node("Less", x, _wide(graph, term.n_levels))  # false for NaN
    level = graph.node("Where", known, x, _wide(graph, -1.0))
    if term.gaps:
        gap = graph.node("IsNaN", x)
        level = graph.node("Where", gap, _wide(graph, term.n_levels), level)
    levels = _wide(graph, np.arange(term.n_columns)[None])
    return graph.cast(graph.node("Equal", level, levels), graph.dtype)


def _lookup(graph: Graph, term: Lookup, x: str) -> str:
    n, k = len(term.table) - 2, term.n_columns
    other = graph.node("Less", x, _wide(graph, 0.0))
    row = _filled(graph, graph.node("Where", other, _wide(graph, n), x), n + 1.0)
    found = _at(graph, term.table, graph.cast(row, np.int64))
    shape = graph.constant(np.array([0, k], dtype=np.int64), "shape")
    return graph.cast(graph.node("Reshape", found, shape), graph.dtype)


def _circle(graph: Graph, term: Circle, x: str) -> str:
    period = _wide(graph, term.period)
    moved = graph.node("Sub", x, _wide(graph, term.origin))
    rounds = graph.node("Floor", graph.node("Div", moved, period))
    rest = graph.node("Sub", moved, graph.node("Mul", rounds, period))
    angle = graph.node("Mul", rest, _wide(graph, 2.0 * np.pi / term.period))
    angle = graph.cast(angle, graph.dtype)
    point = graph.node("Concat", graph.node("Cos", angle), graph.node("Sin", angle), axis=1)
    return graph.node("Where", graph.node("IsNaN", x), graph.number(0.0), point)


def _power(graph: Graph, term: Power, x: str) -> str:
    u = _moved(graph, _filled(graph, x, term.fill), term.origin, term.unit)
    if term.signed:
        one, zero = _wide(graph, 1.0), _wide(graph, 0.0)
        above = graph.node("Add", graph.node("Max", u, zero), one)
        below = graph.node("Add", graph.node("Max", graph.node("Neg", u), zero), one)
        y = graph.node(
            "Sub",
            _box_cox(graph, above, term.exponent),
            _box_cox(graph, below, 2.0 - term.exponent),
        )
    else:
        y = _box_cox(graph, u, term.exponent)
    return graph.cast(_moved(graph, y, term.offset, term.scale), graph.dtype)


def _box_cox(graph: Graph, u: str, exponent: float) -> str:
    if abs(exponent) < ZERO_EXPONENT:
        return graph.node("Log", u)
    return _moved(graph, graph.node("Pow", u, _wide(graph, exponent)), 1.0, 1.0 / exponent)


def _missing(graph: Graph, term: Missing, x: str) -> str:
    gap = graph.node("IsNaN", x)
    return graph.node("Where", gap, graph.number(term.missing), graph.number(term.present))


_TERMS: dict[type[Term], Callable[..., str]] = {
    Circle: _circle,
    Curve: _curve,
    Lookup: _lookup,
    Missing: _missing,
    OneHot: _one_hot,
    Power: _power,
    Ramps: _ramps,
}


def coded(graph: Graph, code: TableCode, columns: list[str]) -> str:
    """Add the nodes of E, and return the code columns in the type of the graph.

    Parameters
    ----------
    graph : Graph
    code : TableCode
    columns : list of str
        The raw columns, of shape (rows, 1), in float64.
    """
    parts = []
    for kind, run in groupby(code.terms, type):
        terms = list(run)
        if kind is Linear:
            x = graph.node("Concat", *(columns[term.column] for term in terms), axis=1)
            parts.append(_linear(graph, terms, x))  # type: ignore[arg-type]
        else:
            parts += [_TERMS[kind](graph, term, columns[term.column]) for term in terms]
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
