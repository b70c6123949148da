"""Bounds and quantiles in files: earlier files lack them, and forged ones are refused."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import pytest
from factories import classes, labels, mixed_table, values
from forged import forge, set_entry

from nysplus import NystroemClassifier, NystroemRegressor, load
from nysplus.conformal import LEVELS


@pytest.fixture
def path(tmp_path):
    X, y = classes(200)
    NystroemClassifier(10, random_state=0).fit(X, y).save(tmp_path / "model")
    return tmp_path / "model"


def _remove(tensors, header):
    del header["calibration"], header["novelty"]


def test_earlier_files_say_to_calibrate(path):
    forge(path, _remove)
    model = load(path)
    X, y = classes(200)
    for call in (model.predict_set, model.novelty):
        with pytest.raises(ValueError, match=r"Call calibrate\(X, y\)"):
            call(X)
    assert model.calibrate(X, y).predict_set(X).shape == (200, 3)


def test_multilabel_models_are_saved_without_bounds(tmp_path):
    X, Y = labels()
    NystroemClassifier(10, random_state=0).fit(X, Y).save(tmp_path / "model")
    assert load(tmp_path / "model").novelty(X).shape == (300,)


def test_several_outputs_have_a_column_each(tmp_path):
    X, Y = values(300, 3, 2)
    model = NystroemRegressor(10, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))


def text(numbers):
    return b64encode(np.asarray(numbers, dtype="<f4").tobytes()).decode()


N = len(LEVELS)
FORGED = {
    "no Base64": (("calibration", "bounds"), "%%%", "not Base64"),
    "short": (("calibration", "bounds"), text(np.zeros(N - 1)), f"{N} numbers of 4 bytes"),
    "decreasing": (("calibration", "bounds"), text(np.linspace(1, 0, N)), "nor decrease"),
    "negative": (("calibration", "bounds"), text(np.linspace(-1, 0, N)), "must not be negative"),
    "NaN": (("calibration", "bounds"), text(np.full(N, np.nan)), "no numbers"),
    "a class each": (("calibration", "class_conditional"), True, f"{3 * N} numbers of 4 bytes"),
    "no rows": (("calibration", "n_rows"), [0], "1 positive integers"),
    "other source": (("calibration", "source"), "guess", "not known"),
    "increasing": (("novelty",), text(np.arange(14)), "must decrease"),
    "a number": (("novelty",), 3, "novelty"),
}


@pytest.fixture
def mapped(tmp_path):
    X, y = classes(300)
    NystroemClassifier(10, metric=2, random_state=0).fit(X, y).save(tmp_path / "mapped")
    return tmp_path / "mapped"


def test_files_without_directions_are_loaded(mapped):
    """Those of earlier versions have similarities alone."""
    X, whole = classes(300)[0], load(mapped)
    assert (load(mapped).novelty(X) == whole.novelty(X)).all()

    def remove(tensors, header):
        del header["directions"]

    forge(mapped, remove)
    assert (load(mapped).novelty(X) <= whole.novelty(X)).all()


FORGED_DIRECTIONS = {
    "short": ("center", text([0.0]), "center must be 4 numbers"),
    "infinite": ("weights", text(np.full(16, np.inf)), "must be finite"),
    "many": ("weights", text(np.ones(20)), "weights must be 16 numbers"),
    "decreasing": ("distances", text(np.arange(14)[::-1]), "distances must be positive and"),
    "negative": ("distances", text(np.arange(14) - 1.0), "distances must be positive and"),
    "a number": ("weights", 3, "weights"),
}


@pytest.mark.parametrize("name", FORGED_DIRECTIONS)
def test_forged_directions_are_refused(mapped, name):
    key, value, message = FORGED_DIRECTIONS[name]
    forge(mapped, set_entry("directions", key, to=value))
    with pytest.raises(ValueError, match=message):
        load(mapped)


@pytest.mark.parametrize("name", FORGED)
def test_forged_numbers_are_refused(path, name):
    keys, value, message = FORGED[name]
    forge(path, set_entry(*keys, to=value))
    with pytest.raises(ValueError, match=message):
        load(path)


def test_directions_of_a_table_skip_columns_that_are_not_used(tmp_path):
    frame, y = mixed_table(400)
    frame.insert(1, "empty", np.nan)
    model = NystroemClassifier(10, metric="diagonal", encoder="auto", random_state=0).fit(frame, y)
    assert model._model.familiar.directions is not None
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").novelty(frame), model.novelty(frame))
