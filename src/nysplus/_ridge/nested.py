"""Models on the leading ones of some landmarks, from one pass over the rows.

Landmarks are put into the order in which they lower the ridge objective most. Features of which
the first m are those of the first m landmarks then make the moments of every smaller model a
block of the largest one's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular

from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.fit import in_float32
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._ridge.problem import RidgeProblem, choose_alpha, sum_moments
from nysplus._ridge.solvers import GramFirst
from nysplus._rows.blocks import Blocks
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel


@dataclass(frozen=True)
class NestedFit:
    """A model and its ridge."""

    alpha: float
    expansion: KernelExpansion

    def reordered(self, order: npt.NDArray[np.intp]) -> NestedFit:
        """Return the same model with its landmarks in another order."""
        landmarks, A = self.expansion.landmarks[order], self.expansion.dual_coef[order]
        return replace(self, expansion=replace(self.expansion, landmarks=landmarks, dual_coef=A))

    def behind(self, projection: Float | None) -> NestedFit:
        """Return the same model of rows that are yet to be projected."""
        return replace(self, expansion=replace(self.expansion, projection=projection))


@dataclass(frozen=True)
class NestedSums:
    """The moments of the training rows on some landmarks, from which models follow."""

    task: RidgeProblem
    trials: Blocks  # that ridges are chosen on
    moments: Moments

    @classmethod
    def over(cls, task: RidgeProblem, trials: Blocks) -> NestedSums:
        """Sum the moments up, in one pass."""
        feature_map = task.feature_map
        dtype = _feature_dtype(task)
        exact = any(not way.polished for way in GramFirst.where_allowed(task))
        if exact and dtype is np.float64:  # whitened at the end, at half the cost
            columns = feature_map.columns(np.float64)
            moments = sum_moments(task, columns, feature_map.n_landmarks)
            return cls(task, trials, moments.mapped(feature_map.transposed))
        features = feature_map.features(dtype)
        return cls(task, trials, sum_moments(task, features, feature_map.rank))

    @cached_property
    def _path(self) -> RidgePath:
        return RidgePath(self.moments)

    def fit(self) -> NestedFit:
        """Choose the ridge on the training rows, and solve."""
        feature_map = self.task.feature_map
        judged = replace(self.task, blocks=self.trials)
        alpha = choose_alpha(judged, self._path, _feature_dtype(self.task)).alpha
        found = self._path.solve(alpha)
        A = feature_map.collapse(found.W)
        expansion = KernelExpansion(feature_map.kernel, feature_map.landmarks, A, found.b)
        return NestedFit(alpha, in_float32(expansion, self.task.blocks))

    def ordered(self, n: int, alpha: float) -> tuple[npt.NDArray[np.intp], NestedSums]:
        """Order the landmarks: those first that lower the objective most, as to the first `n`.

        Returns the order, and the sums on the first `n`.

        With the landmarks' own features as columns of P, ``φ Pᵀ`` are the kernel values that the
        features φ were made from. ``P = QR`` for the chosen ones makes features ``φ Q``, of which
        the first m are those of the first m landmarks, with the whitening ``R⁻¹``. Nothing is
        lost: Q is orthogonal. O(n³).
        """
        feature_map, moments = self.task.feature_map, self.moments
        (expert,) = feature_map.experts
        _check_nests(feature_map.kernel, expert.triangular)
        P = feature_map.features()(feature_map.landmarks).T
        H = P.T @ (moments.scatter @ P + alpha * P)
        order, rank = _completed(P, forward_order(H, P.T @ moments.cross, n), n)
        Q, R = qr(P[:, order[:rank]], mode="economic", check_finite=False)
        whitening = solve_triangular(R, np.eye(rank), check_finite=False)
        expert = replace(expert, columns=slice(0, rank), whitening=whitening, triangular=True)
        landmarks = feature_map.landmarks[order[:n]]
        nested = FeatureMap(feature_map.kernel, landmarks, (expert,), 0)
        task = replace(self.task, feature_map=nested)
        return order, replace(self, task=task, moments=moments.mapped(lambda G: Q.T @ G))

    def leading(self, n: int) -> NestedSums:
        """Return the sums on the first `n` landmarks of ordered ones: blocks of these."""
        feature_map, moments = self.task.feature_map, self.moments
        (expert,) = feature_map.experts
        rank = min(n, feature_map.rank)
        first = replace(expert, columns=slice(0, rank), whitening=expert.whitening[:rank, :rank])
        fewer = replace(feature_map, landmarks=feature_map.landmarks[:n], experts=(first,))
        part = replace(
            moments,
            feature_mean=moments.feature_mean[:rank],
            scatter=moments.scatter[:rank, :rank],
            cross=moments.cross[:rank],
        )
        return replace(self, task=replace(self.task, feature_map=fewer), moments=part)


def _feature_dtype(task: RidgeProblem) -> type[np.floating[Any]]:
    """Return float32 for float32 rows, where the landmarks' kernel matrix allows it."""
    single = task.blocks.dtype == np.float32 and task.feature_map.allows_float32
    return np.float32 if single else np.float64


def _check_nests(kernel: Kernel, definite: bool) -> None:
    if not (definite or kernel.positive_semidefinite):
        raise ValueError(
            f"The matrix of {kernel!r} between the landmarks has negative eigenvalues: its "
            "features do not nest. Use another kernel, or fit each size."
        )


def forward_order(H: Float, C: Float, n: int) -> npt.NDArray[np.intp]:
    """Choose columns by forward selection: next is the one that lowers the objective most.

    For columns K with ``H = KᵀK + αB`` and ``C = KᵀY``, the minimum of the ridge objective over
    those chosen is ``‖Y‖² − ‖L⁻¹C‖²`` with ``H = LLᵀ`` among them: a Cholesky factorisation whose
    pivot is the largest ``‖c_j‖² / h_jj`` of what is left, not the largest ``h_jj``. O(n² N) for
    N columns.

    Parameters
    ----------
    H : ndarray of shape (N, N)
    C : ndarray of shape (N, L)
    n : int
        How many to choose.

    Returns
    -------
    ndarray of int of shape (at most n,)
        The columns in the order of choice. It ends where what is left of the others, in H, is
        rounding error.
    """
    left, C = H.diagonal().copy(), C.copy()
    floor = len(H) * np.finfo(np.float64).eps * left
    factor = np.zeros((n, len(H)))
    order: list[int] = []
    for t in range(n):
        gains = np.divide((C**2).sum(axis=1), left, out=np.full(len(H), -1.0), where=left > floor)
        j = int(gains.argmax())
        if gains[j] < 0:
            break
        root = np.sqrt(left[j])
        row = (H[j] - factor[:t, j] @ factor[:t]) / root
        C -= np.outer(row, C[j] / root)
        left -= row**2
        left[j] = 0.0  # never again
        factor[t] = row
        order.append(j)
    return np.array(order, dtype=np.intp)


def _completed(P: Float, chosen: npt.NDArray[np.intp], n: int) -> tuple[npt.NDArray[np.intp], int]:
    """Order all columns of P, and count those of the first `n` that are independent.

    Where forward selection has ended before: H has squared the condition number of P,
    which still tells apart what H does not. Next are those farthest from the span of all before.
    """
    rest = np.setdiff1d(np.arange(P.shape[1]), chosen)
    missing = min(n, len(P)) - len(chosen)
    if missing <= 0:
        return np.concatenate([chosen, rest]), len(chosen)
    Q, _ = qr(P[:, chosen], check_finite=False)
    beyond = (Q.T @ P[:, rest])[len(chosen) :]
    R, pivots = qr(beyond, mode="r", pivoting=True, check_finite=False)
    floor = len(P) * np.finfo(np.float64).eps * np.linalg.norm(P, axis=0).max()
    independent = int(np.count_nonzero(np.abs(R.diagonal()[:missing]) > floor))
    return np.concatenate([chosen, rest[pivots]]), len(chosen) + independent
