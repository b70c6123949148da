"""Linear terms in exports: alone, as linear functions of a table's code, and beside landmarks."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from exported import (
    build_c,
    c_scores,
    json_scores,
    needs_gcc,
    onnx_outputs,
    row_type,
    run_c,
)
from factories import alter, classes, encoded_model, raw_numbers, with_few_bits
from sampling import in_pairs

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.export import to_c, to_json, to_onnx
from nysplus.export.c_model import c_model
from nysplus.export.contents import contents_of, without_linear_term
from nysplus.export.rounding import compared_rows, exact_scores, largest_change

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


@cache
def _linear(kind):
    estimator = NystroemRegressor if kind.startswith("value") else NystroemClassifier
    model = estimator(encoder="auto", budget=250, random_state=0).fit(X, TARGETS[kind])
    assert model.expansion_.linear is not None
    return model


def _model(kind):
    """Return a model that a test may alter."""
    return copy(_linear(kind))


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
    model = _model("classes")
    expansion = model.expansion_
    if not packed:
        expansion = replace(expansion, packed=None)
    other = without_linear_term(expansion)
    assert other.linear is None
    raw, _ = _raw(model)
    np.testing.assert_allclose(other(raw), expansion(raw), rtol=1e-6, atol=1e-6)


@needs_gcc
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("bits", [3, 4])
def test_few_bits(bits, offset, tmp_path):
    model = _model("classes")
    small = with_few_bits(model.expansion_, {"linear": bits}, offset=offset)
    alter(model, expansion=small)
    stored = without_linear_term(small).packed.projection
    assert stored is small.packed.linear
    raw, scores = _raw(model)
    np.testing.assert_allclose(c_scores(tmp_path, model, raw), scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(json_scores(to_json(model), raw), scores, rtol=1e-4, atol=1e-5)
    pytest.importorskip("onnxruntime", "1.19", reason="onnxruntime has no int4")
    graph = to_onnx(model, inputs="matrix", dtype="float64", scores=True)
    np.testing.assert_allclose(onnx_outputs(graph, raw)["scores"], scores, rtol=1e-4, atol=1e-5)


# -- beside landmarks ----------------------------------------------------------------------------

ROWS, Y = classes(300, 6)
RAW = raw_numbers(300)
RAW_Y = (np.nan_to_num(RAW[:, 0]) > 30).astype(int) + (RAW[:, 5] == 1)
PARTS = ("landmarks", "dual_coef", "projection", "linear")
BITS = {
    "not packed": None,
    "int8": dict.fromkeys(PARTS, 8),
    "int4": dict.fromkeys(PARTS, 4),
    "mixed": dict(zip(PARTS, (5, 6, 4, 3), strict=True)),
}


@cache
def _fitted(encoder, metric):
    model = NystroemClassifier(15, alpha=1.0, metric=metric, random_state=0)
    return encoded_model(model, RAW_Y) if encoder else model.fit(ROWS, Y)


def _both(encoder=False, metric=5, bits=None, centre=False, **options):
    """Return a classifier with landmarks and a linear term, and its rows."""
    model = copy(_fitted(encoder, metric))
    expansion = model.expansion_
    d = ROWS.shape[1] if expansion.encoder is None else expansion.encoder.n_columns
    rng = np.random.RandomState(0)
    expansion = replace(expansion, linear=0.3 * rng.randn(d, 3).astype(expansion.dual_coef.dtype))
    if bits is not None:
        expansion = with_few_bits(expansion, bits, **options)
    if centre:
        expansion = expansion.with_center(np.linspace(-0.3, 0.3, d).astype(np.float32))
    return alter(model, expansion=expansion), RAW if encoder else ROWS


def _check(found, model, rows):
    scores = model._model.decision(rows)
    np.testing.assert_allclose(found, scores, atol=1e-4 * np.abs(scores).max(), rtol=0)


@needs_gcc
@in_pairs(("encoder", "bits", "centre"), [False, True], BITS.keys(), [False, True])
def test_c_beside_landmarks(encoder, bits, centre, tmp_path):
    model, rows = _both(encoder, 5, BITS[bits], centre)
    _check(c_scores(tmp_path, model, rows), model, rows)


@needs_gcc
@pytest.mark.parametrize("metric", [None, "diagonal", 5])
@pytest.mark.parametrize("encoder", [False, True])
def test_c_beside_landmarks_with_offsets(encoder, metric, tmp_path):
    options = {"offset": True, "scale_type": np.float16}
    model, rows = _both(encoder, metric, BITS["mixed"], centre=True, **options)
    _check(c_scores(tmp_path, model, rows), model, rows)


@needs_gcc
@pytest.mark.parametrize("encoder", [False, True])
def test_c_beside_landmarks_in_double(encoder, tmp_path):
    model, rows = _both(encoder, centre=True)
    _check(c_scores(tmp_path, model, rows, dtype="float64"), model, rows)


@needs_gcc
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("encoder", [False, True])
def test_the_measured_change_is_that_of_the_compiled_header(encoder, centre, tmp_path):
    model, _ = _both(encoder, 5, BITS["mixed"], centre, offset=True)
    content = contents_of(model)
    written, header = c_model(content, "auto"), to_c(model)
    build_c(tmp_path, header)
    rows = compared_rows(content)
    change = largest_change(exact_scores(content, rows), run_c(tmp_path, rows, row_type(header)))
    assert 0.3 * written.change < change < 3.0 * written.change


@needs_gcc
@pytest.mark.parametrize(("scale", "offset"), [(1e-20, 0.0), (1e15, 0.0), (1.0, 1e7), (1e15, 1e19)])
def test_c_of_features_in_any_unit(scale, offset, tmp_path):
    """The term is of rows minus the centre, in the unit of the landmarks."""
    X = ROWS * scale + offset
    model = NystroemRegressor(15, alpha=1.0, random_state=0).fit(X, np.sin(Y))
    B = np.linspace(-1, 1, 6)[:, None] / scale
    alter(model, expansion=replace(model.expansion_, linear=B, intercept=-offset * B.sum(axis=0)))
    expected = model.expansion_(X)
    found = c_scores(tmp_path, model, X)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("encoder", [False, True])
def test_the_comment_of_c(encoder):
    model, _ = _both(encoder, bits=BITS["mixed"])
    header = to_c(model)
    x = "E(x)" if encoder else "x"
    assert f" *     scores = k(u, Z) A + {x} B + b,  u = {x} P" in header
    assert f" * Stack: {4 * (5 + 3 * 3)} bytes" in header
    if not encoder:
        assert f"Tables: {model.model_bytes_} bytes" in header


@pytest.mark.parametrize(
    ("encoder", "dtype"),
    [(False, np.float32), (False, np.float64), (True, np.float64)],  # dates need float64
)
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("bits", BITS)
def test_onnx_beside_landmarks(encoder, bits, centre, dtype):
    pytest.importorskip("onnxruntime", "1.19", reason="onnxruntime has no int4")
    model, rows = _both(encoder, 5, BITS[bits], centre)
    graph = to_onnx(model, dtype=dtype, scores=True, **({"inputs": "matrix"} if encoder else {}))
    _check(onnx_outputs(graph, rows.astype(dtype))["scores"], model, rows)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("encoder", [False, True])
def test_json_beside_landmarks(encoder, bits, centre):
    model, rows = _both(encoder, 5, BITS[bits], centre, offset=True)
    text = to_json(model)
    _check(json_scores(text, rows), model, rows)
    content = json.loads(text)
    x = "E(x)" if encoder else "x"
    assert content["format_version"] == 4
    assert content["formula"] == f"f(x) = k({f'({x} - c)' if centre else x} P, Z) A + {x} B + b"
    np.testing.assert_array_equal(np.array(content["linear"]), model.expansion_.linear)
