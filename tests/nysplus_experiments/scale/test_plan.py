"""The prediction for a large cluster adds up, and its constants are those of the measurements."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from nysplus_experiments.scale import plan as planning
from nysplus_experiments.scale.cluster import ClusterFit


def test_the_plan_adds_up():
    known = planning.Constants(
        seconds={"survey": 1e-3, "moments": 2e-3, "scores": 3e-3},
        task=0.5,
        client=7.0,
        sum_bytes=1000,
        broadcast_bytes=50,
        gather_bytes=30,
    )
    counts = {"survey": 1, "moments": 2, "scores": 1, "gather": 4}
    # 17 sums are added two by two: 17, 9, 5, 3, 2, 1
    passes = planning.plan(known, counts, 1000, 10, 17, bandwidth=100.0)
    found = {p.kind: p for p in passes}
    assert [p.count for p in found.values()] == [1, 2, 1, 4]
    moments = found["moments"]
    assert moments.rows == pytest.approx(1000 / 10 * 2e-3)
    assert moments.tasks == pytest.approx(17 * 0.5)
    assert moments.tree == pytest.approx(5 * 1000 / 100)
    assert moments.broadcast == pytest.approx(10 * 50 / 100)
    assert moments.seconds == pytest.approx(0.2 + 8.5 + 50 + 5)
    assert moments.moved_bytes == 16 * 1000 + 10 * 50
    assert found["scores"].moved_bytes == 10 * 50
    assert found["survey"].seconds == pytest.approx(0.1 + 8.5)
    assert found["gather"].seconds == pytest.approx(8.5)
    assert found["gather"].moved_bytes == 30
    total = 8.6 + 2 * 63.7 + (0.3 + 8.5 + 5) + 4 * 8.5 + 7.0
    assert planning.total_seconds(known, passes) == pytest.approx(total)


@pytest.mark.parametrize(("partitions", "depth"), [(1, 0), (2, 1), (4, 2), (5, 3), (1024, 10)])
def test_sums_climb_a_binary_tree(partitions, depth):
    known = planning.Constants({"moments": 1.0}, 0.0, 0.0, 1, 0, 0)
    (planned,) = planning.plan(known, {"moments": 1}, 1, 1, partitions)
    assert planned.tree == pytest.approx(depth / planning.BANDWIDTH)
    assert planned.moved_bytes == partitions - 1


def test_constants_are_medians_over_fits_of_one_worker():
    def fit(workers, seconds, stages, what="fit", selection="kmeans", partitions=4):
        return ClusterFit(
            *(what, selection, workers, 100, partitions, 5, 0, seconds, 4, "", 90.0, 240, 80, 0.0),
            *("joined=1=240=240;taken=4=600=300", stages),
        )

    fits = [
        fit(1, 10.0, "survey=100=1.0;20 rows=100=9.0;ridge: moments=100=4.0"),
        fit(1, 12.0, "survey=100=1.0;ridge: moments=100=6.0;ridge: leave-one-out=10=3.0"),
        fit(2, 99.0, "survey=100=50.0;ridge: moments=100=40.0"),
        fit(2, 3.0, "survey=100=1.0;ridge: moments=100=2.0", "tiny", "uniform", 50),
    ]
    known = planning.constants(fits, "kmeans")
    assert known.seconds == pytest.approx({"survey": 0.01, "moments": 0.05})
    assert known.client == pytest.approx(5.0)  # 10 - 1 - 4 and 12 - 1 - 6
    assert known.task == pytest.approx(1.5 / 50)
    assert (known.sum_bytes, known.broadcast_bytes) == (240, 80)
    assert known.gather_bytes == 600 / 2  # of four passes two are gathers
    assert planning.pass_counts(fits[0]) == {"survey": 1, "moments": 1, "gather": 2}


def test_earlier_names_of_passes_count_as_well():
    row = ("fit", "kmeans", 1, 100, 4, 5, 0, 1.0, 2, "", 90.0, 240, 80, 0.0, "")
    for stages in ("pilot: margins=100=1.0", "pilot: scores=100=1.0"):
        assert planning.pass_counts(ClusterFit(*row, stages)) == {"scores": 1, "gather": 1}
