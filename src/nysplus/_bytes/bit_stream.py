"""Pack integers of 2 to 8 bits without gaps, and unpack them.

A value v of b bits, −m … m with ``m = 2^(b − 1) − 1``, has the code v + m: 0 … 2m, of which
``2^b − 1`` is not used. The codes of an array in row-major order are one stream of bits, without
alignment of rows: the first code is in the lowest bits of the first byte, and the next one in the
bits above it. Bits of the last byte that belong to no code are zero.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nysplus.expansion import largest_integer


def pack_bits(values: npt.NDArray[np.int8], bits: int) -> npt.NDArray[np.uint8]:
    """Return the stream of the codes of integers. O(size) time, `bits` bytes a value of memory.

    Parameters
    ----------
    values : ndarray of int8
        In −m … m, which is not checked.
    bits : int
        2 to 8.

    Returns
    -------
    ndarray of uint8, of shape (⌈size · bits / 8⌉,)
    """
    codes = np.ravel(values).view(np.uint8) + np.uint8(largest_integer(bits))
    digits = np.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(digits, bitorder="little")


def unpack_bits(
    stream: npt.NDArray[np.uint8], bits: int, shape: tuple[int, ...]
) -> npt.NDArray[np.int8]:
    """Return the integers of a stream. O(size) time, `bits` bytes a value of memory.

    Parameters
    ----------
    stream : ndarray of uint8, of shape (⌈size · bits / 8⌉,)
        The code that is not used becomes m + 1.
    bits : int
        2 to 8.
    shape : tuple of int
        Of the integers.
    """
    size = math.prod(shape)
    digits = np.unpackbits(stream, count=size * bits, bitorder="little").reshape(size, bits)
    codes = np.packbits(digits, axis=1, bitorder="little")
    values = (codes - np.uint8(largest_integer(bits))).view(np.int8)
    return values.reshape(shape)
