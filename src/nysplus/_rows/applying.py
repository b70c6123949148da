"""Apply a fitted function to rows wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from nysplus._rows.dask_collections import is_dask, lazily
from nysplus._rows.on_disk import read
from nysplus._rows.opening import open_elsewhere
from nysplus._rows.readers import Source
from nysplus._validation import check_rows


def apply_to_rows(estimator: Any, X: Any, method: Callable[[Any], Any]) -> Any:
    """Return ``method(rows)`` of all rows, lazily for Dask and chunk by chunk from elsewhere.

    Parameters
    ----------
    estimator : object
        Fitted.
    X : rows, as for `fit`
    method : callable
        A method of `estimator`, from checked rows to an array with an entry for each.
    """
    if is_dask(X):
        names = getattr(estimator, "feature_names_in_", None)
        sent = copy(estimator)
        sent.__dict__.pop("_running", None)  # workers need no sums of partial_fit
        work = partial(_on_worker, sent, method.__name__)
        return lazily(X, work, estimator.n_features_in_, names)
    source = open_elsewhere(estimator, X, None, None, reset=False)
    if source is None:
        return method(check_rows(estimator, X, reset=False))
    assert isinstance(source, Source)
    return np.concatenate([method(chunk.X) for chunk in read(source)])


def _on_worker(estimator: Any, name: str, X: Any) -> Any:
    """Return the result of a method for a partition, which may have no rows."""
    return getattr(estimator, name)(check_rows(estimator, X, reset=False, ensure_min_samples=0))
