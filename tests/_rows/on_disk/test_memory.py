"""Passes over the rows, and the memory that they take."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import sklearn
from row_stores import (
    CHUNK,
    STORES,
    TARGETS,
    N,
    X,
    as_memmap,
    as_parquet,
    assert_same,
    cut_into,
    make_model,
    one_of_a_kind,
)
from threadpoolctl import threadpool_limits

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._rows.on_disk import ChunkRules, read, using_chunk_rules
from nysplus._rows.opening import TargetSpec, open_rows
from nysplus._rows.readers import open_source
from nysplus._runtime.checkpoint import Journal
from nysplus._runtime.progress import Progress

pytestmark = pytest.mark.slow

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
    model = make_model(target, gamma="scale", **params)
    assert model.fit(*as_parquet(50)(tmp_path, X, y, None)).n_passes_ == from_table
    assert model.fit(*as_memmap(tmp_path, X, y, None)).n_passes_ == from_memmap
    assert model.fit(X, y).n_passes_ == from_memmap - 1


def test_passes_are_what_is_read():
    reads = []

    def blocks():
        reads.append(0)
        for block in cut_into(X, TARGETS["binary"], None, CHUNK):
            reads[-1] += 1
            yield block

    model = make_model(alpha="auto").fit(blocks)
    assert reads[0] == 1  # to see what blocks look like
    assert len(reads) - 1 == model.n_passes_ == 5


@pytest.mark.parametrize("megabytes", [0.05, 1, 1000])
@one_of_a_kind
def test_working_memory_changes_rounding_only(tmp_path, store, megabytes):
    y = TARGETS["several"]
    whole = make_model(selection="negative-margin", alpha=[0.01, 1.0]).fit(X, y)
    rows = STORES[store](tmp_path, X, y, None)
    with sklearn.config_context(working_memory=megabytes):
        model = make_model(selection="negative-margin", alpha=[0.01, 1.0]).fit(*rows)
        assert_same(model, whole)
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
def test_memory_follows_working_memory_not_the_rows(large, selection):
    rows, y = np.load(large / "X.npy", mmap_mode="r"), np.load(large / "y.npy")
    model = NystroemClassifier(20, gamma=0.01, selection=selection, random_state=0)
    with sklearn.config_context(working_memory=4), using_chunk_rules(ChunkRules()):
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
def test_blocks_are_cut_alike_in_all_chunks(tmp_path, store, threads):
    """Also where work is shared among threads, which share the memory too."""
    sizes = []

    def part(block):
        sizes.append(len(block))
        return np.zeros(1)

    rows = STORES[store](tmp_path, X, TARGETS["values"], None)
    with (
        threadpool_limits(threads, user_api="blas"),
        sklearn.config_context(working_memory=0.1),
        using_chunk_rules(ChunkRules(max_rows=125)),
    ):
        found = open_rows(NystroemRegressor(), *rows, TargetSpec("values"))
        blocks, _ = found.open(Progress(), Journal())
        blocks.fold(part, lambda: np.zeros(1), 1000, "test")
    assert sum(sizes) == N
    assert len(sizes) > 4
    assert all(sizes.count(size) % 4 == 0 for size in sizes)  # four chunks


def test_reading_is_ahead_of_computing():
    taken, more = [], threading.Condition()

    def blocks():
        for block in cut_into(X, TARGETS["binary"], None, CHUNK):
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
    make_model().fit(blocks)
    readers = [thread for thread in taken[1:] if thread is not threading.main_thread()]
    assert len(readers) >= 2 * last


def test_a_reader_that_fails_stops_the_fit():
    def blocks():
        yield from cut_into(X, TARGETS["binary"], None, CHUNK)[:3]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        make_model().fit(blocks)
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


@pytest.mark.parametrize("estimator", [NystroemClassifier, Nystroem])
def test_only_landmarks_that_there_can_be_need_memory(estimator):
    rows, y = np.random.RandomState(0).rand(140, 2), np.arange(140) % 2
    blocks = cut_into(rows, y, None, 50)
    with sklearn.config_context(working_memory=1):
        for data in ((rows, y), (lambda: blocks,)):
            with pytest.warns(UserWarning, match="exceeds the 140 rows") as given:
                estimator(n_components=10_000, selection="uniform").fit(*data)
            assert not [w for w in given if "need about" in str(w.message)]
        points = np.random.RandomState(1).rand(200, 2)
        with pytest.warns(UserWarning, match="200 landmarks need"):
            estimator(selection=points).fit(rows, y)
