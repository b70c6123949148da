"""Codes of images as C, and the same arithmetic in NumPy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.encoding.image_code import ImageCode
from nysplus.expansion import PackedArray
from nysplus.export.c_encoding import use_of_columns
from nysplus.export.c_kernels import number
from nysplus.export.c_text import filled, template


def image_comment(code: ImageCode) -> str:
    """Return a line of the comment at the top of a header."""
    first, second, _ = code.code_shape
    pixels = " x ".join(str(size) for size in code.shape)
    return f" * E(x) is the first {first} x {second} cosines of an image of {pixels} numbers.\n"


def stack_numbers(code: ImageCode) -> int:
    """Return the number of real numbers on the stack of the function that encodes an image."""
    first, _, channels = code.code_shape
    return first * code.shape[1] * channels + first * channels


def image_encoding(
    code: ImageCode, row: str, projection: PackedArray | None, linear: PackedArray | None
) -> str:
    """Return the function that encodes an image, after the functions that it calls.

    Parameters
    ----------
    code : ImageCode
    row : "float" or "double"
        Type of pixels.
    projection, linear : PackedArray or None
        P and B, see :func:`~nysplus.export.c_encoding.encoding`.
    """
    adding, what = use_of_columns(projection, linear)
    (height, width, channels), (first, second, _) = code.shape, code.code_shape
    function = filled(
        "encode_image",
        row=row,
        what=what,
        height=height,
        width=width,
        channels=channels,
        first=first,
        second=second,
        line=width * channels,
        n_wide=first * width * channels,
        n_high=first * channels,
        height_norm=number(math.sqrt(2.0 / height)),
        width_norm=number(math.sqrt(2.0 / width)),
    )
    return "\n".join([adding, template("code_cosine"), function])


def encoded_image(code: ImageCode, X: Float, real: npt.DTypeLike) -> Float:
    """Return the code columns of images with the arithmetic of the header.

    Parameters
    ----------
    code : ImageCode
    X : ndarray of shape (N, d)
        In the type of the header's rows.
    real : dtype
        Type of the header's arithmetic.
    """
    first, second = (M.astype(real) for M in code.axes)
    images = X.astype(real).reshape(-1, *code.shape)
    wide = np.zeros((len(X), len(first.T), *code.shape[1:]), dtype=real)
    for i, cosine in enumerate(first):
        wide += cosine[:, None, None] * images[:, None, i]
    found = np.zeros((len(X), *code.code_shape), dtype=real)
    for j, cosine in enumerate(second):
        found += cosine[:, None] * wide[:, :, j, None]
    return found.reshape(len(X), -1)
