"""Run the stages of a fit in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysplus._bytes.budget import Limit
from nysplus._bytes.quantise import quantise
from nysplus._holdout import PairedComparison
from nysplus._learning.refine import Refined, Refinement, refine
from nysplus._ridge.fit import ExpansionFit, fit_expansion
from nysplus._rows.blocks import RowBlocks
from nysplus._rows.projected import composed
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import (
    Landmarks,
    LandmarkSelector,
    Problem,
)

# Rows on which a rounded model is compared with the same before, and the standard errors by which
# it must not be worse.
CHECKED_ROWS, SPOILED = 2000, 2.0


@dataclass(frozen=True)
class Chosen:
    """Everything that a fit has to know beside its ridge.

    Attributes
    ----------
    problem : Problem
        The rows as the kernel sees them, and the kernel with its width.
    selector : LandmarkSelector
        That chose the landmarks.
    landmarks : Landmarks
    projection : ndarray or None
        The linear map that rows are seen through.
    given : RowBlocks
        The rows as they came.
    refinement : Refinement or None
        What is learned after the fit.
    limit : Limit or None
        What the model may take.
    """

    problem: Problem
    selector: LandmarkSelector
    landmarks: Landmarks
    projection: Float | None
    given: RowBlocks
    refinement: Refinement | None = None
    limit: Limit | None = None

    def fit(self, rng: np.random.RandomState) -> ExpansionFit:
        """Return the model with these landmarks."""
        problem = self.problem
        found = fit_expansion(
            problem.blocks,
            self.landmarks.points,
            problem.kernel,
            problem.approximation,
            problem.alphas,
            rng,
        )
        return replace(found, expansion=replace(found.expansion, projection=self.projection))

    def finish(self, fit: ExpansionFit, rng: np.random.RandomState) -> Refined:
        """Return what learning makes of the model, or the model itself, as it is stored."""
        if self.limit is None:
            return self._refined(fit, rng)
        # drawn first: a model that learning does not change is the one without learning
        rounding = np.random.RandomState(rng.randint(2**31 - 1))
        found = self._refined(fit, rng)
        small = quantise(found.expansion, found.dtype or self.limit.dtype, self.given, rounding)
        if found.kept and self._spoiled(found.expansion, small):
            # such as a map that was judged behind the metric's, and is rounded together with it
            found = Refined(fit.expansion)
            small = quantise(fit.expansion, self.limit.dtype, self.given, rounding)
        return replace(found, expansion=small)

    def _refined(self, fit: ExpansionFit, rng: np.random.RandomState) -> Refined:
        if self.refinement is None:
            return Refined(fit.expansion)
        start = replace(fit.expansion, projection=None)
        found = refine(self.problem, self.selector, start, self.refinement, rng, self.limit)
        P = composed(self.projection, found.expansion.projection)
        return replace(found, expansion=replace(found.expansion, projection=P))

    def _spoiled(self, expansion: KernelExpansion, small: KernelExpansion) -> bool:
        """Return whether rounding makes a model clearly worse on some of the rows."""
        blocks, rng = self.given, np.random.RandomState(0)
        rows = blocks.gather(blocks.sample(min(blocks.n_candidates, CHECKED_ROWS), rng))
        assert rows.targets is not None
        after, before = (rows.targets.row_scores(model(rows.X)) for model in (small, expansion))
        return PairedComparison.of(after, before, rows.weight, SPOILED).better
