"""The page on big data says what the committed measurements say, and its plan adds up.

The page's Python blocks are run with those of all documents, in test_readme.py.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nysplus import NystroemClassifier

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "too_big.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")


@pytest.fixture
def too_big_plan(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("too_big_plan")


def test_the_page_is_made_from_the_measurements(tmp_path):
    script = ROOT / "benchmarks" / "too_big_page.py"
    subprocess.run([sys.executable, script, "--docs", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "too_big.md").read_text() == PAGE.read_text()
    assert (PAGE.parent / "figures" / "too_big.png").exists()
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["too_big.png"]


def test_the_plan_adds_up(too_big_plan, monkeypatch):
    monkeypatch.setattr(too_big_plan, "BANDWIDTH", 100.0)
    known = too_big_plan.Constants(
        seconds={"survey": 1e-3, "moments": 2e-3, "margins": 3e-3},
        task=0.5,
        client=7.0,
        sum_bytes=1000,
        broadcast_bytes=50,
        gather_bytes=30,
    )
    counts = {"survey": 1, "moments": 2, "margins": 1, "gather": 4}
    # 17 sums are added two by two: 17, 9, 5, 3, 2, 1
    found = {p.kind: p for p in too_big_plan.plan(known, counts, 1000, 10, 17)}
    assert [p.count for p in found.values()] == [1, 2, 1, 4]
    moments = found["moments"]
    assert moments.rows == pytest.approx(1000 / 10 * 2e-3)
    assert moments.tasks == pytest.approx(17 * 0.5)
    assert moments.tree == pytest.approx(5 * 1000 / 100)
    assert moments.broadcast == pytest.approx(10 * 50 / 100)
    assert moments.seconds == pytest.approx(0.2 + 8.5 + 50 + 5)
    assert moments.moved_bytes == 16 * 1000 + 10 * 50
    assert found["margins"].moved_bytes == 10 * 50
    assert found["survey"].seconds == pytest.approx(0.1 + 8.5)
    assert found["gather"].seconds == pytest.approx(8.5)
    assert found["gather"].moved_bytes == 30


@pytest.mark.parametrize(("partitions", "depth"), [(1, 0), (2, 1), (4, 2), (5, 3), (1024, 10)])
def test_the_plan_knows_how_high_the_tree_is(too_big_plan, partitions, depth):
    known = too_big_plan.Constants({"moments": 1.0}, 0.0, 0.0, 1, 0, 0)
    (planned,) = too_big_plan.plan(known, {"moments": 1}, 1, 1, partitions)
    assert planned.tree == pytest.approx(depth / too_big_plan.BANDWIDTH)
    assert planned.moved_bytes == partitions - 1


def test_constants_are_medians_over_fits_of_one_worker(too_big_plan):
    def fit(workers, seconds, stages, what="fit", selection="kmeans", partitions=4):
        return too_big_plan.ClusterFit(
            *(what, selection, workers, 100, partitions, 5, 0, seconds, 4, "", 90.0, 240, 80, 0.0),
            *("joined=1=240=240;taken=4=600=300", stages),
        )

    fits = [
        fit(1, 10.0, "survey=100=1.0;20 rows=100=9.0;ridge: moments=100=4.0"),
        fit(1, 12.0, "survey=100=1.0;ridge: moments=100=6.0;ridge: leave-one-out=10=3.0"),
        fit(2, 99.0, "survey=100=50.0;ridge: moments=100=40.0"),
        fit(2, 3.0, "survey=100=1.0;ridge: moments=100=2.0", "tiny", "uniform", 50),
    ]
    known = too_big_plan.constants(fits, "kmeans")
    assert known.seconds == pytest.approx({"survey": 0.01, "moments": 0.05})
    assert known.client == pytest.approx(5.0)  # 10 - 1 - 4 and 12 - 1 - 6
    assert known.task == pytest.approx(1.5 / 50)
    assert (known.sum_bytes, known.broadcast_bytes) == (240, 80)
    assert known.gather_bytes == 600 / 2  # of four passes two are gathers
    assert too_big_plan.pass_counts(fits[0]) == {"survey": 1, "moments": 1, "gather": 2}


def test_the_recipe_for_hub_datasets(digits):
    X, y = digits
    recipe = re.search(r"^```python\n(class HubRows.*?)^```", PAGE.read_text(), flags=re.M | re.S)
    namespace = {"np": np}
    exec(recipe[1], namespace)

    class Dataset:
        """Behaves as a Hugging Face dataset with a column of vectors and one of numbers."""

        def with_format(self, name):
            assert name == "numpy"
            return self

        def iter(self, batch_size):
            for i in range(0, len(X), batch_size):
                rows = slice(i, i + batch_size)
                yield {"pixels": X[rows, 1:], "first": X[rows, 0], "label": y[rows]}

    rows = namespace["HubRows"](Dataset(), ["first", "pixels"], "label", n_rows=500)
    model = NystroemClassifier(50, random_state=0).fit(rows)
    same = NystroemClassifier(50, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.landmarks_, same.landmarks_)
