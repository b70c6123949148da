"""Rows in blocks: the one place that knows how rows are stored and how many fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import get_config

from nysplus._progress import Progress
from nysplus._targets import Float, Rows, Targets
from nysplus._threads import in_threads, thread_count

# More rows than this make no matrix product faster, they only take memory.
MAX_BLOCK_ROWS = 4096
# Several blocks come in multiples of this many of equal size, so that no thread waits for another.
SHARES = 4
# Entries that stay in a core's cache between two simple operations on them.
VARIANCE_CELLS = 2**18

Part = TypeVar("Part")


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the floating type that rows of `dtype` are computed in: float32 only for floats
    of at most 32 bits, float64 for everything else (so that integers cannot overflow).
    """
    given = np.dtype(dtype)
    small = given.kind == "f" and given.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def row_slices(n_rows: int, row_bytes: int, most: int = MAX_BLOCK_ROWS) -> list[slice]:
    """Cut `n_rows` rows into slices whose temporaries fit scikit-learn's `working_memory`.

    Parameters
    ----------
    n_rows : int
    row_bytes : int
        Bytes of temporaries that one row needs. Every thread holds those of one slice.
    most : int
        Rows of a slice, at most.
    """
    budget = int(get_config()["working_memory"] * 2**20) // thread_count()
    step = max(1, min(most, budget // max(row_bytes, 1)))
    n_slices = -(-n_rows // step)
    if n_slices > 1:
        n_slices = -(-n_slices // SHARES) * SHARES
        step = -(-n_rows // n_slices)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


@dataclass(frozen=True)
class Block:
    """Some rows: features, and on request their targets and weights.

    Attributes
    ----------
    X : ndarray or CSR of shape (b, d)
        As stored: any numeric type.
    rows : slice or ndarray of shape (b,)
        Where the rows stand among all rows.
    """

    X: Any
    rows: Rows
    owner: Blocks

    @property
    def Y(self) -> Float:
        """Coded targets of shape (b, L)."""
        assert self.owner.targets is not None
        return self.owner.targets.coded(self.rows)

    @property
    def weight(self) -> Float:
        """Weight of each row: sample weight times class weight."""
        return self.owner.counts(self.rows) * self.owner.class_factors(self.rows)

    @property
    def unit_weight(self) -> Float:
        """Weight of *one observation* of each row, at most the row's own weight.

        A sample weight of three stands for three equal rows; leaving one out takes a third.
        """
        return np.minimum(self.owner.counts(self.rows), 1.0) * self.owner.class_factors(self.rows)


@dataclass(frozen=True)
class Blocks:
    """All rows of a fit, read block by block.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Any numeric type; blocks are converted one at a time.
    targets : Targets, optional
    sample_weight : ndarray of shape (n_rows,), optional
        How many observations each row stands for.
    class_weight : ndarray of shape (n_rows,), optional
        How much one observation of the row weighs.
    progress : Progress
    """

    X: Any
    targets: Targets | None = None
    sample_weight: Float | None = None
    class_weight: Float | None = None
    progress: Progress = field(default_factory=Progress)

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
        """Floating type of the rows (see :func:`float_dtype`)."""
        return float_dtype(self.X.dtype)

    def counts(self, rows: Rows) -> Float:
        """Sample weights of some rows, ones where none were given."""
        if self.sample_weight is None:
            return np.ones(len(self._numbers(rows)))
        return self.sample_weight[rows]

    def class_factors(self, rows: Rows) -> Float:
        """Class weights of some rows, ones where none were given."""
        if self.class_weight is None:
            return np.ones(len(self._numbers(rows)))
        return self.class_weight[rows]

    def _numbers(self, rows: Rows) -> range | npt.NDArray[np.intp]:
        return range(self.n_rows)[rows] if isinstance(rows, slice) else rows

    def target_moments(self) -> tuple[float, Float, Float]:
        """Return the sum of all weights, and mean and variance of the coded targets."""
        assert self.targets is not None
        total = 0.0
        mean: Float = np.zeros(self.targets.n_outputs)
        scatter: Float = np.zeros(self.targets.n_outputs)
        for rows in row_slices(self.n_rows, 24 * self.targets.n_outputs):
            weight, Y = self.counts(rows) * self.class_factors(rows), self.targets.coded(rows)
            more = float(weight.sum())
            if more > 0:
                other = weight @ Y / more
                share, step = more / (total + more), other - mean
                scatter = scatter + weight @ (Y - other) ** 2 + total * share * step**2
                total, mean = total + more, mean + share * step
        return total, mean, scatter / total

    def without(self, rows: npt.NDArray[np.intp]) -> Blocks:
        """Return the same rows, of which those with the numbers `rows` weigh nothing."""
        counts = self.counts(slice(None)).copy()
        counts[rows] = 0.0
        return replace(self, sample_weight=counts)

    def candidates(self) -> npt.NDArray[np.intp]:
        """Return the numbers of the rows that may become landmarks: those that weigh anything."""
        if self.sample_weight is None:
            return np.arange(self.n_rows)
        return np.flatnonzero(self.sample_weight > 0)

    def sample(self, n: int, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
        """Draw `n` distinct candidate rows uniformly (all of them, in order, when `n` covers them).

        Draws as scikit-learn's ``Nystroem`` does, so equal seeds give equal landmarks.
        """
        candidates = self.candidates()
        if n >= len(candidates):
            return candidates
        return candidates[rng.permutation(len(candidates))[:n]]

    def take(self, rows: npt.NDArray[np.intp]) -> Any:
        """Return the features of some rows as floats."""
        return self.X[rows].astype(self.dtype, copy=False)

    def each(
        self,
        function: Callable[[Block], Part],
        row_bytes: int,
        stage: str,
        rows: npt.NDArray[np.intp] | None = None,
    ) -> Iterator[Part]:
        """Yield ``function(block)`` for all rows, or those with the numbers `rows`, in order.

        Blocks are shared among threads. Progress is reported under the name `stage`.
        """
        n_rows = self.n_rows if rows is None else len(rows)
        slices = row_slices(n_rows, row_bytes)

        def work(part: slice) -> Part:
            numbers: Rows = part if rows is None else rows[part]
            return function(Block(self.X[numbers], numbers, self))

        with self.progress.stage(stage, n_rows, len(slices)) as advance:
            for part, result in zip(slices, in_threads(work, slices), strict=True):
                yield result
                advance(part.stop - part.start)

    def fold(
        self,
        part: Callable[[Block], Part],
        total: Part,
        row_bytes: int,
        stage: str,
        rows: npt.NDArray[np.intp] | None = None,
    ) -> Part:
        """Return `total`, which is changed in place, plus ``part(block)`` of all blocks."""
        for addend in self.each(part, row_bytes, stage, rows):
            total += addend  # type: ignore[operator]  # moments and arrays both add
        return total

    def map(self, rows_to_rows: Callable[[Block], Float], row_bytes: int, stage: str) -> Float:
        """Return ``rows_to_rows(block)`` of all blocks, one below the other."""
        return np.concatenate(list(self.each(rows_to_rows, row_bytes, stage)))

    def variance(self) -> float:
        """Return the variance of all entries of X taken together, as gamma="scale" uses it.

        Rows count as often as their sample weight says. One pass, O(N d); parts are joined
        about their means, so that large means do not cancel.
        """

        def part(rows: slice) -> tuple[float, float, float]:
            X, weight = self.X[rows], self.counts(rows)
            cells = float(weight.sum()) * self.n_features
            if cells == 0:
                return 0.0, 0.0, 0.0
            X = X.astype(np.float64)
            values = X.data if sp.issparse(X) else X
            mean = float(weight @ np.asarray(X.sum(axis=1)).ravel()) / cells
            values -= mean
            np.square(values, out=values)
            squares = np.asarray(X.sum(axis=1)).ravel()
            if sp.issparse(X):
                squares = squares + (X.shape[1] - np.diff(X.indptr)) * mean**2
            return cells, mean, float(weight @ squares)

        cells = mean = scatter = 0.0
        slices = row_slices(self.n_rows, 8 * self.n_features, VARIANCE_CELLS // self.n_features + 1)
        for more, other, squares in in_threads(part, slices):
            if more > 0:
                share, step = more / (cells + more), other - mean
                scatter += squares + cells * share * step**2
                cells, mean = cells + more, mean + share * step
        return scatter / cells
