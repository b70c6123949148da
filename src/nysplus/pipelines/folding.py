"""Fold a fitted pipeline of scikit-learn into one model with a schema and a code."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nysplus._fit.model import Columns
from nysplus._typing import Float
from nysplus.encoding.code import Lookup, OneHot, TableCode, Term
from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.expansion import KernelExpansion
from nysplus.pipelines.columns import (
    Column,
    FlagColumn,
    LevelColumn,
    LinearColumn,
    OneTermColumn,
)
from nysplus.pipelines.operations import IDENTITY
from nysplus.pipelines.steps import fold_step


@dataclass(frozen=True, eq=False)
class FoldedSteps:
    """The transformers of a pipeline as functions of the columns of a table.

    Attributes
    ----------
    columns : list of Column
        What the last transformer gives.
    n_features : int
        Number of columns of the table.
    names : ndarray of str or None
        Their names.
    """

    columns: list[Column]
    n_features: int
    names: Any

    @property
    def n_bytes(self) -> int:
        """Bytes of the code, whatever the centre."""
        return self._read(np.ones(len(self.columns)))[1].n_bytes

    def around(self, expansion: KernelExpansion) -> tuple[KernelExpansion, Columns]:
        """Return a function of the last columns as one of the table, and how to read this."""
        Z, c = expansion.landmarks, expansion.center
        if sp.issparse(Z):
            expansion = replace(expansion, landmarks=Z.toarray())
        # numbers far from zero lose their digits where they are rounded before c is subtracted
        center = np.zeros(len(self.columns)) if c is None else c.astype(np.float64)
        own = [isinstance(column, OneTermColumn) for column in self.columns]
        schema, code = self._read(center)
        left = np.where(own, 0.0, center)
        expansion = expansion.without_center()
        if left.any():
            expansion = expansion.with_center(left)
        columns = Columns(self.n_features, self.names, schema=schema)
        return replace(expansion, encoder=code), columns

    def _read(self, center: Float) -> tuple[TableSchema, TableCode]:
        """Return schema and code, with a centre subtracted from columns that are no category."""
        sources = sorted({column.source for column in self.columns})
        found = [self._table_column(source) for source in sources]
        terms: list[Term] = []
        items = zip(self.columns, center, strict=True)
        for (source, _), run in groupby(items, lambda item: (item[0].source, type(item[0]))):
            group, at = list(run), sources.index(source)
            levels = [column for column, _ in group if isinstance(column, LevelColumn)]
            if levels:
                terms.append(_level_term(at, levels, found[at]))
            terms += [
                column.term(at, float(c))
                for column, c in group
                if isinstance(column, OneTermColumn)
            ]
        names = None if self.names is None else tuple(str(name) for name in self.names)
        schema = TableSchema(self.n_features, names, tuple(found))
        return schema, TableCode(len(sources), tuple(terms))

    def _table_column(self, source: int) -> TableColumn:
        """Return how a column of the table is read, by all functions of it."""
        columns = [column for column in self.columns if column.source == source]
        name = f"column {source}" if self.names is None else str(self.names[source])
        refuses_gaps = any(column.refuses_gaps for column in columns)
        levels = [column for column in columns if isinstance(column, LevelColumn)]
        if not levels:
            return TableColumn(source, name, "number", refuses_gaps=refuses_gaps)
        others = [c for c in columns if not isinstance(c, (LevelColumn, FlagColumn))]
        if others or any(set(each.levels.names) != set(levels[0].levels.names) for each in levels):
            raise ValueError(
                f"The column {name!r} is used in several ways, as a category and as a number or as "
                "categories with different levels. Copy it under another name, and fit again."
            )
        return TableColumn(
            source,
            name,
            "category",
            _ordered(levels),
            levels[0].levels.numbered,
            refuses_gaps=refuses_gaps,
            refuses_others=any(column.refuses_others for column in levels),
        )


def _ordered(columns: list[LevelColumn]) -> tuple[str, ...]:
    """Return the levels in the order in which one-hot columns follow each other."""
    names = columns[0].levels.names
    own = [np.flatnonzero(column.values[:-2] == 1.0) for column in columns]
    first = dict.fromkeys(int(hot[0]) for hot in own if len(hot) == 1)
    return tuple(names[p] for p in [*first, *(p for p in range(len(names)) if p not in first)])


def _level_term(at: int, columns: list[LevelColumn], read: TableColumn) -> Term:
    """Return the term of neighbouring columns of one category."""
    names = columns[0].levels.names
    rows = [*(names.index(name) for name in read.levels), -2, -1]
    # of levels or gaps that are refused there is no number
    table = np.nan_to_num(np.stack([column.values for column in columns], axis=1))[rows]
    n, k = len(read.levels), len(columns)
    for gaps in (False, True):
        hot = OneHot(at, min(k - gaps, n), gaps)
        codes = np.array([*range(n), -1.0, np.nan])
        if hot.n_columns == k and np.array_equal(hot.of(codes)[_given(read)], table[_given(read)]):
            return hot
    half = table.astype(np.float16)
    return Lookup(at, half if np.array_equal(half, table) else table.astype(np.float32))


def _given(read: TableColumn) -> list[int]:
    """Return the rows of a table that are ever read."""
    rows = list(range(len(read.levels)))
    rows += [] if read.refuses_others else [len(rows)]
    return rows + ([] if read.refuses_gaps else [len(read.levels) + 1])


def fold_steps(pipeline: Pipeline, n_last: int) -> FoldedSteps:
    """Return the steps of a fitted pipeline but the last ones, folded."""
    check_is_fitted(pipeline)
    # steps that do nothing know nothing of the columns
    first = next(step for _, step in pipeline.steps if hasattr(step, "n_features_in_"))
    n, names = first.n_features_in_, getattr(first, "feature_names_in_", None)
    columns: list[Column] = [LinearColumn(source, None, IDENTITY) for source in range(n)]
    for name, step in pipeline.steps[: len(pipeline.steps) - n_last]:
        columns = fold_step(name, step, columns)
    return FoldedSteps(columns, n, names)


def from_pipeline(pipeline: Any) -> Any:
    """Return the model at the end of a fitted pipeline, with the other steps inside.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted, with a :class:`~nysplus.NystroemClassifier` or :class:`~nysplus.NystroemRegressor`
        as its last step, and before it scikit-learn's ``StandardScaler``, ``MinMaxScaler``,
        ``MaxAbsScaler``, ``RobustScaler``, ``QuantileTransformer``, ``PowerTransformer``,
        ``SimpleImputer``, ``OneHotEncoder``, ``OrdinalEncoder``, or a ``ColumnTransformer`` or
        ``Pipeline`` of these.

    Returns
    -------
    NystroemClassifier or NystroemRegressor
        A fitted copy, which predicts from the rows or the frame that the pipeline was fitted to.
        It can be saved and exported. Columns of a frame are found by their names. Gaps and levels
        that the pipeline refuses are refused; exported models, which cannot refuse them, take them
        as some number, and levels as none.

    Notes
    -----
    Predictions agree to about 1e-6: ``QuantileTransformer(output_distribution="normal")`` becomes
    a piecewise-linear function with about 7,000 knots, 86 kB a column, and other numbers have
    float32 precision or better.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from nysplus import NystroemClassifier, from_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), NystroemClassifier(20, random_state=0)).fit(X, y)
    >>> model = from_pipeline(pipeline)
    >>> bool(np.allclose(model.predict_proba(X), pipeline.predict_proba(X)))
    True
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"from_pipeline expects a Pipeline, got {type(pipeline).__name__}.")
    name, last = pipeline.steps[-1]
    if not hasattr(last, "expansion_"):
        check_is_fitted(pipeline)
        raise TypeError(
            f"The last step {name!r} of the pipeline is a {type(last).__name__}. It must be a "
            "NystroemClassifier or a NystroemRegressor; nysplus.from_svc imports pipelines that "
            "end in an SVC, SVR or KernelRidge."
        )
    if all(step in (None, "passthrough") for _, step in pipeline.steps[:-1]):
        return copy(last)
    if last.expansion_.encoder is not None:
        raise ValueError(
            f"The last step {name!r} of the pipeline has an encoder of its own. Leave out the "
            "other steps, which it makes unnecessary, or fit with encoder=None."
        )
    expansion, columns = fold_steps(pipeline, 1).around(last.expansion_)
    model = copy(last)
    model._adopt(replace(last._model.without_sums(), expansion=expansion, columns=columns))
    return model


def as_model(model: Any) -> Any:
    """Return the model of a pipeline, or the model itself."""
    return from_pipeline(model) if isinstance(model, Pipeline) else model
