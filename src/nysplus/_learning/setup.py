"""Prepare rows and first parameters for training, and turn trained parameters into a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from nysplus._bytes.budget import ANY_UNIT, ScaleTypes
from nysplus._learning.gradients import UNIT_RBF, Parameters
from nysplus._learning.losses import loss_of
from nysplus._learning.training import TrainingOptions, TrainingRows, train
from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.blocks import Block
from nysplus._rows.projected import composed, project
from nysplus._rows.slicing import row_slices
from nysplus._rows.targets import Targets, ValueTargets
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion, rounded
from nysplus.kernels import Kernel
from nysplus.kernels.base import squared_distances

# Rows that directions and first coefficients come from, and the rows among them for widths.
SKETCHED_ROWS, WIDTH_ROWS = 6000, 1000
# A width is measured by the distance to this many nearest landmarks.
NEAR_LANDMARKS = 3
# Features beyond which their covariance would take too long.
COVARIANCE_FEATURES = 2000
# Smallest unit of a feature, as a share of its farthest value: a feature that is nearly always zero
# must not move a row by many units.
LEAST_UNIT = 0.1
# Smallest unit as a share of the root mean square of all units, where features have about the same
# scale: this is at most so many times the median. A map of features in much smaller units would
# have numbers of very different sizes, which few bits cannot represent.
COMMON_UNIT, LARGEST_RAISE = 0.3, 3.0


@dataclass(frozen=True)
class TrainingSetup:
    """Prepared rows, the start of training, and the transformation back to rows as given.

    Training uses ``(x − μ) / s``, so that learning rates of the map do not depend on the units of
    features. Targets that are values are standardised likewise.

    Attributes
    ----------
    rows : TrainingRows
    mean, unit : ndarray of shape (d,)
        μ and s.
    basis : ndarray of shape (d, r)
        The map that training starts with, but for its scale.
    directions : ndarray of shape (d', r)
        The same map for rows that the metric has mapped already; `basis` without a metric.
    sketched : ndarray of int
        Positions of some of the rows.
    U, Y : ndarray
        These rows in these directions, about the mean, and their coded targets.
    b : ndarray of shape (L,)
        The intercept: scores of rows far from all landmarks, in the unit of the loss.
    target_mean, target_unit : ndarray of shape (L,)
        Of values; zeros and ones for classes and labels.
    kernel : Kernel
        Of width one.
    """

    rows: TrainingRows
    mean: Float
    unit: Float
    basis: Float
    directions: Float
    sketched: npt.NDArray[np.intp]
    U: Float
    Y: Float
    b: Float
    target_mean: Float
    target_unit: Float
    kernel: Kernel

    @classmethod
    def of(
        cls,
        block: Block,
        rank: int,
        rng: np.random.RandomState,
        kernel: Kernel = UNIT_RBF,
        metric: Float | None = None,
    ) -> TrainingSetup:
        """Prepare rows and find directions.

        Parameters
        ----------
        block : Block
        rank : int
            Number of directions.
        rng : RandomState
        kernel : Kernel
            Its width is ignored.
        metric : ndarray of shape (d,) or (d, d'), optional
            Weights of the features, or a linear map: directions and distances at the start are
            those of rows in this metric. The inverses of weights are the units s.
        """
        X, weight = block.X, block.weight
        mean, unit = _mean_and_unit(X)
        some = rng.permutation(len(block))[:SKETCHED_ROWS]
        directions = _directions(project(X[some], metric), rank, rng)
        basis = composed(metric, directions)
        assert basis is not None
        if metric is not None and metric.ndim == 1:
            unit = np.where(metric > 0.0, 1.0 / np.where(metric > 0.0, metric, 1.0), unit)
        standardised, shift = _standardised(X, mean, unit)
        targets, target_mean, target_unit = _standardised_targets(block)
        loss = loss_of(targets, np.float32)
        rows = TrainingRows(standardised, shift, loss, weight / weight.mean())
        U = X[some] @ basis - mean @ basis
        Y = targets.take(some).coded()
        b = loss.intercept(block.Y, weight)
        kernel = clone(kernel).set_params(gamma=1.0)
        return cls(
            rows, mean, unit, basis, directions, some, U, Y, b, target_mean, target_unit, kernel
        )

    def coordinates(self, landmarks: Any) -> Float:
        """Return landmarks, as the kernel of the metric has them, in the coordinates of `U`."""
        found: Float = landmarks @ self.directions - self.mean @ self.basis
        return found

    def first(self, Z: Float, width: float, ridge: float | None = None) -> Parameters:
        """Return parameters to start from.

        Parameters
        ----------
        Z : ndarray of shape (n, r)
            Landmarks in the coordinates of `U`.
        width : float
            Squared distance between a typical row and its nearest landmarks, in units of the
            kernel's width.
        ridge : float, optional
            Coefficients of values are those of least squares with the penalty ``ridge · ‖A‖²``; by
            default those of the loss. Less penalty gives large coefficients, which the first steps
            would tear apart.
        """
        D = squared_distances(self.U, Z)
        n_near = min(NEAR_LANDMARKS, len(Z))
        nearest = np.partition(D[:WIDTH_ROWS], n_near - 1, axis=1)[:, :n_near]
        distance = float(np.median(nearest.mean(axis=1)))
        scale = np.sqrt(width / distance) if distance > 0 else 1.0
        P = scale * self.unit[:, None] * self.basis
        if ridge is None:
            A = self.rows.loss.first_coefficients(self.Y, D)
        else:
            K = self.kernel(scale * self.U, scale * Z)
            A = np.linalg.solve(K.T @ K + ridge * np.eye(len(Z)), K.T @ self.Y)
        return Parameters.of(P, scale * Z, A, np.float32, self.kernel)

    def train(
        self,
        start: Parameters,
        options: TrainingOptions,
        seed: int,
        used: npt.NDArray[np.intp] | None = None,
        seconds: float | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parameters:
        """Return parameters trained on the rows `used`, by default all (see :func:`train`)."""
        used = np.arange(len(self.rows)) if used is None else used
        return train(self.rows, used, start, self.b, options, seed, seconds, advance, self.unit)

    def continue_training(
        self,
        trained: Parameters,
        options: TrainingOptions,
        seed: int,
        seconds: float | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parameters:
        """Continue with all rows from parameters trained with `options` without held-out rows."""
        return self.train(trained, options.continued(), seed, None, seconds, advance)

    def expansion(
        self,
        p: Parameters,
        dtype: np.dtype[Any],
        score_unit: float = 1.0,
        types: ScaleTypes = ANY_UNIT,
    ) -> KernelExpansion:
        """Return the function of the rows as given, with scores divided by `score_unit`.

        Numbers that were trained in few bits are stored so, with scales of the given types; others
        have the type `dtype`.
        """
        P = p.P / self.unit[:, None]
        factor = self.target_unit / score_unit
        b = (self.target_mean + self.target_unit * self.b) / score_unit
        if p.scales is not None:
            bits, scales = p.scales.bits, p.scales
            projection = _integers(P, scales.map, bits.map, types.features)
            landmarks = _integers(p.Z, scales.landmarks, bits.landmarks, types.features)
            offset = (self.mean @ projection.unpacked()).astype(types.features)
            A, unit = p.A * factor, scales.coefficients * factor
            stored = PackedExpansion(
                replace(landmarks, offset=offset),
                _integers(A, unit, bits.coefficients, types.scores),
                PackedArray(b.astype(types.scores)),
                projection,
            )
            return KernelExpansion.unpacked(self.kernel, stored)
        Z = p.Z + self.mean @ P
        A = p.A / score_unit * self.target_unit
        Z, A, b, P = (array.astype(dtype) for array in (Z, A, b, P))
        return KernelExpansion(self.kernel, Z, A, b, P)


def _integers(array: Float, scale: Float, bits: int, scale_type: str) -> PackedArray:
    """Return an array whose numbers are multiples of the scales of its columns.

    A scale below the range of its type is raised to the smallest number of full precision.
    """
    scale = np.maximum(scale, np.finfo(scale_type).tiny).astype(scale_type)
    return PackedArray(rounded(array, scale, bits), scale, bits)


def score_unit(scores: Float) -> float:
    """Return the largest absolute score of classes.

    In this unit scores are at most 1, about as large as the scores of a ridge fitted to ±1.
    """
    return max(float(np.abs(scores).max()), float(np.finfo(np.float32).tiny))


def _mean_and_unit(X: Any) -> tuple[Float, Float]:
    """Return the mean of each feature and its unit: the standard deviation, if not too small."""
    if sp.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
        low, high = min_max_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        low, high = X.min(axis=0), X.max(axis=0)
    farthest = np.maximum(high - mean, mean - low)
    unit = np.maximum(np.sqrt(variance), LEAST_UNIT * farthest)
    common = COMMON_UNIT * np.sqrt((unit**2).mean())
    if common > 0 and common <= LARGEST_RAISE * np.median(unit[unit > 0]):
        unit = np.maximum(unit, common)
    return mean.astype(np.float64), np.where(unit > 0, unit, 1.0).astype(np.float64)


def _standardised(X: Any, mean: Float, unit: Float) -> tuple[Any, Float | None]:
    """Return ``(x − μ) / s`` in float32, and None; for sparse rows ``x / s`` and ``μ / s``."""
    if sp.issparse(X):
        data = (X.data / unit[X.indices]).astype(np.float32)
        return sp.csr_matrix((data, X.indices, X.indptr), X.shape), (mean / unit).astype(np.float32)
    result = np.empty(X.shape, dtype=np.float32)
    for rows in row_slices(len(X), 16 * X.shape[1]):
        result[rows] = (X[rows] - mean) / unit
    return result, None


def _directions(X: Any, rank: int, rng: np.random.RandomState) -> Float:
    """Return the directions in which rows vary most, or the identity for the full rank.

    Of dense rows, from the eigenvectors of the covariance: O(N d²), faster than those of the rows.
    """
    d = X.shape[1]
    if rank >= d:
        return np.eye(d)
    rank = min(rank, X.shape[0] - 1)
    if sp.issparse(X) or d > COVARIANCE_FEATURES:
        with np.errstate(invalid="ignore"):  # equal rows have no variance to divide by
            basis: Float = PCA(rank, random_state=rng).fit(X).components_.T.astype(np.float64)
        return basis
    centred = (X - X.mean(axis=0)).astype(np.float32)
    scatter = (centred.T @ centred).astype(np.float64)
    _, vectors = eigh(scatter, subset_by_index=(d - rank, d - 1))
    leading: Float = vectors[:, ::-1]
    return leading


def _standardised_targets(block: Block) -> tuple[Targets, Float, Float]:
    """Return the targets, values standardised, with their mean and standard deviation."""
    assert block.targets is not None
    if block.targets.discrete:
        n_outputs = block.targets.n_outputs
        return block.targets, np.zeros(n_outputs), np.ones(n_outputs)
    spread = MeanAndScatter.of_columns(block.Y, block.weight)
    unit = np.sqrt(spread.variance)
    unit = np.where(unit > 0, unit, 1.0)
    return ValueTargets((block.Y - spread.mean) / unit), spread.mean, unit
