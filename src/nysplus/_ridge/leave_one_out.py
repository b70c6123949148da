"""Closed-form leave-one-out scores of a ridge solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from nysplus._holdout import Positions
from nysplus._ridge.path import Solve, left_out_scores
from nysplus._ridge.problem import RidgeProblem
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._typing import Float
from nysplus.kernels import Kernel

# Rows whose kernel values with as many points are computed to use the diagonal alone.
PAIRED_ROWS = 32


@dataclass(frozen=True)
class LeaveOneOut:
    """A ridge solution with everything that its leave-one-out scores need.

    Attributes
    ----------
    problem : RidgeProblem
    W, b : ndarray
        Weights of the features, intercept.
    feature_mean : ndarray of shape (k,)
    weight : float
        Sum of the weights of all rows.
    inverse : callable
        ``R ↦ (S + α)⁻¹ R``, exact or for a sketch of S.
    max_leverage : float
        Largest leverage h for which 1 − h, which scores are divided by, has enough digits.
    in_float64 : callable, optional
        Returns the same with sums in float64, which is used if the leverage of a row is larger.
    """

    problem: RidgeProblem
    W: Float
    b: Float
    feature_mean: Float
    weight: float
    inverse: Solve
    max_leverage: float = np.inf
    in_float64: Callable[[], LeaveOneOut] | None = None

    def scores(self, most: int) -> ScoredRows:
        """Return the scores of rows drawn at random, each by the model fitted without it.

        O(b k²) for b rows, at most `most`. On a cluster only the scores travel.
        """
        return self.scores_of(self.drawn(most))

    def drawn(self, most: int) -> Positions:
        """Draw rows at random, from those at hand; return their numbers among these, in order."""
        return np.sort(self.problem.rows_at_hand.sample(most, self.problem.rng))

    def scores_of(self, chosen: Positions, rows: RowBlocks | None = None) -> ScoredRows:
        """Return the scores of rows by their numbers in `rows`, by default the rows at hand."""
        rows = self.problem.rows_at_hand if rows is None else rows
        found = self._scores(chosen, rows)
        if self.in_float64 is not None and np.isnan(found.scores).any():
            return self.in_float64().scores_of(chosen, rows)
        return found

    def scores_of_members(
        self, rows: Block, landmark: npt.NDArray[np.intp], share: Float
    ) -> ScoredRows:
        """Return the scores of rows in memory by models whose landmarks are not theirs either.

        Landmark z is a mean of rows, and x has a share s of it. Without x it is, to first order in
        s, at ``z' = z + s (z − x)``. The landmarks as they are represent its kernel function up to
        ``k(x, z') − φ(x)·φ(z')`` at x, so that a fit with z' in place of z differs by this times
        the coefficients of z. O(b n d + b k²).

        Parameters
        ----------
        rows : Block
        landmark : ndarray of int of shape (b,)
            The landmark that is a mean of the row and others.
        share : ndarray of shape (b,)
            Share of one observation of the row in it; 0 gives leave-one-out scores as they are.
        """
        features = self.problem.feature_map.features(np.float64)
        phi = features(rows.X)
        found = self._part()(rows, phi)
        if self.in_float64 is not None and np.isnan(found.scores).any():
            return self.in_float64().scores_of_members(rows, landmark, share)
        inside = np.flatnonzero(share)
        if len(inside) == 0:
            return found
        feature_map, landmark = self.problem.feature_map, landmark[inside]
        X = rows.X[inside].astype(np.float64, copy=False)
        Z = feature_map.landmarks[landmark].astype(np.float64, copy=False)
        moved = Z + share[inside, None] * (Z - X)
        lost = _paired(feature_map.kernel, X, moved)
        lost -= np.einsum("ij,ij->i", phi[inside], features(moved))
        scores = found.scores.copy()
        scores[inside] += lost[:, None] * feature_map.collapse(self.W)[landmark]
        return replace(found, scores=scores)

    def _scores(self, chosen: Positions, rows: RowBlocks) -> ScoredRows:
        """Return the scores, NaN for rows whose leverage is too large."""
        problem, part = self.problem, self._part()
        zero = partial(ScoredRows.zero, problem.blocks.n_outputs)

        def chosen_part(block: Block) -> ScoredRows:
            some = block.take(np.flatnonzero(np.isin(block.numbers, chosen)))
            return part(some) if len(some) else zero()

        if not rows.remote:
            return part(rows.gather(chosen))
        scores: ScoredRows = rows.fold(
            chosen_part, zero, problem.row_bytes, f"{problem.stage}: left-out rows"
        )
        return scores

    def _part(self) -> Callable[..., ScoredRows]:
        """Return the function from a block, and its features if they are known, to its scores.

        It does not hold the problem's rows.
        """
        features, inverse = self.problem.feature_map.features(np.float64), self.inverse
        W, b, mean, weight = self.W, self.b, self.feature_mean, self.weight
        largest = self.max_leverage

        def part(block: Block, phi: Float | None = None) -> ScoredRows:
            phi = features(block.X) if phi is None else phi
            whole, centered = phi @ W + b, phi - mean
            squares = np.einsum("ij,ji->i", centered, inverse(centered.T))
            leverage = block.unit_weight * (1.0 / weight + squares)
            alone = left_out_scores(whole, block.Y, leverage)
            alone[leverage > largest] = np.nan
            return block.scored(alone, leverage)

        return part


def _paired(kernel: Kernel, X: Float, Z: Float) -> Float:
    """Return ``k(x_i, z_i)`` of each pair of rows."""
    if kernel.of_differences:
        return kernel(X - Z, np.zeros((1, X.shape[1])))[:, 0]
    values = np.empty(len(X))
    for start in range(0, len(X), PAIRED_ROWS):
        pairs = slice(start, start + PAIRED_ROWS)
        values[pairs] = np.diagonal(kernel(X[pairs], Z[pairs]))
    return values
