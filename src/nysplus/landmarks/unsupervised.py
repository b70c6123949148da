"""Landmarks from the features alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import cluster
from sklearn.exceptions import ConvergenceWarning

from nysplus._blocks import Block
from nysplus._checks import check_count
from nysplus._feature_map import Approximation
from nysplus.landmarks.base import Landmarks, LandmarkSelector, Problem, rows_as_landmarks

# k-means++ draws its starts one after the other; beyond this many a random start is as good.
MAX_PLUS_PLUS = 100


@dataclass(repr=False, eq=False)
class Uniform(LandmarkSelector):
    """Rows drawn uniformly without replacement, as scikit-learn's ``Nystroem`` draws them."""

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Draw `n` rows. O(N) time, no pass over the features."""
        return rows_as_landmarks(problem.blocks, problem.blocks.sample(n, rng))


@dataclass(repr=False, eq=False)
class KMeans(LandmarkSelector):
    """Centroids of k-means on a uniform subset of the rows (appendix A.3).

    Parameters
    ----------
    max_rows : int, default=20000
        Rows that are clustered, drawn uniformly, as in the paper's experiments.
    max_iter : int, default=20
        Lloyd iterations.
    """

    max_rows: int = 20_000
    max_iter: int = 20

    def check(self, n: int, approximation: Approximation) -> None:
        """Raise unless the parameters make sense."""
        check_count("max_rows", self.max_rows)
        check_count("max_iter", self.max_iter)

    def select(self, problem: Problem, n: int, rng: np.random.RandomState) -> Landmarks:
        """Cluster. O(max_rows · n · d · max_iter), no pass over the other rows."""
        pool = problem.blocks.gather(problem.blocks.sample(max(n, self.max_rows), rng))
        return Landmarks(centroids(pool, n, self.max_iter, rng)[0])


def centroids(
    pool: Block, n: int, max_iter: int, rng: np.random.RandomState
) -> tuple[Any, npt.NDArray[np.intp]]:
    """Return `n` k-means centroids of some rows, weighted by sample weight, and each row's cluster.

    Distances are taken in float32 about the mean of the rows, which is twice as fast and exact
    enough to tell which centroid is the nearest. Rows that are equal to each other may leave
    fewer distinct centroids than asked for; the repeated ones add nothing and do no harm.
    """
    X = pool.X
    clustered, shift = _in_float32(X)
    kmeans = cluster.KMeans(
        n_clusters=n,
        init="k-means++" if n <= MAX_PLUS_PLUS else "random",
        n_init=1,
        max_iter=max_iter,
        random_state=rng,
        copy_x=clustered is X,  # what was converted may be used up
    )
    with warnings.catch_warnings():
        # said when rows repeat each other, which is fine here (see above)
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(clustered, sample_weight=pool.counts)
    labels = kmeans.labels_.astype(np.intp)
    points = kmeans.cluster_centers_.astype(X.dtype) + shift
    # The means of the final clusters, from the rows as they are.
    share = sp.csr_matrix((pool.counts, (labels, np.arange(len(labels)))), (n, len(labels)))
    mass = np.asarray(share.sum(axis=1)).ravel()
    sums = share @ X.astype(np.float64, copy=False)
    sums = sums.toarray() if sp.issparse(sums) else sums
    points[mass > 0] = sums[mass > 0] / mass[mass > 0, None]
    return points, labels


def _in_float32(X: Any) -> tuple[Any, Any]:
    """Return the rows in float32, less their mean where they are dense, and that mean.

    Rows that float32 cannot hold, or hardly tells apart, are returned as they are.
    """
    if X.dtype == np.float32 or sp.issparse(X):
        return X, X.dtype.type(0)
    shift = X.mean(axis=0)
    X = X - shift
    largest = np.abs(X).max(initial=0.0)
    tiny, huge = np.finfo(np.float32).tiny ** 0.5, np.finfo(np.float32).max ** 0.5
    return (X.astype(np.float32) if tiny < largest < huge else X), shift
