"""Published results of compact kernel machines, on the rows of their authors."""

from __future__ import annotations

from typing import NamedTuple

KB, MB = 2.0**10, 2.0**20


class Record(NamedTuple):
    """A published accuracy in percent, and the bytes of the model."""

    dataset: str
    name: str
    accuracy: float
    bytes: float


def expansion_bytes(n: int, d: int, n_scores: int) -> float:
    """Return the bytes of n landmarks of d features with their coefficients, in float32."""
    return 4.0 * n * (d + n_scores)


RECORDS = (
    Record("pendigits", "BSGD", 97.4, expansion_bytes(100, 16, 10)),
    Record("pendigits", "BSGD", 97.9, expansion_bytes(500, 16, 10)),
    Record("usps", "ProtoNN", 94.92, 64 * KB),
    Record("usps", "SNC", 94.77, 569 * KB),
    Record("usps", "BSGD", 92.3, expansion_bytes(100, 256, 10)),
    Record("usps", "BSGD", 93.1, expansion_bytes(500, 256, 10)),
    Record("letter", "ProtoNN", 97.10, 64 * KB),
    Record("letter", "BSGD", 75.0, expansion_bytes(100, 16, 26)),
    Record("letter", "BSGD", 89.7, expansion_bytes(500, 16, 26)),
    Record("ijcnn1", "BSGD", 97.3, expansion_bytes(100, 22, 1)),
    Record("ijcnn1", "BSGD", 98.1, expansion_bytes(500, 22, 1)),
    Record("covtype", "BSGD", 74.1, expansion_bytes(100, 54, 7)),
    Record("covtype", "BSGD", 76.9, expansion_bytes(500, 54, 7)),
    Record("mnist", "ProtoNN", 95.88, 64 * KB),
    Record("mnist", "SNC", 93.6, 4.2 * MB),
    Record("mnist", "Falkon", 95.87, expansion_bytes(1000, 784, 10)),
)
