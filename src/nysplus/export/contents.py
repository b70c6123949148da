"""Collect the contents of a fitted model that all exports write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nysplus._bytes.center import centered
from nysplus._typing import TargetKind
from nysplus.expansion import KernelExpansion, PackedArray, PackedExpansion
from nysplus.kernels import Kernel

WHAT_TO_PASS = (
    "Pass a fitted NystroemClassifier or NystroemRegressor; a Pipeline with one as its last step "
    "is converted by skl2onnx, after nysplus.export.register_converters()."
)


@dataclass(frozen=True)
class Contents:
    """The numbers of a fitted model as they are stored, and their meaning.

    Attributes
    ----------
    kernel : Kernel
    stored : PackedExpansion
    kind : {"classes", "labels", "values"}
        One class per row, any number of labels per row, or numbers.
    classes : ndarray
        Labels of the classes; empty for values.
    slope : float or None
        β of :class:`~nysplus._ridge.probability.Scaling`; None where there are no probabilities.
    row_type : dtype
        Type of the rows of the fit: float32, or float64 for rows that float32 may not represent.
    """

    kernel: Kernel
    stored: PackedExpansion
    kind: TargetKind
    classes: npt.NDArray[Any]
    slope: float | None
    row_type: np.dtype[Any]

    @property
    def n_features(self) -> int:
        """Length d of a row."""
        if self.stored.projection is None:
            return int(self.stored.landmarks.values.shape[1])
        return len(self.stored.projection.values)

    @property
    def n_outputs(self) -> int:
        """Columns L of scores."""
        return len(self.stored.intercept.values)


def contents_of(model: Any) -> Contents:
    """Return the contents of a fitted classifier or regressor."""
    if not hasattr(model, "fit"):
        raise TypeError(f"{model!r} is not a model. {WHAT_TO_PASS}")
    check_is_fitted(model)
    if not hasattr(model, "expansion_"):
        raise TypeError(f"{type(model).__name__} has no kernel expansion. {WHAT_TO_PASS}")
    code, scaling = model._model.code, model._model.scaling
    slope = None if scaling is None else scaling.slope
    return contents(model.expansion_, code.kind, code.classes, slope)


def contents(
    expansion: KernelExpansion,
    kind: TargetKind = "values",
    classes: npt.NDArray[Any] | None = None,
    slope: float | None = None,
) -> Contents:
    """Return the contents of an expansion, in its stored types.

    Landmarks far from zero are written about a centre: exported arithmetic may be in float32.
    """
    expansion = centered(expansion)
    stored = expansion.packed
    if stored is None:
        Z, P, c = expansion.landmarks, expansion.projection, expansion.center
        stored = PackedExpansion(
            PackedArray(Z.toarray() if sp.issparse(Z) else Z),
            PackedArray(expansion.dual_coef),
            PackedArray(expansion.intercept),
            None if P is None else PackedArray(P),
            None if c is None else PackedArray(c),
        )
    # landmarks have the type of the rows, unless they are packed
    single = expansion.packed is None and expansion.landmarks.dtype == np.float32
    return Contents(
        expansion.kernel,
        stored,
        kind,
        np.empty(0) if classes is None else classes,
        slope,
        np.dtype(np.float32 if single else np.float64),
    )
