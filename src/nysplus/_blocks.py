"""Rows in blocks: the one place that knows how rows are stored and how many fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import get_config

from nysplus._progress import Progress
from nysplus._targets import Float, Rows, Targets

# More rows than this make no matrix product faster, they only take memory.
MAX_BLOCK_ROWS = 4096

Part = TypeVar("Part")


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the floating type that rows of `dtype` are computed in: float32 only for floats
    of at most 32 bits, float64 for everything else (so that integers cannot overflow).
    """
    given = np.dtype(dtype)
    small = given.kind == "f" and given.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def row_slices(n_rows: int, row_bytes: int) -> list[slice]:
    """Cut `n_rows` rows into slices whose temporaries fit scikit-learn's `working_memory`.

    Parameters
    ----------
    n_rows : int
    row_bytes : int
        Bytes of temporaries that one row needs.
    """
    budget = int(get_config()["working_memory"] * 2**20)
    step = max(1, min(MAX_BLOCK_ROWS, budget // max(row_bytes, 1)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


@dataclass(frozen=True)
class Block:
    """Some consecutive rows: features, and on request their targets and weights.

    Attributes
    ----------
    X : ndarray or CSR of shape (b, d)
        As stored: any numeric type.
    rows : slice
        Where the rows stand among all rows.
    """

    X: Any
    rows: slice
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

    def each(self, row_bytes: int, stage: str) -> Iterator[Block]:
        """Yield the rows block by block, in order, and report progress under the name `stage`."""
        slices = row_slices(self.n_rows, row_bytes)
        with self.progress.stage(stage, self.n_rows, len(slices)) as advance:
            for rows in slices:
                yield Block(self.X[rows], rows, self)
                advance(rows.stop - rows.start)

    def fold(self, part: Callable[[Block], Part], row_bytes: int, stage: str) -> Part:
        """Return the sum of ``part(block)`` over all blocks."""
        parts = map(part, self.each(row_bytes, stage))
        total = next(parts)
        for addend in parts:
            total = total + addend  # type: ignore[operator]  # moments and arrays both add
        return total

    def map(self, rows_to_rows: Callable[[Block], Float], row_bytes: int, stage: str) -> Float:
        """Return ``rows_to_rows(block)`` of all blocks, one below the other."""
        return np.concatenate([rows_to_rows(block) for block in self.each(row_bytes, stage)])

    def variance(self) -> float:
        """Return the variance of all entries of X taken together, as gamma="scale" uses it.

        Rows count as often as their sample weight says. Two passes, O(N d), so that large
        means do not cancel.
        """
        weight = self.counts(slice(None))
        cells = float(weight.sum()) * self.n_features

        def mean_of(transform: Callable[[Any], Any], empty: float) -> float:
            total = 0.0
            for rows in row_slices(self.n_rows, 24 * self.n_features):
                X = self.X[rows].astype(np.float64)
                if sp.issparse(X):
                    zeros = X.shape[1] - np.diff(X.indptr)
                    X.data = transform(X.data)
                    per_row = np.asarray(X.sum(axis=1)).ravel() + zeros * empty
                else:
                    per_row = transform(X).sum(axis=1)
                total += float(per_row @ weight[rows])
            return total / cells

        mean = mean_of(lambda values: values, 0.0)
        return mean_of(lambda values: (values - mean) ** 2, mean**2)
