"""The landmarks that carry a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils import check_consistent_length

from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float
from nysplus.estimators.base import KernelMachine
from nysplus.explain.function import ExplainedFunction, explained_model, raw_rows
from nysplus.explain.shapley import output_names

# Landmarks that are printed.
PRINTED = 10


@dataclass(frozen=True, eq=False)
class LandmarkAttribution:
    """The score of a row as a sum over landmarks.

    ``contributions.sum(axis=0) + linear + intercept`` is the score. L is 1 for two classes and for
    one predicted value.

    Attributes
    ----------
    contributions : ndarray of shape (n, L)
        ``k(x, z_j) A_j`` of each landmark and output.
    kernel_values : ndarray of shape (n,)
        ``k(x, z_j)``.
    linear, intercept : ndarray of shape (L,)
        The linear term of the row, zero for most models, and b.
    order : ndarray of shape (n,)
        The landmarks, those of the largest contributions, in absolute value, first.
    landmark_classes : ndarray of shape (n,) or None
        The class whose score each landmark raises most; None unless each row has one class.
    rows : ndarray of shape (n,) or None
        The training row that is the landmark, or the row of `X` closest to it; None if neither is
        known.
    targets : ndarray or None
        `y` of these rows; None where it was not given.
    output_names : list of str or None
        Names of the outputs; None for one output.
    """

    contributions: Float
    kernel_values: Float
    linear: Float
    intercept: Float
    order: npt.NDArray[np.intp]
    landmark_classes: npt.NDArray[Any] | None = None
    rows: npt.NDArray[np.intp] | None = None
    targets: npt.NDArray[Any] | None = None
    output_names: list[str] | None = None

    @property
    def score(self) -> Float:
        """The score of the row, of shape (L,)."""
        total: Float = self.contributions.sum(axis=0) + self.linear + self.intercept
        return total

    def __str__(self) -> str:
        """Return a table of the landmarks of the largest contributions."""
        names = self.output_names or ["contribution"]
        known = {"class": self.landmark_classes, "row": self.rows, "target": self.targets}
        columns = {name: values for name, values in known.items() if values is not None}
        lines = [["landmark", "k(x, z)", *columns, *names]]
        for j in self.order[:PRINTED].tolist():
            given = [str(values[j]) for values in columns.values()]
            numbers = [f"{value:+.4f}" for value in self.contributions[j]]
            lines.append([str(j), f"{self.kernel_values[j]:.4f}", *given, *numbers])
        others = self.order[PRINTED:]
        if len(others):
            rest = [f"{value:+.4f}" for value in self.contributions[others].sum(axis=0)]
            lines.append([f"{len(others)} others", "", *("" for _ in columns), *rest])
        for name, part in (("linear term", self.linear), ("intercept", self.intercept)):
            if part.any():
                blank = ["" for _ in columns]
                lines.append([name, "", *blank, *(f"{value:+.4f}" for value in part)])
        lines.append(["score", "", *("" for _ in columns), *(f"{v:+.4f}" for v in self.score)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def landmark_attribution(model: Any, x: Any, X: Any = None, y: Any = None) -> LandmarkAttribution:
    """Compute the contribution ``k(x, z_j) A_j`` of each landmark to the score of a row.

    Parameters
    ----------
    model : NystroemClassifier, NystroemRegressor or Pipeline
        Fitted.
    x : one row, as for `predict`
        An array with one axis, or rows of which there is one.
    X : rows, as for `predict`, optional
        Training rows, to find those closest to landmarks that are no rows themselves.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Targets of the training rows.

    Returns
    -------
    LandmarkAttribution
        Printed, it is a table of the landmarks of the largest contributions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nysplus import NystroemClassifier
    >>> from nysplus.explain import landmark_attribution
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NystroemClassifier(10, random_state=0).fit(X, y)
    >>> found = landmark_attribution(model, X[0], X, y)
    >>> bool(abs(found.score - model.decision_function(X[:1])).max() < 1e-8)
    True
    >>> int(found.targets[found.kernel_values.argmax()])
    0
    """
    model = explained_model(model, "landmark_attribution")
    row = raw_rows(model, _two_axes(x), "x")
    if len(row) != 1:
        raise ValueError(f"x has {len(row)} rows, and one is explained at a time. Pass one row.")
    function = ExplainedFunction.of(model._model)
    h = function.expansion
    if len(h.landmarks) == 0:
        raise ValueError("The model is a linear function and has no landmarks.")
    C = function.code(row)
    k = h.kernel.evaluate(function.coordinates(C), h.landmarks)[0]
    parts = k[:, None] * h.dual_coef
    linear = np.zeros_like(h.intercept) if h.linear is None else C[0] @ h.linear
    rows, targets = _nearest(model, function, X, y)
    code = model._model.code
    return LandmarkAttribution(
        parts,
        k,
        linear,
        h.intercept,
        np.argsort(-np.abs(parts).max(axis=1), kind="stable"),
        _classes(code, h.dual_coef),
        rows,
        targets,
        output_names(code),
    )


def _two_axes(x: Any) -> Any:
    """Return a row of one axis as rows of which there is one."""
    if hasattr(x, "columns") or hasattr(x, "column_names"):
        return x
    return np.asarray(x)[None] if np.ndim(x) == 1 else x


def _classes(code: TargetCode, A: Float) -> npt.NDArray[Any] | None:
    """Return the class whose score each landmark raises most."""
    return code.decode(A) if code.kind == "classes" else None


def _nearest(
    model: KernelMachine, function: ExplainedFunction, X: Any, y: Any
) -> tuple[npt.NDArray[np.intp] | None, npt.NDArray[Any] | None]:
    """Return the training rows of landmarks and their targets, as far as these are known."""
    rows = model.landmark_indices_
    if X is None:
        return rows, None if rows is None or y is None else np.asarray(y)[rows]
    others = raw_rows(model, X)
    if rows is not None and rows.max() >= len(others):
        raise ValueError(
            f"X has {len(others)} rows, and row {rows.max()} of the training rows is a landmark. "
            "Pass all training rows, or leave X and y out."
        )
    if rows is None:
        U = function.coordinates(function.code(others))
        rows = pairwise_distances_argmin_min(function.expansion.landmarks, U)[0]
    if y is None:
        return rows, None
    check_consistent_length(others, y)
    return rows, np.asarray(y)[rows]
