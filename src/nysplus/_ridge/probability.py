"""From scores to probabilities that agree with `predict`.

One number is fitted, the slope β of the log-odds: ``p = softmax(β f)``, which is temperature
scaling (Guo et al. 2017) of one-vs-rest scores. It keeps the order of the scores, whatever β > 0
is. The scores it is fitted to are leave-one-out scores, so no rows are held back and no model is
fitted again. Curves with a slope for each range of scores follow the tails of leave-one-out scores
too closely: landmarks that were chosen for their negative margin are rows of high leverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from nysplus._rows.targets import DiscreteTargets
from nysplus._typing import Float

# Between "the scores say nothing" and "the smallest difference of ridge scores says all".
SLOPES = (1e-3, 1e6)


@dataclass(frozen=True)
class Scaling:
    """``p = softmax(β f)``; one score f stands for the two scores −f and f.

    Attributes
    ----------
    slope : float
        β > 0.
    multilabel : bool
        Whether every column of scores is a label of its own, instead of a class among others.
    """

    slope: float
    multilabel: bool

    def probabilities(self, scores: Float) -> Float:
        """Return the probability of each class, or of each label. O(rows × L).

        Parameters
        ----------
        scores : ndarray of shape (rows, L)
            One column for two classes.

        Returns
        -------
        ndarray of float64
            Of shape (rows, n_classes): rows sum to 1, and the first largest probability is that
            of the predicted class. Or of shape (rows, n_labels): above one half for exactly the
            predicted labels.
        """
        if self.multilabel:
            positive: Float = self._among(_versus(scores.reshape(-1, 1)))[:, 1]
            return positive.reshape(scores.shape)
        return self._among(_versus(scores))

    def _among(self, F: Float) -> Float:
        """Return the probabilities of classes with a column of scores each."""
        winner = F.argmax(axis=1)
        P = _softmax(F, self.slope)
        rows = np.arange(len(F))
        # Scores may differ by less than their probabilities can; the winner then gets the last
        # bit, and more than an even share where it won by more than coming first.
        top = P[rows, winner]
        hidden = (P.argmax(axis=1) != winner) | ((winner > 0) & (top <= 1.0 / F.shape[1]))
        P[rows[hidden], winner[hidden]] = np.nextafter(top[hidden], 1.0)
        return P


def fit_scaling(scores: Float, targets: DiscreteTargets, weight: Float) -> Scaling:
    """Return the scaling of smallest weighted log-loss. O(rows × L), some twenty times.

    The loss is convex in β. Targets are smoothed by one row's worth of even odds, so that β is
    finite where the classes are separable. Scores count as far as the targets ±1 that they stand
    for: leave-one-out scores of rows that the model nearly interpolates lie anywhere beyond.

    Parameters
    ----------
    scores : ndarray of shape (rows, L)
        Leave-one-out scores.
    targets : ClassTargets or IndicatorTargets
        Of the same rows.
    weight : ndarray of shape (rows,)
        A weight of two equals a repeated row.
    """
    F, codes, weight = targets.choices(scores, weight)
    F = _versus(F).clip(-1.0, 1.0)
    F -= F.max(axis=1, keepdims=True)  # so that equal scores give a derivative of exactly 0

    def derivative(slope: float) -> float:
        return loss_derivative(slope, F, codes, weight)

    lowest, highest = SLOPES
    # Without rows, or with scores that do not tell the classes apart, all odds stay even.
    if derivative(lowest) >= 0:
        slope = lowest
    elif derivative(highest) <= 0:
        slope = highest
    else:
        # By the logarithm: the two bounds are nine decades apart.
        slope = np.exp(brentq(lambda t: derivative(np.exp(t)), *np.log(SLOPES), xtol=1e-12))
    return Scaling(float(slope), targets.kind == "labels")


def loss_derivative(slope: float, F: Float, codes: npt.NDArray[np.intp], weight: Float) -> float:
    """Return the derivative by β of the smoothed log-loss ``Σ_i w_i (log Σ_c e^{β f_ic} − β t_i)``.

    ``t_i = (1 − ε) f_{i y_i} + ε mean_c f_ic``, where ε is one row's share of all rows.

    Parameters
    ----------
    slope : float
        β.
    F : ndarray of shape (rows, n_classes)
    codes : ndarray of shape (rows,)
        Class numbers.
    weight : ndarray of shape (rows,)
    """
    # A weight of three counts as three rows, one below one as a row, as everywhere.
    share = 1.0 / (1.0 + np.maximum(weight, weight > 0).sum())
    own = F[np.arange(len(F)), codes]
    target = (1.0 - share) * own + share * F.mean(axis=1)
    expected = (_softmax(F, slope) * F).sum(axis=1)
    return float(weight @ (expected - target))


def _versus(scores: Float) -> Float:
    """Return scores in float64 with a column for each class: one column f becomes −f and f."""
    scores = scores.astype(np.float64, copy=False)
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def _softmax(F: Float, slope: float) -> Float:
    """Return ``softmax(β F)`` row by row; the largest score's power is exactly 1."""
    with np.errstate(over="ignore"):  # a difference of −inf has the power 0
        P: Float = slope * (F - F.max(axis=1, keepdims=True))
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P
