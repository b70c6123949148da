"""Sums over rows beside moments: means and variances, rows by score or class, scores of rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._typing import Float, Rows

# Rows beyond twice the number to keep that are collected before they are sorted.
FEW_ROWS = 4096
# Rows of a class that a sample of rows has at least: enough to see whether the class is found.
FEW_OF_A_CLASS = 20
# Rows that are searched first for rows of every class, and the growth of this number.
SEARCHED_ROWS, SEARCH_GROWTH = 4096, 4


@dataclass
class MeanAndScatter:
    """Weighted mean and sum of squares about it, of numbers or of columns of them.

    Parts are joined about their means, so that large means do not cancel. Squares that overflow
    make the scatter infinite, or NaN, without a warning.

    Attributes
    ----------
    mass : float
        Sum of the weights.
    mean, scatter : ndarray of shape () or (L,)
    """

    mass: float
    mean: Float
    scatter: Float

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> MeanAndScatter:
        """Return the mean and scatter of no rows, to which others are added."""
        return cls(0.0, np.zeros(shape), np.zeros(shape))

    @classmethod
    def of_columns(cls, Y: Float, weight: Float) -> MeanAndScatter:
        """Return the mean and scatter of every column."""
        mass = float(weight.sum())
        if mass == 0:
            return cls.zero(Y.shape[1:])
        with np.errstate(over="ignore", invalid="ignore"):
            mean: Float = weight @ Y / mass
            squares = Y - mean
            np.square(squares, out=squares)
            return cls(mass, mean, weight @ squares)

    @classmethod
    def of_features(cls, X: Any, weight: Float) -> MeanAndScatter:
        """Return the mean and scatter of every column of dense rows; no mass for sparse rows."""
        if sp.issparse(X):
            return cls.zero()
        return cls.of_columns(X.astype(np.float64, copy=False), weight)

    @classmethod
    def of_cells(cls, X: Any, weight: Float) -> MeanAndScatter:
        """Return the mean and scatter of all entries of X together."""
        if not sp.issparse(X):
            return cls.of_features(X, weight).pooled()
        mass = float(weight.sum()) * X.shape[1]
        if mass == 0:
            return cls.zero()
        X = X.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = weight @ np.asarray(X.sum(axis=1)).ravel() / mass
            X.data -= mean
            np.square(X.data, out=X.data)
            squares = np.asarray(X.sum(axis=1)).ravel()
            squares += (X.shape[1] - np.diff(X.indptr)) * np.square(mean)
            return cls(mass, np.asarray(mean), np.asarray(weight @ squares))

    @property
    def variance(self) -> Float:
        """Mean square about the mean."""
        return self.scatter / self.mass

    def pooled(self) -> MeanAndScatter:
        """Return the mean and scatter of the numbers of all columns together."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.mean.mean()
            scatter = self.scatter.sum() + self.mass * np.square(self.mean - mean).sum()
            return MeanAndScatter(self.mass * self.mean.size, np.asarray(mean), np.asarray(scatter))

    def __iadd__(self, other: MeanAndScatter) -> MeanAndScatter:
        mass = self.mass + other.mass
        if other.mass > 0:
            with np.errstate(over="ignore", invalid="ignore"):
                share, step = other.mass / mass, other.mean - self.mean
                self.scatter = self.scatter + other.scatter + self.mass * share * step**2
                self.mean = self.mean + share * step
            self.mass = mass
        return self


def row_numbers(rows: Rows) -> npt.NDArray[np.intp]:
    """Return row numbers as an array."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


@dataclass
class TopRows:
    """The rows of largest score seen so far, at most `n`, largest first, ties by row number.

    Scores are compared to nine decimals: the scores of equal rows differ by rounding, which depends
    on their position in a block and must not decide between them.
    """

    n: int
    scores: Float
    rows: npt.NDArray[np.intp]

    @classmethod
    def zero(cls, n: int) -> TopRows:
        """Return the largest scores of no rows."""
        return cls(n, np.zeros(0), np.zeros(0, dtype=np.intp))

    @classmethod
    def of(cls, n: int, scores: Float, rows: Rows) -> TopRows:
        """Return the largest scores of a block."""
        kept = np.flatnonzero(scores > -np.inf)
        largest = cls(n, np.round(scores[kept], 9), row_numbers(rows)[kept])
        largest._prune(n)
        return largest

    def _prune(self, n: int) -> None:
        best = np.lexsort((self.rows, -self.scores))[:n]
        self.scores, self.rows = self.scores[best], self.rows[best]

    def __iadd__(self, other: TopRows) -> TopRows:
        self.scores = np.concatenate([self.scores, other.scores])
        self.rows = np.concatenate([self.rows, other.rows])
        # not sorted at every addition, so that each row is sorted a few times at most
        if len(self.rows) > 2 * self.n + FEW_ROWS:
            self._prune(self.n)
        return self

    def best(self) -> npt.NDArray[np.intp]:
        """Return the row numbers."""
        self._prune(self.n)
        return self.rows


@dataclass
class ClassRows:
    """The number of rows of each class (or label), and the first rows of each.

    Attributes
    ----------
    counts : ndarray of shape (n_classes,)
        Number of rows of positive weight.
    first : ndarray of shape (n_classes, FEW_OF_A_CLASS)
        Numbers of the first of them; −1 where a class has fewer.
    """

    counts: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]

    @classmethod
    def zero(cls, n_classes: int) -> ClassRows:
        """Return the rows of classes without rows."""
        first = np.full((n_classes, FEW_OF_A_CLASS), -1, dtype=np.intp)
        return cls(np.zeros(n_classes, dtype=np.intp), first)

    @classmethod
    def of(
        cls, rows: npt.NDArray[np.intp], classes: npt.NDArray[np.intp], n_classes: int
    ) -> ClassRows:
        """Return the rows of each class, from the numbers of rows and the class of each. O(rows).

        Parameters
        ----------
        rows, classes : ndarray of shape (b,)
            A row with several labels is there several times. Rows are in order.
        n_classes : int
        """
        found = cls.zero(n_classes)
        start, step = 0, SEARCHED_ROWS
        while start < len(rows):
            part = slice(start, start + step)
            missing = np.flatnonzero(found.counts[classes[part]] < FEW_OF_A_CLASS) + start
            found._add_first(rows[missing], classes[missing])
            start, step = start + step, SEARCH_GROWTH * step
        found.counts = np.bincount(classes, minlength=n_classes)
        return found

    def _add_first(self, rows: npt.NDArray[np.intp], classes: npt.NDArray[np.intp]) -> None:
        """Add rows to classes that have too few; `counts` counts those in `first` alone."""
        order = np.argsort(classes, kind="stable")
        rows, classes = rows[order], classes[order]
        place = self.counts[classes] + np.arange(len(rows)) - np.searchsorted(classes, classes)
        fits = place < FEW_OF_A_CLASS
        self.first[classes[fits], place[fits]] = rows[fits]
        self.counts += np.bincount(classes[fits], minlength=len(self.counts))

    def placed(self, classes: npt.NDArray[np.intp], n_classes: int) -> ClassRows:
        """Return the rows of `n_classes` classes; those of this record have numbers `classes`."""
        more = ClassRows.zero(n_classes)
        more.counts[classes], more.first[classes] = self.counts, self.first
        return more

    def followed_by(self, other: ClassRows, n_rows: int) -> ClassRows:
        """Return the rows of both, where the rows of `other` come after `n_rows` others."""
        later = np.where(other.first >= 0, other.first + n_rows, -1)
        both = np.concatenate([self.first, later], axis=1)
        order = np.argsort(both < 0, axis=1, kind="stable")[:, :FEW_OF_A_CLASS]
        return ClassRows(self.counts + other.counts, np.take_along_axis(both, order, axis=1))

    def rare(self, n: int, n_rows: int) -> npt.NDArray[np.intp]:
        """Return rows of the classes of which a sample of `n` among `n_rows` rows has too few.

        A class is rare if fewer than 20 of its rows, and fewer than half an even share, are
        expected in the sample. Shape (n_rare, m); −1 where a class has fewer than m rows.
        """
        enough = min(float(FEW_OF_A_CLASS), n / (2.0 * max(len(self.counts), 1)))
        few = (self.counts > 0) & (self.counts * (n / n_rows) < enough)
        return self.first[few, : max(1, int(enough))]


@dataclass
class ScoredRows:
    """Scores of some rows, with their targets and weights.

    Attributes
    ----------
    rows : ndarray of shape (b,)
        Numbers of the rows.
    scores, Y : ndarray of shape (b, L)
        Scores and coded targets.
    weight : ndarray of shape (b,)
    counts : ndarray of shape (b,)
        The weight without class weights: number of observations that each row stands for.
    leverage : ndarray of shape (b,)
        Of each row in the fit whose leave-one-out scores these are; 0 for held-out rows.
    """

    rows: npt.NDArray[np.intp]
    scores: Float
    Y: Float
    weight: Float
    counts: Float
    leverage: Float

    @classmethod
    def zero(cls, n_outputs: int) -> ScoredRows:
        """Return the scores of no rows."""
        nothing = np.zeros((0, n_outputs))
        return cls(np.zeros(0, dtype=np.intp), nothing, nothing, *np.zeros((3, 0)))

    def take(self, positions: npt.NDArray[np.intp]) -> ScoredRows:
        """Return some of these rows, by their positions here."""
        return ScoredRows(*(getattr(self, field.name)[positions] for field in fields(self)))

    def __iadd__(self, other: ScoredRows) -> ScoredRows:
        for part in (field.name for field in fields(self)):
            setattr(self, part, np.concatenate([getattr(self, part), getattr(other, part)]))
        return self
