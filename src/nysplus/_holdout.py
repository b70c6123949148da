"""Hold rows out and compare models on them: the rules that every choice between models uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.targets import Targets
from nysplus._typing import Float

Positions = npt.NDArray[np.intp]
Candidate = TypeVar("Candidate")

# Two accuracies that differ by less than this share of a standard error count as equal.
NOISE_SHARE = 0.25
# Share of the rows of a class, of those that can be found, below which it counts as given up: far
# below the losses of small classes to large ones among noisy labels, which the accuracy decides on.
GIVEN_UP = 0.1


# ---- rows to hold out ----------------------------------------------------------------------------


def split(
    blocks: RowBlocks, n_held_out: int, n_others: int, rng: np.random.RandomState
) -> tuple[Block, Blocks]:
    """Draw rows to hold out, and other rows to fit to.

    At most a third of the drawn rows is held out. A single row is used for both.

    Parameters
    ----------
    blocks : RowBlocks
    n_held_out, n_others : int
        Numbers of rows, if `blocks` has enough.
    rng : RandomState

    Returns
    -------
    held_out : Block
    others : Blocks
    """
    drawn = blocks.gather(blocks.sample(n_held_out + n_others, rng))
    n_held_out = min(n_held_out, -(-len(drawn) // 3))
    held_out, others = split_positions(len(drawn), n_held_out, rng)
    if len(drawn) == 1:
        others = held_out
    return drawn.take(held_out), drawn.take(others).blocks(blocks.progress.aside())


def split_positions(
    n_rows: int, n_held_out: int, rng: np.random.RandomState
) -> tuple[Positions, Positions]:
    """Return the positions of `n_held_out` rows drawn at random, and the other positions."""
    order = rng.permutation(n_rows)
    return order[:n_held_out], order[n_held_out:]


def stratified_split(
    rows: Blocks, n_held_out: int, rng: np.random.RandomState
) -> tuple[Blocks, Block]:
    """Return rows to train on, and rows held out, with the same share of every class.

    One row of each class is always trained on. Rows without weight are in neither part, and class
    weights, which are for training, are removed from the held-out rows.
    """
    order = rng.permutation(rows.sample(rows.n_candidates, rng))
    strata = np.zeros(len(order), dtype=np.intp)
    codes = None if rows.targets is None else rows.targets.class_codes
    if codes is not None:
        strata = codes[order]
    order = order[np.argsort(strata, kind="stable")]
    first_of_class = np.unique(np.sort(strata), return_index=True)[1]
    possible = np.delete(order, first_of_class)
    if n_held_out > len(possible):
        raise ValueError(
            f"{n_held_out} rows cannot be held out of {len(order)} if each of the "
            f"{len(first_of_class)} classes is to be trained on. Lower test_size or pass more rows."
        )
    # at even distances among rows sorted by class: the same share of each class
    even = ((np.arange(n_held_out) + 0.5) * len(possible) / n_held_out).astype(np.intp)
    held_out = possible[even]
    training = np.setdiff1d(order, held_out)
    scored = replace(rows.block(np.sort(held_out)), class_weight=None)
    return rows.block(training).blocks(), scored


def draw_rows(blocks: RowBlocks, n_rows: int, rng: np.random.RandomState) -> Blocks:
    """Return rows drawn at random, with some of every class, in their order and in memory."""
    return blocks.some(np.sort(blocks.sample_of_all_classes(n_rows, rng)))


def mask_out(blocks: Blocks, n_rows: int, rng: np.random.RandomState) -> tuple[Blocks, Blocks]:
    """Draw rows to hold out; return them, and all rows with a weight of zero for the drawn ones.

    For fits whose rows keep their places, such as fits that look up stored kernel values. Of a
    class that is too rare for the draw, every second of its first rows is held out.
    """
    rows = np.sort(blocks.sample(n_rows, rng))
    if blocks.discrete:
        rare = blocks.class_rows.rare(n_rows, blocks.n_candidates)[:, 1::2]
        rows = np.union1d(rows, rare[rare >= 0])
    return blocks.some(rows), blocks.without(rows)


def stratified_folds(targets: Targets, n_folds: int, rng: np.random.RandomState) -> list[Positions]:
    """Return the positions of the rows of each fold, sorted; every class is spread over all folds.

    Values are stratified by ranges between their quantiles.
    """
    n_rows = len(targets.coded())
    order = rng.permutation(n_rows)
    order = order[np.argsort(targets.groups(n_rows)[order], kind="stable")]
    return [np.sort(order[i::n_folds]) for i in range(n_folds)]


# ---- scores --------------------------------------------------------------------------------------


def row_scores(model: Callable[[Any], Float], rows: Block) -> Float:
    """Return the score of each row: 1 or 0 for classes, minus the squared error for values."""
    assert rows.targets is not None
    return rows.targets.row_scores(model(rows.X))


def mean_score(model: Callable[[Any], Float], rows: Block) -> float:
    """Return the weighted mean of the rows' scores: accuracy, or minus the mean squared error."""
    return float(rows.weight @ row_scores(model, rows) / rows.weight.sum())


# ---- choices -------------------------------------------------------------------------------------


def best_of(candidates: Iterable[Candidate], score: Callable[[Candidate], Any]) -> Candidate:
    """Return the candidate of the highest score; of equal ones the first.

    Candidates may come from a generator: only the best one so far is kept.
    """
    return max(candidates, key=score)


def largest_within_noise(
    alphas: tuple[float, ...], accuracies: Float, count: float, found: Float
) -> float:
    """Return the largest α whose accuracy is within a quarter standard error of the best.

    More regularisation is the safer of two equals: landmarks that were chosen with the labels
    make leave-one-out slightly optimistic. The accuracy hardly changes where a rare class is given
    up. So, of all α within a standard error of the best, only those that give up the fewest
    classes are compared. A class is given up if less than a tenth as many of its rows are found
    as by another of these α.

    Parameters
    ----------
    alphas : tuple of float
    accuracies : ndarray of shape (n_alphas,)
    count : float
        Number of held-out rows.
    found : ndarray of shape (n_alphas, n_classes)
        Weight of the rows of each class, or label, that each α finds.
    """
    best = min(1.0, float(accuracies.max()))  # sums of weights may round to just above
    error = np.sqrt(best * (1.0 - best) / count)
    near = accuracies >= best - error
    given_up = (found < GIVEN_UP * found[near].max(axis=0)).sum(axis=1)
    kept = near & (given_up == given_up[near].min())
    least = min(best, float(accuracies[kept].max())) - NOISE_SHARE * error
    equal = kept & (accuracies >= least)
    return max(alpha for alpha, is_equal in zip(alphas, equal, strict=True) if is_equal)


def least_loss_within_error(accuracies: Float, losses: Float, weight: Float) -> int:
    """Return the number of the model of the smallest loss, of those of about the best accuracy.

    These are the models within one standard error of the best accuracy. The loss alone would give
    up models that are more often right but too sure of themselves; the accuracy alone picks by
    chance where labels are noisy.

    Parameters
    ----------
    accuracies, losses : ndarray of shape (n_models,)
    weight : ndarray of shape (rows,)
        Of the held-out rows.
    """
    best = min(1.0, float(accuracies.max()))
    count = float(weight.sum()) ** 2 / float((weight**2).sum())
    near = accuracies >= best - np.sqrt(best * (1.0 - best) / count)
    return int(np.where(near, losses, np.inf).argmin())


@dataclass(frozen=True)
class PairedComparison:
    """Two models compared row by row on the same held-out rows.

    Attributes
    ----------
    before, after : float
        Mean score of the first and of the second model: accuracy, or minus the mean squared
        error.
    errors : float
        Difference of the two means, in standard errors of the paired difference.
    needed : float
        Number of standard errors from which on the second model counts as better.
    n_rows : int
        Number of held-out rows.
    """

    before: float
    after: float
    errors: float
    needed: float
    n_rows: int

    @classmethod
    def of(cls, before: Float, after: Float, weight: Float, needed: float) -> PairedComparison:
        """Compare the scores that two models give to the same rows.

        Parameters
        ----------
        before, after : ndarray of shape (rows,)
            Scores of the rows with the first and with the second model (see :func:`row_scores`).
        weight : ndarray of shape (rows,)
        needed : float
        """
        mass, differences = float(weight.sum()), weight * (after - before)
        error = float(np.sqrt((differences**2).sum()))
        return cls(
            float(weight @ before) / mass,
            float(weight @ after) / mass,
            float(differences.sum()) / error if error > 0 else 0.0,
            needed,
            len(weight),
        )

    @property
    def better(self) -> bool:
        """Whether the second model is better by at least `needed` standard errors."""
        return self.errors >= self.needed

    def within(self, low: float, high: float) -> bool:
        """Return whether the difference is between two numbers of standard errors."""
        return low <= self.errors < high

    def __str__(self) -> str:
        if min(self.before, self.after) >= 0:
            scores = f"{100 * self.before:.2f} % before, {100 * self.after:.2f} % after"
        else:
            before, after = np.sqrt(-self.before), np.sqrt(-self.after)
            scores = f"error {before:.4g} before, {after:.4g} after"
        return f"{scores} on {self.n_rows:,} held-out rows"
