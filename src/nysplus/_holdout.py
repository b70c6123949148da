"""Hold rows out and compare models on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._typing import Float

# Differences between these, in standard errors, may be chance.
UNCERTAIN = (-1.0, 2.0)


def split_rows(
    blocks: RowBlocks, n_judged: int, n_pool: int, rng: np.random.RandomState
) -> tuple[Block, Blocks]:
    """Draw rows to judge by and others to make landmarks from: a third and two thirds if few."""
    drawn = blocks.gather(blocks.sample(n_judged + n_pool, rng))
    order = rng.permutation(len(drawn))
    n_judged = min(n_judged, -(-len(drawn) // 3))
    others = order[n_judged:] if len(drawn) > 1 else order
    return drawn.take(order[:n_judged]), drawn.take(others).blocks(blocks.progress.aside())


@dataclass(frozen=True)
class Verdict:
    """What rows that were held out say of the learned model and of the one it started from.

    Attributes
    ----------
    before, after : float
        Mean merit of the rows: accuracy, or the squared error with a minus.
    errors : float
        The difference of these two, in its standard errors.
    needed : float
        How many of them make the learned model the better one.
    n_rows : int
        How many rows were held out.
    """

    before: float
    after: float
    errors: float
    needed: float
    n_rows: int

    @classmethod
    def of(cls, before: Float, after: Float, weight: Float, needed: float) -> Verdict:
        """Compare the merits of rows with two models."""
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
        """Whether the learned model is better by more than chance would make it."""
        return self.errors >= self.needed

    @property
    def uncertain(self) -> bool:
        """Whether more rows might say something else."""
        return UNCERTAIN[0] <= self.errors < UNCERTAIN[1]

    def __str__(self) -> str:
        kept = "the learned model is kept" if self.better else "the model stays as it was"
        if min(self.before, self.after) >= 0:
            said = f"{100 * self.before:.2f} % before, {100 * self.after:.2f} % after"
        else:
            before, after = np.sqrt(-self.before), np.sqrt(-self.after)
            said = f"error {before:.4g} before, {after:.4g} after"
        return f"refine: {said} on {self.n_rows:,} held-out rows; {kept}"
