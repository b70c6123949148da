"""How many landmarks? The score on held-out rows against the size of the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from nysplus._fit.pipeline import ModelSize, choose_landmarks, fit_ridge, resolve_kernel
from nysplus._fit.plan import Plan
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.nested import NestedFit, NestedSums
from nysplus._ridge.problem import RidgeProblem
from nysplus._rows.blocks import Block, Blocks
from nysplus._rows.opening import RowsToOpen, is_elsewhere, open_rows
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import GivenLandmarks

# Of the default sizes. Between neighbours accuracy seldom changes by more than a few points.
SMALLEST, LARGEST, STEP = 10, 1000, 2
# With fewer training rows for each landmark the largest model is no small one.
ROWS_A_LANDMARK = 4
# A standard error of an accuracy of .22 points at 95 %; more rows are better used to train.
MAX_HELD_ROWS = 10_000
# The best of landmarks that were chosen for a model this many times larger serve a smaller one
# about as well as its own would. Still smaller ones get their own, which cost little then.
SHARED_RATIO = 4


@dataclass(frozen=True, eq=False)
class LandmarkCurve:
    """The score on held-out rows against the number of landmarks.

    Attributes
    ----------
    sizes : ndarray of int of shape (n_sizes,)
        Numbers of landmarks, ascending.
    scores : ndarray of shape (n_sizes,)
        Accuracy or R², as the estimator's own `score`.
    errors : ndarray of shape (n_sizes,)
        Standard errors of the scores, from the number of held-out rows: binomial for accuracy,
        by the delta method for R². What other training rows would change is not in them.
    bytes : ndarray of int of shape (n_sizes,)
        Size of the model, as `model_bytes_`.
    alphas : ndarray of shape (n_sizes,)
        The ridges that were used.
    landmarks : tuple of ndarrays or CSR matrices of shape (size, n_features)
        Those of each size, to be passed as an estimator's `selection`; where a metric is learned,
        in its coordinates, as `landmarks_` are.
    metric : "accuracy" or "R²"
    """

    sizes: npt.NDArray[np.int_]
    scores: Float
    errors: Float
    bytes: npt.NDArray[np.int_]
    alphas: Float
    landmarks: tuple[Any, ...]
    metric: str

    @property
    def best(self) -> int:
        """The size of the highest score, the smallest of several."""
        return int(self.sizes[self.scores.argmax()])

    @property
    def recommended(self) -> int:
        """The smallest size within one standard error of the best."""
        return self.smallest_within(float(self.errors[self.scores.argmax()]))

    def smallest_within(self, loss: float) -> int:
        """Return the smallest size whose score is at most `loss` below the best.

        Parameters
        ----------
        loss : float
            In units of the score: 0.01 is a point of accuracy.

        Returns
        -------
        int
        """
        if not loss >= 0:
            raise ValueError(f"loss={loss!r} must be a number of at least 0.")
        return int(self.sizes[self.scores >= self.scores.max() - loss][0])

    def __str__(self) -> str:
        lines = [f"landmarks  {self.metric:>8s}  ± s.e.  model kB"]
        for n, score, error, size in zip(
            self.sizes, self.scores, self.errors, self.bytes, strict=True
        ):
            mark = "  recommended" if n == self.recommended else ""
            lines.append(f"{n:9d}  {score:8.4f}  {error:6.4f}  {size / 1024:8.1f}{mark}")
        return "\n".join(lines)


def landmark_curve(
    X: Any,
    y: Any,
    sizes: Iterable[int] | None = None,
    *,
    estimator: NystroemClassifier | NystroemRegressor | None = None,
    sample_weight: Any = None,
    test_size: float | int = 0.2,
    random_state: Any = None,
) -> LandmarkCurve:
    """Score models of several sizes on rows that neither selection nor fit have seen.

    Landmarks are chosen for the largest size and put in the order in which they lower the
    training error most. The first n of them are the landmarks of size n, and their models follow
    from the same sums over the training rows. Each size of less than a quarter of the largest one
    gets landmarks of its own, which cost little.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        In memory; pass a sample of rows that are elsewhere.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
    sizes : iterable of int, optional
        Numbers of landmarks, in any order. By default doubling from 10, up to 1000 or a quarter
        of the training rows.
    estimator : NystroemClassifier or NystroemRegressor, optional
        All its parameters but n_components and verbose count; it is not changed. By default
        one with default parameters: a regressor if `y` is continuous, a classifier otherwise.
    sample_weight : array-like of shape (n_rows,), optional
        Of training and of held-out rows.
    test_size : float or int, default=0.2
        Share of the rows that is held out, at most 10000 of them, or their number. For classes
        the share is the same in each of them.
    random_state : int, RandomState or None, default=None
        None: that of the estimator.

    Returns
    -------
    LandmarkCurve

    See Also
    --------
    LandmarkCurveDisplay : Draws it.
    sklearn.model_selection.validation_curve : Fits anew for every size and fold.

    Notes
    -----
    One selection and one pass of O(N n (d + n)) for the largest size n, O(n³) for the order,
    O(m³) for each size m from n/4 and, where α is chosen for classes, O(m²) for each row that it
    is chosen on; and a fit for each smaller size.

    α is chosen for each size as the estimator does. For classes that is by leave-one-out accuracy;
    from n/4 on no more training rows are used for it than are held out, as a finer choice would
    not show in the scores. The held-out rows are used for nothing else. The best of several
    scores is slightly optimistic: test the final model on rows of its own.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nysplus.curve import landmark_curve
    >>> X, y = load_digits(return_X_y=True)
    >>> curve = landmark_curve(X, y, sizes=[10, 40, 160], random_state=0)
    >>> curve.recommended
    160
    >>> curve.smallest_within(0.1)
    10
    """
    wanted_sizes = None if sizes is None else _checked_sizes(sizes)
    model = _checked_estimator(estimator, y)
    rng = check_random_state(model.random_state if random_state is None else random_state)
    if is_elsewhere(X):
        raise TypeError(
            f"landmark_curve needs rows in memory, got {type(X).__name__}. Pass a sample of them "
            "as an array."
        )
    intake = open_rows(model, X, y, sample_weight, model._target_spec())
    rows, _ = intake.open(Progress(), Journal())
    assert isinstance(rows, Blocks)
    n_held = _n_held(test_size, rows.n_candidates)
    n_training = rows.n_candidates - n_held
    steps = _default_sizes(n_training) if wanted_sizes is None else wanted_sizes
    if steps[-1] > n_training:
        raise ValueError(
            f"sizes has {steps[-1]} landmarks, and there are {n_training} training rows beside "
            f"the {n_held} that are held out. Lower the largest size or pass more rows."
        )
    groups = _planned(model, intake, steps)
    training, held = held_out(rows, n_held, rng)
    fits = [
        fit for plan, group in groups for fit in _nested_fits(plan, group, training, n_held, rng)
    ]
    scores, errors = _scored([fit.expansion for fit in fits], held)
    return LandmarkCurve(
        np.array(steps),
        scores,
        errors,
        np.array([fit.expansion.n_bytes for fit in fits]),
        np.array([fit.alpha for fit in fits]),
        tuple(fit.expansion.landmarks for fit in fits),
        "accuracy" if rows.discrete else "R²",
    )


# -- what is checked before any work ---------------------------------------------------------------


def _checked_sizes(sizes: Iterable[int]) -> list[int]:
    """Return the sizes in ascending order, each once."""
    if not np.iterable(sizes):
        raise TypeError(f"sizes={sizes!r} must be a sequence of integers, such as [10, 100].")
    listed = list(sizes)
    if not listed:
        raise ValueError("sizes is empty. Pass at least one number of landmarks, or None.")
    for i, size in enumerate(listed):
        check_count(f"sizes[{i}]", size)
    return sorted({int(size) for size in listed})


def _default_sizes(n_training: int) -> list[int]:
    """Return sizes that double, and end with the largest sensible one."""
    largest = max(1, min(LARGEST, n_training // ROWS_A_LANDMARK))
    sizes, size = [], SMALLEST
    while np.sqrt(STEP) * size < largest:
        sizes.append(size)
        size *= STEP
    return [*sizes, largest]


def _checked_estimator(estimator: Any, y: Any) -> NystroemClassifier | NystroemRegressor:
    """Return an unfitted copy of the estimator, or the one that suits the targets."""
    if y is None:
        raise ValueError("landmark_curve scores predictions: pass y with classes or values.")
    if estimator is None:
        values = type_of_target(y, input_name="y").startswith("continuous")
        return NystroemRegressor() if values else NystroemClassifier()
    if not isinstance(estimator, (NystroemClassifier, NystroemRegressor)):
        raise TypeError(
            "estimator must be a NystroemClassifier or a NystroemRegressor, got "
            f"{type(estimator).__name__}. Pass the last step of a pipeline, with the rows that "
            "the others make."
        )
    copy: NystroemClassifier | NystroemRegressor = clone(estimator)
    return copy


def _n_held(test_size: Any, n_rows: int) -> int:
    """Return how many rows are held out."""
    whole = isinstance(test_size, Integral) and not isinstance(test_size, bool)
    share = isinstance(test_size, Real) and not isinstance(test_size, (bool, Integral))
    if whole and 1 < test_size < n_rows:
        return int(test_size)
    if share and 0 < test_size < 1 and n_rows > 2:  # a spread needs two rows
        return min(max(2, round(float(test_size) * n_rows)), MAX_HELD_ROWS, n_rows - 1)
    raise ValueError(
        f"test_size={test_size!r} must be a share between 0 and 1, or a number from 2 to "
        f"{n_rows - 1} of the {n_rows} rows."
    )


def _planned(model: Any, intake: RowsToOpen, sizes: list[int]) -> list[tuple[Plan, list[int]]]:
    """Return the sizes in groups that share their landmarks, each with its checked plan."""

    def plan_for(group: list[int]) -> Plan:
        plan: Plan = model.set_params(n_components=group[-1])._plan(intake)
        _check_plan(plan, group)
        return plan

    whole = plan_for(sizes)
    if isinstance(whole.selector, GivenLandmarks):  # there are no others to choose
        return [(whole, sizes)]
    small = [size for size in sizes if SHARED_RATIO * size < sizes[-1]]
    return [*((plan_for([size]), [size]) for size in small), (whole, sizes[len(small) :])]


def _check_plan(plan: Plan, sizes: list[int]) -> None:
    if plan.approximation.__class__ is not StandardMap or plan.approximation.rank is not None:
        raise ValueError(
            f"landmark_curve needs approximation='standard' with all ranks, got "
            f"{plan.approximation!r}: features of other maps do not nest. Fit each size instead."
        )
    if plan.refinement is not None:
        raise ValueError(
            "landmark_curve shares landmarks among sizes, and refine would move them for each. "
            "Pass an estimator with refine=False, or fit each size."
        )
    if plan.budget is not None:
        raise ValueError(
            "landmark_curve is given its sizes, and budget would choose others. Pass an estimator "
            "with budget=None, or fit with each budget."
        )
    if plan.n_landmarks < sizes[-1]:
        raise ValueError(
            f"selection has {plan.n_landmarks} landmarks, and the largest of sizes is "
            f"{sizes[-1]}. Lower it or pass more landmarks."
        )


# -- rows ------------------------------------------------------------------------------------------


def held_out(rows: Blocks, n_held: int, rng: np.random.RandomState) -> tuple[Blocks, Block]:
    """Return the rows to train on and those held out; rows that weigh nothing are in neither."""
    order = rng.permutation(rows.sample(rows.n_candidates, rng))
    strata = np.zeros(len(order), dtype=np.intp)
    codes = None if rows.targets is None else rows.targets.class_codes
    if codes is not None:
        strata = codes[order]
    order = order[np.argsort(strata, kind="stable")]
    # one row of each class is not to be held out, so that the model knows the class
    kept = np.unique(np.sort(strata), return_index=True)[1]
    pool = np.delete(order, kept)
    if n_held > len(pool):
        raise ValueError(
            f"{n_held} rows cannot be held out of {len(order)} if each of the {len(kept)} classes "
            "is to be trained on. Lower test_size or pass more rows."
        )
    # at even distances among rows that are sorted by class: the same share of each
    held = pool[((np.arange(n_held) + 0.5) * len(pool) / n_held).astype(np.intp)]
    training = np.setdiff1d(order, held)
    # class weights are the estimator's way to train, not to score
    scoring = replace(rows.block(np.sort(held)), class_weight=None)
    return rows.block(training).blocks(), scoring


# -- models ----------------------------------------------------------------------------------------


def _nested_fits(
    plan: Plan, sizes: list[int], blocks: Blocks, n_trials: int, rng: np.random.RandomState
) -> list[NestedFit]:
    """Return the model of each size, from one choice of landmarks and one pass for the moments.

    Ridges of several sizes are chosen on `n_trials` rows at most.
    """
    resolved = resolve_kernel(plan, blocks, rng)
    landmarks = choose_landmarks(resolved, ModelSize(plan.n_landmarks), rng)
    problem, points = resolved.problem, landmarks.points
    if sizes == [points.shape[0]]:
        alone = fit_ridge(resolved, landmarks, rng)
        return [NestedFit(alone.alpha, alone.expansion)]
    feature_map = plan.approximation.build(problem.kernel, points, rng)
    trials = problem.blocks.some(np.sort(problem.blocks.sample(n_trials, rng)))
    whole = NestedSums.over(
        RidgeProblem(problem.blocks, feature_map, plan.alphas, rng, "curve"), trials
    )
    largest = whole.fit()
    smaller = [size for size in sizes if size < feature_map.n_landmarks]
    order, nested = whole.ordered(smaller[-1], largest.alpha)
    fits = [nested.leading(size).fit() for size in smaller]
    if len(smaller) < len(sizes):
        fits.append(largest.reordered(order))
    return [fit.behind(resolved.projection) for fit in fits]


# -- scores ----------------------------------------------------------------------------------------


def _scored(expansions: list[KernelExpansion], held: Block) -> tuple[Float, Float]:
    """Return the score of each function on the held-out rows, and its standard error."""
    targets, weight = held.targets, held.counts
    if targets is not None and targets.discrete:
        hits = targets.labels.hits
        pairs = [_accuracy(hits(expansion(held.X)), weight) for expansion in expansions]
    else:
        pairs = [_r2(held.Y, expansion(held.X), weight) for expansion in expansions]
    scores, errors = np.array(pairs).T
    return scores, errors


def _accuracy(hits: npt.NDArray[np.bool_], weight: Float) -> tuple[float, float]:
    """Return the accuracy and its binomial standard error."""
    total = weight.sum()
    share = min(1.0, float(weight @ hits / total))  # sums of weights may round to just above
    return share, float(np.sqrt(share * (1.0 - share) * (weight**2).sum()) / total)


def _r2(Y: Float, predicted: Float, weight: Float) -> tuple[float, float]:
    """Return R², averaged over the outputs, and its standard error by the delta method.

    One minus R² is a ratio of two means, of squared errors and of squares about the mean. To
    first order a row moves it by its part of the first less the ratio times that of the second.
    """
    score = float(r2_score(Y, predicted, sample_weight=weight))
    total = weight.sum()
    squares = (Y - weight @ Y / total) ** 2
    errors = (Y - predicted) ** 2
    scatter = weight @ squares
    varying = scatter > 0
    ratio = np.divide(weight @ errors, scatter, out=np.zeros_like(scatter), where=varying)
    scale = np.divide(total, scatter, out=np.zeros_like(scatter), where=varying)
    influence = ((errors - ratio * squares) * scale).mean(axis=1)
    return score, float(np.sqrt((weight**2) @ influence**2) / total)
