"""Rows in blocks that fit in memory.

:class:`RowBlocks` has the two operations of a fit on rows: a sum over all of them, and a gather of
some of them. :class:`Blocks` implements both for rows in memory, :mod:`nysplus._rows.on_disk` and
:mod:`nysplus._rows.on_dask` for rows elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.random import sample_without_replacement

from nysplus._rows.accumulators import (
    ClassRows,
    MeanAndScatter,
    ScoredRows,
    TopRows,
    row_numbers,
)
from nysplus._rows.slicing import float_dtype, row_slices
from nysplus._rows.targets import DiscreteTargets, Targets
from nysplus._runtime.checkpoint import Journal, Step
from nysplus._runtime.progress import Progress
from nysplus._runtime.threads import in_threads, thread_count
from nysplus._typing import Additive, Float, Rows

# Number of entries that stay in the cache of a core from one simple operation to the next.
VARIANCE_CELLS = 2**18
# Of at most this many rows a sample is drawn by a permutation, as scikit-learn does; of more rows
# without one, which would take too much memory.
MAX_PERMUTED = 2**22
Part = TypeVar("Part", bound=Additive)


@dataclass(frozen=True)
class Block:
    """Some rows with their targets and weights.

    Attributes
    ----------
    X : ndarray or CSR of shape (b, d)
        In the stored type: any numeric one.
    rows : slice or ndarray of shape (b,)
        Numbers of the rows among all rows.
    targets : Targets or None
    sample_weight : ndarray of shape (b,) or None
        Number of observations that each row stands for.
    class_weight : ndarray of shape (b,) or None
        Weight of one observation of each row.
    """

    X: Any
    rows: Rows
    targets: Targets | None = None
    sample_weight: Float | None = None
    class_weight: Float | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def numbers(self) -> npt.NDArray[np.intp]:
        """The numbers of the rows among all rows."""
        return row_numbers(self.rows)

    def take(self, positions: npt.NDArray[np.intp]) -> Block:
        """Return some of these rows, by their positions here."""
        return Block(
            self.X[positions],
            self.numbers[positions],
            None if self.targets is None else self.targets.take(positions),
            None if self.sample_weight is None else self.sample_weight[positions],
            None if self.class_weight is None else self.class_weight[positions],
        )

    def blocks(self, progress: Progress | None = None) -> Blocks:
        """Return these rows as all rows of a fit."""
        return Blocks(
            self.X, self.targets, self.sample_weight, self.class_weight, progress or Progress()
        )

    @property
    def Y(self) -> Float:
        """Coded targets of shape (b, L)."""
        assert self.targets is not None
        return self.targets.coded()

    @property
    def labels(self) -> DiscreteTargets:
        """Targets that are classes or labels."""
        assert self.targets is not None
        return self.targets.labels

    def scored(self, scores: Float, leverage: Float | None = None) -> ScoredRows:
        """Return scores of these rows with their targets and weights."""
        leverage = np.zeros(len(self)) if leverage is None else leverage
        return ScoredRows(self.numbers, scores, self.Y, self.weight, self.counts, leverage)

    @property
    def counts(self) -> Float:
        """Number of observations that each row stands for: 1 where no weights were given."""
        return np.ones(len(self)) if self.sample_weight is None else self.sample_weight

    @property
    def factors(self) -> Float:
        """Class weight of each row: 1 where no weights were given."""
        return np.ones(len(self)) if self.class_weight is None else self.class_weight

    @property
    def weight(self) -> Float:
        """Weight of each row: sample weight times class weight."""
        return self.counts * self.factors

    @property
    def unit_weight(self) -> Float:
        """Weight of *one observation* of each row, at most the row's own weight.

        A sample weight of three stands for three equal rows; leaving one out takes a third.
        """
        return np.minimum(self.counts, 1.0) * self.factors


@dataclass(frozen=True)
class Work(Generic[Part]):
    """The sum that a pass computes.

    Attributes
    ----------
    part : callable
        Returns the sum over a block.
    zero : callable
        Returns the sum over no rows.
    row_bytes : int
        Bytes of temporaries that `part` needs for each row.
    """

    part: Callable[[Block], Part]
    zero: Callable[[], Part]
    row_bytes: int

    def slices(self, n_rows: int, done: int = 0, held: int = 0) -> list[slice]:
        """Cut rows into blocks, without the first `done` rows; `held` bytes are in use already."""
        # the sum, and the addends that threads compute or that wait to be added
        sums = (thread_count() + 2) * int(getattr(self.zero(), "nbytes", 0))
        return [
            slice(max(rows.start, done), rows.stop)
            for rows in row_slices(n_rows, self.row_bytes, held=held + sums)
            if rows.stop > done
        ]


class RowBlocks(ABC):
    """All rows of a fit, in memory, on disk or on a cluster.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : dtype
        Floating type of the rows (see :func:`float_dtype`).
    n_outputs : int
        Number of columns of the coded targets, 0 where there are none.
    discrete : bool
        Whether the targets are classes or labels.
    n_candidates : int
        Number of rows that may become landmarks: rows of positive weight.
    class_rows : ClassRows
        Number and first of the rows of each class or label; there are none of values.
    progress : Progress
    journal : Journal
    """

    progress: Progress
    journal: Journal

    @property
    def local(self) -> bool:
        """Whether every sum runs in this process, so that its parts may have side effects."""
        return False

    @property
    def remote(self) -> bool:
        """Whether rows are on other machines, where gathering them is slow."""
        return False

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]: ...

    @property
    @abstractmethod
    def n_outputs(self) -> int: ...

    @property
    @abstractmethod
    def discrete(self) -> bool: ...

    @property
    @abstractmethod
    def n_candidates(self) -> int: ...

    @property
    @abstractmethod
    def class_rows(self) -> ClassRows: ...

    @abstractmethod
    def variance(self) -> float:
        """Return the variance of all entries of X, weighted by `sample_weight`."""

    @abstractmethod
    def feature_spread(self) -> MeanAndScatter:
        """Return mean and variance of every column of X; without mass for sparse rows."""

    @abstractmethod
    def target_spread(self) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of the rows, their targets and weights."""

    @abstractmethod
    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, with features as floats."""

    @abstractmethod
    def _candidate(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the row numbers of candidates by their positions among the candidates."""

    @abstractmethod
    def _sum(self, step: Step[Part], work: Work[Part], stage: str) -> None:
        """Add to `step` the sum over all rows from its position on."""

    def fold(
        self,
        part: Callable[[Block], Part],
        zero: Callable[[], Part],
        row_bytes: int,
        stage: str,
    ) -> Part:
        """Return ``zero()`` plus ``part(block)`` of all blocks.

        Parameters
        ----------
        part : callable
            Depends on its block alone; may run in another thread, process or machine.
        zero : callable
            Returns the sum over no rows, to which others are added in place.
        row_bytes : int
            Bytes of temporaries that `part` needs for each row.
        stage : str
            Name of the pass in progress reports.
        """
        step = self.journal.step(zero)
        self.progress.passes += 1  # also where a record has the sum already: it took a pass
        if not step.complete and step.position < self.n_rows:
            self._sum(step, Work(part, zero, row_bytes), stage)
        return step.finish()

    def some(self, rows: npt.NDArray[np.intp]) -> Blocks:
        """Return some rows, few enough to fit in memory, as all rows of another fit."""
        return self.gather(rows).blocks(self.progress.aside())

    def largest(
        self, score: Callable[[Block], Float], n: int, row_bytes: int, stage: str
    ) -> npt.NDArray[np.intp]:
        """Return the numbers of the `n` rows of largest score, in one pass."""

        def part(block: Block) -> TopRows:
            return TopRows.of(n, np.where(block.weight > 0, score(block), -np.inf), block.rows)

        return self.fold(part, lambda: TopRows.zero(n), row_bytes, stage).best()

    def sample(self, n: int, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
        """Draw `n` distinct candidate rows uniformly (all of them, in order, when `n` covers them).

        The draw is that of scikit-learn's ``Nystroem``, so equal seeds give equal landmarks. Above
        `MAX_PERMUTED` rows it needs no permutation, which would take memory for every row.
        """
        count = self.n_candidates
        if n >= count:
            return self._candidate(np.arange(count))
        if count <= MAX_PERMUTED:
            return self._candidate(rng.permutation(count)[:n])
        return self._candidate(sample_without_replacement(count, n, random_state=rng))

    def sample_of_all_classes(self, n: int, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
        """Draw `n` rows as :meth:`sample` does, and add rows of classes that are too rare for it.

        Of a rare class (see :meth:`ClassRows.rare`) the sample has up to 20 rows, the first ones.
        """
        drawn = self.sample(n, rng)
        if not self.discrete or len(drawn) == self.n_candidates:
            return drawn
        rare = self.class_rows.rare(n, self.n_candidates)
        return np.concatenate([drawn, np.setdiff1d(rare[rare >= 0], drawn)])


@dataclass(frozen=True)
class Blocks(RowBlocks):
    """Rows in memory.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Any numeric type; blocks are converted to floats one at a time.
    targets : Targets, optional
    sample_weight : ndarray of shape (n_rows,), optional
        Number of observations that each row stands for.
    class_weight : ndarray of shape (n_rows,), optional
        Weight of one observation of each row.
    progress : Progress
    journal : Journal
    """

    X: Any
    targets: Targets | None = None
    sample_weight: Float | None = None
    class_weight: Float | None = None
    progress: Progress = field(default_factory=Progress)
    journal: Journal = field(default_factory=Journal)

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the rows."""
        return float_dtype(self.X.dtype)

    @property
    def n_outputs(self) -> int:
        """Number of columns of the coded targets."""
        return 0 if self.targets is None else self.targets.n_outputs

    @property
    def discrete(self) -> bool:
        """Whether the targets are classes or labels."""
        return self.targets is not None and self.targets.discrete

    @property
    def local(self) -> bool:
        """Whether every sum runs: not where a record may replace one."""
        return not self.journal.recording

    @property
    def n_candidates(self) -> int:
        """Number of rows of positive weight."""
        if self.sample_weight is None:
            return self.n_rows
        return int(np.count_nonzero(self.sample_weight))

    @cached_property
    def class_rows(self) -> ClassRows:
        """Number and first of the rows of each class or label. O(N)."""
        return (
            ClassRows.zero(0)
            if self.targets is None
            else self.targets.class_rows(self.sample_weight)
        )

    def _candidate(self, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        if self.sample_weight is None:
            return positions
        return np.flatnonzero(self.sample_weight)[positions]

    def block(self, rows: Rows) -> Block:
        """Return some rows in their stored type."""
        return Block(
            self.X[rows],
            rows,
            None if self.targets is None else self.targets.take(rows),
            None if self.sample_weight is None else self.sample_weight[rows],
            None if self.class_weight is None else self.class_weight[rows],
        )

    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, with features as floats."""
        some = self.block(rows)
        return replace(some, X=some.X.astype(self.dtype, copy=False))

    def without(self, rows: npt.NDArray[np.intp]) -> Blocks:
        """Return the same rows with weight 0 for those with the numbers `rows`."""
        counts = np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight.copy()
        counts[rows] = 0.0
        return replace(self, sample_weight=counts)

    def _sum(self, step: Step[Part], work: Work[Part], stage: str) -> None:
        slices = work.slices(self.n_rows, step.position)
        with (
            self.progress.stage(stage, self.n_rows - step.position, len(slices)) as advance,
            closing(in_threads(lambda rows: work.part(self.block(rows)), slices)) as addends,
        ):
            for rows, addend in zip(slices, addends, strict=True):
                step.add(addend, rows.stop)
                advance(rows.stop - rows.start)

    def target_spread(self) -> MeanAndScatter:
        """Return weight, mean and variance of the coded targets."""
        spread = MeanAndScatter.zero((self.n_outputs,))
        for rows in row_slices(self.n_rows, 24 * self.n_outputs):
            block = self.block(rows)
            assert block.targets is not None
            spread += block.targets.spread(block.weight)
        return spread

    def variance(self) -> float:
        """Return the variance of all entries of X. One pass, O(N d), and none in later calls."""
        return self._variance

    @cached_property
    def _variance(self) -> float:
        if sp.issparse(self.X):
            return float(self._spread(MeanAndScatter.of_cells).variance)
        return float(self._feature_spread.pooled().variance)

    def feature_spread(self) -> MeanAndScatter:
        """Return mean and variance of every column of X. One pass, and none in later calls."""
        return self._feature_spread

    @cached_property
    def _feature_spread(self) -> MeanAndScatter:
        return self._spread(MeanAndScatter.of_features)

    def _spread(self, of: Callable[[Any, Float], MeanAndScatter]) -> MeanAndScatter:
        """Add up a statistic of rows and weights, in blocks that fit in a core's cache."""
        spread, most = MeanAndScatter.zero(), VARIANCE_CELLS // self.n_features + 1
        blocks = map(self.block, row_slices(self.n_rows, 8 * self.n_features, most))
        for more in in_threads(lambda block: of(block.X, block.counts), blocks):
            spread += more
        return spread

    def fingerprint(self) -> str:
        """Return a hash of the rows, their targets and weights."""
        digest: str = joblib.hash((self.X, self.targets, self.sample_weight, self.class_weight))
        return digest
