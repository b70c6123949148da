"""Score models of several sizes on held-out rows, to choose the number of landmarks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from nysplus._fit.growth import doubling_sizes
from nysplus._fit.pipeline import ModelSize, choose_landmarks, fit_ridge, resolve_kernel
from nysplus._fit.plan import Plan
from nysplus._fit.standard_error import scores_with_errors
from nysplus._fit.table import Table, table_of
from nysplus._holdout import stratified_split
from nysplus._ridge.feature_map import StandardMap
from nysplus._ridge.nested import NestedFit, NestedSums
from nysplus._ridge.problem import RidgeProblem
from nysplus._rows.blocks import Blocks
from nysplus._rows.frames import split_frame
from nysplus._rows.opening import RowsToOpen, is_elsewhere, open_rows, schema_of
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.encoding.parameter import table_encoder
from nysplus.estimators import NystroemClassifier, NystroemRegressor
from nysplus.landmarks import GivenLandmarks

# Default sizes double from the smallest to the largest: between two of them accuracy seldom changes
# by more than a few points.
SMALLEST, LARGEST = 10, 1000
# Training rows per landmark at least, by default: with fewer a model is not small.
ROWS_PER_LANDMARK = 4
# The standard error of an accuracy of 95 % is then 0.22 points; more rows are better used to train.
MAX_TEST_ROWS = 10_000
# Landmarks chosen for a model up to this many times larger, in the best order, are about as good
# for a smaller model as its own. Even smaller models get their own landmarks, which cost little.
SHARED_RATIO = 4

# The split of `landmark_curve`, for comparisons on the same rows.
held_out = stratified_split


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
        by the delta method for R². The variation due to the training rows is not included.
    bytes : ndarray of int of shape (n_sizes,)
        Size of the model, as `model_bytes_`.
    alphas : ndarray of shape (n_sizes,)
        The ridge of each size.
    landmarks : tuple of ndarrays or CSR matrices of shape (size, n_features)
        The landmarks of each size, which may be passed as an estimator's `selection`, unless it
        has an encoder; with a learned metric in its coordinates, as `landmarks_` are.
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
        """The size of the highest score; of equal scores the smallest."""
        return int(self.sizes[self.scores.argmax()])

    @property
    def recommended(self) -> int:
        """The smallest size whose score is within one standard error of the best."""
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
    """Score models of several sizes on rows that neither the selection nor the fit uses.

    Landmarks are chosen for the largest size and put in the order in which they lower the
    training error most. The first n of them are the landmarks of size n, and all models follow
    from the same sums over the training rows. Sizes below a quarter of the largest one get their
    own landmarks, which cost little.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        In memory. Of rows on disk or on a cluster, pass a sample. A table as it comes if the
        estimator has an encoder, which is fitted to the training rows.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        For data frames also the name of the column or columns.
    sizes : iterable of int, optional
        Numbers of landmarks, in any order. By default doubling from 10, up to 1000 or a quarter
        of the training rows.
    estimator : NystroemClassifier or NystroemRegressor, optional
        Not changed; its n_components and verbose are ignored. By default an estimator with default
        parameters: a regressor if `y` is continuous, a classifier otherwise.
    sample_weight : array-like of shape (n_rows,), optional
        Of training and of held-out rows.
    test_size : float or int, default=0.2
        Share of the rows that is held out, at most 10000 rows, or their number. The same share of
        every class is held out.
    random_state : int, RandomState or None, default=None
        None: the random_state of the estimator.

    Returns
    -------
    LandmarkCurve

    See Also
    --------
    LandmarkCurveDisplay : Draws the curve.
    sklearn.model_selection.validation_curve : Fits a new model for every size and fold.

    Notes
    -----
    One selection and one pass of O(N n (d + n)) for the largest size n, O(n³) for the order,
    O(m³) for each size m from n/4 and, where α is chosen for classes, O(m²) for each row that it
    is chosen on; and a fit for each smaller size.

    α is chosen for each size as the estimator does, for classes by leave-one-out accuracy. From n/4
    on, α is chosen on at most as many training rows as are held out: a finer choice would not show
    in the scores. The held-out rows are used for the scores only. The best of several scores is
    slightly optimistic: test the final model on other rows.

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
    X, y, sample_weight = split_frame(X, y, sample_weight)
    model = _checked_estimator(estimator, y)
    rng = check_random_state(model.random_state if random_state is None else random_state)
    if is_elsewhere(X):
        raise TypeError(
            f"landmark_curve needs rows in memory, got {type(X).__name__}. Pass a sample of them "
            "as an array."
        )
    encoder = table_encoder(model.encoder)
    intake = open_rows(model, X, y, sample_weight, model._target_spec(), encoder=encoder)
    rows, _ = intake.open(Progress(), Journal())
    assert isinstance(rows, Blocks)
    n_test = _n_test(test_size, rows.n_candidates)
    n_training = rows.n_candidates - n_test
    steps = _default_sizes(n_training) if wanted_sizes is None else wanted_sizes
    if steps[-1] > n_training:
        raise ValueError(
            f"sizes has {steps[-1]} landmarks, and there are {n_training} training rows besides "
            f"{n_test} held-out rows. Lower the largest size or pass more rows."
        )
    groups = _planned(model, intake, steps)
    training, test = stratified_split(rows, n_test, rng)
    table = table_of(groups[0][0], schema_of(model), training)
    fits = [
        fit
        for plan, group in groups
        for fit in _nested_fits(plan, group, training, table, n_test, rng)
    ]
    scores, errors = scores_with_errors([fit.expansion for fit in fits], test)
    return LandmarkCurve(
        np.array(steps),
        scores,
        errors,
        np.array([fit.expansion.n_bytes for fit in fits]),
        np.array([fit.alpha for fit in fits]),
        tuple(fit.expansion.given_landmarks() for fit in fits),
        "accuracy" if rows.discrete else "R²",
    )


# -- checks before any work ------------------------------------------------------------------------


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
    """Return sizes that double, up to the largest sensible size."""
    largest = max(1, min(LARGEST, n_training // ROWS_PER_LANDMARK))
    return doubling_sizes(SMALLEST, largest)


def _checked_estimator(estimator: Any, y: Any) -> NystroemClassifier | NystroemRegressor:
    """Return an unfitted copy of the estimator, or a default estimator for the targets."""
    if y is None:
        raise ValueError("landmark_curve scores predictions: pass y with classes or values.")
    if estimator is None:
        values = type_of_target(y, input_name="y").startswith("continuous")
        return NystroemRegressor() if values else NystroemClassifier()
    if not isinstance(estimator, (NystroemClassifier, NystroemRegressor)):
        raise TypeError(
            "estimator must be a NystroemClassifier or a NystroemRegressor, got "
            f"{type(estimator).__name__}. Of a pipeline, pass the last step and the transformed "
            "rows."
        )
    copy: NystroemClassifier | NystroemRegressor = clone(estimator)
    return copy


def _n_test(test_size: Any, n_rows: int) -> int:
    """Return the number of held-out rows."""
    whole = isinstance(test_size, Integral) and not isinstance(test_size, bool)
    share = isinstance(test_size, Real) and not isinstance(test_size, (bool, Integral))
    if whole and 1 < test_size < n_rows:
        return int(test_size)
    if share and 0 < test_size < 1 and n_rows > 2:  # a standard error needs two
        return min(max(2, round(float(test_size) * n_rows)), MAX_TEST_ROWS, n_rows - 1)
    raise ValueError(
        f"test_size={test_size!r} must be a share between 0 and 1, or a number from 2 to "
        f"{n_rows - 1} of the {n_rows} rows."
    )


def _planned(model: Any, intake: RowsToOpen, sizes: list[int]) -> list[tuple[Plan, list[int]]]:
    """Return groups of sizes that share their landmarks, each with its checked plan."""

    def plan_for(group: list[int]) -> Plan:
        plan: Plan = model.set_params(n_components=group[-1])._plan(intake)
        _check_plan(plan, group)
        return plan

    whole = plan_for(sizes)
    if isinstance(whole.selector, GivenLandmarks):  # all sizes share the given landmarks
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
            "landmark_curve shares landmarks among sizes, and refine would move them for each "
            "size. Pass an estimator with refine=False, or fit each size."
        )
    if plan.budget is not None:
        raise ValueError(
            "landmark_curve has fixed sizes, and budget would choose others. Pass an estimator "
            "with budget=None, or fit with each budget."
        )
    if plan.n_landmarks < sizes[-1]:
        raise ValueError(
            f"selection has {plan.n_landmarks} landmarks, and the largest of sizes is "
            f"{sizes[-1]}. Lower the size or pass more landmarks."
        )


# -- models ----------------------------------------------------------------------------------------


def _nested_fits(
    plan: Plan,
    sizes: list[int],
    blocks: Blocks,
    table: Table | None,
    n_scored: int,
    rng: np.random.RandomState,
) -> list[NestedFit]:
    """Return the model of each size, from one choice of landmarks and one pass for the moments.

    The ridges of several sizes are chosen on at most `n_scored` rows.
    """
    resolved = resolve_kernel(plan, blocks, rng, table)
    landmarks = choose_landmarks(resolved, ModelSize(plan.n_landmarks), rng)
    problem, points = resolved.problem, landmarks.points
    if sizes == [points.shape[0]]:
        alone = fit_ridge(resolved, landmarks, rng)
        fit = NestedFit(alone.alpha, alone.expansion)
        return [fit.behind(resolved.projection, resolved.center, resolved.code)]
    feature_map = plan.approximation.build(problem.kernel, points, rng)
    scored = problem.blocks.some(np.sort(problem.blocks.sample(n_scored, rng)))
    whole = NestedSums.over(
        RidgeProblem(problem.blocks, feature_map, plan.alphas, rng, "curve"), scored
    )
    largest = whole.fit()
    smaller = [size for size in sizes if size < feature_map.n_landmarks]
    order, nested = whole.ordered(smaller[-1], largest.alpha)
    fits = [nested.leading(size).fit() for size in smaller]
    if len(smaller) < len(sizes):
        fits.append(largest.reordered(order))
    return [fit.behind(resolved.projection, resolved.center, resolved.code) for fit in fits]
