"""Learn a metric from the gradients of a fitted function.

The average gradient outer product ``M = mean_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ`` of a first model tells
how much the function changes in each direction. Rows mapped by ``M^{1/2}`` have the squared
distance ``(x − z)ᵀ M (x − z)``. A new model is fitted to the mapped rows, a few times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.sparsefuncs import mean_variance_axis

from nysplus._holdout import best_of, split
from nysplus._ridge.feature_map import StandardMap
from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.blocks import Block, Blocks
from nysplus._rows.projected import project
from nysplus._runtime.record import Trial
from nysplus._tuning.outer_product import gradient_outer_product, metric_of
from nysplus._tuning.width import Width, choose_width
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.kernels import Kernel
from nysplus.landmarks import GivenLandmarks, LandmarkSelector, Problem

# Rows whose gradients are averaged: the gradients of a row cost as much as L predictions.
GRADIENT_ROWS = 4000
# Validation rows: the cost of a candidate grows with them.
VALIDATION_ROWS = 4000
# Fewer rows than this cannot be split into training and validation rows.
MIN_ROWS = 8
# A matrix of more features than this takes more than 128 MiB, and seconds to decompose.
MAX_MATRIX_FEATURES = 4096
# Results have settled after two rounds; more rounds only cost time.
MAX_ROUNDS = 5


@dataclass(repr=False, eq=False)
class LearnedMetric(BaseEstimator):
    """A metric learned before the fit, from the gradients of models fitted to a sample of the rows.

    Parameters
    ----------
    kind : "diagonal", "full" or int, default="diagonal"
        "diagonal": a weight for every feature, which adds d numbers to the model; "full": a square
        matrix, which adds d²; a number: a map to that many directions, which are then the columns
        of the landmarks.
    n_rounds : int, optional
        Number of rounds, each of which fits a model and takes its gradients, 1 to 5; by default 2,
        or 1 for a full matrix.
    max_rows : int, default=12000
        Training rows, drawn uniformly. Up to 4000 other rows are validation rows, at most a third
        of all.

    Notes
    -----
    A round costs about one fit to `max_rows` rows with a search of the kernel's width. Candidates
    are compared on the validation rows. The unchanged rows and rows of unit variance are two of
    them, so a diagonal or full metric that is not better than both is not used. If `kind` is a
    number, only the rounds are candidates, because the number of directions is then fixed.
    """

    kind: str | int = "diagonal"
    n_rounds: int | None = None
    max_rows: int = 12_000

    @property
    def rounds(self) -> int:
        """Number of rounds, with the default resolved."""
        return self.n_rounds or (1 if self.kind == "full" else 2)

    def check(self, kernel: Kernel, n_features: int | None) -> None:
        """Raise unless the parameters fit the kernel and the rows. Called before any work.

        The number of features is None as long as the code of a table is not known.
        """
        if not _is_kind(self.kind):
            raise ValueError(
                f"kind={self.kind!r} is not known. Allowed are 'diagonal', 'full', or an integer "
                "of at least 1: the number of directions."
            )
        check_count("n_rounds", self.n_rounds, optional=True)
        if self.rounds > MAX_ROUNDS:
            raise ValueError(
                f"n_rounds={self.n_rounds} is more than {MAX_ROUNDS}, and every round costs a fit "
                "with a search of the width. Lower n_rounds."
            )
        check_count("max_rows", self.max_rows, at_least=MIN_ROWS)
        if not kernel.differentiable:
            raise ValueError(
                f"A metric is learned from the kernel's gradients, which {kernel!r} does not "
                "have. Use RBF, or Matern with nu=1.5 or 2.5, or leave metric=None."
            )
        if self.kind == "diagonal" or n_features is None:
            return
        if not isinstance(self.kind, str) and self.kind > n_features:
            raise ValueError(
                f"metric={self.kind} directions exceed the {n_features} features of X or of its "
                "code. Lower it, or pass 'full'."
            )
        if n_features > MAX_MATRIX_FEATURES:
            raise ValueError(
                f"metric={self.kind!r} needs a matrix of {n_features} × {n_features} numbers; up "
                f"to {MAX_MATRIX_FEATURES} features are allowed. Use metric='diagonal', or reduce "
                "the features first."
            )


def _is_kind(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind in ("diagonal", "full")
    is_integer = isinstance(kind, Integral) and not isinstance(kind, bool)
    return is_integer and kind >= 1


def make_metric(metric: Any) -> LearnedMetric | None:
    """Return the metric that the parameter `metric` names, or is; None for plain distances."""
    if metric is None or isinstance(metric, LearnedMetric):
        return metric
    if _is_kind(metric):
        return LearnedMetric(metric)
    raise ValueError(
        f"metric={metric!r} is not known. Allowed are None, 'diagonal', 'full', an integer of at "
        "least 1 (the number of directions), or a LearnedMetric object."
    )


@dataclass(frozen=True)
class Metric:
    """The result of :func:`learn_metric`.

    Attributes
    ----------
    projection : ndarray of shape (d, r), or (d,) for a diagonal one, or None
        P, in the floating type of the rows; None if the rows stay unchanged.
    kernel : Kernel
        With the best width for the mapped rows.
    errors : tuple of float
        Validation errors of the candidates: unchanged rows, unit variance, then the rounds.
    """

    projection: Float | None
    kernel: Kernel
    errors: tuple[float, ...]


def through(
    selector: LandmarkSelector, projection: Float | None, center: Float | None = None
) -> LandmarkSelector:
    """Return the selector for rows ``(x − c)P``: given landmarks are mapped too."""
    if not isinstance(selector, GivenLandmarks) or (projection is None and center is None):
        return selector
    return GivenLandmarks(project(selector.points, projection, center))


@dataclass(frozen=True)
class ScoredMap:
    """A linear map of the rows (None: unchanged rows), and the best kernel width behind it."""

    projection: Float | None
    width: Width

    @property
    def error(self) -> float:
        """Mean squared error of the validation rows by leave-one-out, clipped."""
        return self.width.error


@dataclass(frozen=True)
class MetricSearch:
    """Training and validation rows, on which linear maps are learned and scored.

    Attributes
    ----------
    problem : Problem
        The training rows, a sample of all rows.
    validation : Block
        Other rows, which maps are scored on.
    selector : LandmarkSelector
        The selector of the final model.
    n : int
        Number of landmarks of the final model.
    seed : int
        Every map is scored with the same random numbers.
    """

    problem: Problem
    validation: Block
    selector: LandmarkSelector
    n: int
    seed: int

    @classmethod
    def begin(
        cls,
        problem: Problem,
        selector: LandmarkSelector,
        n: int,
        max_rows: int,
        rng: np.random.RandomState,
    ) -> MetricSearch:
        """Draw the training and the validation rows."""
        blocks = problem.blocks
        if blocks.n_outputs == 0:
            raise ValueError("A metric is learned from the targets, and there are none. Pass y.")
        if blocks.n_candidates < MIN_ROWS:
            raise ValueError(
                f"X has {blocks.n_candidates} rows with a positive weight, too few to learn a "
                f"metric from. Pass at least {MIN_ROWS}, or leave metric=None."
            )
        validation, training = split(blocks, VALIDATION_ROWS, max_rows, rng)
        seed = int(rng.randint(2**31 - 1))
        return cls(replace(problem, blocks=training), validation, selector, n, seed)

    @property
    def training(self) -> Blocks:
        """The training rows, which are in memory."""
        assert isinstance(self.problem.blocks, Blocks)
        return self.problem.blocks

    def _mapped(self, projection: Float | None) -> Problem:
        """Return the problem of the mapped training rows."""
        if projection is None:
            return self.problem
        rows = self.training
        return replace(self.problem, blocks=replace(rows, X=project(rows.X, projection)))

    def score(self, projection: Float | None) -> ScoredMap:
        """Find the best width behind a map."""
        validation = self.validation
        if projection is not None:
            validation = replace(validation, X=project(validation.X, projection))
        width = choose_width(
            validation,
            self._mapped(projection),
            through(self.selector, projection),
            self.n,
            np.random.RandomState(self.seed),
        )
        return ScoredMap(projection, width)

    def outer_product(self, candidate: ScoredMap, diagonal_only: bool) -> Float:
        """Return the average gradient outer product of a model of the training rows.

        Gradients are taken at the first training rows.
        """
        problem = replace(
            self._mapped(candidate.projection),
            kernel=candidate.width.kernel,
            approximation=StandardMap(),
        )
        rng = np.random.RandomState(self.seed)
        fit = problem.fit(candidate.width.landmarks, rng, "metric")
        rows = self.training.block(slice(0, GRADIENT_ROWS))
        expansion = replace(fit.expansion, projection=candidate.projection)
        return gradient_outer_product(expansion, rows.X, rows.weight, diagonal_only)


def learn_metric(
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    metric: LearnedMetric,
    rng: np.random.RandomState,
) -> Metric:
    """Learn a metric on a sample of the rows: fit, take gradients, map, score; `rounds` times.

    At most one pass over the rows, to gather the sample, which is kept in memory.

    Parameters
    ----------
    problem : Problem
        The unchanged rows, with targets. The kernel's own width is ignored.
    selector : LandmarkSelector
        The selector of the final model.
    n : int
        Number of landmarks of the final model.
    metric : LearnedMetric
        Checked.
    rng : RandomState
    """
    search = MetricSearch.begin(problem, selector, n, metric.max_rows, rng)
    dtype = problem.blocks.dtype
    units = _unit_variance(search.training.block(slice(None))).astype(dtype)
    starts = [search.score(None), search.score(units)]
    leader = _best(starts)
    # M is scaled to the start's units, because its mean and its floor depend on units
    base = np.ones_like(units) if leader.projection is None else units
    rounds: list[ScoredMap] = []
    for remaining in reversed(range(metric.rounds)):
        M = search.outer_product(leader, diagonal_only=metric.kind == "diagonal")
        M = M / base**2 if M.ndim == 1 else M / np.outer(base, base)
        rounds.append(search.score(_rescaled(metric_of(M, metric.kind), base)))
        leader = rounds[-1]
        if remaining and not isinstance(metric.kind, str):
            # gradients behind a few directions lie in their span, so the next round uses all
            leader = search.score(_rescaled(metric_of(M, "full"), base))
    found = choose_map(starts, rounds, metric.kind)
    names = ["rows as given", "unit variance", *(f"round {i + 1}" for i in range(len(rounds)))]
    problem.blocks.progress.record.add(
        *(
            Trial(
                "metric",
                name,
                "leave-one-out squared error",
                candidate.error,
                len(search.validation),
                chosen=candidate.projection is found.projection,
            )
            for name, candidate in zip(names, starts + rounds, strict=True)
        )
    )
    return found


def choose_map(starts: list[ScoredMap], rounds: list[ScoredMap], kind: str | int) -> Metric:
    """Return the map of the smallest validation error.

    Maps to a number of directions are compared with each other only, because `starts` have more.
    """
    best = _best(starts + rounds if isinstance(kind, str) else rounds)
    errors = tuple(candidate.error for candidate in starts + rounds)
    return Metric(best.projection, best.width.kernel, errors)


def _best(candidates: list[ScoredMap]) -> ScoredMap:
    return best_of(candidates, score=lambda candidate: -candidate.error)


def _rescaled(root: Float, base: Float) -> Float:
    """Return the map that first multiplies every feature by its number in `base`."""
    P: Float = base * root if root.ndim == 1 else base[:, None] * root
    return P.astype(base.dtype)


def _unit_variance(block: Block) -> Float:
    """Return one over the standard deviation of every feature, 1 for constant features."""
    X = block.X.astype(np.float64)
    if sp.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=block.counts)
    else:
        columns = MeanAndScatter.of_columns(X, block.counts)
        mean, variance = columns.mean, columns.variance
    deviation = np.sqrt(variance)
    # rounding errors of a constant are no deviation
    varies = deviation > len(block) * np.finfo(np.float64).eps * np.abs(mean)
    units: Float = np.divide(1.0, deviation, out=np.ones(len(mean)), where=varies)
    return units
