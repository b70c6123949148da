"""The default selector: several kinds of centroids, compared by leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from nysplus._holdout import best_of
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Members, Problem
from nysplus.landmarks.class_centroids import ClassCentroids, Pool
from nysplus.landmarks.clustering import centroids
from nysplus.landmarks.descent import moved
from nysplus.landmarks.unsupervised import Uniform

# Below this number of landmarks, or of landmarks for a class, the candidates differ in accuracy,
# and a model with each of them is fitted in milliseconds.
FEW_LANDMARKS, FEW_OF_A_CLASS = 40, 2
# The candidates, which differ in the weight of hard rows and in the share of each class.
CANDIDATES = (
    ClassCentroids(),
    ClassCentroids(power=1.0),
    ClassCentroids(power=0.0),
    ClassCentroids(power=0.0, share="root"),
)
# Every third ridge is enough to compare candidates; the final fit chooses among all of them.
EVERY_ALPHA = 3
# Landmarks for values: rows that they are moved by; rows that are clustered before, the larger of
# a number and a multiple of the landmarks; Lloyd iterations.
MAX_ROWS = 20_000
CLUSTERED_ROWS, CLUSTERED_RATIO = 5000, 10
MAX_ITER = 6


@dataclass(repr=False, eq=False)
class Auto(LandmarkSelector):
    """The default selector: class centroids for classes, moved centroids for values.

    Classes: centroids inside each class (:class:`ClassCentroids`). Below 40 landmarks, or two
    for a class, there are four candidates, which differ in the weight of hard rows and in the
    share of each class; the one of the highest leave-one-out accuracy on at most 20000 rows is
    chosen. With more landmarks the candidates differ little, and the first is used.

    Values: centroids of k-means, moved down the gradient of the squared error by a few steps; the
    step with the smallest error on validation rows is kept. Centroids are not moved if there are
    no targets or the kernel has no gradients. If landmarks must be rows (sparse rows, kernels that
    are functions), the selector is :class:`ClassCentroids`, or :class:`Uniform` without targets.
    """

    targets: ClassVar[Literal["optional"]] = "optional"
    kind: ClassVar[str] = "class centroids"

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Make candidates, fit a model with each and return the best."""
        if not problem.blocks.discrete:
            return _for_values(problem, n, rng)
        if n >= max(FEW_LANDMARKS, FEW_OF_A_CLASS * problem.blocks.n_outputs):
            return ClassCentroids().select(problem, n, rng)
        pool = CANDIDATES[0].pool(problem, n, rng)
        candidates = [rule.cluster(problem, pool, n, rng) for rule in CANDIDATES]
        return _most_accurate(problem, pool, candidates, rng)


def _for_values(problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
    """Return centroids, moved if there are targets and gradients."""
    blocks, kernel = problem.blocks, problem.kernel
    pool = blocks.gather(blocks.sample(max(n, MAX_ROWS), rng))
    if sp.issparse(pool.X) or not kernel.takes_any_point:
        rule = ClassCentroids() if blocks.n_outputs else Uniform()
        return rule.select(problem, n, rng)
    some = pool.take(rng.permutation(len(pool))[: max(CLUSTERED_ROWS, CLUSTERED_RATIO * n)])
    points, _ = centroids(some, n, MAX_ITER, rng)
    if blocks.n_outputs == 0 or not kernel.differentiable:
        return Landmarks(points)
    points, evaluations, validation = moved(kernel, pool, points, rng)
    return Landmarks(points, None, evaluations, Members.of_none(pool.take(validation)))


def _most_accurate(
    problem: Problem, pool: Pool, candidates: list[Landmarks], rng: np.random.RandomState
) -> Landmarks:
    """Fit a model with each candidate to the pool; return the one of the highest accuracy."""
    rows = pool.rows.blocks(problem.blocks.progress.aside())
    pilot = replace(problem, blocks=rows, alphas=problem.alphas[::EVERY_ALPHA])
    fits = [
        pilot.fit(candidate.points, rng, "candidates", with_score=True) for candidate in candidates
    ]
    best, _ = best_of(
        zip(candidates, fits, strict=True),
        score=lambda pair: -np.inf if pair[1].score is None else pair[1].score,
    )
    spent = pool.n_kernel_evaluations + sum(fit.n_kernel_evaluations for fit in fits)
    return replace(best, n_kernel_evaluations=spent)
