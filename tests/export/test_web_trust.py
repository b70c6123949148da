"""Shapley values, prediction sets, intervals and novelty in JavaScript equal those of Python."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import reference
from browser import as_rows, needs_node, run_node
from factories import alter, classes, values
from web_models import KINDS, TRAIN, case

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.conformal import Novelty
from nysplus.encoding import ImageEncoder
from nysplus.explain import shapley_values
from nysplus.explain.function import ExplainedFunction
from nysplus.export import to_json
from nysplus.export.json_text import novelty_numbers

pytestmark = needs_node

EXPLAIN = """
(content, rows) => {
    const explain = createExplainer(content, createModel(content));
    return rows.map((row) => {
        const { values, base, errors } = explain(row);
        const plain = (lists) => lists && lists.map((list) => Array.from(list));
        return { values: plain(values), base: Array.from(base), errors: plain(errors) };
    });
}
"""
TRUST = """
(content, rows) => {
    const model = createModel(content);
    const sets = rows.map((row) => model.predictionSet(row));
    const novelty = rows.map(model.novelty);
    return { sets, novelty, intervals: rows.map((row) => model.interval(row)) };
}
"""
# kinds of few columns, so that all coalitions can be written down
FEW_COLUMNS = [kind for kind in KINDS if "images" not in kind]


def in_node(function, text, X):
    """Return the value of a JavaScript function of a model and rows."""
    call = f"({function})({text}, {json.dumps(as_rows(X))})"
    return json.loads(run_node(f"console.log(JSON.stringify({call}));"))


def in_float64(model):
    """Return the function from raw numbers to scores, in float64."""
    fitted = getattr(model, "_model", None)
    return model if fitted is None else ExplainedFunction.of(fitted).expansion


def explained(model, X, background):
    """Return the explanations of rows against others, both raw numbers."""
    content = json.loads(to_json(model, explain=True))
    content["explanation"]["background"] = as_rows(background)
    return in_node(EXPLAIN, json.dumps(content), X)


@pytest.mark.parametrize("kind", FEW_COLUMNS)
def test_values_are_the_mean_over_all_orders_of_columns(kind):
    made = case(kind)
    rows, others, f = made.raw[:2], made.raw[50:52], in_float64(made.model)
    largest = np.abs(f(rows)).max()
    for row, found in zip(rows, explained(made.model, rows, others), strict=True):
        expected = reference.shapley_values(f, row, others)
        assert found["errors"] is None
        np.testing.assert_allclose(found["values"], expected, rtol=0, atol=1e-6 * largest)
        total = found["base"] + np.sum(found["values"], axis=0)
        np.testing.assert_allclose(total, f(row[None])[0], rtol=0, atol=1e-6 * largest)


def test_values_of_many_columns_are_estimated():
    X, y = values(300, 14)
    model = NystroemRegressor(20, kernel="matern", random_state=0).fit(X, y[:, 0])
    (found,) = explained(model, X[:1], X[50:52])
    expected = reference.shapley_values(in_float64(model), X[0], X[50:52])
    error = np.array(found["errors"])
    assert (error > 0).all()
    assert np.abs((found["values"] - expected) / error).max() < 5
    assert error.max() < 0.1 * np.abs(expected).max()
    total = found["base"][0] + np.sum(found["values"])
    assert total == pytest.approx(model.predict(X[:1])[0], abs=1e-9)


def test_columns_of_products_are_exact_however_many():
    X, y = values(300, 100)
    model = NystroemRegressor(20, random_state=0).fit(X, y[:, 0])
    (found,) = in_node(EXPLAIN, to_json(model, explain=X[50:53]), X[:1])
    expected = shapley_values(model, X[:1], X[50:53])
    assert found["errors"] is None
    np.testing.assert_allclose(
        np.ravel(found["values"]), expected.values[0], atol=1e-9 * np.abs(expected.values).max()
    )


def test_pixels_are_explained_in_blocks():
    rng = np.random.RandomState(0)
    X = rng.rand(60, 20 * 10)
    encoder = ImageEncoder((20, 10), n_cosines=4)
    model = NystroemRegressor(10, encoder=encoder, random_state=0).fit(X, X[:, :90].sum(axis=1))
    (found,) = in_node(EXPLAIN, to_json(model, explain=True), X[:1])
    # of 3 × 3 pixels: 7 lines of 4
    assert np.shape(found["values"]) == (28, 1)
    background = json.loads(to_json(model, explain=True))["explanation"]["background"]
    landmarks = model.expansion_.given_landmarks()
    mean = model.expansion_.encoder.images(landmarks).mean(axis=0)
    np.testing.assert_allclose(background, mean[None], atol=1e-5)
    # the whole difference between the row and the background
    total = found["base"][0] + np.sum(found["values"])
    assert total == pytest.approx(model.predict(X[:1])[0], rel=1e-4)
    # a row that differs from the background in one block
    row = np.array(background)
    row[0, :3] += 1.0
    (found,) = in_node(EXPLAIN, to_json(model, explain=True), row)
    assert found["errors"] is None
    assert np.flatnonzero(np.ravel(found["values"])).tolist() == [0]


# -- sets, intervals and novelty -------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("conditional", [False, True])
def test_sets_and_novelty(n_classes, conditional):
    X, y = classes(900, n_classes=n_classes, noise=2.0)
    model = NystroemClassifier(20, random_state=0).fit(X[:400], y[:400])
    if conditional:
        model.calibrate(X[400:], y[400:], class_conditional=True)
    rows = np.concatenate([X[400:600], 9 * X[400:420]])
    found = in_node(TRUST, to_json(model, confidence=0.9), rows)
    expected = [model.classes_[row].tolist() for row in model.predict_set(rows)]
    assert found["sets"] == expected
    assert len({len(each) for each in expected}) > 1
    novelty = model.novelty(rows)
    np.testing.assert_allclose(found["novelty"], novelty, atol=1e-6)
    assert (novelty > 0.99).any()
    assert (novelty < 0.5).any()


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_intervals(n_outputs):
    X, Y = values(300, 3, n_outputs)
    model = NystroemRegressor(20, random_state=0).fit(X, Y)
    found = in_node(TRUST, to_json(model, confidence=0.8), X[:20])
    expected = model.predict_interval(X[:20], confidence=0.8).reshape(20, 2, -1)
    np.testing.assert_allclose(np.swapaxes(found["intervals"], 1, 2), expected, rtol=1e-9)
    np.testing.assert_allclose(found["novelty"], model.novelty(X[:20]), atol=1e-6)


@pytest.mark.parametrize("kind", ["frame", "table, 3 bits", "images in 4 kB", "metric 2"])
def test_novelty_of_encoded_and_mapped_rows(kind):
    made = case(kind)
    model, rows = made.model, made.raw[:200]
    model = alter(
        copy.copy(model), familiar=Novelty.of(model.expansion_.similarity(rows), np.ones(200))
    )
    found = in_node(TRUST, json.dumps(json.loads(to_json(model)) | novelty_numbers(model)), rows)
    expected = model._model.novelty(rows)
    np.testing.assert_allclose(found["novelty"], expected, atol=2e-3)


def test_novelty_along_directions():
    """The larger of two ranks: by similarity, and by the length of the raw row along directions."""
    made, rng = case("frame"), np.random.RandomState(0)
    rows = made.raw[:100]
    content = json.loads(to_json(made.model)) | novelty_numbers(made.model)
    levels = content["novelty"]["levels"]
    center, weights = np.nanmean(rows, axis=0), rng.randn(rows.shape[1], 2)
    weights /= np.nanstd(rows, axis=0)[:, None]
    squares = (np.nan_to_num(rows - center, nan=0.0) @ weights) ** 2
    distances = np.quantile(squares.sum(axis=1), np.array(levels))
    numbers = {"center": center, "weights": weights, "distances": distances}
    content["novelty"]["directions"] = {name: each.tolist() for name, each in numbers.items()}
    found = in_node(TRUST, json.dumps(content), rows)["novelty"]
    along = np.interp(squares.sum(axis=1), distances, levels)
    by_similarity = made.model._model.novelty(rows)
    assert (along > by_similarity).any()
    assert (along < by_similarity).any()
    np.testing.assert_allclose(found, np.maximum(along, by_similarity), atol=2e-3)


def test_texts_without_numbers_have_no_sets():
    found = in_node(TRUST, to_json(case("targets binary").model), TRAIN.X[:2])
    assert found == {"sets": [None] * 2, "novelty": [None] * 2, "intervals": [None] * 2}
    code = f"createExplainer({to_json(case('targets binary').model)})"
    assert run_node(f"console.log({code})") == "null\n"
