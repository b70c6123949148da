"""Apply a fitted function to rows wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from nysplus._rows.dask_collections import is_dask, lazily
from nysplus._rows.frames import split_frame
from nysplus._rows.on_disk import read
from nysplus._rows.opening import open_elsewhere, schema_of, used_names
from nysplus._rows.readers import Source
from nysplus._validation import check_rows, check_table


def apply_to_rows(estimator: Any, X: Any, function: Callable[[Any], Any]) -> Any:
    """Return ``function(rows)`` of all rows, lazily for Dask and chunk by chunk from elsewhere.

    Parameters
    ----------
    estimator : estimator
        Whose columns the rows are checked against.
    X : rows, as for `fit`
    function : callable
        From checked rows to an array with an entry for each; can be pickled.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if is_dask(X):
        columns = copy(estimator)
        columns.__dict__.pop("_model", None)  # the function is all that workers need
        work = partial(_on_worker, columns, function)
        return lazily(X, work, estimator.n_features_in_, used_names(estimator))
    is_table = schema_of(estimator) is not None
    source = open_elsewhere(estimator, X, None, None, reset=False, is_table=is_table)
    if source is None:
        X, _, _ = split_frame(X, features=names)
        return function(_checked(estimator, X))
    assert isinstance(source, Source)
    return np.concatenate([function(chunk.X) for chunk in read(source)])


def _on_worker(estimator: Any, function: Callable[[Any], Any], X: Any) -> Any:
    """Check the rows of a partition, which may have none, and return ``function(rows)``."""
    return function(_checked(estimator, X, 0))


def _checked(estimator: Any, X: Any, least_rows: int = 1) -> Any:
    """Return rows in memory as numbers: those of a table by its schema."""
    schema = schema_of(estimator)
    if schema is None:
        return check_rows(estimator, X, reset=False, ensure_min_samples=least_rows)
    return schema.read(check_table(estimator, X, False, least_rows))
