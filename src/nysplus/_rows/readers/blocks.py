"""Rows that the user's own code gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Literal

import joblib
import numpy as np
import scipy.sparse as sp

from nysplus._rows.readers.base import Chunk, Reading, Source, check_chunk
from nysplus._validation import canonical, check_dense_targets
from nysplus.encoding.frames import frame_names, is_frame, read_columns


class BlockRows(Source):
    """Rows that the user's own code gives, block by block.

    Parameters
    ----------
    blocks : iterable, or callable that returns one
        Gives ``X``, ``(X, y)`` or ``(X, y, sample_weight)``, where X is sparse or anything that
        NumPy takes for a table of numbers (data frames and tensors too). Each iteration must
        start from the beginning and give the same blocks.
    names : tuple of str, optional
        Names of the columns; by default those of the first block, if it is a data frame.
    is_table : bool
        Whether blocks are tables, unless they are sparse.

    Notes
    -----
    All blocks of numbers get the type of the first one. Blocks of larger floats are rounded to a
    float type; if the first block has integers or bools, a block of a larger type is an error.
    """

    _joins_names = True

    def __init__(
        self, blocks: Any, names: tuple[str, ...] | None = None, is_table: bool = False
    ) -> None:
        self.is_table = is_table
        self._open = blocks.__iter__ if isinstance(blocks, Iterable) else blocks
        opened = blocks if isinstance(blocks, Iterable) else blocks()
        if isinstance(opened, Iterator) and self._open() is opened:
            raise ValueError(
                f"X is a {type(blocks).__name__} that can be read only once, and the rows are "
                "needed several times. Pass a list of blocks, an object whose __iter__ starts from "
                "the beginning, or a function that returns a new iterator."
            )
        first, found = next(self._read(), (None, None))
        if first is None:
            raise ValueError("X has no rows: there is no block, or all blocks are empty.")
        self.feature_names = found if names is None else names
        self.sparse, self.has_targets = sp.issparse(first.X), first.y is not None
        self.is_table = is_table and not self.sparse
        check_chunk(first, self.feature_names, is_table=self.is_table)
        self.n_features = first.X.shape[1]
        self.dtype = np.dtype(np.float64) if self.is_table else first.X.dtype
        self._traits, self._first_digest = traits(first, found), _digest(first)

    def _read(self) -> Iterator[tuple[Chunk, tuple[str, ...] | None]]:
        """Yield each block that has rows, with the names of its columns."""
        for number, block in enumerate(self._open()):
            chunk, names = _converted(block, f"block {number}", self.is_table)
            if chunk.n_rows:
                yield chunk, names

    def _parts(self, most: int) -> Iterator[Chunk]:
        for number, (chunk, names) in enumerate(self._read()):
            check_traits(chunk, names, self._traits)
            if number == 0 and _digest(chunk) != self._first_digest:
                raise ValueError(
                    f"{chunk.name} is not the same as before. Every pass must start from the "
                    "beginning and give the same rows in the same order: turn shuffling off."
                )
            if self.is_table:
                yield chunk
                continue
            rule: Literal["same_kind", "safe"] = "same_kind" if self.dtype.kind == "f" else "safe"
            if not np.can_cast(chunk.X.dtype, self.dtype, rule):
                raise ValueError(
                    f"{chunk.name} holds {chunk.X.dtype}, the first one {self.dtype}. Convert all "
                    "blocks to one type that holds all numbers, such as float64."
                )
            yield replace(chunk, X=chunk.X.astype(self.dtype, copy=False))


def as_chunk(block: Any, name: str, reading: Reading) -> Chunk:
    """Return a block of the user's code as a checked chunk, which may have no rows.

    Its position among all rows is not known.
    """
    return reading(replace(_converted(block, name, reading.is_table)[0], start=-1))


def _converted(block: Any, name: str, is_table: bool) -> tuple[Chunk, tuple[str, ...] | None]:
    """Return a block of the user's code as a chunk, and the names of its columns."""
    several = isinstance(block, (tuple, list)) and len(block) > 0 and _n_axes(block[0]) == 2
    parts = block if several else (block,)
    if _n_axes(parts[0]) != 2 or len(parts) > 3:
        raise ValueError(
            f"{name} is a {type(block).__name__}, and not X with rows and columns, (X, y) or "
            "(X, y, sample_weight)."
        )
    X, y, weight = (*parts, None, None)[:3]
    check_dense_targets(y)
    try:
        if sp.issparse(X):
            rows = canonical(X.tocsr())
        else:
            rows = _as_table(X) if is_table else _as_numbers(X)
        y = None if y is None else np.asarray(y)
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} does not turn into numbers: {error}") from error
    return Chunk(rows, y, weight, 0, name, 0), block_names(X)


def _as_table(X: Any) -> Any:
    """Return a data frame as it is, else an array."""
    known = is_frame(X) or hasattr(X, "dtype") or hasattr(X, "__array__")
    # without a type of their own, numbers beside texts would become texts
    rows = X if is_frame(X) else np.asarray(X) if known else np.array(X, dtype=object)
    return rows


def _as_numbers(X: Any) -> Any:
    rows = np.asarray(X)
    # Data frames of numbers and booleans become arrays of objects.
    return rows.astype(np.float64) if rows.dtype.kind == "O" else rows


def block_names(block: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a block, or of its X; None where they are no text."""
    X = block[0] if isinstance(block, (tuple, list)) else block
    names = tuple(frame_names(X)) if is_frame(X) else ()
    named = len(names) > 0 and all(isinstance(column, str) for column in names)
    return names if named else None


def _n_axes(values: Any) -> int:
    try:
        return len(np.shape(values))
    except ValueError:  # a list of lists of several lengths
        return 0


def check_traits(chunk: Chunk, names: tuple[str, ...] | None, first: tuple[str, ...]) -> None:
    """Raise unless a block has the traits of the first one."""
    for got, expected in zip(traits(chunk, names), first, strict=True):
        if got != expected:
            raise ValueError(
                f"{chunk.name} has {got}, the first one has {expected}. Give all blocks the same "
                "columns, and all of them y and sample_weight, or none."
            )


def traits(chunk: Chunk, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return, in words, the traits that all blocks must share."""
    axes = "" if chunk.y is None else ", ".join(["rows", *map(str, chunk.y.shape[1:])])
    return (
        f"{chunk.X.shape[1]} columns",
        "no names of columns" if names is None else f"the columns {list(names)}",
        "sparse rows" if sp.issparse(chunk.X) else "dense rows",
        f"y of shape ({axes})" if axes else "no y",
        "no sample_weight" if chunk.sample_weight is None else "sample_weight",
    )


def _digest(chunk: Chunk) -> str:
    X = chunk.X
    if is_frame(X) or X.dtype.kind == "O":
        # the memory of texts is not the same every time
        X = [(column.kind, column.numbers, column.levels) for column in read_columns(X)]
    digest: str = joblib.hash({**chunk.arrays, "X": X})
    return digest


def gives_blocks(X: Any) -> bool:
    """Return whether X gives blocks of rows, and is not a table of rows itself."""
    if any(
        hasattr(X, name) for name in ("collect_schema", "shape", "dtype", "columns", "__array__")
    ):
        return False
    if isinstance(X, Sequence):
        first = X[0] if len(X) else None
        if isinstance(first, (tuple, list)) and first:
            first = first[0]
        return len(getattr(first, "shape", ())) == 2
    return callable(X) or (isinstance(X, Iterable) and not isinstance(X, (Mapping, Set)))
