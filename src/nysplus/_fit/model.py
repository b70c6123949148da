"""The record of a fitted model, in which every way to a model ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nysplus._fit.report import FitReport
from nysplus._ridge.probability import Scaling
from nysplus._ridge.running import RunningFit
from nysplus._rows.blocks import Block
from nysplus._rows.slicing import float_dtype
from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float
from nysplus.conformal import Calibration, Novelty, class_scores
from nysplus.encoding.schema import TableSchema
from nysplus.expansion import KernelExpansion

# Error message of `predict_proba` for imported models that have no probabilities.
NO_PROBABILITIES = (
    "The model it was imported from gives scores alone. Pass rows that this model was not fitted "
    "to, with their classes, to calibrate probabilities: from_svc(model, X, y)."
)


@dataclass(frozen=True)
class Columns:
    """The columns of the rows that a model was fitted to.

    Attributes
    ----------
    n_features : int
    names : ndarray of str or None
        None where the rows had no names.
    zero_based : bool or "auto"
        How libsvm files number their columns.
    schema : TableSchema or None
        How the columns of a table are read; None for rows that are numbers as given.
    """

    n_features: int
    names: npt.NDArray[Any] | None = None
    zero_based: bool | Literal["auto"] = "auto"
    schema: TableSchema | None = None

    @property
    def numeric(self) -> npt.NDArray[np.bool_]:
        """Whether each column that is used has numbers or dates, no categories."""
        if self.schema is None:
            return np.ones(self.n_features, dtype=bool)
        return np.array([column.kind != "category" for column in self.schema.columns])

    @classmethod
    def of(cls, estimator: Any) -> Columns:
        """Return the columns that scikit-learn's validation has noted on an estimator."""
        return cls(
            estimator.n_features_in_,
            getattr(estimator, "feature_names_in_", None),
            getattr(estimator, "_zero_based", "auto"),
            getattr(estimator, "_schema", None),
        )


@dataclass(frozen=True)
class FittedModel:
    """Everything that is known of a fitted model.

    `fit`, `partial_fit`, `compress`, `from_svc` and `load` all end in one of these, which an
    estimator adopts in one assignment (:func:`adopt`).

    Attributes
    ----------
    expansion : KernelExpansion
        The fitted function.
    code : TargetCode
        Between scores and predictions.
    columns : Columns
    scaling : Scaling or None
        From scores to probabilities; None for values, and for an imported classifier whose
        probabilities are not known.
    calibration : Calibration or None
        Bounds of prediction sets and intervals; None where no rows were left out or held out.
    familiar : Novelty or None
        Similarity of rows to the landmarks, with which that of other rows is compared; None where
        no rows were seen, or the kernel does not measure similarity.
    alpha : float or None
        The ridge; None for an imported model.
    solver : str
    landmark_indices : ndarray of shape (n,) or None
        Row numbers of the landmarks, where they are rows.
    refined : bool or None
        Whether learned landmarks were kept; None where nothing could be refined.
    n_kernel_evaluations : int
    n_passes : int or None
        Passes over the rows; None where rows came block by block.
    running : RunningFit or None
        Sums over the rows of `partial_fit`.
    collected : Block or None
        All rows of `partial_fit`, as long as there are fewer than landmarks to choose.
    report : FitReport or None
        What the fit has compared and chosen; None for models that do not come from `fit`.
    """

    expansion: KernelExpansion
    code: TargetCode
    columns: Columns
    scaling: Scaling | None = None
    calibration: Calibration | None = None
    familiar: Novelty | None = None
    alpha: float | None = None
    solver: str = ""
    landmark_indices: npt.NDArray[np.intp] | None = None
    refined: bool | None = None
    n_kernel_evaluations: int = 0
    n_passes: int | None = None
    running: RunningFit | None = None
    collected: Block | None = None
    report: FitReport | None = None

    def without_sums(self) -> FittedModel:
        """Return the model without sums and the report, which predictions do not need."""
        return replace(self, running=None, collected=None, report=None)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the labels or values of checked rows; values never in a smaller type than X."""
        return self.code.decode(self.expansion(X), float_dtype(X.dtype))

    def decision(self, X: Any) -> Float:
        """Return the scores of checked rows as `decision_function` does."""
        return self.code.decision(self.expansion(X))

    def probabilities(self, X: Any) -> Float:
        """Return the probabilities of each class or label for checked rows."""
        assert self.scaling is not None
        return self.scaling.probabilities(self.expansion(X))

    def prediction_sets(self, X: Any, bounds: Float) -> npt.NDArray[np.bool_]:
        """Return whether each class is in the prediction set, for checked rows."""
        return self.sets_of_scores(self.expansion(X), bounds)

    def sets_of_scores(self, scores: Float, bounds: Float) -> npt.NDArray[np.bool_]:
        """Return whether each class is in the prediction set, for rows of these scores."""
        return np.asarray(class_scores(scores, self.scaling) <= bounds)

    def intervals(self, X: Any, bounds: Float) -> Float:
        """Return the lower and the upper ends of the values' intervals, for checked rows."""
        return self.intervals_of_scores(self.expansion(X), bounds)

    def intervals_of_scores(self, scores: Float, bounds: Float) -> Float:
        """Return the ends of the intervals, for rows of these scores."""
        values = scores.astype(np.float64, copy=False)
        ends: Float = np.stack([values - bounds, values + bounds], axis=1)
        return ends[:, :, 0] if getattr(self.code, "flat", False) else ends

    def novelty(self, X: Any) -> Float:
        """Return the novelty of checked rows."""
        assert self.familiar is not None
        return self.familiar(self.expansion.similarity(X), X)

    def without_calibration(self) -> FittedModel:
        """Return the model without bounds and similarities, which belong to another function."""
        return replace(self, calibration=None, familiar=None)


def adopt(estimator: Any, columns: Columns, **fitted: Any) -> None:
    """Give an estimator the attributes of a finished fit, in one assignment.

    Attributes of an earlier fit go. Whatever interrupts a fit before this leaves the estimator as
    it was.
    """
    known = ("n_features_in_", "feature_names_in_", "_zero_based", "_schema")
    state = {name: value for name, value in vars(estimator).items() if name not in known}
    state |= {"n_features_in_": columns.n_features, "_zero_based": columns.zero_based, **fitted}
    if columns.schema is not None:
        state["_schema"] = columns.schema
    if columns.names is not None:
        state["feature_names_in_"] = columns.names
    estimator.__dict__ = state
