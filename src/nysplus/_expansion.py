"""The fitted function and the one pipeline that fits it: map, fold, solve, collapse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._blocks import Block, Blocks, row_slices
from nysplus._feature_map import Approximation, FeatureMap
from nysplus._ridge import Moments, RidgePath, largest_within_noise
from nysplus._targets import DiscreteTargets, Float
from nysplus.kernels import Kernel


def stored_bytes(array: Any) -> int:
    """Return the bytes of an array, or of the three arrays of a CSR matrix."""
    if sp.issparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)


@dataclass(frozen=True)
class KernelExpansion:
    """``h(x) = k(x, Z) A + b``, the standard form of every fitted model (eq. 6).

    Attributes
    ----------
    kernel : Kernel
        With all parameters as numbers.
    landmarks : ndarray or CSR matrix of shape (n, d)
        Z.
    dual_coef : ndarray of shape (n, L)
        A. Its type is the one that the kernel is evaluated in.
    intercept : ndarray of shape (L,)
        b.
    """

    kernel: Kernel
    landmarks: Any
    dual_coef: Float
    intercept: Float

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers Z, A and b."""
        return stored_bytes(self.landmarks) + self.dual_coef.nbytes + self.intercept.nbytes

    def __call__(self, X: Any) -> Float:
        """Return the scores of shape (rows, L). O(n (d + L)) a row, in blocks of rows."""
        n, d = self.landmarks.shape
        dtype = self.dual_coef.dtype
        Z = self.landmarks.astype(dtype, copy=False)
        scores = np.empty((X.shape[0], self.dual_coef.shape[1]), dtype=dtype)
        for rows in row_slices(X.shape[0], (n + 2 * d) * dtype.itemsize):
            K = self.kernel(X[rows].astype(dtype, copy=False), Z)
            np.matmul(K, self.dual_coef, out=scores[rows])
        scores += self.intercept.astype(dtype)
        return scores


@dataclass(frozen=True)
class ExpansionFit:
    """What :func:`fit_expansion` found, and what it cost."""

    expansion: KernelExpansion
    alpha: float
    n_kernel_evaluations: int


def fit_expansion(
    blocks: Blocks,
    landmarks: Any,
    kernel: Kernel,
    approximation: Approximation,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
    stage: str = "ridge",
) -> ExpansionFit:
    """Fit the ridge regression on the Nyström features of given landmarks.

    One pass over the rows for the moments, a second one where α is chosen by leave-one-out.
    float32 rows are passed in float32 where the spectrum allows it
    (`FeatureMap.allows_float32`, then `_exact_enough`) and in float64 otherwise.
    O(N n (d + k)) time; O(n² + block) memory, N × n is never held.
    """
    feature_map = approximation.build(kernel, landmarks, rng)
    evaluations = feature_map.n_kernel_evaluations
    single = blocks.dtype == np.float32 and feature_map.allows_float32
    for dtype in (np.float32, np.float64) if single else (np.float64,):
        path = RidgePath.of(_moments(blocks, feature_map, dtype, stage))
        alpha, passes = _choose(blocks, feature_map, path, alphas, dtype, stage)
        evaluations += (1 + passes) * blocks.n_rows * feature_map.n_landmarks
        W, b = path.solve(alpha)
        A = feature_map.collapse(W)
        if dtype is np.float64 or _exact_enough(feature_map, path, alpha, W, A):
            break
    expansion = KernelExpansion(kernel, landmarks, A.astype(dtype), b.astype(dtype))
    return ExpansionFit(expansion, alpha, evaluations)


def _exact_enough(
    feature_map: FeatureMap, path: RidgePath, alpha: float, W: Float, A: Float
) -> bool:
    """Certify a float32 pass: objective within 1e-6 (relative), scores within 1e-4.

    A relative error δ of the features moves the solution by about ``δ‖W‖ / (s_min + α)`` and
    the objective J, which is flat at its minimum, by its square times the curvature:
    ``δ²‖W‖² / (s_min + α)``. That is an order of magnitude, so a hundred times as much must
    stay within the tolerance. Scores are off by about ``ε‖A‖`` in float32.
    """
    penalty = float((W**2).sum())
    objective = path.residual(alpha) + alpha * penalty
    gap = feature_map.float32_noise**2 * penalty / (path.values.min() + max(alpha, 1e-300))
    score_error = np.finfo(np.float32).eps * np.linalg.norm(A, axis=0).max()
    return bool(100.0 * gap <= 1e-6 * objective and score_error <= 1e-4)


def _row_bytes(blocks: Blocks, feature_map: FeatureMap) -> int:
    """Bytes of temporaries a row of a pass needs: X twice, K, and Φ three times."""
    return 8 * (2 * blocks.n_features + feature_map.n_landmarks + 3 * feature_map.rank)


def _moments(blocks: Blocks, feature_map: FeatureMap, dtype: npt.DTypeLike, stage: str) -> Moments:
    """Return the moments of all rows in one pass."""

    def part(block: Block) -> Moments:
        return Moments.of(feature_map.features(block.X, dtype), block.Y, block.weight)

    return blocks.fold(part, _row_bytes(blocks, feature_map), f"{stage}: moments")


def _choose(
    blocks: Blocks,
    feature_map: FeatureMap,
    path: RidgePath,
    alphas: tuple[float, ...],
    dtype: npt.DTypeLike,
    stage: str,
) -> tuple[float, int]:
    """Choose α; return it and the passes this took.

    Classes are judged as classes: by the closed-form leave-one-out accuracy over all rows, in
    one more pass. Values are judged by generalized cross-validation, which needs none.
    """
    targets = blocks.targets
    if len(alphas) == 1:
        return alphas[0], 0
    if not isinstance(targets, DiscreteTargets):
        return min(alphas, key=path.generalized_cross_validation), 0

    def part(block: Block) -> Float:
        features = feature_map.features(block.X, dtype)
        scores = path.leave_one_out(features, block.Y, block.unit_weight, alphas)
        return np.array([block.weight @ targets.hits(score, block.rows) for score in scores])

    right = blocks.fold(part, _row_bytes(blocks, feature_map), f"{stage}: leave-one-out")
    return largest_within_noise(alphas, right / path.moments.weight, path.moments.count), 1
