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
from nysplus._runtime.threads import one_blas_thread
from nysplus._typing import Float

# Ways to start.
PLUS_PLUS, RANDOM = "k-means++", "random"
# Most clusters that start from k-means++, which draws one point after the other: with more
# clusters a random start is as good.
MAX_PLUS_PLUS = 100
# Rows that k-means++ draws from, the larger of a number and a multiple of the clusters: all rows
# would cost more than the iterations that follow.
MIN_START_ROWS, START_RATIO = 256, 10


def centroids(
    pool: Block, n: int, max_iter: int, rng: np.random.RandomState, start: str = PLUS_PLUS
) -> tuple[Any, npt.NDArray[np.intp]]:
    """Return `n` k-means centroids of some rows, weighted by sample weight, and each row's cluster.

    Distances are computed in float32 about the mean of the rows, which is twice as fast and exact
    enough to find the nearest centroid. If fewer than `n` rows are distinct, some centroids are
    equal, which is harmless. They start from random rows, or from k-means++ if they are few.
    """
    X = pool.X
    if n == 1:
        labels = np.zeros(len(pool), dtype=np.intp)
        return _means(pool, labels, np.zeros((1, X.shape[1]), dtype=X.dtype)), labels
    clustered, shift = _in_float32(X)
    weight = pool.counts / pool.counts.max()  # only ratios matter, and they fit in float32
    spread = start == PLUS_PLUS and n <= MAX_PLUS_PLUS
    kmeans = cluster.KMeans(
        n_clusters=n,
        init=_starts(clustered, weight, n, rng) if spread else "random",
        n_init=1,
        max_iter=max_iter,
        random_state=rng,
        copy_x=clustered is X,  # converted rows may be overwritten
    )
    # scikit-learn's k-means limits BLAS too, but leaves the limit behind if several threads do
    with one_blas_thread(), warnings.catch_warnings():
        # raised if fewer than n rows are distinct (see above)
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(clustered, sample_weight=weight)
    labels = kmeans.labels_.astype(np.intp)
    points = kmeans.cluster_centers_.astype(X.dtype) + shift
    return _means(pool, labels, points), labels


def _starts(X: Any, weight: Float, n: int, rng: np.random.RandomState) -> Any:
    """Return `n` rows to start from, by k-means++ on a sample of the rows."""
    some = rng.permutation(X.shape[0])[: max(MIN_START_ROWS, START_RATIO * n)]
    starts, _ = cluster.kmeans_plusplus(X[some], n, sample_weight=weight[some], random_state=rng)
    return starts


def _means(pool: Block, labels: npt.NDArray[np.intp], points: Any) -> Any:
    """Return the means of the rows of each cluster, in full precision; `points` if it is empty."""
    X = pool.X
    share = sp.csr_matrix((pool.counts, (labels, np.arange(len(labels)))), (len(points), len(pool)))
    mass = np.asarray(share.sum(axis=1)).ravel()
    sums = share @ X.astype(np.float64, copy=False)
    sums = sums.toarray() if sp.issparse(sums) else sums
    points[mass > 0] = sums[mass > 0] / mass[mass > 0, None]
    return points


def _in_float32(X: Any) -> tuple[Any, Any]:
    """Return the rows in float32, dense rows minus their mean, and the mean.

    The type is kept if float32 cannot represent squared distances between the rows, or their sum.
    """
    if X.dtype == np.float32 or sp.issparse(X):
        return X, X.dtype.type(0)
    shift = X.mean(axis=0)
    X = X - shift
    largest = np.abs(X).max(initial=0.0)
    limits = np.finfo(np.float32)
    # the sum of all squared distances must not overflow, the squares of roundings not vanish
    farthest = 2.0 * np.sqrt(X.shape[1]) * largest
    allowed = limits.tiny**0.5 < limits.eps * largest and farthest < (limits.max / len(X)) ** 0.5
    return (X.astype(np.float32) if allowed else X), shift
