"""Rows behind a map ``x ↦ (x − c)P``, which turns Euclidean distances into those of a metric.

``‖xP − zP‖² = (x − z) PPᵀ (x − z)ᵀ``, so a fit to projected rows is a fit in the metric PPᵀ. The
centre c changes no distance, and keeps the digits of features that are far from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._rows.accumulators import ClassRows, MeanAndScatter
from nysplus._rows.blocks import Block, Blocks, RowBlocks, Work
from nysplus._rows.slicing import float_dtype
from nysplus._runtime.checkpoint import Journal, Step
from nysplus._runtime.memory import working_bytes
from nysplus._runtime.progress import Progress
from nysplus._typing import Additive, Float

Part = TypeVar("Part", bound=Additive)


def project(X: Any, P: Float | None, center: Float | None = None) -> Any:
    """Return ``(X − c)P`` in the floating type of the rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (b, d)
        Any numeric type.
    P : ndarray of shape (d, r), or (d,) for a diagonal map, or None
        A diagonal keeps sparse rows sparse, a matrix makes them dense.
    center : ndarray of shape (d,), optional
        c, by default zero. It makes sparse rows dense.
    """
    dtype = float_dtype(X.dtype)
    X = X.astype(dtype, copy=False)
    if center is not None:
        X = (X.toarray() if sp.issparse(X) else X) - center.astype(dtype, copy=False)
    if P is None:
        return X
    P = P.astype(dtype, copy=False)
    if P.ndim == 2:
        return X @ P
    if sp.issparse(X):
        return type(X)((X.data * P[X.indices], X.indices, X.indptr), X.shape)
    return X * P


def composed(first: Float | None, second: Float | None) -> Float | None:
    """Return the composition of two maps, `first` before `second`; None stands for no map."""
    if first is None or second is None:
        return second if first is None else first
    if first.ndim == 1:
        return first * second if second.ndim == 1 else first[:, None] * second
    product: Float = first * second if second.ndim == 1 else first @ second
    return product


@dataclass(frozen=True)
class _Through(Generic[Part]):
    """A function of blocks applied to projected rows; a class, so that it can be pickled."""

    part: Callable[[Block], Part]
    projection: Float | None
    center: Float | None

    def __call__(self, block: Block) -> Part:
        return self.part(replace(block, X=project(block.X, self.projection, self.center)))


def _cells(block: Block) -> MeanAndScatter:
    return MeanAndScatter.of_cells(block.X, block.counts)


def _columns(block: Block) -> MeanAndScatter:
    return MeanAndScatter.of_features(block.X, block.counts)


@dataclass(frozen=True)
class ProjectedBlocks(RowBlocks):
    """The rows of other blocks behind a map ``x ↦ (x − c)P``.

    Projected rows are not stored: every pass projects its rows in O(N d r), or O(N d) for a
    diagonal map.

    Parameters
    ----------
    blocks : RowBlocks
        The projected rows share their progress and their journal.
    projection : ndarray of shape (d, r), or (d,) for a diagonal map, or None
        P.
    center : ndarray of shape (d,), optional
        c.
    """

    blocks: RowBlocks
    projection: Float | None
    center: Float | None = None
    progress: Progress = field(init=False)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", self.blocks.progress)
        object.__setattr__(self, "journal", self.blocks.journal)

    @property
    def remote(self) -> bool:
        """Whether rows are on other machines."""
        return self.blocks.remote

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return self.blocks.n_rows

    @property
    def n_features(self) -> int:
        """Number of features r behind the map."""
        return self.blocks.n_features if self.projection is None else self.projection.shape[-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the rows."""
        return self.blocks.dtype

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
        part = _Through(work.part, self.projection, self.center)
        self.blocks._sum(step, replace(work, part=part, row_bytes=work.row_bytes + more), stage)

    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, projected."""
        some = self.blocks.gather(rows)
        return replace(some, X=project(some.X, self.projection, self.center))

    def variance(self) -> float:
        """Return the variance of all entries of XP, in one pass."""
        spread = self.fold(_cells, MeanAndScatter.zero, 8 * self.n_features, "variance")
        return float(spread.variance)

    def feature_spread(self) -> MeanAndScatter:
        """Return mean and variance of every column of XP, in one pass."""
        return self.fold(_columns, MeanAndScatter.zero, 16 * self.n_features, "offsets")

    def target_spread(self) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""
        return self.blocks.target_spread()

    def fingerprint(self) -> str:
        """Return a hash of the rows and the map."""
        digest: str = joblib.hash((self.blocks.fingerprint(), self.projection, self.center))
        return digest


def projected(blocks: RowBlocks, P: Float | None, center: Float | None = None) -> RowBlocks:
    """Return the rows ``(x − c)P`` of a fit, or the rows themselves without a map and a centre.

    Rows in memory are projected at once if the result fits in the working memory: later passes
    are then faster, and every solver can be used. Otherwise every pass projects its rows.
    """
    if P is None and center is None:
        return blocks
    width = blocks.n_features if P is None else P.shape[-1]
    image_bytes = blocks.n_rows * width * blocks.dtype.itemsize
    if isinstance(blocks, Blocks) and image_bytes <= working_bytes():
        return replace(blocks, X=project(blocks.X, P, center))
    return ProjectedBlocks(blocks, P, center)
