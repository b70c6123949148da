"""An image in, the same scores out of Python, C, ONNX and JSON."""

from __future__ import annotations

import re

import numpy as np
import pytest
from exported import build_c, c_scores, json_scores, needs_gcc, onnx_outputs, run_c

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus.encoding import ImageEncoder
from nysplus.export import to_c, to_json, to_onnx
from nysplus.export.contents import contents_of
from nysplus.export.rounding import exact_scores

MODELS = {
    "plain": {"n_components": 30},
    "int8": {"budget": "4kB"},
    "refined": {"budget": "3kB", "refine": Refinement(search=False)},
    "diagonal": {"n_components": 30, "metric": "diagonal"},
    "laplacian": {"n_components": 30, "kernel": "laplacian"},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request, digits):
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=6)
    estimator = NystroemClassifier(encoder=encoder, random_state=0, **MODELS[request.param])
    return estimator.fit(X[:800], y[:800])


@pytest.fixture(scope="module")
def colours():
    """A regressor of images of 5 × 4 pixels and three colours, far from zero."""
    rng = np.random.RandomState(0)
    X = 500.0 + rng.standard_normal((300, 60))
    y = np.sin(X[:, ::7].sum(axis=1) - 4500.0)
    encoder = ImageEncoder((5, 4, 3), n_cosines=3)
    model = NystroemRegressor(40, encoder=encoder, metric="full", random_state=0)
    return model.fit(X, y), X


def some_images(digits):
    """Return digits and random images of the same range."""
    X = digits[0][800:860]
    return np.vstack([X, np.random.RandomState(1).rand(20, 64)]).astype(np.float32)


def agrees(found, expected, tolerance):
    expected = expected.reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


@needs_gcc
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
def test_c(model, digits, tmp_path, dtype):
    X = some_images(digits)
    found = c_scores(tmp_path, model, X, dtype=dtype)
    exact = exact_scores(contents_of(model), X)
    agrees(found, exact, 1e-12 if dtype == "float64" else 1e-4)
    agrees(model.decision_function(X), exact, 1e-4)


def test_onnx(model, digits):
    X = some_images(digits)
    outputs = onnx_outputs(to_onnx(model, scores=True), X)
    agrees(outputs["scores"], model.decision_function(X), 1e-4)
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), atol=1e-4)
    assert onnx_outputs(to_onnx(model), X[:0])["label"].shape == (0,)


def test_json(model, digits):
    X = some_images(digits)[::8].astype(np.float64)
    text = to_json(model)
    agrees(json_scores(text, X), exact_scores(contents_of(model), X), 1e-12)
    assert '"format_version": 5' in text
    assert '"inputs": null' in text


@needs_gcc
def test_colours_in_c(colours, tmp_path):
    model, X = colours
    agrees(c_scores(tmp_path, model, X), model.predict(X), 1e-3)
    agrees(c_scores(tmp_path, model, X, dtype="float64"), model.predict(X), 1e-4)


def test_colours_elsewhere(colours):
    model, X = colours
    found = onnx_outputs(to_onnx(model, dtype="float64"), X)["variable"]
    agrees(found, model.predict(X), 1e-4)
    agrees(json_scores(to_json(model), X[:20]), model.predict(X[:20]), 1e-4)


def test_the_map_takes_no_bytes(digits):
    """Tables of a header and constants of a graph do not grow with the shape of the images."""
    rng = np.random.RandomState(0)
    sizes = []
    for n in (12, 30):
        X, y = rng.standard_normal((100, n * n)), rng.randint(0, 2, 100)
        encoder = ImageEncoder((n, n), n_cosines=4)
        model = NystroemClassifier(10, encoder=encoder, random_state=0).fit(X, y)
        header, graph = to_c(model), to_onnx(model)
        constants = sum(len(each.raw_data) for each in graph.graph.initializer)
        sizes.append((re.search(r"(\d+) bytes", header)[1], constants))
    assert sizes[0] == sizes[1]


@needs_gcc
def test_the_stack_of_the_comment_is_that_of_the_functions(digits, tmp_path):
    X, y = digits
    encoder = ImageEncoder((8, 8), n_cosines=6)
    model = NystroemClassifier(30, encoder=encoder, random_state=0).fit(X[:500], y[:500])
    header = to_c(model)
    assert "first 6 x 6 cosines of an image of 8 x 8 x 1 numbers" in header
    assert "of libm expf, cosf (-lm)" in header
    sizes = re.findall(r"^    float .*;$", header, flags=re.M)
    numbers = re.findall(r"\[(\w+)\]", " ".join(sizes))
    known = {"NYSPLUS_RANK": 36, "NYSPLUS_SCORES": 10}
    # those of the caller, the scores, besides
    total = 10 + sum(known.get(each) or int(each) for each in numbers)
    assert f"Stack: {4 * total} bytes" in header
    build_c(tmp_path, header)
    agrees(run_c(tmp_path, X[:5]), model.decision_function(X[:5]), 1e-4)
