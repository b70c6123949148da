"""Centroids of k-means."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import cluster
from sklearn.exceptions import ConvergenceWarning

from nysplus._rows.blocks import Block
from nysplus._typing import Float

# k-means++ draws its starts one after the other; beyond this many a random start is as good.
MAX_PLUS_PLUS = 100
# Rows that it draws from: all of them would cost more than the iterations that follow.
FEWEST_START_ROWS, START_RATIO = 256, 10


def centroids(
    pool: Block, n: int, max_iter: int, rng: np.random.RandomState
) -> tuple[Any, npt.NDArray[np.intp]]:
    """Return `n` k-means centroids of some rows, weighted by sample weight, and each row's cluster.

    Distances are taken in float32 about the mean of the rows, which is twice as fast and exact
    enough to tell which centroid is the nearest. Rows that are equal to each other may leave
    fewer distinct centroids than asked for; the repeated ones add nothing and do no harm.
    """
    X = pool.X
    if n == 1:
        labels = np.zeros(len(pool), dtype=np.intp)
        return _means(pool, labels, np.zeros((1, X.shape[1]), dtype=X.dtype)), labels
    clustered, shift = _in_float32(X)
    weight = pool.counts / pool.counts.max()  # only ratios count, and float32 holds these
    kmeans = cluster.KMeans(
        n_clusters=n,
        init=_starts(clustered, weight, n, rng) if n <= MAX_PLUS_PLUS else "random",
        n_init=1,
        max_iter=max_iter,
        random_state=rng,
        copy_x=clustered is X,  # what was converted may be used up
    )
    with warnings.catch_warnings():
        # said when rows repeat each other, which is fine here (see above)
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(clustered, sample_weight=weight)
    labels = kmeans.labels_.astype(np.intp)
    points = kmeans.cluster_centers_.astype(X.dtype) + shift
    return _means(pool, labels, points), labels


def _starts(X: Any, weight: Float, n: int, rng: np.random.RandomState) -> Any:
    """Return `n` rows to start from, by k-means++ on some of them."""
    some = rng.permutation(X.shape[0])[: max(FEWEST_START_ROWS, START_RATIO * n)]
    starts, _ = cluster.kmeans_plusplus(X[some], n, sample_weight=weight[some], random_state=rng)
    return starts


def _means(pool: Block, labels: npt.NDArray[np.intp], points: Any) -> Any:
    """Return the means of clusters, from the rows as they are; `points` where one is empty."""
    X = pool.X
    share = sp.csr_matrix((pool.counts, (labels, np.arange(len(labels)))), (len(points), len(pool)))
    mass = np.asarray(share.sum(axis=1)).ravel()
    sums = share @ X.astype(np.float64, copy=False)
    sums = sums.toarray() if sp.issparse(sums) else sums
    points[mass > 0] = sums[mass > 0] / mass[mass > 0, None]
    return points


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
