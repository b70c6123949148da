"""What a model is fitted to: classes, label indicators or values, one small record each.

All three answer the same questions about their rows, and :meth:`take` gives those of some of
them, so the engine never asks which kind it has. Classes stay integer codes; their ±1 columns
exist only for the rows of one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.floating]
Rows = slice | npt.NDArray[np.intp]


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


DiscreteTargets = ClassTargets | IndicatorTargets
Targets = DiscreteTargets | ValueTargets
