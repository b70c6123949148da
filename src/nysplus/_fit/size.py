"""Choose the number of landmarks and the storage type of a model within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._bytes.budget import (
    Budget,
    ModelShape,
    Size,
    csr_bytes,
    csr_model_bytes,
    most_landmarks,
)
from nysplus._bytes.quantise import compared_types, out_of_range, quantise
from nysplus._holdout import best_of, split
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.projected import projected
from nysplus._rows.targets import Targets
from nysplus._runtime.progress import Progress
from nysplus._runtime.record import Trial
from nysplus._typing import Float
from nysplus.landmarks import Landmarks, LandmarkSelector, Problem, select_landmarks

# Rows held out, and rows to fit to: 20,000, or ten per landmark.
VALIDATION_ROWS, FIT_ROWS, FIT_RATIO = 5000, 20_000, 10
# Rows, and landmarks among them, that tell how many bytes a CSR landmark takes.
PROBED_ROWS, PROBED_LANDMARKS = 500, 20


def sizes_within(
    budget: Budget,
    problem: Problem,
    selector: LandmarkSelector,
    projection: Float | None,
    rng: np.random.RandomState,
) -> list[Size]:
    """Return the sizes of an unrefined model within a budget, or raise if there are none.

    Parameters
    ----------
    budget : Budget
    problem : Problem
        With rows as the kernel sees them.
    selector : LandmarkSelector
        Its landmarks are counted: those of sparse rows may be sparse or dense.
    projection : ndarray or None
        The map before the kernel.
    rng : RandomState
    """
    shape = _shape(problem, projection)
    shape = replace(shape, csr_bytes=_csr_landmark_bytes(problem, selector, rng))
    return budget.checked_sizes(shape, most_landmarks(problem.blocks.n_candidates))


def _shape(problem: Problem, projection: Float | None) -> ModelShape:
    map_shape = () if projection is None else projection.shape
    return ModelShape(problem.blocks.n_features, problem.blocks.n_outputs, map_shape)


def _csr_landmark_bytes(
    problem: Problem, selector: LandmarkSelector, rng: np.random.RandomState
) -> float | None:
    """Return the bytes of a typical CSR landmark in float32; None for dense landmarks."""
    blocks = problem.blocks
    if not sp.issparse(blocks.gather(np.arange(1)).X):
        return None
    some = blocks.gather(blocks.sample(min(blocks.n_candidates, PROBED_ROWS), rng))
    probe = replace(problem, blocks=some.blocks())
    n = max(1, min(PROBED_LANDMARKS, len(some) // 2))
    Z = select_landmarks(selector, probe, n, rng).points
    return csr_bytes(Z) / Z.shape[0] if sp.issparse(Z) else None


def fitting_landmarks(
    budget: Budget,
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    projection: Float | None,
    rng: np.random.RandomState,
) -> Landmarks:
    """Return `n` landmarks, or fewer where CSR landmarks take more bytes than expected."""
    shape = _shape(problem, projection)

    def n_bytes(landmarks: Landmarks) -> int:
        Z = landmarks.points
        # the bytes of dense landmarks were known when their number was chosen
        return csr_model_bytes(Z, shape.L, projection) if sp.issparse(Z) else 0

    return budget.largest_within(
        n, shape, lambda n: select_landmarks(selector, problem, n, rng), n_bytes
    )


def trial_rows(blocks: RowBlocks, most: int, rng: np.random.RandomState) -> tuple[Block, Blocks]:
    """Draw held-out rows, and other rows to fit models of at most `most` landmarks to."""
    held_out, rows = split(blocks, VALIDATION_ROWS, max(FIT_ROWS, FIT_RATIO * most), rng)
    return held_out, replace(rows, progress=Progress())  # single fits are not reported


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of held-out rows by a model that was fitted without them.

    Attributes
    ----------
    rows : ndarray of int
        Numbers of the rows.
    scores, weight : ndarray
    """

    rows: npt.NDArray[np.intp]
    scores: Float
    weight: Float

    @classmethod
    def of(cls, outputs: ScoredRows, targets: Targets) -> HeldOutScores:
        """Score the outputs of a model."""
        return cls(outputs.rows, targets.row_scores(outputs.scores), outputs.weight)

    @property
    def mean(self) -> float:
        """The weighted mean."""
        return float(self.weight @ self.scores / self.weight.sum())

    def some(self, most: int, rng: np.random.RandomState) -> HeldOutScores:
        """Return the scores of at most a number of the rows, drawn at random."""
        if len(self.rows) <= most:
            return self
        drawn = rng.permutation(len(self.rows))[:most]
        return HeldOutScores(self.rows[drawn], self.scores[drawn], self.weight[drawn])


@dataclass(frozen=True)
class ChosenSize:
    """The result of :func:`choose_size`.

    Attributes
    ----------
    size : Size
        With a single storage type.
    held_out : HeldOutScores or None
        Of a model of this size; None where there was no choice.
    outputs : ScoredRows or None
        Outputs of the same model for the same rows.
    """

    size: Size
    held_out: HeldOutScores | None = None
    outputs: ScoredRows | None = None


def choose_size(
    problem: Problem,
    selector: LandmarkSelector,
    sizes: list[Size],
    given: RowBlocks,
    projection: Float | None,
    rng: np.random.RandomState,
    always: bool = False,
) -> ChosenSize:
    """Return the best of several sizes on held-out rows, with a single storage type.

    Not all sizes are tried (:func:`tried_versions`).
    O(N n (d + n)) for each size, on at most 20,000 rows or ten per landmark.

    Parameters
    ----------
    problem : Problem
        With the kernel of the mapped rows.
    selector : LandmarkSelector
    sizes : list of Size
    given : RowBlocks
        The rows before the map: quantising the map moves mapped rows.
    projection : ndarray or None
        The map.
    rng : RandomState
    always : bool
        Whether a single size is scored as well.
    """
    if not always and len(sizes) == 1 and sizes[0].dtypes in (("int8",), ("float32",)):
        return ChosenSize(sizes[0])
    held_out, rows = trial_rows(given, max(size.n for size in sizes), rng)
    problem, targets = replace(problem, blocks=projected(rows, projection)), held_out.targets
    assert targets is not None

    def versions(size: Size) -> Iterator[Version]:
        """Yield the model of a size in the storage types that are compared."""
        chosen = select_landmarks(selector, problem, min(size.n, rows.n_candidates), rng)
        fit = problem.fit(chosen.points, rng, unused=chosen.unused)
        exact = replace(fit.expansion, projection=projection)
        for dtype in compared_types(exact, size.dtypes):
            model = quantise(exact, dtype, rows, rng)
            outputs = held_out.scored(model(held_out.X))
            found = HeldOutScores.of(outputs, targets)
            result = ChosenSize(replace(size, dtypes=(dtype,)), found, outputs)
            yield Version(found.mean, -model.n_bytes, result)
        advance(rows.n_rows)

    with given.progress.stage("size", None, None) as advance:
        tried = tried_versions(sizes, versions)
    if not tried:
        raise out_of_range()
    best = best_of(tried, _quality)
    given.progress.record.add(
        *(each.trial(given.discrete, len(held_out), each is best) for each in tried)
    )
    return best.chosen


class Version(NamedTuple):
    """A model of a size in a storage type: of equal scores the one of fewest bytes is better."""

    score: float
    minus_bytes: int
    chosen: ChosenSize

    def trial(self, discrete: bool, n_rows: int, chosen: bool) -> Trial:
        """Return the record of the comparison with others."""
        n, (dtype, *_) = self.chosen.size.n, self.chosen.size.dtypes
        return Trial.of(
            "size",
            f"{n:,} landmarks in {dtype}",
            self.score,
            discrete,
            n_rows,
            n_landmarks=n,
            n_bytes=-self.minus_bytes,
            chosen=chosen,
        )


def _quality(version: Version) -> tuple[float, int]:
    return version[:2]


def tried_versions(
    sizes: list[Size], versions: Callable[[Size], Iterable[Version]]
) -> list[Version]:
    """Return the versions of those sizes that are worth their time.

    The two smallest sizes, which cost least, are compared first. If the larger of them is better,
    the largest size comes next, and sizes in between are tried only where it is not better. If not,
    larger sizes are tried one after the other as long as they are better.

    Parameters
    ----------
    sizes : list of Size
        The smallest first.
    versions : callable
        From a size to its versions.
    """
    tried = [version for size in sizes[:2] for version in versions(size)]

    def is_best(size: Size) -> bool:
        return bool(tried) and best_of(tried, _quality).chosen.size.n == size.n

    growing = is_best(sizes[:2][-1])
    for size in sizes[:1:-1] if growing else sizes[2:]:
        tried += versions(size)
        if is_best(size) == growing:
            break
    return tried
