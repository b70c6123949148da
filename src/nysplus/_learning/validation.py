"""Scores of trained models on held-out rows, next to the scores of the unrefined model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nysplus._holdout import PairedComparison, Positions
from nysplus._learning.gradients import Parameters
from nysplus._learning.setup import score_unit
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Block
from nysplus._rows.targets import Targets
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion

# Probabilities below this count as this: one row that is surely wrong does not decide a choice.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class HeldOutFold:
    """A fold of held-out rows, and the unrefined model that was fitted without it.

    Attributes
    ----------
    held_out, others : ndarray of int
        Positions of the rows of the fold, and of all other rows.
    landmarks : ndarray or CSR matrix of shape (n, d)
        Of the unrefined model.
    outputs : ndarray of shape (held-out rows, L)
        Of the unrefined model for the held-out rows.
    """

    held_out: Positions
    others: Positions
    landmarks: Any
    outputs: Float


@dataclass(frozen=True)
class TrainedModel:
    """A model trained without a fold, and its outputs for the rows of the fold."""

    parameters: Parameters
    expansion: KernelExpansion
    outputs: Float


@dataclass(frozen=True)
class ValidationScores:
    """Scores of trained models on the rows of one or several folds.

    Attributes
    ----------
    targets : Targets
        Of the held-out rows.
    weight : ndarray of shape (rows,)
    outputs : ndarray of shape (rows, L)
        Each row's outputs by the model that was trained without it.
    unrefined_outputs : ndarray of shape (rows, L)
        The same by the unrefined model.
    rows : ndarray of int
        Numbers of the rows.
    counts : ndarray of shape (rows,)
        The weight without class weights.
    """

    targets: Targets
    weight: Float
    outputs: Float
    unrefined_outputs: Float
    rows: Positions
    counts: Float

    @classmethod
    def of(
        cls, rows: Block, folds: Sequence[HeldOutFold], models: Sequence[TrainedModel]
    ) -> ValidationScores:
        """Join the held-out rows of several folds, with one model for each fold."""
        held_out = np.concatenate([fold.held_out for fold in folds])
        assert rows.targets is not None
        return cls(
            rows.targets.take(held_out),
            rows.weight[held_out],
            np.concatenate([model.outputs for model in models]),
            np.concatenate([fold.outputs for fold in folds]),
            rows.numbers[held_out],
            rows.counts[held_out],
        )

    @property
    def unrefined(self) -> ValidationScores:
        """The scores of the unrefined model in the place of the trained ones."""
        return replace(self, outputs=self.unrefined_outputs)

    @property
    def scored(self) -> ScoredRows:
        """The outputs in their unit, with targets and weights."""
        outputs, Y = self.outputs / self.score_unit, self.targets.coded()
        nothing = np.zeros(len(Y))
        return ScoredRows(self.rows, outputs, Y, self.weight, self.counts, nothing)

    @property
    def row_scores(self) -> Float:
        """Scores of the rows: 1 or 0 for classes, minus the squared error for values."""
        return self.targets.row_scores(self.outputs)

    @property
    def accuracy(self) -> float:
        """The weighted mean of the row scores."""
        return float(self.weight @ self.row_scores / self.weight.sum())

    @property
    def log_loss(self) -> float:
        """The weighted mean log-loss of classes or labels, at the best slope for these rows."""
        labels, outputs = self.targets.labels, self.outputs / self.score_unit
        slope = fit_scaling(outputs, labels, self.weight).slope
        F, codes, weight = labels.choices(outputs, self.weight)
        own = Scaling(slope, multilabel=False).probabilities(F)[np.arange(len(codes)), codes]
        return float(-weight @ np.log(np.maximum(own, LEAST_PROBABILITY)) / weight.sum())

    @cached_property
    def fine_row_scores(self) -> Float:
        """Scores to choose candidates by: for classes, row scores minus errors of probabilities.

        Correct predictions alone tell candidates apart only where rows are very many.
        """
        if not self.targets.discrete:
            return self.row_scores
        outputs, Y = self.outputs / self.score_unit, (self.targets.coded() + 1.0) / 2.0
        P = fit_scaling(outputs, self.targets.labels, self.weight).probabilities(outputs)
        fine: Float = self.row_scores - ((P[:, -Y.shape[1] :] - Y) ** 2).sum(axis=1)
        return fine

    @property
    def mean(self) -> float:
        """The weighted mean of the fine row scores."""
        return float(self.weight @ self.fine_row_scores / self.weight.sum())

    @property
    def score_unit(self) -> float:
        """The unit of the outputs: the largest output of classes, 1 for values."""
        return score_unit(self.outputs) if self.targets.discrete else 1.0

    def better_than(self, other: ValidationScores, needed: float) -> bool:
        """Return whether these scores exceed others by a number of standard errors."""
        comparison = PairedComparison.of(
            other.fine_row_scores, self.fine_row_scores, self.weight, needed
        )
        return comparison.better

    def compared_with_unrefined(self, needed: float) -> PairedComparison:
        """Compare the trained models with the unrefined model."""
        return PairedComparison.of(self.unrefined.row_scores, self.row_scores, self.weight, needed)
