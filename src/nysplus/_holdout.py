"""Hold rows out and compare models on them: the rules that every choice between models uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.targets import ClassTargets, Targets
from nysplus._typing import Float

Positions = npt.NDArray[np.intp]
Candidate = TypeVar("Candidate")


def split(
    blocks: RowBlocks, n_held_out: int, n_others: int, rng: np.random.RandomState
) -> tuple[Block, Blocks]:
    """Draw rows to hold out and other rows to fit to: a third and two thirds where rows are few."""
    drawn = blocks.gather(blocks.sample(n_held_out + n_others, rng))
    n_held_out = min(n_held_out, -(-len(drawn) // 3))
    held_out, others = split_positions(len(drawn), n_held_out, rng)
    if len(drawn) == 1:
        others = held_out
    return drawn.take(held_out), drawn.take(others).blocks(blocks.progress.aside())


def split_positions(
    n_rows: int, n_held_out: int, rng: np.random.RandomState
) -> tuple[Positions, Positions]:
    """Return the positions of `n_held_out` rows drawn at random, and those of all others."""
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
    if isinstance(rows.targets, ClassTargets):
        strata = rows.targets.codes[order]
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


def stratified_folds(targets: Targets, n_folds: int, rng: np.random.RandomState) -> list[Positions]:
    """Return the positions of the rows of each fold, sorted; every class is spread over all folds.

    Values are stratified by ranges between their quantiles.
    """
    n_rows = len(targets.coded())
    order = rng.permutation(n_rows)
    order = order[np.argsort(targets.groups(n_rows)[order], kind="stable")]
    return [np.sort(order[i::n_folds]) for i in range(n_folds)]


def row_scores(model: Callable[[Any], Float], rows: Block) -> Float:
    """Return the score of each row: 1 or 0 for classes, minus the squared error for values."""
    assert rows.targets is not None
    return rows.targets.row_scores(model(rows.X))


def mean_score(model: Callable[[Any], Float], rows: Block) -> float:
    """Return the weighted mean of the rows' scores: accuracy, or minus the mean squared error."""
    return float(rows.weight @ row_scores(model, rows) / rows.weight.sum())


def best_of(candidates: Iterable[Candidate], score: Callable[[Candidate], Any]) -> Candidate:
    """Return the candidate of the highest score; of equal ones the first.

    Candidates may come from a generator: only the best one so far is kept.
    """
    return max(candidates, key=score)


@dataclass(frozen=True)
class PairedComparison:
    """Two models compared on the same held-out rows.

    Attributes
    ----------
    before, after : float
        Mean scores of the rows: accuracy, or minus the mean squared error.
    errors : float
        The difference ``after − before`` in units of its standard error.
    needed : float
        Standard errors from which the second model counts as better.
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
        """Compare the scores of the rows by two models."""
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
        """Whether the second model is better by the standard errors needed."""
        return self.errors >= self.needed

    def __str__(self) -> str:
        kept = "the learned model is kept" if self.better else "the model stays as it was"
        if min(self.before, self.after) >= 0:
            said = f"{100 * self.before:.2f} % before, {100 * self.after:.2f} % after"
        else:
            before, after = np.sqrt(-self.before), np.sqrt(-self.after)
            said = f"error {before:.4g} before, {after:.4g} after"
        return f"refine: {said} on {self.n_rows:,} held-out rows; {kept}"
