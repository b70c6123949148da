"""Codes of rows in C: tables, functions and comments, and the same arithmetic in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy.typing as npt

from nysplus._typing import Float
from nysplus.encoding.code import Code, TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.expansion import PackedArray
from nysplus.export.c_encoding import code_tables, encoded, encoding, in_c_types
from nysplus.export.c_image import encoded_image, image_comment, image_encoding, stack_numbers

# A line of the comment at the top of a header, if the model encodes tables.
TABLE_COMMENT = (
    " * E(x) is the code of a row; its numbers that are in no table are constants of @_encode.\n"
)


@dataclass(frozen=True)
class CCode:
    """A code in C.

    Attributes
    ----------
    comment : str
        A line of the comment at the top of a header.
    tables : dict
        Arrays by name.
    function : callable
        From the type of a row, P and B to the text of the functions that encode a row.
    matrix : callable
        From rows and the type of real numbers to their code columns, with the same arithmetic.
    n_stack : int
        Real numbers on the stack.
    """

    comment: str
    tables: dict[str, PackedArray]
    function: Callable[[str, PackedArray | None, PackedArray | None], str]
    matrix: Callable[[Float, npt.DTypeLike], Float]
    n_stack: int = 0


def c_code(code: Code, dtype: str = "auto") -> CCode:
    """Return a code in C.

    Parameters
    ----------
    code : TableCode or ImageCode
    dtype : {"auto", "float32", "float64"}
        See :func:`~nysplus.export.c_encoding.in_c_types`.
    """
    if isinstance(code, ImageCode):
        function, matrix = partial(image_encoding, code), partial(encoded_image, code)
        return CCode(image_comment(code), {}, function, matrix, stack_numbers(code))
    assert isinstance(code, TableCode)
    code = in_c_types(code, dtype)
    return CCode(TABLE_COMMENT, code_tables(code), partial(encoding, code), partial(encoded, code))
