"""A cluster for the tests of this folder, which can import the helpers beside them."""

from __future__ import annotations

import gc
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
OPEN = ExitStack()


@cache
def _shared():
    import dask
    from dask_rows import LOCAL
    from distributed import LocalCluster

    # an idle worker would take a partition from the other now and then
    with dask.config.set({"distributed.scheduler.work-stealing": False}):
        return OPEN.enter_context(LocalCluster(n_workers=2, processes=True, **LOCAL))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    """Stop the cluster after the last test of this folder: others count descriptors."""
    if nextitem is None or HERE not in nextitem.path.parents:
        OPEN.close()
        _shared.cache_clear()
        gc.collect()


@pytest.fixture(scope="module")
def cluster():
    """Two workers; they take seconds to import what they need, so that files share them."""
    return _shared()


@pytest.fixture(scope="module")
def _connection(cluster):
    from distributed import Client

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
    from dask_rows import D, N

    X = rng.standard_normal((N, D))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    return X, y, rng.randint(0, 3, N).astype(float)
