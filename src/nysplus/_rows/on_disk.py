"""Rows that stay on disk, or wherever they come from, and are read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.blocks import Block, RowBlocks, Work
from nysplus._rows.readers import Chunk, Source, join_chunks
from nysplus._rows.survey import Survey
from nysplus._rows.target_codes import TargetCode
from nysplus._runtime.checkpoint import Journal, Step
from nysplus._runtime.memory import working_bytes
from nysplus._runtime.progress import Progress
from nysplus._runtime.threads import ahead, in_threads, thread_count
from nysplus._typing import Additive, Float, Kind, Rows

# Rows read at once, at most; fewer where they would take this share of the working memory.
MAX_CHUNK_ROWS = 2**16
CHUNK_SHARE = 16
# Chunks that are held at once: one being read, one waiting, one being worked on.
HELD_CHUNKS = 3
Part = TypeVar("Part", bound=Additive)


def read(source: Source) -> Iterator[Chunk]:
    """Yield the chunks of a source, the next one being read while one is used."""
    # what a sparse row takes is not known; a dense one is the worst case only up to here
    row_bytes = 8 * min(source.n_features, 2**12 if source.sparse else source.n_features)
    most = working_bytes() // CHUNK_SHARE // max(row_bytes, 1)
    return ahead(source.chunks(int(np.clip(most, 1, MAX_CHUNK_ROWS))))


def survey_source(source: Source, kind: Kind | None, progress: Progress) -> Survey:
    """Look at all rows once."""

    def look(chunk: Chunk) -> Survey:
        return Survey.of(chunk.X, chunk.y, chunk.sample_weight, kind)

    progress.passes += 1
    with progress.stage("survey", source.n_rows, None) as advance:
        looks = in_threads(look, read(source))
        found = next(looks)  # sources without rows raise
        advance(found.n_rows)
        for seen in looks:
            found += seen
            advance(seen.n_rows)
    return found


@dataclass(frozen=True)
class Coding:
    """How rows as they are stored become blocks.

    Attributes
    ----------
    dtype : dtype
        Floating type of the rows.
    code : TargetCode or None
        Of the targets; None where nobody looks at them.
    class_factors : ndarray of shape (n_classes,), or None
        How much one observation of each class weighs.
    """

    dtype: np.dtype[Any]
    code: TargetCode | None = None
    class_factors: Float | None = None

    def block(self, chunk: Chunk, rows: Rows) -> Block:
        """Return a chunk of the rows with the numbers `rows`: targets coded, classes weighted."""
        targets = None if self.code is None else self.code.encode(np.asarray(chunk.y))
        factors = None if targets is None else targets.of_class(self.class_factors)
        return Block(chunk.X, rows, targets, chunk.sample_weight, factors)

    def gathered(self, chunk: Chunk, rows: npt.NDArray[np.intp]) -> Block:
        """Return the same with features as floats."""
        block = self.block(chunk, rows)
        return replace(block, X=block.X.astype(self.dtype, copy=False))


@dataclass(frozen=True)
class SurveyedBlocks(RowBlocks):
    """Rows that were looked at once and not kept.

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
        """Number of rows that weigh anything."""
        return self.survey.n_candidates

    def _candidate(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        return self.survey.candidate(positions)

    def variance(self) -> float:
        """Return the variance of all entries of X, which the survey has found."""
        return float(self.survey.cells.variance)

    def target_spread(self) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""
        assert self.coding.code is not None
        return self.survey.target_spread(self.coding.code, self.coding.class_factors)

    def fingerprint(self) -> str:
        """Return a hash of what the survey has found."""
        return self.survey.digest()


@dataclass(frozen=True)
class StreamBlocks(SurveyedBlocks):
    """Rows of a source, read in every pass."""

    source: Source = field(kw_only=True)

    def _sum(self, step: Step[Part], work: Work[Part], stage: str) -> None:
        held = working_bytes() // CHUNK_SHARE * HELD_CHUNKS
        # asked for now: while threads share the work, each may use one only
        begin, threads = step.position, thread_count()

        def pieces() -> Iterator[tuple[Chunk, slice]]:
            for chunk in read(self.source):
                for rows in work.slices(chunk.n_rows, begin - chunk.start, held, threads):
                    yield chunk, rows

        def one(piece: tuple[Chunk, slice]) -> tuple[Part, int]:
            chunk, part = piece
            rows = slice(chunk.start + part.start, chunk.start + part.stop)
            return work.part(self.coding.block(chunk.take(part), rows)), rows.stop

        with self.progress.stage(stage, self.n_rows - begin, None) as advance:
            for addend, stop in in_threads(one, pieces()):
                advance(stop - step.position)
                step.add(addend, stop)

    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, with features as floats: by a pass where they cannot be looked up."""
        chunk = self.source.take(rows)
        if chunk is None:
            chunk = self._collected(rows)
        return self.coding.gathered(chunk, rows)

    def _collected(self, rows: npt.NDArray[np.intp]) -> Chunk:
        """Return some rows in the given order, read in one pass up to the last of them."""
        order = np.argsort(rows, kind="stable")
        wanted, found = rows[order], []
        self.progress.passes += 1
        with self.progress.stage(f"{len(rows):,} rows", int(wanted[-1]) + 1, None) as advance:
            for chunk in read(self.source):
                first, last = np.searchsorted(wanted, [chunk.start, chunk.start + chunk.n_rows])
                found.append(chunk.take(wanted[first:last] - chunk.start))
                advance(chunk.n_rows)
                if last == len(wanted):
                    break
        return join_chunks(found).take(np.argsort(order))
