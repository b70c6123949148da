"""Share blocks among threads, each with a BLAS of one thread.

One thread computes everything for a block, so that exponentials, centring and conversions run on
all cores, not only matrix products.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import islice
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
    the limits that joblib and Dask set in their worker processes. It is 1 outside the main
    thread, where another library is sharing the cores already and the limit of BLAS must not be
    changed.
    """
    if threading.current_thread() is not threading.main_thread():
        return 1
    if (chosen := _chosen_count.get()) is not None:
        return chosen
    return max((library.num_threads for library in _controller().lib_controllers), default=1)


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``function(item)`` of all items in their order, computed on all threads.

    At most one result more than there are threads waits in memory. Sums over the results do not
    depend on the number of threads.
    """
    items = iter(items)
    threads = thread_count()
    first = list(islice(items, 2))
    if threads == 1 or len(first) < 2:
        # A single item runs faster with all threads of BLAS.
        yield from map(function, first)
        yield from map(function, items)
        return
    config = get_config()  # scikit-learn keeps its settings per thread

    def work(item: Item) -> Result:
        with config_context(**config):
            return function(item)

    waiting: deque[Future[Result]] = deque()
    with _controller().limit(limits=1), ThreadPoolExecutor(threads) as pool:
        try:
            for batch in (first, items):
                for item in batch:
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
