"""A smaller model from a fitted one, by a number of landmarks or of bytes.

Without rows the smaller model follows the scores of the larger one
(:mod:`nysplus._compression.pruning`). With rows there are other ways as well, and rows that none of
them has seen say which is best: targets, or else what the larger model predicts, may be regressed
on the landmarks that are left or on new ones, or learned together with a linear map. No way is the
best for all models: few landmarks cannot
follow scores that many make by cancelling each other, and learning needs many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysplus._bytes.budget import TYPES, Budget, Size, make_budget
from nysplus._bytes.quantise import quantise, representable_types, stored
from nysplus._compression.pruning import Positions, check_number, reduced
from nysplus._fit.model import FittedModel
from nysplus._fit.plan import make_alphas
from nysplus._learning.refine import MAX_RANK, MIN_ROWS, Refinement
from nysplus._learning.search import MORE_RATE, MORE_STEPS
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.training import train
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.fit import fit_expansion
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import Block, RowBlocks
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.projected import composed, project
from nysplus._rows.slicing import float_dtype
from nysplus._rows.targets import (
    ClassTargets,
    DiscreteTargets,
    IndicatorTargets,
    ValueTargets,
)
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion, pack
from nysplus.kernels import RBF
from nysplus.landmarks import Auto, Problem, select_landmarks

# Rows that are drawn, and the share of them that judges, at most so many.
MOST_ROWS, JUDGED_SHARE, JUDGED_ROWS = 25_000, 0.2, 5000
# So many rows teach others as much by their labels as by scores, where a model stands in for
# targets. With fewer, models that follow the scores are judged as if they had seen nothing.
TAUGHT_ROWS = 5000
# Landmarks by which it is found out how much the rows that judge are known already.
OPTIMISM_LANDMARKS = 1000

Ways = Iterator["Small"]


def compress_model(
    model: Any, n_components: int | None = None, budget: Any = None, X: Any = None, y: Any = None
) -> Any:
    """Return a copy of a fitted model with fewer landmarks, or in fewer bytes.

    Parameters
    ----------
    model : NystroemClassifier or NystroemRegressor
        Stays as it is.
    n_components : int, optional
        Landmarks that stay.
    budget : int or str, optional
        Bytes that the copy may take, such as 16384 or "16kB", instead of `n_components`: numbers
        become float32, float16 or int8, and landmarks as many as there is room for.
    X : rows, as for `fit`, optional
        Rows like those to be predicted: at most 25,000 of them are drawn, by which the best of
        several smaller models is found. Without rows the landmarks alone stand for them.
    y : targets, as for `fit`, optional
        Of the rows. What `model` predicts stands in for them where there are none.

    Returns
    -------
    estimator of the same class
        Its `n_components` is the number of landmarks kept. `landmark_indices_` is None where
        landmarks have moved. It has no sums over rows to go on from in `partial_fit`.
    """
    check_is_fitted(model)
    if (n_components is None) == (budget is None):
        raise ValueError(
            f"Got n_components={n_components!r} and budget={budget!r}. Pass exactly one of them: "
            "landmarks to keep, or the bytes that the model may take."
        )
    if X is None and y is not None:
        raise ValueError("Got y without X. Pass the rows that the targets belong to.")
    expansion, limit = model.expansion_, make_budget(budget)
    n = expansion.landmarks.shape[0]
    if n_components is not None:
        check_number(n_components, n)
    if n_components == n or (limit is not None and expansion.n_bytes <= limit.n_bytes):
        return _copy(model, Small(expansion, np.arange(n)))
    sizes = [Size(int(n_components or n))] if limit is None else _sizes(expansion, limit)
    if X is not None:
        return _by_rows(model, X, y, sizes, limit)
    points = _origins(expansion)
    rows = Block(points, np.arange(n), ValueTargets(expansion(points)))
    return _copy(model, _best(_following(expansion, sizes, limit), rows, rows.blocks(), limit))


def _by_rows(model: Any, X: Any, y: Any, sizes: list[Size], limit: Budget | None) -> Any:
    """Return the smaller model that rows find best; most of them make it, the others judge."""
    expansion, rng = model.expansion_, check_random_state(model.random_state)
    rows = _rows(model, X, y, rng)
    if len(rows) < MIN_ROWS:
        judged, pool = rows, rows.blocks()
        ways = _following(expansion, sizes, limit, rows)
    else:
        order = rng.permutation(len(rows))
        used = order[min(JUDGED_ROWS, int(JUDGED_SHARE * len(rows))) :]
        judged, pool = rows.take(order[: -len(used)]), rows.take(used).blocks()
        trial = _Trial(expansion, rows, used, judged, limit, rng)
        known = y is not None or len(rows) >= TAUGHT_ROWS
        ways = trial.ways(sizes, trial.optimism() if known else 0.0)
    small = _best(ways, judged, pool, limit)
    scaling = model._model.scaling
    if pool.discrete and (y is not None or not small.follows):
        labels = judged.labels
        if y is None:  # what the model predicts is more certain than the model is
            labels = _drawn_labels(scaling, expansion(judged.X), rng)
        scaling = fit_scaling(small.expansion(judged.X), labels, judged.weight)
    return _copy(model, small.finished(pool), scaling)


@dataclass(frozen=True)
class Small:
    """A smaller model.

    Attributes
    ----------
    expansion : KernelExpansion
    kept : ndarray of shape (n,) or None
        Which landmarks were kept, if they are where they were.
    follows : bool
        Whether its scores are meant to be those of the larger model.
    dtypes : tuple of str
        The types that it may be stored in; none where numbers stay as they were computed.
    optimism : float
        How much better it looks on the rows that judge than on others.
    more : callable or None
        Of a learned model: learns from the rows that have judged as well.
    """

    expansion: KernelExpansion
    kept: Positions | None = None
    follows: bool = True
    dtypes: tuple[str, ...] = ()
    optimism: float = 0.0
    more: Callable[[], KernelExpansion] | None = None

    def versions(self, pool: RowBlocks) -> Ways:
        """Yield it in every type, with coefficients that make up for rounding on some rows."""
        if not self.dtypes:
            yield self
            return
        for dtype in representable_types(self.expansion, self.dtypes):
            rng = np.random.RandomState(0)  # the same rows for all types
            small = quantise(self.expansion, dtype, pool, rng)
            yield replace(self, expansion=small, dtypes=(dtype,))

    def finished(self, pool: RowBlocks) -> Small:
        """Return a model that has learned from all rows, in its type."""
        if self.more is None:
            return self
        return next(replace(self, expansion=self.more()).versions(pool), self)


def _best(ways: Ways, judged: Block, pool: RowBlocks, limit: Budget | None) -> Small:
    """Return the model that is best on the rows that judge; of equal ones the first."""
    best, most = None, -np.inf
    for way in ways:
        for small in way.versions(pool):
            merit = _merit(small.expansion, judged) - small.optimism
            fits = limit is None or small.expansion.n_bytes <= limit.n_bytes
            if fits and (best is None or merit > most):
                best, most = small, merit
    if best is None:
        raise ValueError(
            "The budget leaves room for numbers in float16 only, and landmarks exceed its range. "
            "Raise it, or fit to scaled features."
        )
    return best


def _merit(expansion: KernelExpansion, judged: Block) -> float:
    """Return the mean of what counts in comparisons over some rows."""
    assert judged.targets is not None
    row_scores = judged.targets.row_scores(expansion(judged.X))
    return float(judged.weight @ row_scores / judged.weight.sum())


def _copy(model: Any, small: Small, scaling: Scaling | None = None) -> Any:
    """Return a fitted copy of the estimator with another expansion."""
    fitted: FittedModel = model._model
    indices = fitted.landmark_indices
    copy = clone(model).set_params(n_components=int(small.expansion.landmarks.shape[0]))
    copy._adopt(
        replace(
            fitted,
            expansion=small.expansion,
            scaling=scaling or fitted.scaling,
            landmark_indices=(
                None if small.kept is None or indices is None else indices[small.kept]
            ),
            refined=fitted.refined if small.more is None else True,
            running=None,
        )
    )
    return copy


# -- bytes ---------------------------------------------------------------------------------------


def _sizes(expansion: KernelExpansion, limit: Budget) -> list[Size]:
    """Return the numbers of landmarks that there is room for, and their types."""
    (n, r), L, P = expansion.landmarks.shape, expansion.dual_coef.shape[1], expansion.projection
    if sp.issparse(expansion.landmarks):
        # landmarks have different sizes, and are pruned until they fit
        return [Size(n, None, ("float32",))]
    full = None if P is None or P.ndim == 1 else P
    # the units of a diagonal map are float32, or smaller
    diagonal_bytes = 0 if P is None or P.ndim == 2 else pack(P, "float32").n_bytes
    left, d = Budget(limit.n_bytes - diagonal_bytes), None if full is None else len(full)
    sizes = left.sizes(r, L, n, d)
    if not sizes:
        Z, A, b = np.zeros((1, r)), np.zeros((1, L)), np.zeros(L)
        one = KernelExpansion(expansion.kernel, Z, A, b, full)
        row = np.zeros((1, d or r))
        least = min(stored(one, dtype, row).n_bytes for dtype in TYPES)
        raise _too_small(limit, diagonal_bytes + least)
    return sizes


def _too_small(limit: Budget, least: int) -> ValueError:
    return ValueError(
        f"budget={limit.n_bytes} has no room for a single landmark, with which the model takes "
        f"{least} bytes. Raise it, or fit to fewer features."
    )


def _origins(expansion: KernelExpansion) -> Any:
    """Return rows that the map takes to the landmarks, or as close as it can."""
    Z, P = expansion.landmarks, expansion.projection
    if P is None:
        return Z.astype(float_dtype(Z.dtype), copy=False)
    if P.ndim == 2:
        return Z @ np.linalg.pinv(P)
    return project(Z, np.divide(1.0, P, out=np.zeros(len(P)), where=P != 0))


# -- ways ----------------------------------------------------------------------------------------


def _following(
    expansion: KernelExpansion, sizes: list[Size], limit: Budget | None, rows: Block | None = None
) -> Ways:
    """Yield models of some sizes that follow the scores of the given one."""
    X, weight = (None, None) if rows is None else (rows.X, rows.weight)
    dense = not sp.issparse(expansion.landmarks)
    for size in sizes:
        if dense and isinstance(expansion.kernel, RBF) and size.n < len(expansion.landmarks):
            small, kept = reduced(expansion, size.n, X, weight, merge=True)
            yield Small(small, kept, dtypes=size.dtypes)
        small, kept = reduced(expansion, size.n, X, weight)
        while limit is not None and sp.issparse(small.landmarks):
            n, n_bytes = small.landmarks.shape[0], stored(small, "float32", None).n_bytes
            if n_bytes <= limit.n_bytes:
                break
            if n == 1:
                raise _too_small(limit, n_bytes)
            n = max(1, min(n - 1, n * limit.n_bytes // n_bytes))
            small, kept = reduced(expansion, n, X, weight)
        yield Small(small, kept, dtypes=size.dtypes)


@dataclass(frozen=True)
class _Trial:
    """All ways to a smaller model that rows allow, of which some rows are the judges.

    Attributes
    ----------
    expansion : KernelExpansion
        The larger one.
    rows : Block
        With targets.
    used : ndarray of int
        Those of them that do not judge.
    judged : Block
        The others.
    limit : Budget or None
    rng : RandomState
    """

    expansion: KernelExpansion
    rows: Block
    used: Positions
    judged: Block
    limit: Budget | None
    rng: np.random.RandomState

    @cached_property
    def _seen(self) -> Block:
        """The rows as the kernel sees them."""
        P = self.expansion.projection
        return self.rows if P is None else replace(self.rows, X=project(self.rows.X, P))

    @cached_property
    def _problem(self) -> Problem:
        """The rows that do not judge, and how a ridge is fitted to them."""
        blocks = self._seen.take(self.used).blocks()
        return Problem(blocks, self.expansion.kernel, StandardMap(), make_alphas("auto"))

    def _fitted(self, blocks: RowBlocks, Z: Any) -> KernelExpansion:
        """Return the ridge regression of the targets on given landmarks."""
        problem = self._problem
        fit = fit_expansion(
            blocks, Z, problem.kernel, problem.approximation, problem.alphas, self.rng
        )
        return replace(fit.expansion, projection=self.expansion.projection)

    def optimism(self) -> float:
        """Return how much better the larger model does on the rows that judge than on others.

        Nothing if it was not fitted to them. Its landmarks are fitted anew, to all rows and
        without those that judge: the difference is what having seen them is worth, if the larger
        model itself does more like the first of the two.
        """
        n = self.expansion.landmarks.shape[0]
        Z = self.expansion.landmarks[:: -(-n // OPTIMISM_LANDMARKS)]
        fits = (self._fitted(blocks, Z) for blocks in (self._seen.blocks(), self._problem.blocks))
        seen, unseen = (_merit(fit, self.judged) for fit in fits)
        own = _merit(self.expansion, self.judged)
        return max(0.0, seen - unseen) if 2.0 * own > seen + unseen else 0.0

    def ways(self, sizes: list[Size], optimism: float) -> Ways:
        """Yield models of some sizes, and learned ones, that take no more bytes."""
        problem, types = self._problem, {}
        for small in _following(self.expansion, sizes, self.limit, self.rows.take(self.used)):
            again = self._fitted(problem.blocks, small.expansion.landmarks)
            yield replace(small, optimism=optimism)
            # landmarks that have moved to where scores are followed have seen as much
            yield Small(again, None, False, small.dtypes, optimism)
            types[small.expansion.landmarks.shape[0]] = small.dtypes
        for n, dtypes in types.items():
            fresh = self._fitted(problem.blocks, self._landmarks(problem, n))
            yield Small(fresh, None, False, dtypes)
        if isinstance(problem.kernel, RBF) and problem.blocks.discrete:
            seed = self.rng.randint(2**31 - 1)
            for size in self._learned_sizes(sizes):
                yield self._learned(size, seed)

    def _landmarks(self, problem: Problem, n: int) -> Any:
        """Return new landmarks."""
        n = min(n, problem.blocks.n_candidates)
        return select_landmarks(Auto(), problem, n, self.rng).points

    def _learned_sizes(self, sizes: list[Size]) -> list[Size]:
        n, r = self.expansion.landmarks.shape
        if self.limit is None:
            return [replace(size, rank=min(r, MAX_RANK)) for size in sizes]
        d, L = self.rows.X.shape[1], self.expansion.dual_coef.shape[1]
        return self.limit.learned_sizes(d, L, n, min(r, MAX_RANK))

    def _learned(self, size: Size, seed: int) -> Small:
        """Return a model that learns landmarks, coefficients and a map by cross-entropy."""
        assert size.rank is not None
        seen, problem = self._seen, self._problem
        dtype, everything = problem.blocks.dtype, np.arange(len(seen))
        learner = TrainingSetup.of(seen, size.rank, self.rng)
        (way,) = Refinement(search=False).ways(len(seen))
        first = learner.first(self._landmarks(problem, size.n), way.width)
        p = train(learner.rows, self.used, first, learner.b, way.recipe, seed)

        def of_given_rows(found: KernelExpansion) -> KernelExpansion:
            P = composed(self.expansion.projection, found.projection)
            return replace(found, projection=P)

        # scores of at most one, as those of a ridge fitted to ±1
        unit = float(np.abs(of_given_rows(learner.expansion(p, dtype))(self.judged.X)).max())
        unit = max(unit, float(np.finfo(np.float32).tiny))

        def more() -> KernelExpansion:
            last = way.recipe.scaled(MORE_STEPS, MORE_RATE)
            q = train(learner.rows, everything, p, learner.b, last, seed)
            return of_given_rows(learner.expansion(q, dtype, unit))

        small = of_given_rows(learner.expansion(p, dtype, unit))
        return Small(small, None, False, size.dtypes, more=more)


# -- rows ----------------------------------------------------------------------------------------


def _rows(model: Any, X: Any, y: Any, rng: np.random.RandomState) -> Block:
    """Return some rows, wherever they are, with targets coded as the model's own."""
    wanted = TargetSpec(None)
    if y is not None:
        weights = getattr(model, "class_weight", None)
        wanted = TargetSpec(model._kind, weights, model._model.code, several=False)
    blocks, _ = open_rows(model, X, y, None, wanted, reset=False).open(Progress(), Journal())
    rows = blocks.gather(np.sort(blocks.sample(min(MOST_ROWS, blocks.n_candidates), rng)))
    if rows.targets is None:
        rows = replace(rows, targets=model._model.code.as_targets(model.expansion_(rows.X)))
    return rows


def _drawn_labels(scaling: Scaling, F: Float, rng: np.random.RandomState) -> DiscreteTargets:
    """Draw labels with the probabilities that a model gives them."""
    P = scaling.probabilities(F)
    if scaling.multilabel:
        return IndicatorTargets(np.where(rng.uniform(size=P.shape) < P, 1.0, -1.0))
    above = P.cumsum(axis=1) < rng.uniform(size=(len(P), 1))
    return ClassTargets(above.sum(axis=1).clip(max=P.shape[1] - 1), P.shape[1])
