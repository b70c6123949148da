"""Loss functions of training and their gradients with respect to scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nysplus._rows.targets import Targets
from nysplus._typing import Float, Rows

# Exponents below these change no gradient, but their powers and the products of these are numbers
# so small that processors take many times longer for them.
LEAST_EXPONENT, LEAST_LOGIT = -50.0, -30.0


@dataclass(frozen=True)
class Softmax:
    """Cross-entropy of one class among L, a column of scores each.

    Attributes
    ----------
    codes : ndarray of shape (rows,)
    n_outputs : int
        L.
    """

    codes: npt.NDArray[np.intp]
    n_outputs: int

    def take(self, rows: Rows) -> Softmax:
        """Return the losses of some rows."""
        return Softmax(self.codes[rows], self.n_outputs)

    def losses(self, F: Float, smoothing: float) -> Float:
        """Return the loss of each row. A share `smoothing` of each target is spread evenly."""
        F = F - F.max(axis=1, keepdims=True)
        own = F[np.arange(len(F)), self.codes]
        total = np.log(np.exp(F).sum(axis=1))
        losses: Float = total - (1.0 - smoothing) * own - smoothing * F.mean(axis=1)
        return losses

    def slopes(self, F: Float, smoothing: float) -> Float:
        """Turn scores into the derivatives of the losses by them: ``softmax(F) − Y``."""
        F -= F.max(axis=1, keepdims=True)
        np.maximum(F, LEAST_LOGIT, out=F)
        np.exp(F, out=F)
        F /= F.sum(axis=1, keepdims=True)
        F -= smoothing / self.n_outputs
        F[np.arange(len(F)), self.codes] -= 1.0 - smoothing
        return F


@dataclass(frozen=True)
class Logistic:
    """Cross-entropy of labels that hold or not, a column of log-odds each; also of two classes.

    Attributes
    ----------
    Y : ndarray of shape (rows, L)
        0 or 1.
    """

    Y: Float

    @property
    def n_outputs(self) -> int:
        """L."""
        return int(self.Y.shape[1])

    def take(self, rows: Rows) -> Logistic:
        """Return the losses of some rows."""
        return Logistic(self.Y[rows])

    def losses(self, F: Float, smoothing: float) -> Float:
        """Return the sum over the labels of each row's losses."""
        Y = (1.0 - smoothing) * self.Y + 0.5 * smoothing
        losses: Float = (np.logaddexp(0.0, F) - Y * F).sum(axis=1)
        return losses

    def slopes(self, F: Float, smoothing: float) -> Float:
        """Turn scores into the derivatives of the losses by them: ``σ(F) − Y``."""
        np.clip(F, LEAST_LOGIT, -LEAST_LOGIT, out=F)
        np.negative(F, out=F)
        np.exp(F, out=F)
        F += 1.0
        np.reciprocal(F, out=F)
        F -= 0.5 * smoothing
        F -= (1.0 - smoothing) * self.Y
        return F


@dataclass(frozen=True)
class Squared:
    """Squared error of values. Nothing is smoothed.

    Attributes
    ----------
    Y : ndarray of shape (rows, L)
    """

    Y: Float

    @property
    def n_outputs(self) -> int:
        """L."""
        return int(self.Y.shape[1])

    def take(self, rows: Rows) -> Squared:
        """Return the losses of some rows."""
        return Squared(self.Y[rows])

    def losses(self, F: Float, smoothing: float) -> Float:
        """Return the sum over the outputs of each row's losses."""
        losses: Float = ((F - self.Y) ** 2).sum(axis=1)
        return losses

    def slopes(self, F: Float, smoothing: float) -> Float:
        """Turn scores into the derivatives of the losses by them: ``2 (F − Y)``."""
        F -= self.Y
        F *= 2.0
        return F


Loss = Softmax | Logistic | Squared


def loss_of(targets: Targets, dtype: npt.DTypeLike) -> Loss:
    """Return the loss that suits the targets."""
    if not targets.discrete:
        return Squared(targets.coded().astype(dtype))
    if targets.class_codes is not None and targets.n_outputs > 1:
        return Softmax(targets.class_codes, targets.n_outputs)
    return Logistic((targets.coded() > 0).astype(dtype))
