"""The number of landmarks and the type of a model within a number of bytes, on held-out rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from nysplus._bytes.budget import (
    NUMBER_BYTES,
    Budget,
    Size,
    least_bytes,
    most_landmarks,
    no_room,
)
from nysplus._bytes.quantise import quantise, representable_types
from nysplus._holdout import split
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.blocks import RowBlocks
from nysplus._rows.projected import projected
from nysplus._runtime.progress import Progress
from nysplus._typing import Float
from nysplus.expansion import stored_bytes
from nysplus.landmarks import Landmarks, LandmarkSelector, Problem, select_landmarks

# Rows that judge, and rows that are fitted to: this many, or so many for each landmark.
JUDGED_ROWS, POOL_ROWS, POOL_RATIO = 5000, 20_000, 10
# Rows and landmarks by which it is found out how long sparse landmarks are.
PROBED_ROWS, PROBED_LANDMARKS = 500, 20


def sizes_within(
    budget: Budget,
    problem: Problem,
    selector: LandmarkSelector,
    projection: Float | None,
    rng: np.random.RandomState,
) -> list[Size]:
    """Return the sizes that a model without learning may have, or raise if there are none.

    Parameters
    ----------
    budget : Budget
    problem : Problem
        With rows as the kernel sees them.
    selector : LandmarkSelector
        Whose landmarks are counted: those of sparse rows may be sparse or not.
    projection : ndarray or None
        That rows are seen through.
    rng : RandomState
    """
    blocks = problem.blocks
    r, L, most = blocks.n_features, blocks.n_outputs, most_landmarks(blocks.n_candidates)
    d, left = None, budget
    if projection is not None and projection.ndim == 2:
        d = len(projection)
    elif projection is not None:  # the units of a diagonal are not rounded
        left = Budget(budget.n_bytes - NUMBER_BYTES * r)
    sparse = _sparse_bytes(problem, selector, rng)
    if sparse is None:
        sizes, least = left.sizes(r, L, most, d), least_bytes(r, L, d)
    else:
        fixed, each = NUMBER_BYTES * (L + 1), sparse + NUMBER_BYTES * L
        n, least = int((left.n_bytes - fixed) // each), int(fixed + each)
        sizes = [Size(min(n, most), None, ("float32",))] if n > 0 else []
    if not sizes:
        raise no_room(budget, r, L, budget.n_bytes - left.n_bytes + least)
    return sizes


def _sparse_bytes(
    problem: Problem, selector: LandmarkSelector, rng: np.random.RandomState
) -> float | None:
    """Return the bytes of a typical landmark in float32 with its indices; None for dense ones."""
    blocks = problem.blocks
    if not sp.issparse(blocks.gather(np.arange(1)).X):
        return None
    some = blocks.gather(blocks.sample(min(blocks.n_candidates, PROBED_ROWS), rng))
    probe = replace(problem, blocks=some.blocks())
    n = max(1, min(PROBED_LANDMARKS, len(some) // 2))
    Z = select_landmarks(selector, probe, n, rng).points
    return stored_bytes(Z.astype(np.float32)) / Z.shape[0] if sp.issparse(Z) else None


def fitting_landmarks(
    budget: Budget,
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    projection: Float | None,
    rng: np.random.RandomState,
) -> Landmarks:
    """Return `n` landmarks, or fewer where they are sparse and longer than was expected."""
    L, r = problem.blocks.n_outputs, problem.blocks.n_features
    extra = 0 if projection is None else NUMBER_BYTES * projection.size
    while True:
        landmarks = select_landmarks(selector, problem, n, rng)
        if not sp.issparse(landmarks.points):
            return landmarks
        Z = landmarks.points.astype(np.float32)
        need = stored_bytes(Z) + NUMBER_BYTES * L * (Z.shape[0] + 1) + extra
        if need <= budget.n_bytes:
            return landmarks
        if n == 1:
            raise no_room(budget, r, L, need)
        n = max(1, min(n - 1, n * budget.n_bytes // need))


def choose_size(
    problem: Problem,
    selector: LandmarkSelector,
    sizes: list[Size],
    given: RowBlocks,
    projection: Float | None,
    rng: np.random.RandomState,
) -> Size:
    """Return the best of several sizes on held-out rows, with one type only.

    O(N n (d + n)) for each, on at most 20,000 rows or ten for each landmark.

    Parameters
    ----------
    problem : Problem
        With the kernel that sees the rows through the map.
    selector : LandmarkSelector
    sizes : list of Size
    given : RowBlocks
        The rows as they came: a map that is rounded moves them.
    projection : ndarray or None
        The map.
    rng : RandomState
    """
    if len(sizes) == 1 and sizes[0].dtypes in (("int8",), ("float32",)):
        return sizes[0]
    n_pool = max(POOL_ROWS, POOL_RATIO * max(size.n for size in sizes))
    judged, pool = split(given, JUDGED_ROWS, n_pool, rng)
    progress, n_rows = given.progress, pool.n_rows
    pool = replace(pool, progress=Progress())  # of the single fits nothing is told
    problem = replace(problem, blocks=projected(pool, projection))
    assert judged.targets is not None
    found: list[tuple[float, int, Size]] = []
    with progress.stage("size", len(sizes) * n_rows, len(sizes)) as advance:
        for size in sizes:
            Z = select_landmarks(selector, problem, min(size.n, pool.n_candidates), rng).points
            fit = fit_expansion(
                problem.blocks, Z, problem.kernel, problem.approximation, problem.alphas, rng
            )
            model = replace(fit.expansion, projection=projection)
            for dtype in representable_types(model, size.dtypes):
                small = quantise(model, dtype, pool, rng)
                merit = float(judged.weight @ judged.targets.row_scores(small(judged.X)))
                found.append((merit, -small.n_bytes, replace(size, dtypes=(dtype,))))
            advance(n_rows)
    if not found:
        raise ValueError(
            "The budget leaves room for numbers in float16 only, and features exceed its range. "
            "Scale the features, or raise the budget."
        )
    # of equal ones the smallest
    return max(found, key=lambda each: each[:2])[2]
