"""Blocks shared among threads, each with a BLAS of one thread.

A block is worked on by one thread from the first product to the last, so what is not a matrix
product (exponentials, centring, conversions) runs on all cores as well.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")

Result = TypeVar("Result")


@cache
def _controller(api: str = "blas") -> Any:
    """Return the handle on the loaded libraries of a kind; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api=api)


def thread_count() -> int:
    """Return how many threads a pass over the rows may use.

    As many as BLAS would: ``OMP_NUM_THREADS``, ``threadpoolctl`` limits and the limits that
    joblib and Dask set in their worker processes all count. One outside the main thread, where
    somebody else is already sharing the cores out, and where BLAS's own limit must not be moved.
    """
    if threading.current_thread() is not threading.main_thread():
        return 1
    return max((library.num_threads for library in _controller().lib_controllers), default=1)


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``function(item)`` of all items in their order, computed on all threads.

    At most one result more than there are threads waits to be taken, so memory stays bounded,
    and sums over the results do not depend on the number of threads.
    """
    items = iter(items)
    threads = thread_count()
    first = list(islice(items, 2))
    if threads == 1 or len(first) < 2:
        # One item alone is better served by BLAS's own threads.
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

    Threads of small regions spend their time waiting for each other, and go on doing so for a
    while after the region.
    """
    return _controller("openmp").limit(limits=1)


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items while a thread of its own makes the next one: reading beside computing."""
    end: Any = object()
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, iterator, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, iterator, end)
            yield item
