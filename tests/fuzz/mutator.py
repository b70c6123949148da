"""Change bytes at random, in ways that parsers of files are sensitive to."""

from __future__ import annotations

import random
import re

# Numbers at the borders of types, of signs and of lengths.
NUMBERS = (
    *(0, 1, -1, 2, 7, 127, 128, 255, 256, 65535, 65536, 10**6, 2**24),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**30),
)
WORDS = (
    *(b"nan", b"inf", b"-inf", b"1e309", b"1e-320", b"-0.0", b"null", b"true", b"false", b'""'),
    *(b"[]", b"{}", b"[[[[", b"{{{{", b'"', b"\\", b"\\u0000", b"\\ud800", b"\0", b"\xff", b"\n"),
    *(b"\r\n", b",", b":", b"#", b"\xef\xbb\xbf", "é".encode(), "😀".encode()),
)
DECIMAL = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class Mutator:
    """Make new inputs of known ones.

    Parameters
    ----------
    rng : random.Random
    words : tuple of bytes
        Pieces of the format to insert.
    """

    def __init__(self, rng: random.Random, words: tuple[bytes, ...] = ()) -> None:
        self._rng = rng
        self._words = (*WORDS, *words)
        self._changes = (
            *(self._flip, self._flip, self._overwrite, self._cut, self._insert, self._repeat),
            *(self._integer, self._decimal, self._decimal, self._move),
        )

    def mutated(self, content: bytes, other: bytes = b"") -> bytes:
        """Return the content after one to eight changes, now and then joined with another one."""
        if other and self._rng.random() < 0.1:
            content = content[: self._place(content)] + other[self._place(other) :]
        for _ in range(self._rng.choice((1, 1, 1, 2, 2, 4, 8))):
            content = self._rng.choice(self._changes)(content)
        return content

    def _place(self, content: bytes) -> int:
        """Return a position: half of them near the beginning, where headers are."""
        most = min(len(content), 64) if self._rng.random() < 0.3 else len(content)
        return self._rng.randint(0, most)

    def _flip(self, content: bytes) -> bytes:
        at = self._place(content)
        changed = bytes(byte ^ (1 << self._rng.randrange(8)) for byte in content[at : at + 1])
        return content[:at] + changed + content[at + 1 :]

    def _overwrite(self, content: bytes) -> bytes:
        at, length = self._place(content), self._rng.choice((1, 2, 4, 8, 30))
        return content[:at] + self._rng.randbytes(length) + content[at + length :]

    def _cut(self, content: bytes) -> bytes:
        at = self._place(content)
        length = self._rng.choice((1, 2, 10, 100, len(content)))
        return content[:at] + content[at + length :]

    def _insert(self, content: bytes) -> bytes:
        at = self._place(content)
        return content[:at] + self._rng.choice(self._words) + content[at:]

    def _repeat(self, content: bytes) -> bytes:
        at, length = self._place(content), self._rng.choice((1, 2, 8, 60))
        return (
            content[:at]
            + content[at : at + length] * self._rng.choice((2, 10, 1000))
            + content[at:]
        )

    def _move(self, content: bytes) -> bytes:
        at, to, length = self._place(content), self._place(content), self._rng.choice((1, 8, 60))
        return content[:to] + content[at : at + length] + content[to + length :]

    def _integer(self, content: bytes) -> bytes:
        """Overwrite some bytes by a number at the border of a type."""
        length, order = self._rng.choice((1, 2, 4, 8)), self._rng.choice(("little", "big"))
        number = self._rng.choice(NUMBERS) % 256**length
        at = self._place(content)
        return content[:at] + number.to_bytes(length, order) + content[at + length :]

    def _decimal(self, content: bytes) -> bytes:
        """Replace a number that is written in digits."""
        at = self._place(content)
        found = DECIMAL.search(content, at) or DECIMAL.search(content)
        if found is None:
            return self._insert(content)
        new = self._rng.choice((*map(str, NUMBERS), "1.5", "1e400", "9" * 5000, "nan")).encode()
        return content[: found.start()] + new + content[found.end() :]
