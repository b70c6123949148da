"""Load a dataset, split and scaled as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from nysplus_experiments.harness.datasets.formats import Array, Arrays, DatasetError
from nysplus_experiments.harness.datasets.publishers import SPLIT_KEYS, check, fetch
from nysplus_experiments.harness.datasets.registry import DATASETS, Dataset, find, not_found, row_of

Scaling = Literal["global", "feature", "standard"]


@dataclass(frozen=True)
class Split:
    """Scaled rows of one trial, gamma, and sentences on every difference from the paper."""

    name: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    gamma: float
    deviations: tuple[str, ...] = ()


def _read(row: Dataset, download: bool) -> Arrays:
    path = find(row.name)
    if path is None and not row.sources[0].files:
        return row.sources[0].parse([])
    if path is None:
        if not download:
            raise not_found(row, "downloading was switched off")
        path = fetch(row.name)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            arrays: Arrays = {key: content[key] for key in content.files}
    except MemoryError:
        raise
    except Exception as error:  # a damaged zip raises a dozen different exceptions
        raise DatasetError(
            f"{path} could not be read as an .npz file of plain arrays ({error}). Delete it and "
            "load again, or convert the publisher's files with `nysplus datasets prepare DIR`."
        ) from error
    check(row, arrays, str(path))
    return arrays


def load(
    name: str,
    trial: int = 0,
    *,
    download: bool = True,
    public_split: bool = False,
    scaling: Scaling | None = None,
    dtype: DTypeLike = np.float64,
) -> Split:
    """Load a dataset, split and scaled as in the paper.

    ``trial`` is the seed of a random split. ``public_split`` takes the publisher's split of a
    dataset that the paper split anew. ``scaling`` replaces the dataset's own: by one range of all
    features, by the range of each feature, or to mean 0 and variance 1 of each feature. Labels are
    as the publisher writes them.
    """
    row, dtype = row_of(name), np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype} is not supported. Use float64 or float32.")
    if not isinstance(trial, int | np.integer) or not 0 <= trial < 2**32:
        raise ValueError(f"trial={trial!r} is not allowed. Use a whole number from 0 to 2**32 - 1.")
    if public_split and row.split != "resplit":
        able = ", ".join(r.name for r in DATASETS.values() if r.split == "resplit")
        raise ValueError(f"public_split=True applies to {able} only, not to {name}. Drop it.")
    arrays = _read(row, download)
    notes = [*row.notes, *(str(note) for note in arrays.get("notes", ()))]
    X, y, X_test, y_test = _divide(row, arrays, int(trial), public_split, notes)
    notes = [*row.count_notes(len(X), len(X_test)), *notes]
    X, X_test = _scale(X, X_test, scaling or row.scaling, dtype)
    y, y_test = y.astype(np.int64), y_test.astype(np.int64)
    return Split(name, X, y, X_test, y_test, row.gamma, tuple(notes))


def _divide(
    row: Dataset, arrays: Arrays, trial: int, public_split: bool, notes: list[str]
) -> tuple[Array, Array, Array, Array]:
    """Return raw training and test rows of one trial; add what was done to ``notes``."""
    if row.split == "fixed" or public_split:
        X, y, X_test, y_test = (arrays[key] for key in SPLIT_KEYS)
        if row.unique:
            return _drop_duplicates(row, X, y, X_test, y_test, notes)
        return X, y, X_test, y_test
    if row.split == "resplit":
        X = np.concatenate([arrays["X_train"], arrays["X_test"]])
        y = np.concatenate([arrays["y_train"], arrays["y_test"]])
        notes.append(
            f"The paper does not say how its rows of {row.title} were split; here the "
            f"{' and '.join(map(str, row.rows))} public rows are pooled and drawn at random for "
            "each trial."
        )
    else:
        X, y = arrays["X"], arrays["y"]
    order = np.random.RandomState(trial).permutation(len(X))
    n_train, n_test = row.counts
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return X[train], y[train], X[test], y[test]


def _drop_duplicates(
    row: Dataset, X: Array, y: Array, X_test: Array, y_test: Array, notes: list[str]
) -> tuple[Array, Array, Array, Array]:
    keep, n_both = _first_occurrences(X, y)
    keep_test, n_both_test = _first_occurrences(X_test, y_test)
    train, test = row_keys(X[keep]), row_keys(X_test[keep_test])
    n_shared = int(np.isin(test, train).sum())
    notes += [
        f"Rows of {row.title} whose features occurred before are dropped: {len(keep)} of {len(X)} "
        f"training rows and {len(keep_test)} of {len(X_test)} test rows are kept.",
        f"{n_both} feature vectors of the training file and {n_both_test} of the test file of "
        f"{row.title} carry both labels; the first label is kept.",
        f"{n_shared} test rows of {row.title} also occur among the training rows.",
    ]
    return X[keep], y[keep], X_test[keep_test], y_test[keep_test]


def row_keys(X: Array) -> Array:
    """Return one comparable item a row; adding 0 makes -0.0 and 0.0 the same bytes."""
    X = np.ascontiguousarray(X + 0)
    return X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()


def _first_occurrences(X: Array, y: Array) -> tuple[Array, int]:
    """Return the first row of each feature vector, in order, and how many carry two labels."""
    _, first, group = np.unique(row_keys(X), return_index=True, return_inverse=True)
    labels, code = np.unique(y, return_inverse=True)
    pairs = np.unique(group * len(labels) + code)
    n_both = int((np.bincount(pairs // len(labels)) > 1).sum())
    return np.sort(first), n_both


def _scale(X: Array, X_test: Array, scaling: Scaling, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Scale by the training range: (x - min) / (max - min), 0 where the range is empty.

    Standardised features have the mean in place of the least value, and the deviation in place of
    the range. Both are taken in float64, so that narrow integer types cannot overflow.
    """
    if scaling == "standard":
        low, span = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    else:
        axis = None if scaling == "global" else 0
        low = np.asarray(X.min(axis=axis), dtype=np.float64)
        span = np.asarray(X.max(axis=axis), dtype=np.float64) - low
    constant = span == 0.0
    scaled = []
    for rows in (X, X_test):
        result = rows.astype(dtype)  # always a copy: scaled in place below
        result -= low.astype(dtype)
        result /= np.where(constant, 1.0, span).astype(dtype)
        result[:, np.broadcast_to(constant, result.shape[1])] = 0.0
        scaled.append(result)
    return scaled[0], scaled[1]
