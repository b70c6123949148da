"""Centroids of each class, drawn towards rows that a pilot model finds hard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._ridge.feature_map import Approximation, StandardMap
from nysplus._rows.blocks import Block
from nysplus._runtime.threads import in_threads, one_openmp_thread
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Members, Problem
from nysplus.landmarks.clustering import PLUS_PLUS, RANDOM, centroids

# Least weight of rows that the pilot is sure of: the bulk of a class must be covered too.
LEAST_HARDNESS = 0.05
# Squared error of values, in units of the mean squared error, from which on the hardness is 1.
MOST_SQUARES = 9.0
SHARES = ("hardness", "root", "rows")
# Rows whose part in the landmarks is reported: a tenth of the rows, within these limits. A coverage
# of 90 % that is calibrated by their scores has a standard error of .9 to .7 points; more rows
# would add more than a tenth to the time of small fits.
MIN_MEMBERS, MAX_MEMBERS = 1000, 2000


@dataclass(frozen=True)
class Pool:
    """Rows to be clustered, and their hardness.

    Attributes
    ----------
    rows : Block
    group : ndarray of shape (b,)
        Number of each row's class, or of its range of target values.
    hardness : ndarray of shape (b,), or None
        ``1 − f_{y_i}(x_i)`` of 0/1-coded scores, or errors of values, between .05 and 1.
    n_kernel_evaluations : int
        Number of kernel values that the hardness took.
    """

    rows: Block
    group: npt.NDArray[np.intp]
    hardness: Float | None
    n_kernel_evaluations: int = 0

    def masses(self, share: str) -> Float:
        """Return the mass of each class: its number of landmarks is in proportion to it."""
        if share == "hardness":
            assert self.hardness is not None
            return np.bincount(self.group, self.rows.counts * self.hardness).astype(np.float64)
        masses: Float = np.bincount(self.group, self.rows.counts).astype(np.float64)
        return np.sqrt(masses) if share == "root" else masses

    def weights(self, power: float) -> Float:
        """Return the weight of each row: its sample weight times a power of its hardness."""
        if power == 0:
            return self.rows.counts
        assert self.hardness is not None
        return self.rows.counts * self.hardness**power


def share_out(n: int, masses: Float, sizes: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Share `n` landmarks out in proportion to the masses.

    Every group gets at least one landmark and at most its size. If there are fewer landmarks than
    groups, the groups of the largest masses get one each.
    """
    least = (sizes > 0).astype(np.intp)
    if n <= least.sum():
        ones = np.zeros(len(masses), dtype=np.intp)
        ones[np.argsort(-np.where(sizes > 0, masses, -1.0), kind="stable")[:n]] = 1
        return ones
    n = min(n, int(sizes.sum()))
    masses = np.maximum(masses / masses.max(), 1e-300)  # only their ratios matter

    def shares(factor: float) -> Float:
        clipped: Float = np.clip(factor * masses, least, sizes)
        return clipped

    # The sum of the shares is a piecewise linear function of the factor, with a knot where a group
    # exceeds one or reaches its size. After rounding down, the largest remainders get one more.
    factors = np.unique(np.concatenate([[0.0], least / masses, sizes / masses]))
    exact = shares(float(np.interp(n, [shares(f).sum() for f in factors], factors)))
    whole: npt.NDArray[np.intp] = np.floor(exact + 1e-9).astype(np.intp)
    order = np.argsort(-np.where(whole < sizes, exact - whole, -1.0), kind="stable")
    whole[order[: n - int(whole.sum())]] += 1
    return whole


def _medoids(X: Any, points: Float, cluster: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the position of the row nearest to each centroid, among the rows of its cluster."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        # from the stored entries: a centroid for every row would be a dense matrix
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        entries = X.data * points[cluster[row], X.indices]
        products = np.bincount(row, entries, minlength=X.shape[0])
        distances = squares - 2.0 * products + (points**2).sum(axis=1)[cluster]
    else:
        distances = ((X - points[cluster]) ** 2).sum(axis=1)
    order = np.lexsort((distances, cluster))
    first = np.searchsorted(cluster[order], np.arange(len(points)))
    # an empty cluster gets any row
    found: npt.NDArray[np.intp] = order[np.minimum(first, len(order) - 1)]
    return found


class _Group(NamedTuple):
    """Clusters of a class: the positions of its rows, and their centroids or medoids."""

    members: npt.NDArray[np.intp]
    points: Any
    cluster: npt.NDArray[np.intp]


def _members(pool: Pool, groups: list[_Group], weights: Float, n_drawn: int) -> Members:
    """Return some of the rows, each with its share of the weight of its cluster.

    Only the first `n_drawn` rows of the pool were drawn at random.
    """
    landmark, share = np.zeros(len(pool.rows), dtype=np.intp), np.zeros(len(pool.rows))
    first = 0
    for group in groups:
        own = weights[group.members]
        mass = np.bincount(group.cluster, own, minlength=len(group.points))
        landmark[group.members] = first + group.cluster
        share[group.members] = own / mass[group.cluster]
        first += len(group.points)
    # a generator of its own: models do not depend on the rows that are reported
    n = min(max(MIN_MEMBERS, len(pool.rows) // 10), MAX_MEMBERS)
    some = np.random.RandomState(0).permutation(min(n_drawn, len(pool.rows)))[:n]
    rows = pool.rows.take(some)
    return Members(rows, landmark[some], share[some] / np.maximum(rows.counts, 1.0))


def _hardness(rows: Block, scores: Float) -> Float:
    """Return the distance of scores from the targets, about 0 to 1."""
    if rows.targets is not None and rows.targets.discrete:
        return (1.0 + rows.labels.negative_margins(scores)) / 2.0
    squares = ((rows.Y - scores) ** 2).sum(axis=1)
    mean = np.average(squares, weights=rows.weight)
    hardness: Float = np.sqrt(squares / (MOST_SQUARES * mean if mean > 0 else 1.0))
    return hardness


@dataclass(repr=False, eq=False)
class ClassCentroids(LandmarkSelector):
    """Centroids of k-means inside each class, weighted by the hardness of the rows.

    A row's hardness is ``1 − f_{y_i}(x_i)``, clipped to [.05, 1], with the score of its own class
    by a small pilot model. A class gets landmarks in proportion to the sum of its rows' hardness,
    and its centroids are drawn towards hard rows. If landmarks must be rows (sparse rows, kernels
    that are functions), each centroid is replaced by the row nearest to it.

    For values, at most ten ranges between quantiles of the target replace the classes, and the
    hardness is a third of the pilot's error, in units of the root mean squared error.

    Parameters
    ----------
    power : float, default=0.5
        Rows are weighted with this power of their hardness. 1 draws the centroids closer to the
        boundary, 0 gives all rows the same weight.
    share : {"hardness", "root", "rows"}, default="hardness"
        The number of landmarks of a class is in proportion to the sum of its rows' hardness, the
        square root of its number of rows, or its number of rows. "root" and "rows" need no pilot
        if `power` is 0.
    n_initial : int, default=150
        Landmarks of the pilot, drawn uniformly: enough to tell hard rows from easy ones, few
        enough for a fit to a few thousand rows.
    pilot_rows : int, default=3000
        Rows that the pilot is fitted to.
    max_rows : int, default=20000
        Rows that are scored and clustered, drawn uniformly, with up to 20 rows of every class.
    max_iter : int, default=6
        Lloyd iterations.
    start : {"k-means++", "random"}, default="k-means++"
        How clusters start. Random rows take less time, and are as good if landmarks are learned
        afterwards.

    Notes
    -----
    O(pilot_rows · n_initial²) for the pilot, O(max_rows · n_initial · d) for the scores and
    O(max_rows · n · d · max_iter / classes) for the centroids; no pass over the other rows.
    Multilabel rows are grouped by their combination of labels.
    """

    power: float = 0.5
    share: str = "hardness"
    n_initial: int = 150
    pilot_rows: int = 3000
    max_rows: int = 20_000
    max_iter: int = 6
    start: str = PLUS_PLUS
    targets: ClassVar[Literal["needed"]] = "needed"
    kind: ClassVar[str] = "class centroids"

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense."""
        for name in ("n_initial", "pilot_rows", "max_rows", "max_iter"):
            check_count(name, getattr(self, name))
        if self.share not in SHARES:
            raise ValueError(f"share={self.share!r} is not known. Allowed are {list(SHARES)}.")
        if self.start not in (PLUS_PLUS, RANDOM):
            raise ValueError(
                f"start={self.start!r} is not known. Allowed are {[PLUS_PLUS, RANDOM]}."
            )
        if not 0 <= self.power < np.inf:
            raise ValueError(f"power={self.power!r} must be a finite number of at least 0.")

    @property
    def needs_pilot(self) -> bool:
        """Whether the selector uses the hardness of rows."""
        return self.power > 0 or self.share == "hardness"

    def pool(self, problem: Problem, n: int, rng: np.random.RandomState) -> Pool:
        """Draw the rows to be clustered, and compute their hardness with a pilot model."""
        blocks = problem.blocks
        rows = blocks.gather(blocks.sample_of_all_classes(max(n, self.max_rows), rng))
        assert rows.targets is not None
        group = rows.targets.groups(max(1, n // 2))
        if not self.needs_pilot:
            return Pool(rows, group, None)
        some = rng.permutation(len(rows))[: self.pilot_rows]
        small = replace(
            problem,
            blocks=rows.take(some).blocks(blocks.progress.aside()),
            approximation=StandardMap(),
        )
        pilot = small.fit(rows.X[some[: self.n_initial]], rng, "pilot")
        hardness = np.clip(_hardness(rows, pilot.expansion(rows.X)), LEAST_HARDNESS, 1.0)
        scored = len(rows) * pilot.expansion.landmarks.shape[0]
        return Pool(rows, group, hardness, pilot.n_kernel_evaluations + scored)

    def cluster(
        self, problem: Problem, pool: Pool, n: int, rng: np.random.RandomState
    ) -> Landmarks:
        """Choose `n` landmarks from a pool: share them out among the classes, and cluster."""
        as_rows = sp.issparse(pool.rows.X) or not problem.kernel.takes_any_point
        weights, sizes = pool.weights(self.power), np.bincount(pool.group)
        shares = share_out(n, pool.masses(self.share), sizes)
        seeds = rng.randint(2**31 - 1, size=len(shares))

        def of_group(group: int) -> _Group:
            members = np.flatnonzero(pool.group == group)
            rows = replace(pool.rows.take(members), sample_weight=weights[members])
            own = np.random.RandomState(seeds[group])
            with one_openmp_thread():
                points, cluster = centroids(
                    rows, int(shares[group]), self.max_iter, own, self.start
                )
            chosen = members[_medoids(rows.X, points, cluster)] if as_rows else points
            return _Group(members, chosen, cluster)

        groups = list(in_threads(of_group, np.flatnonzero(shares).tolist()))
        chosen = np.concatenate([group.points for group in groups])
        if not as_rows:
            members = _members(pool, groups, weights, max(n, self.max_rows))
            return Landmarks(chosen, None, pool.n_kernel_evaluations, members)
        some = pool.rows.take(np.unique(chosen))
        return Landmarks(some.X, some.numbers, pool.n_kernel_evaluations)

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Choose `n` landmarks."""
        return self.cluster(problem, self.pool(problem, n, rng), n, rng)
