"""Stored arrays as tables of C, and the expressions that read their numbers.

Integers of fewer than 8 bits are streams of bits (:mod:`nysplus._bytes.bit_stream`), which the
functions of ``c_templates/nibble.h`` and ``c_templates/bits.h`` read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._bytes.bit_stream import pack_bits
from nysplus._typing import Float
from nysplus.expansion import MAX_BITS, PackedArray
from nysplus.export.c_kernels import literal
from nysplus.export.c_text import table

# Types of the tables.
C_TYPES = {
    "float64": "double",
    "float32": "float",
    "float16": "uint16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
}


def tables(name: str, stored: PackedArray) -> str:
    """Return the definition of the values, and of scales and offsets where there are any."""
    values = stored.values
    if stored.bits < MAX_BITS:
        values = pack_bits(values, stored.bits)
    text = _table(name, values)
    for kind, numbers in (("scale", stored.scale), ("offset", stored.offset)):
        if numbers is not None:
            text += _table(f"{name}_{kind}", numbers)
    return text


def _table(name: str, array: npt.NDArray[Any]) -> str:
    values = array.ravel()
    if values.dtype == np.float16:
        texts = [f"0x{bits:04x}" for bits in values.view(np.uint16)]
    elif values.dtype in (np.int8, np.uint8):
        texts = [str(value) for value in values]
    elif values.dtype == np.float64:
        texts = [repr(float(value)) for value in values]
    else:
        texts = [literal(value) for value in values]
    return table(C_TYPES[values.dtype.name], name, texts, values.size)


def templates(arrays: Iterable[PackedArray]) -> list[str]:
    """Return the templates of the functions that expressions of some tables call."""
    found = set()
    for stored in arrays:
        if any(
            numbers is not None and numbers.dtype == np.float16
            for numbers in (stored.values, stored.scale, stored.offset)
        ):
            found.add("half")
        if stored.bits < MAX_BITS:
            found.add("nibble" if stored.bits == 4 else "bits")
    return [name for name in ("half", "nibble", "bits") if name in found]


def entry(table: str, dtype: np.dtype[Any], index: str) -> str:
    """Return the expression of an entry of a table as float."""
    if dtype == np.float16:
        return f"@_half({table}[{index}])"
    return f"(float){table}[{index}]" if dtype == np.int8 else f"{table}[{index}]"


def _value(name: str, stored: PackedArray, index: str) -> str:
    """Return the expression of a stored value as float, without scale and offset."""
    if stored.bits == 4:
        return f"(float)@_nibble(@_{name}, {index})"
    if stored.bits < MAX_BITS:
        return f"(float)@_bits(@_{name}, {index}, {stored.bits})"
    return entry(f"@_{name}", stored.values.dtype, index)


def _of_column(name: str, numbers: npt.NDArray[Any], column: str) -> str:
    """Return the scale or the offset of a column as float."""
    return entry(f"@_{name}", numbers.dtype, column if numbers.ndim else "0")


def number(name: str, stored: PackedArray, index: str, column: str) -> str:
    """Return the expression of a number, as float."""
    text = _value(name, stored, index)
    if stored.scale is not None:
        text += f" * {_of_column(f'{name}_scale', stored.scale, column)}"
    if stored.offset is not None:
        text += f" + {_of_column(f'{name}_offset', stored.offset, column)}"
    return text


def summand(name: str, stored: PackedArray, index: str, column: str) -> str:
    """Return the expression of a number in a sum over its column, which :func:`factor` completes.

    The scale of a column is left to the sum, unless the column has an offset as well.
    """
    if stored.offset is not None:
        return f"({number(name, stored, index, column)})"
    return _value(name, stored, index)


def factor(name: str, stored: PackedArray, column: str) -> str:
    """Return the factor of a sum over a column; empty where there is none."""
    if stored.factor is None:
        return ""
    return f" * {_of_column(f'{name}_scale', stored.factor, column)}"


def summands(stored: PackedArray) -> Float:
    """Return the numbers of the expressions of :func:`summand`."""
    if stored.factor is None:
        return stored.unpacked()
    values: Float = stored.values.astype(np.float32)
    return values
