"""Landmarks chosen with the labels: Algorithm 1 of the paper and its appendices B and C.

All three fit a cheap first model (the pilot) and then prefer points of large negative margin,
``−f_{y_i}(x_i)``: those on the wrong side of the pilot's boundary, or close to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from nysplus._blocks import Block
from nysplus._checks import check_count
from nysplus._expansion import ExpansionFit, fit_expansion
from nysplus._feature_map import Approximation, make_approximation
from nysplus._sums import Largest
from nysplus._targets import Float
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Problem, rows_as_landmarks
from nysplus.landmarks.unsupervised import KMeans, centroids


@dataclass(repr=False, eq=False)
class _TwoStage(LandmarkSelector):
    """A selector that fits a pilot model first.

    Parameters
    ----------
    n_initial : int, optional
        Landmarks of the pilot, the paper's n_0; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's own map, with its own rank k_0; by default the one of the final model.
    """

    n_initial: int | None = None
    approximation: Any = None
    needs_labels: ClassVar[bool] = True

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        check_count("n_initial", self.n_initial, optional=True)
        self._pilot_map(approximation).check(self.n_initial or n)

    def _pilot_map(self, approximation: Approximation) -> Approximation:
        if self.approximation is None:
            return approximation
        return make_approximation(self.approximation)

    def _fit_pilot(
        self, problem: Problem, landmarks: Any, rng: np.random.RandomState
    ) -> ExpansionFit:
        """Fit the pilot on all rows: steps 1 and 2 of Algorithm 1."""
        pilot_map = self._pilot_map(problem.approximation)
        return fit_expansion(
            problem.blocks, landmarks, problem.kernel, pilot_map, problem.alphas, rng, "pilot"
        )


@dataclass(repr=False, eq=False)
class _RowScoring(_TwoStage):
    """A two-stage selector that scores every row; its stages can be run apart.

    One pilot serves any number of :meth:`choose` calls.
    """

    def pilot(self, problem: Problem, n: int, rng: np.random.RandomState) -> ExpansionFit:
        """Fit the pilot for `n` final landmarks (steps 1 and 2)."""
        raise NotImplementedError

    def choose(
        self, problem: Problem, pilot: ExpansionFit, n: int, rng: np.random.RandomState
    ) -> Landmarks:
        """Choose `n` landmarks by the pilot's scores (steps 3 and 4)."""
        raise NotImplementedError

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Run both stages."""
        pilot = self.pilot(problem, n, rng)
        landmarks = self.choose(problem, pilot, n, rng)
        scored: int = problem.blocks.n_rows * pilot.expansion.landmarks.shape[0]
        return replace(landmarks, n_kernel_evaluations=pilot.n_kernel_evaluations + scored)


def _hardest(problem: Problem, pilot: ExpansionFit, n: int) -> npt.NDArray[np.intp]:
    """Return the `n` rows of largest negative margin, in one pass (steps 3 and 4)."""
    expansion = pilot.expansion

    def negative_margins(block: Block) -> Float:
        return block.labels.negative_margins(expansion(block.X))

    # the expansion cuts its blocks by itself
    row_bytes = 8 * problem.blocks.n_outputs
    return problem.blocks.largest(negative_margins, n, row_bytes, "pilot: margins")


@dataclass(repr=False, eq=False)
class NegativeMargin(_RowScoring):
    """The paper's rule: the rows of largest negative margin under a pilot on uniform rows.

    Parameters
    ----------
    n_initial : int, optional
        Landmarks of the pilot, the paper's n_0; by default as many as the final model has.
        All rows when it exceeds them.
    approximation : str or map object, optional
        The pilot's own map, with its own rank k_0; by default the one of the final model.

    Notes
    -----
    Algorithm 1, steps 1 to 4. Costs one fit with `n_initial` landmarks and one pass that scores
    all rows. Where classes overlap heavily or the kernel is narrow it picks isolated rows and
    can fall far below uniform landmarks.
    """

    def pilot(self, problem: Problem, n: int, rng: np.random.RandomState) -> ExpansionFit:
        """Fit the pilot on uniform rows."""
        first = problem.blocks.sample(self.n_initial or n, rng)
        return self._fit_pilot(problem, problem.blocks.gather(first).X, rng)

    def choose(
        self, problem: Problem, pilot: ExpansionFit, n: int, rng: np.random.RandomState
    ) -> Landmarks:
        """Take the rows of largest negative margin."""
        return rows_as_landmarks(problem.blocks, _hardest(problem, pilot, n))


@dataclass(repr=False, eq=False)
class SupervisedKMeans(_RowScoring):
    """Centroids of the rows of largest negative margin under a k-means pilot (appendix B).

    Parameters
    ----------
    n_initial : int, optional
        Centroids of the pilot, the paper's n_0; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's own map; by default the one of the final model.
    n_candidates : int, optional
        Rows of largest negative margin that are clustered. By default two thirds of the rows,
        at most 20000, which is close to the paper's 5000 of 7352 and 10000 of 15000.
    max_iter : int, default=20
        Lloyd iterations.
    """

    n_candidates: int | None = None
    max_iter: int = 20

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        super().check(n, approximation)
        check_count("n_candidates", self.n_candidates, optional=True)
        check_count("max_iter", self.max_iter)
        if self.n_candidates is not None and self.n_candidates < n:
            raise ValueError(
                f"n_candidates={self.n_candidates} rows cannot form {n} clusters. "
                "Raise n_candidates or lower n_components."
            )

    def pilot(self, problem: Problem, n: int, rng: np.random.RandomState) -> ExpansionFit:
        """Fit the pilot on k-means centroids."""
        n_first = min(self.n_initial or n, problem.blocks.n_candidates)
        first = KMeans(max_iter=self.max_iter).select(problem, n_first, rng)
        return self._fit_pilot(problem, first.points, rng)

    def choose(
        self, problem: Problem, pilot: ExpansionFit, n: int, rng: np.random.RandomState
    ) -> Landmarks:
        """Cluster the rows that the pilot finds hardest."""
        n_rows = problem.blocks.n_candidates
        n_candidates = self.n_candidates or max(n, min(20_000, 2 * n_rows // 3))
        hardest = _hardest(problem, pilot, min(n_candidates, n_rows))
        pool = problem.blocks.gather(hardest)
        return Landmarks(centroids(pool, n, self.max_iter, rng)[0])


@dataclass(repr=False, eq=False)
class SupportCentroids(_TwoStage):
    """Of three times as many centroids, those of largest negative margin (appendix C).

    Each centroid carries the majority label of its cluster; the pilot's landmarks are centroids
    drawn at random. Works where rows repeat each other and Algorithm 1 would pick them twice.

    Parameters
    ----------
    n_initial : int, optional
        Centroids of the pilot, the paper's n_0; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's own map; by default the one of the final model.
    oversampling : int, default=3
        Centroids per landmark.
    max_rows : int, default=20000
        Rows that are clustered, drawn uniformly.
    max_iter : int, default=20
        Lloyd iterations.
    """

    oversampling: int = 3
    max_rows: int = 20_000
    max_iter: int = 20

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        super().check(n, approximation)
        for name in ("oversampling", "max_rows", "max_iter"):
            check_count(name, getattr(self, name))
        if self.n_initial is not None and self.n_initial > self.oversampling * n:
            raise ValueError(
                f"n_initial={self.n_initial} exceeds the {self.oversampling * n} centroids "
                "(oversampling × n_components) it is drawn from. Lower n_initial or raise "
                "oversampling."
            )

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Cluster, label, score and choose."""
        drawn = problem.blocks.sample(max(self.max_rows, self.oversampling * n), rng)
        pool = problem.blocks.gather(drawn)
        n_clusters = min(self.oversampling * n, len(pool))
        points, cluster = centroids(pool, n_clusters, self.max_iter, rng)
        # Clusters that stayed empty have no label, so they cannot have a margin either.
        alive, cluster = np.unique(cluster, return_inverse=True)
        points = points[alive]
        labels = pool.labels.vote(cluster, pool.counts)

        first = rng.permutation(len(points))[: self.n_initial or n]
        pilot = self._fit_pilot(problem, points[first], rng)
        margins = labels.negative_margins(pilot.expansion(points))
        scored: int = len(points) * len(first)
        chosen = Largest.of(n, margins, slice(0, len(points))).rows
        return Landmarks(points[chosen], None, pilot.n_kernel_evaluations + scored)
