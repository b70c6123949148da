"""A cluster for the tests of this folder, which can import the helpers beside them."""

from __future__ import annotations

import gc
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


# Workers take seconds to import what they need: files of tests share them.
@pytest.fixture(scope="session")
def cluster():
    import dask
    from dask_rows import LOCAL
    from distributed import LocalCluster

    # an idle worker would take a partition from the other now and then
    with dask.config.set({"distributed.scheduler.work-stealing": False}):
        cluster = LocalCluster(n_workers=2, processes=True, **LOCAL)
    yield cluster
    # what it leaves to the garbage collector must not fail the test that happens to be the last
    with warnings.catch_warnings(action="ignore"):
        cluster.close()
        gc.collect()


@pytest.fixture(scope="session")
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
