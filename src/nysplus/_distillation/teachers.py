"""Predictions of a teacher: probabilities of classes, or values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from nysplus._learning.setup import score_unit
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.target_codes import ClassCode, TargetCode, ValueCode
from nysplus._rows.targets import ClassTargets
from nysplus._typing import Float
from nysplus._validation import as_values
from nysplus.encoding.frames import frame_names, is_frame, take_rows

# Rows on which a teacher is tried before any long work.
TRIED_ROWS = 2
# Sums of probabilities may differ from one by this much.
ROUNDING = 1e-3


@dataclass(frozen=True)
class Teacher:
    """A function whose values a smaller model learns.

    Attributes
    ----------
    code : TargetCode
        Classes, or values.
    scores : callable
        From rows to probabilities of shape (rows, classes), or to values of shape (rows, outputs).
    scores_any_rows : bool
        Whether rows other than the given ones have scores.
    """

    code: TargetCode
    scores: Callable[[Any], Float]
    scores_any_rows: bool = True


def teacher_of(model: Any, X: Any, y: Any = None) -> Teacher:
    """Return the teacher of a fitted model, or of its predictions for X.

    Parameters
    ----------
    model : estimator, data frame or array
        Fitted, with `predict_proba`, `decision_function` or `predict`; or predictions for X: a data
        frame of probabilities with a column for each class, or an array of values.
    X : rows
    y : array of shape (rows,), optional
        Classes of the rows. Where scores are those of `decision_function`, the slope of their
        log-odds is fitted to y, and else to the predictions of the model.
    """
    if is_frame(model) or isinstance(model, np.ndarray):
        return _of_predictions(model, X)
    first = _first_predictions(model, X)
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list) or (classes is not None and first.ndim > 1 < first.shape[1]):
        raise ValueError(
            f"The teacher {type(model).__name__} predicts several targets of classes. distill "
            "learns a single one: pass a teacher for each."
        )
    if classes is None and not (_is_classifier(model) or first.dtype.kind not in "iuf"):
        code = ValueCode(1 if first.ndim == 1 else first.shape[1], flat=first.ndim == 1)
        return Teacher(code, lambda rows: _values(model.predict(rows)))
    found = np.unique(np.ravel(model.predict(X))) if classes is None else np.asarray(classes)
    order = np.argsort(found)
    code_of_classes = ClassCode(found[order])
    code_of_classes.check()
    if hasattr(model, "predict_proba"):
        return Teacher(code_of_classes, partial(_probabilities, model.predict_proba, order))
    if hasattr(model, "decision_function"):
        return Teacher(code_of_classes, _scaled_decisions(model, order, code_of_classes, X, y))
    return Teacher(code_of_classes, partial(_certain, model, code_of_classes))


def _first_predictions(model: Any, X: Any) -> npt.NDArray[Any]:
    """Return predictions of the first rows, or raise if the model has none."""
    name = type(model).__name__
    if not hasattr(model, "predict"):
        raise TypeError(
            f"teacher is a {name}, which cannot predict. Pass a fitted estimator with "
            "predict_proba, decision_function or predict, or its predictions for X."
        )
    try:
        return np.asarray(model.predict(take_rows(X, np.arange(min(TRIED_ROWS, X.shape[0])))))
    except NotFittedError as error:
        raise NotFittedError(f"The teacher {name} is not fitted. Fit it before distill.") from error
    except Exception as error:  # the errors of other libraries have types of their own
        raise ValueError(
            f"The teacher {name} cannot predict the first rows of X: {error} Pass a fitted teacher "
            "and rows with the columns that it was fitted to."
        ) from error


def _is_classifier(model: Any) -> bool:
    try:
        return bool(is_classifier(model))
    except (AttributeError, TypeError):  # an object without the tags of scikit-learn
        return False


def _values(predicted: Any) -> Float:
    """Return predicted values with two axes."""
    Y = np.asarray(predicted)
    return as_values(Y[:, None] if Y.ndim == 1 else Y)


def _probabilities(
    predict_proba: Callable[[Any], Any], order: npt.NDArray[np.intp], rows: Any
) -> Float:
    """Return probabilities in the order of the classes."""
    P = np.asarray(predict_proba(rows), dtype=np.float64)
    if P.ndim != 2 or P.shape[1] != len(order):
        raise ValueError(
            f"The probabilities of the teacher have the shape {P.shape}, and it has {len(order)} "
            "classes. Expected is a column for each class."
        )
    total = P.sum(axis=1, keepdims=True)
    if not (np.isfinite(P).all() and (P >= 0).all() and (np.abs(total - 1.0) <= ROUNDING).all()):
        raise ValueError(
            "The probabilities of the teacher are not numbers from 0 to 1 with a sum of 1 in each "
            "row. Correct them, or pass classes."
        )
    probabilities: Float = P[:, order] / total
    return probabilities


def _certain(model: Any, code: ClassCode, rows: Any) -> Float:
    """Return a probability of one for the predicted class."""
    return _one_hot(code.encode(np.ravel(model.predict(rows))))


def _one_hot(targets: ClassTargets) -> Float:
    P = np.zeros((len(targets.codes), targets.n_classes))
    P[np.arange(len(P)), targets.codes] = 1.0
    return P


def _scaled_decisions(
    model: Any, order: npt.NDArray[np.intp], code: ClassCode, X: Any, y: Any
) -> Callable[[Any], Float]:
    """Return the function from rows to the softmax of scores, with a slope fitted to classes."""

    def decisions(rows: Any) -> Float:
        F = np.asarray(model.decision_function(rows), dtype=np.float64)
        if F.ndim == 1:
            return F[:, None] if order[0] == 0 else -F[:, None]
        if F.shape[1] != len(order):
            raise ValueError(
                f"decision_function of the teacher has {F.shape[1]} columns for {len(order)} "
                "classes. Set decision_function_shape='ovr'."
            )
        return F[:, order]

    F = decisions(X)
    unit = score_unit(F)
    targets = code.encode(np.ravel(model.predict(X)) if y is None else np.asarray(y))
    scaling: Scaling = fit_scaling(F / unit, targets, np.ones(len(F)))
    return lambda rows: scaling.probabilities(decisions(rows) / unit)


def _of_predictions(predictions: Any, X: Any) -> Teacher:
    """Return the teacher of predictions: probabilities with names of classes, or values."""
    if len(predictions) != X.shape[0]:
        raise ValueError(
            f"The predictions of the teacher have {len(predictions)} rows, and X has {X.shape[0]}. "
            "Pass one prediction for each row of X."
        )
    if is_frame(predictions) and len(frame_names(predictions)) > 1:
        classes = np.asarray(frame_names(predictions))
        order = np.argsort(classes)
        P = _probabilities(np.asarray, order, predictions)
        return Teacher(ClassCode(classes[order]), lambda rows: P, scores_any_rows=False)
    Y = _values(predictions)
    code = ValueCode(Y.shape[1], flat=Y.shape[1] == 1)
    return Teacher(code, lambda rows: Y, scores_any_rows=False)
