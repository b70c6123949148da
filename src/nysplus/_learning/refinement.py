"""The parameters of refinement, and the ways to train that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from nysplus._bytes.budget import Budget, Size, most_landmarks
from nysplus._learning.candidates import Recipe
from nysplus._learning.sizes import size_by_rule
from nysplus._learning.tables import CLASS_STYLES, VALUE_STYLES, TableRules, TableStyle
from nysplus._learning.training import TrainingOptions
from nysplus._rows.blocks import RowBlocks
from nysplus._validation import check_count, check_positive
from nysplus.kernels import Kernel

# Columns of the map with rank="auto" and no budget.
MAX_RANK = 32
# Fewer rows are too few to hold some of them out.
MIN_ROWS = 40
# Epochs at most and at least, the number of rows that all epochs have together in between, and the
# number of steps at least, for few rows.
MAX_EPOCHS, MIN_EPOCHS, EPOCH_ROWS, MIN_STEPS = 20.0, 3.0, 600_000.0, 600
# The factor by which runs on values are longer.
VALUE_EPOCHS = 2.0
# The average of squared gradients over 20 steps makes runs half as long as good as those with 100.
BETA2 = 0.95
# Widths to start with (see `Refinement`), and weight decays for values, which may be noisy.
CLASS_WIDTHS, VALUE_WIDTHS, VALUE_DECAYS = (0.15, 0.05), (1.5, 5.0), (0.0, 0.1, 0.5)
# The factor by which runs may become longer.
MAX_LENGTH = 6.0
# Batch sizes, each for up to a number of rows.
BATCH_SIZES = ((5000, 64), (50_000, 256), (np.inf, 512))


@dataclass(repr=False, eq=False)
class Refinement(BaseEstimator):
    """Learn landmarks, coefficients and a linear map of the features after the selection.

    Parameters
    ----------
    rank : "auto" or int, default="auto"
        Columns of the map, and of the landmarks. "auto": the number of features, at most 32; under
        a budget, beyond 32 features, a number that grows with the bytes: 16 for 2 kB, 33 for 16 kB.
    n_epochs : int, optional
        Number of epochs. By default 20, more below 3000 rows and fewer beyond 30000, and twice as
        many for values; up to six times as many for small models where classes hardly overlap, of
        images up to 40 in total, and where held-out rows prefer it.
    batch_size : int, optional
        By default 64, 256 from 5000 and 512 from 50000 rows on.
    learning_rate : float, default=0.04
        Largest learning rate of landmarks, in units of the kernel's width. With an
        :class:`~nysplus.encoding.ImageEncoder`, half of it is used.
    widths : tuple of float, optional
        Squared distances between rows and their nearest landmarks at the start of training, in
        units of the kernel's width: a smaller number makes wider kernels. Where classes overlap,
        all are compared on held-out rows. By default 0.15 and 0.05, for values 1.5 and 5.
    search : bool, default=True
        Whether widths, learning rates, penalties and longer runs, under a budget also fewer
        landmarks, are compared on held-out rows where classes overlap. Without a search the first
        of each is used. Whether learning helps is decided on held-out rows in both cases.
    max_rows : int, default=500000
        Rows to learn from, drawn uniformly; fewer if they do not fit in half of scikit-learn's
        `working_memory`.
    max_seconds : float, optional
        Time limit of refinement; the unrefined model that it starts from comes on top. Under a
        limit, less is compared, and under a budget this unrefined model is kept unless learning
        helps. Results then depend on the machine.

    Notes
    -----
    Adam in float32 on cross-entropy, or on squared errors of values, with one cycle of learning
    rates. The intercept is the logarithm of the classes' shares, or the mean of the values, and is
    not trained: it is the score of rows far from all landmarks. A step costs
    O(batch_size (n r + n L + d r)).

    A short run with a tenth of the landmarks comes first. If it makes few errors on held-out rows
    (4 % of two classes, 12 % of more), one long run follows. Otherwise, and for values, recipes are
    compared, under a budget with a tenth of the landmarks that fit. The best one is trained with 30
    and 100 % of them, and for longer, as long as each is better than the one before by half a
    standard error. Up to 5000 rows, every row is held out once, in five folds; of more rows, one
    fold. The unrefined model, under a budget one of at most 400 landmarks, is fitted again without
    the held-out rows unless it has many rows per landmark. It is kept, or under a budget the model
    of ``refine=False`` is fitted, unless the learned model is better by 2.5 standard errors, or by
    one with more than 5000 rows, on up to three folds. Under a budget, the numbers of the learned
    model have 3 to 8 bits, and are trained as they are stored in the last fifth of the run.

    For tables with an encoder, candidates differ in the code of the numbers, in decay of the
    coefficients and of the map, and in length; columns are weighted by the gradients of a first
    fit. Candidates are compared on a fifth of at most 12500 rows, on two or three fifths below 7500
    rows: all of them after short runs with 100 landmarks, the best two after whole runs. Of those
    within one standard error of the best accuracy, the one of the smallest log-loss is trained on
    all rows; for values, the one of the smallest squared error, if it is better than the first by
    one standard error. The unrefined model is kept if it has a higher accuracy and a smaller
    log-loss than this one (up to 1500 rows, one of both), or a smaller squared error. Without a
    search there is one candidate.
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

    def size(self, budget: Budget, blocks: RowBlocks, max_rank: int) -> Size | None:
        """Return the largest size within a budget; None if no map fits."""
        d, L, most = blocks.n_features, blocks.n_outputs, most_landmarks(blocks.n_candidates)
        rank = None if self.rank == "auto" else int(self.rank)
        return size_by_rule(budget, d, L, most, rank, max_rank, blocks.discrete)

    def recipes(self, n_rows: int, discrete: bool = True, rate: float = 1.0) -> list[Recipe]:
        """Return the recipes that are compared, the one that is most often best first.

        Parameters
        ----------
        n_rows : int
        discrete : bool
            Whether targets are classes or labels.
        rate : float
            Share of the learning rate that landmarks and map have.
        """
        batch = self.batch_size or next(size for most, size in BATCH_SIZES if n_rows <= most)
        batch = min(batch, n_rows)
        longer = 1.0 if discrete else VALUE_EPOCHS
        epochs = self.n_epochs or longer * max(MIN_EPOCHS, min(MAX_EPOCHS, EPOCH_ROWS / n_rows))
        n_steps = int(-(-epochs * n_rows // batch))
        if self.n_epochs is None:
            n_steps = max(n_steps, MIN_STEPS)
        options = TrainingOptions(n_steps, batch, rate * self.learning_rate, beta2=BETA2)
        recipes = self._class_recipes(options) if discrete else self._value_recipes(options)
        if not self.search:
            return recipes[:1]
        longest = 1.0 if self.n_epochs else MAX_LENGTH
        return [replace(recipe, max_length=longest) for recipe in recipes]

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
