"""What the estimators check before any work starts; the engine trusts its input."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from nysplus._blocks import RowBlocks, working_bytes
from nysplus._budget import Budget, make_budget
from nysplus._checks import check_count
from nysplus._expansion import ExpansionFit, KernelExpansion, fit_expansion
from nysplus._feature_map import Approximation, make_approximation
from nysplus._metric import LearnedMetric, learn_metric, make_metric, through
from nysplus._projection import composed, projected
from nysplus._refine import Limit, Refined, Refinement, make_refinement, refine
from nysplus._ridge import make_alphas
from nysplus._sizing import choose_size, fitting_landmarks, in_type, sizes_within
from nysplus._solvers import DIRECT_MATRICES, direct_bytes
from nysplus._survey import Kind
from nysplus._targets import Float
from nysplus._tuning import tune_kernel
from nysplus._verdict import Verdict
from nysplus.kernels import Kernel
from nysplus.landmarks import (
    GivenLandmarks,
    Landmarks,
    LandmarkSelector,
    Problem,
    Uniform,
    make_selector,
    select_landmarks,
)

# Rows on which a rounded model is compared with the same before, and the standard errors by which
# it must not be worse.
CHECKED_ROWS, SPOILED = 2000, 2.0


@dataclass(frozen=True)
class Plan:
    """An estimator's parameters, checked and turned into the objects that they name."""

    n_landmarks: int
    kernel: Kernel
    selector: LandmarkSelector
    approximation: Approximation
    alphas: tuple[float, ...]
    metric: LearnedMetric | None = None
    refinement: Refinement | None = None
    budget: Budget | None = None

    def choose(self, blocks: RowBlocks, rng: np.random.RandomState) -> Chosen:
        """Fix the metric, the kernel's width and the size on the data, then choose landmarks."""
        n, selector, projection = self.n_landmarks, self.selector, None
        problem = Problem(blocks, self.kernel, self.approximation, self.alphas)
        if self.budget is not None:  # the number is not known yet, but about this
            n = sizes_within(self.budget, problem, Uniform(), None, rng)[-1].n
        if self.metric is not None:
            found = learn_metric(problem, selector, n, self.metric, rng)
            projection, kernel = found.projection, found.kernel
            selector = through(selector, projection)
        elif self.kernel.is_tuned:
            kernel = tune_kernel(problem, selector, n, rng)
        else:
            kernel = self.kernel.resolve(blocks, rng)
        problem = replace(problem, blocks=projected(blocks, projection), kernel=kernel)
        if self.budget is None:
            landmarks, limit = select_landmarks(selector, problem, n, rng), None
        else:
            sizes = sizes_within(self.budget, problem, selector, projection, rng)
            size = choose_size(problem, selector, sizes, blocks, projection, rng)
            limit = Limit(self.budget, blocks.n_features, size.dtypes[0])
            landmarks = fitting_landmarks(self.budget, problem, selector, size.n, projection, rng)
        return Chosen(problem, selector, landmarks, projection, blocks, self.refinement, limit)


@dataclass(frozen=True)
class Chosen:
    """Everything that a fit has to know beside its ridge.

    Attributes
    ----------
    problem : Problem
        The rows as the kernel sees them, and the kernel with its width.
    selector : LandmarkSelector
        That chose the landmarks.
    landmarks : Landmarks
    projection : ndarray or None
        The linear map that rows are seen through.
    given : RowBlocks
        The rows as they came.
    refinement : Refinement or None
        What is learned after the fit.
    limit : Limit or None
        What the model may take.
    """

    problem: Problem
    selector: LandmarkSelector
    landmarks: Landmarks
    projection: Float | None
    given: RowBlocks
    refinement: Refinement | None = None
    limit: Limit | None = None

    def fit(self, rng: np.random.RandomState) -> ExpansionFit:
        """Return the model with these landmarks."""
        problem = self.problem
        found = fit_expansion(
            problem.blocks,
            self.landmarks.points,
            problem.kernel,
            problem.approximation,
            problem.alphas,
            rng,
        )
        return replace(found, expansion=replace(found.expansion, projection=self.projection))

    def finish(self, fit: ExpansionFit, rng: np.random.RandomState) -> Refined:
        """Return what learning makes of the model, or the model itself, as it is stored."""
        if self.limit is None:
            return self._refined(fit, rng)
        # drawn first: a model that learning does not change is the one without learning
        rounding = np.random.RandomState(rng.randint(2**31 - 1))
        found = self._refined(fit, rng)
        small = in_type(found.expansion, found.dtype or self.limit.dtype, self.given, rounding)
        if found.kept and self._spoiled(found.expansion, small):
            # such as a map that was judged behind the metric's, and is rounded together with it
            found = Refined(fit.expansion)
            small = in_type(fit.expansion, self.limit.dtype, self.given, rounding)
        return replace(found, expansion=small)

    def _refined(self, fit: ExpansionFit, rng: np.random.RandomState) -> Refined:
        if self.refinement is None:
            return Refined(fit.expansion)
        start = replace(fit.expansion, projection=None)
        found = refine(self.problem, self.selector, start, self.refinement, rng, self.limit)
        P = composed(self.projection, found.expansion.projection)
        return replace(found, expansion=replace(found.expansion, projection=P))

    def _spoiled(self, expansion: KernelExpansion, small: KernelExpansion) -> bool:
        """Return whether rounding makes a model clearly worse on some of the rows."""
        blocks, rng = self.given, np.random.RandomState(0)
        rows = blocks.gather(blocks.sample(min(blocks.n_candidates, CHECKED_ROWS), rng))
        assert rows.targets is not None
        after, before = (rows.targets.merits(model(rows.X)) for model in (small, expansion))
        return Verdict.of(after, before, rows.weight, SPOILED).better


def make_plan(
    estimator: Any, kernel: Kernel, n_features: int, dtype: np.dtype[Any], kind: Kind | None
) -> Plan:
    """Check the parameters that all estimators share, against each other and against the rows."""
    check_count("n_components", estimator.n_components)
    budget = make_budget(getattr(estimator, "budget", None))  # the transformer has none
    selector = make_selector(estimator.selection)
    n = int(estimator.n_components)
    if isinstance(selector, GivenLandmarks):
        if budget is not None:
            raise ValueError(
                "budget chooses the number of landmarks, and selection is an array of them. Pass "
                "one of the two."
            )
        selector = GivenLandmarks(_check_landmarks(selector.points, n_features, dtype))
        n = selector.points.shape[0]
    if selector.targets == "classes" and kind != "classes":
        raise ValueError(
            f"{type(selector).__name__} chooses landmarks by class labels, and there are none. "
            "Pass y with classes, or a selection that needs no labels such as 'uniform' or "
            "'kmeans'."
        )
    if kind is None and (selector.targets == "needed" or kernel.is_tuned):
        what = "gamma='auto'" if kernel.is_tuned else type(selector).__name__
        raise ValueError(
            f"{what} goes by the targets, and there are none. Pass y, or choose without targets: "
            "a selection such as 'uniform' or 'kmeans', gamma='scale' or a number."
        )
    if budget is None:
        _say_what_memory_is_needed(n)
    approximation = make_approximation(estimator.approximation)
    approximation.check(n)
    selector.check(n, approximation)
    metric = make_metric(getattr(estimator, "metric", None))
    if metric is not None:
        metric.check(kernel, n_features)
    refinement = make_refinement(getattr(estimator, "refine", False))
    if refinement is not None:
        refinement.check(kernel, n_features)
    alphas = make_alphas(estimator.alpha)
    return Plan(n, kernel, selector, approximation, alphas, metric, refinement, budget)


def _say_what_memory_is_needed(n: int) -> None:
    need, allowed = direct_bytes(n), working_bytes()
    if need > allowed:
        fitting = int(np.sqrt(allowed / direct_bytes(1)))
        warnings.warn(
            f"{n} landmarks need about {need / 2**20:,.0f} MiB for {DIRECT_MATRICES} matrices of "
            f"{n} × {n} numbers, whatever the number of rows; scikit-learn's working_memory is "
            f"{allowed / 2**20:,.0f} MiB. The fit goes on and exceeds it. To stay within it, use "
            f"{fitting} landmarks at most, or raise sklearn.set_config(working_memory=…).",
            stacklevel=4,
        )


def _check_landmarks(points: Any, n_features: int, dtype: np.dtype[Any]) -> Any:
    points = check_array(points, accept_sparse="csr", dtype=dtype, copy=True)
    if points.shape[1] != n_features:
        raise ValueError(
            f"The landmarks given as selection have {points.shape[1]} features, X has "
            f"{n_features}. Pass landmarks with the columns of X."
        )
    return points


def check_rows(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """Return X (and y) as scikit-learn's ``validate_data`` does, numeric types kept as they are.

    Integers and small floats stay as they came, to be converted block by block.
    """
    try:
        checked = validate_data(estimator, X, y, accept_sparse="csr", dtype="numeric", **checks)
        # Some data frames come through as objects, which need not be numbers yet.
        if isinstance(checked, tuple):
            return _as_numbers(checked[0]), checked[1]
        return _as_numbers(checked)
    except ValueError as error:
        columns = _text_columns(X)
        if not columns:
            raise
        raise ValueError(
            f"X has columns that are not numbers: {columns}. Encode them first (for example with "
            f"sklearn.preprocessing.OneHotEncoder) or drop them. ({error})"
        ) from error


def _as_numbers(X: Any) -> Any:
    return X if X.dtype.kind in "biuf" else X.astype(np.float64)


def _text_columns(X: Any) -> list[Any]:
    """Return the names of a data frame's columns that do not convert to numbers."""
    names = []
    for name in getattr(X, "columns", ()):
        try:
            np.asarray(X[name]).astype(np.float64)
        except (TypeError, ValueError):
            names.append(name)
    return names


def check_sample_weight(sample_weight: Any, X: Any) -> Float | None:
    """Return the weights as float64 of shape (n_rows,), or None."""
    if sample_weight is None:
        return None
    weight: Float = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have one dimension, got shape {weight.shape}.")
    check_consistent_length(X, weight)
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight must not be negative, got {weight.min():g}. Use 0 to leave a row out."
        )
    check_some_weigh(int(np.count_nonzero(weight)))
    return weight


def check_some_weigh(n_rows: int) -> None:
    """Raise if no row has a weight."""
    if n_rows == 0:
        raise ValueError("All sample weights are zero: no row is left to fit.")


def flat_labels(y: Any) -> npt.NDArray[Any]:
    """Return class labels with one dimension, or a 0/1 label indicator as an array."""
    check_classification_targets(y)
    if type_of_target(y).startswith("multilabel"):
        return y.toarray() if sp.issparse(y) else np.asarray(y)
    labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
    return labels


def check_classes(classes: npt.NDArray[Any], masses: Float) -> None:
    """Raise unless two classes at least have rows that weigh something."""
    present = classes[masses > 0]
    if len(present) < 2:
        raise ValueError(
            f"y has one class only, {present[0]!r}, among the rows that have a weight. "
            "A classifier needs at least two classes: pass rows of another one."
        )


def class_factors(class_weight: Any, classes: npt.NDArray[Any], masses: Float) -> Float | None:
    """Return how much one observation of each class weighs, or None. "balanced" counts by mass."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        # As compute_class_weight's own formula, which takes sample weights only in newer versions.
        factors: Float = np.divide(
            masses.sum(), len(classes) * masses, out=np.zeros(len(classes)), where=masses > 0
        )
        return factors
    factors = compute_class_weight(class_weight, classes=classes, y=classes)
    return factors


def check_no_class_weight(class_weight: Any) -> None:
    """Raise if classes are weighted, where rows have several labels."""
    if class_weight is not None:
        raise ValueError(
            "class_weight is defined for one class per row, y has several labels. Leave "
            "class_weight=None, or pass sample_weight."
        )
