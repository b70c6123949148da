"""Models that are linear functions of a table's code, in exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exported import c_scores, json_scores, needs_gcc, onnx_outputs
from factories import alter, classes

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.export import to_c, to_json, to_onnx
from nysplus.export.contents import without_linear_term

RNG = np.random.RandomState(0)
X = RNG.standard_normal((600, 5))
X[RNG.rand(600) < 0.1, 4] = np.nan
SCORE = X[:, 0] + np.abs(X[:, 1]) - 0.5 * np.nan_to_num(X[:, 4])
TARGETS = {
    "two classes": SCORE > 0.8,
    "classes": np.digitize(SCORE, [0.0, 1.0]),
    "labels": np.stack([SCORE > 0, SCORE > 1], axis=1).astype(int),
    "value": SCORE,
    "values": np.stack([SCORE, 2.0 - SCORE], axis=1),
}


def _model(kind):
    estimator = NystroemRegressor if kind.startswith("value") else NystroemClassifier
    model = estimator(encoder="auto", budget=250, random_state=0).fit(X, TARGETS[kind])
    assert model.expansion_.linear is not None
    return model


def _raw(model):
    """Return rows as `fit` reads them, and their scores."""
    raw = model._model.columns.schema.read(X)
    return raw, model.expansion_(raw)


@needs_gcc
@pytest.mark.parametrize("kind", TARGETS)
def test_c(kind, tmp_path):
    model = _model(kind)
    raw, scores = _raw(model)
    np.testing.assert_allclose(c_scores(tmp_path, model, raw), scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", TARGETS)
def test_json(kind):
    model = _model(kind)
    raw, scores = _raw(model)
    np.testing.assert_allclose(json_scores(to_json(model), raw), scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", TARGETS)
def test_onnx(kind):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = _model(kind)
    raw, _ = _raw(model)
    outputs = onnx_outputs(to_onnx(model, inputs="matrix"), raw.astype(np.float32))
    predicted = outputs["variable" if kind.startswith("value") else "label"]
    expected = model.predict(X)
    if kind.startswith("value"):
        np.testing.assert_allclose(predicted.reshape(expected.shape), expected, atol=1e-3)
    else:
        assert (predicted == expected).mean() > 0.99


@pytest.mark.parametrize("packed", [True, False])
def test_the_same_function_has_landmarks(packed):
    expansion = _model("classes").expansion_
    if not packed:
        expansion = replace(expansion, packed=None)
    other = without_linear_term(expansion)
    assert other.linear is None
    raw = _model("classes")._model.columns.schema.read(X)
    np.testing.assert_allclose(other(raw), expansion(raw), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("export", [to_c, to_json])
def test_a_linear_term_beside_landmarks_is_refused(export, rng):
    rows, y = classes()
    model = NystroemClassifier(5, random_state=0).fit(rows, y)
    model = alter(model, expansion=replace(model.expansion_, linear=rng.randn(4, 3)))
    with pytest.raises(ValueError, match="linear term beside its landmarks"):
        export(model)
