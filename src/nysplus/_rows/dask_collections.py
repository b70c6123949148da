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
    if names is not None:
        return _of_frame(X, y, sample_weight, names)
    X = X.rechunk({1: X.shape[1]})
    rows = [X, _beside(X, "y", y), _beside(X, "sample_weight", sample_weight)]
    return _side_by_side(rows)


def _of_frame(X: Any, y: Any, sample_weight: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the partitions of a data frame, with targets and weights among its columns or apart.

    All columns are partitions of one frame: Dask reads fewer and larger partitions of a file
    where fewer of its columns are needed.
    """
    import dask

    beside = {"y": y, "sample_weight": sample_weight}
    named = {what: column for what, column in beside.items() if isinstance(column, (str, list))}
    for what, values in beside.items():
        if values is not None and what not in named and not is_dask(values):
            raise ValueError(
                f"{what} is a {type(values).__name__} and X a Dask data frame, whose partitions "
                "have unknown numbers of rows. Pass the name of a column, or a Dask series."
            )
    columns = list(names)
    for column in named.values():
        columns += [name for name in np.atleast_1d(column).tolist() if name not in columns]
    apart = [None if what in named else values for what, values in beside.items()]
    part = dask.delayed(_columns)
    return [
        part(table, list(names), named.get("y", own_y), named.get("sample_weight", own_weight))
        for table, own_y, own_weight in _side_by_side([X[columns], *apart])
    ]


def _columns(table: Any, names: list[str], y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return rows, targets and weights of a partition; the last two are given, or columns."""
    found = [
        table[column] if isinstance(column, (str, list)) else column
        for column in (y, sample_weight)
    ]
    return table[names], found[0], found[1]


def _side_by_side(collections: list[Any]) -> list[tuple[Any, ...]]:
    """Return the delayed partitions of several collections that belong together; some are None."""
    given = [collection for collection in collections if collection is not None]
    counts = {collection.npartitions for collection in given}
    if len(counts) > 1:
        raise ValueError(
            f"X, y and sample_weight have different numbers of partitions, {sorted(counts)}. "
            "Repartition data frames alike, or pass names of columns; call compute_chunk_sizes() "
            "on arrays of unknown length."
        )
    found = [_pieces(collection) for collection in given]
    if len(given) > 1 and any(len(pieces) not in counts for pieces in found):
        # Dask has joined some partitions of a file, and not those of every collection
        found = [_pieces(collection, optimize_graph=False) for collection in given]
    waiting = iter(found)
    n_pieces = len(found[0])
    rows = [[None] * n_pieces if each is None else next(waiting) for each in collections]
    return list(zip(*rows, strict=True))


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


def _pieces(collection: Any, optimize_graph: bool = True) -> list[Any]:
    """Return the partitions along the rows as delayed objects."""
    return list(np.ravel(collection.to_delayed(optimize_graph=optimize_graph)))


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
        from dask.dataframe.utils import make_meta

        features = X if names is None else X[list(feature_names(X, None, None, names))]
        # not computed for rows that Dask makes up, which need not be of the kind of an object
        meta = _framed(make_meta(features), function)
        return features.map_partitions(_framed, function, meta=meta)
    example = function(np.zeros((0, width), dtype=X.dtype))
    X = X.rechunk({1: X.shape[1]})
    if example.ndim == 1:
        return X.map_blocks(function, dtype=example.dtype, drop_axis=1, meta=example)
    chunks = X.chunks[0], *((width,) for width in example.shape[1:])
    new = list(range(2, example.ndim)) or None
    return X.map_blocks(function, dtype=example.dtype, chunks=chunks, new_axis=new, meta=example)


def _of_block(block: Any, function: Callable[[Any], Any]) -> Any:
    return function(block[0] if isinstance(block, (list, tuple)) else block)


def _framed(rows: Any, function: Callable[[Any], Any]) -> Any:
    """Return the result for a data frame with its index."""
    import pandas as pd

    result = function(rows)
    kind = pd.Series if result.ndim == 1 else pd.DataFrame
    return kind(result, index=rows.index)
