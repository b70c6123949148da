"""Share blocks among threads, each with a BLAS of one thread.

One thread computes everything for a block, so that exponentials, centring and conversions run on
all cores, not only matrix products.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")

Result = TypeVar("Result")

_chosen_count: ContextVar[int | None] = ContextVar("chosen_count", default=None)


@cache
def _controller(api: str = "blas") -> Any:
    """Return the controller of the loaded libraries of a kind; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api=api)


class _OneBlasThread:
    """A context in which BLAS has one thread, shared by all threads of the process.

    The number of threads of BLAS belongs to the process. Contexts that each restore the number they
    found would leave it at 1 if they overlap: the second one finds, and later restores, the 1 of
    the first. The first thread to enter this one therefore sets the limit, and the last to leave
    restores the number.
    """

    def __init__(self) -> None:
        # reentrant: the garbage collector may close an abandoned pass in the middle of a method
        self._lock = threading.RLock()
        self._holders = 0
        self._changed: list[tuple[Any, int]] = []
        self._n_threads = 1

    def __enter__(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                found = [(library, library.num_threads) for library in _blas_libraries()]
                self._n_threads = max((count for _, count in found), default=1)
                self._changed = [(library, count) for library, count in found if count > 1]
                for library, _ in self._changed:
                    _set_threads(library, 1)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            if self._holders:  # none in a child that was forked inside the context
                self._holders -= 1
                self._restore_if_free()

    def _restore_if_free(self) -> None:
        if self._holders == 0:
            for library, count in self._changed:
                _set_threads(library, count)
            self._changed = []

    def n_threads(self) -> int:
        """Return the number of threads of BLAS outside the context."""
        with self._lock:
            if self._holders:
                return self._n_threads
            return max((library.num_threads for library in _blas_libraries()), default=1)

    def release(self) -> None:
        """Leave the context in a forked child, which has none of its parent's other threads."""
        self._lock = threading.RLock()
        self._holders = 0
        self._restore_if_free()


def _blas_libraries() -> list[Any]:
    libraries: list[Any] = _controller().lib_controllers
    return libraries


def _set_threads(library: Any, count: int) -> None:
    """Set the number of threads of BLAS.

    Since version 3.8 threadpoolctl ignores a limit on OpenBLAS silently while another thread is in
    control of the limits.
    """
    release_control = getattr(library, "clear_controlling_thread", lambda force: None)
    release_control(force=True)
    library.set_num_threads(count)
    release_control(force=True)


_one_blas_thread = _OneBlasThread()
# Held by the one pass of the process that has more than one thread.
_pool_in_use = threading.Lock()


def _after_fork() -> None:
    global _pool_in_use
    _pool_in_use = threading.Lock()
    _one_blas_thread.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def one_blas_thread() -> AbstractContextManager[None]:
    """Return a context in which BLAS has one thread.

    Products of matrices then round in the same way whatever the number of cores and whichever
    thread computes them. The context may be entered by several threads, and again inside itself.
    """
    return _one_blas_thread


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Set the number of threads of all passes inside the context, whatever BLAS would use."""
    token = _chosen_count.set(count)
    try:
        yield
    finally:
        _chosen_count.reset(token)


def thread_count() -> int:
    """Return the number of threads that a pass over the rows may use.

    It is the number of threads of BLAS, which follows ``OMP_NUM_THREADS``, ``threadpoolctl`` and
    the limits that joblib and Dask set in their worker processes. It is the same in all threads of
    a process, and 1 inside the threads of a pass.
    """
    chosen = _chosen_count.get()
    return _one_blas_thread.n_threads() if chosen is None else chosen


def free_threads() -> int:
    """Return the number of threads of a pass that begins now: one while another pass runs."""
    return 1 if _pool_in_use.locked() else thread_count()


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` of all items in their order, computed on all threads.

    At most one result more than there are threads waits in memory. Sums over the results depend
    neither on the number of threads nor on the calling thread. Where several threads call it at the
    same time, one of them has all threads, and the others compute their items themselves.

    Close the generator (:func:`contextlib.closing`) where an error may be raised between two
    results: the traceback would keep it alive, and with it the limit on BLAS and the threads.
    """
    items = iter(items)
    first = list(islice(items, 2))
    if len(first) < 2:
        # A single item runs faster with all threads of BLAS.
        yield from map(function, first)
        return
    threads = thread_count()
    with one_blas_thread():
        if threads == 1 or not (pool := _pool_in_use).acquire(blocking=False):
            yield from map(function, chain(first, items))
            return
        try:
            yield from _in_pool(function, chain(first, items), threads)
        finally:
            pool.release()


def _in_pool(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    config = get_config()  # scikit-learn keeps its settings per thread

    def work(item: Item) -> Result:
        with config_context(**config), using_threads(1):
            return function(item)

    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def one_openmp_thread() -> Any:
    """Return a context in which this thread's OpenMP regions have one thread.

    Threads of small regions mostly wait for each other, and keep waiting for a while after the
    region.
    """
    return _controller("openmp").limit(limits=1)


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, and let another thread make the next one meanwhile."""
    end: Any = object()
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, iterator, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, iterator, end)
            yield item
