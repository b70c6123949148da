"""Candidates of a search for the best training, and the rules by which they are compared."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from nysplus._bytes.budget import Size
from nysplus._learning.training import TrainingOptions


@dataclass(frozen=True)
class SearchRules:
    """The numbers that steer a search, and the reason for each."""

    # Up to this many rows every row is held out once: one fold has too few rows to choose by.
    few_rows: int = 5000
    # A fifth of the rows in a fold, a tenth where rows are many, but not more rows than this: more
    # are better used for training.
    n_folds: int = 5
    many_rows: int = 10_000
    n_folds_of_many: int = 10
    max_fold_rows: int = 5000
    # An unrefined model with more rows per landmark scores its own rows as well as new rows, so
    # that it need not be fitted again without a fold.
    honest_ratio: int = 50
    # Candidates are compared after this share of a run, where rows are more than this and a run
    # takes more operations than this (seconds). Short runs favour small models, and on few rows,
    # which are often noisy, only complete runs show which candidate is best.
    short_share: float = 0.25
    short_rows: int = 20_000
    short_cost: float = 1e11
    # Under a budget, a model with this share of the landmarks is a candidate as well: targets may
    # be too noisy for the largest size.
    fewer_landmarks: float = 0.3
    # Standard errors by which a recipe must be better than the first one, which most often is best.
    convincing: float = 1.0
    # A run that is longer by a smaller factor is not worth its time.
    min_lengthening: float = 1.3
    # Standard errors by which the trained model must be better than the unrefined one. More where
    # rows are few: the best candidate was chosen on the same rows.
    needed: float = 1.0
    needed_with_few_rows: float = 2.5
    # A difference between these numbers of standard errors may be chance: more folds are held out,
    # up to this many in total.
    uncertain: tuple[float, float] = (-1.0, 2.0)
    max_folds: int = 3
    # Rows that landmarks are selected from to start training: 10,000, or ten per landmark.
    start_rows: int = 10_000
    start_ratio: int = 10
    # Shares of the remaining time, where it is limited: for the size, for the recipe with few rows
    # and with many, and for each run after that.
    size_time: float = 0.2
    few_rows_time: float = 0.8
    recipe_time: float = 0.35
    run_time: float = 0.5

    def count_folds(self, n_rows: int) -> int:
        """Return the number of folds that rows are divided into."""
        if n_rows <= self.many_rows:
            return self.n_folds
        return max(self.n_folds_of_many, -(-n_rows // self.max_fold_rows))


DEFAULT_RULES = SearchRules()


@dataclass(frozen=True)
class Recipe:
    """A width to start with and options to train with.

    Attributes
    ----------
    width : float
        See :meth:`~nysplus._learning.setup.TrainingSetup.first`.
    options : TrainingOptions
    max_lengthening : float
        The factor by which a run may become longer, if that helps.
    """

    width: float
    options: TrainingOptions
    max_lengthening: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A model size, a recipe, and the length of the run.

    Attributes
    ----------
    size : Size
    recipe : Recipe
    length : float
        In complete runs of the recipe.
    """

    size: Size
    recipe: Recipe
    length: float = 1.0

    @property
    def options(self) -> TrainingOptions:
        """The options of the run."""
        return self.recipe.options.scaled(self.length)

    def cost(self, d: int, L: int) -> float:
        """Return the operations of a run, for rows of d features with L outputs."""
        n, r = self.size.n, self.size.rank or 0
        return float(self.options.n_rows) * (6.0 * n * (r + L) + 4.0 * d * r)


@dataclass(frozen=True)
class Deadline:
    """The time that is left of a number of seconds; None for unlimited time."""

    seconds: float | None
    _begin: float = field(default_factory=time.perf_counter)

    def share(self, share: float) -> float | None:
        """Return a share of the seconds left, always above zero."""
        if self.seconds is None:
            return None
        return max(share * (self.seconds - (time.perf_counter() - self._begin)), 1e-3)

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return self.seconds is not None and time.perf_counter() - self._begin >= self.seconds
