"""Streams of few bits: compared with the digits of each code, written one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from nysplus._bytes.bit_stream import pack_bits, unpack_bits


@st.composite
def integers(draw):
    """Return a number of bits, and an array of integers that have as many."""
    bits = draw(st.integers(2, 8))
    m = 2 ** (bits - 1) - 1
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=9))
    return bits, draw(arrays.arrays(np.int8, shape, elements=st.integers(-m, m)))


def slow_bytes(values, bits):
    """Return the bytes of one large binary number, which ends with the digits of the first code."""
    digits = [format(int(v) + 2 ** (bits - 1) - 1, f"0{bits}b") for v in values.ravel()]
    return int("0" + "".join(reversed(digits)), 2).to_bytes(-(-bits * values.size // 8), "little")


@given(integers())
def test_streams_are_the_digits_of_all_codes(case):
    bits, values = case
    stream = pack_bits(values, bits)
    assert stream.dtype == np.uint8
    assert stream.tobytes() == slow_bytes(values, bits)
    again = unpack_bits(stream, bits, values.shape)
    assert again.dtype == np.int8
    np.testing.assert_array_equal(again, values)


@pytest.mark.parametrize("bits", range(2, 9))
def test_the_order_is_row_major_whatever_the_memory(bits, rng):
    values = rng.randint(-1, 2, (7, 5)).astype(np.int8)
    np.testing.assert_array_equal(
        pack_bits(np.asfortranarray(values), bits), pack_bits(values, bits)
    )
    np.testing.assert_array_equal(
        pack_bits(values[::2, ::2], bits), pack_bits(values[::2, ::2].copy(), bits)
    )


def test_an_example():
    """Codes of 3 bits are 0 … 6: −3 is 000, 0 is 011 and 3 is 110."""
    stream = pack_bits(np.array([[3, 0, -3]], dtype=np.int8), 3)
    assert [format(byte, "08b") for byte in stream] == ["00011110", "00000000"]


def test_the_code_that_is_not_used_is_out_of_range():
    np.testing.assert_array_equal(unpack_bits(np.array([255], np.uint8), 4, (2,)), [8, 8])
