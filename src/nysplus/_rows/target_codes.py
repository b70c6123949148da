"""Codes of targets: from `y` to the targets of a fit, and from scores to predictions."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from nysplus._rows.accumulators import MeanAndScatter
from nysplus._rows.targets import (
    ClassTargets,
    IndicatorTargets,
    Targets,
    ValueTargets,
)
from nysplus._typing import Float, Kind, TargetKind
from nysplus._validation import (
    as_values,
    check_classes,
    check_no_class_weight,
    check_some_class_weighs,
    class_factors,
)


class TargetCode(ABC):
    """The relation between `y`, the targets of a fit, and the scores of a model.

    The fields of the dataclasses below are what a saved model keeps of them.

    Attributes
    ----------
    kind : {"classes", "labels", "values"}
        One class per row, any number of labels per row, or numbers.
    n_outputs : int
        Number of columns of the target matrix and of scores.
    classes : ndarray
        Classes, or the numbers of the labels; empty for values.
    """

    kind: ClassVar[TargetKind]

    # For type checkers only: a dataclass would take an inherited property as a field's default.
    if TYPE_CHECKING:

        @property
        def n_outputs(self) -> int: ...

        @property
        def classes(self) -> npt.NDArray[Any]: ...

    @property
    def discrete(self) -> bool:
        """Whether the targets are classes or labels."""
        return self.kind != "values"

    @abstractmethod
    def check(self) -> None:
        """Raise a ValueError if the fields contradict each other, as those of a damaged file."""

    def same(self, other: TargetCode) -> bool:
        """Return whether `other` codes targets of the same kind, classes and number of outputs."""
        return self.kind == other.kind and self.n_outputs == other.n_outputs

    def class_factors(
        self, class_weight: Any, needs_two_classes: bool, masses: Callable[[], Float]
    ) -> Float | None:
        """Return the weight of one observation of each class, or None where all weigh 1.

        Parameters
        ----------
        class_weight : dict, "balanced" or None
        needs_two_classes : bool
            Whether rows of a single class raise.
        masses : callable
            Returns the sum of the sample weights of each class.
        """
        check_no_class_weight(class_weight)
        return None

    @abstractmethod
    def encode(self, y: npt.NDArray[Any]) -> Targets:
        """Return the targets of `y`, or raise if they are of another kind."""

    @abstractmethod
    def as_targets(self, scores: Float) -> Targets:
        """Return the predictions of some scores as targets."""

    @abstractmethod
    def decode(self, scores: Float, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Return the predictions of some scores, as `predict` does.

        Parameters
        ----------
        scores : ndarray of shape (rows, n_outputs)
        dtype : dtype, optional
            Floating type of the rows: predicted values have it, or a wider one.
        """

    def decision(self, scores: Float) -> Float:
        """Return the scores as `decision_function` does."""
        return scores

    @property
    def n_score_sums(self) -> int:
        """Number of sums that the score of a model is computed from."""
        return 1

    @abstractmethod
    def score_sums(self, predicted: npt.NDArray[Any], targets: Targets, weight: Float) -> Float:
        """Return the contribution of some rows to the sums that a score is computed from.

        Parameters
        ----------
        predicted : ndarray
            Predictions as :meth:`decode` returns them.
        targets : Targets
            Of the same rows, encoded by this code.
        weight : ndarray of shape (rows,)
        """

    def score(self, sums: Float, spread: MeanAndScatter) -> float:
        """Return the accuracy, or R² averaged over the outputs.

        Parameters
        ----------
        sums : ndarray of shape (n_score_sums,)
        spread : MeanAndScatter
            Of the coded targets.
        """
        return float(sums[0] / spread.mass)


@dataclass(frozen=True)
class ClassCode(TargetCode):
    """One class per row.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    """

    classes: npt.NDArray[Any]
    kind: ClassVar[TargetKind] = "classes"

    @property
    def n_outputs(self) -> int:
        """Number of classes, or 1 when there are two."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def check(self) -> None:
        """Raise a ValueError unless there are two classes or more, sorted."""
        if not isinstance(self.classes, np.ndarray) or self.classes.ndim != 1:
            raise ValueError("classes must be a list.")
        if len(self.classes) < 2 or not all(self.classes[:-1] < self.classes[1:]):
            shown = reprlib.repr(self.classes.tolist())
            raise ValueError(f"classes={shown} must be two or more, sorted.")

    def same(self, other: TargetCode) -> bool:
        """Return whether `other` codes the same classes."""
        return super().same(other) and np.array_equal(self.classes, other.classes)

    def class_factors(
        self, class_weight: Any, needs_two_classes: bool, masses: Callable[[], Float]
    ) -> Float | None:
        """Return the weight of one observation of each class, or None where all weigh 1."""
        found = masses()
        factors = class_factors(class_weight, self.classes, found)
        if needs_two_classes:
            check_classes(self.classes, found)
            check_some_class_weighs(factors, found)
        return factors

    def encode(self, y: npt.NDArray[Any]) -> ClassTargets:
        """Return the class numbers of some labels, all of which must be known."""
        y = _columns(y, 1, "one column of classes")[:, 0]
        if self.classes.dtype.kind == "U" and y.dtype.kind == "O":
            y = y.astype(str)
        codes = np.searchsorted(self.classes, y).clip(max=len(self.classes) - 1)
        unknown = self.classes[codes] != y
        if unknown.any():
            raise ValueError(
                f"y contains {np.unique(y[unknown]).tolist()[:10]}, which is not among the classes "
                f"{self.classes.tolist()[:10]}. Name all classes in the first call of partial_fit, "
                "or leave such rows out."
            )
        return ClassTargets(codes, len(self.classes))

    def as_targets(self, scores: Float) -> ClassTargets:
        """Return the class of the highest score of each row."""
        return ClassTargets(self._winners(scores), len(self.classes))

    def decode(self, scores: Float, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Return the label of the highest score of each row."""
        labels: npt.NDArray[Any] = self.classes[self._winners(scores)]
        return labels

    def _winners(self, scores: Float) -> npt.NDArray[np.intp]:
        if self.n_outputs == 1:
            return (scores[:, 0] > 0).astype(np.intp)
        winners: npt.NDArray[np.intp] = scores.argmax(axis=1)
        return winners

    def decision(self, scores: Float) -> Float:
        """Return the scores as `decision_function` does: with one dimension for two classes."""
        return scores.ravel() if self.n_outputs == 1 else scores

    def score_sums(self, predicted: npt.NDArray[Any], targets: Targets, weight: Float) -> Float:
        """Return the weight of the rows whose predicted label is right.

        Labels are compared, not class numbers: the rows may have classes that a model never saw.
        """
        codes = targets.class_codes
        assert codes is not None
        return np.array([weight @ (predicted == self.classes[codes])])


@dataclass(frozen=True)
class LabelCode(TargetCode):
    """Any number of labels per row, given as a 0/1 indicator.

    Parameters
    ----------
    n_outputs : int
        Number of labels.
    """

    n_outputs: int
    kind: ClassVar[TargetKind] = "labels"

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The numbers of the labels."""
        return np.arange(self.n_outputs)

    def check(self) -> None:
        """Raise a ValueError if there is no label."""
        if self.n_outputs < 1:
            raise ValueError(f"n_outputs={self.n_outputs} labels, expected is at least one.")

    def encode(self, y: npt.NDArray[Any]) -> IndicatorTargets:
        """Return the ±1 targets of an indicator."""
        y = _columns(y, self.n_outputs, f"{self.n_outputs} columns of labels")
        return self.as_targets(y)

    def as_targets(self, scores: Float) -> IndicatorTargets:
        """Return the labels of positive score."""
        return IndicatorTargets(np.where(scores > 0, 1.0, -1.0))

    def decode(self, scores: Float, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Return the indicator of the positive scores."""
        return (scores > 0).astype(int)

    def score_sums(self, predicted: npt.NDArray[Any], targets: Targets, weight: Float) -> Float:
        """Return the weight of the rows whose labels are all right."""
        return np.array([weight @ targets.labels.hits(predicted)])


@dataclass(frozen=True)
class ValueCode(TargetCode):
    """Numbers to be predicted: targets and predictions are equal to `y` and the scores.

    Parameters
    ----------
    n_outputs : int
    flat : bool
        Whether y has one dimension.
    """

    n_outputs: int
    flat: bool
    kind: ClassVar[TargetKind] = "values"

    @property
    def classes(self) -> npt.NDArray[Any]:
        """An empty array."""
        return np.empty(0)

    def check(self) -> None:
        """Raise a ValueError if several outputs are said to have one dimension."""
        if self.flat and self.n_outputs != 1:
            raise ValueError(f"{self.n_outputs} outputs cannot be flat.")

    def encode(self, y: npt.NDArray[Any]) -> ValueTargets:
        """Return the values, a column for each output."""
        Y = _columns(y, self.n_outputs, f"{self.n_outputs} columns of values")
        return ValueTargets(as_values(Y))

    def as_targets(self, scores: Float) -> ValueTargets:
        """Return the scores."""
        return ValueTargets(scores)

    def decode(self, scores: Float, dtype: npt.DTypeLike | None = None) -> Float:
        """Return the predicted values in the shape of y."""
        values = scores.ravel() if self.flat else scores
        if dtype is None:
            return values
        # small numbers are computed with in float32, whatever the rows are
        return values.astype(np.result_type(values, dtype), copy=False)

    @property
    def n_score_sums(self) -> int:
        """Number of outputs."""
        return self.n_outputs

    def score_sums(self, predicted: npt.NDArray[Any], targets: Targets, weight: Float) -> Float:
        """Return the sum of the squared errors of each output."""
        Y = targets.coded()
        squares: Float = weight @ (Y - predicted.reshape(Y.shape)) ** 2
        return squares

    def score(self, sums: Float, spread: MeanAndScatter) -> float:
        """Return R² averaged over the outputs."""
        constant = np.where(sums > 0, 0.0, 1.0)  # as r2_score scores values that do not vary
        ratio = np.divide(sums, spread.scatter, out=1.0 - constant, where=spread.scatter > 0)
        return float(1.0 - ratio.mean())


CODES: dict[str, type[TargetCode]] = {code.kind: code for code in (ClassCode, LabelCode, ValueCode)}


def code_of(kind: Kind, y_shape: tuple[int, ...], labels: npt.NDArray[Any] | None) -> TargetCode:
    """Return the code of targets.

    Parameters
    ----------
    kind : {"classes", "values"}
        Whether an estimator is a classifier or a regressor.
    y_shape : tuple of int
        Shape of `y` beyond the rows: ``()`` for one dimension.
    labels : ndarray, optional
        Labels that contain every class, in any order and number; used only where each row has one.
    """
    if kind == "values":
        return ValueCode(y_shape[0] if y_shape else 1, flat=not y_shape)
    return LabelCode(y_shape[0]) if y_shape else ClassCode(np.unique(np.asarray(labels)))


def _columns(y: npt.NDArray[Any], n: int, expected: str) -> npt.NDArray[Any]:
    """Return y with two axes, or raise if it has another number of columns than `n`."""
    y = y[:, None] if y.ndim == 1 else y
    if y.shape[1] != n:
        columns = "1 column" if y.shape[1] == 1 else f"{y.shape[1]} columns"
        raise ValueError(
            f"y has {columns}, expected are {expected}: targets must be of the same kind in all "
            "blocks and calls."
        )
    return y
