"""Predictions for Dask collections are lazy."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sampling import sampled

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
from dask_rows import (
    MARKS,
    NAMES,
    PLACES,
    TARGETS,
    D,
    N,
    as_array,
    as_frame,
    bounds_of,
    counting,
    make_classifier,
)

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = MARKS


@sampled(("anywhere", "target"), PLACES, TARGETS.keys(), indirect=["anywhere"])
def test_predictions_are_lazy(anywhere, data, target):
    X, y, _ = data
    kind, y = TARGETS[target](X, y)
    model = kind(12, random_state=0).fit(X, y)
    rows = as_array(X)
    for method in ("predict", "decision_function")[: 1 + hasattr(model, "decision_function")]:
        expected = getattr(model, method)(X)
        lazy = getattr(model, method)(rows)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == expected.dtype
        assert lazy.shape == expected.shape
        assert lazy.chunks[0] == rows.chunks[0]
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)
        else:
            np.testing.assert_array_equal(lazy.compute(), expected)


@sampled(("anywhere", "target"), PLACES, TARGETS.keys(), indirect=["anywhere"])
def test_predictions_of_a_frame_keep_its_index(anywhere, data, target):
    X, y, _ = data
    kind, y = TARGETS[target](X, y)
    model = kind(12, random_state=0).fit(pd.DataFrame(X, columns=NAMES), y)
    table = pd.DataFrame(X, columns=NAMES, index=np.arange(N) * 3)[NAMES[::-1]]
    table.insert(2, "other", "text")
    frame = dd.from_pandas(table, npartitions=3)
    for method in ("predict", "decision_function")[: 1 + hasattr(model, "decision_function")]:
        expected = getattr(model, method)(table[NAMES])
        lazy = getattr(model, method)(frame)
        assert isinstance(lazy, dd.Series if expected.ndim == 1 else dd.DataFrame)
        assert lazy.divisions == frame.divisions
        result = lazy.compute()
        pd.testing.assert_index_equal(result.index, table.index)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(result, expected, atol=1e-12)
        else:
            np.testing.assert_array_equal(result, expected)


def test_nothing_is_computed_before_it_is_asked_for(anywhere, tmp_path, data):
    X, y, _ = data
    model = make_classifier().fit(X, y)
    parts = counting(tmp_path / "calls", X, y)
    rows = da.concatenate(
        [
            da.from_delayed(part[0], (j - i, D), X.dtype)
            for part, (i, j) in zip(parts, bounds_of(4), strict=True)
        ]
    )
    lazy = [model.predict(rows), model.decision_function(rows), *model.predict(parts)]
    assert not list(tmp_path.glob("calls/*"))
    found = dask.compute(*lazy)
    np.testing.assert_array_equal(found[0], model.predict(X))
    np.testing.assert_array_equal(np.concatenate(found[2:]), model.predict(X))


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize(
    "rows",
    [
        lambda X: as_array(X, bounds_of(4, 2)),
        lambda X: as_array(X).rechunk((None, 3)),
        lambda X: as_frame(X)[NAMES].to_dask_array(),
        lambda X: as_frame(X)[as_frame(X)["x0"] < 99].to_dask_array(),
    ],
    ids=["an empty partition", "columns in chunks", "sizes unknown", "filtered"],
)
def test_predictions_of_every_array(anywhere, data, method, rows):
    X, y, _ = data
    model = make_classifier().fit(X, y)
    found = getattr(model, method)(rows(X)).compute()
    np.testing.assert_allclose(found, getattr(model, method)(X), atol=1e-12)


def test_predictions_of_a_frame_with_an_empty_partition(anywhere, data):
    X, y, _ = data
    frame = as_frame(X)
    model = make_classifier().fit(frame, as_array(y, [(60 * i, 60 * i + 60) for i in range(4)]))
    few = frame[frame["x0"] > np.sort(X[:, 0])[-2]]
    expected = model.predict(pd.DataFrame(X, columns=NAMES)[X[:, 0] > np.sort(X[:, 0])[-2]])
    np.testing.assert_array_equal(model.predict(few).compute(), expected)


def test_predictions_of_delayed_frames(anywhere, data):
    X, y, _ = data
    frames = [pd.DataFrame(X[i:j], columns=NAMES) for i, j in bounds_of(4)]
    parts = [dask.delayed((f, y[i:j])) for f, (i, j) in zip(frames, bounds_of(4), strict=True)]
    model = make_classifier().fit(parts)
    assert list(model.feature_names_in_) == NAMES
    found = np.concatenate(dask.compute(*model.predict(parts)))
    np.testing.assert_array_equal(found, model.predict(pd.DataFrame(X, columns=NAMES)))


def test_sums_stay_at_home(data):
    """Predictions carry the model to the workers, and not what partial_fit keeps."""
    X, y, _ = data
    fitted = make_classifier(150, alpha=1.0).fit(X, y)
    running = make_classifier(150, alpha=1.0).partial_fit(X, y, [0, 1, 2])
    sizes = [
        len(cloudpickle.dumps(dict(model.predict(as_array(X)).__dask_graph__())))
        for model in (fitted, running)
    ]
    assert sizes[1] < 1.1 * sizes[0]
