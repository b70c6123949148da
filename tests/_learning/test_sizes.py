"""Sizes of learned models by rule: within the budget, and as large as it allows."""

from __future__ import annotations

import pytest

from nysplus._bytes.budget import Budget, ModelShape, PartBits
from nysplus._learning.sizes import RANKS, SIZE_RULES, more_bits, size_by_rule


@pytest.mark.parametrize("n_bytes", [200, 1024, 4096, 16_384, 65_536])
@pytest.mark.parametrize("d", [2, 10, 64, 784])
@pytest.mark.parametrize("L", [1, 10])
def test_a_size_is_the_largest_within_the_budget(n_bytes, d, L):
    budget = Budget(n_bytes)
    size = size_by_rule(budget, d, L, 10**6)
    if size is None:
        assert d == 784
        assert n_bytes < 784 / 2
        return
    shape = ModelShape(size.rank, L, (d, size.rank))
    assert shape.bytes_in(size.bits, size.n) <= n_bytes
    assert shape.bytes_in(size.bits, size.n + 1) > n_bytes
    assert size.bits == SIZE_RULES.bits(size.rank == d, L)


def test_few_features_have_a_map_of_all_of_them():
    letter = size_by_rule(Budget(16_384), 16, 26, 1875)
    assert (letter.rank, letter.bits) == (16, PartBits(8, 5, 3))
    # unless that takes more than a quarter of the bytes
    assert size_by_rule(Budget(900), 16, 26, 1875).rank < 16


def test_directions_grow_with_the_bytes_and_leave_room_for_landmarks():
    ranks = [size_by_rule(Budget(1024 * kB), 144, 10, 5000).rank for kB in (2, 4, 8, 16, 32, 64)]
    assert ranks == sorted(ranks)
    assert (ranks[0], ranks[-1]) == (16, 53)
    pixels = size_by_rule(Budget(12_288), 784, 10, 5000)
    map_bytes = 784 * pixels.rank // 2
    assert 0.5 * 12_288 < map_bytes < (1.0 - SIZE_RULES.landmark_share) * 12_288
    assert size_by_rule(Budget(12_288), 144, 10, 5000, max_rank=7).rank == 7
    assert size_by_rule(Budget(12_288), 144, 10, 5000, rank=7).rank == 7
    assert size_by_rule(Budget(400), 784, 10, 5000) is None
    assert size_by_rule(Budget(512), 100, 1, 5000).rank in RANKS


def test_numbers_have_as_many_bits_as_there_is_room_for():
    """With all landmarks that there may be."""
    bits = [size_by_rule(Budget(1024 * kB), 64, 10, 300).bits for kB in (4, 8, 16, 64)]
    assert bits[0] == PartBits(4, 4, 4)
    assert PartBits(4, 4, 4) < bits[2] <= bits[3] == PartBits(8, 8, 8)


def test_coefficients_of_few_outputs_are_exact():
    assert size_by_rule(Budget(2048), 64, 2, 10**6).bits == PartBits(4, 4, 8)


def test_parts_have_more_bits_together():
    assert list(more_bits(PartBits(8, 5, 4))) == [
        PartBits(8, 8, 8),
        PartBits(8, 8, 7),
        PartBits(8, 7, 6),
        PartBits(8, 6, 5),
        PartBits(8, 5, 4),
    ]
