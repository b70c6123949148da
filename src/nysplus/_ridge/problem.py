"""A ridge problem on Nyström features: its rows, its moments, and the choice of the ridge.

Models are with_score by rows that they have not seen: by the closed-form leave-one-out scores of
their own rows. Classes are with_score as classes, by accuracy, values by their squared error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath, largest_within_noise
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._typing import Float

# Rows that the ridge is chosen on: a standard error of an accuracy of .22 points at 95 %.
VALIDATION_ROWS = 10_000


@dataclass(frozen=True)
class RidgeProblem:
    """What is to be solved.

    Attributes
    ----------
    blocks : RowBlocks
    feature_map : FeatureMap
    alphas : tuple of float
        Ridges to choose from.
    rng : RandomState
    stage : str
        Name of the passes in progress reports.
    with_score : bool
        Whether the score of the solution is wanted even where there is no ridge to choose.
    """

    blocks: RowBlocks
    feature_map: FeatureMap
    alphas: tuple[float, ...]
    rng: np.random.RandomState
    stage: str
    with_score: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of temporaries a row of a pass needs: X twice, K, and Φ twice."""
        n, k = self.feature_map.n_landmarks, self.feature_map.rank
        return 8 * (2 * self.blocks.n_features + n + 2 * k)

    @cached_property
    def validation_rows(self) -> RowBlocks:
        """All rows, or `VALIDATION_ROWS` of them drawn at random, in order and in memory."""
        if self.blocks.n_candidates <= VALIDATION_ROWS:
            return self.blocks
        return self.blocks.some(np.sort(self.blocks.sample(VALIDATION_ROWS, self.rng)))


@dataclass(frozen=True)
class ChosenAlpha:
    """A ridge and how well it serves rows that were left out.

    Attributes
    ----------
    alpha : float
    score : float or None
        Accuracy; for values, minus the mean squared error by generalized cross-validation. None
        where nothing was to be chosen.
    n_rows : int
        Rows whose kernel values were computed for it.
    """

    alpha: float
    score: float | None
    n_rows: int


def sum_moments(problem: RidgeProblem, evaluate: Callable[[Any], Float], k: int) -> Moments:
    """Return the moments of all rows, of whatever `evaluate` makes of them, in one pass."""

    def part(block: Block) -> Moments:
        return Moments.of(evaluate(block.X), block.Y, block.weight)

    zero = partial(Moments.zero, k, problem.blocks.n_outputs)
    return problem.blocks.fold(part, zero, problem.row_bytes, f"{problem.stage}: moments")


def choose_alpha(problem: RidgeProblem, path: RidgePath, dtype: Any) -> ChosenAlpha:
    """Choose α by rows left out of the fit one at a time.

    Classes: by the closed-form leave-one-out accuracy on all rows or a uniform part of them.
    Values: by generalized cross-validation, which needs no rows.
    """
    alphas = problem.alphas
    if len(alphas) == 1 and not problem.with_score:
        return ChosenAlpha(alphas[0], None, 0)
    if not problem.blocks.discrete:
        alpha = min(alphas, key=path.generalized_cross_validation)
        return ChosenAlpha(alpha, -path.generalized_cross_validation(alpha), 0)
    columns = problem.feature_map.columns(dtype)
    rotation = problem.feature_map.collapse(path.vectors).astype(dtype)
    centre = (path.moments.feature_mean @ path.vectors).astype(dtype)

    def scores(block: Block) -> list[Float]:
        Q = columns(block.X) @ rotation
        Q -= centre
        return path.leave_one_out(Q, block.Y, block.unit_weight, alphas)

    return _most_accurate(problem, scores, problem.validation_rows, "leave-one-out")


def _most_accurate(
    problem: RidgeProblem, scores: Callable[[Block], list[Float]], rows: RowBlocks, what: str
) -> ChosenAlpha:
    """Return the α that is best on some rows, by the scores that each α gives them."""

    def part(block: Block) -> Float:
        weight = block.weight
        right = [weight @ block.labels.hits(score) for score in scores(block)]
        counted = np.where(weight > 0, np.maximum(block.counts, 1.0), 0.0)
        return np.array([*right, weight.sum(), counted.sum()])

    zero = partial(np.zeros, len(problem.alphas) + 2)
    sums = rows.fold(part, zero, problem.row_bytes, f"{problem.stage}: {what}")
    accuracies = sums[:-2] / sums[-2]
    alpha = largest_within_noise(problem.alphas, accuracies, float(sums[-1]))
    return ChosenAlpha(alpha, float(accuracies[problem.alphas.index(alpha)]), rows.n_rows)


def best_on(
    problem: RidgeProblem, rows: Blocks, dtype: Any, models: dict[float, tuple[Float, Float]]
) -> ChosenAlpha:
    """Return the α whose weights and intercept serve the given rows best."""
    columns = problem.feature_map.columns(dtype)
    expansions = [
        (problem.feature_map.collapse(models[alpha][0]).astype(dtype), models[alpha][1])
        for alpha in problem.alphas
    ]

    def scores(block: Block) -> list[Float]:
        K = columns(block.X)
        return [K @ A + b for A, b in expansions]

    if problem.blocks.discrete:
        return _most_accurate(problem, scores, rows, "left-out rows")

    def squares(block: Block) -> Float:
        errors = [((block.Y - score) ** 2).sum(axis=1) for score in scores(block)]
        return np.array([*(block.weight @ error for error in errors), block.weight.sum()])

    zero = partial(np.zeros, len(problem.alphas) + 1)
    sums = rows.fold(squares, zero, problem.row_bytes, f"{problem.stage}: left-out rows")
    best = int(np.argmin(sums[:-1]))
    return ChosenAlpha(problem.alphas[best], -float(sums[best] / sums[-1]), rows.n_rows)
