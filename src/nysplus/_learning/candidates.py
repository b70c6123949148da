"""Candidates of a search for the best training, and the rules by which they are compared."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

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
    honest_ratio: int = 200
    # A quick look tells what rows are like: a run of this length with this share of the landmarks,
    # but not fewer than this many.
    quick_length: float = 0.5
    quick_share: float = 0.1
    quick_landmarks: int = 100
    # Up to this share of errors, of two classes and of more, a long run of the largest model is as
    # good as any: held-out rows could not tell others from it.
    clean_errors: float = 0.04
    clean_errors_of_many: float = 0.12
    # Of noisy rows, models of these shares of the landmarks are tried, the next larger one as long
    # as scores rise by this many standard errors: of equal ones the smaller.
    ladder: tuple[float, ...] = (0.1, 0.3, 1.0)
    least_rung: int = 50
    rising: float = 0.5
    # Standard errors by which another recipe must be better than the first one, which most often is
    # best.
    convincing: float = 1.0
    # Small models want long runs: runs on clean rows become longer as rows per landmark, from the
    # number of the largest models on, but only until they take this many operations (seconds).
    length_ratio: float = 8.0
    run_cost: float = 2.5e11
    # Images have many columns for their rows, which larger steps and longer runs overfit: landmarks
    # and map learn at this share of the rate, and long runs have at most this many epochs.
    image_rate: float = 0.5
    image_epochs: float = 40.0
    # Changed images are rows without end: runs become longer by this factor.
    augmented_length: float = 2.0
    # Standard errors by which the trained model must be better than the unrefined one. More where
    # rows are few: the best candidate was chosen on the same rows.
    needed: float = 1.0
    needed_with_few_rows: float = 2.5
    # A difference between these numbers of standard errors may be chance: more folds are held out,
    # up to this many in total.
    uncertain: tuple[float, float] = (-1.0, 2.0)
    max_folds: int = 3
    # Up to this many rows the final model is trained on all rows from the start: it takes seconds,
    # and a model continued from four fifths of the rows is worse by 0.1 points on USPS.
    refit_rows: int = 10_000
    # Rows that landmarks are selected from to start training: 10,000, or ten per landmark.
    start_rows: int = 10_000
    start_ratio: int = 10
    # Where time is limited: folds are held out until this share of it has passed, and nothing more
    # is compared after the second one.
    fold_time: float = 0.3
    compare_time: float = 0.7
    # Shares of the remaining time: for the quick look, for recipes, and for each run after that.
    quick_time: float = 0.1
    recipe_time: float = 0.3
    run_time: float = 0.6

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
    max_length : float
        The factor by which runs may become longer.
    """

    width: float
    options: TrainingOptions
    max_length: float = 1.0

    @property
    def description(self) -> str:
        """The numbers in which recipes differ, in words."""
        options = self.options
        text = f"width {self.width:g}, learning rate {options.learning_rate:g}"
        return f"{text}, weight decay {options.weight_decay:g}"


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
        return replace(self.recipe.options.scaled(self.length), bits=self.size.bits)

    @property
    def description(self) -> str:
        """Size, recipe and number of steps in words."""
        return f"{self.size_text}, {self.recipe.description}, {self.options.n_steps:,} steps"

    @property
    def size_text(self) -> str:
        """The number of landmarks, the rank of the map, and the bits of both and of A."""
        rank, bits = self.size.rank, self.size.bits
        text = f"{self.size.n:,} landmarks" + ("" if rank is None else f", rank {rank}")
        return text if bits is None else f"{text}, {'/'.join(map(str, bits))} bits"

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
    def used(self) -> float:
        """The share of the seconds that has passed; 0 for unlimited time."""
        passed = time.perf_counter() - self._begin
        return 0.0 if self.seconds is None else passed / self.seconds

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return self.used >= 1.0
