"""Landmarks that training starts from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nysplus._rows.blocks import Block
from nysplus._typing import Float
from nysplus.landmarks import ClassCentroids, Problem
from nysplus.landmarks.clustering import RANDOM, centroids

# For values, rows are clustered in the directions of the map and along the target, whose spread
# counts as this share of the spread of the rows.
TARGET_SHARE, MAX_ITER = 0.5, 10
# From random rows: the landmarks will move.
BY_HARDNESS = ClassCentroids(power=0.0, max_iter=MAX_ITER, start=RANDOM)
# Without a pilot model, where landmarks are selected many times: for tables, the shares of the
# classes hardly matter.
BY_COUNT = ClassCentroids(power=0.0, share="root", max_iter=MAX_ITER, start=RANDOM)


def first_landmarks(
    problem: Problem,
    block: Block,
    U: Float,
    Y: Float,
    n: int,
    rng: np.random.RandomState,
    of_classes: ClassCentroids = BY_HARDNESS,
) -> Float:
    """Return centroids inside each class, or of rows and targets together for values.

    Parameters
    ----------
    problem : Problem
        Its rows are not used.
    block : Block
        The rows to cluster.
    U : ndarray of shape (N, r)
        The same rows in the directions of the map.
    Y : ndarray of shape (N, L)
        Their targets, with a standard deviation of one for values.
    n : int
    rng : RandomState
    of_classes : ClassCentroids, optional
        How classes share the landmarks.
    """
    n = min(n, len(block))
    if n == len(block):
        return U
    assert block.targets is not None
    if block.targets.discrete:
        blocks = replace(block, X=U).blocks()
        found: Float = of_classes.select(replace(problem, blocks=blocks), n, rng).points
        return found
    spread = TARGET_SHARE * np.sqrt(U.var(axis=0).sum())
    joined = replace(block, X=np.hstack([U, spread * Y]))
    points, _ = centroids(joined, n, MAX_ITER, rng, RANDOM)
    return np.ascontiguousarray(points[:, : U.shape[1]])
