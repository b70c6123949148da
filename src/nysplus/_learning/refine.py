"""Refine a fitted model: learn landmarks, coefficients and a linear map.

Training starts from the landmarks of the fitted model. Held-out rows decide how to train, and
whether training helps at all: the unrefined model is kept unless the learned model is better by
more than chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from nysplus._bytes.budget import Budget, Size
from nysplus._holdout import PairedComparison, Positions
from nysplus._learning.augmentation import Augmentation
from nysplus._learning.candidates import DEFAULT_RULES, Candidate, Deadline, SearchRules
from nysplus._learning.refinement import MIN_ROWS, Refinement
from nysplus._learning.search import RefinementSearch, SearchResult
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.table_search import TableResult, TableSearch
from nysplus._learning.tables import TABLE_RULES, TableRules, Tables
from nysplus._learning.validation import ValidationScores
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import RowBlocks
from nysplus._runtime.memory import working_bytes
from nysplus._runtime.record import Trial
from nysplus.expansion import KernelExpansion, stored_bytes
from nysplus.landmarks import LandmarkSelector, Problem

# Rows that tell how much memory a sparse row takes.
MEASURED_ROWS = 100
# The model that refinement starts from, in records of comparisons.
UNREFINED = "unrefined model"


@dataclass(frozen=True)
class Refined:
    """The result of :func:`refine`.

    Attributes
    ----------
    expansion : KernelExpansion
        The learned model, with a projection, or the unrefined model. Under a budget, the numbers
        of the learned model are those that are stored.
    kept : bool
        Whether `expansion` is the learned model.
    scaling : Scaling or None
        From the scores of the learned model to probabilities; None for values, and for the
        unrefined model.
    comparison : PairedComparison or None
        Of the learned with the unrefined model; None if nothing was learned.
    candidate_scores : tuple of float
        Mean scores of the candidates on the held-out rows, in the order of the recipes.
    scores : ValidationScores or None
        Of held-out rows by the model that is kept; None for an unrefined one, unless it is that of
        a table.
    reason : str
        Why nothing was learned, or why there are fewer landmarks than fit in the budget, or more
        than the unrefined model has.
    """

    expansion: KernelExpansion
    kept: bool = False
    scaling: Scaling | None = None
    comparison: PairedComparison | None = None
    candidate_scores: tuple[float, ...] = ()
    scores: ValidationScores | None = None
    reason: str = ""


def refine(
    problem: Problem,
    given: RowBlocks,
    selector: LandmarkSelector,
    start: KernelExpansion,
    refinement: Refinement,
    rng: np.random.RandomState,
    budget: Budget | None = None,
    rules: SearchRules = DEFAULT_RULES,
    tables: Tables | None = None,
    table_rules: TableRules = TABLE_RULES,
    may_grow: bool = False,
    augmentation: Augmentation | None = None,
    images: bool = False,
) -> Refined:
    """Learn landmarks, coefficients and a linear map, starting from a fitted model.

    Parameters
    ----------
    problem : Problem
        Rows with targets, as the kernel sees them, and the parameters of the fit of `start`.
    given : RowBlocks
        The same rows before the map of a metric.
    selector : LandmarkSelector
        The selector of `start`; it selects landmarks again without held-out rows.
    start : KernelExpansion
        The fitted model.
    refinement : Refinement
    rng : RandomState
    budget : Budget, optional
        Of the learned model; by default the learned model has as many landmarks as `start`, see
        also `may_grow`.
    rules : SearchRules, optional
    tables : callable, optional
        From positions of rows in `problem.blocks` to their views by different codes: for rows of a
        table, whose code is chosen as well. The learned model then has an encoder, and is a
        function of the raw numbers of the table.
    table_rules : TableRules, optional
    may_grow : bool
        Whether the learned model of a table without a budget may have more landmarks than `start`:
        their number suits a model that is not learned.
    augmentation : Augmentation, optional
        How images are changed in every batch; by default not at all.
    images : bool
        Whether rows are the code of images.
    """
    task = _Task(
        problem, given, selector, start, refinement, rng, budget, Deadline(refinement.max_seconds)
    )
    n_rows = _affordable(given, refinement.max_rows, rng)
    n_rows = min(n_rows, augmentation.affordable) if augmentation else n_rows
    if tables is not None:
        n_rows = min(n_rows, _affordable_of_table(given, tables, table_rules, rng))
    positions = given.sample(n_rows, rng)
    if len(positions) < MIN_ROWS:
        return task.unchanged(f"{len(positions)} rows are too few")
    if tables is not None:
        return task.learn_table(positions, tables, refinement.table_rules(table_rules), may_grow)
    return task.learn_rows(positions, rules, augmentation, images)


@dataclass(frozen=True)
class _Task:
    """The arguments of :func:`refine` that rows and tables have in common."""

    problem: Problem
    given: RowBlocks
    selector: LandmarkSelector
    start: KernelExpansion
    refinement: Refinement
    rng: np.random.RandomState
    budget: Budget | None
    deadline: Deadline

    def learn_rows(
        self,
        positions: Positions,
        rules: SearchRules,
        augmentation: Augmentation | None,
        images: bool,
    ) -> Refined:
        """Learn on the rows at some positions."""
        size, rng, discrete = self._largest_size(), self.rng, self.problem.blocks.discrete
        if size is None:
            return self.unchanged("no map fits in the budget")
        rows = self.given.gather(positions)
        assert size.rank is not None
        setup = TrainingSetup.of(rows, size.rank, rng, self.problem.kernel, self.start.projection)
        if augmentation is not None:
            setup = augmentation.applied(setup, positions, rng)
        seed = rng.randint(2**31 - 1)
        search = RefinementSearch(
            self.problem,
            self.selector,
            self.start,
            rows,
            seed,
            self.deadline,
            self.budget,
            rules,
            setup=setup,
            images=images,
        )
        rate = rules.image_rate if images else 1.0
        found = search.run(size, self.refinement.recipes(len(rows), discrete, rate))
        learned = found.comparison.better
        self._note_outcome(found.comparison, found.candidate if learned else None)
        if not learned:
            return Refined(self.start, False, None, found.comparison, found.candidate_scores)
        reason = ""
        if found.candidate.size.n < size.n:
            reason = f"more of the {size.n} that fit in the budget are no better on held-out rows"
            self._note(f"{found.candidate.size.n} landmarks; {reason}")
        return replace(self._learned(found, search.refit(found)), reason=reason)

    def learn_table(
        self, positions: Positions, tables: Tables, rules: TableRules, may_grow: bool
    ) -> Refined:
        """Learn on the rows of a table at some positions."""
        given, seed = self.given, self.rng.randint(2**31 - 1)
        compared = np.sort(self.rng.permutation(positions)[: rules.compared_rows])
        rows, views = given.gather(compared), tables(compared)
        search = TableSearch(
            self.problem,
            self.selector,
            self.start,
            rows,
            seed,
            self.deadline,
            self.budget,
            rules,
            views=views,
            may_grow=may_grow,
        )
        found = search.run(*self.refinement.table_styles(self.problem.blocks.discrete))
        if found is None:
            return self.unchanged("no map fits in the budget")
        learned = found.best is not None
        self._note_outcome(found.comparison, found.best.candidate if found.best else None)
        if not learned:
            scores = found.scores.unrefined
            return Refined(
                self.start, False, None, found.comparison, found.candidate_scores, scores
            )
        if len(compared) < len(positions):
            rows, views = given.gather(positions), tables(positions)
        assert found.best is not None
        grown = may_grow and found.best.candidate.size.n > self.start.landmarks.shape[0]
        reason = "the least number for learning on a table" if grown else ""
        return replace(self._learned(found, search.refit(found, rows, views)), reason=reason)

    def unchanged(self, reason: str) -> Refined:
        """Return the unrefined model, and say why."""
        self._note(f"{reason}; the model stays as it was")
        return Refined(self.start, reason=reason)

    def _largest_size(self) -> Size | None:
        """Return the largest size of the learned model; None if no map fits in the budget."""
        n_features = self.problem.blocks.n_features
        if self.budget is None:
            return Size(self.start.landmarks.shape[0], self.refinement.rank_of(n_features))
        return self.refinement.size(self.budget, self.given, n_features)

    def _learned(self, found: SearchResult | TableResult, expansion: KernelExpansion) -> Refined:
        scores = found.scores
        return Refined(
            expansion,
            True,
            _scaling(scores),
            found.comparison,
            found.candidate_scores,
            scores,
        )

    def _note(self, text: str) -> None:
        self.problem.blocks.progress.note(f"refine: {text}")

    def _note_outcome(self, comparison: PairedComparison, learned: Candidate | None) -> None:
        """Report the comparison with the unrefined model, and the candidate that is kept if any."""
        outcome = "the learned model is kept" if learned else "the unrefined model is kept"
        self._note(f"{comparison}; {outcome}")
        blocks = self.problem.blocks
        unrefined = Trial.of(
            "refinement",
            UNREFINED,
            comparison.before,
            blocks.discrete,
            comparison.n_rows,
            UNREFINED,
            n_landmarks=int(self.start.landmarks.shape[0]),
            chosen=learned is None,
        )
        blocks.progress.record.add(unrefined)
        if learned is not None:
            blocks.progress.record.choose("refinement", learned.description)


def _scaling(scores: ValidationScores) -> Scaling | None:
    """Return the scaling from scores to probabilities on held-out rows; None for values."""
    if not scores.targets.discrete:
        return None
    return fit_scaling(scores.outputs / scores.score_unit, scores.targets.labels, scores.weight)


def _affordable(blocks: RowBlocks, max_rows: int, rng: np.random.RandomState) -> int:
    """Return the number of rows that fit in half of the working memory, as given and in float32."""
    most = min(max_rows, blocks.n_candidates)
    allowed = working_bytes() // 2
    row_bytes = blocks.n_features * (blocks.dtype.itemsize + 4.0)
    if most * row_bytes > allowed:
        some = blocks.gather(blocks.sample(min(most, MEASURED_ROWS), rng)).X
        if sp.issparse(some):
            row_bytes = 2.0 * stored_bytes(some) / some.shape[0]
    return int(max(min(most, allowed // row_bytes), MIN_ROWS))


def _affordable_of_table(
    blocks: RowBlocks, tables: Tables, rules: TableRules, rng: np.random.RandomState
) -> int:
    """Return the number of rows whose largest view fits in half of the working memory.

    A view is held in float32, as given and about its mean.
    """
    some = tables(blocks.sample(min(MEASURED_ROWS, blocks.n_candidates), rng))
    n_columns = blocks.n_features + max(rules.max_bins, rules.least_bins * some.n_numbers)
    return int(max(working_bytes() // 2 // (8 * n_columns), MIN_ROWS))
