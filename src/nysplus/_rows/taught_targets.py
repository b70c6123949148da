"""Targets that another model has set: probabilities of classes, or values.

Rows may be given, or synthetic: made of given rows. A synthetic row is never held out, and it is
not trained on where one of the rows of its origin is held out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.targets import ClassTargets, Targets, ValueTargets
from nysplus._typing import Float, Rows


@dataclass(frozen=True)
class TaughtClasses(ClassTargets):
    """Probabilities of the classes of each row.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Class numbers that predictions are compared with.
    n_classes : int
    P : ndarray of shape (n_rows, n_classes)
        Probabilities that a model learns.
    sources : ndarray of shape (n_rows, m)
        Numbers of given rows that each row was made of; its own number m times for a given row.
    """

    P: Float
    sources: npt.NDArray[np.intp]

    @property
    def probabilities(self) -> Float:
        """The probabilities."""
        return self.P

    @property
    def origin(self) -> npt.NDArray[np.intp]:
        """Numbers of the given rows that each row was made of."""
        return self.sources

    def take(self, rows: Rows) -> TaughtClasses:
        """Return the targets of some of the rows."""
        return TaughtClasses(self.codes[rows], self.n_classes, self.P[rows], self.sources[rows])

    def joined(self, more: Targets) -> TaughtClasses:
        """Return these targets, and those of more rows behind them."""
        assert isinstance(more, TaughtClasses)
        return TaughtClasses(
            np.concatenate([self.codes, more.codes]),
            self.n_classes,
            np.concatenate([self.P, more.P]),
            np.concatenate([self.sources, more.sources]),
        )

    def coded(self) -> Float:
        """Return the target matrix ``2 P − 1``, the mean of ±1 targets of these probabilities."""
        return 2.0 * self.P[:, -self.n_outputs :] - 1.0

    def spread(self, weight: Float) -> MeanAndScatter:
        """Return weight, mean and variance of the columns of Y. O(rows × n_outputs)."""
        return MeanAndScatter.of_columns(self.coded(), weight)

    def choices(self, scores: Float, weight: Float) -> tuple[Float, npt.NDArray[np.intp], Float]:
        """Return each row once for every class, weighted by the probability of the class."""
        codes = np.tile(np.arange(self.n_classes), len(scores))
        weights: Float = (weight[:, None] * self.P).ravel()
        return np.repeat(scores, self.n_classes, axis=0), codes, weights


@dataclass(frozen=True)
class TaughtValues(ValueTargets):
    """Values that another model predicts.

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_outputs)
        Values that a model learns.
    truth : ndarray of shape (n_rows, n_outputs)
        Values that predictions are compared with.
    sources : ndarray of shape (n_rows, m)
        See :class:`TaughtClasses`.
    """

    truth: Float
    sources: npt.NDArray[np.intp]

    @property
    def origin(self) -> npt.NDArray[np.intp]:
        """Numbers of the given rows that each row was made of."""
        return self.sources

    def take(self, rows: Rows) -> TaughtValues:
        """Return the targets of some of the rows."""
        return TaughtValues(self.Y[rows], self.truth[rows], self.sources[rows])

    def joined(self, more: Targets) -> TaughtValues:
        """Return these targets, and those of more rows behind them."""
        assert isinstance(more, TaughtValues)
        return TaughtValues(
            np.concatenate([self.Y, more.Y]),
            np.concatenate([self.truth, more.truth]),
            np.concatenate([self.sources, more.sources]),
        )

    def row_scores(self, scores: Float) -> Float:
        """Return the score of each row: minus its squared error, so that larger is better."""
        return ValueTargets(self.truth).row_scores(scores)
