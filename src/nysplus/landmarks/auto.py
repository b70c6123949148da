"""The default: centroids that several rules make, and leave-one-out to choose among them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from nysplus._ridge.fit import fit_expansion
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Problem
from nysplus.landmarks.class_centroids import ClassCentroids, Pool
from nysplus.landmarks.clustering import centroids
from nysplus.landmarks.descent import moved
from nysplus.landmarks.unsupervised import Uniform

# Below so many landmarks, or so many for a class, the ways to make them differ, and fitting a
# model with each takes milliseconds.
FEW_LANDMARKS, FEW_OF_A_CLASS = 40, 2
# Of the ridges every third one is tried: they are chosen by afterwards.
EVERY_ALPHA = 3
# Rows that landmarks for values are moved by, and those of them that are clustered: this many, or
# this many for each landmark.
MAX_ROWS = 20_000
CLUSTERED_ROWS, CLUSTERED_RATIO = 5000, 10
# Lloyd iterations.
MAX_ITER = 6


@dataclass(repr=False, eq=False)
class Auto(LandmarkSelector):
    """The default rule: class centroids, of the kind that leave-one-out finds best.

    Classes: centroids inside each class (:class:`ClassCentroids`). Below 40 landmarks, or two
    for a class, they are made in four ways, which differ in how much hard rows count and in how
    landmarks are shared out among the classes, and those of the highest leave-one-out accuracy on
    at most 20000 rows are kept; with more landmarks the ways differ little and the first is taken.

    Values: centroids of k-means, moved by a few gradient steps to where they lower the squared
    error, as far as rows that no step has seen agree; not moved where there are no targets or the
    kernel has no gradients. Where landmarks must be rows (sparse rows, kernels that are functions)
    those of :class:`ClassCentroids`, or uniform ones if there are no targets.
    """

    targets: ClassVar[Literal["optional"]] = "optional"
    kind: ClassVar[str] = "class centroids"

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Make candidates, fit them all and keep the best."""
        if not problem.blocks.discrete:
            return _for_values(problem, n, rng)
        if n >= max(FEW_LANDMARKS, FEW_OF_A_CLASS * problem.blocks.n_outputs):
            return ClassCentroids().select(problem, n, rng)
        ways = [
            ClassCentroids(),
            ClassCentroids(power=1.0),
            ClassCentroids(power=0.0),
            ClassCentroids(power=0.0, share="root"),
        ]
        pool = ways[0].pool(problem, n, rng)
        return _best(problem, pool, [way.cluster(problem, pool, n, rng) for way in ways], rng)


def _for_values(problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
    """Return centroids, moved if there is anything to move them by."""
    blocks, kernel = problem.blocks, problem.kernel
    pool = blocks.gather(blocks.sample(max(n, MAX_ROWS), rng))
    if sp.issparse(pool.X) or not kernel.takes_any_point:
        rule = ClassCentroids() if blocks.n_outputs else Uniform()
        return rule.select(problem, n, rng)
    some = pool.take(rng.permutation(len(pool))[: max(CLUSTERED_ROWS, CLUSTERED_RATIO * n)])
    points, _ = centroids(some, n, MAX_ITER, rng)
    if blocks.n_outputs == 0 or not kernel.differentiable:
        return Landmarks(points)
    points, evaluations = moved(kernel, pool, points, rng)
    return Landmarks(points, None, evaluations)


def _best(
    problem: Problem, pool: Pool, candidates: list[Landmarks], rng: np.random.RandomState
) -> Landmarks:
    """Fit a model with each candidate to the pool; return that of the highest accuracy."""
    blocks = pool.rows.blocks(problem.blocks.progress.aside())
    fits = [
        fit_expansion(
            blocks,
            candidate.points,
            problem.kernel,
            problem.approximation,
            problem.alphas[::EVERY_ALPHA],
            rng,
            "candidates",
            with_score=True,
        )
        for candidate in candidates
    ]
    best = int(np.argmax([-np.inf if fit.score is None else fit.score for fit in fits]))
    spent = pool.n_kernel_evaluations + sum(fit.n_kernel_evaluations for fit in fits)
    return replace(candidates[best], n_kernel_evaluations=spent)
