"""Check parameters, rows and targets before any work starts; the engine trusts its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from nysplus._typing import Float

# Largest weight of a row or of a class, and largest value of a target: a weight times the square of
# a value, summed over any number of rows, is then a finite float64.
MAX_WEIGHT, MAX_VALUE = 1e50, 1e100
# Names from other libraries, and the advice that an error about such a name gives.
ADVICE = {
    "C": "Use alpha, the ridge penalty: about 1 / (2 C).",
    "M": "Use n_components, the number of landmarks.",
    "coef0": "Pass kernel=nysplus.kernels.Polynomial(coef0=…).",
    "degree": "Pass kernel=nysplus.kernels.Polynomial(degree=…).",
    "gaussian": "Use 'rbf'.",
    "k-means": "Use 'kmeans'.",
    "kernel_params": "Pass kernel=nysplus.kernels.FunctionKernel(function, params=…).",
    "lambda_": "Use alpha, the ridge penalty.",
    "length_scale": "Use gamma: 1 / (2 length_scale²) for the RBF kernel.",
    "n_centers": "Use n_components, the number of landmarks.",
    "n_inducing": "Use n_components, the number of landmarks.",
    "n_jobs": "Limit the threads with OMP_NUM_THREADS or threadpoolctl.",
    "n_landmarks": "Use n_components, the number of landmarks.",
    "penalty": "Use alpha, the ridge penalty.",
    "precomputed": "Use nysplus.Nystroem(kernel='precomputed') and a linear model.",
    "random": "Use 'uniform'.",
    "reg_lambda": "Use alpha, the ridge penalty.",
    "seed": "Use random_state.",
    "sigma": "Use gamma: 1 / (2 sigma²) for the RBF kernel.",
}


def advice(name: Any, known: Iterable[str]) -> str:
    """Return advice about an unknown name, to be appended to an error message; "" without any."""
    if not isinstance(name, str):
        return ""
    if name in ADVICE:
        return f" {ADVICE[name]}"
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def is_count(value: Any) -> bool:
    """Return whether `value` is an integer of Python or NumPy, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def check_count(name: str, value: Any, at_least: int = 1, optional: bool = False) -> None:
    """Raise unless `value` is an integer of at least `at_least`, or None if it is optional."""
    if value is None and optional:
        return
    if not is_count(value) or value < at_least:
        allowed = f"an integer of at least {at_least}" + (" or None" if optional else "")
        raise ValueError(f"{name}={value!r} must be {allowed}.")


def check_positive(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number above 0."""
    is_number = isinstance(value, (Real, np.number)) and value is not True
    if not is_number or not 0 < value < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number above 0.")


def check_rows(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """Return X (and y) as scikit-learn's ``validate_data`` does, in their numeric types.

    Integers and small floats are converted later, block by block.
    """
    try:
        checked = validate_data(estimator, X, y, accept_sparse="csr", dtype="numeric", **checks)
        # Some data frames become arrays of objects, which may be numbers or text.
        if isinstance(checked, tuple):
            return canonical(_as_numbers(checked[0])), checked[1]
        return canonical(_as_numbers(checked))
    except ValueError as error:
        # not for images, which have an encoder already, nor for transformers, which have none
        may_encode = getattr(estimator, "encoder", "none") is None
        if str(error).startswith("Input X contains NaN"):
            # scikit-learn's message goes on to recommend other estimators
            advice = (
                "Pass encoder='auto', which takes tables with gaps, replace"
                if may_encode
                else "Replace"
            )
            raise ValueError(
                f"Input X contains NaN, and {type(estimator).__name__} takes no missing values. "
                f"{advice} them, for example with sklearn.impute.SimpleImputer in a pipeline, or "
                "drop the rows that have them."
            ) from None
        columns = _text_columns(X)
        if not columns:
            raise
        advice = (
            "Pass encoder='auto', which takes tables with categories and dates, encode"
            if may_encode
            else "Encode"
        )
        raise ValueError(
            f"X has columns that are not numbers: {columns}. {advice} them first (for example with "
            f"sklearn.preprocessing.OneHotEncoder), or drop them. ({error})"
        ) from error


def check_names(names: list[Any]) -> None:
    """Raise if several columns of a table have one name."""
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise ValueError(
            f"X has several columns of one name: {twice}. Give every column its own name."
        )


def check_table(estimator: Any, X: Any, reset: bool, least_rows: int = 1) -> Any:
    """Return a table whose entries may be anything: a data frame as it is, else an array.

    Parameters
    ----------
    estimator : object
        At the beginning of a fit `n_features_in_` and `feature_names_in_` are set.
    X : data frame or array-like
    reset : bool
        Whether this is the beginning of a fit. Later, columns of frames may come in any order.
    least_rows : int
    """
    if sp.issparse(X):
        raise sparse_table()
    is_lazy = hasattr(X, "collect_schema") and not hasattr(X, "shape")
    if is_lazy or hasattr(X, "columns") or hasattr(X, "column_names"):
        _check_frame(X, least_rows)
        return validate_data(estimator, X, skip_check_array=True) if reset else X
    if not hasattr(X, "dtype") and not hasattr(X, "__array__"):
        X = np.array(X, dtype=object)  # not all numbers as texts, where one entry is a text
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=least_rows,
    )


def sparse_table() -> TypeError:
    """Return the error of sparse rows for a model that was fitted to a table."""
    return TypeError(
        "X has sparse rows, which cannot be encoded as a table. Pass a dense array or a data frame."
    )


def _check_frame(X: Any, least_rows: int) -> None:
    """Raise unless a frame is in memory and has rows, and columns of different names."""
    if not isinstance(getattr(X, "shape", (None,))[0], int):
        raise TypeError(
            f"X is a {type(X).__name__} that is not in memory. Pass the result of its collect() or "
            "compute()."
        )
    if X.shape[0] < least_rows or X.shape[1] == 0:
        raise ValueError(
            f"X has {X.shape[0]} rows and {X.shape[1]} columns. Pass at least one row and one "
            "column."
        )
    check_names(list(X.column_names if hasattr(X, "column_names") else X.columns))


def canonical(X: Any) -> Any:
    """Return X with one entry for each cell: duplicate entries of a CSR matrix are summed.

    Kernels take entries one by one, and norms of rows with duplicates would be wrong. The given
    matrix is not changed.
    """
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed


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
    """Return the weights as float64 of shape (n_rows,), or None. All of them may be zero."""
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
    if (weight > MAX_WEIGHT).any():
        raise ValueError(
            f"sample_weight must not exceed {MAX_WEIGHT:g}, got {weight.max():g}: sums of squares "
            "would overflow. Divide all weights by their mean."
        )
    return weight


def check_some_weigh(n_rows: int) -> None:
    """Raise if no row has a positive weight."""
    if n_rows == 0:
        raise ValueError(
            "All sample weights are zero: no row is left to fit. Pass at least one row with a "
            "positive weight."
        )


def check_dense_targets(y: Any, indicator: bool = False) -> None:
    """Raise if y is sparse; an `indicator` of several labels may be."""
    if sp.issparse(y) and not (indicator and min(y.shape) > 1):
        raise TypeError(
            f"y is a sparse matrix of shape {y.shape}, and y must be dense. Pass y.toarray(), and "
            "for a single column y.toarray().ravel()."
        )


def flat_labels(y: Any) -> npt.NDArray[Any]:
    """Return class labels with one dimension, or a 0/1 label indicator as an array."""
    check_classification_targets(y)
    if y.ndim == 2 and type_of_target(y).startswith("multilabel"):
        indicator: npt.NDArray[Any] = y.toarray() if sp.issparse(y) else np.asarray(y)
        check_indicator(indicator)
        return indicator
    labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
    return labels


def check_indicator(y: npt.NDArray[Any]) -> None:
    """Raise unless a matrix of labels consists of zeros and ones."""
    other = y[(y != 0) & (y != 1)]
    if other.size:
        raise ValueError(
            f"y has {y.shape[1]} columns, which must be a 0/1 indicator of labels, and contains "
            f"{other[0]}. Pass 0 and 1, one column of classes, or use NystroemRegressor "
            "for values."
        )


def as_values(y: npt.NDArray[Any]) -> Float:
    """Return the targets of a regression as float64.

    Raise if some are not numbers, or if their squares would overflow.
    """
    try:
        values: Float = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y contains {_first_text(y)!r}, which is not a number. Pass numbers, or use "
            "NystroemClassifier for classes."
        ) from error
    largest = float(np.abs(values).max(initial=0.0))
    if largest > MAX_VALUE:
        raise ValueError(
            f"y contains a value of size {largest:g}, and {MAX_VALUE:g} is the largest allowed: "
            "squared errors would overflow. Divide y by a constant, and multiply predictions by it."
        )
    return values


def _first_text(y: npt.NDArray[Any]) -> Any:
    """Return the first entry that does not convert to a number."""
    for value in y.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    raise AssertionError("all entries are numbers")


def check_classes(classes: npt.NDArray[Any], masses: Float) -> None:
    """Raise unless two classes or more have rows of positive weight."""
    present = classes[masses > 0]
    if len(present) < 2:
        raise ValueError(
            f"y has one class only, {present[0]!r}, among the rows of positive weight. "
            "A classifier needs at least two classes: pass rows of another class."
        )


def class_factors(class_weight: Any, classes: npt.NDArray[Any], masses: Float) -> Float | None:
    """Return the weight of one observation of each class, or None where all weigh 1.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    classes : ndarray of shape (n_classes,)
    masses : ndarray of shape (n_classes,)
        Sum of the sample weights of each class, which "balanced" uses.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        # The formula of compute_class_weight, which takes sample weights only in newer versions.
        factors: Float = np.divide(
            masses.sum(), len(classes) * masses, out=np.zeros(len(classes)), where=masses > 0
        )
        return factors
    if isinstance(class_weight, dict):
        _check_class_weights(class_weight)
    factors = compute_class_weight(class_weight, classes=classes, y=classes)
    return factors


def check_some_class_weighs(factors: Float | None, masses: Float) -> None:
    """Raise if every class of the rows has the weight zero."""
    if factors is not None and not factors[masses > 0].any():
        raise ValueError(
            "class_weight is zero for every class of y: no row is left to fit. Give at least one "
            "class of y a positive weight."
        )


def _check_class_weights(class_weight: dict[Any, Any]) -> None:
    """Raise unless all weights are numbers from 0 to `MAX_WEIGHT`."""
    for name, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) <= MAX_WEIGHT:
            raise ValueError(
                f"class_weight has the weight {weight!r} for class {name!r}, and weights must be "
                f"numbers from 0 to {MAX_WEIGHT:g}. Use 0 to leave a class out."
            )


def check_no_class_weight(class_weight: Any) -> None:
    """Raise if class weights are given where a row may have several labels."""
    if class_weight is not None:
        raise ValueError(
            "class_weight is defined for one class per row, but rows of y have several labels. "
            "Leave class_weight=None, or pass sample_weight."
        )
