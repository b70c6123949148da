"""Sizes of learned models within a budget, by rule: directions, landmarks, bits of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nysplus._bytes.budget import ANY_UNIT, Budget, ModelShape, PartBits, ScaleTypes, Size
from nysplus.expansion import MAX_BITS

FEWEST_BITS, SQUARE_BITS = PartBits(4, 4, 4), PartBits(8, 5, 3)
# Directions to choose from below the largest number.
RANKS = (48, 40, 32, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1)


@dataclass(frozen=True)
class SizeRules:
    """The numbers that a size follows from, and the reason for each."""

    # A map of all features where these are few and the map takes at most this share of the bytes.
    few_features: int = 32
    small_map: float = 0.25
    # Directions at most: the first number for 2 kB, and as this power of the bytes. Accuracy hardly
    # changes over a factor of 1.7.
    rank: float = 16.0
    rank_bytes: int = 2048
    rank_power: float = 0.35
    # The share of the bytes that the map leaves to the landmarks where it can.
    landmark_share: float = 0.3
    # The fewest bits of the map, the landmarks and the coefficients. A square map starts as the
    # identity: its columns have one large number, which few bits would cut.
    fewest_bits: PartBits = FEWEST_BITS
    square_bits: PartBits = SQUARE_BITS
    # Coefficients of few outputs hardly take bytes.
    few_outputs: int = 2

    def bits(self, square: bool, n_outputs: int, discrete: bool = True) -> PartBits:
        """Return the fewest bits of a model, with a square map or another."""
        if not discrete:
            return PartBits(MAX_BITS, MAX_BITS, MAX_BITS)
        bits = self.square_bits if square else self.fewest_bits
        return fewest_bits(bits, n_outputs, self.few_outputs)


SIZE_RULES = SizeRules()


def size_by_rule(
    budget: Budget,
    d: int,
    L: int,
    most: int,
    rank: int | None = None,
    max_rank: int | None = None,
    discrete: bool = True,
    rules: SizeRules = SIZE_RULES,
) -> Size | None:
    """Return the size of a learned model of d features and L outputs; None if nothing fits.

    Parameters
    ----------
    budget : Budget
    d, L : int
    most : int
        Landmarks at most.
    rank : int, optional
        Directions; by default as many as suit the bytes, but not more than `max_rank`.
    max_rank : int, optional
        By default d.
    discrete : bool
        Whether outputs are scores of classes or labels. Values are needed more exactly.
    rules : SizeRules, optional
    """
    max_rank = d if max_rank is None else max_rank
    small_map = d <= rules.few_features and d * d <= rules.small_map * budget.available
    if rank is None and small_map and max_rank == d:
        rank = d
    if rank is not None:
        return largest_size(budget, d, L, most, [rank], rules.bits(rank == d, L, discrete), 0.0)
    growth = max(0.0, budget.available / rules.rank_bytes) ** rules.rank_power
    largest = max(1, min(max_rank, int(rules.rank * growth)))
    ranks = {largest, *(rank for rank in RANKS if rank < largest)}
    bits = rules.bits(False, L, discrete)
    return largest_size(budget, d, L, most, ranks, bits, rules.landmark_share)


def largest_size(
    budget: Budget,
    d: int,
    L: int,
    most: int,
    ranks: Iterable[int],
    fewest: PartBits,
    landmark_share: float,
    scales: ScaleTypes = ANY_UNIT,
) -> Size | None:
    """Return the size of the highest rank that leaves room for landmarks; None if nothing fits.

    Landmarks are as many as fit in the fewest bits; bits are then as many as there is room for.

    Parameters
    ----------
    budget : Budget
    d, L, most : int
        Features, outputs, and landmarks at most.
    ranks : iterable of int
        Directions to choose from.
    fewest : PartBits
    landmark_share : float
        The share of the bytes that landmarks and coefficients should have, unless they are `most`.
    scales : ScaleTypes, optional
    """
    found = None
    for rank in sorted(ranks, reverse=True):
        shape = ModelShape(rank, L, (d, rank), scales=scales)
        n = min(most, budget.landmarks_in(shape, fewest))
        if n > 1:
            fitting = (b for b in more_bits(fewest) if budget.landmarks_in(shape, b) >= n)
            found = Size(n, rank, bits=next(fitting))
            taken = shape.bytes_in(fewest, n) - shape.bytes_in(fewest, 0)
            if n == most or taken >= landmark_share * budget.available:
                break
    return found


def fewest_bits(bits: PartBits, n_outputs: int, few_outputs: int) -> PartBits:
    """Return bits with exact coefficients where outputs, and so their bytes, are few."""
    return bits._replace(coefficients=MAX_BITS) if n_outputs <= few_outputs else bits


def more_bits(fewest: PartBits) -> Iterator[PartBits]:
    """Yield the bits that numbers may have, from 8 of each part down to the fewest."""
    for more in reversed(range(MAX_BITS + 1 - min(fewest))):
        yield PartBits(*(min(MAX_BITS, bits + more) for bits in fewest))
