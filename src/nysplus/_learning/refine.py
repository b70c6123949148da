"""Learning after selection: landmarks, coefficients and a linear map.

The landmarks of a fitted model are where training starts. How it goes best is found on rows that
are held out, and so is whether it helps at all: the model that training started from stays where
the learned one is not better by more than chance would make it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from nysplus._bytes.budget import Limit, Size, most_landmarks
from nysplus._holdout import PairedComparison
from nysplus._learning.search import Clock, Trial, Way
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.training import Recipe
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import RowBlocks
from nysplus._runtime.memory import working_bytes
from nysplus._validation import check_count
from nysplus.expansion import KernelExpansion, stored_bytes
from nysplus.kernels import Kernel
from nysplus.landmarks import LandmarkSelector, Problem

# Directions that the map keeps, unless told otherwise.
MAX_RANK = 32
# Fewer rows cannot be parted into some to learn from and some to judge by.
MIN_ROWS = 40
# Epochs: this over the root of the number of rows, and at most so many; and the fewest steps.
EPOCHS_OF_ONE_ROW, MAX_EPOCHS, MIN_STEPS = 4500.0, 40, 600
# Widths to start with (see `Refinement`), and how fast coefficients shrink, where values are noisy.
CLASS_WIDTHS, VALUE_WIDTHS, DECAYS = (0.15, 0.05), (1.5, 5.0), (0.0, 0.1, 0.5)
# Where these epochs are few, runs of up to so many times as many are tried as well.
LONGER = 4.0
# Rows of a batch, for up to so many rows.
BATCHES = ((5000, 64), (50_000, 256), (np.inf, 512))
# Rows that tell how much memory a sparse row takes.
MEASURED_ROWS = 100


@dataclass(repr=False, eq=False)
class Refinement(BaseEstimator):
    """Learn landmarks, coefficients and a linear map of the features after the selection.

    Parameters
    ----------
    rank : "auto" or int, default="auto"
        Directions of the features that the map keeps, which are the columns of the landmarks:
        all of them up to 32 features, else 32, with "auto"; under a budget up to 64, by trial.
    n_epochs : int, optional
        How often training goes through the rows; by default 40 times, more often below 1000 rows
        and less often beyond 12000, but up to four times as often as that where it helps.
    batch_size : int, optional
        Rows of a step; by default 64, 256 from 5000 and 512 from 50000 rows on.
    learning_rate : float, default=0.04
        Size of the largest steps of landmarks, in units of the kernel's width.
    widths : tuple of float, optional
        Squared distance of rows to the landmarks next to them, in units of the kernel's width,
        that training starts with: a smaller number makes wider kernels. All are tried; by default
        0.15 and 0.05, for values 1.5 and 5.
    search : bool, default=True
        Whether widths, step sizes and penalties, under a budget also sizes, and longer runs are
        compared on held-out rows first. Without, the first of them is taken, in a third of the
        time; whether learning helps is judged all the same.
    max_rows : int, default=500000
        Rows that are learned from, drawn uniformly; fewer if they do not fit in half of
        scikit-learn's `working_memory`.
    max_seconds : float, optional
        About how long training may take; choosing landmarks and rounding come on top. Results
        then depend on the machine.

    Notes
    -----
    Adam on cross-entropy, or on squared errors of values, one cycle of step sizes, in float32. The
    intercept is the logarithm of the classes' shares, or the mean of the values, and is not
    trained: far from all landmarks it is all that is left. A step costs
    O(batch_size (n r + n L + d r)). Up to 5000 rows, all candidates are trained on each of
    five folds; with more, on one split, for a quarter of the steps where whole runs take many
    seconds. The unrefined model, fitted without the rows that judge unless it has many rows for
    each landmark, stays if the learned one is not better by 2.5 standard errors, or by one with
    more rows, up to three splits being joined if need be.
    """

    rank: str | int = "auto"
    n_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float = 0.04
    widths: tuple[float, ...] | None = None
    search: bool = True
    max_rows: int = 500_000
    max_seconds: float | None = None

    def check(self, kernel: Kernel, n_features: int) -> None:
        """Raise unless the parameters fit the kernel and the rows. Called before any work."""
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
            if self.rank > n_features:
                raise ValueError(
                    f"rank={self.rank} exceeds the {n_features} features of X. Lower it, or use "
                    "rank='auto'."
                )
        if not isinstance(self.search, (bool, np.bool_)):
            raise ValueError(f"search={self.search!r} must be True or False.")
        check_count("n_epochs", self.n_epochs, optional=True)
        check_count("batch_size", self.batch_size, optional=True)
        check_count("max_rows", self.max_rows, at_least=MIN_ROWS)
        _check_positive("learning_rate", self.learning_rate)
        if self.max_seconds is not None:
            _check_positive("max_seconds", self.max_seconds)
        if self.widths is None:
            return
        if not isinstance(self.widths, (tuple, list)) or not self.widths:
            raise ValueError(
                f"widths={self.widths!r} must be None or a tuple of at least one positive number."
            )
        for width in self.widths:
            _check_positive("widths", width)

    def rank_of(self, n_features: int) -> int:
        """Return the number of directions for so many features."""
        return min(n_features, MAX_RANK) if self.rank == "auto" else int(self.rank)

    def sizes(self, limit: Limit, blocks: RowBlocks) -> list[Size]:
        """Return the sizes within a number of bytes that are tried."""
        most, r = most_landmarks(blocks.n_candidates), blocks.n_features
        if self.rank != "auto":
            return limit.budget.sizes(int(self.rank), blocks.n_outputs, most, limit.n_features)[-1:]
        sizes = limit.budget.learned_sizes(limit.n_features, blocks.n_outputs, most, r)
        middle = len(sizes) // 2
        return sizes if self.search else sizes[middle : middle + 1]

    def ways(self, n_rows: int, discrete: bool = True) -> list[Way]:
        """Return the ways to train that are tried: the first is the one that most often wins."""
        batch = self.batch_size or next(size for most, size in BATCHES if n_rows <= most)
        batch = min(batch, n_rows)
        epochs = self.n_epochs or min(MAX_EPOCHS, EPOCHS_OF_ONE_ROW / np.sqrt(n_rows))
        n_steps = int(-(-epochs * n_rows // batch))
        if self.n_epochs is None:
            n_steps = max(n_steps, MIN_STEPS)
        longer = 1.0 if self.n_epochs else min(LONGER, MAX_EPOCHS / epochs)
        plain = Recipe(n_steps, batch, self.learning_rate)
        ways = self._class_ways(plain) if discrete else self._value_ways(plain)
        if not self.search:
            return ways[:1]
        return [replace(way, longer=longer) for way in ways]

    def _class_ways(self, plain: Recipe) -> list[Way]:
        widths = self.widths or CLASS_WIDTHS
        # for classes that hardly overlap, for noisy targets, and for few rows
        bare = replace(plain, smoothing=0.0)
        sharp = replace(bare, decay=0.05)
        gentle = replace(
            plain, n_steps=-(-plain.n_steps // 2), rate=plain.rate / 4, coef_rate=0.1, decay=0.1
        )
        ways = [Way(width, plain) for width in widths]
        return [*ways, Way(widths[-1], bare), Way(widths[0], sharp), Way(widths[0], gentle)]

    def _value_ways(self, plain: Recipe) -> list[Way]:
        widths = self.widths or VALUE_WIDTHS
        bare = replace(plain, smoothing=0.0, decay=0.0)
        # coefficients that lag behind the landmarks, and stay small where values are noisy
        calm = replace(bare, rate=2.0 * plain.rate, coef_rate=0.1)
        ways = [Way(width, bare) for width in widths[:-1]]
        return [*ways, *(Way(widths[-1], replace(calm, decay=decay)) for decay in DECAYS)]


def _check_positive(name: str, value: Any) -> None:
    is_number = isinstance(value, (Real, np.number)) and value is not True
    if not is_number or not 0 < value < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number above 0.")


def make_refinement(refine: Any) -> Refinement | None:
    """Return the refinement that the parameter `refine` asks for, or is; None for none."""
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
    """What :func:`refine` found.

    Attributes
    ----------
    expansion : KernelExpansion
        The learned model, with a projection, or the one that learning started from.
    kept : bool
        Whether the learned model is the better one.
    dtype : str or None
        What its numbers are to be stored in, by the rows that judged; None for no other.
    scaling : Scaling or None
        From the learned model's scores to probabilities; None for values and where the first
        model stays.
    verdict : PairedComparison or None
        None where nothing could be tried.
    row_scores : tuple of float
        Of the candidates on the held-out rows, in the order they were tried.
    """

    expansion: KernelExpansion
    kept: bool = False
    dtype: str | None = None
    scaling: Scaling | None = None
    verdict: PairedComparison | None = None
    row_scores: tuple[float, ...] = ()


def refine(
    problem: Problem,
    selector: LandmarkSelector,
    start: KernelExpansion,
    refinement: Refinement,
    rng: np.random.RandomState,
    limit: Limit | None = None,
) -> Refined:
    """Learn landmarks, coefficients and a linear map from where a fitted model stands.

    Parameters
    ----------
    problem : Problem
        Rows with targets, as the kernel sees them, and what `start` was fitted with.
    selector : LandmarkSelector
        That chose the landmarks of `start`, and chooses others without the rows that judge.
    start : KernelExpansion
        Without a projection.
    refinement : Refinement
    rng : RandomState
    limit : Limit, optional
        Bytes that the model may take; by default it has as many landmarks as `start`.
    """
    blocks = problem.blocks
    clock = Clock(refinement.max_seconds)
    rows = blocks.gather(blocks.sample(_affordable(blocks, refinement.max_rows, rng), rng))
    if len(rows) < MIN_ROWS:
        blocks.progress.note(f"refine: {len(rows)} rows are too few; the model stays as it was")
        return Refined(start)
    rank = refinement.rank_of(blocks.n_features)
    if limit is None:
        sizes, dtype = [Size(start.landmarks.shape[0], rank)], None
    else:
        sizes, dtype = refinement.sizes(limit, blocks), limit.dtype
    if not sizes:
        blocks.progress.note("refine: no map fits in the budget; the model stays as it was")
        return Refined(start)
    widest = max(size.rank or 0 for size in sizes)
    learner = TrainingSetup.of(rows, widest, rng, problem.kernel)
    seed = rng.randint(2**31 - 1)
    trial = Trial(problem, selector, start, rows, learner, seed, clock, dtype)
    choice = trial.choose(sizes, refinement.ways(len(rows), blocks.discrete))
    verdict = choice.verdict
    outcome = "the learned model is kept" if verdict.better else "the model stays as it was"
    blocks.progress.note(f"refine: {verdict}; {outcome}")
    if not verdict.better:
        return Refined(start, verdict=verdict, row_scores=choice.row_scores)
    expansion, held, scaling = trial.final(choice), choice.held, None
    if held.targets.discrete:
        scaling = fit_scaling(held.scores / held.score_unit, held.targets.labels, held.weight)
    stored_as = next(iter(choice.candidate.size.dtypes), None)
    return Refined(expansion, True, stored_as, scaling, verdict, choice.row_scores)


def _affordable(blocks: RowBlocks, max_rows: int, rng: np.random.RandomState) -> int:
    """Return how many rows fit in half of the working memory, as given and in float32."""
    most = min(max_rows, blocks.n_candidates)
    allowed = working_bytes() // 2
    row_bytes = blocks.n_features * (blocks.dtype.itemsize + 4.0)
    if most * row_bytes > allowed:
        some = blocks.gather(blocks.sample(min(most, MEASURED_ROWS), rng)).X
        if sp.issparse(some):
            row_bytes = 2.0 * stored_bytes(some) / some.shape[0]
    return int(max(min(most, allowed // row_bytes), MIN_ROWS))
