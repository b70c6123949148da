"""Codes of tables and of images as JSON and tensors, and back, with everything checked."""

from __future__ import annotations

import reprlib
from typing import Any

from nysplus.encoding.code import Code, TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.encoding.schema import TableSchema
from nysplus.persistence.parameters import entry, require
from nysplus.persistence.tables import Tensors, check_levels, table_code_in, table_code_out


def code_out(code: Code) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors of a code, and its other numbers as JSON."""
    if isinstance(code, ImageCode):
        return {}, {"shape": list(code.shape), "n_cosines": code.n_cosines}
    assert isinstance(code, TableCode)
    return table_code_out(code)


def code_in(record: dict[str, Any], tensors: Tensors) -> Code:
    """Return the code of which :func:`code_out` has written tensors and JSON."""
    if "shape" not in record:
        return table_code_in(record, tensors)
    require(not tensors, f"a code of images has no tensors, such as {sorted(tensors)}.")
    shape, n_cosines = entry(record, "shape", list), entry(record, "n_cosines", int)
    fits = len(shape) == 3 and all(type(size) is int and size >= 1 for size in shape)
    require(fits, f"shape={reprlib.repr(shape)} must be height, width and channels of images.")
    require(n_cosines >= 1, f"n_cosines={n_cosines} must be at least 1.")
    height, width, channels = shape
    return ImageCode((height, width, channels), n_cosines)


def check_together(code: Code | None, schema: TableSchema | None, n_features: int) -> None:
    """Raise unless a code reads the raw numbers that a schema gives."""
    if code is None:
        require(schema is None, "it has a schema, but no encoder.")
        return
    d = n_features if schema is None else len(schema)
    require(code.n_inputs == d, f"its encoder reads {code.n_inputs} columns, not {d}.")
    if schema is not None:
        require(isinstance(code, TableCode), "it has a schema, but its encoder is one of images.")
        assert isinstance(code, TableCode)
        check_levels(code, schema)
