"""Rows and targets on a cluster that are refused."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sampling import sampled

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
from dask_rows import (
    MARKS,
    NAMES,
    PLACES,
    D,
    N,
    as_array,
    as_delayed,
    as_frame,
    bounds_of,
    make_classifier,
)

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = MARKS


@sampled(
    ("anywhere", "value", "container"),
    PLACES,
    [np.nan, np.inf],
    ["array", "frame", "delayed"],
    indirect=["anywhere"],
)
def test_bad_entry_is_named(anywhere, data, value, container):
    X, y, _ = data
    X[127, 3] = value
    given = {
        "array": lambda: (da.from_array(X, (60, D)), da.from_array(y, 60)),
        "frame": lambda: (as_frame(X, y), "label"),
        "delayed": lambda: (as_delayed(X, y, cut=[(i, i + 60) for i in range(0, N, 60)]),),
    }[container]()
    column = "'x3'" if container == "frame" else "3"
    where = rf"row 7 of (partition|block) 2; counted from 0\)?, column {column}"
    with pytest.raises(ValueError, match=f"X contains .*{where}"):
        make_classifier().fit(*given)


UNLIKE = {
    "columns": lambda X, y, w: (X[:, 1:], y, w),
    "no y": lambda X, y, w: (X, None, w),
    "y of several columns": lambda X, y, w: (X, np.c_[y, y], w),
    "length of y": lambda X, y, w: (X, y[1:], w),
    "no weights": lambda X, y, w: (X, y, None),
    "sparse": lambda X, y, w: (sp.csr_matrix(X), y, w),
    "order of columns": lambda X, y, w: (X[NAMES[::-1]], y, w),
    "names of columns": lambda X, y, w: (X.rename(columns={"x0": "z"}), y, w),
    "text": lambda X, y, w: (X.astype(str) + "a", y, w),
    "negative weights": lambda X, y, w: (X, y, w - 5),
    "missing labels": lambda X, y, w: (X, np.where(y > 1, np.nan, y), w),
    "fractions": lambda X, y, w: (X, y + 0.5, w),
}


@sampled(("anywhere", "what"), PLACES, UNLIKE.keys(), indirect=["anywhere"])
def test_a_partition_unlike_the_others(anywhere, data, what):
    X, y, w = data
    X = pd.DataFrame(X, columns=NAMES) if "of columns" in what or what == "text" else X
    cut = bounds_of(4)
    blocks = [(X[i:j], y[i:j], w[i:j]) for i, j in cut]
    blocks[2] = UNLIKE[what](*blocks[2])
    named = "Unknown label type" if what == "fractions" else "(partition|block) 2"
    with pytest.raises(ValueError, match=named):
        make_classifier().fit([dask.delayed(block) for block in blocks])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda X, y: (as_array(X), as_array(y)[1:]), "X has 240 rows, y has 239"),
        (lambda X, y: (as_array(X), y[1:]), "X has 240 rows, y has 239"),
        (lambda X, y: (as_array(X), as_array(y), y[1:]), "X has 240 rows, sample_weight has 239"),
        (lambda X, y: (as_array(X), None), "requires y to be passed"),
        (lambda X, y: (as_array(X), "label"), "label"),
        (lambda X, y: (as_array(X), as_array(0 * y)), "one class only"),
        (lambda X, y: (as_array(X), as_array(y + 0.5)), "Unknown label type: continuous"),
        (lambda X, y: (as_array(X), as_array(y), as_array(0.0 * y)), "weights are zero|one class"),
        (lambda X, y: (as_array(X)[:0], as_array(y)[:0]), "no rows"),
        (lambda X, y: (as_delayed(X, y), y), "Delayed blocks bring y"),
        (lambda X, y: (as_frame(X, y), "nope"), r"no columns \['nope'\]\. It has \['x0', 'label'"),
        (lambda X, y: (as_frame(X, y), "label", "nope"), r"no columns \['nope'\]"),
        (lambda X, y: (as_frame(X, y), ["x0", "nope"]), r"no columns \['nope'\]"),
        (lambda X, y: (as_frame(X, y), None), "requires y to be passed"),
        (lambda X, y: (as_frame(X), as_frame(X, y, None, 3)["label"]), "different numbers of part"),
        (lambda X, y: (as_frame(X), y), "y"),
        (
            lambda X, y: (as_frame(X, y).assign(text="a"), "label"),
            "text|does not turn into numbers",
        ),
        (lambda X, y: (as_array(X).astype(str), as_array(y)), "no type of number"),
    ],
)
def test_what_cannot_be_fitted(anywhere, data, given, message):
    with pytest.raises(ValueError, match=message):
        make_classifier().fit(*given(*data[:2]))


def test_other_columns_than_in_the_fit(anywhere, data):
    X, y, _ = data
    model = make_classifier().fit(as_frame(X, y), "label")
    with pytest.raises((ValueError, KeyError), match="x3"):
        model.predict(as_frame(X)[NAMES[:3]])
    with pytest.raises(ValueError, match="x3"):
        model.score(as_frame(X, y)[[*NAMES[:3], "label"]], "label")
    model = make_classifier().fit(as_array(X), as_array(y))
    with pytest.raises(ValueError, match="3 features, but NystroemClassifier is expecting 4"):
        model.predict(as_array(X)[:, :3]).compute()
    with pytest.raises(ValueError, match="3 features, but NystroemClassifier is expecting 4"):
        model.score(as_array(X)[:, :3], as_array(y))
