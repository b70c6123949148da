"""Landmarks chosen with the targets: Algorithm 1 of the paper, its appendices and future work.

Every selector fits a cheap pilot model first. It then prefers points of large negative margin
``−f_{y_i}(x_i)``, which are on the wrong side of the pilot's boundary or close to it, or points of
large squared error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from nysplus._ridge.feature_map import Approximation, make_approximation
from nysplus._ridge.fit import ExpansionFit
from nysplus._rows.accumulators import TopRows
from nysplus._rows.blocks import Block
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Problem, rows_as_landmarks
from nysplus.landmarks.clustering import centroids
from nysplus.landmarks.pickers import make_picker
from nysplus.landmarks.unsupervised import KMeans

# Rows that a quantile of the scores is estimated from.
BOUND_ROWS = 10_000
# Rows among which neighbours are searched, and the number of neighbours.
AGREEMENT_ROWS = 20_000
NEIGHBOURS = 10
# Weight of the row of the smallest score in a pool, relative to the range of the scores.
LEAST_SCORE = 0.05
# Added to the scores of outliers: they are then below all other scores.
BEYOND = -1e6
# Factor of the weights of outliers in a pool: they are picked only if nothing else is left.
OUTLIER_WEIGHT = 1e-9


@dataclass(repr=False, eq=False)
class _TwoStage(LandmarkSelector):
    """A selector that fits a pilot model first.

    Parameters
    ----------
    n_initial : int, optional
        Landmarks of the pilot, the paper's n_0; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's feature map, with its rank k_0; by default the map of the final model.
    """

    n_initial: int | None = None
    approximation: Any = None
    targets: ClassVar[Literal["needed", "classes"]] = "classes"

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
        return replace(problem, approximation=pilot_map).fit(landmarks, rng, "pilot")


@dataclass(repr=False, eq=False)
class _RowScoring(_TwoStage):
    """A two-stage selector that scores every row; its two stages can be run separately.

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

    @property
    def _rounds(self) -> int:
        """Number of rounds; each round's pilot uses the landmarks of the round before."""
        return 1

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Run both stages."""
        pilot = self.pilot(problem, n, rng)
        landmarks, evaluations = self.choose(problem, pilot, n, rng), _spent(problem, pilot)
        for _ in range(1, self._rounds):
            pilot = self._fit_pilot(problem, landmarks.points, rng)
            landmarks = self.choose(problem, pilot, n, rng)
            evaluations += _spent(problem, pilot)
        return replace(landmarks, n_kernel_evaluations=evaluations)


def _spent(problem: Problem, pilot: ExpansionFit) -> int:
    """Return the kernel evaluations of a pilot and of scoring all rows by it."""
    scored: int = problem.blocks.n_rows * pilot.expansion.landmarks.shape[0]
    return pilot.n_kernel_evaluations + scored


Score = Callable[[Block], Float]


def _margins(pilot: ExpansionFit) -> Score:
    """Return the function ``block ↦`` negative margins by the pilot."""
    expansion = pilot.expansion
    return lambda block: block.labels.negative_margins(expansion(block.X))


def _squares(pilot: ExpansionFit) -> Score:
    """Return the function ``block ↦`` squared errors by the pilot, summed over the outputs."""
    expansion = pilot.expansion
    return lambda block: ((block.Y - expansion(block.X)) ** 2).sum(axis=1)


def _largest(problem: Problem, score: Score, n: int) -> npt.NDArray[np.intp]:
    """Return the `n` rows of largest score, in one pass (steps 3 and 4)."""
    # the expansion cuts blocks further, so only the scores count here
    row_bytes = 8 * problem.blocks.n_outputs
    return problem.blocks.largest(score, n, row_bytes, "pilot: scores")


@dataclass(repr=False, eq=False)
class _Picking(_RowScoring):
    """Rows of large score that are no outliers, with a picker of rows that differ.

    Parameters
    ----------
    max_quantile : float, optional
        Rows whose score is above this quantile are outliers.
    min_agreement : float, optional
        A row is an outlier if less than this share of its 10 nearest neighbours has its target.
    picker : {"cholesky", "farthest"} or Picker, optional
        Picks landmarks that differ from each other from a pool of rows of large score; by default
        the rows of the largest scores are taken.
    oversampling : int, default=4
        Size of the pool, in multiples of the number of landmarks.
    n_rounds : int, default=1
        Number of rounds; each round's pilot uses the landmarks of the round before.
    """

    max_quantile: float | None = None
    min_agreement: float | None = None
    picker: Any = None
    oversampling: int = 4
    n_rounds: int = 1

    @property
    def by_kernel(self) -> bool:
        """Whether neither the picker nor the agreement of neighbours needs distances."""
        return self.min_agreement is None and make_picker(self.picker).by_kernel

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        super().check(n, approximation)
        for name in ("max_quantile", "min_agreement"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) <= 1):
                raise ValueError(f"{name}={value!r} must be None or a number in (0, 1].")
        check_count("oversampling", self.oversampling)
        check_count("n_rounds", self.n_rounds)
        make_picker(self.picker).check()

    @property
    def _rounds(self) -> int:
        return self.n_rounds

    def pilot(self, problem: Problem, n: int, rng: np.random.RandomState) -> ExpansionFit:
        """Fit the pilot on uniform rows."""
        rule = f"picker={self.picker!r} of {type(self).__name__}"
        make_picker(self.picker).check_kernel(problem.kernel, rule)
        first = problem.blocks.sample(self.n_initial or n, rng)
        return self._fit_pilot(problem, problem.blocks.gather(first).X, rng)

    def _score(self, pilot: ExpansionFit) -> Score:
        """Return the function ``block ↦`` scores; rows of large score are chosen."""
        raise NotImplementedError

    def _bound(self, problem: Problem, score: Score, rng: np.random.RandomState) -> float:
        """Return the score above which rows are outliers."""
        if self.max_quantile is None:
            return np.inf
        some = problem.blocks.gather(problem.blocks.sample(BOUND_ROWS, rng))
        return float(np.quantile(score(some), self.max_quantile))

    def choose(
        self, problem: Problem, pilot: ExpansionFit, n: int, rng: np.random.RandomState
    ) -> Landmarks:
        """Choose rows of large score that are no outliers."""
        score = self._score(pilot)
        bound = self._bound(problem, score, rng)

        def bounded(block: Block) -> Float:
            scores = score(block)
            # outliers come last, the mildest first: there may be too few other rows
            return np.where(scores > bound, BEYOND - scores, scores)

        plain = self.picker is None and self.min_agreement is None
        n_pool = n if plain else min(self.oversampling * n, problem.blocks.n_candidates)
        rows = _largest(problem, bounded, n_pool)
        if plain:
            return rows_as_landmarks(problem.blocks, rows)
        pool = problem.blocks.gather(rows)
        scores = score(pool)
        # pickers need positive weights
        weight = scores - scores.min()
        weight += LEAST_SCORE * max(float(weight.max()), 1e-300)
        if self.min_agreement is not None:
            disagrees = _agreement(problem, pool, rng) < self.min_agreement
            weight = np.where(disagrees, weight * OUTLIER_WEIGHT, weight)
        weight = np.where(scores > bound, weight * OUTLIER_WEIGHT, weight)
        kept = make_picker(self.picker).pick(problem.kernel, pool.X, weight, n, rng)
        return Landmarks(pool.X[kept], rows[kept])


def _agreement(problem: Problem, pool: Block, rng: np.random.RandomState) -> Float:
    """Return the share of each row's nearest neighbours, in a uniform sample, of its own class.

    For values: the share of neighbours whose target is within one standard deviation of its own.
    """
    blocks = problem.blocks
    others = blocks.gather(blocks.sample(AGREEMENT_ROWS, rng))
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(others))).fit(others.X)
    found = near.kneighbors(pool.X, return_distance=False)
    if blocks.discrete:
        same = (others.Y[found] == pool.Y[:, None]).all(axis=2)
    else:
        deviation = np.sqrt(blocks.target_spread().variance)
        same = (np.abs(others.Y[found] - pool.Y[:, None]) <= deviation).all(axis=2)
    own = others.numbers[found] == pool.numbers[:, None]  # a row is no neighbour of itself
    counted = np.maximum((~own).sum(axis=1), 1)
    shares: Float = (same & ~own).sum(axis=1) / counted
    return shares


@dataclass(repr=False, eq=False)
class NegativeMargin(_Picking):
    """The paper's rule: the rows of largest negative margin under a pilot on uniform rows.

    Parameters
    ----------
    n_initial : int, optional
        Landmarks of the pilot, the paper's n_0; by default as many as the final model has. At
        most all rows.
    approximation : str or map object, optional
        The pilot's feature map, with its rank k_0; by default the map of the final model.
    max_quantile : float, optional
        Rows whose negative margin is above this quantile are outliers.
    min_agreement : float, optional
        A row is an outlier if less than this share of its 10 nearest neighbours has its class.
    picker : {"cholesky", "farthest"} or Picker, optional
        Picks landmarks that differ from each other from a pool of rows of large negative margin;
        by default the rows of the largest negative margins are taken.
    oversampling : int, default=4
        Size of the pool, in multiples of the number of landmarks.
    n_rounds : int, default=1
        Number of rounds; each round's pilot uses the landmarks of the round before.
    max_negative_margin : float, optional
        Rows whose negative margin is above this number are outliers. 1 excludes rows whose wrong
        class has at least the score that the right one should have.

    Notes
    -----
    By default Algorithm 1, steps 1 to 4; the parameters from `max_quantile` on are what the paper
    names as future work. Each round costs one fit with `n_initial` landmarks and one pass that
    scores all rows. If classes overlap heavily or the kernel is narrow, the plain rule picks
    isolated rows and can be far less accurate than uniform landmarks.
    """

    max_negative_margin: float | None = None

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense for `n` landmarks."""
        super().check(n, approximation)
        limit: Any = self.max_negative_margin
        if limit is not None and not (isinstance(limit, Real) and np.isfinite(float(limit))):
            raise ValueError(f"max_negative_margin={limit!r} must be None or a finite number.")

    def _score(self, pilot: ExpansionFit) -> Score:
        return _margins(pilot)

    def _bound(self, problem: Problem, score: Score, rng: np.random.RandomState) -> float:
        limit = np.inf if self.max_negative_margin is None else float(self.max_negative_margin)
        return min(limit, super()._bound(problem, score, rng))


@dataclass(repr=False, eq=False)
class Residual(_Picking):
    """The rows of largest squared error under a pilot on uniform rows: the rule for regression.

    Parameters
    ----------
    n_initial : int, optional
        Landmarks of the pilot; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's feature map; by default the map of the final model.
    max_quantile : float, optional
        Rows whose squared error is above this quantile are outliers.
    min_agreement : float, optional
        A row is an outlier if less than this share of its 10 nearest neighbours has a target
        within one standard deviation of its own (or its class, for classes).
    picker : {"cholesky", "farthest"} or Picker, default="cholesky"
        Picks landmarks that differ from each other from a pool of rows of large error; None takes
        the rows of the largest errors, which may all lie in one place.
    oversampling : int, default=4
        Size of the pool, in multiples of the number of landmarks.
    n_rounds : int, default=1
        Number of rounds; each round's pilot uses the landmarks of the round before.

    Notes
    -----
    Each round costs one fit with `n_initial` landmarks and one pass that scores all rows.
    """

    picker: Any = "cholesky"
    targets: ClassVar[Literal["needed", "classes"]] = "needed"

    def _score(self, pilot: ExpansionFit) -> Score:
        return _squares(pilot)


@dataclass(repr=False, eq=False)
class SupervisedKMeans(_RowScoring):
    """Centroids of the rows of largest negative margin under a k-means pilot (appendix B).

    Parameters
    ----------
    n_initial : int, optional
        Centroids of the pilot, the paper's n_0; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's feature map; by default the map of the final model.
    n_candidates : int, optional
        Rows of largest negative margin that are clustered. By default two thirds of the rows,
        at most 20000, which is close to the paper's 5000 of 7352 and 10000 of 15000.
    max_iter : int, default=20
        Lloyd iterations.
    """

    n_candidates: int | None = None
    max_iter: int = 20
    kind: ClassVar[str] = "centroids"

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
        """Cluster the rows of the largest negative margins."""
        n_rows = problem.blocks.n_candidates
        n_candidates = self.n_candidates or max(n, min(20_000, 2 * n_rows // 3))
        hardest = _largest(problem, _margins(pilot), min(n_candidates, n_rows))
        pool = problem.blocks.gather(hardest)
        return Landmarks(centroids(pool, n, self.max_iter, rng)[0])


@dataclass(repr=False, eq=False)
class SupportCentroids(_TwoStage):
    """The centroids of largest negative margin, of three times as many (appendix C).

    Each centroid has the majority label of its cluster; the pilot's landmarks are centroids drawn
    at random. Suits rows that repeat, which Algorithm 1 would pick several times.

    Parameters
    ----------
    n_initial : int, optional
        Centroids of the pilot, the paper's n_0; by default as many as the final model has.
    approximation : str or map object, optional
        The pilot's feature map; by default the map of the final model.
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
    kind: ClassVar[str] = "centroids"

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
        # an empty cluster has no label, and so no margin
        occupied, cluster = np.unique(cluster, return_inverse=True)
        points = points[occupied]
        labels = pool.labels.vote(cluster, pool.counts)

        first = rng.permutation(len(points))[: self.n_initial or n]
        pilot = self._fit_pilot(problem, points[first], rng)
        margins = labels.negative_margins(pilot.expansion(points))
        scored: int = len(points) * len(first)
        chosen = TopRows.of(n, margins, slice(0, len(points))).rows
        return Landmarks(points[chosen], None, pilot.n_kernel_evaluations + scored)
