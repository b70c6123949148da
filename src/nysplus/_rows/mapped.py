"""Rows behind a function, which every pass applies to its own rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import ClassRows, MeanAndScatter
from nysplus._rows.blocks import Block, RowBlocks, Work
from nysplus._runtime.checkpoint import Journal, Step
from nysplus._runtime.progress import Progress
from nysplus._typing import Additive

Part = TypeVar("Part", bound=Additive)
# From a block to the images of its rows. It can be pickled.
RowMap = Callable[[Block], Any]


@dataclass(frozen=True)
class _Through(Generic[Part]):
    """A function of blocks applied to mapped rows; a class, so that it can be pickled."""

    part: Callable[[Block], Part]
    row_map: RowMap

    def __call__(self, block: Block) -> Part:
        return self.part(replace(block, X=self.row_map(block)))


def _cells(block: Block) -> MeanAndScatter:
    return MeanAndScatter.of_cells(block.X, block.counts)


def _columns(block: Block) -> MeanAndScatter:
    return MeanAndScatter.of_features(block.X, block.counts)


@dataclass(frozen=True)
class MappedBlocks(RowBlocks):
    """The rows of other blocks behind a function.

    Mapped rows are not stored: every pass maps its rows.

    Parameters
    ----------
    blocks : RowBlocks
        The mapped rows share their progress and their journal.
    """

    blocks: RowBlocks
    progress: Progress = field(init=False)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", self.blocks.progress)
        object.__setattr__(self, "journal", self.blocks.journal)

    @property
    @abstractmethod
    def _map(self) -> RowMap:
        """The function of the rows."""

    @property
    def remote(self) -> bool:
        """Whether rows are on other machines."""
        return self.blocks.remote

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return self.blocks.n_rows

    @property
    def n_outputs(self) -> int:
        """Columns of the coded targets."""
        return self.blocks.n_outputs

    @property
    def discrete(self) -> bool:
        """Whether the targets are classes or labels."""
        return self.blocks.discrete

    @property
    def n_candidates(self) -> int:
        """Number of rows of positive weight."""
        return self.blocks.n_candidates

    @property
    def class_rows(self) -> ClassRows:
        """Number and first of the rows of each class or label."""
        return self.blocks.class_rows

    def _candidate(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        return self.blocks._candidate(positions)

    def _sum(self, step: Step[Part], work: Work[Part], stage: str) -> None:
        # a row as a float, and its image
        more = self.dtype.itemsize * (self.blocks.n_features + self.n_features)
        part = _Through(work.part, self._map)
        self.blocks._sum(step, replace(work, part=part, row_bytes=work.row_bytes + more), stage)

    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, mapped."""
        some = self.blocks.gather(rows)
        return replace(some, X=self._map(some))

    def variance(self) -> float:
        """Return the variance of all entries of the mapped rows, in one pass."""
        spread = self.fold(_cells, MeanAndScatter.zero, 8 * self.n_features, "variance")
        return float(spread.variance)

    def feature_spread(self) -> MeanAndScatter:
        """Return mean and variance of every column of the mapped rows, in one pass."""
        return self.fold(_columns, MeanAndScatter.zero, 16 * self.n_features, "offsets")

    def target_spread(self) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""
        return self.blocks.target_spread()

    def fingerprint(self) -> str:
        """Return a hash of the rows and the function."""
        digest: str = joblib.hash((self.blocks.fingerprint(), self._map))
        return digest
