"""Collect the contents of a fitted model that all exports write."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nysplus._bytes.center import centered
from nysplus._typing import Float, TargetKind
from nysplus.conformal import Novelty
from nysplus.encoding.code import Code
from nysplus.encoding.schema import TableSchema
from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion
from nysplus.kernels import Kernel, Linear
from nysplus.pipelines import as_model

#: Outputs of a model: those of its targets, or the features of a transformer.
OutputKind = TargetKind | Literal["features"]

WHAT_TO_PASS = (
    "Pass a fitted NystroemClassifier or NystroemRegressor, or a Pipeline that has one as its last "
    "step."
)


@dataclass(frozen=True)
class Contents:
    """The numbers of a fitted model as they are stored, and their meaning.

    Attributes
    ----------
    kernel : Kernel
    stored : PackedExpansion
    kind : {"classes", "labels", "values", "features"}
        One class per row, any number of labels per row, or numbers; features of a transformer.
    classes : ndarray
        Labels of the classes; empty for values.
    slope : float or None
        β of :class:`~nysplus._ridge.probability.Scaling`; None where there are no probabilities.
    row_type : dtype
        Type of the rows of the fit: float32, or float64 for rows that float32 may not represent.
    encoder : Code or None
        E, from the raw numbers of a table or an image to code columns; None for rows that are used
        as given.
    schema : TableSchema or None
        Names, kinds and levels of the raw numbers; None where they are not known.
    """

    kernel: Kernel
    stored: PackedExpansion
    kind: OutputKind
    classes: npt.NDArray[Any]
    slope: float | None
    row_type: np.dtype[Any]
    encoder: Code | None = None
    schema: TableSchema | None = None

    @property
    def n_features(self) -> int:
        """Length of a row: of raw numbers, where they are encoded."""
        return self.n_columns if self.encoder is None else self.encoder.n_inputs

    @property
    def n_columns(self) -> int:
        """Number of columns that c and P apply to: those of a row, or of its code."""
        if self.stored.projection is None:
            return int(self.stored.landmarks.values.shape[1])
        return len(self.stored.projection.values)

    @property
    def n_outputs(self) -> int:
        """Columns L of scores."""
        return len(self.stored.intercept.values)


@dataclass(frozen=True)
class Trust:
    """Numbers of prediction sets or intervals at one confidence, and of the novelty.

    Attributes
    ----------
    confidence : float
    bounds : ndarray of shape (m,)
        Of one minus the probability of a class: one number, or one for each class; or the half
        width of the interval of each output.
    familiar : Novelty or None
        None where there is no novelty.
    """

    confidence: float
    bounds: Float
    familiar: Novelty | None


def trust_of(model: Any, confidence: float) -> Trust:
    """Return the numbers of prediction sets or intervals of a fitted model, at one confidence."""
    model = as_model(model)
    bounds = model._bounds(confidence, "confidence")
    if model._model.code.discrete and model._model.scaling is None:
        raise ValueError(
            "Exported prediction sets go by probabilities, which this model does not have. Import "
            "it with rows to calibrate them, or leave confidence out."
        )
    return Trust(confidence, bounds, model._model.familiar)


def without_linear_term(expansion: KernelExpansion) -> KernelExpansion:
    """Return a function without landmarks as one that has landmarks in place of its linear term.

    ``E(x)B`` is the linear kernel of rows behind the map B with the landmarks and coefficients of
    the identity. Nothing is rounded by it. A function with landmarks is returned as it is.
    """
    if expansion.linear is None or expansion.landmarks.shape[0]:
        return expansion
    packed, L = expansion.packed, expansion.linear.shape[1]
    if packed is None:
        ones = np.eye(L, dtype=expansion.dual_coef.dtype)
        return replace(
            expansion,
            kernel=Linear(),
            landmarks=ones,
            dual_coef=ones,
            projection=expansion.linear,
            center=None,
            linear=None,
        )
    unit = PackedArray(np.eye(L, dtype=np.int8), np.ones(L, dtype=np.float32))
    stored = PackedExpansion(unit, unit, packed.intercept, packed.linear)
    return replace(KernelExpansion.unpacked(Linear(), stored), encoder=expansion.encoder)


def contents_of(model: Any) -> Contents:
    """Return the contents of a fitted model, or of a pipeline that ends in one."""
    model = as_model(model)
    if not hasattr(model, "fit"):
        raise TypeError(f"{model!r} is not a model. {WHAT_TO_PASS}")
    check_is_fitted(model)
    if not hasattr(model, "expansion_"):
        raise TypeError(f"{type(model).__name__} has no kernel expansion. {WHAT_TO_PASS}")
    code, scaling = model._model.code, model._model.scaling
    slope = None if scaling is None else scaling.slope
    schema = model._model.columns.schema
    return contents(model.expansion_, code.kind, code.classes, slope, schema)


def contents(
    expansion: KernelExpansion,
    kind: OutputKind = "values",
    classes: npt.NDArray[Any] | None = None,
    slope: float | None = None,
    schema: TableSchema | None = None,
) -> Contents:
    """Return the contents of an expansion, in its stored types.

    Landmarks far from zero are written about a centre: exported arithmetic may be in float32.
    """
    expansion = centered(without_linear_term(expansion))
    stored = expansion.packed
    if stored is None:
        parts = {field.name: getattr(expansion, field.name) for field in fields(PackedExpansion)}
        arrays = {name: part for name, part in parts.items() if part is not None}
        if sp.issparse(expansion.landmarks):
            arrays["landmarks"] = expansion.landmarks.toarray()
        stored = PackedExpansion(**{name: PackedArray(array) for name, array in arrays.items()})
    # landmarks have the type of the rows, unless they are packed or of coded rows
    single = expansion.packed is None and expansion.landmarks.dtype == np.float32
    single = single and expansion.encoder is None
    return Contents(
        expansion.kernel,
        stored,
        kind,
        np.empty(0) if classes is None else classes,
        slope,
        np.dtype(np.float32 if single else np.float64),
        expansion.encoder,
        schema,
    )
