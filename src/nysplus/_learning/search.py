"""Choose how to train a model, and whether training helps at all, on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nysplus._bytes.budget import Size
from nysplus._holdout import PairedComparison, Positions, best_of
from nysplus._learning.candidates import Candidate, Deadline, Recipe
from nysplus._learning.evaluation import Evaluation, HeldOutSearch
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.sizes import size_by_rule
from nysplus._learning.starts import first_landmarks
from nysplus._learning.validation import HeldOutFold, TrainedModel, ValidationScores
from nysplus._rows.projected import projected
from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import Auto


@dataclass(frozen=True)
class SearchResult:
    """The best candidate, and its comparison with the unrefined model.

    Attributes
    ----------
    candidate : Candidate
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
    candidate_scores: tuple[float, ...]
    scores: ValidationScores
    comparison: PairedComparison
    model: TrainedModel


@dataclass(frozen=True)
class RefinementSearch(HeldOutSearch):
    """A search for the best size, recipe and length of training of a refined model.

    Attributes
    ----------
    setup : TrainingSetup
        Of `rows`, which are all rows to learn from.
    images : bool
        Whether rows are the code of images.
    """

    setup: TrainingSetup = field(kw_only=True)
    images: bool = field(default=False, kw_only=True)

    # -- the search --------------------------------------------------------------------------------

    def run(self, size: Size, recipes: Sequence[Recipe]) -> SearchResult:
        """Choose size, recipe and length, and compare with the unrefined model.

        Where classes hardly overlap, the largest model is trained for long, and nothing is
        compared. Otherwise recipes are compared with few landmarks, and the best one is trained
        with more landmarks and epochs as long as that helps.

        Parameters
        ----------
        size : Size
            The largest one. Without a budget it is the only one.
        recipes : sequence of Recipe
            The first is kept unless another is clearly better. A single one is trained without a
            look at others.
        """
        positions = self.folds()
        folds = self.hold_out_in_time(positions if self.few_rows else positions[:1])
        first, *others = recipes
        if not others:
            tried = self._evaluate(
                [Candidate(size, first)], folds, self.rules.run_time, "single run"
            )
        elif self._clean(size, first, folds[0]):
            long = self._long(size, first)
            tried = self._evaluate([long], folds, self.rules.run_time, "long run")
        else:
            small = self._sized(size, self._rungs(size.n)[0])
            candidates = [Candidate(small, recipe) for recipe in recipes]
            tried = self._evaluate(candidates, folds, self.rules.recipe_time, "recipes")
        best = self._best_recipe(tried)
        if len(tried) > 1:
            best = self._grown(size, best)
        best, comparison = self._compared_with_unrefined(best, positions)
        scores = tuple(evaluation.scores.mean for evaluation in tried)
        return SearchResult(best.candidate, scores, best.scores, comparison, best.models[0])

    def refit(self, result: SearchResult) -> KernelExpansion:
        """Train the best candidate on all rows; where they are many, continue a trained model."""
        size, options = result.candidate.size, result.candidate.options
        setup, progress = self.setup, self.problem.blocks.progress
        # under a time limit there may be no time left to train from the start
        if len(self.rows) <= self.rules.refit_rows and self.deadline.seconds is None:
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

    def _clean(self, size: Size, recipe: Recipe, fold: HeldOutFold) -> bool:
        """Return whether a short run with few landmarks makes few errors.

        If there is no time for this run, there is none to compare others either: the rows count as
        clean.
        """
        rules, targets = self.rules, self.rows.targets
        assert targets is not None
        if not targets.discrete:
            return False
        n = self._part(size.n, rules.quick_share, rules.quick_landmarks)
        look = Candidate(self._sized(size, n), recipe, rules.quick_length)
        limit = Deadline(self.deadline.share(rules.quick_time))
        (quick,) = self._evaluate([look], [fold], rules.quick_time, "short run")
        if limit.over:
            return True
        two = self.problem.blocks.n_outputs == 1
        return quick.scores.accuracy >= 1.0 - (
            rules.clean_errors if two else rules.clean_errors_of_many
        )

    def _long(self, size: Size, recipe: Recipe) -> Candidate:
        """Return a run that is the longer the fewer landmarks there are."""
        one, rules = Candidate(size, recipe), self.rules
        cost = one.cost(self.setup.basis.shape[0], len(self.setup.b))
        ratio = len(self.rows) / size.n / rules.length_ratio
        longest = recipe.max_length
        if self.images:
            longest = min(longest, rules.image_epochs * len(self.rows) / recipe.options.n_rows)
        length = max(1.0, min(ratio, rules.run_cost / cost, longest))
        changed = self.setup.rows.augmented is not None and recipe.max_length > 1.0
        return replace(one, length=length * (rules.augmented_length if changed else 1.0))

    def _grown(self, size: Size, best: Evaluation) -> Evaluation:
        """Return a model of as many landmarks, and of the largest size as many epochs, as help.

        With noisy targets more of both may be worse.
        """
        recipe = best.candidate.recipe
        larger = [Candidate(self._sized(size, n), recipe) for n in self._rungs(size.n)[1:]]
        length = 2.0
        while length <= recipe.max_length:
            larger.append(Candidate(size, recipe, length))
            length *= 2.0
        for candidate in larger:
            if self.deadline.used > self.rules.compare_time:
                break
            (grown,) = self._evaluate(
                [candidate], best.folds, self.rules.run_time, "more landmarks or steps"
            )
            if not grown.scores.better_than(best.scores, self.rules.rising):
                break
            best = grown
        return best

    def _rungs(self, n: int) -> list[int]:
        """Return the numbers of landmarks to try, under a budget; else the given number."""
        if self.budget is None:
            return [n]
        rules = self.rules
        return sorted({self._part(n, share, rules.least_rung) for share in rules.ladder})

    def _sized(self, size: Size, n: int) -> Size:
        """Return a size with fewer landmarks, in as many bits as there is room for."""
        if self.budget is None:
            return replace(size, n=n)
        d, L = self.setup.basis.shape[0], len(self.setup.b)
        discrete = self.problem.blocks.discrete
        found = size_by_rule(self.budget, d, L, n, size.rank, discrete=discrete)
        assert found is not None
        return found

    def _part(self, n: int, share: float, least: int) -> int:
        return min(n, max(least, int(share * n)))

    def _best_recipe(self, tried: list[Evaluation]) -> Evaluation:
        """Return the evaluation of the highest mean score, or the first if it is not convincing."""
        best = best_of(tried, lambda evaluation: evaluation.scores.mean)
        convincing = best.scores.better_than(tried[0].scores, self.rules.convincing)
        return best if convincing else tried[0]

    def _compared_with_unrefined(
        self, best: Evaluation, positions: list[Positions]
    ) -> tuple[Evaluation, PairedComparison]:
        """Compare with the unrefined model, on further folds while the result is uncertain."""
        rules = self.rules
        needed = rules.needed_with_few_rows if self.few_rows else rules.needed
        comparison = best.scores.compared_with_unrefined(needed)
        for fold in [] if self.few_rows else positions[1 : rules.max_folds]:
            late = self.deadline.used > rules.compare_time
            if late or not comparison.within(*rules.uncertain):
                break
            (more,) = self._evaluate(
                [best.candidate], [self.hold_out(fold)], rules.run_time, "further rows"
            )
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
        setup, limit = self.setup, Deadline(seconds)
        first = setup.first(start, candidate.recipe.width)
        seconds = limit.share(1.0)
        p = setup.train(first, candidate.options, self.seed, fold.others, seconds, advance)
        model = setup.expansion(p, self.problem.blocks.dtype)
        return TrainedModel(p, model, model(self.rows.X[fold.held_out]))

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

    def _first_landmarks(self, size: Size, used: Positions, landmarks: Any) -> Float:
        """Return the landmarks of the unrefined model, or under a budget new ones for a size.

        They are in the coordinates of ``setup.U``. A selector other than the default is used, too.
        """
        if self.budget is None and size.n == landmarks.shape[0]:
            return self.setup.coordinates(landmarks)
        setup = self.setup
        n_rows = max(self.rules.start_rows, self.rules.start_ratio * size.n)
        some = self.rows.take(np.sort(self._rng.permutation(used)[:n_rows]))
        if not isinstance(self.selector, Auto):
            found: Float = self._select(projected(some.blocks(), setup.basis), size.n)
            return found - setup.mean @ setup.basis
        U, Y = some.X @ setup.basis - setup.mean @ setup.basis, some.Y
        if not self.problem.blocks.discrete:
            Y = (Y - setup.target_mean) / setup.target_unit
        return first_landmarks(self.problem, some, U, Y, size.n, self._rng)
