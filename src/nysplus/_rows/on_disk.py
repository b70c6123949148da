"""Rows that are read chunk by chunk in every pass: from disk, or from the user's code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import ClassRows, MeanAndScatter
from nysplus._rows.blocks import Block, RowBlocks, Work
from nysplus._rows.look import Look
from nysplus._rows.readers import Chunk, Source, TypesChanged, join_chunks
from nysplus._rows.survey import Survey
from nysplus._rows.target_codes import TargetCode
from nysplus._runtime.checkpoint import Journal, Step
from nysplus._runtime.memory import working_bytes
from nysplus._runtime.progress import Progress
from nysplus._runtime.threads import ahead, in_threads
from nysplus._typing import Additive, Float, Kind, Rows
from nysplus.encoding import TableEncoder
from nysplus.encoding.summary import TableSummary

Part = TypeVar("Part", bound=Additive)


@dataclass(frozen=True)
class ChunkRules:
    """The sizes of the chunks that rows are read in.

    Attributes
    ----------
    max_rows : int
        Largest number of rows of a chunk. Larger chunks read no faster.
    memory_share : int
        A chunk takes at most the working memory divided by this number, so that the chunks and the
        blocks that are made of them fit.
    n_held : int
        Number of chunks in memory: one is being read, one waits, one is computed with.
    max_sparse_cells : int
        Stored cells of a sparse row for which memory is reserved, at most: how many it has is not
        known before it is read.
    """

    max_rows: int = 2**16
    memory_share: int = 16
    n_held: int = 3
    max_sparse_cells: int = 2**12

    def n_rows(self, source: Source) -> int:
        """Return the number of rows of a chunk of a source."""
        d = source.n_features
        row_bytes = 8 * (min(d, self.max_sparse_cells) if source.sparse else d)
        most = working_bytes() // self.memory_share // max(row_bytes, 1)
        return int(np.clip(most, 1, self.max_rows))

    @property
    def held_bytes(self) -> int:
        """Memory that the chunks of a pass take."""
        return working_bytes() // self.memory_share * self.n_held


DEFAULT_RULES = ChunkRules()

_chunk_rules: ContextVar[ChunkRules] = ContextVar("chunk_rules", default=DEFAULT_RULES)


@contextmanager
def using_chunk_rules(rules: ChunkRules) -> Iterator[None]:
    """Set the rules of all passes inside the context."""
    token = _chunk_rules.set(rules)
    try:
        yield
    finally:
        _chunk_rules.reset(token)


def read(source: Source) -> Iterator[Chunk]:
    """Yield the chunks of a source; the next one is read while one is used."""
    return ahead(source.chunks(_chunk_rules.get().n_rows(source)))


def look_at_columns(source: Source, encoder: TableEncoder, progress: Progress) -> TableSummary:
    """Return the summary of a table's columns.

    It takes one pass, and another one where the type of a column in text files has to change.
    """
    while True:
        progress.passes += 1
        parts = ahead(source.unread(_chunk_rules.get().n_rows(source)))
        try:
            with (
                progress.stage("columns", source.n_rows, None) as advance,
                closing(in_threads(lambda chunk: Look.at(chunk, encoder), parts)) as looks,
            ):
                found = next(looks)  # a source without rows has raised
                advance(found.n_rows)
                for seen in looks:
                    found += seen
                    advance(seen.n_rows)
                return found.summary
        except TypesChanged:
            continue


def survey_source(source: Source, kind: Kind | None, progress: Progress) -> Survey:
    """Return the survey of all rows, in one pass."""

    def look(chunk: Chunk) -> Survey:
        return Survey.of(chunk.X, chunk.y, chunk.sample_weight, kind)

    progress.passes += 1
    with (
        progress.stage("survey", source.n_rows, None) as advance,
        closing(in_threads(look, read(source))) as looks,
    ):
        found = next(looks)  # a source without rows has raised
        advance(found.n_rows)
        for seen in looks:
            found += seen
            advance(seen.n_rows)
    return found


@dataclass(frozen=True)
class Coding:
    """The code and the weights that make blocks of chunks.

    Attributes
    ----------
    dtype : dtype
        Floating type of the rows.
    code : TargetCode or None
        Code of the targets; None where they are ignored.
    class_factors : ndarray of shape (n_classes,), or None
        Weight of one observation of each class.
    """

    dtype: np.dtype[Any]
    code: TargetCode | None = None
    class_factors: Float | None = None

    def block(self, chunk: Chunk, rows: Rows) -> Block:
        """Return a chunk, whose rows have the numbers `rows`, as a block."""
        targets = None if self.code is None else self.code.encode(np.asarray(chunk.y))
        factors = None if targets is None else targets.of_class(self.class_factors)
        return Block(chunk.X, rows, targets, chunk.sample_weight, factors)

    def gathered(self, chunk: Chunk, rows: npt.NDArray[np.intp]) -> Block:
        """Return a chunk as a block with features as floats."""
        block = self.block(chunk, rows)
        return replace(block, X=block.X.astype(self.dtype, copy=False))


@dataclass(frozen=True)
class SurveyedBlocks(RowBlocks):
    """Rows of which a survey is known, and which are not in memory.

    Parameters
    ----------
    survey : Survey
    coding : Coding
    progress : Progress
    journal : Journal
    """

    survey: Survey
    coding: Coding
    progress: Progress = field(default_factory=Progress)
    journal: Journal = field(default_factory=Journal)

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return self.survey.n_rows

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return self.survey.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the rows."""
        return self.coding.dtype

    @property
    def n_outputs(self) -> int:
        """Columns of the coded targets."""
        return 0 if self.coding.code is None else self.coding.code.n_outputs

    @property
    def discrete(self) -> bool:
        """Whether the targets are classes or labels."""
        return self.coding.code is not None and self.coding.code.discrete

    @property
    def n_candidates(self) -> int:
        """Number of rows of positive weight."""
        return self.survey.n_candidates

    def _candidate(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        return self.survey.candidate(positions)

    @cached_property
    def class_rows(self) -> ClassRows:
        """Number and first of the rows of each class or label, from the survey."""
        assert self.coding.code is not None
        return self.survey.class_rows_of(self.coding.code)

    def variance(self) -> float:
        """Return the variance of all entries of X, from the survey."""
        return float(self.survey.cells.variance)

    def feature_spread(self) -> MeanAndScatter:
        """Return mean and variance of every column of X, from the survey."""
        return self.survey.features

    def target_spread(self) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""
        assert self.coding.code is not None
        return self.survey.target_spread(self.coding.code, self.coding.class_factors)

    def fingerprint(self) -> str:
        """Return a hash of the rows, from the survey."""
        return self.survey.digest()


@dataclass(frozen=True)
class StreamBlocks(SurveyedBlocks):
    """Rows of a source, read in every pass."""

    source: Source = field(kw_only=True)

    def _sum(self, step: Step[Part], work: Work[Part], stage: str) -> None:
        held = _chunk_rules.get().held_bytes
        begin = step.position

        def pieces() -> Iterator[tuple[Chunk, slice]]:
            for chunk in read(self.source):
                for rows in work.slices(chunk.n_rows, begin - chunk.start, held):
                    yield chunk, rows

        def one(piece: tuple[Chunk, slice]) -> tuple[Part, int]:
            chunk, part = piece
            rows = slice(chunk.start + part.start, chunk.start + part.stop)
            return work.part(self.coding.block(chunk.take(part), rows)), rows.stop

        with (
            self.progress.stage(stage, self.n_rows - begin, None) as advance,
            closing(in_threads(one, pieces())) as addends,
        ):
            for addend, stop in addends:
                advance(stop - step.position)
                step.add(addend, stop)

    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, with features as floats; most sources need a pass for it."""
        chunk = self.source.take(rows)
        if chunk is None:
            chunk = self._collected(rows)
        return self.coding.gathered(chunk, rows)

    def _collected(self, rows: npt.NDArray[np.intp]) -> Chunk:
        """Return some rows in the given order, read in one pass up to the last of them."""
        order = np.argsort(rows, kind="stable")
        ordered, found = rows[order], []
        needed = int(ordered[-1]) + 1
        self.progress.passes += 1
        with self.progress.stage(f"{len(rows):,} rows", needed, None) as advance:
            for chunk in read(self.source):
                first, last = np.searchsorted(ordered, [chunk.start, chunk.start + chunk.n_rows])
                found.append(chunk.take(ordered[first:last] - chunk.start))
                advance(min(chunk.n_rows, needed - chunk.start))
                if last == len(ordered):
                    break
        return join_chunks(found).take(np.argsort(order))
