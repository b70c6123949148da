"""Choose the code of a table and how to train on it, on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from nysplus._bytes.budget import ScaleTypes, Size
from nysplus._holdout import PairedComparison, Positions, best_of, least_loss_within_error
from nysplus._learning.candidates import Candidate, Deadline
from nysplus._learning.evaluation import Evaluation, HeldOutSearch
from nysplus._learning.table_setup import TableSetup, column_weights, importances
from nysplus._learning.tables import (
    LONG,
    TABLE_RULES,
    CodeChoice,
    TableRecipe,
    TableRules,
    TableStyle,
    TableViews,
    View,
    endless,
    options_of,
    scale_types,
    size_of_view,
)
from nysplus._learning.validation import HeldOutFold, TrainedModel, ValidationScores
from nysplus._rows.blocks import Block
from nysplus._runtime.threads import in_threads
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion

# Codes of numbers that choose the number of columns: few bytes, or bins where these matter. Curves
# take more bytes than either.
COMPARED_CODES = ("thermometer", "standard")


@dataclass(frozen=True)
class TableResult:
    """The best candidate, and its comparison with the unrefined model.

    Attributes
    ----------
    best : Evaluation or None
        None if the unrefined model is best.
    scores : ValidationScores
        Of the best candidate, or else of one that was trained.
    candidate_scores : tuple of float
        Mean scores of the compared candidates on held-out rows.
    comparison : PairedComparison
        With the unrefined model.
    """

    best: Evaluation | None
    scores: ValidationScores
    candidate_scores: tuple[float, ...]
    comparison: PairedComparison


@dataclass(frozen=True)
class TableSearch(HeldOutSearch):
    """A search for the best code and the best way to train on it.

    The unrefined model stays where no candidate is better.

    Attributes
    ----------
    views : TableViews
        Of `rows`.
    may_grow : bool
        Whether candidates without a budget may have more landmarks than the unrefined model.
    """

    rules: TableRules = TABLE_RULES
    views: TableViews = field(kw_only=True)
    may_grow: bool = field(default=False, kw_only=True)
    _views: dict[CodeChoice, View] = field(default_factory=dict, init=False)
    _importances: dict[int, Float] = field(default_factory=dict, init=False)

    # -- the search --------------------------------------------------------------------------------

    def run(
        self, styles: Sequence[TableStyle], longer: Sequence[TableStyle] = ()
    ) -> TableResult | None:
        """Train with each style, choose the best, and compare it with the unrefined model.

        Returns None if no model fits in the budget.

        Parameters
        ----------
        styles, longer : sequence of TableStyle
            The latter are tried where the long style of the former is best.
        """
        candidates = self._candidates(styles, self.views.column_counts(self.budget))
        if not candidates:
            return None
        # a single candidate is compared with the unrefined model only, on one fold
        n_folds = None if len(candidates) > 1 else 1
        folds = self.hold_out_in_time(self._used_folds()[:n_folds])
        candidates = self._finalists(self._with_best_columns(candidates, folds), folds)
        tried = self._evaluate(candidates, folds, self.rules.first_time, "full runs")
        if not self.few_rows and self._want_longer(tried):
            tried = self._with_longer(tried, longer, folds[:1])
        best = self._best(tried)
        scores = tried[0].scores if best is None else best.scores
        return TableResult(
            best,
            scores,
            tuple(evaluation.scores.accuracy for evaluation in tried),
            scores.compared_with_unrefined(0.0),
        )

    @property
    def few_rows(self) -> bool:
        """Whether rows are so few that they tell candidates apart badly."""
        return len(self.rows) <= self.rules.few_rows

    @property
    def _scales(self) -> ScaleTypes:
        """Types of the scales of models in few bits."""
        return scale_types(self.problem.blocks.discrete)

    def _used_folds(self) -> list[Positions]:
        """Return as many folds as have enough rows to choose by."""
        folds = self.folds()
        n_folds = math.ceil(self.rules.held_out_rows / len(folds[0]))
        return folds[: min(max(1, n_folds), self.rules.max_folds)]

    def _finalists(
        self, candidates: list[Candidate], folds: Sequence[HeldOutFold]
    ) -> list[Candidate]:
        """Return the candidates that are best after short runs with few landmarks."""
        if len(candidates) <= self.rules.n_finalists:
            return candidates
        short = self._short_runs(candidates, folds, "short runs")
        scores = [evaluation.scores.mean for evaluation in short]
        best = set(np.argsort(scores)[::-1][: self.rules.n_finalists].tolist())
        return [candidate for i, candidate in enumerate(candidates) if i in best]

    def _with_best_columns(
        self, candidates: list[Candidate], folds: Sequence[HeldOutFold]
    ) -> list[Candidate]:
        """Return the candidates with the number of columns that is best after short runs.

        Only the first style of each code in `COMPARED_CODES` is trained.
        """
        if len({_recipe(candidate).code.n_columns for candidate in candidates}) == 1:
            return candidates
        firsts: dict[tuple[str, int | None], Candidate] = {}
        for candidate in candidates:
            code = _recipe(candidate).code
            if code.numbers in COMPARED_CODES:
                firsts.setdefault((code.numbers, code.n_columns), candidate)
        short = self._short_runs(list(firsts.values()), folds, "numbers of columns")
        best = best_of(short, lambda evaluation: evaluation.scores.mean)
        n_columns = _recipe(best.candidate).code.n_columns
        return [each for each in candidates if _recipe(each).code.n_columns == n_columns]

    def _short_runs(
        self, candidates: Sequence[Candidate], folds: Sequence[HeldOutFold], step: str
    ) -> list[Evaluation]:
        """Evaluate candidates after short runs with few landmarks."""
        rules = self.rules
        looks = [
            replace(
                candidate,
                size=Size(min(candidate.size.n, rules.look_landmarks), candidate.size.rank),
                length=rules.look_length,
            )
            for candidate in candidates
        ]
        return self._evaluate(looks, folds, rules.look_time, step)

    def _want_longer(self, tried: Sequence[Evaluation]) -> bool:
        """Return whether long runs are at least as good as those with a decay of the map."""
        scores = {_style(each.candidate).name: each.scores.accuracy for each in tried}
        decayed = [each.scores.accuracy for each in tried if _style(each.candidate).map_decay > 0.0]
        return LONG.name in scores and scores[LONG.name] >= max(decayed, default=-np.inf)

    def _with_longer(
        self,
        tried: list[Evaluation],
        longer: Sequence[TableStyle],
        first: Sequence[HeldOutFold],
    ) -> list[Evaluation]:
        """Add longer runs, and compare all on the first fold.

        Where long runs are best they are so by far: one fold can tell.
        """
        n_columns = _recipe(tried[0].candidate).code.n_columns
        longest = self._in_time(longer, n_columns, first)
        if not longest:
            return tried
        tried = [self._evaluation(e.candidate, e.folds[:1], e.models[:1]) for e in tried]
        endless = self._in_time(self._endless(tried, longest), n_columns, first)
        return [*tried, *longest, *endless]

    def _in_time(
        self, styles: Sequence[TableStyle], n_columns: int | None, folds: Sequence[HeldOutFold]
    ) -> list[Evaluation]:
        """Evaluate styles if there is time left."""
        late = self.deadline.used > self.rules.compare_time
        candidates = [] if late else self._candidates(styles, [n_columns])
        if not candidates:
            return []
        return self._evaluate(candidates, folds, self.rules.last_time, "longer runs")

    def _endless(
        self, tried: Sequence[Evaluation], longest: Sequence[Evaluation]
    ) -> list[TableStyle]:
        """Return the style of endless runs, if the longest ones are much better than long ones."""
        (long,) = (each for each in tried if _style(each.candidate).name == LONG.name)
        best, rules = best_of(longest, _accuracy), self.rules
        if not long.scores.targets.discrete or best.scores.accuracy > 1.0 - rules.endless_errors:
            return []
        clean = best.scores.better_than(long.scores, rules.endless_gain)
        return [endless(_style(best.candidate))] if clean else []

    def _best(self, tried: Sequence[Evaluation]) -> Evaluation | None:
        """Return the best evaluation; None if the unrefined model is better.

        Where accuracy and log-loss disagree about that, the unrefined model is kept with few rows.
        """
        first = tried[0].scores
        unrefined = first.unrefined
        if not first.targets.discrete:
            best = best_of(tried, _accuracy)
            if not best.scores.better_than(first, self.rules.convincing):
                best = tried[0]
            return best if best.scores.accuracy >= unrefined.accuracy else None
        accuracies = np.array([evaluation.scores.accuracy for evaluation in tried])
        losses = np.array([evaluation.scores.log_loss for evaluation in tried])
        chosen = least_loss_within_error(accuracies, losses, first.weight)
        signs = accuracies[chosen] - unrefined.accuracy, unrefined.log_loss - losses[chosen]
        better = min(signs) >= 0.0 if self.few_rows else max(signs) >= 0.0
        return tried[chosen] if better else None

    def refit(self, found: TableResult, rows: Block, views: TableViews) -> KernelExpansion:
        """Train the best candidate on all rows, from the start.

        Parameters
        ----------
        found : TableResult
            Whose best candidate is not the unrefined model.
        rows : Block
        views : TableViews
            Of the same rows.
        """
        assert found.best is not None
        candidate, blocks = found.best.candidate, self.problem.blocks
        recipe = _recipe(candidate)
        view, weights = views(*_arguments(recipe.code)), self._weights(recipe, 0)
        block = replace(rows, X=view.X)
        prepared = TableSetup.of(self.problem, block, weights, candidate.size, self.seed)
        setup, first = prepared.setup, prepared.first(recipe.width, self.rules.value_ridge)
        bits = candidate.size.bits
        options = options_of(recipe.style, len(rows), blocks.discrete, self.rules, bits)
        with blocks.progress.stage("refine", options.n_rows, None) as advance:
            seconds = self.deadline.share(1.0)
            p = setup.train(first, options, self.seed, seconds=seconds, advance=advance)
        model = setup.expansion(p, blocks.dtype, found.scores.score_unit, self._scales)
        return replace(model, encoder=view.code)

    # -- candidates --------------------------------------------------------------------------------

    def _candidates(
        self, styles: Sequence[TableStyle], counts: Sequence[int | None]
    ) -> list[Candidate]:
        """Return the candidates that fit in the budget, with each number of columns."""
        found = []
        n_rows = len(self.rows) * (self.rules.n_folds - 1) // self.rules.n_folds
        statistics = self.views.many_levels and not self.few_rows
        for style, n_columns in product(styles, counts):
            if style.code.target_statistics and not statistics:
                continue
            fitting = self._fitting(style, n_columns)
            if fitting is not None:
                code, size = fitting
                discrete = self.problem.blocks.discrete
                options = options_of(style, n_rows, discrete, self.rules, size.bits)
                found.append(Candidate(size, TableRecipe(style.width, options, 1.0, style, code)))
        return found

    def _fitting(self, style: TableStyle, n_columns: int | None) -> tuple[CodeChoice, Size] | None:
        """Return the code of a style and the size of the model; None if no model fits.

        There are fewer bins than the style has where columns are many or bytes are few.
        """
        rules, code = self.rules, replace(style.code, n_columns=n_columns)
        if code.n_bins is not None:
            most = max(rules.least_bins, rules.max_bins // max(1, self.views.n_numbers))
            code = replace(code, n_bins=min(code.n_bins, most))
        most_landmarks = len(self.rows) // 2
        if self.budget is None:
            n, n_columns = self.start.landmarks.shape[0], self._view(code).code.n_columns
            if self.may_grow:
                n = max(n, min(style.n_landmarks, most_landmarks))
            return code, Size(n, min(rules.rank, n_columns))
        L, found = self.problem.blocks.n_outputs, None
        while True:
            view = self._view(code)
            size = size_of_view(
                view.code, L, most_landmarks, self.budget, style, rules, self._scales
            )
            if size is not None:
                found = code, size
                if (size.rank or 0) >= min(rules.least_rank, view.code.n_columns):
                    return found
            if code.n_bins is None or code.n_bins <= rules.fewest_bins:
                return found
            code = replace(code, n_bins=code.n_bins // 2)

    def _view(self, code: CodeChoice) -> View:
        if code not in self._views:
            self._views[code] = self.views(*_arguments(code))
        return self._views[code]

    # -- training ----------------------------------------------------------------------------------

    def _starts(
        self, candidates: list[Candidate], folds: Sequence[HeldOutFold], seconds: float | None
    ) -> dict[tuple[Candidate, int], TableSetup]:
        """Prepare the rows of every view without each fold; candidates share them."""
        weighted = any(_style(candidate).metric for candidate in candidates)
        if weighted and self.views.importance is None:
            self._find_importances(folds, seconds)
        runs = [(candidate, i) for candidate in candidates for i in range(len(folds))]
        keys = {(candidate, i): _key(candidate, i) for candidate, i in runs}
        firsts = {key: run for run, key in reversed(list(keys.items()))}

        def prepared(run: tuple[Candidate, int]) -> TableSetup:
            candidate, i = run
            recipe = _recipe(candidate)
            block, weights = self._block(recipe.code, folds[i].others), self._weights(recipe, i)
            return TableSetup.of(self.problem, block, weights, candidate.size, self.seed)

        found = dict(zip(firsts, in_threads(prepared, firsts.values()), strict=True))
        return {run: found[key] for run, key in keys.items()}

    def _find_importances(self, folds: Sequence[HeldOutFold], seconds: float | None) -> None:
        """Find the importances of raw columns, without each fold where rows are few."""
        code = CodeChoice(n_bins=self.rules.metric_bins)
        view = self._view(code)
        used = range(len(folds) if self.few_rows else 1)
        missing = [fold for fold in used if fold not in self._importances]

        def find(fold: int) -> Float:
            block = self._block(code, folds[fold].others)
            return importances(self.problem, block, view.code, self.seed, self.rules, seconds)

        self._importances.update(zip(missing, in_threads(find, missing), strict=True))

    def _block(self, code: CodeChoice, positions: Positions) -> Block:
        """Return some of the rows, as a view has them."""
        return replace(self.rows.take(positions), X=self._view(code).X[positions])

    def _weights(self, recipe: TableRecipe, fold: int) -> Float:
        """Return the weights of the code columns of a recipe, found without a fold."""
        code = self._view(recipe.code).code
        if not recipe.style.metric:
            return np.ones(code.n_columns)
        importance = self.views.importance
        if importance is None:
            importance = self._importances.get(fold, self._importances[0])
        return column_weights(importance, code, self.rules)

    def _trained(
        self,
        candidate: Candidate,
        fold: HeldOutFold,
        start: Any,
        seconds: float | None,
        advance: Callable[[int], None] | None,
    ) -> TrainedModel:
        """Train a candidate from prepared rows."""
        recipe, setup, limit = _recipe(candidate), start.setup, Deadline(seconds)
        first = start.first(recipe.width, self.rules.value_ridge)
        seconds = limit.share(1.0)
        p = setup.train(first, candidate.options, self.seed, None, seconds, advance)
        model = setup.expansion(p, np.dtype(np.float32), types=self._scales)
        return TrainedModel(p, model, model(self._view(recipe.code).X[fold.held_out]))


def _recipe(candidate: Candidate) -> TableRecipe:
    assert isinstance(candidate.recipe, TableRecipe)
    return candidate.recipe


def _style(candidate: Candidate) -> TableStyle:
    return _recipe(candidate).style


def _accuracy(evaluation: Evaluation) -> float:
    return evaluation.scores.accuracy


def _key(candidate: Candidate, fold: int) -> tuple[CodeChoice, bool, Size, int]:
    """Return the key of prepared rows: candidates with the same key share them."""
    recipe = _recipe(candidate)
    return recipe.code, recipe.style.metric, candidate.size, fold


def _arguments(code: CodeChoice) -> tuple[str, int | None, bool, int | None]:
    return code.numbers, code.n_bins, code.target_statistics, code.n_columns
