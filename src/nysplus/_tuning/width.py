"""The width of a kernel by leave-one-out on some rows, with landmarks made from others.

Landmarks that were made with the labels of the rows that judge them would make every width look
good that separates these very rows; so the two sets are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from nysplus._holdout import split
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._rows.blocks import Block, Blocks
from nysplus._typing import Float
from nysplus.kernels import Kernel
from nysplus.landmarks import (
    ClassCentroids,
    GivenLandmarks,
    KMeans,
    LandmarkSelector,
    Problem,
    Uniform,
)

# Rows that judge, and others that landmarks are made from.
JUDGED_ROWS, POOL_ROWS = 2000, 6000
# The best width depends on the number of landmarks, but hardly beyond this many.
MAX_LANDMARKS = 300
# Widths from 1/16 to 16 times the one that the variance suggests.
OCTAVES = range(-4, 5)
# Squared errors of 0/1 codes are clipped here: a single isolated row must not decide.
MAX_ERROR = 1.0
# The same for values, in variances.
MAX_VARIANCES = 9.0
# How much a squared error counts beside a row that is right.
ERROR_SHARE = 0.5

# A cheap rule for each kind of landmarks, which does not look at the width.
STAND_INS: dict[str, LandmarkSelector] = {
    "rows": Uniform(),
    "centroids": KMeans(max_iter=6),
    "class centroids": ClassCentroids(power=0, share="root"),
}


@dataclass(frozen=True)
class Width:
    """A kernel whose width was chosen, and how it was judged.

    Attributes
    ----------
    kernel : Kernel
        With gamma as a number.
    landmarks : ndarray or CSR matrix
        Those that it was judged with.
    accuracy : float or None
        By leave-one-out, of the best ridge; None for values.
    error : float
        Mean squared error by leave-one-out, clipped.
    """

    kernel: Kernel
    landmarks: Any
    accuracy: float | None
    error: float

    @property
    def merit(self) -> float:
        """What widths are chosen by: errors tell what a few thousand rows right or wrong do not."""
        if self.accuracy is None:
            return -self.error
        return self.accuracy - ERROR_SHARE * self.error


def tune_kernel(
    problem: Problem, selector: LandmarkSelector, n: int, rng: np.random.RandomState
) -> Kernel:
    """Return the problem's kernel with the width that serves `n` landmarks best.

    O(2000 · n²) with at most 300 landmarks for each of nine widths, whatever the number of rows.
    """
    blocks = problem.blocks
    judged, pool = split(blocks, JUDGED_ROWS, POOL_ROWS, rng)
    return choose_width(judged, pool, problem.kernel, selector, n, problem.alphas, rng).kernel


def choose_width(
    judged: Block,
    pool: Blocks,
    kernel: Kernel,
    selector: LandmarkSelector,
    n: int,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
) -> Width:
    """Return the kernel with the best of nine widths.

    Parameters
    ----------
    judged : Block
        Rows to judge by.
    pool : Blocks
        Other rows, that landmarks are made from.
    kernel : Kernel
        One with a gamma, which does not count.
    selector : LandmarkSelector
        Whose landmarks the model will have. Here a cheap rule of the same kind takes its place,
        whose landmarks do not depend on the width.
    n : int
        Number of landmarks of the model.
    alphas : tuple of float
        Ridges, of which the best counts for each width.
    rng : RandomState
    """
    middle = _with_gamma(kernel, "scale").resolve(pool, rng)
    Z = _landmarks(pool, middle, selector, n, alphas, rng)
    return max(_widths(judged, middle, Z, alphas, rng), key=lambda width: width.merit)


def _with_gamma(kernel: Kernel, gamma: Any) -> Kernel:
    changed: Kernel = clone(kernel).set_params(gamma=gamma)
    return changed


def _landmarks(
    pool: Blocks,
    kernel: Kernel,
    selector: LandmarkSelector,
    n: int,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
) -> Any:
    """Return landmarks of the kind that the selector makes, at most `MAX_LANDMARKS`."""
    if isinstance(selector, GivenLandmarks):
        return selector.points[rng.permutation(selector.points.shape[0])[:MAX_LANDMARKS]]
    kind = selector.kind if pool.discrete or selector.kind == "rows" else "centroids"
    n = min(n, MAX_LANDMARKS, pool.n_rows)
    return STAND_INS[kind].select(Problem(pool, kernel, StandardMap(), alphas), n, rng).points


def _widths(
    judged: Block,
    middle: Kernel,
    Z: Any,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
) -> Iterator[Width]:
    """Judge all widths, the middle ones first."""
    gamma: Any = middle.get_params()["gamma"]
    for octave in sorted(OCTAVES, key=abs):
        kernel = _with_gamma(middle, gamma * 2.0**octave)
        accuracies, errors = _leave_one_out(judged, kernel, Z, alphas, rng)
        accuracy = None if accuracies is None else float(accuracies.max())
        yield Width(kernel, Z, accuracy, float(errors.min()))


def _leave_one_out(
    judged: Block, kernel: Kernel, Z: Any, alphas: tuple[float, ...], rng: np.random.RandomState
) -> tuple[Float | None, Float]:
    """Return accuracy (None for values) and clipped squared error for each α."""
    feature_map = StandardMap().build(kernel, Z, rng)
    features = feature_map.features()(judged.X)
    Y, weight = judged.Y, judged.weight
    path = RidgePath(Moments.of(features.copy(order="F"), Y, weight))
    features -= path.moments.feature_mean
    scores = path.leave_one_out(features @ path.vectors, Y, judged.unit_weight, alphas)
    if judged.targets is not None and judged.targets.discrete:
        hits = [weight @ judged.labels.hits(score) / weight.sum() for score in scores]
        accuracies: Float | None = np.array(hits)
        unit, most = np.full(Y.shape[1], 2.0), MAX_ERROR  # between the codes −1 and 1
    else:
        accuracies = None
        spread = path.moments.target_scatter / path.moments.weight
        unit, most = np.sqrt(np.where(spread > 0, spread, 1.0)), MAX_VARIANCES
    squares = [np.minimum(((Y - score) / unit) ** 2, most).sum(axis=1) for score in scores]
    return accuracies, np.array([weight @ square / weight.sum() for square in squares])
