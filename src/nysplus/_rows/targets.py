"""What a model is fitted to: classes, label indicators or values, one small record each.

All three answer the same questions about their rows, and :meth:`take` gives those of some of
them, so the engine never asks which kind it has. Classes stay integer codes; their ±1 columns
exist only for the rows of one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float, Rows

# Values are grouped into this many ranges at most.
MAX_RANGES = 10


@dataclass(frozen=True)
class ClassTargets:
    """One class per row, coded ±1 one-vs-rest; two classes share a single output.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Class numbers from 0 to ``n_classes - 1``.
    n_classes : int
    """

    codes: npt.NDArray[np.intp]
    n_classes: int
    discrete: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """Columns of the target matrix Y: L classes, or 1 when there are two."""
        return 1 if self.n_classes == 2 else self.n_classes

    def take(self, rows: Rows) -> ClassTargets:
        """Return the targets of some rows."""
        return ClassTargets(self.codes[rows], self.n_classes)

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

    def negative_margins(self, scores: Float) -> Float:
        """Return ``-f_{y_i}(x_i)``, the sign-flipped score of each row's own class."""
        if self.n_classes == 2:
            return (1 - 2 * self.codes) * scores[:, 0]
        return -scores[np.arange(len(self.codes)), self.codes]

    def hits(self, scores: Float) -> npt.NDArray[np.bool_]:
        """Tell for each row whether the class of the highest score is its own."""
        predicted = scores[:, 0] > 0 if self.n_classes == 2 else scores.argmax(axis=1)
        matches: npt.NDArray[np.bool_] = predicted == self.codes
        return matches

    def row_scores(self, scores: Float) -> Float:
        """Return what counts in comparisons: 1 for each row that is right, 0 for the others."""
        return self.hits(scores).astype(np.float64)

    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Return the class of every row: rows of different groups are clustered apart."""
        return self.codes

    def vote(self, cluster: npt.NDArray[np.intp], weight: Float) -> ClassTargets:
        """Return one class per cluster, the one with most weight among its rows."""
        votes = np.zeros((cluster.max() + 1, self.n_classes))
        np.add.at(votes, (cluster, self.codes), weight)
        return ClassTargets(votes.argmax(axis=1), self.n_classes)


@dataclass(frozen=True)
class IndicatorTargets:
    """Any number of labels per row: one ±1 output each (multilabel classification)."""

    Y: Float
    discrete: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """Number of labels."""
        return int(self.Y.shape[1])

    def take(self, rows: Rows) -> IndicatorTargets:
        """Return the targets of some rows."""
        return IndicatorTargets(self.Y[rows])

    def coded(self) -> Float:
        """Return the ±1 target matrix."""
        return self.Y

    def negative_margins(self, scores: Float) -> Float:
        """Return the negative margin of each row's worst label."""
        worst: Float = (-self.Y * scores).max(axis=1)
        return worst

    def hits(self, scores: Float) -> npt.NDArray[np.bool_]:
        """Tell for each row whether all its labels are right."""
        right: npt.NDArray[np.bool_] = ((scores > 0) == (self.Y > 0)).all(axis=1)
        return right

    def row_scores(self, scores: Float) -> Float:
        """Return what counts in comparisons: 1 for each row that is right, 0 for the others."""
        return self.hits(scores).astype(np.float64)

    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Number the combinations of labels; the rarer ones beyond `most` share a group."""
        _, groups, counts = np.unique(self.Y > 0, axis=0, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        shared: npt.NDArray[np.intp] = np.minimum(ranks, most - 1)[groups.ravel()]
        return shared

    def vote(self, cluster: npt.NDArray[np.intp], weight: Float) -> IndicatorTargets:
        """Return the labels that most of the weight of each cluster carries."""
        votes = np.zeros((cluster.max() + 1, self.n_outputs))
        np.add.at(votes, cluster, self.Y * weight[:, None])
        return IndicatorTargets(np.where(votes > 0, 1.0, -1.0))


@dataclass(frozen=True)
class ValueTargets:
    """Numbers to be predicted, one column per output (regression)."""

    Y: Float
    discrete: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.Y.shape[1])

    def take(self, rows: Rows) -> ValueTargets:
        """Return the targets of some rows."""
        return ValueTargets(self.Y[rows])

    def coded(self) -> Float:
        """Return the target matrix."""
        return self.Y

    def row_scores(self, scores: Float) -> Float:
        """Return what counts in comparisons: the squared error of each row, less than nothing."""
        errors: Float = ((self.Y - scores) ** 2).sum(axis=1)
        return -errors

    def groups(self, most: int) -> npt.NDArray[np.intp]:
        """Number ranges between quantiles of the outputs' sum, in their standard deviations."""
        spread = self.Y.std(axis=0)
        values = (self.Y / np.where(spread > 0, spread, 1.0)).sum(axis=1)
        n = min(most, MAX_RANGES)
        bounds = np.unique(np.quantile(values, np.arange(1, n) / n))
        ranges: npt.NDArray[np.intp] = np.searchsorted(bounds, values, side="right")
        return ranges


DiscreteTargets = ClassTargets | IndicatorTargets

Targets = DiscreteTargets | ValueTargets


@dataclass(frozen=True)
class ClassCode:
    """Between class labels, class numbers and scores.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    """

    classes: npt.NDArray[Any]
    discrete: ClassVar[bool] = True
    names_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """Columns of the target matrix."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def same(self, other: Code) -> bool:
        """Tell whether the other one codes the same classes."""
        return isinstance(other, ClassCode) and np.array_equal(self.classes, other.classes)

    def encode(self, y: npt.NDArray[Any]) -> ClassTargets:
        """Return the class numbers of some labels, all of which must be known."""
        y = _columns(y, 1, "one column of classes")[:, 0]
        if self.classes.dtype.kind == "U" and y.dtype.kind == "O":
            y = y.astype(str)
        codes = np.searchsorted(self.classes, y).clip(max=len(self.classes) - 1)
        unknown = self.classes[codes] != y
        if unknown.any():
            raise ValueError(
                f"y contains {np.unique(y[unknown]).tolist()[:10]}, which is not among the classes "
                f"{self.classes.tolist()[:10]}. Name all classes in the first call of partial_fit, "
                "or leave such rows out."
            )
        return ClassTargets(codes, len(self.classes))

    def recode(self, Y: Float) -> ClassTargets:
        """Return the classes of coded targets."""
        codes = (Y[:, 0] > 0).astype(np.intp) if self.n_outputs == 1 else Y.argmax(axis=1)
        return ClassTargets(codes, len(self.classes))

    def decision(self, scores: Float) -> Float:
        """Return the scores as `decision_function` gives them: one column is flat."""
        return scores.ravel() if self.n_outputs == 1 else scores

    def decode(self, scores: Float) -> npt.NDArray[Any]:
        """Return the label of the highest score."""
        binary = self.n_outputs == 1
        codes = (scores[:, 0] > 0).astype(int) if binary else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes[codes]
        return labels


@dataclass(frozen=True)
class LabelCode:
    """Between a 0/1 label indicator and scores.

    Parameters
    ----------
    n_outputs : int
        Number of labels.
    """

    n_outputs: int
    discrete: ClassVar[bool] = True
    names_classes: ClassVar[bool] = False

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The label numbers."""
        return np.arange(self.n_outputs)

    def same(self, other: Code) -> bool:
        """Tell whether the other one codes as many labels."""
        return self == other

    def encode(self, y: npt.NDArray[Any]) -> IndicatorTargets:
        """Return the ±1 targets of an indicator."""
        y = _columns(y, self.n_outputs, f"{self.n_outputs} columns of labels")
        return IndicatorTargets(np.where(y > 0, 1.0, -1.0))

    def recode(self, Y: Float) -> IndicatorTargets:
        """Return the labels of coded targets."""
        return IndicatorTargets(Y)

    def decision(self, scores: Float) -> Float:
        """Return the scores as `decision_function` gives them."""
        return scores

    def decode(self, scores: Float) -> npt.NDArray[Any]:
        """Return the indicator of the positive scores."""
        return (scores > 0).astype(int)


@dataclass(frozen=True)
class ValueCode:
    """Between values to be predicted and scores, which are the same.

    Parameters
    ----------
    n_outputs : int
    flat : bool
        Whether y has one dimension.
    """

    n_outputs: int
    flat: bool
    discrete: ClassVar[bool] = False
    names_classes: ClassVar[bool] = False

    def same(self, other: Code) -> bool:
        """Tell whether the other one codes as many outputs."""
        return isinstance(other, ValueCode) and self.n_outputs == other.n_outputs

    def encode(self, y: npt.NDArray[Any]) -> ValueTargets:
        """Return the values, a column for each output."""
        Y = _columns(y, self.n_outputs, f"{self.n_outputs} columns of values")
        return ValueTargets(Y.astype(np.float64))

    def decode(self, scores: Float) -> Float:
        """Return the predicted values in the shape of y."""
        return scores.ravel() if self.flat else scores


def _columns(y: npt.NDArray[Any], n: int, expected: str) -> npt.NDArray[Any]:
    """Return y with two axes, or raise if it has another number of columns than `n`."""
    y = y[:, None] if y.ndim == 1 else y
    if y.shape[1] != n:
        columns = "1 column" if y.shape[1] == 1 else f"{y.shape[1]} columns"
        raise ValueError(
            f"y has {columns}, expected are {expected}: targets must be of the same kind in all "
            "blocks and calls."
        )
    return y


Code = ClassCode | LabelCode | ValueCode
