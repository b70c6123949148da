"""Dask collections: their partitions along the rows, and functions applied to them lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Names = tuple[str, ...] | None


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, or a list of delayed blocks."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    return type(first).__module__.partition(".")[0] in {"dask", "dask_expr"}


def feature_names(X: Any, y: Any, sample_weight: Any, features: Any) -> tuple[str, ...]:
    """Return the columns of a data frame that are features."""
    taken = [name for name in (y, sample_weight) if isinstance(name, str)]
    if isinstance(y, list):
        taken += y
    names = [name for name in X.columns if name not in taken] if features is None else features
    missing = [name for name in [*taken, *names] if name not in X.columns]
    if missing:
        raise ValueError(f"X has no columns {missing}. It has {list(X.columns)}.")
    return tuple(names)


def partitions(X: Any, y: Any, sample_weight: Any, names: Names) -> list[Any]:
    """Return ``(X, y, sample_weight)`` of delayed parts, or delayed ones, for each partition."""
    if isinstance(X, (list, tuple)):
        if y is not None or sample_weight is not None:
            raise ValueError("Delayed blocks bring y and sample_weight along: leave both None.")
        return list(X)
    if names is None:
        X = X.rechunk({1: X.shape[1]})
        columns = [X, _beside(X, "y", y), _beside(X, "sample_weight", sample_weight)]
    else:
        columns = [X[list(names)], _column(X, "y", y), _column(X, "sample_weight", sample_weight)]
    rows = [None if column is None else _pieces(column) for column in columns]
    counts = {len(pieces) for pieces in rows if pieces is not None}
    if len(counts) > 1:
        raise ValueError(
            f"X, y and sample_weight have different numbers of partitions, {sorted(counts)}. "
            "Repartition them alike."
        )
    return [
        tuple(None if pieces is None else pieces[number] for pieces in rows)
        for number in range(counts.pop())
    ]


def _beside(X: Any, what: str, values: Any) -> Any:
    """Return targets or weights in the same chunks as the rows of an array."""
    if values is None:
        return None
    if isinstance(values, str):
        raise ValueError(f"{what}={values!r} names a column, and only data frames have names.")
    import dask.array as da

    if not is_dask(values):
        values = da.from_array(np.asarray(values))
    elif hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):
        return values  # unknown sizes cannot be compared, nor rechunked
    if values.shape[0] != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows, {what} has {values.shape[0]}. Pass one entry for each row."
        )
    return values.rechunk((X.chunks[0], *((width,) for width in values.shape[1:])))


def _column(X: Any, what: str, values: Any) -> Any:
    """Return a column that is named, or given as a series."""
    if values is not None and not isinstance(values, (str, list)) and not is_dask(values):
        raise ValueError(
            f"{what} is a {type(values).__name__} and X a Dask data frame, whose partitions have "
            "unknown numbers of rows. Pass the name of a column, or a Dask series."
        )
    return X[values] if isinstance(values, (str, list)) else values


def _pieces(collection: Any) -> list[Any]:
    """Return the partitions along the rows as delayed objects."""
    return list(np.ravel(collection.to_delayed()))


def lazily(X: Any, function: Callable[[Any], Any], width: int, names: Iterable[str] | None) -> Any:
    """Return ``function(rows)`` of a collection as a lazy one of the same kind.

    Parameters
    ----------
    X : Dask array, data frame, or list of delayed blocks
    function : callable
        From rows, an array or a data frame, to an array.
    width : int
        Number of features.
    names : iterable of str, optional
        Columns of a data frame that are features.
    """
    import dask

    if isinstance(X, (list, tuple)):
        return [dask.delayed(_of_block)(block, function) for block in X]
    if hasattr(X, "columns"):
        features = X if names is None else X[list(names)]
        return features.map_partitions(_framed, function)
    example = function(np.zeros((1, width), dtype=X.dtype))
    X = X.rechunk({1: X.shape[1]})
    if example.ndim == 1:
        return X.map_blocks(function, dtype=example.dtype, drop_axis=1, meta=example[:0])
    chunks = X.chunks[0], (example.shape[1],)
    return X.map_blocks(function, dtype=example.dtype, chunks=chunks, meta=example[:0])


def _of_block(block: Any, function: Callable[[Any], Any]) -> Any:
    return function(block[0] if isinstance(block, (list, tuple)) else block)


def _framed(rows: Any, function: Callable[[Any], Any]) -> Any:
    """Return the result for a data frame with its index."""
    import pandas as pd

    result = function(rows)
    kind = pd.Series if result.ndim == 1 else pd.DataFrame
    return kind(result, index=rows.index)
