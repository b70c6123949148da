"""Pick rows that differ from each other from a pool of scored rows.

Scores alone pick similar rows again and again. The pickers multiply the score of a row by its
residual under the rows picked before, or by its distance from them.
"""

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
    check_pool,
    completed,
    first_largest,
    pivoted_cholesky,
    require_positive_semidefinite,
)


def farthest_points(X: Any, n: int, weight: Float, rng: np.random.RandomState) -> Positions:
    """Return rows that are far from each other: farthest-point traversal by weighted distance.

    The first row has the largest weight; ties are broken at random. Each next row has the largest
    product of weight and squared distance to the nearest row before it. O(rows · n · d) time,
    O(rows · d) memory. If fewer than `n` rows are distinct, the last rows are those of the largest
    weight.
    """
    n_rows = X.shape[0]
    check_pool(n_rows, n, weight)
    X = X.astype(np.float64)
    if not sp.issparse(X):
        X -= X.mean(axis=0)  # far from the origin, distances would cancel
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
        j = first_largest(weight * nearest)
    return completed(np.array(chosen, dtype=np.intp), n, weight, None)


@dataclass(repr=False, eq=False)
class Picker(BaseEstimator):
    """Base class: a subclass picks rows in :meth:`pick`."""

    @property
    def by_kernel(self) -> bool:
        """Whether rows are compared by the kernel alone."""
        return False

    def check(self) -> None:
        """Raise unless the parameters make sense. Called before any work."""

    def check_kernel(self, kernel: Kernel, rule: str) -> None:
        """Raise if the picker cannot work with the kernel; `rule` is named in the message."""

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return the positions of `n` distinct rows of X, by their scores."""
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class LargestScores(Picker):
    """The rows of largest score, whether or not they are similar. O(rows log rows).

    The only picker that accepts negative scores.
    """

    @property
    def by_kernel(self) -> bool:
        """True."""
        return True

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return the `n` positions of the largest scores; of equal scores the first."""
        return TopRows.of(n, score, slice(0, len(score))).best()


@dataclass(repr=False, eq=False)
class CholeskyPicker(Picker):
    """Pivots of a Cholesky factorisation by score times residual: see :func:`pivoted_cholesky`.

    Parameters
    ----------
    greedy : bool, default=False
        Whether to take the row of the largest product instead of drawing. Drawing picks fewer
        outliers.
    block : int, default=128
        Number of pivots that are proposed at once.
    """

    greedy: bool = False
    block: int = BLOCK

    @property
    def by_kernel(self) -> bool:
        """True."""
        return True

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

    Works with every kernel, since it does not use the kernel.
    """

    def pick(
        self, kernel: Kernel, X: Any, score: Float, n: int, rng: np.random.RandomState
    ) -> Positions:
        """Return `n` positions of the traversal. O(rows · n · d)."""
        return farthest_points(X, n, score, rng)


PICKERS: dict[str, type[Picker]] = {"cholesky": CholeskyPicker, "farthest": FarthestPicker}


def make_picker(picker: Any) -> Picker:
    """Return the picker of a name, or the picker itself; None takes the largest scores."""
    if picker is None:
        return LargestScores()
    if isinstance(picker, Picker):
        return picker
    if isinstance(picker, str) and picker in PICKERS:
        return PICKERS[picker]()
    raise ValueError(
        f"picker={picker!r} is not known. Allowed are None (the largest scores), "
        f"{sorted(PICKERS)}, or a Picker object."
    )
