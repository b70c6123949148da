"""A metric learned from the fitted function: where it does not change, distance does not count.

The average gradient outer product ``M = mean_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ`` of a first model says
how much each direction of the rows matters to it. Rows seen through ``M^{1/2}`` have the squared
distance ``(x − z)ᵀ M (x − z)``; the model of those rows is fitted anew, a few times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.sparsefuncs import mean_variance_axis

from nysplus._holdout import split
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.blocks import Block, Blocks
from nysplus._rows.projected import project
from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import in_threads, thread_count
from nysplus._tuning.width import Width, choose_width
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel
from nysplus.landmarks import GivenLandmarks, LandmarkSelector, Problem

# Rows whose gradients are averaged, each of which costs as much as L predictions.
GRADIENT_ROWS = 4000
# Rows that only judge: what a candidate costs grows with them.
JUDGED_ROWS = 4000
# Fewer rows than this cannot be parted into some that make a metric and some that judge it.
MIN_ROWS = 8
# What every direction counts, in units of the mean: none is lost for good after a round.
FLOOR = 1e-3
# A matrix of more features than this takes more than 128 MiB, and seconds to decompose.
MAX_MATRIX_FEATURES = 4096
MAX_ROUNDS = 5


def gradient_outer_product(
    expansion: KernelExpansion,
    X: Any,
    weight: Float | None = None,
    diagonal_only: bool = False,
) -> Float:
    """Return the average gradient outer product ``mean_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ``.

    O(N L r (n + r)) time, without the last r for the diagonal of a function whose own projection
    is diagonal or none; O(r² + block) memory.

    Parameters
    ----------
    expansion : KernelExpansion
        With a kernel that is differentiable. Where it has a projection P, the product is still
        the one in the coordinates of X.
    X : ndarray or CSR matrix of shape (N, d)
    weight : ndarray of shape (N,), optional
        Of the rows in the mean.
    diagonal_only : bool
        Whether to return only the mean squares of the partial derivatives.

    Returns
    -------
    ndarray of shape (d, d), or (d,) if `diagonal_only`
    """
    P = expansion.projection
    squares = diagonal_only and (P is None or P.ndim == 1)
    n, r = expansion.landmarks.shape
    mass = X.shape[0] if weight is None else float(weight.sum())

    def part(rows: slice) -> Float:
        share = None if weight is None else weight[rows]
        return _gradient_sum(expansion, X[rows], share, squares)

    total = np.zeros(r if squares else (r, r))
    held = (thread_count() + 2) * total.nbytes
    row_bytes = 8 * (2 * n + 3 * r + X.shape[1])
    for addend in in_threads(part, row_slices(X.shape[0], row_bytes, held=held)):
        total += addend
    total /= mass
    # ∇f(x) = P ∇g(xP) where f(x) = g(xP)
    if P is None:
        return total
    if P.ndim == 1:
        return P**2 * total if squares else P[:, None] * total * P
    return np.einsum("ij,jk,ik->i", P, total, P) if diagonal_only else P @ total @ P.T


def _gradient_sum(expansion: KernelExpansion, X: Any, weight: Float | None, squares: bool) -> Float:
    """Return ``Σ_i w_i Σ_c g gᵀ`` of some rows, or its diagonal, in the landmarks' coordinates."""
    A = expansion.dual_coef
    X, Z = X.astype(A.dtype, copy=False), expansion.landmarks.astype(A.dtype, copy=False)
    if expansion.projection is not None:
        X = project(X, expansion.projection)
    slopes = expansion.kernel.slopes(X, Z)
    if weight is not None:
        slopes *= np.sqrt(weight)[:, None]
    X = X.toarray() if sp.issparse(X) else X
    if not sp.issparse(Z):
        # x − z does not change, but no longer cancels when all rows lie far from the origin
        shift = Z.mean(axis=0)
        X, Z = X - shift, Z - shift
    total: Float = np.zeros(X.shape[1] if squares else (X.shape[1],) * 2)
    sums = slopes @ A
    for c in range(A.shape[1]):
        # Σ_j a_jc σ_j (x − z_j), for every row
        G = sums[:, c, None] * X
        G -= safe_sparse_dot(slopes * A[:, c], Z)
        total += np.einsum("ij,ij->j", G, G) if squares else G.T @ G
    return total


def metric_of(M: Float, kind: str | int) -> Float:
    """Return the linear map whose squared distances are ``(x − z)ᵀ M (x − z)``.

    M is first scaled to a trace of d, and 1e-3 is added to its diagonal.

    Parameters
    ----------
    M : ndarray of shape (d, d), or (d,) for its diagonal alone
    kind : "diagonal", "full" or int
        The diagonal's root, of shape (d,); the symmetric root, of shape (d, d); or so many of the
        strongest eigenvectors times the roots of their eigenvalues, of shape (d, kind).
    """
    d = len(M)
    diagonal = np.diagonal(M) if M.ndim == 2 else M
    trace = float(diagonal.sum())
    # a function that is constant has no gradient, and no direction counts more than another
    scale = d / trace if trace > 0 else 0.0
    if kind == "diagonal":
        return np.sqrt(scale * diagonal + FLOOR if scale else np.ones(d))
    S = scale * M if scale else np.eye(d)
    S.flat[:: d + 1] += FLOOR
    values, vectors = eigh(S, check_finite=False)
    roots = np.sqrt(np.maximum(values, 0.0))
    if kind == "full":
        root: Float = (vectors * roots) @ vectors.T
        return root
    strongest = np.arange(d)[::-1][: int(kind)]
    directions: Float = vectors[:, strongest] * roots[strongest]
    return directions


@dataclass(repr=False, eq=False)
class LearnedMetric(BaseEstimator):
    """Distances that count what matters to the function, learned in rounds before the fit.

    Parameters
    ----------
    kind : "diagonal", "full" or int, default="diagonal"
        A weight for every feature, which adds d numbers to the model; any linear map, which adds
        d²; or a map to so many directions, whose landmarks have that many columns.
    n_rounds : int, optional
        How often a model is fitted and its gradients are taken, 1 to 5; by default twice, but
        once for a full map.
    max_rows : int, default=12000
        Rows that models are fitted to and gradients are taken at, drawn uniformly. Up to 4000
        others, and half as many where there are few, only judge.

    Notes
    -----
    A round costs about one fit to `max_rows` rows with a search of the kernel's width. The rows as
    they are and rows of unit variance are tried first, and a diagonal or full metric that is not
    better than both is not used. A number of directions is what the caller wants the landmarks
    to have, so then only the rounds are compared with each other.
    """

    kind: str | int = "diagonal"
    n_rounds: int | None = None
    max_rows: int = 12_000

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return self.n_rounds or (1 if self.kind == "full" else 2)

    def check(self, kernel: Kernel, n_features: int) -> None:
        """Raise unless the parameters fit the kernel and the rows. Called before any work."""
        if not _is_kind(self.kind):
            raise ValueError(
                f"kind={self.kind!r} is not known. Allowed are 'diagonal', 'full', or an integer "
                "of at least 1: the directions to keep."
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
        if self.kind == "diagonal":
            return
        if not isinstance(self.kind, str) and self.kind > n_features:
            raise ValueError(
                f"metric={self.kind} directions exceed the {n_features} features of X. Lower it, "
                "or pass 'full'."
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
        "least 1 (the directions to keep), or a LearnedMetric object."
    )


@dataclass(frozen=True)
class Metric:
    """What :func:`learn_metric` found.

    Attributes
    ----------
    projection : ndarray of shape (d, r), or (d,) for a diagonal one, or None
        P, in the floating type of the rows; None for the rows as they are.
    kernel : Kernel
        With the width that is best behind P.
    errors : tuple of float
        Of all candidates in the order they were tried: rows as they are, unit variance, rounds.
    """

    projection: Float | None
    kernel: Kernel
    errors: tuple[float, ...]


def through(selector: LandmarkSelector, projection: Float | None) -> LandmarkSelector:
    """Return the selector that does the same behind a projection: given landmarks go along."""
    if projection is None or not isinstance(selector, GivenLandmarks):
        return selector
    return GivenLandmarks(project(selector.points, projection))


@dataclass(frozen=True)
class _Candidate:
    """A map of the rows (None: as they are), and the best width of the kernel behind it."""

    projection: Float | None
    width: Width


@dataclass(frozen=True)
class _Trial:
    """A sample of the rows, on which maps are learned and judged.

    Attributes
    ----------
    problem : Problem
    selector : LandmarkSelector
    n : int
        Landmarks of the final model.
    judged : Block
        Rows that only judge.
    pool : Blocks
        The others.
    seed : int
        Every candidate is judged with the same draws, so that chance prefers none.
    """

    problem: Problem
    selector: LandmarkSelector
    n: int
    judged: Block
    pool: Blocks
    seed: int

    def _pool(self, projection: Float | None) -> Blocks:
        if projection is None:
            return self.pool
        return replace(self.pool, X=project(self.pool.X, projection))

    def judge(self, projection: Float | None) -> _Candidate:
        """Find the best width behind a map."""
        judged = self.judged
        if projection is not None:
            judged = replace(judged, X=project(judged.X, projection))
        width = choose_width(
            judged,
            self._pool(projection),
            self.problem.kernel,
            through(self.selector, projection),
            self.n,
            self.problem.alphas,
            np.random.RandomState(self.seed),
        )
        return _Candidate(projection, width)

    def outer_product(self, candidate: _Candidate, diagonal_only: bool) -> Float:
        """Return the average gradient outer product of the model that a candidate makes.

        Of rows that do not judge, fitted to such rows alone.
        """
        fit = fit_expansion(
            self._pool(candidate.projection),
            candidate.width.landmarks,
            candidate.width.kernel,
            StandardMap(),
            self.problem.alphas,
            np.random.RandomState(self.seed),
            "metric",
        )
        some = self.pool.block(slice(0, GRADIENT_ROWS))
        expansion = replace(fit.expansion, projection=candidate.projection)
        return gradient_outer_product(expansion, some.X, some.weight, diagonal_only)


def learn_metric(
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    metric: LearnedMetric,
    rng: np.random.RandomState,
) -> Metric:
    """Learn a metric on a sample of the rows: fit, take gradients, map, judge; `rounds` times.

    One pass over the rows at most, to gather the sample. Everything else happens in memory.

    Parameters
    ----------
    problem : Problem
        The rows as they are, with targets. The kernel's own width is not used.
    selector : LandmarkSelector
        The one of the final model.
    n : int
        Landmarks of the final model.
    metric : LearnedMetric
        Checked.
    rng : RandomState
    """
    trial = _begin(problem, selector, n, metric.max_rows, rng)
    dtype = problem.blocks.dtype
    units = _unit_variance(trial.pool.block(slice(None))).astype(dtype)
    starts = [trial.judge(None), trial.judge(units)]
    leader = min(starts, key=_error)
    # What a round takes as the mean and the least weight of a direction is in the start's units.
    base = np.ones_like(units) if leader.projection is None else units
    rounds = []
    for left in reversed(range(metric.rounds)):
        M = trial.outer_product(leader, diagonal_only=metric.kind == "diagonal")
        M = M / base**2 if M.ndim == 1 else M / np.outer(base, base)
        rounds.append(trial.judge(_rescaled(metric_of(M, metric.kind), base)))
        leader = rounds[-1]
        if left and not isinstance(metric.kind, str):
            # gradients behind a few directions would never point anywhere else
            leader = trial.judge(_rescaled(metric_of(M, "full"), base))
    best = min(starts + rounds if isinstance(metric.kind, str) else rounds, key=_error)
    errors = tuple(_error(candidate) for candidate in starts + rounds)
    return Metric(best.projection, best.width.kernel, errors)


def _error(candidate: _Candidate) -> float:
    return candidate.width.error


def _rescaled(root: Float, base: Float) -> Float:
    """Return the map that first multiplies every feature by its number in `base`."""
    P: Float = base * root if root.ndim == 1 else base[:, None] * root
    return P.astype(base.dtype)


def _begin(
    problem: Problem,
    selector: LandmarkSelector,
    n: int,
    max_rows: int,
    rng: np.random.RandomState,
) -> _Trial:
    """Draw rows that judge, and others to learn from."""
    blocks = problem.blocks
    if blocks.n_outputs == 0:
        raise ValueError("A metric is learned by the targets, and there are none. Pass y.")
    if blocks.n_candidates < MIN_ROWS:
        raise ValueError(
            f"X has {blocks.n_candidates} rows that weigh anything, too few to learn a metric "
            f"from. Pass at least {MIN_ROWS}, or leave metric=None."
        )
    judged, pool = split(blocks, JUDGED_ROWS, max_rows, rng)
    return _Trial(problem, selector, n, judged, pool, int(rng.randint(2**31 - 1)))


def _unit_variance(block: Block) -> Float:
    """Return one over the standard deviation of every feature, 1 where it does not vary."""
    X = block.X.astype(np.float64)
    if sp.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=block.counts)
    else:
        spread = MeanAndScatter.of_columns(X, block.counts)
        mean, variance = spread.mean, spread.variance
    deviation = np.sqrt(variance)
    # what a constant leaves of rounding is no deviation
    varies = deviation > len(block) * np.finfo(np.float64).eps * np.abs(mean)
    units: Float = np.divide(1.0, deviation, out=np.ones(len(mean)), where=varies)
    return units
