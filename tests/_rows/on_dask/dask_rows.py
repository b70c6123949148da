"""The same rows in every Dask container."""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from nysplus import NystroemClassifier, NystroemRegressor

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
# Marks of all tests with a cluster.
MARKS = [
    pytest.mark.slow,
    # twelve landmarks are few for the rarest of the three classes
    pytest.mark.filterwarnings("ignore:The model predicts .* for none of their own training rows"),
    # a cluster that stops leaves sockets and subprocess handles to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLACES = ["cluster", "no client"]
N, D = 240, 4
NAMES = [f"x{j}" for j in range(D)]
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1}


def bounds_of(n_parts, empty=None):
    """Return uneven bounds of partitions; one of them without rows, if wished."""
    bounds = np.linspace(0, N, n_parts + 1).astype(int)
    bounds[1:-1] += np.arange(n_parts - 1) % 3 * 5
    if empty is not None:
        bounds[empty + 1] = bounds[empty]
    return list(pairwise(bounds))


def as_delayed(*arrays, cut=None):
    return [dask.delayed(tuple(a[i:j] for a in arrays)) for i, j in cut or bounds_of(4)]


def as_array(values, cut=None):
    cut = cut or bounds_of(4)
    sizes = tuple(int(j - i) for i, j in cut)
    return da.from_array(values, chunks=(sizes, *values.shape[1:]))


def as_frame(X, y=None, w=None, npartitions=4):
    frame = pd.DataFrame(X, columns=NAMES)
    if y is not None:
        frame.insert(1, "label", y)
    if w is not None:
        frame["w"] = w
    return dd.from_pandas(frame, npartitions=npartitions)


def assert_same(model, memory):
    for name in ("gamma_", "alpha_"):
        np.testing.assert_allclose(getattr(model, name), getattr(memory, name), rtol=1e-8)
    np.testing.assert_allclose(model.landmarks_, memory.landmarks_, rtol=1e-8, atol=1e-12)
    for name in ("dual_coef_", "intercept_"):
        got, expected = getattr(model, name), getattr(memory, name)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    if hasattr(memory, "classes_"):
        np.testing.assert_array_equal(model.classes_, memory.classes_)


def make_classifier(n=12, **parameters):
    """A rule with passes over all rows, unless another one is asked for."""
    return NystroemClassifier(n, random_state=0, **{"selection": "negative-margin"} | parameters)


TARGETS = {
    "binary": lambda X, y: (NystroemClassifier, y > 0),
    "text": lambda X, y: (NystroemClassifier, np.array(["no", "yes", "or"], dtype=object)[y]),
    "several classes": lambda X, y: (NystroemClassifier, y),
    "labels": lambda X, y: (NystroemClassifier, (X[:, :3] > 0).astype(int)),
    "values": lambda X, y: (NystroemRegressor, np.sin(X[:, 0]) + X[:, 1]),
    "several outputs": lambda X, y: (NystroemRegressor, np.sin(X[:, :2])),
}


CONTAINERS = {
    "arrays": lambda X, y, w: (as_array(X), as_array(y), as_array(w)),
    "an empty partition first": lambda X, y, w: [as_array(v, bounds_of(4, 0)) for v in (X, y, w)],
    "an empty partition between": lambda X, y, w: [as_array(v, bounds_of(4, 2)) for v in (X, y, w)],
    "columns in chunks": lambda X, y, w: (as_array(X).rechunk((None, 3)), as_array(y), as_array(w)),
    "other chunks of y": lambda X, y, w: (as_array(X), da.from_array(y, 70), da.from_array(w, 31)),
    "NumPy beside": lambda X, y, w: (as_array(X), y, list(w)),
    "sizes unknown": lambda X, y, w: [
        as_frame(X, y, w)[name].to_dask_array() for name in (NAMES, "label", "w")
    ],
    "rows of X unknown": lambda X, y, w: (
        as_frame(X)[NAMES].to_dask_array(),
        da.from_array(y, 60),
        da.from_array(w, 60),
    ),
    "frame": lambda X, y, w: (as_frame(X, y, w), "label", "w"),
    "frame and series": lambda X, y, w: (
        as_frame(X, y, w)[NAMES],
        as_frame(X, y, w)["label"],
        as_frame(X, y, w)["w"],
    ),
    "frame with an empty partition": lambda X, y, w: (
        dd.concat([as_frame(X[i:j], y[i:j], w[i:j], 1) for i, j in bounds_of(4, 2)]),
        "label",
        "w",
    ),
    "delayed": lambda X, y, w: (as_delayed(X, y, w),),
    "delayed with an empty one": lambda X, y, w: (as_delayed(X, y, w, cut=bounds_of(4, 1)),),
    "delayed sparse": lambda X, y, w: (
        [dask.delayed((sp.csr_matrix(X[i:j]), y[i:j], w[i:j])) for i, j in bounds_of(4)],
    ),
}


def _counted(block, number, folder, fatal=None):
    """Return a block and note that; kill the process in the call with the number `fatal`, once."""
    calls = Path(folder) / f"calls-{number}"
    with calls.open("a") as file:
        file.write(".")
    if calls.stat().st_size == fatal:
        flag = Path(folder) / f"killed-{number}"
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def counting(folder, X, y, fatal=None):
    """Return delayed blocks that note when they are made; `fatal` is a call for each partition."""
    Path(folder).mkdir(exist_ok=True)
    make = dask.delayed(_counted, pure=False)
    return [
        make((X[i:j], y[i:j]), number, str(folder), (fatal or {}).get(number))
        for number, (i, j) in enumerate(bounds_of(4))
    ]


def calls_in(folder):
    return [Path(folder, f"calls-{number}").stat().st_size for number in range(4)]
