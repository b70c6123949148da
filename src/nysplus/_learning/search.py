"""Choose how to train a model, and whether training helps at all, on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nysplus._bytes.budget import Size
from nysplus._bytes.quantise import quantise, representable_types
from nysplus._holdout import PairedComparison, Positions, best_of
from nysplus._learning.candidates import Candidate, Recipe
from nysplus._learning.evaluation import Evaluation, HeldOutSearch
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.validation import HeldOutFold, TrainedModel, ValidationScores
from nysplus._rows.projected import projected
from nysplus._runtime.threads import in_threads
from nysplus.expansion import KernelExpansion


@dataclass(frozen=True)
class SearchResult:
    """The best candidate, and its comparison with the unrefined model.

    Attributes
    ----------
    candidate : Candidate
    dtype : str or None
        Storage type; None without a budget.
    candidate_scores : tuple of float
        Mean scores of the compared candidates on held-out rows.
    scores : ValidationScores
        Of the best candidate.
    comparison : PairedComparison
        With the unrefined model.
    model : TrainedModel
        Trained without the first fold.
    """

    candidate: Candidate
    dtype: str | None
    candidate_scores: tuple[float, ...]
    scores: ValidationScores
    comparison: PairedComparison
    model: TrainedModel


@dataclass(frozen=True)
class RefinementSearch(HeldOutSearch):
    """A search for the best size, recipe and storage type of a refined model.

    Attributes
    ----------
    setup : TrainingSetup
        Of `rows`, which are all rows to learn from.
    """

    setup: TrainingSetup = field(kw_only=True)

    # -- the search --------------------------------------------------------------------------------

    def run(self, sizes: list[Size], recipes: list[Recipe]) -> SearchResult:
        """Choose size, recipe, length and storage type, and compare with the unrefined model.

        Parameters
        ----------
        sizes : list of Size
            Compared with the first recipe.
        recipes : list of Recipe
            Compared with the best size. The first is kept unless another is clearly better.
        """
        positions = self.folds()
        folds = [self.hold_out(fold) for fold in (positions if self.few_rows else positions[:1])]
        size = self._best_size(sizes, recipes[0], folds)
        tried = self._tried_recipes(size, recipes, folds)
        best = self._best_recipe(tried)
        if not self.few_rows:
            best = self._best_length(best)
        dtype, best = self._best_dtype(best, best.candidate.size.dtypes)
        best, comparison = self._compared_with_unrefined(best, dtype, positions)
        scores = tuple(evaluation.scores.mean for evaluation in tried)
        return SearchResult(best.candidate, dtype, scores, best.scores, comparison, best.models[0])

    def refit(self, result: SearchResult) -> KernelExpansion:
        """Train the best candidate on all rows; where they are many, continue a trained model."""
        size, options = result.candidate.size, result.candidate.options
        setup, progress = self._setup(size), self.problem.blocks.progress
        # under a time limit there may be no time left to train from the start
        if self.few_rows and self.deadline.seconds is None:
            points = self._first_landmarks(size, np.arange(len(self.rows)), self.start.landmarks)
            first = setup.first(points, result.candidate.recipe.width)
            with progress.stage("refine", options.n_rows, None) as advance:
                p = setup.train(first, options, self.seed, advance=advance)
        else:
            with progress.stage("refine", options.continued().n_rows, None) as advance:
                p = setup.continue_training(
                    result.model.parameters, options, self.seed, self.deadline.share(1.0), advance
                )
        return setup.expansion(p, self.problem.blocks.dtype, result.scores.score_unit)

    @property
    def few_rows(self) -> bool:
        """Whether rows are so few that every row is held out once."""
        return len(self.rows) <= self.rules.few_rows

    # -- choices -----------------------------------------------------------------------------------

    def _best_size(self, sizes: list[Size], recipe: Recipe, folds: list[HeldOutFold]) -> Size:
        """Return the size of the highest mean score."""
        if len(sizes) == 1:
            return sizes[0]
        candidates = [Candidate(size, recipe) for size in sizes]
        # with few rows there are five folds, which make up for short runs
        short = self.few_rows or self._runs_are_long(candidates)
        if short:
            candidates = self._shortened(candidates)
        tried = self._evaluate(candidates, folds, self.rules.size_time)
        return best_of(tried, lambda evaluation: evaluation.scores.mean).candidate.size

    def _tried_recipes(
        self, size: Size, recipes: list[Recipe], folds: list[HeldOutFold]
    ) -> list[Evaluation]:
        """Evaluate the recipes, and under a budget the first one with fewer landmarks."""
        rules, candidates = self.rules, [Candidate(size, recipe) for recipe in recipes]
        if self.limit is not None and len(recipes) > 1:
            fewer = replace(size, n=max(1, int(rules.fewer_landmarks * size.n)))
            candidates.append(Candidate(fewer, recipes[0]))
        time_share = rules.few_rows_time if self.few_rows else rules.recipe_time
        if self._runs_are_long(candidates):
            candidates = self._shortened(candidates)
        return self._evaluate(candidates, folds, time_share)

    def _shortened(self, candidates: list[Candidate]) -> list[Candidate]:
        return [replace(candidate, length=self.rules.short_share) for candidate in candidates]

    def _runs_are_long(self, candidates: list[Candidate]) -> bool:
        """Return whether candidates are to be compared after short runs."""
        d, L = self.setup.basis.shape[0], len(self.setup.b)
        cost = max(candidate.cost(d, L) for candidate in candidates)
        many = len(self.rows) > self.rules.short_rows
        return len(candidates) > 1 and many and cost > self.rules.short_cost

    def _best_recipe(self, tried: list[Evaluation]) -> Evaluation:
        """Return the evaluation of the highest mean score, or the first if it is not convincing."""
        best = best_of(tried, lambda evaluation: evaluation.scores.mean)
        convincing = best.scores.better_than(tried[0].scores, self.rules.convincing)
        return best if convincing else tried[0]

    def _best_length(self, best: Evaluation) -> Evaluation:
        """Complete a short run, then double its length as long as scores do not fall.

        With noisy targets longer runs may be worse.
        """
        longest = best.candidate.recipe.max_lengthening
        length = max(0.5, best.candidate.length)
        while min(2.0 * length, longest) >= self.rules.min_lengthening * length:
            length = min(2.0 * length, longest)
            candidate = replace(best.candidate, length=length)
            (longer,) = self._evaluate([candidate], best.folds, self.rules.run_time)
            if longer.scores.mean < best.scores.mean:
                break
            best = longer
        return best

    def _best_dtype(
        self, evaluation: Evaluation, dtypes: tuple[str, ...]
    ) -> tuple[str | None, Evaluation]:
        """Return the best storage type and the evaluation of the quantised models.

        Without a budget numbers keep their type, and None is returned for it.
        """
        if self.limit is None:
            return None, evaluation
        possible = representable_types(evaluation.models[0].expansion, dtypes)
        if not possible:
            return dtypes[0], evaluation
        quantised = ((dtype, self._quantised(evaluation, dtype)) for dtype in possible)
        # of equal scores the smallest type, which comes first
        return best_of(quantised, lambda pair: pair[1].scores.mean)

    def _quantised(self, evaluation: Evaluation, dtype: str) -> Evaluation:
        """Return the evaluation of the same models in a storage type."""
        models = []
        for fold, model in zip(evaluation.folds, evaluation.models, strict=True):
            small = quantise(model.expansion, dtype, self._blocks(fold.others), self._rng)
            models.append(replace(model, outputs=small(self.rows.X[fold.held_out])))
        return self._evaluation(evaluation.candidate, evaluation.folds, tuple(models))

    def _compared_with_unrefined(
        self, best: Evaluation, dtype: str | None, positions: list[Positions]
    ) -> tuple[Evaluation, PairedComparison]:
        """Compare with the unrefined model, on further folds while the result is uncertain."""
        rules = self.rules
        needed = rules.needed_with_few_rows if self.few_rows else rules.needed
        comparison = best.scores.compared_with_unrefined(needed)
        for fold in [] if self.few_rows else positions[1 : rules.max_folds]:
            if not comparison.within(*rules.uncertain):
                break
            (more,) = self._evaluate([best.candidate], [self.hold_out(fold)], rules.run_time)
            if dtype is not None:
                _, more = self._best_dtype(more, (dtype,))
            folds, models = (*best.folds, *more.folds), (*best.models, *more.models)
            best = self._evaluation(best.candidate, folds, models)
            comparison = best.scores.compared_with_unrefined(needed)
        return best, comparison

    # -- training ----------------------------------------------------------------------------------

    def _trained(
        self,
        candidate: Candidate,
        fold: HeldOutFold,
        start: Any,
        seconds: float | None,
        advance: Callable[[int], None] | None,
    ) -> TrainedModel:
        """Train a candidate from landmarks, without the rows of a fold."""
        setup = self._setup(candidate.size)
        first = setup.first(start, candidate.recipe.width)
        p = setup.train(first, candidate.options, self.seed, fold.others, seconds, advance)
        model = setup.expansion(p, self.problem.blocks.dtype)
        return TrainedModel(p, model, model(self.rows.X[fold.held_out]))

    def _setup(self, size: Size) -> TrainingSetup:
        assert size.rank is not None
        return self.setup.narrowed(size.rank)

    def _starts(
        self, candidates: list[Candidate], folds: Sequence[HeldOutFold], seconds: float | None
    ) -> dict[tuple[Candidate, int], Any]:
        """Return landmarks to start from, the same ones for all candidates of a size."""
        sizes = dict.fromkeys(candidate.size for candidate in candidates)
        keys = [(size, i) for size in sizes for i in range(len(folds))]

        def first_landmarks(key: tuple[Size, int]) -> Any:
            size, i = key
            return self._first_landmarks(size, folds[i].others, folds[i].landmarks)

        found = dict(zip(keys, in_threads(first_landmarks, keys), strict=True))
        return {
            (candidate, i): found[candidate.size, i]
            for candidate in candidates
            for i in range(len(folds))
        }

    def _first_landmarks(self, size: Size, used: Positions, landmarks: Any) -> Any:
        """Return the landmarks of the unrefined model, or under a budget new ones for a size."""
        if self.limit is None:
            return landmarks
        basis = self._setup(size).basis
        n_rows = max(self.rules.start_rows, self.rules.start_ratio * size.n)
        some = np.sort(self._rng.permutation(used)[:n_rows])
        points = self._select(projected(self._blocks(some), basis), size.n)
        # the basis is orthonormal: mapped by it again, these are the same points
        return points @ basis.T
