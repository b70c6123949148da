"""Open the rows that an estimator was given.

Arrays are checked and become blocks at once; rows from elsewhere are surveyed in a first pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from nysplus._rows.blocks import Blocks, RowBlocks
from nysplus._rows.dask_collections import is_dask
from nysplus._rows.frames import split_frame
from nysplus._rows.on_dask import DaskBlocks, DaskRows, open_dask
from nysplus._rows.on_disk import Coding, StreamBlocks, look_at_columns, survey_source
from nysplus._rows.readers import Source, is_source, open_source
from nysplus._rows.slicing import float_dtype
from nysplus._rows.target_codes import TargetCode, code_of
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress
from nysplus._typing import Float, Kind
from nysplus._validation import (
    check_dense_targets,
    check_no_class_weight,
    check_rows,
    check_sample_weight,
    check_some_weigh,
    check_table,
    flat_labels,
    sparse_table,
)
from nysplus.encoding import TableEncoder
from nysplus.encoding.frames import take_rows
from nysplus.encoding.schema import TableSchema
from nysplus.encoding.summary import TableSummary

# Number of targets that decide between classes and values, where an estimator takes both.
LOOKED_AT = 1000

Opened = tuple[RowBlocks, TargetCode | None]


@dataclass(frozen=True)
class TargetSpec:
    """The targets that an estimator expects.

    Attributes
    ----------
    kind : {"classes", "values"} or None
        None: targets are ignored.
    class_weight : dict, "balanced" or None
    code : TargetCode, optional
        Code of the targets, where an earlier fit has settled it.
    required : bool
        Whether missing targets raise. If not, targets of the other kind are accepted as well.
    needs_two_classes : bool
        Whether rows of a single class raise. A part of the rows may have one class only.
    needs_weight : bool
        Whether rows that all have the weight zero raise.
    """

    kind: Kind | None
    class_weight: Any = None
    code: TargetCode | None = None
    required: bool = True
    needs_two_classes: bool = True
    needs_weight: bool = True

    def class_factors(self, code: TargetCode, masses: Callable[[], Float]) -> Float | None:
        """Return the weight of one observation of each class, or None where all weigh 1."""
        return code.class_factors(self.class_weight, self.needs_two_classes, masses)


@dataclass(frozen=True)
class RowsToOpen:
    """Rows before the first pass over them.

    Attributes
    ----------
    n_features : int
    dtype : dtype
        Floating type of the rows.
    kind : {"classes", "values"} or None
        Kind of the targets; None where there are none or they are ignored.
    open : callable
        Returns the rows as blocks, and the code of their targets.
    """

    n_features: int
    dtype: np.dtype[Any]
    kind: Kind | None
    open: Callable[[Progress, Journal], Opened]


def open_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    spec: TargetSpec,
    reset: bool = True,
    encoder: TableEncoder | None = None,
) -> RowsToOpen:
    """Check rows as far as possible without a pass over rows from elsewhere.

    Parameters
    ----------
    estimator : object
        At the beginning of a fit `n_features_in_` and `feature_names_in_` are set; later the rows
        are compared with them.
    X, y, sample_weight : object
        Anything that `fit` accepts.
    spec : TargetSpec
    reset : bool
        Whether this is the beginning of a fit.
    encoder : TableEncoder, optional
        At the beginning of a fit: rows become the raw numbers of a table, and `_schema` is set on
        the estimator, for rows from elsewhere when they are opened. Later the rows are read by
        that schema. Sparse rows are no table.
    """
    if reset:
        estimator.__dict__.pop("_schema", None)
    is_table = (encoder if reset else schema_of(estimator)) is not None
    source = open_elsewhere(estimator, X, y, sample_weight, reset, is_table)
    if source is None:
        known = None if reset else getattr(estimator, "feature_names_in_", None)
        X, y, sample_weight = split_frame(X, y, sample_weight, known)
    given = y is not None if source is None else source.has_targets
    if spec.kind is not None and not spec.required:
        spec = replace(spec, kind=_kind_of(y, source) if given else None)
    if source is None:
        is_table = is_table and not (reset and sp.issparse(X))
        return _arrays(estimator, X, y, sample_weight, spec, reset, encoder if is_table else None)
    if spec.kind is not None and not given:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Name "
            "the column with y=…, or give blocks (X, y)."
        )

    def opened(progress: Progress, journal: Journal) -> Opened:
        if source.is_table and reset:
            assert encoder is not None
            summary = _columns(source, encoder, progress)
            check_some_weigh(summary.n_rows)
            estimator._schema = source.schema = encoder.schema(summary)
        return _surveyed(source, spec, progress, journal)

    return RowsToOpen(source.n_features, float_dtype(source.dtype), spec.kind, opened)


def _kind_of(y: Any, source: Source | DaskRows | None) -> Kind:
    """Return the kind of the targets, judging by the first of them."""
    some = y if source is None else source.first_targets(LOOKED_AT)
    return "values" if type_of_target(some).startswith("continuous") else "classes"


def _arrays(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    spec: TargetSpec,
    reset: bool,
    encoder: TableEncoder | None,
) -> RowsToOpen:
    """Check rows in memory, and return them as blocks."""
    code, targets, factors = spec.code, None, None
    if spec.kind is not None:
        check_dense_targets(y, indicator=spec.kind != "values")
    if encoder is not None or (not reset and schema_of(estimator)):
        X = _read_table(estimator, X, sample_weight, reset, encoder)
        if spec.kind is not None:
            X, y = check_X_y(
                X, y, dtype=None, ensure_all_finite="allow-nan", multi_output=True,
                estimator=estimator,
            )  # fmt: skip
    elif spec.kind is None:
        X = check_rows(estimator, X, reset=reset)
    else:
        X, y = check_rows(estimator, X, y, reset=reset, multi_output=True)
    if spec.kind == "classes":
        y = flat_labels(y)
    weight = check_sample_weight(sample_weight, X)
    if weight is not None and spec.needs_weight:
        check_some_weigh(int(np.count_nonzero(weight)))
    if spec.kind is not None:
        code = code or code_of(spec.kind, y.shape[1:], y)
        targets = code.encode(y)
        by_class = spec.class_factors(code, lambda: targets.masses(weight))
        factors = targets.of_class(by_class)
    blocks = Blocks(X, targets, weight, factors)
    return RowsToOpen(
        blocks.n_features,
        blocks.dtype,
        spec.kind,
        lambda progress, journal: (replace(blocks, progress=progress, journal=journal), code),
    )


def schema_of(estimator: Any) -> TableSchema | None:
    """Return how the columns of an estimator's tables are read; None for rows of numbers."""
    schema: TableSchema | None = getattr(estimator, "_schema", None)
    return schema


def _read_table(
    estimator: Any, X: Any, sample_weight: Any, reset: bool, encoder: TableEncoder | None
) -> Float:
    """Return the raw numbers of a table in memory; a fit finds out how to read it."""
    X = check_table(estimator, X, reset)
    if reset:
        assert encoder is not None
        weight = check_sample_weight(sample_weight, X)
        counted = X
        if weight is not None and 0 < np.count_nonzero(weight) < len(weight):
            counted = take_rows(X, np.flatnonzero(weight))
        estimator._schema = encoder.schema(encoder.summary(counted))
    schema = schema_of(estimator)
    assert schema is not None
    return schema.read(X)


def used_names(estimator: Any) -> Any:
    """Return the names of the columns that a fitted estimator reads; None where it knows none."""
    schema = schema_of(estimator)
    if schema is None:
        return getattr(estimator, "feature_names_in_", None)
    return None if schema.names is None else [column.name for column in schema.columns]


def open_elsewhere(
    estimator: Any, X: Any, y: Any, sample_weight: Any, reset: bool, is_table: bool
) -> Source | DaskRows | None:
    """Return a source of rows from elsewhere with the estimator's columns, or None for arrays."""
    names = None if reset else used_names(estimator)
    width = None if reset else estimator.n_features_in_
    source: Source | DaskRows | None
    if is_dask(X):
        source = open_dask(X, y, sample_weight, names, is_table)
    else:
        base: Any = "auto" if reset else getattr(estimator, "_zero_based", "auto")
        source = open_source(X, y, sample_weight, names, width, base, is_table)
    if source is None:
        return None
    if reset:
        estimator.n_features_in_ = source.n_features
        estimator._zero_based = getattr(source, "zero_based", "auto")
        estimator.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
    elif is_table:
        if source.sparse:
            raise sparse_table()
        source.schema = schema_of(estimator)
    elif names is not None and source.feature_names not in (None, tuple(names)):
        raise ValueError(
            "The feature names should match those that were passed during fit: got columns "
            f"{list(source.feature_names or ())}, expected {list(names)}."
        )
    elif source.n_features != width:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{width} features as input."
        )
    return source


def _columns(source: Source | DaskRows, encoder: TableEncoder, progress: Progress) -> TableSummary:
    """Return the summary of a table's columns, in a pass over its rows."""
    if isinstance(source, DaskRows):
        return source.look_at_columns(encoder, progress)
    return look_at_columns(source, encoder, progress)


def _surveyed(
    source: Source | DaskRows, spec: TargetSpec, progress: Progress, journal: Journal
) -> Opened:
    """Survey all rows of a source in one pass, and return them as blocks."""
    make: Callable[..., RowBlocks]
    if isinstance(source, DaskRows):
        seen, make = source.survey(spec.kind, progress), partial(DaskBlocks, rows=source)
    else:
        seen = survey_source(source, spec.kind, progress)
        make = partial(StreamBlocks, source=source)
    if seen.n_rows == 0:
        raise ValueError("X has no rows. Pass at least one.")
    if spec.needs_weight:
        check_some_weigh(seen.n_candidates)
    code = spec.code
    if spec.kind is not None:
        code = code or seen.code(spec.kind)
        code.encode(np.zeros((0, *(seen.y_shape or ()))))  # another number of columns raises
    factors = None
    if code is None:
        check_no_class_weight(spec.class_weight)
    else:
        factors = spec.class_factors(code, partial(seen.masses_of, code))
    coding = Coding(float_dtype(source.dtype), code, factors)
    return make(seen, coding, progress, journal), code


def is_elsewhere(X: Any) -> bool:
    """Return whether rows are on disk, on a cluster or made by the user's code."""
    return is_dask(X) or is_source(X)
