"""Estimate the time and memory of a fit from two small fits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from nysplus._bytes.budget import ModelShape, make_budget, most_landmarks
from nysplus._ridge.solvers import direct_bytes
from nysplus._rows.slicing import MAX_BLOCK_ROWS
from nysplus._runtime.memory import working_bytes
from nysplus._runtime.threads import thread_count
from nysplus._typing import Kind
from nysplus.landmarks import GivenLandmarks, make_selector

# Rows of the larger fit: more than any stage of a fit samples, so that time grows linearly beyond.
TRIAL_ROWS = 60_000
# Operations and bytes of the larger fit, at most: some seconds on a laptop core.
TRIAL_OPERATIONS = 2e11
TRIAL_BYTES = 2e8


@dataclass(frozen=True)
class Cost:
    """Estimated cost of a fit on this machine.

    Attributes
    ----------
    seconds : float
        Computing time. Reading from disk overlaps with it, and dominates where it is slower.
    bytes : int
        Memory beside the rows themselves and the libraries.
    passes : int
        Passes over rows in memory. Files are also read once before, and once for each set of
        rows that is drawn from them.
    """

    seconds: float
    bytes: int
    passes: int

    def __str__(self) -> str:
        return f"{self.seconds:,.1f} s, {self.bytes / 2**20:,.0f} MiB, {self.passes} passes"


def estimate(estimator: Any, shape: tuple[int, int], rows: tuple[Any, Any]) -> Cost:
    """Fit `estimator` to two small sets of rows and extrapolate their times linearly.

    Parameters
    ----------
    estimator : estimator
        Not changed.
    shape : tuple of int
        Rows and features of the fit to be estimated.
    rows : tuple of arrays
        Typical X and y, any number of rows.
    """
    (n_rows, n_features), (X, y) = shape, rows
    n = _n_landmarks(estimator, shape)
    large = min(n_rows, _trial_rows(n, n_features))
    small = max(1, min(large, large // 2))
    take = np.arange(large) % len(y)  # few typical rows are repeated
    X, y = X[take], y[take]
    warm = min(small, 2 * n + 100)
    _timed(estimator, X[:warm], y[:warm])
    first, passes = _timed(estimator, X[:small], y[:small])
    second = first if small == large else _timed(estimator, X, y)[0]
    slope = max(second - first, 0.0) / max(large - small, 1)
    seconds = second + slope * (n_rows - large)
    return Cost(seconds, _bytes(n, n_features, n_rows), passes)


def invented_rows(
    n_features: int, dtype: npt.DTypeLike, kind: Kind, n_outputs: int | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return normally distributed rows with classes or values that a kernel machine can learn."""
    rng = np.random.RandomState(0)
    n_rows = min(TRIAL_ROWS, int(TRIAL_BYTES / (8 * n_features)))
    X = rng.standard_normal((n_rows, n_features))
    width = n_outputs or (2 if kind == "classes" else 1)
    directions = rng.standard_normal((n_features, width)) / np.sqrt(n_features)
    values = np.sin(2.0 * X @ directions)
    if kind == "values":
        return X.astype(dtype), values
    values += 0.5 * rng.standard_normal(values.shape)
    return X.astype(dtype), values.argmax(axis=1)


def _n_landmarks(estimator: Any, shape: tuple[int, int]) -> int:
    """Return the largest number of landmarks that the fit may have."""
    budget = make_budget(getattr(estimator, "budget", None))  # the transformer has none
    if budget is not None:
        n_rows, n_features = shape
        room = budget.landmarks(ModelShape(n_features, 1), "int8")
        return max(1, min(room, most_landmarks(n_rows)))
    selector = make_selector(estimator.selection)
    given = isinstance(selector, GivenLandmarks)
    return int(selector.points.shape[0] if given else estimator.n_components)


def _trial_rows(n: int, d: int) -> int:
    by_work = TRIAL_OPERATIONS / (n * (2 * d + 2.2 * n))
    return int(max(min(TRIAL_ROWS, by_work, TRIAL_BYTES / (8 * d)), 4 * n, 100))


def _timed(estimator: Any, X: Any, y: Any) -> tuple[float, int]:
    model = clone(estimator).set_params(verbose=0)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, model.n_passes_


def _bytes(n: int, d: int, n_rows: int) -> int:
    """Return the bytes of the n × n matrices and of blocks of rows with their kernel values."""
    row_bytes = 8 * (2 * d + 3 * n)
    blocks = thread_count() * min(n_rows, MAX_BLOCK_ROWS) * row_bytes
    return int(direct_bytes(n) + min(blocks, working_bytes()))
