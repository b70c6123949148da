"""Rows on a Dask cluster: the model of the same rows in memory, and rows that stay there."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus.kernels import RBF
from nysplus.landmarks import SELECTORS

pytest.importorskip("distributed")

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster, wait

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = [
    pytest.mark.xdist_group("distributed"),
    # a cluster that stops leaves sockets and subprocess handles to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

N, D = 240, 4
NAMES = [f"x{j}" for j in range(D)]
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1}


@pytest.fixture(scope="module")
def cluster():
    # an idle worker would take a partition from the other now and then
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(n_workers=2, processes=True, **LOCAL) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def _connection(cluster):
    with Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(_connection):
    with _connection.as_current():
        yield _connection


@pytest.fixture(params=["cluster", "no client"])
def anywhere(request):
    return request.getfixturevalue("client") if request.param == "cluster" else None


@pytest.fixture
def data(rng):
    """Rows, three classes, and weights of which some are zero."""
    X = rng.standard_normal((N, D))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    return X, y, rng.randint(0, 3, N).astype(float)


def _cut(n_parts, empty=None):
    """Return uneven bounds of partitions; one of them without rows, if wished."""
    bounds = np.linspace(0, N, n_parts + 1).astype(int)
    bounds[1:-1] += np.arange(n_parts - 1) % 3 * 5
    if empty is not None:
        bounds[empty + 1] = bounds[empty]
    return list(pairwise(bounds))


def _delayed(*arrays, cut=None):
    return [dask.delayed(tuple(a[i:j] for a in arrays)) for i, j in cut or _cut(4)]


def _array(values, cut=None):
    cut = cut or _cut(4)
    sizes = tuple(int(j - i) for i, j in cut)
    return da.from_array(values, chunks=(sizes, *values.shape[1:]))


def _frame(X, y=None, w=None, npartitions=4):
    frame = pd.DataFrame(X, columns=NAMES)
    if y is not None:
        frame.insert(1, "label", y)
    if w is not None:
        frame["w"] = w
    return dd.from_pandas(frame, npartitions=npartitions)


def _assert_same(model, memory):
    for name in ("gamma_", "alpha_"):
        np.testing.assert_allclose(getattr(model, name), getattr(memory, name), rtol=1e-8)
    np.testing.assert_allclose(model.landmarks_, memory.landmarks_, rtol=1e-8, atol=1e-12)
    for name in ("dual_coef_", "intercept_"):
        got, expected = getattr(model, name), getattr(memory, name)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    if hasattr(memory, "classes_"):
        np.testing.assert_array_equal(model.classes_, memory.classes_)


def _classifier(n=12, **parameters):
    """A rule with passes over all rows, unless another one is asked for."""
    return NystroemClassifier(n, random_state=0, **{"selection": "negative-margin"} | parameters)


# ---- the same model -----------------------------------------------------------------------------


@pytest.mark.parametrize("selection", sorted(SELECTORS))
@pytest.mark.parametrize("per_worker", [1, 2, 4])
def test_every_selection(client, data, selection, per_worker):
    X, y, _ = data
    cut = _cut(2 * per_worker)
    memory = _classifier(selection=selection).fit(X, y)
    _assert_same(_classifier(selection=selection).fit(_array(X, cut), _array(y, cut)), memory)


@pytest.mark.parametrize("approximation", ["randomized", "ensemble"])
def test_every_approximation(client, data, approximation):
    X, y, _ = data
    model = _classifier(approximation=approximation, alpha=1.0)
    memory = _classifier(approximation=approximation, alpha=1.0).fit(X, y)
    _assert_same(model.fit(_array(X), _array(y)), memory)


TARGETS = {
    "binary": lambda X, y: (NystroemClassifier, y > 0),
    "text": lambda X, y: (NystroemClassifier, np.array(["no", "yes", "or"], dtype=object)[y]),
    "several classes": lambda X, y: (NystroemClassifier, y),
    "labels": lambda X, y: (NystroemClassifier, (X[:, :3] > 0).astype(int)),
    "values": lambda X, y: (NystroemRegressor, np.sin(X[:, 0]) + X[:, 1]),
    "several outputs": lambda X, y: (NystroemRegressor, np.sin(X[:, :2])),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_kind_of_target(anywhere, data, target, weighted):
    X, y, w = data
    kind, y = TARGETS[target](X, y)
    w = w if weighted else None
    memory = kind(12, random_state=0).fit(X, y, w)
    D_X, D_y, D_w = _array(X), _array(y), None if w is None else _array(w)
    model = kind(12, random_state=0).fit(D_X, D_y, D_w)
    _assert_same(model, memory)
    assert model.score(D_X, D_y, D_w) == pytest.approx(memory.score(X, y, w), rel=1e-12)


CONTAINERS = {
    "arrays": lambda X, y, w: (_array(X), _array(y), _array(w)),
    "an empty partition first": lambda X, y, w: [_array(v, _cut(4, 0)) for v in (X, y, w)],
    "an empty partition between": lambda X, y, w: [_array(v, _cut(4, 2)) for v in (X, y, w)],
    "columns in chunks": lambda X, y, w: (_array(X).rechunk((None, 3)), _array(y), _array(w)),
    "other chunks of y": lambda X, y, w: (_array(X), da.from_array(y, 70), da.from_array(w, 31)),
    "NumPy beside": lambda X, y, w: (_array(X), y, list(w)),
    "sizes unknown": lambda X, y, w: [
        _frame(X, y, w)[name].to_dask_array() for name in (NAMES, "label", "w")
    ],
    "rows of X unknown": lambda X, y, w: (
        _frame(X)[NAMES].to_dask_array(),
        da.from_array(y, 60),
        da.from_array(w, 60),
    ),
    "frame": lambda X, y, w: (_frame(X, y, w), "label", "w"),
    "frame and series": lambda X, y, w: (
        _frame(X, y, w)[NAMES],
        _frame(X, y, w)["label"],
        _frame(X, y, w)["w"],
    ),
    "frame with an empty partition": lambda X, y, w: (
        dd.concat([_frame(X[i:j], y[i:j], w[i:j], 1) for i, j in _cut(4, 2)]),
        "label",
        "w",
    ),
    "delayed": lambda X, y, w: (_delayed(X, y, w),),
    "delayed with an empty one": lambda X, y, w: (_delayed(X, y, w, cut=_cut(4, 1)),),
    "delayed sparse": lambda X, y, w: (
        [dask.delayed((sp.csr_matrix(X[i:j]), y[i:j], w[i:j])) for i, j in _cut(4)],
    ),
}


# Dask says so of sparse partitions, which it takes for granted are dense
def test_delayed_rows_that_make_their_graph_anew_each_time(client, data, monkeypatch):
    kept = []  # so that no two graphs share an id
    rows = dask.delayed(data)
    leaf = type(rows)
    made = leaf.dask.fget
    monkeypatch.setattr(leaf, "dask", property(lambda self: kept.append(made(self)) or kept[-1]))
    model = _classifier().fit([rows])
    assert kept
    np.testing.assert_array_equal(model.landmarks_, _classifier().fit(*data).landmarks_)


@pytest.mark.filterwarnings("ignore:.*Partitions of type.*:UserWarning")
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container(anywhere, data, container):
    memory = _classifier(class_weight="balanced").fit(*data)
    model = _classifier(class_weight="balanced").fit(*CONTAINERS[container](*data))
    if sp.issparse(model.landmarks_):
        model.expansion_.__dict__["landmarks"] = model.landmarks_.toarray()
    _assert_same(model, memory)
    named = container.startswith("frame")
    assert list(getattr(model, "feature_names_in_", [])) == (NAMES if named else [])


@pytest.mark.parametrize("empty", [0, 2])
def test_text_labels_beside_an_empty_partition(anywhere, data, empty):
    X, y, _ = data
    y = np.array(["no", "yes", "or"], dtype=object)[y]
    cut = _cut(4, empty)
    _assert_same(_classifier().fit(_delayed(X, y, cut=cut)), _classifier().fit(X, y))


def test_labels_in_chunks_of_columns(client, data):
    X = data[0]
    Y = (X[:, :3] > 0).astype(int)
    memory = _classifier(alpha=1.0).fit(X, Y)
    _assert_same(_classifier(alpha=1.0).fit(_array(X), da.from_array(Y, (80, 1))), memory)


def test_targets_in_columns_of_a_frame(anywhere, data):
    X = data[0]
    memory = NystroemRegressor(12, random_state=0).fit(X[:, :2], X[:, 2:])
    model = NystroemRegressor(12, random_state=0).fit(_frame(X), NAMES[2:])
    _assert_same(model, memory)
    assert model.score(_frame(X), NAMES[2:]) == pytest.approx(memory.score(X[:, :2], X[:, 2:]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"gamma": "median"},
        {"gamma": "scale", "alpha": 0.1},
        {"gamma": 0.3, "alpha": [0.1, 1.0, 10.0]},
        {"kernel": "laplacian", "gamma": "median"},
        {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}},
        {"n": N},
    ],
    ids=str,
)
def test_parameters(anywhere, data, parameters):
    memory = _classifier(**parameters).fit(*data[:2])
    _assert_same(_classifier(**parameters).fit(*map(_array, data[:2])), memory)


def test_a_solution_is_polished(client, data):
    """Passes of conjugate gradients travel to the workers, rows and client do not."""
    X, y = data[0].astype(np.float32), data[1]
    parameters = {"n": 40, "gamma": 0.1, "alpha": 0.01, "selection": "uniform"}
    memory = _classifier(**parameters).fit(X, y)
    model = _classifier(**parameters).fit(_array(X), _array(y))
    for fitted in (memory, model):  # kernel values of the landmarks, of one pass, and of more
        assert fitted.n_kernel_evaluations_ > 40 * (40 + len(X))
    scores = memory.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_types_of_rows(anywhere, data, dtype):
    X = np.round(16 * np.abs(data[0])).astype(dtype)
    memory = _classifier().fit(X, data[1])
    model = _classifier().fit(_array(X), _array(data[1]))
    assert model.landmarks_.dtype == memory.landmarks_.dtype
    scores = memory.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3 * np.abs(scores).max())


def test_blocks_inside_a_partition(client, data):
    memory = _classifier().fit(*data)
    with config_context(working_memory=0.01):
        _assert_same(_classifier().fit(*map(_array, data)), memory)


def test_rows_that_keep_coming(anywhere, data):
    X, y, w = data
    memory, model = _classifier(alpha=1.0), _classifier(alpha=1.0)
    for rows in slice(0, 160), slice(160, None):
        memory.partial_fit(X[rows], y[rows], [0, 1, 2], w[rows])
        some = [da.from_array(values[rows], chunks=(50, *values.shape[1:])) for values in data]
        model.partial_fit(some[0], some[1], [0, 1, 2], some[2])
    _assert_same(model, memory)


@pytest.mark.parametrize("selection", ["uniform", "negative-margin"])
def test_transformer(anywhere, data, selection):
    X, y, _ = data
    memory = Nystroem(n_components=12, selection=selection, random_state=0).fit(X, y)
    model = Nystroem(n_components=12, selection=selection, random_state=0)
    features = model.fit(_array(X), _array(y)).transform(_array(X))
    np.testing.assert_allclose(model.components_, memory.components_)
    assert features.chunks == (_array(X).chunks[0], (12,))
    np.testing.assert_allclose(features.compute(), memory.transform(X), atol=1e-10)


# ---- workers that die ---------------------------------------------------------------------------


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


def _counting(folder, X, y, fatal=None):
    """Return delayed blocks that note when they are made; `fatal` is a call for each partition."""
    Path(folder).mkdir(exist_ok=True)
    make = dask.delayed(_counted, pure=False)
    return [
        make((X[i:j], y[i:j]), number, str(folder), (fatal or {}).get(number))
        for number, (i, j) in enumerate(_cut(4))
    ]


def _calls(folder):
    return [Path(folder, f"calls-{number}").stat().st_size for number in range(4)]


def test_workers_are_killed_in_two_passes(tmp_path, data):
    X, y, _ = data
    memory = _classifier().fit(X, y)
    with LocalCluster(n_workers=2, processes=True, **LOCAL) as cluster, Client(cluster):
        model = _classifier().fit(_counting(tmp_path / "calls", X, y, {1: 1, 3: 5}))
    assert len(list(tmp_path.glob("calls/killed-*"))) == 2
    _assert_same(model, memory)


def test_the_only_worker_is_killed(tmp_path, data):
    """It takes along what the pass has sent out."""
    X, y, _ = data
    memory = _classifier(selection="uniform").fit(X, y)
    with LocalCluster(n_workers=1, processes=True, **LOCAL) as cluster, Client(cluster):
        model = _classifier(selection="uniform").fit(_counting(tmp_path / "calls", X, y, {3: 3}))
    assert (tmp_path / "calls" / "killed-3").exists()
    _assert_same(model, memory)


RESUMED = """
import sys
import cloudpickle
from distributed import Client, LocalCluster
from nysplus import NystroemClassifier
from nysplus._runtime.checkpoint import Checkpoint

parts, checkpoint, result = sys.argv[1:]
if __name__ == "__main__":
    here = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **here) as cluster:
        with Client(cluster):
            model = NystroemClassifier(12, selection="uniform", random_state=0)
            with open(parts, "rb") as file:
                model.fit(cloudpickle.load(file), checkpoint=Checkpoint(checkpoint, seconds=0))
            with open(result, "wb") as file:
                cloudpickle.dump(model, file)
"""


def test_a_killed_client_goes_on(tmp_path, client, data):
    """Killed in its last pass, which looks for the ridge: the moments are not summed up again."""
    X, y, _ = data
    whole = _classifier(selection="uniform").fit(_counting(tmp_path / "whole", X, y))
    passes = _calls(tmp_path / "whole")
    parts = _counting(tmp_path / "calls", X, y, {3: passes[3]})
    (tmp_path / "parts").write_bytes(cloudpickle.dumps(parts))
    files = [str(tmp_path / name) for name in ("parts", "checkpoint", "model")]
    command = [sys.executable, "-c", RESUMED, *files]
    killed = subprocess.run(command, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert (tmp_path / "checkpoint").exists()
    before = _calls(tmp_path / "calls")
    subprocess.run(command, check=True, capture_output=True)
    again = np.subtract(_calls(tmp_path / "calls"), before)
    assert not (tmp_path / "checkpoint").exists()
    _assert_same(pickle.loads((tmp_path / "model").read_bytes()), whole)
    # killed in the last pass, with the two before it on record
    np.testing.assert_array_equal(again, np.subtract(passes, 2))


# ---- what travels -------------------------------------------------------------------------------

ROWS, COLUMNS, LANDMARKS = 20_000, 50, 30
PARTITION = 8 * ROWS * COLUMNS
OVERHEAD = 4096
MOMENTS = 8 * LANDMARKS * (LANDMARKS + 4) + OVERHEAD
POINTS = 8 * LANDMARKS * COLUMNS + OVERHEAD
# of the rows that scale probabilities: number, score, target and weight
SCORES = 32 * 1000 + OVERHEAD


def _made(seed):
    X = np.random.RandomState(seed).standard_normal((ROWS, COLUMNS))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _large(kind):
    """Return 4 partitions that the workers make."""
    if kind == "delayed":
        return [dask.delayed(_made)(seed) for seed in range(4)], None
    X = da.random.RandomState(0).standard_normal((4 * ROWS, COLUMNS), chunks=(ROWS, COLUMNS))
    if kind == "y apart":
        return X, da.random.RandomState(1).randint(0, 2, 4 * ROWS, chunks=ROWS)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _forget(dask_worker):
    dask_worker.transfer_incoming_log.clear()
    dask_worker.transfer_outgoing_log.clear()


def _sent(dask_worker):
    """Return the messages of a worker to others and to the client: keys, and bytes on the wire."""
    log = dask_worker.transfer_outgoing_log
    return [([str(key) for key in entry["keys"]], entry["compressed"]) for entry in log]


def _transfers(client, fit):
    """Return the bytes for each broadcast, and the most for each value of anything else."""
    client.run(_forget)
    fit()
    sent = [message for worker in client.run(_sent).values() for message in worker]
    is_job = [any("job" in key.lower()[:4] for key in keys) for keys, _ in sent]
    jobs = [size for (_, size), job in zip(sent, is_job, strict=True) if job]
    others = {
        keys[0]: size / len(keys) for (keys, size), job in zip(sent, is_job, strict=True) if not job
    }
    assert any("_joined" in key for key in others)
    return jobs, others


@pytest.mark.parametrize("kind", ["delayed", "array", "persisted", "y apart"])
def test_rows_stay_where_they_are(client, kind):
    X, y = _large(kind)
    if kind == "persisted":
        X, y = client.persist([X, y])
        wait([X, y])
    # labels that do not come with the rows go to where these are
    most = 8 * ROWS + OVERHEAD if kind == "y apart" else max(MOMENTS, POINTS, SCORES)
    for _ in range(4):  # where a task runs is not the same each time
        model = _classifier(LANDMARKS, gamma=0.01, alpha=1.0)
        jobs, others = _transfers(client, lambda model=model: model.fit(X, y))
        assert max(others.values()) <= most, others
        # landmarks and whitening, in four passes: to one worker, and from there to the other, or
        # twice if that asks for them while they are on the way; in the last with the inverse
        assert len(jobs) <= 8
        assert 8 * LANDMARKS * COLUMNS < max(jobs) <= 2 * MOMENTS + 2 * POINTS


@pytest.mark.parametrize(
    "parameters", [{"selection": "kmeans", "alpha": 1.0}, {"selection": "uniform"}], ids=str
)
def test_samples_are_what_travels_most(client, parameters):
    """K-means clusters 20,000 rows of all partitions; a ridge is chosen on 10,000."""
    model = _classifier(LANDMARKS, gamma=0.01, **parameters)
    most = 20_000 if "alpha" in parameters else 10_000
    _, others = _transfers(client, lambda: model.fit(*_large("array")))
    largest = max(others.values())
    assert largest < PARTITION / 2
    expected = 8 * (COLUMNS + 1) * most / 4
    assert 0.9 * expected < largest < 1.1 * expected + OVERHEAD


def test_much_that_has_to_be_sent_is_no_warning(client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "20kB"}):
        _classifier(60, gamma=0.01, alpha=1.0, selection="uniform").fit(_large("delayed")[0])


# ---- predictions --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_predictions_are_lazy(anywhere, data, target):
    X, y, _ = data
    kind, y = TARGETS[target](X, y)
    model = kind(12, random_state=0).fit(X, y)
    rows = _array(X)
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


@pytest.mark.parametrize("target", TARGETS)
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
    model = _classifier().fit(X, y)
    parts = _counting(tmp_path / "calls", X, y)
    rows = da.concatenate(
        [
            da.from_delayed(part[0], (j - i, D), X.dtype)
            for part, (i, j) in zip(parts, _cut(4), strict=True)
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
        lambda X: _array(X, _cut(4, 2)),
        lambda X: _array(X).rechunk((None, 3)),
        lambda X: _frame(X)[NAMES].to_dask_array(),
        lambda X: _frame(X)[_frame(X)["x0"] < 99].to_dask_array(),
    ],
    ids=["an empty partition", "columns in chunks", "sizes unknown", "filtered"],
)
def test_predictions_of_every_array(anywhere, data, method, rows):
    X, y, _ = data
    model = _classifier().fit(X, y)
    found = getattr(model, method)(rows(X)).compute()
    np.testing.assert_allclose(found, getattr(model, method)(X), atol=1e-12)


def test_predictions_of_a_frame_with_an_empty_partition(anywhere, data):
    X, y, _ = data
    frame = _frame(X)
    model = _classifier().fit(frame, _array(y, [(60 * i, 60 * i + 60) for i in range(4)]))
    few = frame[frame["x0"] > np.sort(X[:, 0])[-2]]
    expected = model.predict(pd.DataFrame(X, columns=NAMES)[X[:, 0] > np.sort(X[:, 0])[-2]])
    np.testing.assert_array_equal(model.predict(few).compute(), expected)


def test_predictions_of_delayed_frames(anywhere, data):
    X, y, _ = data
    frames = [pd.DataFrame(X[i:j], columns=NAMES) for i, j in _cut(4)]
    parts = [dask.delayed((f, y[i:j])) for f, (i, j) in zip(frames, _cut(4), strict=True)]
    model = _classifier().fit(parts)
    assert list(model.feature_names_in_) == NAMES
    found = np.concatenate(dask.compute(*model.predict(parts)))
    np.testing.assert_array_equal(found, model.predict(pd.DataFrame(X, columns=NAMES)))


def test_sums_stay_at_home(data):
    """Predictions carry the model to the workers, and not what partial_fit keeps."""
    X, y, _ = data
    fitted = _classifier(150, alpha=1.0).fit(X, y)
    running = _classifier(150, alpha=1.0).partial_fit(X, y, [0, 1, 2])
    sizes = [
        len(cloudpickle.dumps(dict(model.predict(_array(X)).__dask_graph__())))
        for model in (fitted, running)
    ]
    assert sizes[1] < 1.1 * sizes[0]


# ---- beside others ------------------------------------------------------------------------------


def test_a_method_of_a_model_over_blocks(client, data):
    """As dask-ml's ParallelPostFit uses it."""
    X, y, _ = data
    model = _classifier().fit(X, y)
    found = _array(X).map_blocks(model.predict, dtype=int, drop_axis=1)
    np.testing.assert_array_equal(found.compute(), model.predict(X))


# dask-ml lags behind scikit-learn and Dask
@pytest.mark.filterwarnings("ignore::DeprecationWarning:dask_ml", "ignore::FutureWarning:dask_ml")
def test_parallel_post_fit(client, data):
    try:
        from dask_ml.wrappers import ParallelPostFit
    except Exception as error:  # dask-ml lags behind scikit-learn and Dask
        pytest.skip(f"dask-ml cannot be imported: {error}")
    X, y, _ = data
    model = _classifier().fit(X, y)
    found = ParallelPostFit(model).predict(_array(X))
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), model.predict(X))


def test_grid_search_on_workers(client, data):
    from joblib import parallel_config

    X, y, _ = data
    grid = {"n_components": [5, 20]}
    local = GridSearchCV(_classifier(), grid, cv=2).fit(X, y)
    with parallel_config(backend="dask"):
        search = GridSearchCV(_classifier(), grid, cv=2).fit(X, y)
    assert search.best_params_ == local.best_params_
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("selection", ["uniform", "negative-margin"])
def test_passes_are_counted(anywhere, tmp_path, data, selection):
    """No partition is read more often, but for a first look at the first one."""
    X, y, _ = data
    model = _classifier(selection=selection).fit(_counting(tmp_path / "calls", X, y))
    first, *others = _calls(tmp_path / "calls")
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
        model = _classifier().fit(*map(_array, data))
        assert threads.compute()[0] == (scheduler == "synchronous")
    _assert_same(model, _classifier().fit(*data))


def test_progress_of_a_cluster(client, data, capfd):
    _classifier(selection="uniform", verbose=2).fit(*map(_array, data[:2]))
    lines = [line.split(",")[0] for line in capfd.readouterr().err.splitlines()]
    assert [line for line in lines if line.startswith("[")] == [
        "[NystroemClassifier] survey: 240 rows",
        "[NystroemClassifier] ridge: moments: 240 of 240 rows",
        "[NystroemClassifier] ridge: leave-one-out: 240 of 240 rows",
        "[NystroemClassifier] ridge: left-out rows: 240 of 240 rows",
        "[NystroemClassifier] 5 passes over 240 rows",
    ]


# ---- memory -------------------------------------------------------------------------------------


@dataclass(repr=False, eq=False)
class Noting(RBF):
    """A kernel that writes down how many rows it gets at once."""

    folder: str = ""

    def bind(self, Z):
        bound = super().bind(Z)

        def noting(X):
            Path(self.folder, str(X.shape[0])).touch()
            return bound(X)

        return noting


def _largest_block(folder, data):
    folder.mkdir()
    X, y = da.from_array(data[0], (4000, D)), da.from_array(data[1], 4000)
    kernel = Noting(0.1, str(folder))
    NystroemClassifier(30, kernel=kernel, alpha=1.0, selection="uniform", random_state=0).fit(X, y)
    return max(int(path.name) for path in folder.iterdir())


@pytest.fixture
def many(rng):
    X = rng.standard_normal((8000, D))
    return X, (X[:, 0] > 0).astype(int)


ROW_BYTES = 8 * (2 * D + 3 * 30)


def test_working_memory_holds_on_workers(client, many, tmp_path):
    assert _largest_block(tmp_path / "free", many) == 4000
    with config_context(working_memory=0.5):
        assert 100 < _largest_block(tmp_path / "bound", many) <= 0.5 * 2**20 / ROW_BYTES


def test_blocks_leave_a_worker_room(many, tmp_path):
    # the limit is that of the test's own process, which is larger
    watch = ("target", "spill", "pause", "terminate")
    with (
        dask.config.set({f"distributed.worker.memory.{what}": False for what in watch}),
        LocalCluster(
            n_workers=1, processes=False, protocol="tcp", memory_limit="4MiB", **LOCAL
        ) as cluster,
        Client(cluster),
    ):
        assert 100 < _largest_block(tmp_path / "bound", many) <= 0.5 * 2**20 / ROW_BYTES


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("container", ["array", "frame", "delayed"])
def test_bad_entry_is_named(anywhere, data, value, container):
    X, y, _ = data
    X[127, 3] = value
    given = {
        "array": lambda: (da.from_array(X, (60, D)), da.from_array(y, 60)),
        "frame": lambda: (_frame(X, y), "label"),
        "delayed": lambda: (_delayed(X, y, cut=[(i, i + 60) for i in range(0, N, 60)]),),
    }[container]()
    column = "'x3'" if container == "frame" else "3"
    where = rf"row 7 of (partition|block) 2; counted from 0\)?, column {column}"
    with pytest.raises(ValueError, match=f"X contains .*{where}"):
        _classifier().fit(*given)


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


@pytest.mark.parametrize("what", UNLIKE)
def test_a_partition_unlike_the_others(anywhere, data, what):
    X, y, w = data
    X = pd.DataFrame(X, columns=NAMES) if "of columns" in what or what == "text" else X
    cut = _cut(4)
    blocks = [(X[i:j], y[i:j], w[i:j]) for i, j in cut]
    blocks[2] = UNLIKE[what](*blocks[2])
    named = "Unknown label type" if what == "fractions" else "(partition|block) 2"
    with pytest.raises(ValueError, match=named):
        _classifier().fit([dask.delayed(block) for block in blocks])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda X, y: (_array(X), _array(y)[1:]), "X has 240 rows, y has 239"),
        (lambda X, y: (_array(X), y[1:]), "X has 240 rows, y has 239"),
        (lambda X, y: (_array(X), _array(y), y[1:]), "X has 240 rows, sample_weight has 239"),
        (lambda X, y: (_array(X), None), "requires y to be passed"),
        (lambda X, y: (_array(X), "label"), "label"),
        (lambda X, y: (_array(X), _array(0 * y)), "one class only"),
        (lambda X, y: (_array(X), _array(y + 0.5)), "Unknown label type: continuous"),
        (lambda X, y: (_array(X), _array(y), _array(0.0 * y)), "weights are zero|one class"),
        (lambda X, y: (_array(X)[:0], _array(y)[:0]), "no rows"),
        (lambda X, y: (_delayed(X, y), y), "Delayed blocks bring y"),
        (lambda X, y: (_frame(X, y), "nope"), r"no columns \['nope'\]\. It has \['x0', 'label'"),
        (lambda X, y: (_frame(X, y), "label", "nope"), r"no columns \['nope'\]"),
        (lambda X, y: (_frame(X, y), ["x0", "nope"]), r"no columns \['nope'\]"),
        (lambda X, y: (_frame(X, y), None), "requires y to be passed"),
        (lambda X, y: (_frame(X), _frame(X, y, None, 3)["label"]), "different numbers of part"),
        (lambda X, y: (_frame(X), y), "y"),
        (lambda X, y: (_frame(X, y).assign(text="a"), "label"), "text|does not turn into numbers"),
        (lambda X, y: (_array(X).astype(str), _array(y)), "no type of number"),
    ],
)
def test_what_cannot_be_fitted(anywhere, data, given, message):
    with pytest.raises(ValueError, match=message):
        _classifier().fit(*given(*data[:2]))


def test_other_columns_than_in_the_fit(anywhere, data):
    X, y, _ = data
    model = _classifier().fit(_frame(X, y), "label")
    with pytest.raises((ValueError, KeyError), match="x3"):
        model.predict(_frame(X)[NAMES[:3]])
    with pytest.raises(ValueError, match="x3"):
        model.score(_frame(X, y)[[*NAMES[:3], "label"]], "label")
    model = _classifier().fit(_array(X), _array(y))
    with pytest.raises(ValueError, match="3 features, but NystroemClassifier is expecting 4"):
        model.predict(_array(X)[:, :3]).compute()
    with pytest.raises(ValueError, match="3 features, but NystroemClassifier is expecting 4"):
        model.score(_array(X)[:, :3], _array(y))
