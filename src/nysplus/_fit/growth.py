"""Choose the number of landmarks by the rows: ``n_components="auto"``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysplus._bytes.budget import most_landmarks
from nysplus._fit.size import trial_rows
from nysplus._holdout import PairedComparison, row_scores
from nysplus._runtime.record import Trial
from nysplus._typing import Float
from nysplus.landmarks import LandmarkSelector, Problem, select_landmarks


@dataclass(frozen=True)
class Growth:
    """Numbers that steer ``n_components="auto"``.

    Attributes
    ----------
    smallest : int
        The first number of landmarks; all rows if there are fewer. A smaller number would hardly
        make a fit faster.
    needed : float
        Standard errors of the paired difference by which a larger model must be better.
    patience : int
        Larger sizes in succession that may fail to be better before the growth ends. The score of
        a single size may drop, because selectors treat sizes differently, and rise again.
    """

    smallest: int = 50
    needed: float = 1.0
    patience: int = 2

    def largest(self, n_rows: int) -> int:
        """Return the largest number of landmarks for a number of rows."""
        return max(most_landmarks(n_rows), min(self.smallest, n_rows))


def doubling_sizes(smallest: int, largest: int) -> list[int]:
    """Return sizes that double from the smallest on, and end with the largest.

    The last step is a factor between √2 and 2√2.
    """
    sizes, size = [], smallest
    while np.sqrt(2.0) * size < largest:
        sizes.append(size)
        size *= 2
    return [*sizes, largest]


def size_text(n: int) -> str:
    """Return a number of landmarks in words."""
    return "1 landmark" if n == 1 else f"{n:,} landmarks"


def grown_size(
    problem: Problem, selector: LandmarkSelector, growth: Growth, rng: np.random.RandomState
) -> int:
    """Return the number of landmarks beyond which held-out rows show no gain.

    Sizes double, up to :meth:`Growth.largest`. For each a model is fitted to at most 20,000 rows
    and compared, row by row, with the best smaller one on at most 5000 other rows. Leave-one-out
    would need no other rows, but landmarks that were chosen with the labels make it optimistic,
    the more so the more there are.

    O(N n (d + n)) for each size n on these rows. The largest trial has less than six times as many
    landmarks as the result, and at most 2000.

    Parameters
    ----------
    problem : Problem
        With rows as the kernel sees them.
    selector : LandmarkSelector
    growth : Growth
    rng : RandomState
    """
    blocks = problem.blocks
    sizes = doubling_sizes(growth.smallest, growth.largest(blocks.n_candidates))
    if len(sizes) == 1:
        return sizes[0]
    held_out, rows = trial_rows(blocks, sizes[-1], rng)
    trial = replace(problem, blocks=rows)

    record, weight = blocks.progress.record, held_out.weight

    def scores(n: int) -> Float:
        """Return the score of each held-out row with `n` landmarks."""
        chosen = select_landmarks(selector, trial, n, rng)
        fit = trial.fit(chosen.points, rng, unused=chosen.unused)
        found = row_scores(fit.expansion, held_out)
        mean = float(weight @ found / weight.sum())
        record.add(
            Trial.of("size", size_text(n), mean, blocks.discrete, len(held_out), n_landmarks=n)
        )
        return found

    with blocks.progress.stage("size", None, None) as advance:
        best, best_scores, failures = sizes[0], scores(sizes[0]), 0
        advance(rows.n_rows)
        for n in sizes[1:]:
            larger = scores(n)
            advance(rows.n_rows)
            compared = PairedComparison.of(best_scores, larger, held_out.weight, growth.needed)
            if compared.better:
                best, best_scores, failures = n, larger, 0
            else:
                failures += 1
            if failures == growth.patience:
                break
    record.choose("size", size_text(best))
    return best
