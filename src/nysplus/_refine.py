"""Learning after selection: landmarks, coefficients and a linear map, by cross-entropy.

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

from nysplus._blocks import RowBlocks, working_bytes
from nysplus._checks import check_count
from nysplus._expansion import KernelExpansion, stored_bytes
from nysplus._judging import Candidate, Clock, Trial, Verdict
from nysplus._learner import Learner
from nysplus._probability import Scaling, fit_scaling
from nysplus._training import Recipe
from nysplus.kernels import RBF, Kernel
from nysplus.landmarks import LandmarkSelector, Problem

# Directions that the map keeps, unless told otherwise.
MAX_RANK = 32
# Fewer rows cannot be parted into some to learn from and some to judge by.
MIN_ROWS = 40
# Epochs: this over the root of the number of rows, and at most so many; and the fewest steps.
EPOCHS_OF_ONE_ROW, MAX_EPOCHS, MIN_STEPS = 4500.0, 40, 600
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
        all of them up to 32 features, else 32, with "auto".
    n_epochs : int, optional
        How often training goes through the rows; by default 40 times, less often beyond 12000
        rows.
    batch_size : int, optional
        Rows of a step; by default 64, 256 from 5000 and 512 from 50000 rows on.
    learning_rate : float, default=0.04
        Size of the largest steps of landmarks, in units of the kernel's width.
    widths : tuple of float, default=(0.15, 0.05)
        Squared distance of rows to the landmarks next to them, in units of the kernel's width,
        that training starts with: a smaller number makes wider kernels. All are tried.
    max_rows : int, default=500000
        Rows that are learned from, drawn uniformly; fewer if they do not fit in half of
        scikit-learn's `working_memory`.
    max_seconds : float, optional
        About how long training may take. Results then depend on the machine.

    Notes
    -----
    Adam on cross-entropy, one cycle of step sizes, in float32. The intercept is the logarithm of
    the classes' shares and is not trained: far from all landmarks it is all that is left. A step
    costs O(batch_size (n r + n L + d r)). Up to 5000 rows, all candidates are trained on each of
    five folds; with more, for a quarter of the steps on one split, and the best one in full. The
    unrefined model, fitted without the rows that judge, stays if the learned one is not better by
    1.5 standard errors, or by one with more rows, up to three splits being joined if need be.
    """

    rank: str | int = "auto"
    n_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float = 0.04
    widths: tuple[float, ...] = (0.15, 0.05)
    max_rows: int = 500_000
    max_seconds: float | None = None

    def check(self, kernel: Kernel, n_features: int, discrete: bool) -> None:
        """Raise unless the parameters fit the kernel and the rows. Called before any work."""
        if not discrete:
            raise ValueError(
                "refine learns by cross-entropy, which is for classes and labels. Leave "
                "refine=False for values."
            )
        if not isinstance(kernel, RBF):
            raise ValueError(
                f"refine is written for the RBF kernel, got {kernel!r}. Use kernel='rbf', or "
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
        check_count("n_epochs", self.n_epochs, optional=True)
        check_count("batch_size", self.batch_size, optional=True)
        check_count("max_rows", self.max_rows, at_least=MIN_ROWS)
        _check_positive("learning_rate", self.learning_rate)
        if self.max_seconds is not None:
            _check_positive("max_seconds", self.max_seconds)
        if not isinstance(self.widths, (tuple, list)) or not self.widths:
            raise ValueError(
                f"widths={self.widths!r} must be a tuple of at least one positive number."
            )
        for width in self.widths:
            _check_positive("widths", width)

    def rank_of(self, n_features: int) -> int:
        """Return the number of directions for so many features."""
        return min(n_features, MAX_RANK) if self.rank == "auto" else int(self.rank)

    def candidates(self, n_rows: int) -> list[Candidate]:
        """Return the ways to train that are tried: the first is the one that most often wins."""
        batch = self.batch_size or next(size for most, size in BATCHES if n_rows <= most)
        batch = min(batch, n_rows)
        epochs = self.n_epochs or min(MAX_EPOCHS, EPOCHS_OF_ONE_ROW / np.sqrt(n_rows))
        n_steps = int(-(-epochs * n_rows // batch))
        if self.n_epochs is None:
            n_steps = max(n_steps, MIN_STEPS)
        plain = Recipe(n_steps, batch, self.learning_rate)
        # for noisy targets, and for few rows
        sharp = replace(plain, smoothing=0.0, decay=0.05)
        gentle = replace(
            plain, n_steps=-(-n_steps // 2), rate=plain.rate / 4, coef_rate=0.1, decay=0.1
        )
        first, *others = self.widths
        tried = [Candidate(first, plain), *(Candidate(width, plain) for width in others)]
        return [*tried, Candidate(first, sharp), Candidate(first, gentle)]


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
    scaling : Scaling or None
        From the learned model's scores to probabilities; None where the first model stays.
    verdict : Verdict or None
        None where there were too few rows to hold some out.
    accuracies : tuple of float
        Of the candidates on the held-out rows, in the order they were tried.
    """

    expansion: KernelExpansion
    scaling: Scaling | None = None
    verdict: Verdict | None = None
    accuracies: tuple[float, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the learned model is the better one."""
        return self.scaling is not None


def refine(
    problem: Problem,
    selector: LandmarkSelector,
    start: KernelExpansion,
    refinement: Refinement,
    rng: np.random.RandomState,
) -> Refined:
    """Learn landmarks, coefficients and a linear map from where a fitted model stands.

    Parameters
    ----------
    problem : Problem
        Rows with classes or labels, as the kernel sees them, and what `start` was fitted with.
    selector : LandmarkSelector
        That chose the landmarks of `start`, and chooses others without the rows that judge.
    start : KernelExpansion
        Without a projection.
    refinement : Refinement
    rng : RandomState
    """
    blocks = problem.blocks
    clock = Clock(refinement.max_seconds)
    rows = blocks.gather(blocks.sample(_affordable(blocks, refinement.max_rows, rng), rng))
    if len(rows) < MIN_ROWS:
        blocks.progress.note(f"refine: {len(rows)} rows are too few; the model stays as it was")
        return Refined(start)
    learner = Learner.of(rows, refinement.rank_of(blocks.n_features), rng)
    trial = Trial(problem, selector, start, rows, learner, rng.randint(2**31 - 1), clock)
    choice = trial.choose(refinement.candidates(len(rows)))
    blocks.progress.note(str(choice.verdict))
    if not choice.verdict.better:
        return Refined(start, None, choice.verdict, choice.accuracies)
    final, held = trial.final(choice), choice.held
    # scores of at most one, as those of a ridge fitted to ±1
    unit = max(float(np.abs(held.scores).max()), float(np.finfo(np.float32).tiny))
    scaling = fit_scaling(held.scores / unit, held.labels, held.weight)
    expansion = learner.expansion(final, blocks.dtype, unit)
    return Refined(expansion, scaling, choice.verdict, choice.accuracies)


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
