"""Shapley values by antithetic permutations, for functions that are no product over columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.explain.function import ExplainedFunction

# Permutations of a row altogether, where their number is not given: standard errors are then about
# a sixteenth of the spread of a column's gain.
TOTAL = 256
# Coordinates and kernel values of coalitions that are in memory at once, for each thread.
VALUES = 2**21

Permutations = npt.NDArray[np.intp]


def permutation_count(n_background: int) -> int:
    """Return the number of permutations for each background row: `TOTAL` over all, 2 at least."""
    return max(2, -(-TOTAL // n_background))


def draw(n: int, m: int, d: int, rng: np.random.RandomState) -> Permutations:
    """Return n random permutations of d columns for each of m background rows, (n, m, d)."""
    ranks: Permutations = rng.random_sample((n, m, d)).argsort(axis=2)
    return ranks


@dataclass(frozen=True, eq=False)
class Sampler:
    """Values of the kernel's part of the scores, along the permutations of background rows.

    Every permutation is walked from the background row to the row, and once more with the columns
    in reverse order, which cancels a part of the error. All rows have the same permutations.

    Attributes
    ----------
    function : ExplainedFunction
    background : ndarray of shape (m, D)
        Code columns.
    permutations : ndarray of shape (n, m, players that have columns)
    """

    function: ExplainedFunction
    background: Float
    permutations: Permutations

    def values(self, C: Float) -> tuple[Float, Float]:
        """Return values and standard errors of rows, both of shape (N, columns, L).

        The mean over the background is exact; errors come from the permutations alone.

        Parameters
        ----------
        C : ndarray of shape (N, D)
            Code columns.
        """
        bound = self.function.expansion.kernel.bind(self.function.expansion.landmarks)
        pairs = list(in_threads(lambda row: self._row(row, bound), C))
        values, errors = (np.stack(each) for each in zip(*pairs, strict=True))
        return self.function.spread(values), self.function.spread(errors)

    def _row(self, row: Float, bound: Callable[[Float], Float]) -> tuple[Float, Float]:
        """Return the values of a row, and their standard errors."""
        (n, m, d), A = self.permutations.shape, self.function.expansion.dual_coef
        width = max(len(A), self.function.expansion.landmarks.shape[1])
        step = max(1, VALUES // (2 * n * d * width))
        total, variance = np.zeros((d, A.shape[1])), np.zeros((d, A.shape[1]))
        for first in range(0, m, step):
            some = slice(first, first + step)
            gains = self._gains(row, some, bound)
            total += gains.mean(axis=0).sum(axis=0)
            variance += gains.var(axis=0, ddof=1).sum(axis=0)
        return total / m, np.sqrt(variance / n) / m

    def _gains(self, row: Float, some: slice, bound: Callable[[Float], Float]) -> Float:
        """Return the gains of columns by permutation, of shape (n, background rows, d, L)."""
        h, there = self.function.expansion, self.background[some]
        order = self.permutations[:, some]
        start = self.function.coordinates(there)
        # what a column adds to the coordinates when it changes from the background to the row
        steps = self.function.by_player(
            (row - there).T[:, :, None] * _matrix(h.projection, len(row))[:, None], np.add.reduceat
        ).transpose(1, 0, 2)
        walked = np.take_along_axis(steps[None], order[..., None], axis=2)
        gains = np.zeros((*order.shape, h.dual_coef.shape[1]))
        begin = bound(start) @ h.dual_coef
        for way in (walked, walked[:, :, ::-1]):
            points = start[None, :, None] + way.cumsum(axis=2)
            scores = (bound(points.reshape(-1, points.shape[3])) @ h.dual_coef).reshape(gains.shape)
            gained = scores.copy()
            gained[:, :, 0] -= begin
            gained[:, :, 1:] -= scores[:, :, :-1]
            gains += gained if way is walked else gained[:, :, ::-1]
        found = np.empty_like(gains)
        np.put_along_axis(found, order[..., None], gains / 2.0, axis=2)
        return found


def _matrix(P: Float | None, D: int) -> Float:
    """Return the map of code columns as a matrix of shape (D, r)."""
    if P is None:
        return np.eye(D)
    return np.diag(P) if P.ndim == 1 else P
