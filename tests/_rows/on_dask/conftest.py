"""A cluster for the tests of this folder, which can import the helpers beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def cluster():
    import dask
    from dask_rows import LOCAL
    from distributed import LocalCluster

    # an idle worker would take a partition from the other now and then
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(n_workers=2, processes=True, **LOCAL) as cluster,
    ):
        yield cluster


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
