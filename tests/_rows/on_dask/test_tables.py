"""Tables on Dask give the models that they give in memory, with the encoder."""

from __future__ import annotations

import sys

import factories
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
from dask_rows import MARKS

from nysplus import NystroemClassifier
from nysplus.encoding import TableEncoder

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = [
    *MARKS,
    pytest.mark.filterwarnings("ignore:The column 'id' numbers the rows"),
]

N = 600
FRAME, Y = factories.frame_of_all_kinds(N)
WHOLE = FRAME.assign(label=Y)
NUMBERS = FRAME[["number", "whole", "zip"]].to_numpy(np.float64, na_value=np.nan)
OBJECTS = FRAME[["number", "colour", "flag"]].to_numpy(dtype=object)


def make_model(**params):
    encoder = TableEncoder(categories=["zip"])
    return NystroemClassifier(30, **{"encoder": encoder, "alpha": 0.1, "random_state": 0} | params)


def parts_of(*tables, size=90):
    return [dask.delayed(tuple(t[i : i + size] for t in tables)) for i in range(0, N, size)]


def from_parquet(folder):
    WHOLE.to_parquet(folder / "rows.parquet", row_group_size=170)
    return dd.read_parquet(folder / "rows.parquet", split_row_groups=True), "label"


STORES = {
    "a frame": lambda folder: (dd.from_pandas(WHOLE, npartitions=4), "label"),
    "a frame with empty partitions": lambda folder: (
        dd.concat([dd.from_pandas(WHOLE[i:j], 1) for i, j in [(0, 0), (0, 9), (9, 9), (9, N)]]),
        "label",
    ),
    "a frame of categories": lambda folder: (
        dd.from_pandas(WHOLE.astype({"colour": "category"}), npartitions=3),
        "label",
    ),
    "a parquet file": from_parquet,
    "delayed frames": lambda folder: (parts_of(FRAME, Y), None),
}
# A cluster runs the tasks that threads run; other tests fit and predict there.
PLACES = [
    pytest.param(
        place,
        name,
        id=f"{place}-{name}",
        marks=() if place == "no client" else pytest.mark.all_combinations,
    )
    for place in ("no client", "cluster")
    for name in STORES
]


def assert_close(got, expected, rtol=1e-6):
    got = np.asarray(got)
    assert got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= rtol * np.linalg.norm(expected)


@pytest.fixture(scope="module")
def memory():
    return make_model().fit(FRAME, Y)


@pytest.mark.parametrize(("anywhere", "store"), PLACES, indirect=["anywhere"])
def test_every_collection_gives_the_model_of_the_frame(anywhere, tmp_path, memory, store):
    rows, y = STORES[store](tmp_path)
    model = make_model().fit(rows, y)
    assert model._schema == memory._schema
    assert model.expansion_.encoder.same(memory.expansion_.encoder)
    assert_close(model.decision_function(FRAME), memory.decision_function(FRAME))
    assert model.score(rows, y) == memory.score(FRAME, Y)


def test_weights_of_zero_leave_rows_out(anywhere):
    weighted = WHOLE.assign(weight=factories.weights(N))
    memory = make_model().fit(FRAME, Y, sample_weight=weighted["weight"])
    rows = dd.from_pandas(weighted, npartitions=4)
    model = make_model().fit(rows, "label", sample_weight="weight")
    assert model._schema == memory._schema
    assert model.expansion_.encoder.same(memory.expansion_.encoder)
    assert_close(model.decision_function(FRAME), memory.decision_function(FRAME))


@pytest.mark.parametrize("X", [NUMBERS, OBJECTS], ids=["numbers", "objects"])
def test_arrays_with_gaps(anywhere, X):
    memory = make_model(encoder="auto").fit(X, Y)
    rows = da.from_array(X, chunks=(90, X.shape[1]))
    model = make_model(encoder="auto").fit(rows, da.from_array(Y, chunks=90))
    assert model._schema == memory._schema
    # Workers add float32 numbers in another order: on one processor landmarks differed by 3e-6,
    # and decision values by 1.2 times the rounding of kernel values.
    np.testing.assert_allclose(model.landmarks_, memory.landmarks_, 0, 1e-5)
    expected, most = memory.decision_function(X), 2 * factories.rounding_of_codes(memory)
    np.testing.assert_allclose(model.decision_function(X), expected, 0, most)
    lazy = model.decision_function(rows)
    assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(lazy.compute(), expected, 0, most)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_lazy_predictions_of_frames_with_text(anywhere, memory, method):
    """Columns are found by name, and Dask knows the type of the result before it is there."""
    table = WHOLE[WHOLE.columns[::-1]].drop(columns=["id", "constant"]).set_index(np.arange(N) * 3)
    # a column of objects, of which Dask knows nothing
    table["flag"] = table["flag"].astype(object).mask(np.arange(N) == 5, None)
    lazy = getattr(memory, method)(dd.from_pandas(table, npartitions=3))
    found = lazy.compute()
    assert isinstance(lazy, dd.DataFrame if method == "predict_proba" else dd.Series)
    meta = lazy.dtypes.tolist() if method == "predict_proba" else lazy.dtype
    assert meta == (found.dtypes.tolist() if method == "predict_proba" else found.dtype)
    pd.testing.assert_index_equal(found.index, table.index)
    expected = getattr(memory, method)(table)
    if method == "predict":
        np.testing.assert_array_equal(found, expected)
    else:
        assert_close(found, expected)


def test_lazy_predictions_of_delayed_frames(anywhere, memory):
    found = np.concatenate(dask.compute(*memory.predict(parts_of(FRAME, Y))))
    np.testing.assert_array_equal(found, memory.predict(FRAME))


def test_missing_columns_are_named_before_any_work(anywhere, memory):
    rows = dd.from_pandas(FRAME.drop(columns=["flag", "zip"]), npartitions=2)
    for method in (memory.predict, lambda rows: memory.score(rows.assign(label="no"), "label")):
        with pytest.raises(ValueError, match=r"X has no columns \['flag', 'zip'\]\. It has"):
            method(rows)


def test_bad_columns_are_refused_by_name(anywhere):
    frame = WHOLE.assign(number=np.where(Y == "yes", np.inf, 1.0))
    infinite = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="The column 'number' contains infinity"):
        make_model().fit(infinite, "label")
    mixed = [dask.delayed((FRAME[:90].assign(number="much"), Y[:90])), *parts_of(FRAME, Y)]
    with pytest.raises(TypeError, match="'number' contains categories in some rows and numbers in"):
        make_model().fit(mixed)
    fewer = [*parts_of(FRAME, Y), dask.delayed((FRAME[["zip"]], Y))]
    with pytest.raises(ValueError, match=r"has 1 columns, the first one has 10 columns"):
        make_model().fit(fewer)


def test_rows_over_time(anywhere):
    more, more_y = factories.frame_of_all_kinds(N, seed=1)
    first = dd.from_pandas(WHOLE, npartitions=4)
    second = dd.from_pandas(more.assign(label=more_y), npartitions=3)
    expected = make_model().partial_fit(FRAME, Y, ["no", "yes"]).partial_fit(more, more_y)
    model = make_model().partial_fit(first, "label", ["no", "yes"]).partial_fit(second, "label")
    assert_close(model.decision_function(FRAME), expected.decision_function(FRAME))
