"""Fit nested models, on the first m of n landmarks for several m, from one pass over the rows.

Landmarks are ordered by forward selection: the next one lowers the ridge objective most. Features
are chosen so that the first m of them are the features of the first m landmarks. The moments of
every smaller model are then leading blocks of the moments of the largest model.
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
from nysplus.encoding.code import Code
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel


@dataclass(frozen=True)
class NestedFit:
    """A fitted function and its ridge."""

    alpha: float
    expansion: KernelExpansion

    def reordered(self, order: npt.NDArray[np.intp]) -> NestedFit:
        """Return the same model with its landmarks in another order."""
        landmarks, A = self.expansion.landmarks[order], self.expansion.dual_coef[order]
        return replace(self, expansion=replace(self.expansion, landmarks=landmarks, dual_coef=A))

    def behind(
        self, projection: Float | None, center: Float | None, encoder: Code | None
    ) -> NestedFit:
        """Return the same model for rows before the map ``x ↦ (E(x) − c)P``."""
        mapped = replace(self.expansion, projection=projection, encoder=encoder)
        return replace(self, expansion=mapped.with_center(center))


@dataclass(frozen=True)
class NestedSums:
    """The moments of the training rows, from which a model on these landmarks follows.

    Attributes
    ----------
    problem : RidgeProblem
    validation_rows : Blocks
        Training rows whose leave-one-out scores choose the ridge.
    moments : Moments
    """

    problem: RidgeProblem
    validation_rows: Blocks
    moments: Moments

    @classmethod
    def over(cls, problem: RidgeProblem, validation_rows: Blocks) -> NestedSums:
        """Sum the moments of all rows, in one pass."""
        feature_map = problem.feature_map
        dtype = _feature_dtype(problem)
        exact = any(not solver.polished for solver in GramFirst.where_allowed(problem))
        if exact and dtype is np.float64:  # whitened at the end, at half the cost
            columns = feature_map.columns(np.float64)
            moments = sum_moments(problem, columns, feature_map.n_landmarks)
            return cls(problem, validation_rows, moments.mapped(feature_map.transposed))
        features = feature_map.features(dtype)
        return cls(problem, validation_rows, sum_moments(problem, features, feature_map.rank))

    @cached_property
    def _path(self) -> RidgePath:
        return RidgePath(self.moments)

    def fit(self) -> NestedFit:
        """Choose the ridge by leave-one-out, and solve."""
        feature_map = self.problem.feature_map
        validation = replace(self.problem, blocks=self.validation_rows)
        alpha = choose_alpha(validation, self._path, _feature_dtype(self.problem)).alpha
        found = self._path.solve(alpha)
        A = feature_map.collapse(found.W)
        expansion = KernelExpansion(feature_map.kernel, feature_map.landmarks, A, found.b)
        return NestedFit(alpha, in_float32(expansion, self.problem.blocks))

    def ordered(self, n: int, alpha: float) -> tuple[npt.NDArray[np.intp], NestedSums]:
        """Order the landmarks by forward selection of the first `n`. O(n³).

        Returns the order of all landmarks, and the sums on the first `n`.

        With the landmarks' own features as columns of P, the kernel values of a row with features
        φ are ``φ P``. ``P = QR`` for the first `n` landmarks gives features ``φ Q``, of which the
        first m are features of the first m landmarks, with the whitening ``R⁻¹``. No accuracy is
        lost, because Q is orthogonal.
        """
        feature_map, moments = self.problem.feature_map, self.moments
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
        problem = replace(self.problem, feature_map=nested)
        return order, replace(self, problem=problem, moments=moments.mapped(lambda G: Q.T @ G))

    def leading(self, n: int) -> NestedSums:
        """Return the sums on the first `n` landmarks, after :meth:`ordered`: leading blocks."""
        feature_map, moments = self.problem.feature_map, self.moments
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
        return replace(self, problem=replace(self.problem, feature_map=fewer), moments=part)


def _feature_dtype(problem: RidgeProblem) -> type[np.floating[Any]]:
    """Return float32 for float32 rows, if the landmarks' kernel matrix allows it."""
    single = problem.blocks.dtype == np.float32 and problem.feature_map.allows_float32
    return np.float32 if single else np.float64


def _check_nests(kernel: Kernel, definite: bool) -> None:
    if not (definite or kernel.positive_semidefinite):
        raise ValueError(
            f"The matrix of {kernel!r} between the landmarks has negative eigenvalues: its "
            "features do not nest. Use another kernel, or fit each size."
        )


def forward_order(H: Float, C: Float, n: int) -> npt.NDArray[np.intp]:
    """Choose columns by forward selection: the next column lowers the objective most.

    For columns K with ``H = KᵀK + αB`` and ``C = KᵀY``, the minimum of the ridge objective over
    the chosen columns is ``‖Y‖² − ‖L⁻¹C‖²`` with ``H = LLᵀ`` among them. This is a Cholesky
    factorisation whose pivot has the largest ``‖c_j‖² / h_jj`` of the Schur complement, instead of
    the largest ``h_jj``. O(n² N) for N columns.

    Parameters
    ----------
    H : ndarray of shape (N, N)
    C : ndarray of shape (N, L)
    n : int
        Number of columns to choose.

    Returns
    -------
    ndarray of int of shape (at most n,)
        The columns in the order of choice. It ends where the Schur complement of the other
        columns holds nothing but rounding errors.
    """
    pivots, C = H.diagonal().copy(), C.copy()
    floor = len(H) * np.finfo(np.float64).eps * pivots
    factor = np.zeros((n, len(H)))
    order: list[int] = []
    for t in range(n):
        independent = pivots > floor
        gains = np.full(len(H), -1.0)
        np.divide((C**2).sum(axis=1), pivots, out=gains, where=independent)
        j = int(gains.argmax())
        if gains[j] < 0:
            break
        root = np.sqrt(pivots[j])
        row = (H[j] - factor[:t, j] @ factor[:t]) / root
        C -= np.outer(row, C[j] / root)
        pivots -= row**2
        pivots[j] = 0.0  # exactly, so that it is not chosen again
        factor[t] = row
        order.append(j)
    return np.array(order, dtype=np.intp)


def _completed(P: Float, chosen: npt.NDArray[np.intp], n: int) -> tuple[npt.NDArray[np.intp], int]:
    """Complete the order of the columns of P; count the independent ones among the first `n`.

    Forward selection may end early, because H squares the condition number of P. Columns that are
    independent in P but not in H follow, each the farthest from the span of all before it.
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
