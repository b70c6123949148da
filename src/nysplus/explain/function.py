"""The fitted function in float64, as a function of the columns that the user knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nysplus._fit.model import FittedModel
from nysplus._rows.applying import apply_to_rows
from nysplus._rows.projected import project
from nysplus._typing import Float
from nysplus.encoding.code import TableCode
from nysplus.encoding.image_code import ImageCode
from nysplus.encoding.schema import TableColumn
from nysplus.estimators.base import KernelMachine
from nysplus.expansion import KernelExpansion
from nysplus.pipelines import as_model

WHAT_TO_PASS = (
    "Pass a fitted NystroemClassifier or NystroemRegressor, or a Pipeline that has one as its last "
    "step."
)


def explained_model(model: Any, caller: str) -> KernelMachine:
    """Return a fitted estimator, of a pipeline the one that takes the pipeline's rows."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, KernelMachine):
        raise TypeError(f"{caller} cannot explain a {type(last).__name__}. {WHAT_TO_PASS}")
    check_is_fitted(last)
    folded: KernelMachine = as_model(model)
    return folded


def raw_rows(model: KernelMachine, X: Any, name: str = "X") -> Float:
    """Return checked rows as numbers: those of a table by its schema.

    Parameters
    ----------
    model : KernelMachine
    X : rows, as for `predict`
    name : str
        The argument, for error messages.
    """
    if sp.issparse(X):
        raise TypeError(
            f"{name} is a sparse matrix, and explanations have a number for every entry of a row. "
            f"Pass a dense array of few columns, such as {name}.toarray()."
        )
    try:
        rows = apply_to_rows(model, X, _dense)
    except (TypeError, ValueError) as error:
        if name == "X":
            raise
        raise type(error)(f"{name} must have the columns of the model's rows. {error}") from error
    return np.asarray(rows, dtype=np.float64)


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def column_names(model: KernelMachine) -> list[str]:
    """Return the names of the columns that the model uses; "column 3" where there are none."""
    columns = model._model.columns
    if columns.schema is not None:
        return [column.name for column in columns.schema.columns]
    if columns.names is not None:
        return [str(name) for name in columns.names]
    return [f"column {i}" for i in range(columns.n_features)]


def shown_entries(model: KernelMachine, raw: Float) -> npt.NDArray[np.object_] | None:
    """Return the entries of a table as users know them; None if all columns are numbers."""
    schema = model._model.columns.schema
    if schema is None or all(column.kind == "number" for column in schema.columns):
        return None
    shown = np.empty(raw.shape, dtype=object)
    for i, column in enumerate(schema.columns):
        shown[:, i] = [_entry(column, number) for number in raw[:, i].tolist()]
    return shown


def _entry(column: TableColumn, number: float) -> Any:
    if np.isnan(number):
        return "missing"
    if column.kind == "date":
        return np.datetime64(int(number), "s")
    if column.kind == "number":
        return number
    return column.levels[int(number)] if number >= 0 else "other level"


@dataclass(frozen=True, eq=False)
class ExplainedFunction:
    """The scores in float64, with the column of the user behind every coordinate.

    Attributes
    ----------
    expansion : KernelExpansion
        All numbers in float64 and dense. An encoder of images, which is linear, is part of the
        projection.
    groups : ndarray of shape (D,)
        The column of the user behind each code column.
    n_players : int
        Number of columns of the user.
    """

    expansion: KernelExpansion
    groups: npt.NDArray[np.intp]
    n_players: int

    @classmethod
    def of(cls, fitted: FittedModel) -> ExplainedFunction:
        """Return the function of a fitted model."""
        expansion = _folded(_in_float64(fitted.expansion))
        code = expansion.encoder
        if isinstance(code, TableCode):
            return cls(expansion, code.groups, code.n_inputs)
        d = fitted.columns.n_features
        return cls(expansion, np.arange(d), d)

    @property
    def form(self) -> str | None:
        """How scores depend on columns: as a "product" or "sum" for each landmark, or neither."""
        h = self.expansion
        if len(h.landmarks) == 0:
            return "sum"
        dense = h.projection is not None and h.projection.ndim == 2
        return None if dense else h.kernel.separable

    @cached_property
    def players(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The order of code columns by player, the players that have some, and their starts."""
        order = np.argsort(self.groups, kind="stable")
        present, starts = np.unique(self.groups[order], return_index=True)
        return order, present, starts

    def code(self, X: Float) -> Float:
        """Return the code columns of raw numbers, of shape (N, D)."""
        code = self.expansion.encoder
        return X if code is None else code(X, np.float64)

    def coordinates(self, C: Float) -> Float:
        """Return ``(C − c)P`` of code columns."""
        moved: Float = project(C, self.expansion.projection, self.expansion.center)
        return moved

    def by_player(self, of_code: Float, combine: Callable[..., Float]) -> Float:
        """Return numbers of code columns (first axis), combined for each player that has some.

        Parameters
        ----------
        of_code : ndarray of shape (D, …)
        combine : callable
            ``np.add.reduceat`` or ``np.multiply.reduceat``.
        """
        order, present, starts = self.players
        ordered = of_code[order]
        return ordered if len(present) == len(ordered) else combine(ordered, starts, axis=0)

    def spread(self, of_players: Float) -> Float:
        """Return numbers of shape (N, players that have columns, …) with zeros for the others."""
        _, present, _ = self.players
        values = np.zeros((len(of_players), self.n_players, *of_players.shape[2:]))
        values[:, present] = of_players
        return values


def _in_float64(h: KernelExpansion) -> KernelExpansion:
    """Return the function with dense numbers of float64."""

    def wide(array: Any) -> Any:
        if array is None:
            return None
        dense = array.toarray() if sp.issparse(array) else array
        return dense.astype(np.float64)

    return replace(
        h,
        landmarks=wide(h.landmarks),
        dual_coef=wide(h.dual_coef),
        intercept=wide(h.intercept),
        projection=wide(h.projection),
        center=wide(h.center),
        linear=wide(h.linear),
        packed=None,
    )


def _folded(h: KernelExpansion) -> KernelExpansion:
    """Return the function with an encoder of images as a part of its linear maps."""
    code = h.encoder
    if not isinstance(code, ImageCode):
        return h
    M = code(np.eye(code.n_inputs), np.float64)
    return replace(
        h,
        encoder=None,
        landmarks=h.given_landmarks(),
        center=None,
        projection=M if h.projection is None else project(M, h.projection),
        linear=None if h.linear is None else M @ h.linear,
    )
