"""Choose the width of a kernel by leave-one-out, with landmarks made from other rows.

Landmarks that are made with the labels of the validation rows would favour every width that
separates exactly these rows. Validation rows and the rows that landmarks are made from are
therefore disjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from nysplus._holdout import best_of, split
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._rows.blocks import Block
from nysplus._runtime.record import Trial
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

# Validation rows, and rows that landmarks are made from: enough to tell widths apart that differ
# by a factor of two, few enough for a search in seconds.
VALIDATION_ROWS, LANDMARK_ROWS = 2000, 6000
# The best width depends on the number of landmarks, but hardly beyond this number.
MAX_LANDMARKS = 300
# Widths from 1/16 to 16 times the width of gamma="scale".
OCTAVES = range(-4, 5)
# Of equal scores the width closest to it is chosen.
SORTED_OCTAVES = tuple(sorted(OCTAVES, key=abs))
# Largest squared error of a row with 0/1 codes: a single isolated row must not decide.
MAX_ERROR = 1.0
# The same for values, in variances.
MAX_VARIANCES = 9.0
# Weight of the squared error in the score of classes: accuracy alone hardly differs between widths
# on a few thousand rows.
ERROR_SHARE = 0.5

# A cheap selector for each kind of landmarks, whose landmarks do not depend on the width.
STAND_INS: dict[str, LandmarkSelector] = {
    "rows": Uniform(),
    "centroids": KMeans(max_iter=6),
    "class centroids": ClassCentroids(power=0, share="root"),
}


@dataclass(frozen=True)
class Width:
    """A kernel with a width, and its leave-one-out score.

    Attributes
    ----------
    kernel : Kernel
        With gamma as a number.
    landmarks : ndarray or CSR matrix
        Landmarks of the scored model.
    accuracy : float or None
        Leave-one-out accuracy with the best ridge; None for values.
    error : float
        Mean squared leave-one-out error with the best ridge, clipped.
    """

    kernel: Kernel
    landmarks: Any
    accuracy: float | None
    error: float

    @property
    def score(self) -> float:
        """The criterion: minus the error for values, accuracy minus half the error for classes."""
        if self.accuracy is None:
            return -self.error
        return self.accuracy - ERROR_SHARE * self.error

    def trial(self, stage: str, model: str, n_rows: int, chosen: bool) -> Trial:
        """Return the record of the comparison with others."""
        metric, score = "leave-one-out accuracy", self.accuracy
        if score is None:
            metric, score = "leave-one-out squared error, in variances", self.error
        n = int(self.landmarks.shape[0])
        return Trial(stage, model, metric, score, n_rows, n_landmarks=n, chosen=chosen)


def tune_kernel(
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    rng: np.random.RandomState,
    others: tuple[Kernel, ...] = (),
) -> Kernel:
    """Return the problem's kernel with the width that is best for `n` landmarks.

    O(2000 · n²) with at most 300 landmarks for each of nine widths, whatever the number of rows.
    The kernels `others` are tuned as well, and the best of all is returned.
    """
    validation, rest = split(problem.blocks, VALIDATION_ROWS, LANDMARK_ROWS, rng)
    widths = [
        width
        for kernel in (problem.kernel, *others)
        for width in scored_widths(
            validation, replace(problem, blocks=rest, kernel=kernel), selector, n, rng
        )
    ]
    best = best_of(widths, lambda width: width.score)
    problem.blocks.progress.record.add(
        *(
            width.trial("kernel", kernel_text(width.kernel), len(validation), width is best)
            for width in widths
        )
    )
    return best.kernel


def kernel_text(kernel: Kernel) -> str:
    """Return a kernel as a user reads it: numbers with four digits."""
    params = kernel.get_params(deep=False)
    shown = (
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in params.items()
    )
    return f"{type(kernel).__name__}({', '.join(shown)})"


def choose_width(
    validation: Block,
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    rng: np.random.RandomState,
    octaves: Iterable[int] = SORTED_OCTAVES,
) -> Width:
    """Return the kernel with the best of several widths.

    Parameters
    ----------
    validation : Block
        Rows whose leave-one-out scores are compared.
    problem : Problem
        Other rows, which landmarks are made from; a kernel with a gamma, which is ignored; and
        ridges, of which each width uses the best.
    selector : LandmarkSelector
        The selector of the final model. A cheap selector of the same kind makes the landmarks.
    n : int
        Number of landmarks of the final model.
    rng : RandomState
    octaves : iterable of int
        Widths, as powers of two of ``gamma="scale"``: of equal scores the first one is chosen.
    """
    widths = scored_widths(validation, problem, selector, n, rng, octaves)
    return best_of(widths, lambda width: width.score)


def scored_widths(
    validation: Block,
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    rng: np.random.RandomState,
    octaves: Iterable[int] = SORTED_OCTAVES,
) -> Iterator[Width]:
    """Yield the kernel with each of several widths (see :func:`choose_width`)."""
    middle = _with_gamma(problem.kernel, "scale").resolve(problem.blocks, rng)
    Z = _landmarks(replace(problem, kernel=middle), selector, n, rng)
    gamma: Any = middle.get_params()["gamma"]
    kernels = (_with_gamma(middle, gamma * 2.0**octave) for octave in octaves)
    for kernel in kernels:
        yield _scored(validation, kernel, Z, problem.alphas, rng)


def score_kernel(
    validation: Block,
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    rng: np.random.RandomState,
) -> Width:
    """Return the score of the problem's own kernel (see :func:`choose_width`)."""
    kernel = problem.kernel.resolve(problem.blocks, rng)
    Z = _landmarks(replace(problem, kernel=kernel), selector, n, rng)
    return _scored(validation, kernel, Z, problem.alphas, rng)


def _with_gamma(kernel: Kernel, gamma: Any) -> Kernel:
    changed: Kernel = clone(kernel).set_params(gamma=gamma)
    return changed


def _landmarks(
    problem: Problem, selector: LandmarkSelector, n: int, rng: np.random.RandomState
) -> Any:
    """Return landmarks of the kind that the selector makes, at most `MAX_LANDMARKS`."""
    if isinstance(selector, GivenLandmarks):
        return selector.points[rng.permutation(selector.points.shape[0])[:MAX_LANDMARKS]]
    rows = problem.blocks
    kind = selector.kind if rows.discrete or selector.kind == "rows" else "centroids"
    n = min(n, MAX_LANDMARKS, rows.n_rows)
    return STAND_INS[kind].select(replace(problem, approximation=StandardMap()), n, rng).points


def _scored(
    validation: Block,
    kernel: Kernel,
    Z: Any,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
) -> Width:
    """Score a kernel with the best ridge."""
    accuracies, errors = _leave_one_out(validation, kernel, Z, alphas, rng)
    accuracy = None if accuracies is None else float(accuracies.max())
    return Width(kernel, Z, accuracy, float(errors.min()))


def _leave_one_out(
    validation: Block,
    kernel: Kernel,
    Z: Any,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
) -> tuple[Float | None, Float]:
    """Return accuracy (None for values) and clipped squared error for each α."""
    feature_map = StandardMap().build(kernel, Z, rng)
    features = feature_map.features()(validation.X)
    Y, weight = validation.Y, validation.weight
    path = RidgePath(Moments.of(features.copy(order="F"), Y, weight))
    features -= path.moments.feature_mean
    scores = path.leave_one_out(features @ path.vectors, Y, validation.unit_weight, alphas)
    if validation.targets is not None and validation.targets.discrete:
        hits = [weight @ validation.labels.hits(score) / weight.sum() for score in scores]
        accuracies: Float | None = np.array(hits)
        unit, most = np.full(Y.shape[1], 2.0), MAX_ERROR  # between the codes −1 and 1
    else:
        accuracies = None
        variance = path.moments.target_scatter / path.moments.weight
        unit, most = np.sqrt(np.where(variance > 0, variance, 1.0)), MAX_VARIANCES
    squares = [np.minimum(((Y - score) / unit) ** 2, most).sum(axis=1) for score in scores]
    return accuracies, np.array([weight @ square / weight.sum() for square in squares])
