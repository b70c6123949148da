"""The number of landmarks and the type of a model within a number of bytes, on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._blocks import RowBlocks
from nysplus._budget import MOST_LANDMARKS, NUMBER_BYTES, Budget, Size, least_bytes
from nysplus._expansion import KernelExpansion, fit_expansion, stored_bytes
from nysplus._progress import Progress
from nysplus._quantise import stored
from nysplus._targets import Float
from nysplus._tuning import split_rows
from nysplus.landmarks import LandmarkSelector, Problem, select_landmarks

# Rows that judge, and rows that are fitted to: this many, or so many for each landmark.
JUDGED_ROWS, POOL_ROWS, POOL_RATIO = 5000, 20_000, 10
# Rows that say which coefficients make up for rounding: this many, or so many for each landmark.
ROUNDING_ROWS, ROUNDING_RATIO = 4000, 2
# Landmarks for each row, at most; more up to a number that costs little.
LANDMARK_SHARE, FEW_LANDMARKS, FEW_LANDMARKS_SHARE = 0.125, 500, 0.5


def most_landmarks(n_rows: int) -> int:
    """Return how many landmarks are worth a trial."""
    few = min(FEW_LANDMARKS, FEW_LANDMARKS_SHARE * n_rows)
    return int(max(1, few, min(MOST_LANDMARKS, LANDMARK_SHARE * n_rows)))


def sizes_within(budget: Budget, blocks: RowBlocks, projection: Float | None) -> list[Size]:
    """Return the sizes that a model without learning may have, or raise if there are none.

    Parameters
    ----------
    budget : Budget
    blocks : RowBlocks
        As the kernel sees them.
    projection : ndarray or None
        That they are seen through.
    """
    r, L, most = blocks.n_features, blocks.n_outputs, most_landmarks(blocks.n_candidates)
    d, left = None, budget
    if projection is not None and projection.ndim == 2:
        d = len(projection)
    elif projection is not None:  # the units of a diagonal are not rounded
        left = Budget(budget.n_bytes - NUMBER_BYTES * r)
    sparse = _sparse_bytes(blocks)
    if sparse is None:
        sizes, least = left.sizes(r, L, most, d), least_bytes(r, L, d)
    else:
        fixed, each = NUMBER_BYTES * (L + 1), sparse + NUMBER_BYTES * L
        n, least = int((left.n_bytes - fixed) // each), int(fixed + each)
        sizes = [Size(min(n, most), None, ("float32",))] if n > 0 else []
    if not sizes:
        raise ValueError(
            f"budget={budget.n_bytes} has no room for a single landmark of {r} columns and {L} "
            f"outputs, which takes {budget.n_bytes - left.n_bytes + least} bytes. Raise it, or "
            "reduce the features."
        )
    return sizes


def _sparse_bytes(blocks: RowBlocks) -> float | None:
    """Return the bytes of a typical row in float32 with its indices; None for dense rows."""
    some = blocks.gather(np.arange(min(blocks.n_rows, JUDGED_ROWS))).X
    return stored_bytes(some.astype(np.float32)) / some.shape[0] if sp.issparse(some) else None


def choose_size(
    problem: Problem, selector: LandmarkSelector, sizes: list[Size], rng: np.random.RandomState
) -> Size:
    """Return the best of several sizes on held-out rows, with one type only.

    O(N n (d + n)) for each, on at most 20,000 rows or ten for each landmark.
    """
    if len(sizes) == 1 and len(sizes[0].dtypes) == 1:
        return sizes[0]
    n_pool = max(POOL_ROWS, POOL_RATIO * max(size.n for size in sizes))
    judged, pool = split_rows(problem.blocks, JUDGED_ROWS, n_pool, rng)
    progress, n_rows = problem.blocks.progress, pool.n_rows
    pool = replace(pool, progress=Progress())  # of the single fits nothing is told
    problem = replace(problem, blocks=pool)
    assert judged.targets is not None
    found: list[tuple[float, int, Size]] = []
    with progress.stage("size", len(sizes) * n_rows, len(sizes)) as advance:
        for size in sizes:
            Z = select_landmarks(selector, problem, min(size.n, pool.n_candidates), rng).points
            model = fit_expansion(
                pool, Z, problem.kernel, problem.approximation, problem.alphas, rng
            ).expansion
            for dtype in types_that_hold(model, size.dtypes):
                small = in_type(model, dtype, pool, rng)
                merit = float(judged.weight @ judged.targets.merits(small(judged.X)))
                found.append((merit, -small.n_bytes, replace(size, dtypes=(dtype,))))
            advance(n_rows)
    # of equal ones the smallest
    return max(found, key=lambda each: each[:2])[2]


def types_that_hold(expansion: KernelExpansion, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types whose range the landmarks and the map are within: float16 has a small one.

    Coefficients that are not are cut, and the others make up for it.
    """
    arrays = [expansion.landmarks]
    if expansion.projection is not None:
        arrays.append(expansion.projection)
    largest = max(float(np.abs(array).max()) for array in arrays)
    small = largest < float(np.finfo(np.float16).max)
    return tuple(dtype for dtype in dtypes if small or dtype != "float16")


def in_type(
    expansion: KernelExpansion, dtype: str, blocks: RowBlocks, rng: np.random.RandomState
) -> KernelExpansion:
    """Return the function with its numbers in a type, by some of the rows."""
    n_rows = max(ROUNDING_ROWS, ROUNDING_RATIO * expansion.landmarks.shape[0])
    some: Any = blocks.gather(blocks.sample(min(n_rows, blocks.n_candidates), rng)).X
    return stored(expansion, dtype, some)
