"""Make candidates for a smaller model; held-out rows choose among them.

A candidate may reproduce the scores of the larger model (:mod:`nysplus._compression.pruning`). With
rows there are more candidates: a ridge regression of the targets, or of the larger model's
predictions, on the pruned landmarks or on new landmarks; and a model that learns landmarks,
coefficients and a linear map. None is best for all models: few landmarks cannot reproduce scores
that are small differences of large terms, and learning needs many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._bytes.budget import Budget, ModelShape, Size, csr_model_bytes
from nysplus._bytes.quantise import compared_types, quantise
from nysplus._compression.pruning import (
    DEFAULT_PRUNING,
    PruningRules,
    Shortlist,
    listed,
    reduced,
)
from nysplus._fit.plan import make_alphas
from nysplus._holdout import Positions, mean_score
from nysplus._learning.candidates import Candidate, Deadline
from nysplus._learning.refinement import MAX_RANK, Refinement
from nysplus._learning.setup import TrainingSetup, score_unit
from nysplus._learning.sizes import size_by_rule
from nysplus._ridge.feature_map import StandardMap
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.projected import project
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF
from nysplus.landmarks import Auto, Problem, select_landmarks

# Landmarks of the larger model that are fitted again to estimate optimism: more cost time only.
OPTIMISM_LANDMARKS = 1000
UNLIMITED = Deadline(None)


@dataclass(frozen=True)
class SmallerModel:
    """A candidate for the smaller model.

    Attributes
    ----------
    expansion : KernelExpansion
    kept : ndarray of shape (n,) or None
        Positions of the landmarks among those of the larger model; None if landmarks have moved.
    reproduces : bool
        Whether its scores approximate the scores of the larger model.
    dtypes : tuple of str
        Storage types to choose from. Empty: numbers keep the type in which they were computed.
    optimism : float
        Difference between its mean score on the held-out rows and on new rows.
    continued : callable or None
        For a learned model: return the model after training on the held-out rows as well.
    """

    expansion: KernelExpansion
    kept: Positions | None = None
    reproduces: bool = True
    dtypes: tuple[str, ...] = ()
    optimism: float = 0.0
    continued: Callable[[], KernelExpansion] | None = None

    def versions(self, blocks: RowBlocks) -> Iterator[SmallerModel]:
        """Yield the model in the storage types to compare, with coefficients solved again."""
        if not self.dtypes:
            yield self
            return
        for dtype in compared_types(self.expansion, self.dtypes):
            rng = np.random.RandomState(0)  # the same rows for all types
            small = quantise(self.expansion, dtype, blocks, rng)
            yield replace(self, expansion=small, dtypes=(dtype,))

    def finished(self, blocks: RowBlocks) -> SmallerModel:
        """Return the model trained on all rows, in the same storage type."""
        if self.continued is None:
            return self
        return next(replace(self, expansion=self.continued()).versions(blocks), self)


def pruned_models(
    expansion: KernelExpansion,
    sizes: list[Size],
    budget: Budget | None,
    rows: Block | None = None,
    rules: PruningRules = DEFAULT_PRUNING,
    deadline: Deadline = UNLIMITED,
) -> Iterator[SmallerModel]:
    """Yield models of several sizes that reproduce the scores of a larger one.

    With dense landmarks and the RBF kernel, landmarks are merged as well as removed. CSR landmarks
    are removed until the model is within the budget.
    """
    X, weight = (None, None) if rows is None else (rows.X, rows.weight)
    n, sparse = expansion.landmarks.shape[0], sp.issparse(expansion.landmarks)

    def pruned(
        n: int, merge: bool = False, competing: Shortlist | None = None
    ) -> tuple[KernelExpansion, Positions | None]:
        return reduced(expansion, n, X, weight, merge, rules, deadline.share(0.5), competing)

    # under a time limit the largest model comes first, which is the best one most of the time
    for size in sizes if deadline.seconds is None else sizes[::-1]:
        if sparse and budget is not None:
            shape = model_shape(expansion)
            small, kept = budget.largest_within(
                size.n, shape, pruned, lambda found: _csr_bytes(found[0])
            )
            yield SmallerModel(small, kept, dtypes=size.dtypes)
            continue
        competing = listed(expansion, size.n, X, weight, rules) if size.n < n else None
        ways = [True, False] if not sparse and isinstance(expansion.kernel, RBF) else [False]
        for merge in ways if size.n < n else [False]:
            small, kept = pruned(size.n, merge, competing)
            yield SmallerModel(small, kept, dtypes=size.dtypes)


def model_shape(expansion: KernelExpansion) -> ModelShape:
    """Return the shape of an expansion with dense landmarks, or of a dense one like it."""
    map_shape = () if expansion.projection is None else expansion.projection.shape
    return ModelShape(expansion.landmarks.shape[1], expansion.dual_coef.shape[1], map_shape)


def _csr_bytes(expansion: KernelExpansion) -> int:
    L = expansion.dual_coef.shape[1]
    return csr_model_bytes(expansion.landmarks, L, expansion.projection)


@dataclass(frozen=True)
class Candidates:
    """All candidates for a smaller model that rows allow.

    Attributes
    ----------
    expansion : KernelExpansion
        The larger model.
    rows : Block
        With targets.
    used : ndarray of int
        Positions of the rows that are not held out.
    held_out : Block
        The held-out rows.
    budget : Budget or None
    rng : RandomState
    pruning : PruningRules
    deadline : Deadline
    """

    expansion: KernelExpansion
    rows: Block
    used: Positions
    held_out: Block
    budget: Budget | None
    rng: np.random.RandomState
    pruning: PruningRules = DEFAULT_PRUNING
    deadline: Deadline = UNLIMITED

    def models(self, sizes: list[Size], optimism: float) -> Iterator[SmallerModel]:
        """Yield pruned, regressed and learned models of several sizes.

        Parameters
        ----------
        sizes : list of Size
        optimism : float
            Of models that derive from the larger one: landmarks that have moved to reproduce its
            scores have seen the held-out rows as well.
        """
        dtypes: dict[int, tuple[str, ...]] = {}
        rows = self.rows.take(self.used)
        pruned = pruned_models(
            self.expansion, sizes, self.budget, rows, self.pruning, self.deadline
        )
        for small in pruned:
            Z = small.expansion.landmarks
            regressed = self._regressed(self._problem.blocks, Z)
            yield replace(small, optimism=optimism)
            yield SmallerModel(regressed, None, False, small.dtypes, optimism)
            dtypes[Z.shape[0]] = small.dtypes
        for n, types in dtypes.items():
            fresh = self._regressed(self._problem.blocks, self._select(n))
            yield SmallerModel(fresh, None, False, types)
        if isinstance(self.expansion.kernel, RBF) and self._problem.blocks.discrete:
            seed = self.rng.randint(2**31 - 1)
            for size in self._learned_sizes(sizes):
                yield self._learned(size, seed)

    def optimism(self) -> float:
        """Return the part of the larger model's score that is due to having seen held-out rows.

        Zero if it was not fitted to them. Its landmarks are fitted again, to all rows and without
        the held-out rows. If the larger model scores the held-out rows more like the first of the
        two fits, it has seen them, and their difference is its advantage.
        """
        n = self.expansion.landmarks.shape[0]
        Z = self.expansion.landmarks[:: -(-n // OPTIMISM_LANDMARKS)]
        seen, unseen = (
            mean_score(self._regressed(blocks, Z), self.held_out)
            for blocks in (self._mapped.blocks(), self._problem.blocks)
        )
        own = mean_score(self.expansion, self.held_out)
        return max(0.0, seen - unseen) if 2.0 * own > seen + unseen else 0.0

    @cached_property
    def _mapped(self) -> Block:
        """The rows behind the map of the larger model."""
        P = self.expansion.projection
        return self.rows if P is None else replace(self.rows, X=project(self.rows.X, P))

    @cached_property
    def _problem(self) -> Problem:
        """The mapped rows that are not held out, and the parameters of a ridge regression."""
        blocks = self._mapped.take(self.used).blocks()
        return Problem(blocks, self.expansion.kernel, StandardMap(), make_alphas("auto"))

    def _regressed(self, blocks: RowBlocks, Z: Any) -> KernelExpansion:
        """Return the ridge regression of the targets on given landmarks."""
        found = replace(self._problem, blocks=blocks).fit(Z, self.rng).expansion
        return replace(found, projection=self.expansion.projection)

    def _select(self, n: int) -> Any:
        """Return new landmarks."""
        n = min(n, self._problem.blocks.n_candidates)
        return select_landmarks(Auto(), self._problem, n, self.rng).points

    def _learned_sizes(self, sizes: list[Size]) -> list[Size]:
        n, r = self.expansion.landmarks.shape
        if self.budget is None:
            return [replace(size, rank=min(r, MAX_RANK)) for size in sizes]
        d, L = self.rows.X.shape[1], self.expansion.dual_coef.shape[1]
        size = size_by_rule(self.budget, d, L, n, max_rank=r)
        return [] if size is None else [size]

    def _learned(self, size: Size, seed: int) -> SmallerModel:
        """Return a model with landmarks, coefficients and a map learned by cross-entropy."""
        assert size.rank is not None
        kernel, metric = self.expansion.kernel, self.expansion.projection
        setup = TrainingSetup.of(self.rows, size.rank, self.rng, kernel, metric)
        (recipe,) = Refinement(search=False).recipes(len(self.rows))
        options = Candidate(size, recipe).options
        first = setup.first(setup.coordinates(self._select(size.n)), recipe.width)
        trained = setup.train(first, options, seed, self.used, self.deadline.share(0.5))
        dtype = self._problem.blocks.dtype
        unit = score_unit(setup.expansion(trained, dtype)(self.held_out.X))

        def continued() -> KernelExpansion:
            left = self.deadline.share(1.0)
            p = setup.continue_training(trained, options, seed, left)
            return setup.expansion(p, dtype, unit)

        model = setup.expansion(trained, dtype, unit)
        return SmallerModel(model, None, False, continued=continued)
