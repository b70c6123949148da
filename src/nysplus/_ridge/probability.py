"""Turn scores into probabilities that agree with `predict`.

One number is fitted, the slope β of the log-odds: ``p = softmax(β f)``. This is temperature scaling
(Guo et al. 2017) of one-vs-rest scores, which keeps their order for every β > 0. It is fitted to
leave-one-out scores, so no rows are held out and no model is fitted again. Calibration curves with
more parameters would follow the tails of leave-one-out scores too closely: landmarks chosen for
their negative margin are rows of high leverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nysplus._rows.targets import DiscreteTargets
from nysplus._typing import Float

# Smallest and largest β: all classes equally likely, and certainty at the smallest difference that
# ridge scores have.
SLOPES = (1e-3, 1e6)
# Relative step of β at which the search for the smallest loss ends.
STEP = 1e-12


@dataclass(frozen=True)
class Scaling:
    """``p = softmax(β f)``; a single score f stands for the two scores −f and f.

    Attributes
    ----------
    slope : float
        β > 0.
    multilabel : bool
        Whether every column of scores belongs to a label, instead of a class.
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
            Classes: shape (rows, n_classes); rows sum to 1, and the first of the largest
            probabilities belongs to the predicted class. Labels: shape (rows, n_labels); above
            one half for exactly the predicted labels.
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
        # Different scores may round to equal probabilities. The winner then gets the next larger
        # number, and also if it exceeds a score before it by too little to exceed an even share.
        top = P[rows, winner]
        hidden = (P.argmax(axis=1) != winner) | ((winner > 0) & (top <= 1.0 / F.shape[1]))
        P[rows[hidden], winner[hidden]] = np.nextafter(top[hidden], 1.0)
        return P


def fit_scaling(scores: Float, targets: DiscreteTargets, weight: Float) -> Scaling:
    """Return the scaling of smallest weighted log-loss. O(rows × L), some ten times.

    The loss is convex in β. Label smoothing by the weight of one row keeps β finite where the
    classes are separable. Scores are clipped to the targets ±1, because leave-one-out scores of
    rows that the model nearly interpolates can be arbitrarily large.

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
    loss = ScalingLoss.of(_versus(F).clip(-1.0, 1.0), codes, weight)
    lowest, highest = SLOPES
    # without rows, or with scores that do not separate the classes, all classes are equally likely
    if loss.derivatives(lowest)[0] >= 0:
        slope = lowest
    elif loss.derivatives(highest)[0] <= 0:
        slope = highest
    else:
        slope = _smallest_loss(loss)
    return Scaling(slope, targets.kind == "labels")


@dataclass(frozen=True)
class ScalingLoss:
    """The smoothed log-loss ``Σ_i w_i (log Σ_c e^{β f_ic} − β t_i)``, a convex function of β.

    ``t_i = (1 − ε) f_{i y_i} + ε mean_c f_ic``, where ε is one row's share of all rows.

    Attributes
    ----------
    F : ndarray of shape (n_classes, rows)
        Scores minus the largest score of the row. Sums over classes are then sums of long rows.
    target : ndarray of shape (rows,)
        ``t_i``, also minus the largest score.
    weight : ndarray of shape (rows,)
    """

    F: Float
    target: Float
    weight: Float

    @classmethod
    def of(cls, scores: Float, codes: npt.NDArray[np.intp], weight: Float) -> ScalingLoss:
        """Return the loss of scores of shape (rows, n_classes), and of class numbers."""
        # a weight of three counts as three rows, a weight below one as one row, as in Moments
        share = 1.0 / (1.0 + np.maximum(weight, weight > 0).sum())
        # differences, so that equal scores give a derivative of exactly 0
        F = np.ascontiguousarray((scores - scores.max(axis=1, keepdims=True)).T)
        own = F[codes, np.arange(len(codes))]
        return cls(F, (1.0 - share) * own + share * F.mean(axis=0), weight)

    def derivatives(self, slope: float) -> tuple[float, float]:
        """Return the first and the second derivative by β. O(rows × n_classes)."""
        P = np.exp(slope * self.F)
        P /= P.sum(axis=0)
        P *= self.F
        mean = P.sum(axis=0)
        variance = np.einsum("ci,ci->i", P, self.F) - mean**2
        return float(self.weight @ (mean - self.target)), float(self.weight @ variance)


def _smallest_loss(loss: ScalingLoss) -> float:
    """Return the β between `SLOPES` of smallest loss, by Newton's method in ``log β``.

    Steps that leave the bracket, or that shrink by less than half, are replaced by bisection.
    """
    low, high = np.log(SLOPES)
    t, last = 0.0, high - low
    while last > STEP:
        slope = float(np.exp(t))
        first, second = loss.derivatives(slope)
        low, high = (low, t) if first > 0 else (t, high)
        step = -first / (slope * second) if second > 0 else np.inf
        if not (low <= t + step <= high and abs(step) <= 0.5 * last):
            step = 0.5 * (low + high) - t
        t, last = t + step, abs(step)
    return float(np.exp(t))


def _versus(scores: Float) -> Float:
    """Return scores in float64 with a column for each class: one column f becomes −f and f."""
    scores = scores.astype(np.float64, copy=False)
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def _softmax(F: Float, slope: float) -> Float:
    """Return ``softmax(β F)`` of every row; the exponential of the largest score is exactly 1."""
    with np.errstate(over="ignore"):  # exp(−inf) is 0
        P: Float = slope * (F - F.max(axis=1, keepdims=True))
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    return P
