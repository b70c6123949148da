"""Many predictions and fits in one process, and the same bits in threads and other processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import factories
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from nysplus import Nystroem, NystroemClassifier, NystroemRegressor

PROC = Path("/proc/self")
needs_proc = pytest.mark.skipif(not PROC.exists(), reason="memory is read from /proc")
X, Y = factories.classes(400, 6, 3)
TARGETS = {"classes": Y, "values": np.sin(X[:, 0])}
THREADS = 8
# A leak is more bytes than this for each call, beside fragments of the heap.
LEAKED, FRAGMENTS = 16, 2**21
# Rounds of calls at most.
ROUNDS = 3


def sizes(few, many):
    """Run a test with few calls, and in `make test-all` with many."""
    full = pytest.param(many, marks=[pytest.mark.all_combinations, pytest.mark.slow])
    return pytest.mark.parametrize("n_calls", [few, full])


@dataclass(frozen=True)
class Resources:
    """Resources that this process holds."""

    bytes: int
    threads: int
    descriptors: int

    @classmethod
    def now(cls):
        gc.collect()
        pages = int((PROC / "statm").read_text().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE"),
            len(list((PROC / "task").iterdir())),
            len(list((PROC / "fd").iterdir())),
        )


def assert_flat(run, n_calls):
    """Compare resources before and after some calls.

    A leak takes memory in every round, fragments of the heap only in some.
    """
    grown = []
    while not grown or (min(grown) >= LEAKED * n_calls + FRAGMENTS and len(grown) < ROUNDS):
        before = Resources.now()
        run(n_calls)
        after = Resources.now()
        print(f"{n_calls:,} calls: {before} -> {after}")
        assert after.threads == before.threads
        assert after.descriptors == before.descriptors
        grown.append(after.bytes - before.bytes)
    assert min(grown) < LEAKED * n_calls + FRAGMENTS


def estimators():
    """Return unfitted estimators that take different ways through a fit."""
    return {
        "classifier": (NystroemClassifier(20, random_state=0), TARGETS["classes"]),
        "supervised": (
            NystroemClassifier(20, selection="negative-margin", random_state=0),
            TARGETS["classes"],
        ),
        "quantised": (NystroemClassifier(budget="1kB", random_state=0), TARGETS["classes"]),
        "regressor": (NystroemRegressor(20, gamma="auto", random_state=0), TARGETS["values"]),
        "float32": (NystroemRegressor(20, selection="kmeans", random_state=0), TARGETS["values"]),
        "transformer": (Nystroem(n_components=20, random_state=0), None),
    }


def rows_of(name):
    return X.astype(np.float32) if name == "float32" else X


def outputs(model, rows):
    """Return the results of all methods that predict, as bytes."""
    methods = ("predict", "decision_function", "predict_proba", "transform")
    found = [getattr(model, name)(rows) for name in methods if hasattr(model, name)]
    return [np.ascontiguousarray(values).tobytes() for values in found]


# ---- memory, threads and descriptors -------------------------------------------------------------


@needs_proc
@sizes(3000, 1_000_000)
def test_predictions_of_single_rows_hold_nothing(n_calls):
    model, y = estimators()["classifier"]
    model.fit(X, y)
    predict, rows = model.predict, [X[i : i + 1] for i in range(len(X))]
    expected = model.predict(X)

    def run(count):
        wrong = 0
        for i in range(count):
            wrong += predict(rows[i % len(rows)])[0] != expected[i % len(rows)]
        assert wrong == 0

    run(1000)
    assert_flat(run, n_calls)


@needs_proc
@sizes(24, 1000)
def test_fits_hold_nothing(n_calls):
    cases = list(estimators().items())

    def run(count):
        for i in range(count):
            name, (model, y) = cases[i % len(cases)]
            model.fit(rows_of(name), y)

    run(4 * len(cases))
    assert_flat(run, n_calls)


# ---- the same bits everywhere -------------------------------------------------------------------


@pytest.fixture
def two_threads():
    """Two threads of BLAS, whatever OMP_NUM_THREADS says to the test run."""
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.parametrize("name", estimators())
@sizes(1, 20)
def test_threads_predict_the_same_bits(name, n_calls, two_threads):
    model, y = estimators()[name]
    if name in ("classifier", "float32", "transformer"):  # enough for BLAS to use both threads
        model.set_params(n_components=200)
    rows = rows_of(name)
    model.fit(rows, y)
    for some in (rows[:1], rows, np.vstack([rows] * 10)):
        expected = outputs(model, some)
        with ThreadPoolExecutor(THREADS) as pool:
            for got in pool.map(
                lambda _, some=some: outputs(model, some), range(THREADS * n_calls)
            ):
                assert got == expected


@pytest.fixture
def one_thread():
    """One thread of BLAS: several would factorise a matrix with other rounding errors."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.mark.parametrize("name", estimators())
@sizes(1, 10)
def test_threads_fit_the_same_bits(name, n_calls, one_thread):
    rows = rows_of(name)

    def fit(_):
        model, y = estimators()[name]
        return outputs(model.fit(rows, y), rows)

    expected = fit(0)
    with ThreadPoolExecutor(THREADS) as pool:
        for got in pool.map(fit, range(THREADS * n_calls)):
            assert got == expected
    assert fit(0) == expected


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_find_the_same_bits(method, one_thread):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    with warnings.catch_warnings():
        # Python 3.12 warns that threads of the parent may hold locks; ours have all ended
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        pool = multiprocessing.get_context(method).Pool(2)
    with pool:
        for name, (model, y) in estimators().items():
            rows = rows_of(name)
            there = pool.apply_async(model.fit, (rows, y)).get(60)
            expected = outputs(model.fit(rows, y), rows)
            assert outputs(there, rows) == expected, name
            predict = model.transform if name == "transformer" else model.predict
            for got in pool.map_async(predict, [rows] * 4).get(60):
                np.testing.assert_array_equal(got, predict(rows))
