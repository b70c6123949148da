"""From rows and landmarks to what training starts from, and from what it ends with to a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from nysplus._learning.gradients import UNIT_RBF, Parameters
from nysplus._learning.losses import Loss, Softmax, Squared, loss_of
from nysplus._learning.training import TrainingRows
from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.blocks import Block
from nysplus._rows.slicing import row_slices
from nysplus._rows.targets import Targets, ValueTargets
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel
from nysplus.kernels.base import squared_distances

# Rows that directions and first coefficients come from, and those of them that widths come from.
SKETCHED_ROWS, WIDTH_ROWS = 6000, 1000
# A width is measured by the distance to so many landmarks, a landmark's class by so many rows.
NEAR_LANDMARKS, NEAR_ROWS = 3, 5
# Score of a landmark's own class at first; coefficients of a ridge are too large to start from.
FIRST_SCORE = 5.0
# Least unit of a feature, as a share of its farthest value: a feature that is rarely other than
# zero must not move a row by many units.
LEAST_UNIT = 0.1


@dataclass(frozen=True)
class TrainingSetup:
    """The rows of training, how it starts, and the way back to the rows as given.

    Training sees ``(x − μ) / s``, so that steps of the map do not depend on units, and values as
    targets in the same way.

    Attributes
    ----------
    rows : TrainingRows
    mean, unit : ndarray of shape (d,)
        μ and s.
    basis : ndarray of shape (d, r)
        The first directions.
    U, Y : ndarray
        Some rows in these directions, about the mean, and their coded targets.
    b : ndarray of shape (L,)
    target_mean, target_unit : ndarray of shape (L,)
        Zeros and ones, unless the targets are values.
    kernel : Kernel
        Of width one.
    """

    rows: TrainingRows
    mean: Float
    unit: Float
    basis: Float
    U: Float
    Y: Float
    b: Float
    target_mean: Float
    target_unit: Float
    kernel: Kernel

    @classmethod
    def of(
        cls, block: Block, rank: int, rng: np.random.RandomState, kernel: Kernel = UNIT_RBF
    ) -> TrainingSetup:
        """Make rows ready and find directions. The width of the kernel does not count."""
        X, weight = block.X, block.weight
        mean, unit = _mean_and_unit(X)
        some = rng.permutation(len(block))[:SKETCHED_ROWS]
        basis = _directions(X[some], rank, rng)
        standardised, shift = _standardised(X, mean, unit)
        targets, target_mean, target_unit = _standardised_targets(block)
        loss = loss_of(targets, np.float32)
        rows = TrainingRows(standardised, shift, loss, weight / weight.mean())
        U = X[some] @ basis - mean @ basis
        Y = targets.take(some).coded()
        b = _intercept(block, loss)
        kernel = clone(kernel).set_params(gamma=1.0)
        return cls(rows, mean, unit, basis, U, Y, b, target_mean, target_unit, kernel)

    def narrowed(self, rank: int) -> TrainingSetup:
        """Return the same with the first directions only."""
        if rank >= self.basis.shape[1]:
            return self
        return replace(self, basis=self.basis[:, :rank], U=self.U[:, :rank])

    def first(self, landmarks: Any, width: float) -> Parameters:
        """Return parameters to start from.

        Parameters
        ----------
        landmarks : ndarray or CSR matrix of shape (n, d)
        width : float
            Squared distance between a typical row and the landmarks next to it, in units of the
            kernel's width.
        """
        Z = landmarks @ self.basis - self.mean @ self.basis
        D = squared_distances(self.U, Z)
        n_near = min(NEAR_LANDMARKS, len(Z))
        nearest = np.partition(D[:WIDTH_ROWS], n_near - 1, axis=1)[:, :n_near]
        distance = float(np.median(nearest.mean(axis=1)))
        scale = np.sqrt(width / distance) if distance > 0 else 1.0
        P = scale * self.unit[:, None] * self.basis
        return Parameters.of(P, scale * Z, self._first_coef(D), np.float32, self.kernel)

    def _first_coef(self, D: Float) -> Float:
        """Return coefficients for landmarks at squared distances D of the rows in `U`."""
        loss = self.rows.loss
        if isinstance(loss, Squared):
            # the mean everywhere: from a ridge solution training ends with no better model
            return np.zeros((D.shape[1], loss.n_outputs))
        near = np.argpartition(D, min(NEAR_ROWS, len(D)) - 1, axis=0)[:NEAR_ROWS]
        A: Float = FIRST_SCORE * self.Y[near].mean(axis=0)
        if isinstance(loss, Softmax):
            A = (A + FIRST_SCORE) / 2.0  # of codes 0 and 1
        return A

    def expansion(
        self, p: Parameters, dtype: np.dtype[Any], score_unit: float = 1.0
    ) -> KernelExpansion:
        """Return the function of the rows as given, with scores in a unit."""
        P = p.P / self.unit[:, None]
        Z = p.Z + self.mean @ P
        A = p.A / score_unit * self.target_unit
        b = (self.target_mean + self.target_unit * self.b) / score_unit
        Z, A, b, P = (array.astype(dtype) for array in (Z, A, b, P))
        return KernelExpansion(self.kernel, Z, A, b, P)


def _mean_and_unit(X: Any) -> tuple[Float, Float]:
    """Return the mean of each feature and its standard deviation, the latter not too small."""
    if sp.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
        low, high = min_max_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        low, high = X.min(axis=0), X.max(axis=0)
    farthest = np.maximum(high - mean, mean - low)
    unit = np.maximum(np.sqrt(variance), LEAST_UNIT * farthest)
    return mean.astype(np.float64), np.where(unit > 0, unit, 1.0).astype(np.float64)


def _standardised(X: Any, mean: Float, unit: Float) -> tuple[Any, Float | None]:
    """Return ``(x − μ) / s`` in float32; sparse rows as ``x / s``, and ``μ / s`` beside them."""
    if sp.issparse(X):
        data = (X.data / unit[X.indices]).astype(np.float32)
        return sp.csr_matrix((data, X.indices, X.indptr), X.shape), (mean / unit).astype(np.float32)
    result = np.empty(X.shape, dtype=np.float32)
    for rows in row_slices(len(X), 16 * X.shape[1]):
        result[rows] = (X[rows] - mean) / unit
    return result, None


def _directions(X: Any, rank: int, rng: np.random.RandomState) -> Float:
    """Return the directions in which rows vary most, or all features as they are."""
    if rank >= X.shape[1]:
        return np.eye(X.shape[1])
    rank = min(rank, X.shape[0] - 1)
    with np.errstate(invalid="ignore"):  # rows that are all the same have no variance to divide by
        basis: Float = PCA(rank, random_state=rng).fit(X).components_.T.astype(np.float64)
    return basis


def _standardised_targets(block: Block) -> tuple[Targets, Float, Float]:
    """Return the targets, values about their mean in units of their deviation, and these two."""
    assert block.targets is not None
    n_outputs = block.targets.n_outputs
    if block.targets.discrete:
        return block.targets, np.zeros(n_outputs), np.ones(n_outputs)
    spread = MeanAndScatter.of_columns(block.Y, block.weight)
    unit = np.sqrt(spread.variance)
    unit = np.where(unit > 0, unit, 1.0)
    return ValueTargets((block.Y - spread.mean) / unit), spread.mean, unit


def _intercept(block: Block, loss: Loss) -> Float:
    """Return the scores of rows far from all landmarks, in the unit of the loss.

    The log-odds of every label, the logarithms of the classes' shares, or the mean of values.
    """
    if isinstance(loss, Squared):
        return np.zeros(loss.n_outputs)
    Y, weight = (block.Y + 1.0) / 2.0, block.weight
    # half a row of every kind, so that a class without rows is not impossible
    share = (weight @ Y + 0.5 * weight.mean()) / (weight.sum() + weight.mean())
    if isinstance(loss, Softmax):
        share = share / share.sum()
        other: Float | float = 1.0
    else:
        other = 1.0 - share
    logarithms: Float = np.log(share / other)
    return logarithms
