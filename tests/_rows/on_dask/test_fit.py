"""On a Dask cluster the fit is that of the same rows in memory."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sampling import each_once, sampled
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

from nysplus import Nystroem, NystroemRegressor
from nysplus.landmarks import SELECTORS

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
from dask_rows import (
    CONTAINERS,
    MARKS,
    NAMES,
    PLACES,
    TARGETS,
    N,
    as_array,
    as_delayed,
    as_frame,
    assert_same,
    bounds_of,
    calls_in,
    counting,
    make_classifier,
)

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = MARKS


@sampled(("selection", "per_worker"), sorted(SELECTORS), [1, 2, 4])
def test_every_selection(client, data, selection, per_worker):
    X, y, _ = data
    cut = bounds_of(2 * per_worker)
    memory = make_classifier(selection=selection).fit(X, y)
    assert_same(
        make_classifier(selection=selection).fit(as_array(X, cut), as_array(y, cut)), memory
    )


@pytest.mark.parametrize("approximation", ["randomized", "ensemble"])
def test_every_approximation(client, data, approximation):
    X, y, _ = data
    model = make_classifier(approximation=approximation, alpha=1.0)
    memory = make_classifier(approximation=approximation, alpha=1.0).fit(X, y)
    assert_same(model.fit(as_array(X), as_array(y)), memory)


@each_once(
    ("anywhere", "target", "weighted"), PLACES, TARGETS.keys(), [False, True], indirect=["anywhere"]
)
def test_every_kind_of_target(anywhere, data, target, weighted):
    X, y, w = data
    kind, y = TARGETS[target](X, y)
    w = w if weighted else None
    memory = kind(12, random_state=0).fit(X, y, w)
    D_X, D_y, D_w = as_array(X), as_array(y), None if w is None else as_array(w)
    model = kind(12, random_state=0).fit(D_X, D_y, D_w)
    assert_same(model, memory)
    assert model.score(D_X, D_y, D_w) == pytest.approx(memory.score(X, y, w), rel=1e-12)


# Dask says so of sparse partitions, which it takes for granted are dense
def test_delayed_rows_that_make_their_graph_anew_each_time(client, data, monkeypatch):
    kept = []  # so that no two graphs share an id
    rows = dask.delayed(data)
    leaf = type(rows)
    made = leaf.dask.fget
    monkeypatch.setattr(leaf, "dask", property(lambda self: kept.append(made(self)) or kept[-1]))
    model = make_classifier().fit([rows])
    assert kept
    np.testing.assert_array_equal(model.landmarks_, make_classifier().fit(*data).landmarks_)


@pytest.mark.filterwarnings("ignore:.*Partitions of type.*:UserWarning")
@sampled(("anywhere", "container"), PLACES, CONTAINERS.keys(), indirect=["anywhere"])
def test_every_container(anywhere, data, container):
    parameters = {"class_weight": "balanced", "selection": "uniform"}
    memory = make_classifier(**parameters).fit(*data)
    model = make_classifier(**parameters).fit(*CONTAINERS[container](*data))
    if sp.issparse(model.landmarks_):
        model.expansion_.__dict__["landmarks"] = model.landmarks_.toarray()
    assert_same(model, memory)
    named = container.startswith("frame")
    assert list(getattr(model, "feature_names_in_", [])) == (NAMES if named else [])


TABLES = {
    "names": lambda frame: (frame[[*NAMES, "label", "w"]], "label", "w"),
    "series": lambda frame: (frame[NAMES], frame["label"], frame["w"]),
    "a name and a series": lambda frame: (frame[[*NAMES, "label"]], "label", frame["w"]),
    "filtered": lambda frame: (frame[frame["x0"] < 99][[*NAMES, "label", "w"]], "label", "w"),
}


SPLITTINGS = [{"split_row_groups": True}, {"split_row_groups": 3}, {}]


@each_once(
    ("anywhere", "table", "splitting"), PLACES, TABLES.keys(), SPLITTINGS, indirect=["anywhere"]
)
def test_row_groups_of_a_file(anywhere, data, tmp_path, table, splitting):
    """Dask joins row groups in reading where few columns of a wide file are needed."""
    X, y, w = data
    wide = pd.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)} | {"label": y, "w": w})
    others = pd.DataFrame(0.0, index=wide.index, columns=[f"other{j}" for j in range(20)])
    pd.concat([wide, others], axis=1).to_parquet(tmp_path / "rows.parquet", row_group_size=N // 8)
    rows = TABLES[table](dd.read_parquet(tmp_path / "rows.parquet", **splitting))
    model, memory = (make_classifier(selection="uniform").fit(*these) for these in (rows, data))
    assert_same(model, memory)
    assert model.score(*rows) == pytest.approx(memory.score(*data))


@sampled(("anywhere", "empty"), PLACES, [0, 2], indirect=["anywhere"])
def test_text_labels_beside_an_empty_partition(anywhere, data, empty):
    X, y, _ = data
    y = np.array(["no", "yes", "or"], dtype=object)[y]
    cut = bounds_of(4, empty)
    assert_same(make_classifier().fit(as_delayed(X, y, cut=cut)), make_classifier().fit(X, y))


def test_labels_in_chunks_of_columns(client, data):
    X = data[0]
    Y = (X[:, :3] > 0).astype(int)
    memory = make_classifier(alpha=1.0).fit(X, Y)
    assert_same(make_classifier(alpha=1.0).fit(as_array(X), da.from_array(Y, (80, 1))), memory)


def test_targets_in_columns_of_a_frame(anywhere, data):
    X = data[0]
    memory = NystroemRegressor(12, random_state=0).fit(X[:, :2], X[:, 2:])
    model = NystroemRegressor(12, random_state=0).fit(as_frame(X), NAMES[2:])
    assert_same(model, memory)
    assert model.score(as_frame(X), NAMES[2:]) == pytest.approx(memory.score(X[:, :2], X[:, 2:]))


PARAMETERS = [
    {"gamma": "median"},
    {"gamma": "scale", "alpha": 0.1},
    {"gamma": 0.3, "alpha": [0.1, 1.0, 10.0]},
    {"kernel": "laplacian", "gamma": "median"},
    {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}},
    {"n": N},
]


@sampled(("anywhere", "parameters"), PLACES, PARAMETERS, indirect=["anywhere"])
def test_parameters(anywhere, data, parameters):
    memory = make_classifier(**parameters).fit(*data[:2])
    assert_same(make_classifier(**parameters).fit(*map(as_array, data[:2])), memory)


def test_a_solution_is_polished(client, data):
    """Passes of conjugate gradients travel to the workers, rows and client do not."""
    X, y = data[0].astype(np.float32), data[1]
    parameters = {"n": 40, "gamma": 0.1, "alpha": 0.01, "selection": "uniform"}
    memory = make_classifier(**parameters).fit(X, y)
    model = make_classifier(**parameters).fit(as_array(X), as_array(y))
    for fitted in (memory, model):  # kernel values of the landmarks, of one pass, and of more
        assert fitted.n_kernel_evaluations_ > 40 * (40 + len(X))
    scores = memory.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3)


@sampled(("anywhere", "dtype"), PLACES, [np.float32, np.uint8], indirect=["anywhere"])
def test_types_of_rows(anywhere, data, dtype):
    X = np.round(16 * np.abs(data[0])).astype(dtype)
    memory = make_classifier().fit(X, data[1])
    model = make_classifier().fit(as_array(X), as_array(data[1]))
    assert model.landmarks_.dtype == memory.landmarks_.dtype
    scores = memory.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3 * np.abs(scores).max())


def test_blocks_inside_a_partition(client, data):
    memory = make_classifier().fit(*data)
    with config_context(working_memory=0.01):
        assert_same(make_classifier().fit(*map(as_array, data)), memory)


def test_rows_that_keep_coming(anywhere, data):
    X, y, w = data
    memory, model = make_classifier(alpha=1.0), make_classifier(alpha=1.0)
    for rows in slice(0, 160), slice(160, None):
        memory.partial_fit(X[rows], y[rows], [0, 1, 2], w[rows])
        some = [da.from_array(values[rows], chunks=(50, *values.shape[1:])) for values in data]
        model.partial_fit(some[0], some[1], [0, 1, 2], some[2])
    assert_same(model, memory)


@sampled(("anywhere", "selection"), PLACES, ["uniform", "negative-margin"], indirect=["anywhere"])
def test_transformer(anywhere, data, selection):
    X, y, _ = data
    memory = Nystroem(n_components=12, selection=selection, random_state=0).fit(X, y)
    model = Nystroem(n_components=12, selection=selection, random_state=0)
    features = model.fit(as_array(X), as_array(y)).transform(as_array(X))
    np.testing.assert_allclose(model.components_, memory.components_)
    assert features.chunks == (as_array(X).chunks[0], (12,))
    np.testing.assert_allclose(features.compute(), memory.transform(X), atol=1e-10)


# ---- beside others ------------------------------------------------------------------------------


def test_a_method_of_a_model_over_blocks(client, data):
    """As dask-ml's ParallelPostFit uses it."""
    X, y, _ = data
    model = make_classifier().fit(X, y)
    found = as_array(X).map_blocks(model.predict, dtype=int, drop_axis=1)
    np.testing.assert_array_equal(found.compute(), model.predict(X))


# dask-ml lags behind scikit-learn and Dask
@pytest.mark.filterwarnings("ignore::DeprecationWarning:dask_ml", "ignore::FutureWarning:dask_ml")
def test_parallel_post_fit(client, data):
    try:
        from dask_ml.wrappers import ParallelPostFit
    except Exception as error:  # dask-ml lags behind scikit-learn and Dask
        pytest.skip(f"dask-ml cannot be imported: {error}")
    X, y, _ = data
    model = make_classifier().fit(X, y)
    found = ParallelPostFit(model).predict(as_array(X))
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), model.predict(X))


def test_grid_search_on_workers(client, data):
    from joblib import parallel_config

    X, y, _ = data
    grid = {"n_components": [5, 20]}
    local = GridSearchCV(make_classifier(), grid, cv=2).fit(X, y)
    with parallel_config(backend="dask"):
        search = GridSearchCV(make_classifier(), grid, cv=2).fit(X, y)
    assert search.best_params_ == local.best_params_
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )


@sampled(("anywhere", "selection"), PLACES, ["uniform", "negative-margin"], indirect=["anywhere"])
def test_passes_are_counted(anywhere, tmp_path, data, selection):
    """No partition is read more often, but for a first look at the first one."""
    X, y, _ = data
    model = make_classifier(selection=selection).fit(counting(tmp_path / "calls", X, y))
    first, *others = calls_in(tmp_path / "calls")
    assert max(others) <= model.n_passes_
    assert first <= model.n_passes_ + 1
    assert model.n_passes_ - min(others) <= 2  # landmarks may all come from elsewhere


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_schedulers_without_a_client(data, scheduler):
    threads = da.map_blocks(
        lambda: np.array([threading.current_thread() is threading.main_thread()]),
        chunks=((1,),),
        dtype=bool,
    )
    with dask.config.set(scheduler=scheduler):
        model = make_classifier().fit(*map(as_array, data))
        assert threads.compute()[0] == (scheduler == "synchronous")
    assert_same(model, make_classifier().fit(*data))


def test_progress_of_a_cluster(client, data, capfd):
    make_classifier(selection="uniform", verbose=2).fit(*map(as_array, data[:2]))
    lines = [line.split(",")[0] for line in capfd.readouterr().err.splitlines()]
    assert [line for line in lines if line.startswith("[")] == [
        "[NystroemClassifier] survey: 240 rows",
        "[NystroemClassifier] ridge: moments: 240 of 240 rows",
        "[NystroemClassifier] ridge: leave-one-out: 240 of 240 rows",
        "[NystroemClassifier] ridge: left-out rows: 240 of 240 rows",
        "[NystroemClassifier] 5 passes over 240 rows",
    ]
