"""The fitted function and the one pipeline that fits it: map, fold, solve, collapse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._blocks import Block, RowBlocks, row_slices
from nysplus._feature_map import Approximation
from nysplus._projection import project
from nysplus._solvers import solve_ridge
from nysplus._storage import Storage
from nysplus._targets import ClassCode, ClassTargets, Code, DiscreteTargets, Float
from nysplus._tasks import LeftOut, Task
from nysplus._threads import in_threads
from nysplus.kernels import CACHED_VALUES, Kernel

# Fewer rows than this make products slow, whatever stays in cache.
MIN_BLOCK_ROWS = 128
# Rows on which float32 coefficients are tried.
TRIED_ROWS = 256


def stored_bytes(array: Any) -> int:
    """Return the bytes of an array, or of the three arrays of a CSR matrix."""
    if sp.issparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)


@dataclass(frozen=True)
class KernelExpansion:
    """``h(x) = k(xP, Z) A + b``, the standard form of every fitted model (eq. 6).

    Attributes
    ----------
    kernel : Kernel
        With all parameters as numbers.
    landmarks : ndarray or CSR matrix of shape (n, r)
        Z, in the coordinates of xP.
    dual_coef : ndarray of shape (n, L)
        A. Its type is the one that the kernel is evaluated in.
    intercept : ndarray of shape (L,)
        b.
    projection : ndarray of shape (d, r), or (d,) for a diagonal one, optional
        P; by default the rows are taken as they are.
    storage : Storage, optional
        The same numbers as they are stored, where that takes fewer bytes: Z, A, b and P are then
        what it unpacks to (see :meth:`unpacked`).
    """

    kernel: Kernel
    landmarks: Any
    dual_coef: Float
    intercept: Float
    projection: Float | None = None
    storage: Storage | None = None

    @classmethod
    def unpacked(cls, kernel: Kernel, storage: Storage) -> KernelExpansion:
        """Return the function whose numbers are stored this way."""
        P = None if storage.projection is None else storage.projection.unpacked()
        Z, A, b = storage.landmarks, storage.dual_coef, storage.intercept
        return cls(kernel, Z.unpacked(), A.unpacked(), b.unpacked(), P, storage)

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers Z, A, b and P as they are stored."""
        if self.storage is not None:
            return self.storage.n_bytes
        arrays = [self.landmarks, self.dual_coef, self.intercept]
        if self.projection is not None:
            arrays.append(self.projection)
        return sum(stored_bytes(array) for array in arrays)

    @cached_property
    def _columns(self) -> Callable[[Any], Float]:
        """``X ↦ k(XP, Z)``, with what depends on the landmarks alone computed once."""
        dtype = self.dual_coef.dtype
        bound = self.kernel.bind(self.landmarks.astype(dtype, copy=False))
        if self.projection is None:
            return bound
        P = self.projection.astype(dtype, copy=False)
        return lambda X: bound(project(X, P))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_columns"}

    def __call__(self, X: Any) -> Float:
        """Return the scores of shape (rows, L). O(n (r + L)) a row, in blocks of rows."""
        n, r = self.landmarks.shape
        dtype = self.dual_coef.dtype
        width = n + 2 * r
        if self.projection is not None:
            width += X.shape[1]
        # K of one block stays in a core's cache between the product that makes it and the
        # product that uses it
        most = max(MIN_BLOCK_ROWS, CACHED_VALUES // n)
        slices = row_slices(X.shape[0], width * dtype.itemsize, most)
        if len(slices) == 1:
            return self._block(X)
        scores = np.empty((X.shape[0], self.dual_coef.shape[1]), dtype=dtype)
        for rows, part in zip(
            slices, in_threads(lambda rows: self._block(X[rows]), slices), strict=True
        ):
            scores[rows] = part
        return scores

    def _block(self, X: Any) -> Float:
        scores: Float = self._columns(X.astype(self.dual_coef.dtype, copy=False)) @ self.dual_coef
        scores += self.intercept
        return scores


@dataclass(frozen=True)
class ExpansionFit:
    """What :func:`fit_expansion` found, and what it cost.

    Attributes
    ----------
    expansion : KernelExpansion
    alpha : float
        The ridge.
    n_kernel_evaluations : int
    solver : str
    merit : float or None
        How well it serves rows that it has not seen (see :class:`~nysplus._tasks.Choice`).
    left_out : LeftOut
        What leaving out rows makes of it.
    """

    expansion: KernelExpansion
    alpha: float
    n_kernel_evaluations: int
    solver: str
    merit: float | None
    left_out: LeftOut


def fit_expansion(
    blocks: RowBlocks,
    landmarks: Any,
    kernel: Kernel,
    approximation: Approximation,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
    stage: str = "ridge",
    judged: bool = False,
) -> ExpansionFit:
    """Fit the ridge regression on the Nyström features of given landmarks.

    O(N n (d + k)) time and O(n² + block) memory in one pass over the rows, and a part of a
    second one where α is chosen by leave-one-out; what the pass computes, and in which
    precision, follows the spectrum of the landmarks' kernel matrix (:mod:`nysplus._solvers`).
    With `judged` the merit is found even where there is no ridge to choose.
    """
    feature_map = approximation.build(kernel, landmarks, rng)
    answer = solve_ridge(Task(blocks, feature_map, alphas, rng, stage, judged))
    A = feature_map.collapse(answer.left_out.W)
    expansion = in_float32(KernelExpansion(kernel, landmarks, A, answer.left_out.b), blocks)
    evaluations = feature_map.n_kernel_evaluations + answer.n_rows * feature_map.n_landmarks
    choice = answer.choice
    return ExpansionFit(
        expansion, choice.alpha, evaluations, answer.solver, choice.merit, answer.left_out
    )


def in_float32(expansion: KernelExpansion, blocks: RowBlocks) -> KernelExpansion:
    """Return an expansion of float32 rows with float32 coefficients, if scores stay right.

    Tried on some rows: the root mean square of what changes may be 1e-4 of the targets' spread.
    """
    if blocks.dtype != np.float32:
        return expansion
    single = replace(
        expansion,
        dual_coef=expansion.dual_coef.astype(np.float32),
        intercept=expansion.intercept.astype(np.float32),
    )
    X = blocks.gather(np.unique(np.linspace(0, blocks.n_rows - 1, TRIED_ROWS).astype(np.intp))).X
    change = np.sqrt(((single(X) - expansion(X)) ** 2).mean(axis=0))
    spread = np.sqrt(blocks.target_spread().variance)
    return single if (change <= 1e-4 * spread).all() else expansion


def evaluate(
    predict: Callable[[Any], npt.NDArray[Any]], blocks: RowBlocks, code: Code | None
) -> float:
    """Return the accuracy, or R² averaged over the outputs, in one pass over the rows.

    Parameters
    ----------
    predict : callable
        From rows to labels or values.
    blocks : RowBlocks
    code : Code
        Of the targets in `blocks`.
    """

    def part(block: Block) -> Float:
        predicted, weight = predict(block.X), block.weight
        if isinstance(code, ClassCode) and isinstance(block.targets, ClassTargets):
            return np.array([weight @ (predicted == code.classes[block.targets.codes])])
        if isinstance(block.targets, DiscreteTargets):
            return np.array([weight @ ((predicted > 0) == (block.Y > 0)).all(axis=1)])
        squares: Float = weight @ (block.Y - predicted.reshape(block.Y.shape)) ** 2
        return squares

    n_sums = 1 if blocks.discrete else blocks.n_outputs
    sums = blocks.fold(part, partial(np.zeros, n_sums), 8 * blocks.n_outputs, "score")
    spread = blocks.target_spread()
    if blocks.discrete:
        return float(sums[0] / spread.mass)
    constant = np.where(sums > 0, 0.0, 1.0)  # what r2_score says of values that do not vary
    ratio = np.divide(sums, spread.scatter, out=1.0 - constant, where=spread.scatter > 0)
    return float(1.0 - ratio.mean())
