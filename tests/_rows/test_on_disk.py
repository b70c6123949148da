"""Wherever the rows are, the fit is that of the same rows in memory."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from itertools import pairwise

import factories
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import dump_svmlight_file
from threadpoolctl import threadpool_limits

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._rows import on_disk as _streams
from nysplus._rows.on_disk import read
from nysplus._rows.readers import open_source
from nysplus.kernels import RBF
from nysplus.landmarks import SELECTORS, NegativeMargin

N, D = 500, 3
NAMES = ["a", "b", "c"]
CHUNK = 61
SELECTIONS = sorted(name for name in SELECTORS if SELECTORS[name].targets != "optional")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """Many chunks of few rows, so that sums over chunks are sums over several."""
    monkeypatch.setattr(_streams, "MAX_CHUNK_ROWS", CHUNK)


ROWS = factories.table(N, D)
X, WEIGHT = ROWS.X, ROWS.weight
TARGETS = {
    **ROWS.targets,
    "signed": np.where(ROWS.targets["binary"], 1.0, -1.0),
    "boolean": ROWS.targets["binary"].astype(bool),
    "text": ROWS.targets["text"].astype(object),
}


# ---- where rows may be --------------------------------------------------------------------------


def _frame(X, y, weight):
    """Return a table that holds everything, and the names that fit wants."""
    y = np.asarray(y)
    frame = pd.DataFrame(X, columns=NAMES)
    names = "y" if y.ndim == 1 else [f"y{j}" for j in range(y.shape[1])]
    # the target stands among the features
    for place, name in enumerate([names] if y.ndim == 1 else names):
        frame.insert(1 + place, name, y if y.ndim == 1 else y[:, place])
    if weight is not None:
        frame.insert(0, "weight", weight)
    return frame, names, None if weight is None else "weight"


def _memmap(folder, X, y, weight):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y, weight


def _parquet(group):
    def store(folder, X, y, weight):
        frame, *names = _frame(X, y, weight)
        frame.to_parquet(folder / "rows.parquet", row_group_size=group)
        return folder / "rows.parquet", *names

    return store


def _files(write, suffix):
    """Several files, one of them of a single row."""

    def store(folder, X, y, weight):
        frame, *names = _frame(X, y, weight)
        (folder / "rows").mkdir()
        cuts = [0, 200, 201, 350, N]
        for number, (start, stop) in enumerate(pairwise(cuts)):
            write(frame[start:stop], folder / "rows" / f"part-{number}{suffix}")
        return str(folder / "rows"), *names

    return store


def _table(folder, X, y, weight):
    frame, *names = _frame(X, y, weight)
    return pa.Table.from_pandas(frame, preserve_index=False), *names


def _dataset(folder, X, y, weight):
    path, *names = _parquet(40)(folder, X, y, weight)
    return pds.dataset(path), *names


def _feather(folder, X, y, weight):
    table, *names = _table(folder, X, y, weight)
    pa.feather.write_feather(table, folder / "rows.arrow", chunksize=73)
    return folder / "rows.arrow", *names


def _beside(folder, X, y, weight):
    """Rows in a file, targets and weights in memory."""
    pd.DataFrame(X, columns=NAMES).to_parquet(folder / "X.parquet")
    return folder / "X.parquet", y, weight


def _cut(X, y, weight, size):
    arrays = [values for values in (X, y, weight) if values is not None]
    return [tuple(v[i : i + size] for v in arrays) for i in range(0, X.shape[0], size)]


def _blocks(size, container=list):
    def store(folder, X, y, weight):
        return container(_cut(X, y, weight, size)), None, None

    return store


class Again:
    """An object that starts anew each time it is iterated over."""

    def __init__(self, blocks):
        self._blocks = blocks

    def __iter__(self):
        return iter(self._blocks)


STORES = {
    "memmap": _memmap,
    "parquet": _parquet(10_000),
    "parquet-groups-of-7": _parquet(7),
    "parquet-files": _files(lambda frame, path: frame.to_parquet(path, row_group_size=90), ".pq"),
    "parquet-beside": _beside,
    "csv": _files(lambda frame, path: frame.to_csv(path, index=False), ".csv"),
    "csv.gz": _files(lambda frame, path: frame.to_csv(path, index=False), ".csv.gz"),
    "feather": _feather,
    "table": _table,
    "dataset": _dataset,
    "blocks-of-1": _blocks(1),
    "blocks-of-61": _blocks(61, Again),
    "blocks-of-200": _blocks(200, lambda blocks: lambda: (block for block in blocks)),
    "one-block": _blocks(N),
    "empty-blocks": _blocks(90, lambda cut: [cut[0], tuple(v[:0] for v in cut[0]), *cut[1:]]),
}
every_store = pytest.mark.parametrize("store", STORES.values(), ids=STORES)
FEW = ["memmap", "parquet-files", "csv", "table", "blocks-of-61"]
one_of_a_kind = pytest.mark.parametrize("store", ["memmap", "parquet-files", "csv", "blocks-of-61"])


def _kind(target):
    return NystroemRegressor if "values" in target else NystroemClassifier


def _model(target="binary", **params):
    defaults = {"gamma": 0.5, "alpha": 0.1, "selection": "uniform", "random_state": 0}
    return _kind(target)(20, **defaults | params)


def _rows_for(model, X):
    """Return rows with the names of columns that the model knows."""
    return pd.DataFrame(X, columns=NAMES) if hasattr(model, "feature_names_in_") else X


def _assert_close(got, expected, rtol=1e-8):
    assert got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= rtol * np.linalg.norm(expected)


def _dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def _assert_same(model, other):
    if other.landmark_indices_ is None:
        assert model.landmark_indices_ is None
    else:
        np.testing.assert_array_equal(model.landmark_indices_, other.landmark_indices_)
    _assert_close(_dense(model.landmarks_), _dense(other.landmarks_), 1e-13)
    assert model.gamma_ == pytest.approx(other.gamma_, rel=1e-12)
    assert model.alpha_ == other.alpha_
    _assert_close(model.dual_coef_, other.dual_coef_)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=0, atol=1e-8)
    assert model.n_features_in_ == other.n_features_in_
    if hasattr(other, "classes_"):
        np.testing.assert_array_equal(model.classes_, other.classes_)


# ---- fit ----------------------------------------------------------------------------------------


@every_store
def test_sources_have_several_chunks(tmp_path, store):
    rows, y, weight = store(tmp_path, X, TARGETS["binary"], WEIGHT)
    chunks = list(read(open_source(rows, y, weight)))
    assert len(chunks) >= 9
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), X)


@pytest.mark.parametrize("selection", [*SELECTIONS, "given"])
@pytest.mark.parametrize("store", FEW)
def test_every_selection(tmp_path, store, selection):
    params = {"selection": X[::25] if selection == "given" else selection}
    whole = _model(**params).fit(X, TARGETS["binary"])
    _assert_same(_model(**params).fit(*STORES[store](tmp_path, X, TARGETS["binary"], None)), whole)


@pytest.mark.parametrize(
    ("target", "weight"),
    [
        ("signed", WEIGHT),
        ("boolean", None),
        ("text", None),
        ("text", WEIGHT),
        ("labels", WEIGHT),
        ("values", WEIGHT),
        ("two-values", None),
    ],
)
@every_store
def test_every_kind_of_target(tmp_path, store, target, weight):
    y = TARGETS[target]
    whole = _model(target).fit(X, y, sample_weight=weight)
    model = _model(target).fit(*store(tmp_path, X, y, weight))
    _assert_same(model, whole)
    predicted, expected = model.predict(_rows_for(model, X)), whole.predict(X)
    assert predicted.shape == expected.shape
    if "values" not in target:
        np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize("selection", SELECTIONS)
@one_of_a_kind
def test_weights_with_every_selection(tmp_path, store, selection):
    y = TARGETS["labels"]
    whole = _model(selection=selection).fit(X, y, sample_weight=WEIGHT)
    model = _model(selection=selection).fit(*STORES[store](tmp_path, X, y, WEIGHT))
    _assert_same(model, whole)
    if model.landmark_indices_ is not None:
        assert (WEIGHT[model.landmark_indices_] > 0).all()


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": "auto"},
        {"alpha": [1e-2, 1.0, 10.0]},
        {"gamma": "scale"},
        {"gamma": "median"},
        {"kernel": "matern", "gamma": "median", "alpha": "auto"},
        {"kernel": "poly", "gamma": "scale"},
        {"approximation": "randomized"},
        {"approximation": "ensemble"},
        {"selection": "auto", "alpha": "auto", "gamma": "scale"},
        {"selection": NegativeMargin(n_initial=7)},
        {"class_weight": "balanced"},
        {"class_weight": {"low": 0.3, "mid": 4.0}},
        {"class_weight": "balanced", "selection": "negative-margin", "alpha": [0.1, 1.0]},
    ],
    ids=str,
)
@one_of_a_kind
def test_every_parameter(tmp_path, store, params):
    y = TARGETS["text"]
    whole = _model(**params).fit(X, y, sample_weight=WEIGHT)
    _assert_same(_model(**params).fit(*STORES[store](tmp_path, X, y, WEIGHT)), whole)


@pytest.mark.parametrize("alpha", ["auto", [0.01, 1.0]])
@pytest.mark.parametrize("target", ["values", "two-values", "labels"])
@one_of_a_kind
def test_chosen_ridges(tmp_path, store, target, alpha):
    y = TARGETS[target]
    whole = _model(target, alpha=alpha).fit(X, y, sample_weight=WEIGHT)
    _assert_same(
        _model(target, alpha=alpha).fit(*STORES[store](tmp_path, X, y, WEIGHT)),
        whole,
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16])
@one_of_a_kind
def test_every_type_of_number(tmp_path, store, dtype):
    if dtype is np.float16 and store == "csv":
        pytest.skip("text has no type")
    small = np.clip(np.round(X * 20 + 100), 0, 250).astype(dtype)
    params = {"gamma": "scale", "selection": small[:20].astype(float)}
    whole = _model(**params).fit(small, TARGETS["binary"])
    model = _model(**params).fit(*STORES[store](tmp_path, small, TARGETS["binary"], None))
    np.testing.assert_allclose(
        model.decision_function(_rows_for(model, small)),
        whole.decision_function(small),
        atol=1e-3 if dtype is np.float16 else 1e-9,
    )


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("store", ["memmap", "parquet-files", "feather", "blocks-of-61"])
def test_float32_rows(tmp_path, store, selection):
    rows, y = X.astype(np.float32), TARGETS["several"]
    whole = _model(selection=selection).fit(rows, y)
    model = _model(selection=selection).fit(*STORES[store](tmp_path, rows, y, None))
    assert model.landmarks_.dtype == model.dual_coef_.dtype == np.float32
    assert model.solver_ == whole.solver_
    np.testing.assert_allclose(model.landmarks_, whole.landmarks_, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(_rows_for(model, rows)),
        whole.decision_function(rows),
        atol=1e-4,
    )


@pytest.mark.parametrize("target", ["text", "labels", "two-values"])
@pytest.mark.parametrize("seed", range(3))
def test_given_landmarks_make_the_order_of_blocks_indifferent(target, seed):
    rng = np.random.RandomState(seed)
    params = {"selection": X[:20], "alpha": [0.01, 0.1, 1.0]}
    whole = _model(target, **params).fit(X, TARGETS[target], sample_weight=WEIGHT)
    blocks = _cut(X, TARGETS[target], WEIGHT, rng.randint(1, 90))
    rng.shuffle(blocks)
    _assert_same(_model(target, **params).fit(blocks), whole)


def test_targets_of_one_column_keep_their_shape(tmp_path):
    y = TARGETS["values"][:, None]
    whole = _model("values").fit(X, y)
    model = _model("values").fit(*_memmap(tmp_path, X, y, None))
    assert model.predict(X).shape == whole.predict(X).shape


def test_columns_in_fortran_order_and_views_of_memmaps(tmp_path):
    whole = _model().fit(X[100:, 1:], TARGETS["binary"][100:])
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    _assert_same(_model().fit(rows[100:, 1:], TARGETS["binary"][100:]), whole)


# ---- sparse rows --------------------------------------------------------------------------------


def _sparse_rows():
    rng = np.random.RandomState(0)
    dense = np.round(rng.rand(N, 12), 3) * (rng.rand(N, 12) < 0.3)
    dense[0, -1] = 1.0  # the last column is there
    dense[5] = 0.0
    return sp.csr_matrix(dense), (dense.sum(axis=1) > 1.8).astype(int)


SPARSE, SPARSE_Y = _sparse_rows()


def _libsvm(zero_based):
    def store(folder):
        dump_svmlight_file(SPARSE, SPARSE_Y, str(folder / "rows.svm"), zero_based=zero_based)
        return folder / "rows.svm"

    return store


def _libsvm_files(folder):
    (folder / "rows").mkdir()
    for number, rows in enumerate([slice(0, 100), slice(100, N)]):
        dump_svmlight_file(SPARSE[rows], SPARSE_Y[rows], str(folder / "rows" / f"{number}.svm"))
    return folder / "rows"


SPARSE_STORES = {
    "libsvm-from-0": _libsvm(True),
    "libsvm-from-1": _libsvm(False),
    "libsvm-files": _libsvm_files,
    "csr-blocks": lambda folder: _cut(SPARSE, SPARSE_Y, None, 45),
    "csc-blocks": lambda folder: [(x.tocsc(), y) for x, y in _cut(SPARSE, SPARSE_Y, None, 45)],
}
every_sparse_store = pytest.mark.parametrize(
    "store", SPARSE_STORES.values(), ids=list(SPARSE_STORES)
)


@pytest.mark.parametrize(
    ("selection", "gamma"), [*((name, "scale") for name in SELECTIONS), ("uniform", "median")]
)
@every_sparse_store
def test_sparse_rows(tmp_path, store, selection, gamma):
    whole = _model(selection=selection, gamma=gamma).fit(SPARSE, SPARSE_Y)
    rows = store(tmp_path)
    model = _model(selection=selection, gamma=gamma).fit(rows)
    _assert_same(model, whole)
    assert sp.issparse(model.landmarks_) == sp.issparse(whole.landmarks_)
    np.testing.assert_allclose(
        model.decision_function(rows), whole.decision_function(SPARSE), atol=1e-9
    )
    assert model.score(rows) == pytest.approx(whole.score(SPARSE, SPARSE_Y))


@pytest.mark.parametrize("zero_based", [True, False])
def test_later_libsvm_files_number_features_as_the_first_one(tmp_path, zero_based):
    """In the rows to be predicted the first feature does not occur."""
    model = _model().fit(_libsvm(zero_based)(tmp_path))
    few = SPARSE[np.flatnonzero(SPARSE[:, [0]].toarray() == 0)]
    dump_svmlight_file(
        few, np.zeros(few.shape[0]), str(tmp_path / "few.svm"), zero_based=zero_based
    )
    np.testing.assert_allclose(
        model.decision_function(tmp_path / "few.svm"), model.decision_function(few), atol=1e-12
    )


# ---- predict, score, transform ------------------------------------------------------------------


@pytest.mark.parametrize("target", ["text", "labels", "two-values"])
@every_store
def test_predictions_and_scores(tmp_path, store, target):
    y = TARGETS[target]
    model = _model(target).fit(pd.DataFrame(X, columns=NAMES), y)
    named = pd.DataFrame(X, columns=NAMES)
    rows, y_name, weight_name = store(tmp_path, X, y, WEIGHT)
    expected = model.predict(named)
    if target.endswith("values"):
        np.testing.assert_allclose(model.predict(rows), expected, atol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(rows), expected)
        decision = model.decision_function(named)
        np.testing.assert_allclose(model.decision_function(rows), decision, atol=1e-12)
    assert model.score(rows, y_name, weight_name) == pytest.approx(
        model.score(named, y, WEIGHT), rel=1e-10
    )


def test_scores_of_classes_that_training_lacked(tmp_path):
    seen = TARGETS["several"] < 2
    model = _model().fit(X[seen], TARGETS["several"][seen])
    rows, y, _ = _memmap(tmp_path, X, TARGETS["several"], None)
    assert model.score(rows, y) == pytest.approx(model.score(X, TARGETS["several"]))


def test_score_of_constant_values(tmp_path):
    model = _model("values").fit(X, TARGETS["values"])
    rows, y, _ = _memmap(tmp_path, X, np.ones(N), None)
    assert model.score(rows, y) == pytest.approx(model.score(X, y))


@pytest.mark.parametrize("selection", [*SELECTIONS, "auto"])
@pytest.mark.parametrize("store", FEW)
def test_transformer(tmp_path, store, selection):
    params = {"n_components": 20, "selection": selection, "alpha": 0.1, "random_state": 0}
    whole = Nystroem(**params).fit(X, TARGETS["several"])
    rows, y, _ = STORES[store](tmp_path, X, TARGETS["several"], None)
    model = Nystroem(**params).fit(rows, y)
    assert model.n_features_in_ == D
    if whole.component_indices_ is not None:
        np.testing.assert_array_equal(model.component_indices_, whole.component_indices_)
    _assert_close(model.components_, whole.components_, 1e-13)
    Phi = model.transform(rows)
    assert Phi.shape == (N, 20)
    np.testing.assert_allclose(Phi @ Phi.T, whole.transform(X) @ whole.transform(X).T, atol=1e-8)


def test_transformer_leaves_a_continuous_target_alone(tmp_path):
    rows, y, _ = _parquet(100)(tmp_path, X, TARGETS["values"], None)
    params = {"n_components": 20, "selection": "auto", "random_state": 0}
    whole = Nystroem(**params).fit(X, TARGETS["values"])
    model = Nystroem(**params).fit(rows, y)
    np.testing.assert_array_equal(model.component_indices_, whole.component_indices_)
    assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("store", ["memmap", "parquet", "blocks-of-61"])
def test_transformer_without_targets(tmp_path, store):
    rows, *_ = STORES[store](tmp_path, X, TARGETS["values"], None)
    whole = Nystroem(n_components=20, random_state=0).fit(X)
    if store == "parquet":
        rows = pds.dataset(rows).to_table(columns=NAMES)
    model = Nystroem(n_components=20, random_state=0).fit(rows)
    np.testing.assert_array_equal(model.component_indices_, whole.component_indices_)


# ---- passes and memory --------------------------------------------------------------------------

# survey, landmarks, moments, leave-one-out; two-stage rules: pilot, its leave-one-out, scores;
# from a table, rows that are picked out are read for: also those that scale probabilities
PASSES = [
    ("given", 0.1, "classes", 3, 2),
    ("uniform", 0.1, "classes", 4, 2),
    ("uniform", "auto", "classes", 5, 3),
    ("kmeans", 0.1, "classes", 4, 2),
    ("negative-margin", 0.1, "classes", 7, 4),
    ("negative-margin", "auto", "classes", 9, 6),
    ("supervised-kmeans", 0.1, "classes", 7, 4),
    ("support-centroids", 0.1, "classes", 5, 3),
    ("class-centroids", 0.1, "classes", 4, 2),
    ("auto", "auto", "classes", 5, 3),
    ("auto", "auto", "values", 3, 2),
    ("uniform", 0.1, "values", 3, 2),
    ("uniform", "auto", "values", 3, 2),
]


@pytest.mark.parametrize(("selection", "alpha", "kind", "from_table", "from_memmap"), PASSES)
def test_number_of_passes(tmp_path, selection, alpha, kind, from_table, from_memmap):
    target = "values" if kind == "values" else "binary"
    params = {"selection": X[:20] if selection == "given" else selection, "alpha": alpha}
    y = TARGETS[target]
    model = _model(target, gamma="scale", **params)
    assert model.fit(*_parquet(50)(tmp_path, X, y, None)).n_passes_ == from_table
    assert model.fit(*_memmap(tmp_path, X, y, None)).n_passes_ == from_memmap
    assert model.fit(X, y).n_passes_ == from_memmap - 1


def test_passes_are_what_is_read():
    reads = []

    def blocks():
        reads.append(0)
        for block in _cut(X, TARGETS["binary"], None, CHUNK):
            reads[-1] += 1
            yield block

    model = _model(alpha="auto").fit(blocks)
    assert reads[0] == 1  # to see what blocks look like
    assert len(reads) - 1 == model.n_passes_ == 5


@pytest.mark.parametrize("megabytes", [0.05, 1, 1000])
@one_of_a_kind
def test_working_memory_changes_rounding_only(tmp_path, store, megabytes):
    y = TARGETS["several"]
    whole = _model(selection="negative-margin", alpha=[0.01, 1.0]).fit(X, y)
    rows = STORES[store](tmp_path, X, y, None)
    with sklearn.config_context(working_memory=megabytes):
        model = _model(selection="negative-margin", alpha=[0.01, 1.0]).fit(*rows)
        _assert_same(model, whole)
        np.testing.assert_allclose(
            model.decision_function(rows[0]), whole.decision_function(X), atol=1e-9
        )


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """60 MB of rows, on disk."""
    folder = tmp_path_factory.mktemp("large")
    rows = np.random.RandomState(0).standard_normal((190_000, 40))
    y = (rows[:, 0] > 0).astype(np.int8)
    np.save(folder / "X.npy", rows)
    np.save(folder / "y.npy", y)
    table = pa.table({f"x{j}": rows[:, j] for j in range(40)} | {"y": y})
    pq.write_table(table, folder / "rows.parquet", row_group_size=len(y))
    return folder


@pytest.mark.parametrize("selection", ["kmeans", "negative-margin"])
def test_memory_follows_working_memory_not_the_rows(large, monkeypatch, selection):
    monkeypatch.undo()  # chunks as they are
    rows, y = np.load(large / "X.npy", mmap_mode="r"), np.load(large / "y.npy")
    model = NystroemClassifier(20, gamma=0.01, selection=selection, random_state=0)
    with sklearn.config_context(working_memory=4):
        tracemalloc.start()
        model.fit(rows, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        model.predict(rows)
        predicting = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    pool = 20_000 * 40 * 8 if selection == "kmeans" else 0  # rows that are clustered
    trials = 10_000 * 40 * 8  # rows that the ridge is chosen on
    assert peak < 10e6 + 3 * pool + 3 * trials
    assert predicting < 10e6


MEASURE = """
import resource, sys
import numpy as np, sklearn
import pyarrow.csv, pyarrow.dataset, pyarrow.parquet
from nysplus import NystroemClassifier

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def blocks():
    for seed in range(19):
        rows = np.random.RandomState(seed).standard_normal((10_000, 40))
        yield rows, rows[:, 0] > 0

folder = sys.argv[1]
few = next(blocks())
sklearn.set_config(working_memory=8)
model = NystroemClassifier(20, gamma=0.01, alpha=0.1, selection="uniform", random_state=0)
model.fit([few]).predict([few[0]])
before = peak()
for args in (
    (np.load(folder + "/X.npy", mmap_mode="r"), np.load(folder + "/y.npy")),
    (folder + "/rows.parquet", "y"),
    (blocks,),
):
    model.fit(*args)
    print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB there")
def test_resident_memory_stays_bounded(large):
    """Also what NumPy and tracemalloc do not see: mapped pages, pyarrow's buffers."""
    command = [sys.executable, "-c", MEASURE, str(large)]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(grown) == 3
    assert max(map(float, grown)) < 40


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("store", ["memmap", "parquet", "blocks-of-61"])
def test_blocks_are_cut_alike_in_all_chunks(monkeypatch, tmp_path, store, threads):
    """Also where work is shared among threads, which share the memory too."""
    monkeypatch.setattr(_streams, "MAX_CHUNK_ROWS", 125)
    sizes = []

    def block(coding, chunk, rows, original=_streams.Coding.block):
        sizes.append(rows.stop - rows.start)
        return original(coding, chunk, rows)

    monkeypatch.setattr(_streams.Coding, "block", block)
    rows = STORES[store](tmp_path, X, TARGETS["values"], None)
    with threadpool_limits(threads, user_api="blas"), sklearn.config_context(working_memory=0.1):
        _model("values", selection=X[:20]).fit(*rows)
    assert sum(sizes) == N
    assert all(sizes.count(size) % 4 == 0 for size in sizes)  # four chunks


def test_reading_is_ahead_of_computing():
    taken, more = [], threading.Condition()

    def blocks():
        for block in _cut(X, TARGETS["binary"], None, CHUNK):
            with more:
                taken.append(threading.current_thread())
                more.notify_all()
            yield block

    source = open_source(blocks)
    taken.clear()
    last = N // CHUNK
    for number, _ in enumerate(read(source)):
        with more:
            assert more.wait_for(lambda n=number: len(taken) >= min(n + 2, last + 1), timeout=10)
            assert len(taken) <= number + 3
    taken.clear()
    _model().fit(blocks)
    readers = [thread for thread in taken[1:] if thread is not threading.main_thread()]
    assert len(readers) >= 2 * last


def test_a_reader_that_fails_stops_the_fit():
    def blocks():
        yield from _cut(X, TARGETS["binary"], None, CHUNK)[:3]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        _model().fit(blocks)
    assert threading.active_count() < 10


def test_what_the_matrices_need_is_said():
    rows, y = np.random.RandomState(0).rand(900, 2), np.arange(900) % 2
    with sklearn.config_context(working_memory=1):
        with pytest.warns(
            UserWarning, match=r"400 landmarks need about 7 MiB.* is 1 MiB.* use 147 landmarks"
        ):
            NystroemClassifier(400, alpha=0.1, selection="uniform").fit(rows, y)
        with pytest.warns(UserWarning, match="148 landmarks need"):
            NystroemClassifier(148, alpha=0.1, selection="uniform").fit(rows, y)
        NystroemClassifier(147, alpha=0.1, selection="uniform").fit(rows, y)


# ---- what goes wrong ----------------------------------------------------------------------------


def _broken_rows():
    broken = X.copy()
    broken[431, 1] = np.nan
    return broken


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("memmap", r"X contains NaN in row 431 .*column 1\b"),
        ("parquet-groups-of-7", r"X contains NaN in row 431 .*rows.parquet.*column 'b'"),
        ("parquet-files", r"X contains NaN in row 431 \(row 81 of part-3.pq.*column 'b'"),
        ("csv", r"X contains NaN in row 431 \(row 81 of part-3.csv.*column 'b'"),
        ("table", r"X contains NaN in row 431 .*column 'b'"),
        ("blocks-of-61", r"X contains NaN in row 431 \(row 4 of block 7.*column 1\b"),
    ],
)
def test_a_missing_number_late_in_a_stream_is_named(tmp_path, store, message):
    rows, y, _ = STORES[store](tmp_path, _broken_rows(), TARGETS["binary"], None)
    with pytest.raises(ValueError, match=message):
        _model().fit(rows, y)
    model = _model().fit(pd.DataFrame(X, columns=NAMES), TARGETS["binary"])
    with pytest.raises(ValueError, match=message):
        model.predict(rows)
    with pytest.raises(ValueError, match=message):
        Nystroem(n_components=5, selection="negative-margin").fit(rows, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(N) == 431, np.nan, TARGETS["binary"]), "y contains NaN in row 431"),
        (np.where(np.arange(N) == 431, 0.5, TARGETS["binary"]), "continuous.*y contains 0.5"),
        (np.ones(N, dtype=int), "one class only, .*1"),
        (np.where(np.arange(N) % 2, 2, TARGETS["labels"][:, 0])[:, None] * [1, 1], "indicator"),
    ],
)
@pytest.mark.parametrize("store", ["memmap", "blocks-of-61"])
def test_labels_that_will_not_do(tmp_path, store, y, message):
    with pytest.raises(ValueError, match=message):
        _model().fit(*STORES[store](tmp_path, X, y, None))


@pytest.mark.parametrize("dtype", [object, str])
@pytest.mark.parametrize("size", [CHUNK, 100, N // 2])
def test_classes_of_two_kinds(monkeypatch, dtype, size):
    monkeypatch.setattr(_streams, "MAX_CHUNK_ROWS", 100_000 if size == N // 2 else CHUNK)
    blocks = _cut(X, TARGETS["binary"], None, size)
    blocks[-1] = blocks[-1][0], TARGETS["text"][-len(blocks[-1][1]) :].astype(dtype)
    with pytest.raises(ValueError, match=r"number.*text|text.*number"):
        _model().fit(blocks)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(N), "All sample weights are zero"),
        (np.where(np.arange(N) == 431, -1.0, 1.0), "sample_weight contains -1 in row 431"),
        (np.where(np.arange(N) == 431, np.inf, 1.0), "sample_weight contains infinity in row 431"),
        (np.where(TARGETS["binary"] == 1, 1.0, 0.0), "one class only"),
    ],
)
@one_of_a_kind
def test_weights_that_will_not_do(tmp_path, store, weight, message):
    with pytest.raises(ValueError, match=message):
        _model().fit(*STORES[store](tmp_path, X, TARGETS["binary"], weight))


@pytest.mark.parametrize("kind", [NystroemClassifier, NystroemRegressor])
def test_targets_that_nobody_named(tmp_path, kind):
    with pytest.raises(ValueError, match=r"requires y to be passed.*Name the column with y="):
        kind(5).fit(_parquet(100)(tmp_path, X, TARGETS["binary"], None)[0])
    with pytest.raises(ValueError, match=r"requires y to be passed.*blocks \(X, y\)"):
        kind(5).fit([X[:100], X[100:]])
    with pytest.raises(ValueError, match=r"no columns \['z'\]. Its columns are \['a', 'y'"):
        kind(5).fit(tmp_path / "rows.parquet", "z")
    with pytest.raises(ValueError, match="y was passed beside X, but blocks bring their own"):
        kind(5).fit(_cut(X, TARGETS["binary"], None, 100), TARGETS["binary"])


def test_class_weights_of_labels(tmp_path):
    with pytest.raises(ValueError, match="one class per row"):
        _model(class_weight="balanced").fit(*_memmap(tmp_path, X, TARGETS["labels"], None))


def test_rows_that_are_shuffled_between_passes():
    rng = np.random.RandomState(0)

    def blocks():
        order = rng.permutation(N)
        yield from _cut(X[order], TARGETS["binary"][order], None, 100)

    with pytest.raises(ValueError, match=r"block 0 is not what it was before.*turn shuffling off"):
        _model().fit(blocks)


@pytest.mark.parametrize("lost", [1, -1])
def test_rows_that_get_fewer_or_more_between_passes(lost):
    calls = []

    def blocks():
        calls.append(1)
        cut = _cut(X, TARGETS["binary"], None, 100)
        yield from cut[:-1] if (len(calls) > 2) == (lost > 0) else cut

    with pytest.raises(ValueError, match=r"This pass over X gave .* rows, the first one gave"):
        _model().fit(blocks)


def test_iterators_that_can_be_read_once():
    with pytest.raises(ValueError, match="generator that can be read only once"):
        _model().fit(block for block in _cut(X, TARGETS["binary"], None, 100))


def test_columns_are_found_by_name(tmp_path):
    named = pd.DataFrame(X, columns=NAMES)
    model = _model().fit(named, TARGETS["binary"])
    expected = model.decision_function(named)
    moved = named[["c", "a", "b"]].assign(more="text")
    for suffix, write in (".parquet", moved.to_parquet), (".csv", moved.to_csv):
        write(tmp_path / f"moved{suffix}", index=False)
        got = model.decision_function(tmp_path / f"moved{suffix}")
        np.testing.assert_allclose(got, expected, atol=1e-12)
    named[["c", "a"]].to_parquet(tmp_path / "fewer.parquet")
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=r"no columns \['b'\]"):
            method(tmp_path / "fewer.parquet")


def test_names_of_columns_are_kept(tmp_path):
    model = _model().fit(*_parquet(50)(tmp_path, X, TARGETS["binary"], WEIGHT))
    assert list(model.feature_names_in_) == NAMES
    model.predict(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=["a", "b", "d"]))
    model.fit(*_memmap(tmp_path, X, TARGETS["binary"], None))
    assert not hasattr(model, "feature_names_in_")


def test_blocks_of_data_frames_with_other_columns():
    blocks = [(pd.DataFrame(x, columns=NAMES), y) for x, y in _cut(X, TARGETS["binary"], None, 90)]
    model = _model().fit(blocks)
    assert list(model.feature_names_in_) == NAMES
    moved = [(x[["c", "a", "b"]], y) for x, y in blocks]
    with pytest.raises(ValueError, match=r"feature names|columns"):
        model.predict(moved)
    with pytest.raises(ValueError, match=r"feature names|columns"):
        model.score(moved)


@pytest.mark.parametrize("store", ["memmap", "blocks-of-61", "table"])
def test_wrong_number_of_features(tmp_path, store):
    model = _model().fit(X[:, :2], TARGETS["binary"])
    rows, *_ = STORES[store](tmp_path, X, TARGETS["binary"], None)
    wide = 4 if store == "table" else 3
    with pytest.raises(
        ValueError, match=f"X has {wide} features, but NystroemClassifier is expecting 2 features"
    ):
        model.predict(rows)
    given = _model(selection=X[:20, :2])
    with pytest.raises(ValueError, match=r"have 2 features, X has \d"):
        given.fit(*STORES[store](tmp_path, X, TARGETS["binary"], None))


def test_unknown_libsvm_features(tmp_path):
    model = _model().fit(SPARSE[:, :8], SPARSE_Y)
    with pytest.raises(ValueError, match=r"rows\.svm"):
        model.predict(_libsvm(True)(tmp_path))


@pytest.mark.parametrize("params", [{"alpha": -1}, {"kernel": "gauss"}, {"n_components": 0}])
def test_parameters_are_checked_before_any_row_is_read(params):
    reads = []

    def blocks():
        reads.append(1)
        yield from _cut(X, TARGETS["binary"], None, 100)

    open_source(blocks)
    for_opening = len(reads)
    with pytest.raises(ValueError, match=next(iter(params))):
        _model().set_params(**params).fit(blocks)
    assert len(reads) <= 2 * for_opening


def test_more_landmarks_than_rows_that_weigh(tmp_path):
    weight = np.where(np.arange(N) < 15, 1.0, 0.0)
    rows = _memmap(tmp_path, X, TARGETS["binary"], weight)
    with pytest.warns(UserWarning, match="n_components=20 exceeds the 15 rows"):
        model = _model().fit(*rows)
    np.testing.assert_array_equal(model.landmark_indices_, np.arange(15))


def test_histogram_kernel_on_negative_rows(tmp_path):
    with pytest.raises(ValueError, match="non-negative features"):
        _model(kernel="chi2").fit(*_memmap(tmp_path, X, TARGETS["binary"], None))


def test_median_and_scale_are_those_of_rows_that_weigh(tmp_path):
    """Rows of weight zero are far away and must not count."""
    far = np.where(WEIGHT[:, None] > 0, X, 1e3)
    for gamma in ("scale", "median"):
        model = _model(kernel=RBF(gamma), gamma="scale").fit(
            *_memmap(tmp_path, far, TARGETS["binary"], WEIGHT)
        )
        assert model.gamma_ > 1e-2
