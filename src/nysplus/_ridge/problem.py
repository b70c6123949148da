"""A ridge problem on Nyström features: its rows, its moments, and the choice of the ridge.

Models are judged by rows that they have not seen: by the closed-form leave-one-out scores of
their own rows. Classes are judged as classes, by accuracy, values by their squared error.
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
TRIAL_ROWS = 10_000


@dataclass(frozen=True)
class Task:
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
    judged : bool
        Whether the merit of the solution is wanted even where there is no ridge to choose.
    """

    blocks: RowBlocks
    feature_map: FeatureMap
    alphas: tuple[float, ...]
    rng: np.random.RandomState
    stage: str
    judged: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of temporaries a row of a pass needs: X twice, K, and Φ twice."""
        n, k = self.feature_map.n_landmarks, self.feature_map.rank
        return 8 * (2 * self.blocks.n_features + n + 2 * k)

    @cached_property
    def trials(self) -> RowBlocks:
        """`TRIAL_ROWS` rows at random, in order and in memory; all rows where they are no more."""
        if self.blocks.n_candidates <= TRIAL_ROWS:
            return self.blocks
        return self.blocks.some(np.sort(self.blocks.sample(TRIAL_ROWS, self.rng)))


@dataclass(frozen=True)
class Choice:
    """A ridge and how well it serves rows that were left out.

    Attributes
    ----------
    alpha : float
    merit : float or None
        Accuracy; for values, minus the mean squared error by generalized cross-validation. None
        where nothing was to be chosen.
    n_rows : int
        Rows whose kernel values were computed for it.
    """

    alpha: float
    merit: float | None
    n_rows: int


def sum_moments(task: Task, evaluate: Callable[[Any], Float], k: int) -> Moments:
    """Return the moments of all rows, of whatever `evaluate` makes of them, in one pass."""

    def part(block: Block) -> Moments:
        return Moments.of(evaluate(block.X), block.Y, block.weight)

    zero = partial(Moments.zero, k, task.blocks.n_outputs)
    return task.blocks.fold(part, zero, task.row_bytes, f"{task.stage}: moments")


def choose_alpha(task: Task, path: RidgePath, dtype: Any) -> Choice:
    """Choose α by rows left out of the fit one at a time.

    Classes: by the closed-form leave-one-out accuracy on all rows or a uniform part of them.
    Values: by generalized cross-validation, which needs no rows.
    """
    alphas = task.alphas
    if len(alphas) == 1 and not task.judged:
        return Choice(alphas[0], None, 0)
    if not task.blocks.discrete:
        alpha = min(alphas, key=path.generalized_cross_validation)
        return Choice(alpha, -path.generalized_cross_validation(alpha), 0)
    columns = task.feature_map.columns(dtype)
    rotation = task.feature_map.collapse(path.vectors).astype(dtype)
    centre = (path.moments.feature_mean @ path.vectors).astype(dtype)

    def scores(block: Block) -> list[Float]:
        Q = columns(block.X) @ rotation
        Q -= centre
        return path.leave_one_out(Q, block.Y, block.unit_weight, alphas)

    return _most_accurate(task, scores, task.trials, "leave-one-out")


def _most_accurate(
    task: Task, scores: Callable[[Block], list[Float]], rows: RowBlocks, what: str
) -> Choice:
    """Return the α that is best on some rows, by the scores that each α gives them."""

    def part(block: Block) -> Float:
        weight = block.weight
        right = [weight @ block.labels.hits(score) for score in scores(block)]
        counted = np.where(weight > 0, np.maximum(block.counts, 1.0), 0.0)
        return np.array([*right, weight.sum(), counted.sum()])

    zero = partial(np.zeros, len(task.alphas) + 2)
    sums = rows.fold(part, zero, task.row_bytes, f"{task.stage}: {what}")
    accuracies = sums[:-2] / sums[-2]
    alpha = largest_within_noise(task.alphas, accuracies, float(sums[-1]))
    return Choice(alpha, float(accuracies[task.alphas.index(alpha)]), rows.n_rows)


def best_on(
    task: Task, rows: Blocks, dtype: Any, models: dict[float, tuple[Float, Float]]
) -> Choice:
    """Return the α whose weights and intercept serve the given rows best."""
    columns = task.feature_map.columns(dtype)
    expansions = [
        (task.feature_map.collapse(models[alpha][0]).astype(dtype), models[alpha][1])
        for alpha in task.alphas
    ]

    def scores(block: Block) -> list[Float]:
        K = columns(block.X)
        return [K @ A + b for A, b in expansions]

    if task.blocks.discrete:
        return _most_accurate(task, scores, rows, "left-out rows")

    def squares(block: Block) -> Float:
        errors = [((block.Y - score) ** 2).sum(axis=1) for score in scores(block)]
        return np.array([*(block.weight @ error for error in errors), block.weight.sum()])

    zero = partial(np.zeros, len(task.alphas) + 1)
    sums = rows.fold(squares, zero, task.row_bytes, f"{task.stage}: left-out rows")
    best = int(np.argmin(sums[:-1]))
    return Choice(task.alphas[best], -float(sums[best] / sums[-1]), rows.n_rows)
