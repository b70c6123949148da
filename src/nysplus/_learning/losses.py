"""Loss functions of training: gradients with respect to scores, and parameters to start from.

Every loss has the methods `take`, `losses`, `slopes`, `intercept` and `first_coefficients`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nysplus._rows.targets import Targets
from nysplus._typing import Float, Rows

# Smaller exponents change no gradient, but lead to subnormal numbers, on which processors are slow.
LEAST_EXPONENT, LEAST_LOGIT = -50.0, -30.0
# The first coefficients of a landmark follow the classes of this many rows near it, with this
# score for the rows' own class. Coefficients of a ridge would be too large to start from.
NEAR_ROWS, FIRST_SCORE = 5, 5.0


class _Softmax:
    """The start of training with one column of scores per class."""

    def intercept(self, Y: Float, weight: Float) -> Float:
        """Return the logarithms of the classes' shares, for targets Y coded ±1."""
        share = _shares(Y, weight)
        logarithms: Float = np.log(share / share.sum())
        return logarithms

    def first_coefficients(self, Y: Float, D: Float) -> Float:
        """Return coefficients to start from, in 0 … `FIRST_SCORE` (see :func:`_near_scores`)."""
        return (_near_scores(Y, D) + FIRST_SCORE) / 2.0


@dataclass(frozen=True)
class Softmax(_Softmax):
    """Cross-entropy of one class among L, with one column of scores per class.

    Attributes
    ----------
    codes : ndarray of shape (rows,)
        Class numbers.
    n_outputs : int
        L.
    """

    codes: npt.NDArray[np.intp]
    n_outputs: int

    def take(self, rows: Rows) -> Softmax:
        """Return the losses of some rows."""
        return Softmax(self.codes[rows], self.n_outputs)

    def losses(self, F: Float, smoothing: float) -> Float:
        """Return the loss of each row, with label smoothing."""
        F = F - F.max(axis=1, keepdims=True)
        own = F[np.arange(len(F)), self.codes]
        total = np.log(np.exp(F).sum(axis=1))
        losses: Float = total - (1.0 - smoothing) * own - smoothing * F.mean(axis=1)
        return losses

    def slopes(self, F: Float, smoothing: float) -> Float:
        """Overwrite scores with the derivatives of the losses: ``softmax(F) − Y``."""
        _softmax(F)
        F -= smoothing / self.n_outputs
        F[np.arange(len(F)), self.codes] -= 1.0 - smoothing
        return F


@dataclass(frozen=True)
class SoftSoftmax(_Softmax):
    """Cross-entropy of probabilities of L classes, with one column of scores per class.

    Attributes
    ----------
    P : ndarray of shape (rows, L)
        With sums of one. Zeros and ones give the losses of :class:`Softmax`.
    """

    P: Float

    @property
    def n_outputs(self) -> int:
        """L."""
        return int(self.P.shape[1])

    def take(self, rows: Rows) -> SoftSoftmax:
        """Return the losses of some rows."""
        return SoftSoftmax(self.P[rows])

    def losses(self, F: Float, smoothing: float) -> Float:
        """Return the loss of each row, with label smoothing."""
        F = F - F.max(axis=1, keepdims=True)
        own = np.einsum("ij,ij->i", self.P, F)
        total = np.log(np.exp(F).sum(axis=1))
        losses: Float = total - (1.0 - smoothing) * own - smoothing * F.mean(axis=1)
        return losses

    def slopes(self, F: Float, smoothing: float) -> Float:
        """Overwrite scores with the derivatives of the losses: ``softmax(F) − P``."""
        _softmax(F)
        F -= smoothing / self.n_outputs
        F -= (1.0 - smoothing) * self.P
        return F


@dataclass(frozen=True)
class Logistic:
    """Cross-entropy of labels, with one column of log-odds per label; also of two classes.

    Attributes
    ----------
    Y : ndarray of shape (rows, L)
        0 or 1, or the probability of a label.
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
        """Overwrite scores with the derivatives of the losses: ``σ(F) − Y``."""
        np.clip(F, LEAST_LOGIT, -LEAST_LOGIT, out=F)
        np.negative(F, out=F)
        np.exp(F, out=F)
        F += 1.0
        np.reciprocal(F, out=F)
        F -= 0.5 * smoothing
        F -= (1.0 - smoothing) * self.Y
        return F

    def intercept(self, Y: Float, weight: Float) -> Float:
        """Return the log-odds of every label, for targets Y coded ±1."""
        share = _shares(Y, weight)
        log_odds: Float = np.log(share / (1.0 - share))
        return log_odds

    def first_coefficients(self, Y: Float, D: Float) -> Float:
        """Return coefficients to start from, in ±`FIRST_SCORE` (see :func:`_near_scores`)."""
        return _near_scores(Y, D)


@dataclass(frozen=True)
class Squared:
    """Squared error of values; label smoothing is ignored.

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
        """Overwrite scores with the derivatives of the losses: ``2 (F − Y)``."""
        F -= self.Y
        F *= 2.0
        return F

    def intercept(self, Y: Float, weight: Float) -> Float:
        """Return zeros, the mean of standardised values."""
        return np.zeros(self.n_outputs)

    def first_coefficients(self, Y: Float, D: Float) -> Float:
        """Return zeros: from a ridge solution training ends with no better model."""
        return np.zeros((D.shape[1], self.n_outputs))


Loss = Softmax | SoftSoftmax | Logistic | Squared


def _softmax(F: Float) -> None:
    """Overwrite scores with their softmax."""
    F -= F.max(axis=1, keepdims=True)
    np.maximum(F, LEAST_LOGIT, out=F)
    np.exp(F, out=F)
    F /= F.sum(axis=1, keepdims=True)


def _shares(Y: Float, weight: Float) -> Float:
    """Return the weighted share of every class or label, for targets Y coded ±1.

    Half a row of each kind is added, so that a class without rows is not impossible.
    """
    shares: Float = (weight @ ((Y + 1.0) / 2.0) + 0.5 * weight.mean()) / (
        weight.sum() + weight.mean()
    )
    return shares


def _near_scores(Y: Float, D: Float) -> Float:
    """Return the mean target of the rows nearest to each landmark, times `FIRST_SCORE`.

    Parameters
    ----------
    Y : ndarray of shape (rows, L)
        Targets coded ±1.
    D : ndarray of shape (rows, n)
        Squared distances to the landmarks.
    """
    near = np.argpartition(D, min(NEAR_ROWS, len(D)) - 1, axis=0)[:NEAR_ROWS]
    scores: Float = FIRST_SCORE * Y[near].mean(axis=0)
    return scores


def loss_of(targets: Targets, dtype: npt.DTypeLike) -> Loss:
    """Return the loss of targets: squared error of values, cross-entropy of classes and labels."""
    if not targets.discrete:
        return Squared(targets.coded().astype(dtype))
    if targets.class_codes is None or targets.n_outputs == 1:
        return Logistic(((targets.coded() + 1.0) / 2.0).astype(dtype))
    if targets.probabilities is not None:
        return SoftSoftmax(targets.probabilities.astype(dtype))
    return Softmax(targets.class_codes, targets.n_outputs)
