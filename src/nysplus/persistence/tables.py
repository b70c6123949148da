"""Codes and schemas of tables as JSON and tensors, and back, with everything checked.

The arrays of all terms are concatenated to one tensor for each type: "encoder.float16" and so on.
A term in the header has the type and shape of its arrays, and all its other numbers. Entries of
columns that have their default are left out, and so are names that follow from the position.
"""

from __future__ import annotations

import math
import reprlib
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import numpy.typing as npt

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
from nysplus.persistence.parameters import entry, require

Tensors = dict[str, npt.NDArray[Any]]

TERMS: dict[str, type[Term]] = {
    kind.__name__: kind for kind in (Circle, Curve, Linear, Lookup, Missing, OneHot, Power, Ramps)
}
KINDS = ("number", "category", "date")
FLAGS = ("numbered", "gaps", "refuses_gaps", "refuses_others")
# Entries of columns.
DEFAULTS: dict[str, Any] = {"kind": "number", "levels": [], **dict.fromkeys(FLAGS, False)}
# The first part of the names of an encoder's tensors, and the types that these may have.
PREFIX = "encoder."
FLOATS = ("float16", "float32", "float64")
# What JSON has for the fields of terms.
WHOLE, REAL, ARRAY = (int,), (float, int), (list,)
FIELD_TYPES: dict[str, tuple[type, ...]] = {
    "column": WHOLE,
    "exponent": REAL,
    "gap": WHOLE,
    "gaps": (bool,),
    "fill": REAL,
    "height": REAL,
    "knots": ARRAY,
    "missing": REAL,
    "n_levels": WHOLE,
    "name": (str,),
    "offset": REAL,
    "origin": REAL,
    "period": REAL,
    "present": REAL,
    "scale": REAL,
    "signed": (bool,),
    "table": ARRAY,
    "unit": REAL,
    "values": ARRAY,
}


# Writing


def table_code_out(code: TableCode) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors of a code, and its terms as JSON."""
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    terms = []
    for term in code.terms:
        record: dict[str, Any] = {"kind": type(term).__name__}
        for field in fields(term):
            value = getattr(term, field.name)
            if isinstance(value, np.ndarray):
                parts.setdefault(value.dtype.name, []).append(value.ravel())
                value = [value.dtype.name, *value.shape]
            record[field.name] = value.item() if isinstance(value, np.generic) else value
        terms.append(record)
    tensors = {PREFIX + dtype: np.concatenate(arrays) for dtype, arrays in parts.items()}
    return tensors, {"n_inputs": code.n_inputs, "terms": terms}


def schema_out(schema: TableSchema) -> dict[str, Any]:
    """Return a schema as JSON, without the columns that are left out."""
    names = None if schema.names is None else list(schema.names)
    columns = []
    for column in schema.columns:
        record = {**asdict(column), "levels": list(column.levels)}
        default = {**DEFAULTS, "name": None if names is None else names[column.position]}
        columns.append({k: v for k, v in record.items() if default.get(k) != v})
    return {"names": names, "columns": columns}


# Reading


class _Arrays:
    """The arrays of an encoder's tensors, taken one after the other."""

    def __init__(self, tensors: Tensors) -> None:
        self._left = {}
        for name, tensor in tensors.items():
            dtype = name.removeprefix(PREFIX)
            fits = dtype in FLOATS and tensor.dtype == dtype and tensor.ndim == 1
            require(fits, f"the tensor {name!r} is no list of numbers of the type in its name.")
            self._left[dtype] = tensor

    def take(self, layout: list[Any]) -> npt.NDArray[Any]:
        """Return the next array of a type and shape, such as ``["float16", 17]``."""
        dtype, *shape = layout or [""]
        fits = type(dtype) is str and 1 <= len(shape) <= 2
        fits = fits and all(type(size) is int and size >= 1 for size in shape)
        require(fits, f"{reprlib.repr(layout)} is no type and shape of an array of its encoder.")
        size, left = math.prod(shape), self._left.get(dtype, np.empty(0))
        require(size <= len(left), f"its encoder has fewer numbers of {dtype!r} than it needs.")
        self._left[dtype] = left[size:]
        return left[:size].reshape(shape)

    def check_all_taken(self) -> None:
        """Raise if a tensor has numbers that belong to no term."""
        extra = sorted(dtype for dtype, left in self._left.items() if len(left) > 0)
        require(not extra, f"its encoder has more numbers of {extra} than it needs.")


def split_tensors(tensors: Tensors) -> tuple[Tensors, Tensors]:
    """Return the tensors of an encoder, and the others."""
    own = {name: tensor for name, tensor in tensors.items() if name.startswith(PREFIX)}
    return own, {name: tensor for name, tensor in tensors.items() if name not in own}


def table_code_in(record: dict[str, Any], tensors: Tensors) -> TableCode:
    """Return the code of which :func:`table_code_out` has written tensors and terms."""
    n_inputs = entry(record, "n_inputs", int)
    arrays = _Arrays(tensors)
    terms = tuple(_term_in(term, arrays, n_inputs) for term in entry(record, "terms", list))
    require(terms, "its encoder has no terms.")
    arrays.check_all_taken()
    return TableCode(n_inputs, terms)


def _term_in(record: Any, arrays: _Arrays, n_inputs: int) -> Term:
    name = entry(record, "kind", str)
    require(name in TERMS, f"the term {reprlib.repr(name)} is not known. Upgrade nysplus.")
    found: dict[str, Any] = {}
    for field in fields(TERMS[name]):
        types = FIELD_TYPES[field.name]
        value = entry(record, field.name, *types)
        found[field.name] = arrays.take(value) if types is ARRAY else value
        if types is REAL:
            _check_numbers(name, field.name, value)
            found[field.name] = float(value)
    fits = 0 <= found["column"] < n_inputs
    require(fits, f"{name} of column {found['column']} of {n_inputs} columns is not possible.")
    _CHECKS.get(TERMS[name], lambda **_: None)(**found)
    return TERMS[name](**found)


def _check_numbers(kind: str, name: str, value: Any) -> None:
    finite = np.isfinite(np.asarray(value, dtype=np.float64)).all()
    require(finite, f"{name} of {kind} has numbers that are not finite.")


def _check_knots(knots: npt.NDArray[Any], gap: int, **others: Any) -> None:
    """Raise unless knots are two or more, and far enough apart to divide by their differences."""
    _check_numbers("an encoder", "knots", knots)
    require(knots.ndim == 1 and len(knots) >= 2, f"knots of the shape {knots.shape} are too few.")
    with np.errstate(over="ignore", divide="ignore"):
        bins = np.diff(knots.astype(np.float64))
        fits = (bins > 0).all() and np.isfinite(bins).all() and np.isfinite(1.0 / bins).all()
    require(fits, "the knots of its encoder are not increasing.")
    require(0 <= gap < len(knots), f"gap={gap} is none of {len(knots)} knots.")


def _check_curve(
    knots: npt.NDArray[Any], values: npt.NDArray[Any], gap: int, **others: Any
) -> None:
    _check_knots(knots, gap)
    fits = values.shape == knots.shape
    require(fits, f"values of the shape {values.shape} do not fit {len(knots)} knots.")
    _check_numbers("a curve", "values", values)


def _check_one_hot(n_levels: int, gaps: bool, **others: Any) -> None:
    require(n_levels >= 0 and n_levels + gaps >= 1, f"n_levels={n_levels} is not possible.")


def _check_lookup(table: npt.NDArray[Any], **others: Any) -> None:
    fits = table.ndim == 2 and len(table) >= 2
    require(fits, f"a table of the shape {table.shape} is not possible.")
    _check_numbers("an encoder", "a table", table)


def _check_circle(period: float, **others: Any) -> None:
    require(period > 0, f"period={period} must be positive.")


_CHECKS: dict[type[Term], Any] = {
    Circle: _check_circle,
    Curve: _check_curve,
    Lookup: _check_lookup,
    OneHot: _check_one_hot,
    Ramps: _check_knots,
}


def check_levels(code: TableCode, schema: TableSchema) -> None:
    """Raise unless a schema has the levels that a code reads."""
    for term in code.terms:
        if isinstance(term, (OneHot, Lookup)):
            n = term.n_levels if isinstance(term, OneHot) else len(term.table) - 2
            known = len(schema.columns[term.column].levels)
            require(n <= known, f"its encoder has {n} levels of a column that has {known}.")


def schema_in(record: dict[str, Any], n_features: int) -> TableSchema:
    """Return the schema of which :func:`schema_out` has written JSON."""
    names = entry(record, "names", list, type(None))
    if names is not None:
        fits = len(names) == n_features and _are_different_texts(names)
        require(fits, f"names must be {n_features} different texts.")
        names = tuple(names)
    columns = tuple(
        _column_in(column, names, n_features) for column in entry(record, "columns", list)
    )
    positions = [column.position for column in columns]
    fits = len(positions) > 0 and positions == sorted(set(positions))
    require(fits, "the positions of its columns are not increasing.")
    return TableSchema(n_features, names, columns)


def _column_in(record: Any, names: tuple[str, ...] | None, n_features: int) -> TableColumn:
    position = entry(record, "position", int)
    require(0 <= position < n_features, f"position={position} of {n_features} is not possible.")
    if names is not None:
        record = {**record, "name": names[position]}
    record = {**DEFAULTS, **record}
    kind, levels = entry(record, "kind", str), entry(record, "levels", list)
    require(kind in KINDS, f"kind={reprlib.repr(kind)} of a column is not known. Upgrade nysplus.")
    require(_are_different_texts(levels), f"levels={reprlib.repr(levels)} must be different texts.")
    require(kind == "category" or not levels, f"a column of the kind {kind!r} has no levels.")
    flags = {flag: entry(record, flag, bool) for flag in FLAGS}
    return TableColumn(position, entry(record, "name", str), kind, tuple(levels), **flags)


def _are_different_texts(values: list[Any]) -> bool:
    return all(type(value) is str for value in values) and len(set(values)) == len(values)
