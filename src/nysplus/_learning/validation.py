"""What rows that were held out say of a learned model and of the one it started from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._holdout import PairedComparison
from nysplus._learning.gradients import Parameters
from nysplus._ridge.probability import fit_scaling
from nysplus._rows.blocks import Block
from nysplus._rows.targets import Targets
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to judge by, and the unrefined model of the former.

    Attributes
    ----------
    held, others : ndarray of int
        Positions of the rows that judge, and of those that are learned from.
    landmarks : ndarray or CSR matrix of shape (n, d)
        Of the unrefined model.
    row_scores : ndarray of shape (rows,)
        What it makes of the rows that judge.
    """

    held: npt.NDArray[np.intp]
    others: npt.NDArray[np.intp]
    landmarks: Any
    row_scores: Float


@dataclass(frozen=True)
class Run:
    """A model trained without some rows, and its scores of these."""

    parameters: Parameters
    model: KernelExpansion
    scores: Float


@dataclass(frozen=True)
class ValidationScores:
    """What models make of rows that they have not seen.

    Attributes
    ----------
    targets : Targets
        Of these rows.
    weight : ndarray of shape (rows,)
    scores : ndarray of shape (rows, L)
    before : ndarray of shape (rows,)
        Merits of the rows with the unrefined model.
    """

    targets: Targets
    weight: Float
    scores: Float
    before: Float

    @classmethod
    def joined(cls, rows: Block, splits: list[Split], runs: list[Run]) -> ValidationScores:
        """Join what was found on several splits of some rows."""
        held = np.concatenate([split.held for split in splits])
        assert rows.targets is not None
        return cls(
            rows.targets.take(held),
            rows.weight[held],
            np.concatenate([run.scores for run in runs]),
            np.concatenate([split.row_scores for split in splits]),
        )

    @property
    def row_scores(self) -> Float:
        """What the learned models make of the rows."""
        return self.targets.row_scores(self.scores)

    @property
    def fine_scores(self) -> Float:
        """What candidates are chosen by: for classes, less the squared error of probabilities.

        Rows that are right or wrong tell candidates apart only where there are very many.
        """
        if not self.targets.discrete:
            return self.row_scores
        scores, Y = self.scores / self.score_unit, (self.targets.coded() + 1.0) / 2.0
        P = fit_scaling(scores, self.targets.labels, self.weight).probabilities(scores)
        fine: Float = self.row_scores - ((P[:, -Y.shape[1] :] - Y) ** 2).sum(axis=1)
        return fine

    @property
    def merit(self) -> float:
        """The mean of these."""
        return float(self.weight @ self.fine_scores / self.weight.sum())

    def better_than(self, other: ValidationScores, needed: float) -> bool:
        """Return whether these candidates are better than others by so many standard errors."""
        return PairedComparison.of(other.fine_scores, self.fine_scores, self.weight, needed).better

    @property
    def score_unit(self) -> float:
        """What makes scores of classes at most one, as those of a ridge fitted to ±1."""
        if not self.targets.discrete:
            return 1.0
        return max(float(np.abs(self.scores).max()), float(np.finfo(np.float32).tiny))

    def verdict(self, needed: float) -> PairedComparison:
        """Compare with the unrefined model."""
        return PairedComparison.of(self.before, self.row_scores, self.weight, needed)
