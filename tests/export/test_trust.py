"""Prediction sets, intervals and novelty in exports agree with the library."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exported import build_c, needs_gcc, row_type, run_c
from factories import classes, mixed_table, values
from sklearn.svm import SVC

from nysplus import NystroemClassifier, NystroemRegressor, from_svc
from nysplus.export import to_c, to_json

SET = """
        unsigned char in_set[NYSPLUS_CLASSES];
        float all[NYSPLUS_CLASSES + 2];
        all[0] = nysplus_novelty(x);
        all[1] = nysplus_set(x, in_set);
        for (int c = 0; c < NYSPLUS_CLASSES; c++) all[c + 2] = in_set[c];
        fwrite(all, sizeof all, 1, stdout);
"""
INTERVAL = """
        float all[1 + 2 * NYSPLUS_SCORES];
        all[0] = nysplus_novelty(x);
        nysplus_interval(x, all + 1, all + 1 + NYSPLUS_SCORES);
        fwrite(all, sizeof all, 1, stdout);
"""


def in_c(folder, model, X, calls):
    """Return the outputs of C functions beside the scores."""
    header = to_c(model, confidence=0.9)
    build_c(folder, header, calls)
    found = run_c(folder, X, row_type(header))
    return found[:, model.expansion_.dual_coef.shape[1] :]


@needs_gcc
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("params", [{}, {"budget": "1kB"}, {"kernel": "laplacian"}])
@pytest.mark.parametrize("conditional", [False, True])
def test_sets_in_c(tmp_path, n_classes, params, conditional):
    X, y = classes(900, n_classes=n_classes, noise=2.0)
    model = NystroemClassifier(20, random_state=0, **params).fit(X[:400], y[:400])
    if conditional:
        model.calibrate(X[400:], y[400:], class_conditional=True)
    rows = np.concatenate([X[400:], 9 * X[400:450]])
    found, sets = in_c(tmp_path, model, rows, SET), model.predict_set(rows)
    np.testing.assert_allclose(found[:, 0], model.novelty(rows), atol=2e-3)
    assert (found[:, 2:] == sets).mean() > 0.998  # probabilities next to a bound are rounded
    np.testing.assert_array_equal(found[:, 1], found[:, 2:].sum(axis=1))
    assert 0 < found[:, 2:].mean() < 1


@needs_gcc
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_intervals_in_c(tmp_path, n_outputs):
    X, Y = values(500, 3, n_outputs)
    model = NystroemRegressor(20, random_state=0).fit(X, Y)
    found = in_c(tmp_path, model, X, INTERVAL)
    expected = model.predict_interval(X).reshape(500, -1)
    np.testing.assert_allclose(found[:, 1:], expected, atol=1e-4)
    np.testing.assert_allclose(found[:, 0], model.novelty(X), atol=2e-3)


@needs_gcc
def test_novelty_of_encoded_tables_in_c(tmp_path):
    X, y = mixed_table(400)
    model = NystroemClassifier(20, encoder="auto", random_state=0).fit(X, y)
    raw = model._schema.read(X)
    found = in_c(tmp_path, model, raw, SET)
    np.testing.assert_allclose(found[:, 0], model.novelty(X), atol=2e-3)


@needs_gcc
def test_novelty_behind_a_map_in_c_and_json(tmp_path):
    """Of a table with gaps: rows before the code are compared."""
    X, y = mixed_table(600)
    model = NystroemClassifier(20, encoder="auto", metric=2, random_state=0).fit(X, y)
    raw = model._schema.read(X)
    strange = np.concatenate([raw, raw[:, ::-1]])
    expected = model._model.novelty(strange)
    assert model._model.familiar.directions is not None
    found = in_c(tmp_path, model, strange, SET)
    np.testing.assert_allclose(found[:, 0], expected, atol=5e-3)
    assert np.isnan(raw).any()
    novelty = json.loads(to_json(model, confidence=0.9))["novelty"]
    parts, levels = {k: np.array(v) for k, v in novelty["directions"].items()}, novelty["levels"]
    squares = (np.nan_to_num(strange - parts["center"]) @ parts["weights"]) ** 2
    similarities = model.expansion_.similarity(strange)
    first = np.interp(similarities, novelty["similarities"][::-1], levels[::-1])
    second = np.interp(squares.sum(axis=1), parts["distances"], levels)
    np.testing.assert_allclose(np.maximum(first, second), expected)


def test_numbers_in_json():
    X, y = classes(500)
    model = NystroemClassifier(20, random_state=0).fit(X, y)
    content = json.loads(to_json(model, confidence=0.9))
    bounds, novelty = content["prediction_set"]["bounds"], content["novelty"]
    np.testing.assert_array_equal(1 - model.predict_proba(X) <= bounds, model.predict_set(X))
    s = model.expansion_.similarity(X)
    found = np.interp(s, novelty["similarities"][::-1], novelty["levels"][::-1])
    np.testing.assert_allclose(found, model.novelty(X))
    assert not {"prediction_set", "novelty"} & set(json.loads(to_json(model)))
    X, Y = values(400, 3, 2)
    regressor = NystroemRegressor(20, random_state=0).fit(X, Y)
    bounds = json.loads(to_json(regressor, confidence=0.9))["interval"]["bounds"]
    np.testing.assert_allclose(
        np.ptp(regressor.predict_interval(X[:1]), axis=1)[0], 2 * np.array(bounds)
    )


def test_sets_need_probabilities():
    X, y = classes(300)
    model = from_svc(SVC().fit(X, y)).calibrate(X, y)
    with pytest.raises(ValueError, match="go by probabilities"):
        to_c(model, confidence=0.9)
