"""Pick rows that differ from each other among rows of high score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from nysplus._rows.accumulators import TopRows
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.kernels import Kernel
from nysplus.landmarks.pivoted_cholesky import (
    BLOCK,
    RESIDUAL_FLOOR,
    TIE,
    Positions,
    _check_pool,
    _completed,
    _first_largest,
    pivoted_cholesky,
    require_positive_semidefinite,
)


def farthest_points(X: Any, n: int, weight: Float, rng: np.random.RandomState) -> Positions:
    """Return rows that are far from each other: farthest-point traversal by weighted distance.

    The first has the largest weight, at random where several have; each next one has the largest
    weight times squared distance to the nearest row chosen before. O(rows · n · d) time,
    O(rows · d) memory. Where fewer than `n` rows differ, the last ones are those of the largest
    weight.
    """
    n_rows = X.shape[0]
    _check_pool(n_rows, n, weight)
    X = X.astype(np.float64)
    if not sp.issparse(X):
        X -= X.mean(axis=0)  # far from the origin distances would cancel
    norms = row_norms(X, squared=True)
    nearest = np.full(n_rows, np.inf)
    largest = np.flatnonzero(weight >= (1.0 - TIE) * weight.max())
    j = int(largest[rng.randint(len(largest))])
    chosen: list[int] = []
    while len(chosen) < n and weight[j] > 0 and nearest[j] > 0:
        chosen.append(j)
        scale = norms + norms[j]
        product = safe_sparse_dot(X, X[j].T, dense_output=True)
        distance = scale - 2.0 * np.asarray(product).reshape(n_rows)
        distance[distance <= RESIDUAL_FLOOR * scale] = 0.0  # rounding: the same point
        np.minimum(nearest, distance, out=nearest)
        j = _first_largest(weight * nearest)
    return _completed(np.array(chosen, dtype=np.intp), n, weight, None)


@dataclass(repr=False, eq=False)
class Picker(BaseEstimator):
    """Base class: a subclass picks rows in :meth:`pick`."""

    def check(self) -> None:
        """Raise unless the parameters make sense. Called before any work."""

    def check_kernel(self, kernel: Kernel, rule: str) -> None:
        """Raise if it cannot work with the kernel; `rule` names who asks."""

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return `n` distinct positions out of the rows X by their scores."""
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class LargestScores(Picker):
    """The rows of largest score, whatever they have in common. O(rows log rows).

    The one picker that takes negative scores.
    """

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return the `n` positions of largest score, ties by position."""
        return TopRows.of(n, score, slice(0, len(score))).best()


@dataclass(repr=False, eq=False)
class CholeskyPicker(Picker):
    """Pivots of a Cholesky factorisation by score times residual: see :func:`pivoted_cholesky`.

    Parameters
    ----------
    greedy : bool, default=False
        Whether to take the largest instead of drawing. Drawing is less attracted by outliers.
    block : int, default=128
        Pivots that are proposed at once.
    """

    greedy: bool = False
    block: int = BLOCK

    def check(self) -> None:
        """Raise unless the parameters make sense."""
        check_count("block", self.block)

    def check_kernel(self, kernel: Kernel, rule: str) -> None:
        """Raise unless the kernel may be positive semidefinite."""
        require_positive_semidefinite(kernel, rule)

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return `n` pivots. O(rows · n · (d + n))."""
        return pivoted_cholesky(kernel, X, n, score, rng, self.greedy, self.block)


@dataclass(repr=False, eq=False)
class FarthestPicker(Picker):
    """Rows far from each other by score times squared distance: see :func:`farthest_points`.

    Works with every kernel, since it uses none.
    """

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return `n` positions of the traversal. O(rows · n · d)."""
        return farthest_points(X, n, score, rng)


PICKERS: dict[str, type[Picker]] = {"cholesky": CholeskyPicker, "farthest": FarthestPicker}


def make_picker(picker: Any) -> Picker:
    """Return the picker that the parameter `picker` names, or is; None takes the largest scores."""
    if picker is None:
        return LargestScores()
    if isinstance(picker, Picker):
        return picker
    if isinstance(picker, str) and picker in PICKERS:
        return PICKERS[picker]()
    raise ValueError(
        f"picker={picker!r} is not known. Allowed are None (the largest scores), "
        f"{sorted(PICKERS)}, or a nysplus.landmarks.pivoted_cholesky object."
    )
