"""Landmarks of tables, shown as the rows that are most similar to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._fit.model import FittedModel
from nysplus._typing import Float
from nysplus.report.wording import as_texts


@dataclass(frozen=True)
class NearestRow:
    """A landmark and the row that is most similar to it.

    Attributes
    ----------
    votes_for : str
        The class whose score the landmark raises most; of values "higher" or "lower".
    weight : float
        Its largest coefficient, as a share of that of all landmarks.
    similarity : float
        Kernel of the row and the landmark; 1 for the landmark itself where the kernel has a
        largest value of 1.
    row : int
        Number of the row.
    """

    votes_for: str
    weight: float
    similarity: float
    row: int


def nearest_rows(fitted: FittedModel, X: Any, most: int) -> list[NearestRow]:
    """Return the landmarks of the largest coefficients, with the most similar of some rows."""
    A = np.asarray(fitted.expansion.dual_coef, dtype=np.float64)
    sizes = np.abs(A).max(axis=1, initial=0.0)
    shown = np.argsort(-sizes, kind="stable")[:most]
    if not len(shown):
        return []
    K = similarities(fitted, X, shown)
    closest = K.argmax(axis=0)
    return [
        NearestRow(
            _side(fitted, A[i]),
            float(sizes[i] / sizes[shown[0]]),
            float(K[closest[k], k]),
            int(closest[k]),
        )
        for k, i in enumerate(shown)
    ]


def similarities(fitted: FittedModel, X: Any, landmarks: npt.NDArray[np.intp]) -> Float:
    """Return the kernel of rows and some landmarks, of shape (rows, landmarks).

    It is the function of the model with unit vectors as coefficients.
    """
    expansion = fitted.expansion
    dtype = expansion.dual_coef.dtype
    units = np.eye(expansion.landmarks.shape[0], dtype=dtype)[:, landmarks]
    none = np.zeros(len(landmarks), dtype=dtype)
    return replace(expansion, dual_coef=units, intercept=none, linear=None, packed=None)(X)


def _side(fitted: FittedModel, coefficients: Float) -> str:
    if not fitted.code.discrete:
        return "higher" if coefficients[0] > 0 else "lower"
    names = as_texts(fitted.code.classes)
    if len(coefficients) == 1:
        return str(names[int(coefficients[0] > 0)])
    return str(names[int(coefficients.argmax())])
