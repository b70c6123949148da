"""A ridge problem on Nyström features: its rows, its moments, and the choice of the ridge.

Ridges are compared by the scores of rows that the model has not seen: closed-form leave-one-out
scores, or scores of held-out rows. The score is the accuracy for classes and minus the squared
error for values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from nysplus._holdout import PairedComparison, best_of, draw_rows, largest_within_noise
from nysplus._ridge.feature_map import FeatureMap
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._ridge.rules import DEFAULT_RULES, SolverRules
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._typing import Float


@dataclass(frozen=True)
class RidgeProblem:
    """Rows, features and ridges of a fit.

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
        Whether the solution is scored even where there is no ridge to choose.
    rules : SolverRules
    unused : Block or None
        Rows whose targets have not moved the landmarks, if the others' targets have.
    """

    blocks: RowBlocks
    feature_map: FeatureMap
    alphas: tuple[float, ...]
    rng: np.random.RandomState
    stage: str
    with_score: bool = False
    rules: SolverRules = DEFAULT_RULES
    unused: Block | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of temporaries that a row of a pass needs: X twice, K, and Φ twice."""
        n, k = self.feature_map.n_landmarks, self.feature_map.rank
        return 8 * (2 * self.blocks.n_features + n + 2 * k)

    @cached_property
    def validation_rows(self) -> RowBlocks:
        """Rows for leave-one-out: all rows, or some of every class drawn at random, in memory."""
        most = self.rules.validation_rows
        if self.blocks.n_candidates <= most:
            return self.blocks
        return draw_rows(self.blocks, most, self.rng)

    @property
    def rows_at_hand(self) -> RowBlocks:
        """The validation rows if they have been drawn, and so are in memory; else all rows."""
        at_hand: RowBlocks = self.__dict__.get("validation_rows", self.blocks)
        return at_hand


@dataclass(frozen=True)
class ChosenAlpha:
    """The chosen ridge and its score.

    Attributes
    ----------
    alpha : float
    score : float or None
        Accuracy of rows that were left out; for values, minus the mean squared error, by
        generalized cross-validation or of held-out rows. None if there was no choice.
    n_rows : int
        Number of rows whose kernel values the choice needed.
    """

    alpha: float
    score: float | None
    n_rows: int


def sum_moments(problem: RidgeProblem, evaluate: Callable[[Any], Float], k: int) -> Moments:
    """Return the moments of the `k` features that `evaluate` makes of all rows, in one pass."""

    def part(block: Block) -> Moments:
        return Moments.of(evaluate(block.X), block.Y, block.weight)

    zero = partial(Moments.zero, k, problem.blocks.n_outputs)
    return problem.blocks.fold(part, zero, problem.row_bytes, f"{problem.stage}: moments")


def choose_alpha(
    problem: RidgeProblem, path: RidgePath, dtype: type[np.floating[Any]]
) -> ChosenAlpha:
    """Choose α by leave-one-out.

    Classes: by the closed-form leave-one-out accuracy on the validation rows. Values: by
    generalized cross-validation, which needs no pass. It takes too small an α where few noisy
    targets have moved the landmarks; rows that have not moved them can ask for a larger one.
    """
    alphas = problem.alphas
    if len(alphas) == 1 and not problem.with_score:
        return ChosenAlpha(alphas[0], None, 0)
    if not problem.blocks.discrete:
        alpha = best_of(alphas, score=lambda alpha: -path.generalized_cross_validation(alpha))
        if problem.unused is not None and len(problem.unused) > 1:
            scores = _leave_one_out_scores(problem, path, dtype)
            alpha = _larger_if_better(problem.unused, alpha, alphas, scores)
        return ChosenAlpha(alpha, -path.generalized_cross_validation(alpha), 0)
    scores = _leave_one_out_scores(problem, path, dtype)
    return _most_accurate(problem, scores, problem.validation_rows, "leave-one-out")


Scores = Callable[[Block], list[Float]]


def _leave_one_out_scores(
    problem: RidgeProblem, path: RidgePath, dtype: type[np.floating[Any]]
) -> Scores:
    """Return the function from rows to their leave-one-out scores with each α."""
    columns = problem.feature_map.columns(dtype)
    rotation = problem.feature_map.collapse(path.vectors).astype(dtype)
    centre = (path.moments.feature_mean @ path.vectors).astype(dtype)
    alphas = problem.alphas  # the function goes to other processes, where rows cannot follow

    def scores(block: Block) -> list[Float]:
        Q = columns(block.X) @ rotation
        Q -= centre
        return path.leave_one_out(Q, block.Y, block.unit_weight, alphas)

    return scores


def _larger_if_better(
    rows: Block, alpha: float, alphas: tuple[float, ...], scores: Scores
) -> float:
    """Return α, or a larger one that is better for some rows by a standard error or more."""
    errors = dict(zip(alphas, (((rows.Y - s) ** 2).sum(axis=1) for s in scores(rows)), strict=True))
    larger = [
        other
        for other in alphas
        if other > alpha
        and PairedComparison.of(-errors[alpha], -errors[other], rows.weight, needed=1.0).better
    ]
    return min([*larger, alpha], key=lambda other: float(rows.weight @ errors[other]))


def best_on(
    problem: RidgeProblem,
    rows: Blocks,
    dtype: type[np.floating[Any]],
    models: dict[float, tuple[Float, Float]],
) -> ChosenAlpha:
    """Choose the α whose model has the best score on held-out rows.

    Parameters
    ----------
    problem : RidgeProblem
    rows : Blocks
        Held-out rows.
    dtype : type
        Floating type of the kernel values.
    models : dict
        Weights of the features and intercept for each α.
    """
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
    return _least_squares(problem, scores, rows, "left-out rows")


def _most_accurate(
    problem: RidgeProblem, scores: Scores, rows: RowBlocks, step: str
) -> ChosenAlpha:
    """Return the α of the highest accuracy, by the scores that each α gives some rows.

    Of nearly equal ones it is the largest α that gives up no class.
    """
    n_alphas, n_classes = len(problem.alphas), len(rows.class_rows.counts)

    def part(block: Block) -> Float:
        weight, of_alphas = block.weight, scores(block)
        right = [weight @ block.labels.hits(score) for score in of_alphas]
        counted = np.where(weight > 0, np.maximum(block.counts, 1.0), 0.0)
        found = [block.labels.found(score, weight) for score in of_alphas]
        return np.concatenate([right, [weight.sum(), counted.sum()], *found])

    zero = partial(np.zeros, n_alphas * (1 + n_classes) + 2)
    sums = rows.fold(part, zero, problem.row_bytes, f"{problem.stage}: {step}")
    right, (weight, count), found = np.split(sums, [n_alphas, n_alphas + 2])
    accuracies = right / weight
    found = found.reshape(n_alphas, n_classes)
    alpha = largest_within_noise(problem.alphas, accuracies, float(count), found)
    return ChosenAlpha(alpha, float(accuracies[problem.alphas.index(alpha)]), rows.n_rows)


def _least_squares(
    problem: RidgeProblem, scores: Scores, rows: RowBlocks, step: str
) -> ChosenAlpha:
    """Return the α of the smallest squared error, by the scores that each α gives some rows."""

    def part(block: Block) -> Float:
        errors = [((block.Y - score) ** 2).sum(axis=1) for score in scores(block)]
        return np.array([*(block.weight @ error for error in errors), block.weight.sum()])

    zero = partial(np.zeros, len(problem.alphas) + 1)
    sums = rows.fold(part, zero, problem.row_bytes, f"{problem.stage}: {step}")
    best = best_of(range(len(problem.alphas)), score=lambda i: -sums[i])
    return ChosenAlpha(problem.alphas[best], -float(sums[best] / sums[-1]), rows.n_rows)
