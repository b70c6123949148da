"""Shapley values of exported models."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from exported import build_c, needs_gcc, row_type, run_c
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.explain import shapley_values
from nysplus.export import to_c, to_json

IRIS, SPECIES = load_iris(return_X_y=True)
CALLS = """
        float values[NYSPLUS_FEATURES * NYSPLUS_SCORES];
        nysplus_explain(x, values);
        fwrite(values, sizeof values, 1, stdout);
"""
MODELS = {
    "rbf": NystroemClassifier(12, alpha=0.1, random_state=0),
    "laplacian": NystroemClassifier(12, kernel="laplacian", alpha=0.1, random_state=0),
    "chi2": NystroemClassifier(12, kernel="chi2", gamma=1.0, alpha=0.1, random_state=0),
    "diagonal": NystroemClassifier(12, metric="diagonal", alpha=0.1, random_state=0),
    "few bits": NystroemClassifier(budget="300B", random_state=0),
}


@needs_gcc
@pytest.mark.parametrize("kind", MODELS)
def test_values_of_c_are_those_of_the_library(kind, tmp_path):
    model = MODELS[kind].fit(IRIS, SPECIES)
    header = to_c(model, explain=IRIS[::40])
    build_c(tmp_path, header, CALLS)
    found = run_c(tmp_path, IRIS[::7], row_type(header))[:, 3:].reshape(-1, 4, 3)
    expected = shapley_values(model, IRIS[::7], IRIS[::40])
    np.testing.assert_allclose(found, expected.values, atol=2e-4)
    total = expected.base_values + found.sum(axis=1)
    np.testing.assert_allclose(total, model.decision_function(IRIS[::7]), atol=5e-4)


@needs_gcc
def test_values_of_double_and_of_features_far_from_zero(tmp_path):
    X = IRIS + np.array([0.0, 1e6, 0.0, -3e5])
    model = NystroemRegressor(12, alpha=0.1, random_state=0).fit(X, IRIS[:, 0])
    header = to_c(model, dtype="float64", explain=X[::40])
    build_c(tmp_path, header, CALLS, "double")
    found = run_c(tmp_path, X[::7], np.float64, np.float64)[:, 1:]
    expected = shapley_values(model, X[::7], X[::40]).values
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_background_takes_the_documented_bytes():
    model = MODELS["rbf"].fit(IRIS, SPECIES)

    def table_bytes(**options):
        return int(re.search(r"Tables: (\d+) bytes", to_c(model, **options))[1])

    assert table_bytes(explain=IRIS[:5]) - table_bytes() == 4 * (5 * 4 + 2 * 2)
    assert table_bytes(explain=True) - table_bytes() == 4 * (1 * 4 + 2 * 2)
    assert "_explain" not in to_c(model)


def json_values(text, x):
    """Return the Shapley values by what is written in the text, for an RBF kernel."""
    model = json.loads(text)
    own = model["explanation"]
    Z, A = np.array(model["landmarks"]), np.array(model["dual_coef"])
    gamma, center = model["kernel"]["gamma"], np.array(model.get("center", 0.0))
    scale = 1.0 if model["projection"] is None else np.array(model["projection"])
    values = np.zeros((len(x), A.shape[1]))
    for z, a in zip(Z, A, strict=True):
        p = np.exp(-gamma * ((x - center) * scale - z) ** 2)
        for row in own["background"]:
            q = np.exp(-gamma * ((np.array(row) - center) * scale - z) ** 2)
            for t, w in zip(own["nodes"], own["weights"], strict=True):
                f = t * p + (1 - t) * q
                for i in range(len(x)):
                    product = w * np.prod(np.delete(f, i)) * (p[i] - q[i])
                    values[i] += product * a / len(own["background"])
    return values


@pytest.mark.parametrize("kind", ["rbf", "diagonal"])
def test_values_of_json_are_those_of_the_library(kind):
    model = MODELS[kind].fit(IRIS, SPECIES)
    text = to_json(model, explain=IRIS[::60])
    expected = shapley_values(model, IRIS[:1], IRIS[::60]).values[0]
    np.testing.assert_allclose(json_values(text, IRIS[0]), expected, atol=1e-10)
    mean = json.loads(to_json(model, explain=True))["explanation"]["background"]
    assert len(mean) == 1
    if kind == "rbf":
        np.testing.assert_allclose(mean[0], model.landmarks_.mean(axis=0), atol=1e-9)
    function = json.loads(to_json(model.expansion_, explain=IRIS[::60]))
    assert function["explanation"] == json.loads(text)["explanation"]
    assert "explanation" not in json.loads(to_json(model))


def test_models_that_c_cannot_explain():
    pipeline = make_pipeline(StandardScaler(), NystroemClassifier(5, random_state=0))
    cases = {
        "encodes its rows": pipeline,
        "mixes features": NystroemClassifier(5, metric=2, random_state=0),
        "no product": NystroemClassifier(5, kernel="matern", random_state=0),
    }
    for message, model in cases.items():
        model.fit(IRIS, SPECIES)
        with pytest.raises(ValueError, match=message):
            to_c(model, explain=True)
        # JSON has the background of all models, and the nodes of products
        found = json.loads(to_json(model, explain=IRIS[:2]))["explanation"]
        np.testing.assert_allclose(found["background"], IRIS[:2])
        assert ("nodes" in found) == (model is pipeline)
    for export in (to_c, to_json):
        with pytest.raises(ValueError, match="explain must have the columns"):
            export(MODELS["rbf"].fit(IRIS, SPECIES), explain=IRIS[:, :2])
