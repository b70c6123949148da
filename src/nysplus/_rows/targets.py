"""Targets of rows: classes, sets of labels or values, one small record each.

All three answer the same questions about their rows, so the engine never asks which one it has.
Classes stay integers; their ±1 columns exist only for the rows of one block. How targets are made
from `y`, and predictions from scores, is in :mod:`nysplus._rows.target_codes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import ClassRows, MeanAndScatter
from nysplus._typing import Float, Rows, TargetKind

# Values are grouped into at most this many ranges: deciles.
MAX_RANGES = 10


class Targets(ABC):
    """Targets of some rows.

    Attributes
    ----------
    kind : {"classes", "labels", "values"}
        One class per row, any number of labels per row, or numbers.
    """

    kind: ClassVar[TargetKind]

    @property
    def discrete(self) -> bool:
        """Whether the targets are classes or labels."""
        return self.kind != "values"

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of columns of the target matrix Y."""

    @abstractmethod
    def take(self, rows: Rows) -> Self:
        """Return the targets of some of the rows."""

    @abstractmethod
    def joined(self, more: Self) -> Self:
        """Return these targets, and those of more rows of the same code behind them."""

    @abstractmethod
    def coded(self) -> Float:
        """Return the target matrix Y of shape (rows, n_outputs): ±1 for classes and labels."""

    def spread(self, weight: Float) -> MeanAndScatter:
        """Return weight, mean and variance of the columns of Y. O(rows × n_outputs)."""
        return MeanAndScatter.of_columns(self.coded(), weight)

    @abstractmethod
    def row_scores(self, scores: Float) -> Float:
        """Return the score of each row: 1 if it is right and 0 if not, or minus its squared error.

        Larger is better for both.
        """

    @abstractmethod
    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Return a group number for each row; rows of different groups are clustered apart."""

    @property
    def class_codes(self) -> npt.NDArray[np.intp] | None:
        """Class number of each row; None where a row may have several labels, or a value."""
        return None

    @property
    def probabilities(self) -> Float | None:
        """Probabilities of the classes of each row; None where every row has one for certain."""
        return None

    @property
    def origin(self) -> npt.NDArray[np.intp] | None:
        """Numbers of the given rows that each row was made of, of shape (rows, m).

        They are equal for a row that was given itself; None where all rows were.
        """
        return None

    def class_rows(self, weight: Float | None) -> ClassRows:
        """Return the number and the first of the rows of each class or label; none for values.

        Rows of weight zero do not count.
        """
        return ClassRows.zero(0)

    def masses(self, weight: Float | None) -> Float:
        """Return the sum of the weights of each class; empty where rows have no single class."""
        return np.zeros(0)

    def of_class(self, factors: Float | None) -> Float | None:
        """Return the entry of `factors` that belongs to the class of each row, or None."""
        codes = self.class_codes
        return None if factors is None or codes is None else factors[codes]

    @property
    def labels(self) -> DiscreteTargets:
        """These targets, where they are classes or labels; otherwise a TypeError."""
        raise TypeError(f"{type(self).__name__} are numbers, not classes or labels.")


class DiscreteTargets(Targets):
    """Targets that are classes or labels."""

    @property
    def labels(self) -> DiscreteTargets:
        """These targets."""
        return self

    @abstractmethod
    def negative_margins(self, scores: Float) -> Float:
        """Return the negative margin of each row: above 0 where the prediction is wrong."""

    @abstractmethod
    def hits(self, scores: Float) -> npt.NDArray[np.bool_]:
        """Return for each row whether the prediction is right."""

    def row_scores(self, scores: Float) -> Float:
        """Return 1 for each row that is right, 0 for each that is wrong."""
        return self.hits(scores).astype(np.float64)

    @abstractmethod
    def rows_of(self, number: int) -> npt.NDArray[np.intp]:
        """Return the positions of the rows of a class, or with a label, by its number."""

    @abstractmethod
    def found(self, scores: Float, weight: Float) -> Float:
        """Return for each class or label the weight of those of its rows that are given it."""

    @abstractmethod
    def vote(self, cluster: npt.NDArray[np.intp], weight: Float) -> DiscreteTargets:
        """Return the targets of clusters of rows, by weighted majority."""

    @abstractmethod
    def choices(self, scores: Float, weight: Float) -> tuple[Float, npt.NDArray[np.intp], Float]:
        """Return the rows as choices of one class each: scores, class numbers and weights."""


@dataclass(frozen=True)
class ClassTargets(DiscreteTargets):
    """One class per row, coded ±1 one-vs-rest; two classes share a single output.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Class numbers from 0 to ``n_classes - 1``.
    n_classes : int
    """

    codes: npt.NDArray[np.intp]
    n_classes: int
    kind: ClassVar[TargetKind] = "classes"

    @property
    def n_outputs(self) -> int:
        """Number of columns of Y: L classes, or 1 when there are two."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def class_codes(self) -> npt.NDArray[np.intp]:
        """Class number of each row."""
        return self.codes

    def take(self, rows: Rows) -> ClassTargets:
        """Return the targets of some of the rows."""
        return ClassTargets(self.codes[rows], self.n_classes)

    def joined(self, more: ClassTargets) -> ClassTargets:
        """Return these targets, and those of more rows behind them."""
        return ClassTargets(np.concatenate([self.codes, more.codes]), self.n_classes)

    def masses(self, weight: Float | None) -> Float:
        """Return the sum of the weights of each class, or the number of its rows."""
        return np.bincount(self.codes, weight, self.n_classes).astype(np.float64)

    def coded(self) -> Float:
        """Return the ±1 target matrix Y of shape (rows, n_outputs)."""
        if self.n_classes == 2:
            return (2.0 * self.codes - 1.0)[:, None]
        Y = np.full((len(self.codes), self.n_classes), -1.0)
        Y[np.arange(len(self.codes)), self.codes] = 1.0
        return Y

    def spread(self, weight: Float) -> MeanAndScatter:
        """Return weight, mean and variance of the columns of Y. O(rows + n_classes)."""
        masses = self.masses(weight)
        mass = float(masses.sum())
        if mass == 0:
            return MeanAndScatter.zero((self.n_outputs,))
        share = masses[-self.n_outputs :] / mass
        return MeanAndScatter(mass, 2.0 * share - 1.0, 4.0 * mass * share * (1.0 - share))

    def negative_margins(self, scores: Float) -> Float:
        """Return ``-f_{y_i}(x_i)``, the sign-flipped score of each row's own class."""
        if self.n_classes == 2:
            return (1 - 2 * self.codes) * scores[:, 0]
        return -scores[np.arange(len(self.codes)), self.codes]

    def hits(self, scores: Float) -> npt.NDArray[np.bool_]:
        """Return for each row whether the class of the highest score is its own."""
        predicted = scores[:, 0] > 0 if self.n_classes == 2 else scores.argmax(axis=1)
        matches: npt.NDArray[np.bool_] = predicted == self.codes
        return matches

    def rows_of(self, number: int) -> npt.NDArray[np.intp]:
        """Return the positions of the rows of a class."""
        return np.flatnonzero(self.codes == number)

    def found(self, scores: Float, weight: Float) -> Float:
        """Return for each class the weight of those of its rows that are predicted right."""
        right: Float = weight * self.hits(scores)
        return np.bincount(self.codes, right, self.n_classes).astype(np.float64)

    def class_rows(self, weight: Float | None) -> ClassRows:
        """Return the number and the first of the rows of each class."""
        rows = np.arange(len(self.codes)) if weight is None else np.flatnonzero(weight > 0)
        return ClassRows.of(rows, self.codes[rows], self.n_classes)

    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Return the class number of each row."""
        return self.codes

    def vote(self, cluster: npt.NDArray[np.intp], weight: Float) -> ClassTargets:
        """Return the class of each cluster: the one of most weight among its rows."""
        votes = np.zeros((cluster.max() + 1, self.n_classes))
        np.add.at(votes, (cluster, self.codes), weight)
        return ClassTargets(votes.argmax(axis=1), self.n_classes)

    def choices(self, scores: Float, weight: Float) -> tuple[Float, npt.NDArray[np.intp], Float]:
        """Return the scores, class numbers and weights of the rows."""
        return scores, self.codes, weight


@dataclass(frozen=True)
class IndicatorTargets(DiscreteTargets):
    """Any number of labels per row: one ±1 output per label (multilabel classification).

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_labels)
        ±1.
    """

    Y: Float
    kind: ClassVar[TargetKind] = "labels"

    @property
    def n_outputs(self) -> int:
        """Number of labels."""
        return int(self.Y.shape[1])

    def take(self, rows: Rows) -> IndicatorTargets:
        """Return the targets of some of the rows."""
        return IndicatorTargets(self.Y[rows])

    def joined(self, more: IndicatorTargets) -> IndicatorTargets:
        """Return these targets, and those of more rows behind them."""
        return IndicatorTargets(np.concatenate([self.Y, more.Y]))

    def coded(self) -> Float:
        """Return the ±1 target matrix."""
        return self.Y

    def negative_margins(self, scores: Float) -> Float:
        """Return the negative margin of each row's worst label."""
        worst: Float = (-self.Y * scores).max(axis=1)
        return worst

    def hits(self, scores: Float) -> npt.NDArray[np.bool_]:
        """Return for each row whether all its labels are right."""
        right: npt.NDArray[np.bool_] = ((scores > 0) == (self.Y > 0)).all(axis=1)
        return right

    def rows_of(self, number: int) -> npt.NDArray[np.intp]:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(self.Y[:, number] > 0)

    def found(self, scores: Float, weight: Float) -> Float:
        """Return for each label the weight of those of its rows that are predicted to have it."""
        weights: Float = weight @ ((scores > 0) & (self.Y > 0))
        return weights

    def class_rows(self, weight: Float | None) -> ClassRows:
        """Return the number and the first of the rows of each label."""
        carried = self.Y > 0 if weight is None else (self.Y > 0) & (weight > 0)[:, None]
        rows, labels = np.nonzero(carried)
        return ClassRows.of(rows, labels, self.n_outputs)

    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Number the combinations of labels by frequency; the last group has all rarer ones."""
        _, groups, counts = np.unique(self.Y > 0, axis=0, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        shared: npt.NDArray[np.intp] = np.minimum(ranks, most - 1)[groups.ravel()]
        return shared

    def vote(self, cluster: npt.NDArray[np.intp], weight: Float) -> IndicatorTargets:
        """Return the labels that more than half of the weight of each cluster carries."""
        votes = np.zeros((cluster.max() + 1, self.n_outputs))
        np.add.at(votes, cluster, self.Y * weight[:, None])
        return IndicatorTargets(np.where(votes > 0, 1.0, -1.0))

    def choices(self, scores: Float, weight: Float) -> tuple[Float, npt.NDArray[np.intp], Float]:
        """Return one choice between two classes for each row and label."""
        codes = (self.Y.ravel() > 0).astype(np.intp)
        return scores.reshape(-1, 1), codes, np.repeat(weight, self.n_outputs)


@dataclass(frozen=True)
class ValueTargets(Targets):
    """Numbers to be predicted, one column per output (regression).

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_outputs)
    """

    Y: Float
    kind: ClassVar[TargetKind] = "values"

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.Y.shape[1])

    def take(self, rows: Rows) -> ValueTargets:
        """Return the targets of some of the rows."""
        return ValueTargets(self.Y[rows])

    def joined(self, more: ValueTargets) -> ValueTargets:
        """Return these targets, and those of more rows behind them."""
        return ValueTargets(np.concatenate([self.Y, more.Y]))

    def coded(self) -> Float:
        """Return the target matrix."""
        return self.Y

    def row_scores(self, scores: Float) -> Float:
        """Return the score of each row: minus its squared error, so that larger is better."""
        errors: Float = ((self.Y - scores) ** 2).sum(axis=1)
        return -errors

    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Number the ranges between quantiles of the sum of the standardised outputs."""
        spread = self.Y.std(axis=0)
        values = (self.Y / np.where(spread > 0, spread, 1.0)).sum(axis=1)
        n = min(most, MAX_RANGES)
        bounds = np.unique(np.quantile(values, np.arange(1, n) / n))
        ranges: npt.NDArray[np.intp] = np.searchsorted(bounds, values, side="right")
        return ranges
