"""Files that version 0.1 has saved are read, and predict as they did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from golden_models import MODELS, SUFFIX, scores_of

import nysplus

FOLDER = Path(__file__).with_name("models_0_1")
# By the type of the coefficients, in units of the largest expected number. With what OpenBLAS has
# for five other processors, float64 models change by up to 3e-11, float32 models by up to 1e-6.
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}


@pytest.fixture(scope="module")
def expected():
    with np.load(FOLDER / "expected.npz") as stored:
        return dict(stored)


def test_every_file_is_tested():
    assert {path.stem for path in FOLDER.glob(f"*{SUFFIX}")} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_predictions(name, expected):
    model, rows = nysplus.load(FOLDER / f"{name}{SUFFIX}"), MODELS[name].rows()
    tolerance = TOLERANCE[model.dual_coef_.dtype.name]
    _assert_close(scores_of(model, rows), expected[f"{name} scores"], tolerance)
    if hasattr(model, "classes_"):
        _assert_close(model.predict_proba(rows), expected[f"{name} probabilities"], tolerance)
        labels = model.predict(rows)
        assert labels.dtype == expected[f"{name} labels"].dtype
        np.testing.assert_array_equal(labels, expected[f"{name} labels"])


def _assert_close(got, expected, tolerance):
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_saved_again(name, tmp_path):
    """A file that is loaded and saved holds the same model."""
    model = nysplus.load(FOLDER / f"{name}{SUFFIX}")
    model.save(tmp_path / "again")
    again, rows = nysplus.load(tmp_path / "again"), MODELS[name].rows()
    np.testing.assert_array_equal(scores_of(again, rows), scores_of(model, rows))
    assert again.get_params().keys() == model.get_params().keys()
    assert again.model_bytes_ == model.model_bytes_
