"""Closed-form leave-one-out scores of a ridge solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from nysplus._holdout import Positions
from nysplus._ridge.path import Solve, left_out_scores
from nysplus._ridge.problem import RidgeProblem
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._typing import Float


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

    def _scores(self, chosen: Positions, rows: RowBlocks) -> ScoredRows:
        """Return the scores, NaN for rows whose leverage is too large."""
        problem = self.problem
        features, inverse = problem.feature_map.features(np.float64), self.inverse
        W, b, mean, weight = self.W, self.b, self.feature_mean, self.weight
        largest = self.max_leverage
        zero = partial(ScoredRows.zero, problem.blocks.n_outputs)

        def part(block: Block) -> ScoredRows:
            phi = features(block.X)
            whole = phi @ W + b
            phi -= mean
            squares = np.einsum("ij,ji->i", phi, inverse(phi.T))
            leverage = block.unit_weight * (1.0 / weight + squares)
            alone = left_out_scores(whole, block.Y, leverage)
            alone[leverage > largest] = np.nan
            return block.scored(alone, leverage)

        def chosen_part(block: Block) -> ScoredRows:
            some = block.take(np.flatnonzero(np.isin(block.numbers, chosen)))
            return part(some) if len(some) else zero()

        if not rows.remote:
            return part(rows.gather(chosen))
        scores: ScoredRows = rows.fold(
            chosen_part, zero, problem.row_bytes, f"{problem.stage}: left-out rows"
        )
        return scores
