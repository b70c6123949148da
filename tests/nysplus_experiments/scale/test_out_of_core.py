"""Fits from disk are measured, and the guide's own source of rows works."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("psutil", reason="psutil is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from nysplus import NystroemClassifier
from nysplus_experiments.scale import out_of_core, row_files, tables
from nysplus_experiments.scale.passes import count_passes
from nysplus_experiments.scale.stages import parse_column

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "gallery" / "hub_dataset.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(row_files, "TEST_ROWS", 200)
    row_files.write_rows(tmp_path, 3000, 1000)
    return tmp_path


def fit(folder, source, repeat=0):
    columns = out_of_core.fit_once(folder, source, "negative-margin", 2000, 20)
    names = ("synthetic", source, "negative-margin", 2000, 20, repeat)
    return out_of_core.OutOfCore(*names, **columns)


def test_sources_give_the_same_model_and_their_own_passes(folder):
    fits = [fit(folder, source) for source in out_of_core.SOURCES]
    assert len({row.accuracy for row in fits}) == 1
    parquet, memmap, array = (row.passes for row in fits)
    assert parquet > memmap > array > 0
    assert all(stage.rows <= 2000 for row in fits for stage in parse_column(row.stages))
    assert f"| 2,000 | in memory | `negative-margin` | {array} |" in tables.costs(fits)


def test_passes_are_counted(folder, monkeypatch):
    monkeypatch.setattr("nysplus_experiments.scale.passes.ROWS", 3000)
    counted = count_passes(folder, "memmap", "uniform", "number")
    assert (counted.passes, counted.stages) == (2, "survey;ridge: moments")


@pytest.mark.parametrize(("others", "kept"), [(None, True), (0.0, True), (50.0, False)])
def test_disturbed_fits_are_measured_again(others, kept):
    numbers = (1.0, 1.0, 1, "", 90.0, 1, others, "")
    row = out_of_core.OutOfCore("synthetic", "memmap", "kmeans", 10, 5, 0, *numbers)
    assert out_of_core.undisturbed(row) == kept


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no pages")
def test_the_recipe_for_hub_datasets(digits):
    X, y = digits
    recipe = re.search(
        r"^```python\n(import numpy.*?class HubRows.*?)^```", GUIDE.read_text(), flags=re.M | re.S
    )
    namespace = {}
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
