"""What the estimators check before any work starts; the engine trusts its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from nysplus._blocks import RowBlocks, float_dtype
from nysplus._checks import check_count
from nysplus._feature_map import Approximation, make_approximation
from nysplus._ridge import make_alphas
from nysplus._targets import ClassTargets, DiscreteTargets, Float, IndicatorTargets
from nysplus.kernels import Kernel
from nysplus.landmarks import (
    GivenLandmarks,
    Landmarks,
    LandmarkSelector,
    Problem,
    make_selector,
    select_landmarks,
)


@dataclass(frozen=True)
class Plan:
    """An estimator's parameters, checked and turned into the objects that they name."""

    n_landmarks: int
    kernel: Kernel
    selector: LandmarkSelector
    approximation: Approximation
    alphas: tuple[float, ...]

    def choose(self, blocks: RowBlocks, rng: np.random.RandomState) -> tuple[Problem, Landmarks]:
        """Fix the kernel's width on the data, then choose the landmarks."""
        kernel = self.kernel.resolve(blocks, rng)
        problem = Problem(blocks, kernel, self.approximation, self.alphas)
        return problem, select_landmarks(self.selector, problem, self.n_landmarks, rng)


def make_plan(estimator: Any, kernel: Kernel, X: Any, labelled: bool) -> Plan:
    """Check the parameters that all estimators share, against each other and against X."""
    check_count("n_components", estimator.n_components)
    selector = make_selector(estimator.selection, labelled)
    n = int(estimator.n_components)
    if isinstance(selector, GivenLandmarks):
        selector = GivenLandmarks(_check_landmarks(selector.points, X))
        n = selector.points.shape[0]
    if selector.needs_labels and not labelled:
        raise ValueError(
            f"{type(selector).__name__} chooses landmarks by class labels, and there are none. "
            "Pass y with classes, or a selection that needs no labels such as 'uniform' or "
            "'kmeans'."
        )
    approximation = make_approximation(estimator.approximation)
    approximation.check(n)
    selector.check(n, approximation)
    return Plan(n, kernel, selector, approximation, make_alphas(estimator.alpha))


def _check_landmarks(points: Any, X: Any) -> Any:
    points = check_array(points, accept_sparse="csr", dtype=float_dtype(X.dtype), copy=True)
    if points.shape[1] != X.shape[1]:
        raise ValueError(
            f"The landmarks given as selection have {points.shape[1]} features, X has "
            f"{X.shape[1]}. Pass landmarks with the columns of X."
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
    if not (weight > 0).any():
        raise ValueError("All sample weights are zero: no row is left to fit.")
    return weight


def encode_labels(
    y: Any, sample_weight: Float | None = None
) -> tuple[npt.NDArray[Any], DiscreteTargets]:
    """Return the classes and the coded targets of class labels or of a 0/1 label indicator."""
    check_classification_targets(y)
    if type_of_target(y).startswith("multilabel"):
        indicator = y.toarray() if sp.issparse(y) else np.asarray(y)
        signs = np.where(indicator > 0, 1.0, -1.0)
        return np.arange(indicator.shape[1]), IndicatorTargets(signs)
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    present = np.unique(codes if sample_weight is None else codes[sample_weight > 0])
    if len(present) < 2:
        raise ValueError(
            f"y has one class only, {classes[present[0]]!r}, among the rows that have a weight. "
            "A classifier needs at least two classes: pass rows of another one."
        )
    return classes, ClassTargets(codes.astype(np.intp), len(classes))


def class_weights(
    class_weight: Any,
    classes: npt.NDArray[Any],
    targets: DiscreteTargets,
    sample_weight: Float | None,
) -> Float | None:
    """Return the weight of every row's class, or None. "balanced" counts by sample weight."""
    if class_weight is None:
        return None
    if not isinstance(targets, ClassTargets):
        raise ValueError(
            "class_weight is defined for one class per row, y has several labels. Leave "
            "class_weight=None, or pass sample_weight."
        )
    codes = targets.codes
    if isinstance(class_weight, str) and class_weight == "balanced":
        # As compute_class_weight's own formula, which takes sample weights only in newer versions.
        mass = np.bincount(codes, sample_weight).astype(np.float64)
        factors = np.divide(
            mass.sum(), len(classes) * mass, out=np.zeros_like(mass), where=mass > 0
        )
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    weights: Float = factors[codes]
    return weights
