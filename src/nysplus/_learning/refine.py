"""Refine a fitted model: learn landmarks, coefficients and a linear map.

Training starts from the landmarks of the fitted model. Held-out rows decide how to train, and
whether training helps at all: the unrefined model is kept unless the learned model is better by
more than chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from nysplus._bytes.budget import Limit, ModelShape, Size, most_landmarks
from nysplus._holdout import PairedComparison, Positions
from nysplus._learning.augmentation import Augmentation
from nysplus._learning.candidates import DEFAULT_RULES, Deadline, Recipe, SearchRules
from nysplus._learning.search import RefinementSearch
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.table_search import TableSearch
from nysplus._learning.tables import (
    CLASS_STYLES,
    TABLE_RULES,
    VALUE_STYLES,
    TableRules,
    Tables,
    TableStyle,
)
from nysplus._learning.training import TrainingOptions
from nysplus._learning.validation import ValidationScores
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import RowBlocks
from nysplus._runtime.memory import working_bytes
from nysplus._validation import check_count, check_positive
from nysplus.expansion import KernelExpansion, stored_bytes
from nysplus.kernels import Kernel
from nysplus.landmarks import LandmarkSelector, Problem

# Columns of the map with rank="auto" and no budget.
MAX_RANK = 32
# Fewer rows are too few to hold some of them out.
MIN_ROWS = 40
# The number of epochs is the first number over the root of the number of rows, but not more than
# the second; with few rows there are at least this many steps.
EPOCHS_OF_ONE_ROW, MAX_EPOCHS, MIN_STEPS = 4500.0, 40, 600
# Widths to start with (see `Refinement`), and weight decays for values, which may be noisy.
CLASS_WIDTHS, VALUE_WIDTHS, VALUE_DECAYS = (0.15, 0.05), (1.5, 5.0), (0.0, 0.1, 0.5)
# Where the epochs are fewer than `MAX_EPOCHS`, longer runs are tried, up to this factor.
MAX_LENGTHENING = 4.0
# Batch sizes, each for up to a number of rows.
BATCH_SIZES = ((5000, 64), (50_000, 256), (np.inf, 512))
# Rows that tell how much memory a sparse row takes.
MEASURED_ROWS = 100


@dataclass(repr=False, eq=False)
class Refinement(BaseEstimator):
    """Learn landmarks, coefficients and a linear map of the features after the selection.

    Parameters
    ----------
    rank : "auto" or int, default="auto"
        Columns of the map, and of the landmarks. "auto": the number of features, at most 32; under
        a budget several ranks up to 64 are compared on held-out rows.
    n_epochs : int, optional
        Number of epochs. By default 40, more below 1000 rows and fewer beyond 12000, but up to
        four times as many as that where held-out rows prefer it.
    batch_size : int, optional
        By default 64, 256 from 5000 and 512 from 50000 rows on.
    learning_rate : float, default=0.04
        Largest learning rate of landmarks, in units of the kernel's width.
    widths : tuple of float, optional
        Squared distances between rows and their nearest landmarks at the start of training, in
        units of the kernel's width: a smaller number makes wider kernels. All are compared on
        held-out rows. By default 0.15 and 0.05, for values 1.5 and 5.
    search : bool, default=True
        Whether widths, learning rates, penalties and longer runs, under a budget also sizes, are
        compared on held-out rows first. Without a search the first of each is used, in a third of
        the time. Whether learning helps is decided on held-out rows in both cases.
    max_rows : int, default=500000
        Rows to learn from, drawn uniformly; fewer if they do not fit in half of scikit-learn's
        `working_memory`.
    max_seconds : float, optional
        Approximate time limit of training; selecting landmarks and quantising come on top. Results
        then depend on the machine.

    Notes
    -----
    Adam in float32 on cross-entropy, or on squared errors of values, with one cycle of learning
    rates. The intercept is the logarithm of the classes' shares, or the mean of the values, and is
    not trained: it is the score of rows far from all landmarks. A step costs
    O(batch_size (n r + n L + d r)). Up to 5000 rows, all candidates are trained on each of
    five folds; with more rows, without one fold, for a quarter of the steps where complete runs
    take many seconds. The unrefined model is fitted again without the held-out rows unless it has
    many rows per landmark. It is kept unless the learned model is better by 2.5 standard errors, or
    by one with more than 5000 rows, on up to three folds.

    For tables with an encoder, candidates differ in the code of the numbers, in decay of the
    coefficients and of the map, and in length; columns are weighted by the gradients of a first
    fit. Candidates are compared on a fifth of at most 12500 rows, on two or three fifths below 7500
    rows. Of those within one standard error of the best accuracy, the one of the smallest log-loss
    is trained on all rows; for values, the one of the smallest squared error, if it is better than
    the first by one standard error. The unrefined model is kept if it has a higher accuracy and a
    smaller log-loss than this one (up to 1500 rows, one of both), or a smaller squared error.
    Without a search there is one candidate. Under a budget sizes follow from the bytes, and numbers
    of 4 to 8 bits are trained as they are stored.
    """

    rank: str | int = "auto"
    n_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float = 0.04
    widths: tuple[float, ...] | None = None
    search: bool = True
    max_rows: int = 500_000
    max_seconds: float | None = None

    def check(self, kernel: Kernel, n_features: int | None) -> None:
        """Raise unless the parameters suit the kernel and the rows. Called before any work.

        The number of features is None as long as the code of a table is not known.
        """
        if not kernel.differentiable:
            raise ValueError(
                f"refine moves landmarks along the gradient of the kernel, which {kernel!r} does "
                "not have everywhere. Use kernel='rbf' or a Matern kernel with nu=1.5 or 2.5, or "
                "leave refine=False."
            )
        if self.rank != "auto":
            if isinstance(self.rank, str):
                raise ValueError(
                    f"rank={self.rank!r} is not known. Allowed are 'auto' or an integer of at "
                    "least 1."
                )
            check_count("rank", self.rank)
            if n_features is not None and self.rank > n_features:
                raise ValueError(
                    f"rank={self.rank} exceeds the {n_features} features of X. Lower it, or use "
                    "rank='auto'."
                )
        if not isinstance(self.search, (bool, np.bool_)):
            raise ValueError(f"search={self.search!r} must be True or False.")
        check_count("n_epochs", self.n_epochs, optional=True)
        check_count("batch_size", self.batch_size, optional=True)
        check_count("max_rows", self.max_rows, at_least=MIN_ROWS)
        check_positive("learning_rate", self.learning_rate)
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        if self.widths is None:
            return
        if not isinstance(self.widths, (tuple, list)) or not self.widths:
            raise ValueError(
                f"widths={self.widths!r} must be None or a tuple of at least one positive number."
            )
        for width in self.widths:
            check_positive("widths", width)

    def rank_of(self, n_features: int) -> int:
        """Return the columns of the map for a number of features."""
        return min(n_features, MAX_RANK) if self.rank == "auto" else int(self.rank)

    def sizes(self, limit: Limit, blocks: RowBlocks) -> list[Size]:
        """Return the sizes within a budget that are compared."""
        most, L = most_landmarks(blocks.n_candidates), blocks.n_outputs
        if self.rank != "auto":
            rank = int(self.rank)
            return limit.budget.sizes(ModelShape(rank, L, (limit.n_features, rank)), most)[-1:]
        sizes = limit.budget.learned_sizes(limit.n_features, L, most, blocks.n_features)
        middle = len(sizes) // 2
        return sizes if self.search else sizes[middle : middle + 1]

    def recipes(self, n_rows: int, discrete: bool = True) -> list[Recipe]:
        """Return the recipes that are compared, the one that is most often best first."""
        batch = self.batch_size or next(size for most, size in BATCH_SIZES if n_rows <= most)
        batch = min(batch, n_rows)
        epochs = self.n_epochs or min(MAX_EPOCHS, EPOCHS_OF_ONE_ROW / np.sqrt(n_rows))
        n_steps = int(-(-epochs * n_rows // batch))
        if self.n_epochs is None:
            n_steps = max(n_steps, MIN_STEPS)
        options = TrainingOptions(n_steps, batch, self.learning_rate)
        recipes = self._class_recipes(options) if discrete else self._value_recipes(options)
        if not self.search:
            return recipes[:1]
        longest = 1.0 if self.n_epochs else min(MAX_LENGTHENING, MAX_EPOCHS / epochs)
        return [replace(recipe, max_lengthening=longest) for recipe in recipes]

    def table_styles(self, discrete: bool) -> list[tuple[TableStyle, ...]]:
        """Return ways to train on tables: those that are compared first, then longer ones."""
        rounds: tuple[tuple[TableStyle, ...], ...] = CLASS_STYLES if discrete else VALUE_STYLES
        if not self.search:
            rounds = ((rounds[0][0],),)
        return [tuple(self._adapted(style) for style in styles) for styles in rounds]

    def _adapted(self, style: TableStyle) -> TableStyle:
        """Return a way to train on tables with the epochs and the width of this refinement."""
        if self.n_epochs is not None:
            style = replace(style, epochs=self.n_epochs, value_epochs=self.n_epochs)
        return style if self.widths is None else replace(style, width=self.widths[0])

    def table_rules(self, rules: TableRules) -> TableRules:
        """Return rules for tables with the other parameters of this refinement."""
        rules = replace(rules, learning_rate=self.learning_rate)
        if self.batch_size is not None:
            rules = replace(rules, batch_size=self.batch_size)
        if self.n_epochs is not None:
            metric_style = self._adapted(rules.metric_style)
            rules = replace(rules, least_steps=1, metric_style=metric_style)
        return (
            rules
            if self.rank == "auto"
            else replace(rules, rank=int(self.rank), ranks=(int(self.rank),))
        )

    def _class_recipes(self, options: TrainingOptions) -> list[Recipe]:
        widths = self.widths or CLASS_WIDTHS
        # for classes that hardly overlap
        unsmoothed = replace(options, label_smoothing=0.0)
        # for noisy targets
        decayed = replace(unsmoothed, weight_decay=0.05)
        # for few rows
        gentle = replace(
            options,
            n_steps=-(-options.n_steps // 2),
            learning_rate=options.learning_rate / 4,
            coef_learning_rate=0.1,
            weight_decay=0.1,
        )
        return [
            *(Recipe(width, options) for width in widths),
            Recipe(widths[-1], unsmoothed),
            Recipe(widths[0], decayed),
            Recipe(widths[0], gentle),
        ]

    def _value_recipes(self, options: TrainingOptions) -> list[Recipe]:
        widths = self.widths or VALUE_WIDTHS
        plain = replace(options, label_smoothing=0.0, weight_decay=0.0)
        # coefficients that lag behind the landmarks, and stay small where values are noisy
        calm = replace(plain, learning_rate=2.0 * options.learning_rate, coef_learning_rate=0.1)
        return [
            *(Recipe(width, plain) for width in widths[:-1]),
            *(Recipe(widths[-1], replace(calm, weight_decay=decay)) for decay in VALUE_DECAYS),
        ]


def make_refinement(refine: Any) -> Refinement | None:
    """Return the Refinement of the parameter `refine`; None for no refinement."""
    if refine is None or refine is False:
        return None
    if refine is True:
        return Refinement()
    if isinstance(refine, Refinement):
        return refine
    raise ValueError(
        f"refine={refine!r} is not known. Allowed are False, True, or a Refinement object."
    )


@dataclass(frozen=True)
class Refined:
    """The result of :func:`refine`.

    Attributes
    ----------
    expansion : KernelExpansion
        The learned model, with a projection, or the unrefined model.
    kept : bool
        Whether `expansion` is the learned model.
    dtype : str or None
        Storage type of the learned model, chosen on held-out rows; None without a budget, and if
        its numbers were trained in few bits.
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
    """

    expansion: KernelExpansion
    kept: bool = False
    dtype: str | None = None
    scaling: Scaling | None = None
    comparison: PairedComparison | None = None
    candidate_scores: tuple[float, ...] = ()
    scores: ValidationScores | None = None


def refine(
    problem: Problem,
    selector: LandmarkSelector,
    start: KernelExpansion,
    refinement: Refinement,
    rng: np.random.RandomState,
    limit: Limit | None = None,
    rules: SearchRules = DEFAULT_RULES,
    tables: Tables | None = None,
    table_rules: TableRules = TABLE_RULES,
    augmentation: Augmentation | None = None,
) -> Refined:
    """Learn landmarks, coefficients and a linear map, starting from a fitted model.

    Parameters
    ----------
    problem : Problem
        Rows with targets, as the kernel sees them, and the parameters of the fit of `start`.
    selector : LandmarkSelector
        The selector of `start`; it selects landmarks again without held-out rows.
    start : KernelExpansion
        The fitted model, without a projection.
    refinement : Refinement
    rng : RandomState
    limit : Limit, optional
        The budget; by default the learned model has as many landmarks as `start`.
    rules : SearchRules, optional
    tables : callable, optional
        From positions of rows in `problem.blocks` to their views by different codes: for rows of a
        table, whose code is chosen as well. The learned model then has an encoder, and is a
        function of the raw numbers of the table.
    table_rules : TableRules, optional
    augmentation : Augmentation, optional
        How images are changed in every batch; by default not at all.
    """
    blocks, deadline = problem.blocks, Deadline(refinement.max_seconds)
    n_rows = _affordable(blocks, refinement.max_rows, rng)
    n_rows = min(n_rows, augmentation.affordable) if augmentation else n_rows
    if tables is not None:
        n_rows = min(n_rows, _affordable_of_table(blocks, tables, table_rules, rng))
    positions = blocks.sample(n_rows, rng)
    if len(positions) < MIN_ROWS:
        blocks.progress.note(
            f"refine: {len(positions)} rows are too few; the model stays as it was"
        )
        return Refined(start)
    if tables is not None:
        rules = refinement.table_rules(table_rules)
        return _refine_table(
            problem, selector, start, refinement, positions, tables, rng, deadline, limit, rules
        )
    rows = blocks.gather(positions)
    if limit is None:
        sizes = [Size(start.landmarks.shape[0], refinement.rank_of(blocks.n_features))]
    else:
        sizes = refinement.sizes(limit, blocks)
    if not sizes:
        blocks.progress.note("refine: no map fits in the budget; the model stays as it was")
        return Refined(start)
    setup = TrainingSetup.of(rows, max(size.rank or 0 for size in sizes), rng, problem.kernel)
    if augmentation is not None:
        setup = augmentation.applied(setup, positions, rng)
    seed = rng.randint(2**31 - 1)
    search = RefinementSearch(
        problem, selector, start, rows, seed, deadline, limit, rules, setup=setup
    )
    found = search.run(sizes, refinement.recipes(len(rows), blocks.discrete))
    better = found.comparison.better
    _note_outcome(blocks, found.comparison, better)
    if not better:
        return Refined(start, False, None, None, found.comparison, found.candidate_scores)
    return Refined(
        search.refit(found),
        True,
        found.dtype,
        _scaling(found.scores),
        found.comparison,
        found.candidate_scores,
        found.scores,
    )


def _refine_table(
    problem: Problem,
    selector: LandmarkSelector,
    start: KernelExpansion,
    refinement: Refinement,
    positions: Positions,
    tables: Tables,
    rng: np.random.RandomState,
    deadline: Deadline,
    limit: Limit | None,
    rules: TableRules,
) -> Refined:
    """Learn on the rows of a table at some positions (see :func:`refine`)."""
    blocks, seed = problem.blocks, rng.randint(2**31 - 1)
    compared = np.sort(rng.permutation(positions)[: rules.compared_rows])
    rows, views = blocks.gather(compared), tables(compared)
    search = TableSearch(problem, selector, start, rows, seed, deadline, limit, rules, views=views)
    found = search.run(*refinement.table_styles(blocks.discrete))
    if found is None:
        blocks.progress.note("refine: no map fits in the budget; the model stays as it was")
        return Refined(start)
    learned = found.best is not None
    _note_outcome(blocks, found.comparison, learned)
    if not learned:
        scores = found.scores.unrefined
        return Refined(start, False, None, None, found.comparison, found.candidate_scores, scores)
    if len(compared) < len(positions):
        rows, views = blocks.gather(positions), tables(positions)
    return Refined(
        search.refit(found, rows, views),
        True,
        None,
        _scaling(found.scores),
        found.comparison,
        found.candidate_scores,
        found.scores,
    )


def _note_outcome(blocks: RowBlocks, comparison: PairedComparison, learned: bool) -> None:
    outcome = "the learned model is kept" if learned else "the unrefined model is kept"
    blocks.progress.note(f"refine: {comparison}; {outcome}")


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
