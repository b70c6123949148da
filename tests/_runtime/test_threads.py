from __future__ import annotations

import gc
import multiprocessing
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn import cluster, config_context, get_config
from sklearn.datasets import make_moons
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController, threadpool_limits

from nysplus import Nystroem, NystroemClassifier
from nysplus._rows.blocks import Block, Blocks
from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import (
    free_threads,
    in_threads,
    one_blas_thread,
    thread_count,
    using_threads,
)
from nysplus.landmarks.clustering import centroids


@pytest.fixture
def two_threads():
    """Two threads of BLAS, whatever OMP_NUM_THREADS says to the test run."""
    with threadpool_limits(2, user_api="blas"):
        yield


def blas_threads():
    """Threads that BLAS has right now, asked of the libraries themselves."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in libraries}


def cut_into_blocks(monkeypatch, rows):
    """Make small data come in several blocks, whatever the number of threads."""
    monkeypatch.setattr(row_slices, "__defaults__", (rows, 0, None))
    monkeypatch.setattr("nysplus.expansion.MIN_BLOCK_ROWS", rows)
    monkeypatch.setattr("nysplus.expansion.CACHED_VALUES", 1)


# ---- order and results -------------------------------------------------------------------------


@pytest.mark.parametrize("n_items", [0, 1, 2, 3, 20])
def test_results_come_in_order_however_long_they_take(n_items, two_threads):
    def slow_first(item):
        time.sleep(0.002 * (item % 3 == 0))
        return item**2

    assert list(in_threads(slow_first, range(n_items))) == [i**2 for i in range(n_items)]


def test_both_threads_work_at_the_same_time(two_threads):
    meeting = threading.Barrier(2, timeout=10)
    names = list(
        in_threads(lambda _: (meeting.wait(), threading.current_thread().name)[1], range(6))
    )
    assert len(set(names)) == 2
    assert threading.main_thread().name not in names


def test_few_results_wait_to_be_taken(two_threads):
    started = []
    results = in_threads(lambda item: started.append(item), range(100))
    next(results)
    time.sleep(0.02)
    assert len(started) <= 4  # one was taken, one more than there are threads may wait
    results.close()


def test_items_may_come_from_a_generator(two_threads):
    assert list(in_threads(lambda item: item + 1, (i for i in range(5)))) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("alpha", [1e-3, "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(alpha, dtype, monkeypatch):
    X, y = make_moons(2000, noise=0.3, random_state=0)
    X = X.astype(dtype)
    cut_into_blocks(monkeypatch, 150)
    models, workers = {}, {}
    submit = ThreadPoolExecutor.submit
    monkeypatch.setattr(
        ThreadPoolExecutor,
        "submit",
        lambda pool, *work: workers[number].append(pool) or submit(pool, *work),
    )
    # BLAS itself has one thread throughout: its own sharing may round differently
    with threadpool_limits(1, user_api="blas"):
        for number in (1, 2, 3):
            workers[number] = []
            with using_threads(number):
                model = NystroemClassifier(40, gamma=20.0, alpha=alpha, random_state=0).fit(X, y)
                models[number] = model, model.decision_function(X)
    assert [len(pools) > 50 for pools in workers.values()] == [False, True, True]
    one, scores = models[1]
    for other, other_scores in (models[2], models[3]):
        np.testing.assert_array_equal(other.landmarks_, one.landmarks_)
        np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)
        np.testing.assert_array_equal(other.intercept_, one.intercept_)
        np.testing.assert_array_equal(other_scores, scores)
        assert other.alpha_ == one.alpha_


# ---- BLAS --------------------------------------------------------------------------------------


def test_each_thread_has_a_blas_of_its_own_and_the_limit_is_restored(two_threads):
    assert thread_count() == 2
    inside = list(in_threads(lambda _: blas_threads(), range(5)))
    assert inside == [{1}] * 5
    assert blas_threads() == {2}


def test_one_item_alone_keeps_all_threads_of_blas(two_threads):
    (inside,) = in_threads(lambda _: (blas_threads(), threading.current_thread()), range(1))
    assert inside == ({2}, threading.main_thread())


def test_an_error_in_a_worker_reaches_the_caller_and_the_limit_is_restored(two_threads):
    def fails(item):
        if item == 3:
            raise ArithmeticError("block 3")
        return item

    got = []
    with pytest.raises(ArithmeticError, match="block 3"):
        got.extend(in_threads(fails, range(10)))
    assert blas_threads() == {2}


def test_an_error_in_a_kernel_reaches_whoever_fits(two_threads, monkeypatch):
    X, y = make_moons(500, random_state=0)
    cut_into_blocks(monkeypatch, 50)

    def kernel(x, z):
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError("in a worker")
        return 1.0

    with pytest.raises(ZeroDivisionError, match="in a worker"):
        NystroemClassifier(3, kernel=kernel, alpha=1.0, random_state=0).fit(X, y)
    assert blas_threads() == {2}
    assert NystroemClassifier(5, random_state=0).fit(X, y).score(X, y) > 0.5


class _Failing:
    """A sum that takes no addends."""

    def __iadd__(self, other):
        raise KeyboardInterrupt


def test_an_error_between_two_results_of_a_pass_restores_the_limit(two_threads):
    rows = Blocks(np.zeros((5000, 2)))
    with pytest.raises(KeyboardInterrupt) as caught:
        rows.fold(lambda block: 0, _Failing, 2**16, "pass")
    # the traceback, which interactive sessions keep, refers to the frames of the pass
    assert caught.traceback
    assert blas_threads() == {2}
    assert free_threads() == 2


@pytest.mark.parametrize("how", ["closed", "lost", "broken"])
def test_abandoned_work_stops_and_the_limit_is_restored(how, two_threads):
    done = []
    before = {*threading.enumerate()}  # other tests of the same process may have some of their own
    results = in_threads(done.append, range(1000))
    next(results)
    assert blas_threads() == {1}
    assert {*threading.enumerate()} - before
    if how == "closed":
        results.close()
    elif how == "lost":
        del results
        gc.collect()
    else:
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt())
    assert blas_threads() == {2}
    finished = len(done)
    assert finished < 10
    time.sleep(0.01)
    assert len(done) == finished
    assert not {*threading.enumerate()} - before


def test_a_consumer_that_fails_restores_the_limit(two_threads):
    class Unwilling:
        def __iadd__(self, other):
            raise LookupError

    blocks = Blocks(np.ones((1000, 1)))
    with config_context(working_memory=1024), pytest.raises(LookupError):
        blocks.fold(lambda block: block.X.sum(), Unwilling, 2**28, "pass")
    assert blas_threads() == {2}


def test_a_limit_on_blas_is_a_limit_on_threads(two_threads):
    with threadpool_limits(1):
        assert thread_count() == 1
        names = {*in_threads(lambda _: threading.current_thread(), range(5))}
        assert names == {threading.main_thread()}
    assert thread_count() == 2


def in_another_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_another_thread_computes_as_the_main_thread_does(two_threads):
    def look():
        inside = list(in_threads(lambda _: (thread_count(), *blas_threads()), range(5)))
        return thread_count(), inside

    assert in_another_thread(look) == look() == (2, [(1, 1)] * 5)
    assert blas_threads() == {2}


def test_one_pass_at_a_time_has_all_threads(two_threads):
    def where(_):
        return threading.current_thread()

    outer = in_threads(where, range(5))
    first = next(outer)
    assert free_threads() == 1
    own = in_another_thread(lambda: {where(None), *in_threads(where, range(5))})
    assert len(own) == 1
    assert blas_threads() == {1}
    assert len({first, *outer}) <= 2
    assert free_threads() == 2
    assert blas_threads() == {2}


def test_overlapping_limits_restore_what_was_there_before_all_of_them(two_threads):
    """The first to enter leaves first: its own restoring must not hold for the second one."""
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    in_another_thread(second.__enter__)
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    assert thread_count() == 2
    in_another_thread(lambda: second.__exit__(None, None, None))
    assert blas_threads() == {2}


def test_clustering_in_several_threads_restores_the_limit(two_threads, monkeypatch):
    """The k-means of scikit-learn sets limits of its own, which restore what they found."""
    inside, fit, outside = threading.Barrier(2, timeout=20), cluster.KMeans.fit, []

    def overlapping(kmeans, *rows, **more):
        with threadpool_limits(1, user_api="blas"):
            inside.wait()
            fit(kmeans, *rows, **more)
            while outside == [] and kmeans.n_clusters == 2:
                time.sleep(0.001)
        outside.append(kmeans.n_clusters)
        return kmeans

    monkeypatch.setattr(cluster.KMeans, "fit", overlapping)
    rows = Block(np.random.RandomState(0).rand(100, 2), slice(0, 100))
    with ThreadPoolExecutor(2) as pool:
        for n in (2, 3):
            pool.submit(centroids, rows, n, 5, np.random.RandomState(0))
            time.sleep(0.02)  # the one that leaves last has found the limit of the other
    assert outside == [3, 2]
    assert blas_threads() == {2}


def test_fits_in_threads_restore_the_limit(two_threads):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fit_some, range(4)))
    assert blas_threads() == {2}


@pytest.mark.parametrize("n_rows", [1, 40, 700, 9000])
def test_predictions_have_the_same_bits_in_every_thread(n_rows, two_threads):
    X, y = make_moons(1500, noise=0.3, random_state=0)
    model = NystroemClassifier(300, gamma=2.0, alpha=1e-3, random_state=0).fit(X, y)
    features = Nystroem(n_components=100, gamma=2.0, random_state=0).fit(X)
    rows = np.random.RandomState(1).standard_normal((n_rows, 2))

    def results(_=None):
        return model.decision_function(rows), features.transform(rows)

    expected = results()
    with ThreadPoolExecutor(8) as pool:
        of_threads = list(pool.map(results, range(16)))
    with threadpool_limits(1, user_api="blas"):
        of_threads.append(results())
    with one_blas_thread():  # as while another thread fits
        of_threads.append(results())
    for got in of_threads:
        np.testing.assert_array_equal(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])


# ---- settings of scikit-learn ------------------------------------------------------------------


def test_workers_see_the_settings_of_their_caller(two_threads):
    assert get_config()["working_memory"] != 7
    with config_context(working_memory=7, assume_finite=True):
        settings = list(in_threads(lambda _: get_config(), range(6)))
    assert {(s["working_memory"], s["assume_finite"]) for s in settings} == {(7, True)}


# ---- other people's processes and threads ------------------------------------------------------


def fit_some(seed):
    X, y = make_moons(1500, noise=0.3, random_state=seed)
    with config_context(working_memory=0.1):  # several blocks
        model = NystroemClassifier(40, gamma=2.0, alpha=1e-3, random_state=seed).fit(X, y)
        return model.decision_function(X)


def _fit_and_send(connection):
    connection.send(fit_some(0))
    connection.close()


def sent_by_child(function):
    """Return what `function` sends over its connection in a forked child."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=function, args=(sender,))
    with warnings.catch_warnings():
        # Python 3.12 warns that threads of the parent may hold locks
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        child.start()
    try:
        assert receiver.poll(20), "the child hangs"
        sent = receiver.recv()
        child.join(20)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
    return sent


@pytest.mark.slow
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
def test_a_forked_child_fits_as_its_parent_did(two_threads):
    expected = fit_some(0)
    np.testing.assert_allclose(sent_by_child(_fit_and_send), expected, rtol=1e-6, atol=1e-9)


def _send_threads(connection):
    connection.send((blas_threads(), thread_count(), free_threads()))
    connection.close()


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
def test_a_child_that_was_forked_during_a_pass_has_no_limit(two_threads):
    running = in_threads(abs, range(5))
    next(running)
    assert sent_by_child(_send_threads) == ({2}, 2, 2)
    running.close()
    assert blas_threads() == {2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["loky", pytest.param("threading", marks=pytest.mark.all_combinations)]
)
def test_joblib_fits_the_same_models(backend, two_threads):
    X, y = make_moons(500, noise=0.3, random_state=0)
    models = [
        NystroemClassifier(30, gamma=gamma, alpha=1e-3, random_state=0) for gamma in (1.0, 2.0, 3.0)
    ]
    with config_context(working_memory=0.05):  # several blocks
        jobs = (delayed(model.fit)(X, y) for model in models)
        fitted = Parallel(n_jobs=2, backend=backend)(jobs)
        expected = [model.fit(X, y).decision_function(X) for model in models]
    for other, scores in zip(fitted, expected, strict=True):
        np.testing.assert_allclose(other.decision_function(X), scores, rtol=1e-6, atol=1e-8)
    assert blas_threads() == {2}
