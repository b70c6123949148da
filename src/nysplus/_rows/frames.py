"""Data frames in memory, whose columns may be named as targets or weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def split_frame(
    X: Any, y: Any = None, sample_weight: Any = None, features: Iterable[str] | None = None
) -> tuple[Any, Any, Any]:
    """Return the features, targets and weights of a data frame; arrays are returned unchanged.

    Parameters
    ----------
    X : pandas or polars data frame, polars LazyFrame, or anything else
        Lazy frames are collected.
    y, sample_weight : str, list of str, array-like or None
        Names of columns of X, which are not features then, or the values themselves.
    features : iterable of str, optional
        The columns of an earlier fit. As in tables on disk, all other columns are ignored.
    """
    names = _column_names(X)
    if names is None:
        for what, given in ("y", y), ("sample_weight", sample_weight):
            if isinstance(given, str):
                raise ValueError(
                    f"{what}={given!r} names a column, and X is a {type(X).__name__} whose columns "
                    f"have no names. Pass {what} as an array with one entry for each row."
                )
        return X, y, sample_weight
    targets, weights = _named(names, "y", y), _named(names, "sample_weight", sample_weight)
    kept = [name for name in names if name not in (*targets, *weights)]
    if features is not None and set(features) <= set(kept):
        kept = [name for name in kept if name in set(features)]
    if not kept:
        raise ValueError(
            f"X has no columns besides those of y and sample_weight. Its columns are {names}."
        )
    if kept != names and len(set(kept)) < len(kept):
        raise ValueError(f"X has several columns of one name. Its columns are {names}.")
    if _is_lazy(X):
        X = X.select(*kept, *dict.fromkeys((*targets, *weights))).collect()
    if targets:
        # column by column: several nullable columns at once become objects
        y = X[y] if isinstance(y, str) else np.column_stack([np.asarray(X[name]) for name in y])
    if weights:
        sample_weight = X[sample_weight]
    return X if kept == names else X[kept], y, sample_weight


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "collect_schema") and hasattr(X, "collect")


def _column_names(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None for anything else."""
    columns = X.collect_schema().names() if _is_lazy(X) else getattr(X, "columns", None)
    return None if columns is None else list(columns)


def _named(names: list[Any], what: str, given: Any) -> tuple[str, ...]:
    """Return the columns that y or sample_weight names: none if it holds the values."""
    if isinstance(given, str):
        if (count := names.count(given)) != 1:
            raise ValueError(
                f"{what}={given!r} is the name of {count or 'no'} columns of X. Name one of "
                f"{list(dict.fromkeys(names))}, or pass {what} as an array."
            )
        return (given,)
    if _are_names(given) and not set(given).isdisjoint(names):
        return tuple(name for each in given for name in _named(names, what, each))
    return ()


def _are_names(given: Any) -> bool:
    """Return whether `given` is a list of distinct texts: the classes of rows would repeat."""
    texts = isinstance(given, list) and all(isinstance(each, str) for each in given)
    return texts and len(set(given)) == len(given)
