"""ONNX graphs of models that encode tables take the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exported import onnx_feeds, onnx_outputs
from factories import alter

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus._fit.model import Columns
from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Power,
    Ramps,
    TableCode,
)
from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.export import register_converters, to_onnx
from nysplus.export.onnx_nodes import Graph
from nysplus.export.onnx_tables import (
    ML_DOMAIN,
    ML_VERSION,
    coded,
    column_inputs,
    columns_from_inputs,
    columns_of_matrix,
)

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

# 2024, in seconds since 1970
NOW = 1_704_067_200.0
NUMBER, DATE = TableColumn(0, "x", "number"), TableColumn(0, "since", "date")
TEXTS = TableColumn(0, "colour", "category", ("red", "ä b", "blue"))
NUMBERS = TableColumn(0, "grade", "category", ("3", "-1", "0.1", "2"), numbered=True)
FAR = 1e6 + np.sort(np.random.RandomState(0).rand(30))
# knots a rounding error apart: a step
STEP = np.array([0.0, 1.0, np.nextafter(1.0, 2.0), 2.0])
TABLE = np.random.RandomState(1).randn(6, 2).astype(np.float32)

CASES = {
    "linear": (NUMBER, [Linear(0, 0.3, 2.0, 0.7), Linear(0, -1.0, 0.5, 0.0)]),
    "linear-far": (DATE, [Linear(0, NOW, 1e-5, NOW + 7.0)]),
    "ramps": (NUMBER, [Ramps(0, np.array([-1.0, 0.0, 0.5], dtype=np.float16), 0.4, 1)]),
    "ramps-far": (DATE, [Ramps(0, NOW + 1000 * FAR, 0.4, 3)]),
    "curve": (NUMBER, [Curve(0, np.array([-1.0, 0, 2]), np.array([1, 0, 3], dtype="f4"), 2)]),
    "curve-far": (DATE, [Curve(0, NOW + 1000 * FAR, FAR.astype(np.float32) - 1e6, 0)]),
    "curve-step": (NUMBER, [Curve(0, STEP, np.array([0, 1, 5, 6], dtype=np.float32), 1)]),
    "one-hot": (TEXTS, [OneHot(0, 3, False)]),
    "one-hot-gaps": (TEXTS, [OneHot(0, 3, True)]),
    "one-hot-of-some": (TEXTS, [OneHot(0, 2, True)]),
    "one-hot-of-numbers": (NUMBERS, [OneHot(0, 4, True)]),
    "lookup": (TEXTS, [Lookup(0, TABLE[:5]), OneHot(0, 3, False)]),
    "lookup-of-numbers": (NUMBERS, [Lookup(0, TABLE.astype(np.float16))]),
    "circle": (DATE, [Circle(0, 86400.0, 3600.0, "hour"), Circle(0, 86400 * 365.2425, 0, "day")]),
    "missing": (NUMBER, [Missing(0), Missing(0, -0.5, 2.0)]),
    **{
        f"power-{exponent}-{signed}": (NUMBER, [Power(0, exponent, signed, -2, 0.5, 1, 2, 0.3)])
        for exponent in (-0.7, 0.0, 1e-13, 0.5, 2.0)
        for signed in (False, True)
    },
}


def raw_numbers(column, n_rows=60):
    """Return numbers of a column, with gaps and unseen levels."""
    rng = np.random.RandomState(2)
    if column.kind == "category":
        x = rng.randint(-1, len(column.levels), n_rows).astype(float)
    elif column.kind == "date":
        x = np.floor(NOW + rng.uniform(-2e9, 2e9, n_rows))
        x[::2] = NOW + 1000 * (1e6 + rng.rand(len(x[::2])))
    else:
        x = rng.uniform(-1.9, 3.0, n_rows)
        x[:2] = 1.0, np.nextafter(1.0, 2.0)
    x[::7] = np.nan
    return x[:, None]


def graph_of_code(code, schema, by_name, dtype):
    """Return a graph whose only output is the code."""
    graph = Graph(np.dtype(dtype), [column.name for column in schema.columns])
    if by_name:
        inputs = column_inputs(schema, np.dtype(dtype))
        columns = columns_from_inputs(graph, schema, np.dtype(dtype))
    else:
        kind = graph.element_type(dtype)
        inputs = [onnx.helper.make_tensor_value_info("X", kind, [None, code.n_inputs])]
        columns = columns_of_matrix(graph, code.n_inputs)
    graph.node("Identity", coded(graph, code, columns), output="code")
    shape = [None, code.n_columns]
    output = onnx.helper.make_tensor_value_info("code", graph.element_type(dtype), shape)
    body = onnx.helper.make_graph(graph.nodes, "code", inputs, [output], graph.initializers)
    opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid(ML_DOMAIN, ML_VERSION)]
    return onnx.helper.make_model(body, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("by_name", [True, False], ids=["columns", "matrix"])
@pytest.mark.parametrize("case", list(CASES))
def test_terms(case, by_name, dtype):
    column, terms = CASES[case]
    schema, code = TableSchema(1, (column.name,), (column,)), TableCode(1, tuple(terms))
    raw = raw_numbers(column)
    if column.kind == "number" or not by_name:
        raw = raw.astype(dtype).astype(np.float64)  # the graph cannot know more
    feeds = onnx_feeds(schema, raw, dtype) if by_name else raw.astype(dtype)
    found = onnx_outputs(graph_of_code(code, schema, by_name, dtype), feeds)["code"]
    expected = code(raw, np.float64)
    assert found.dtype == dtype
    assert len(np.unique(expected)) > 1
    error = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, atol=error, rtol=error)


FRAME_COLUMNS = (
    TableColumn(0, "size", "number"),
    TableColumn(1, "colour", "category", ("red", "ä b", "blue")),
    TableColumn(3, "since", "date"),
    TableColumn(4, "grade", "category", ("3", "-1", "0.1"), numbered=True),
)
SCHEMA = TableSchema(5, ("size", "colour", "id", "since", "grade"), FRAME_COLUMNS)
CODE = TableCode(
    4,
    (
        Ramps(0, np.linspace(-2.0, 2.0, 9), 0.4, 4),
        Missing(0),
        OneHot(1, 3, True),
        Lookup(1, TABLE[:5]),
        Linear(2, NOW, 1e-5, NOW),
        Circle(2, 86400.0, 0.0, "hour"),
        OneHot(3, 3, False),
    ),
)


def frame(n_rows=200):
    """Return a table with gaps and unseen levels."""
    rng = np.random.RandomState(3)
    made = pd.DataFrame(
        {
            "size": rng.randn(n_rows).astype(np.float32),
            "colour": rng.choice(["red", "ä b", "blue", "mauve", None], n_rows),
            "id": np.arange(n_rows),
            "since": pd.to_datetime(NOW + rng.randint(-100_000, 100_000, n_rows), unit="s"),
            "grade": rng.choice([3.0, -1.0, 0.1, 8.0, np.nan], n_rows),
        }
    )
    made.loc[::5, "size"] = np.nan
    made.loc[::6, "since"] = pd.NaT
    return made


def feeds_of(table, dtype=np.float32):
    """Return the inputs as a user makes them of a frame."""
    seconds = table["since"].to_numpy().astype("datetime64[s]")
    known = np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64))
    return {
        "since": known.reshape(-1, 1).astype(np.float64),
        "colour": table["colour"].fillna("").to_numpy(dtype=object)[:, None],
        "size": table["size"].to_numpy(dtype=dtype)[:, None],
        "grade": table["grade"].to_numpy(dtype=dtype)[:, None],
    }


def encoded(estimator, y):
    """Fit an estimator to the code of the table, and give it code and schema."""
    estimator.fit(CODE(SCHEMA.read(frame())), y)
    columns = Columns(SCHEMA.n_features, np.array(SCHEMA.names, dtype=object), schema=SCHEMA)
    return alter(estimator, expansion=replace(estimator.expansion_, encoder=CODE), columns=columns)


@pytest.fixture(scope="module")
def classifier():
    y = np.array(["a", "b", "c"])[np.random.RandomState(4).randint(3, size=200)]
    return encoded(NystroemClassifier(20, alpha=0.01, random_state=0), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_frame(classifier, dtype):
    table = frame()
    graph = to_onnx(classifier, dtype=dtype, scores=True)
    assert [each.name for each in graph.graph.input] == ["size", "colour", "since", "grade"]
    found = onnx_outputs(graph, feeds_of(table, dtype))
    raw = SCHEMA.read(table)
    scores = classifier._model.decision(raw)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    expected = classifier._model.probabilities(raw)
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-4)
    ordered = np.sort(scores, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-3
    assert clear.mean() > 0.9
    assert (found["label"] == classifier._model.predict(raw))[clear].all()


def test_a_matrix_of_raw_numbers(classifier):
    raw = SCHEMA.read(frame())
    graph = to_onnx(classifier, inputs="matrix", dtype="float64", scores=True)
    assert [each.name for each in graph.graph.input] == ["X"]
    found = onnx_outputs(graph, raw)["scores"]
    np.testing.assert_allclose(found, classifier._model.decision(raw), atol=1e-4)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_few_rows(classifier, n_rows):
    feeds = feeds_of(frame().iloc[:n_rows])
    assert onnx_outputs(to_onnx(classifier), feeds)["label"].shape == (n_rows,)


@pytest.mark.parametrize("opset", [13, 21])
def test_versions_of_operators(classifier, opset):
    found = onnx_outputs(to_onnx(classifier, opset=opset, scores=True), feeds_of(frame()))
    expected = classifier._model.decision(SCHEMA.read(frame()))
    np.testing.assert_allclose(found["scores"], expected, atol=1e-4)


def test_columns_without_names_are_a_matrix():
    model = encoded(NystroemRegressor(20, random_state=0), np.arange(200.0))
    columns = model._model.columns
    alter(model, columns=replace(columns, schema=replace(SCHEMA, names=None)))
    assert [each.name for each in to_onnx(model).graph.input] == ["X"]
    by_name = to_onnx(model, inputs="columns").graph.input
    assert [each.name for each in by_name] == ["size", "colour", "since", "grade"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"budget": "4kB"},
        {"budget": 200, "refine": Refinement(search=False, n_epochs=5)},  # not all columns
    ],
    ids=str,
)
def test_a_fitted_encoder(options, dtype):
    table = frame(400).drop(columns="id")
    y = (table["size"].fillna(-1.0) > 0) ^ (table["colour"] == "red")
    model = NystroemClassifier(30, encoder="auto", random_state=0, **options).fit(table, y)
    test = frame(300)
    found = onnx_outputs(to_onnx(model, dtype=dtype, scores=True), feeds_of(test, dtype))
    np.testing.assert_allclose(found["scores"][:, 0], model.decision_function(test), atol=1e-4)


def renamed(model, name):
    columns = (replace(FRAME_COLUMNS[0], name=name), *FRAME_COLUMNS[1:])
    schema = TableSchema(5, (name, *SCHEMA.names[1:]), columns)
    return replace(model._model.columns, schema=schema)


def test_names_of_columns_that_nodes_would_have():
    model = encoded(NystroemRegressor(20, random_state=0), np.arange(200.0))
    names = [node.output[0] for node in to_onnx(model).graph.node]
    expected = onnx_outputs(to_onnx(model), feeds_of(frame()))["variable"]
    for name in (names[3], to_onnx(model).graph.initializer[4].name):
        alter(model, columns=renamed(model, name))
        feeds = feeds_of(frame())
        feeds[name] = feeds.pop("size")
        found = onnx_outputs(to_onnx(model), feeds)["variable"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "match"), [("variable", "'variable' of a column is the name of an"), ("", "is empty")]
)
def test_names_of_columns_that_no_input_can_have(name, match):
    model = encoded(NystroemRegressor(20, random_state=0), np.arange(200.0))
    alter(model, columns=renamed(model, name))
    with pytest.raises(ValueError, match=rf"{match}.* inputs='matrix'"):
        to_onnx(model)
    assert to_onnx(model, inputs="matrix").graph.input[0].name == "X"


def test_inputs_that_are_not_allowed(classifier, moons):
    with pytest.raises(ValueError, match=r"inputs='rows' is not allowed\. Pass 'columns'"):
        to_onnx(classifier, inputs="rows")
    with pytest.raises(ValueError, match="This model takes a matrix; leave inputs out"):
        to_onnx(NystroemClassifier(5, random_state=0).fit(*moons), inputs="columns")


def test_skl2onnx_is_not_for_tables(classifier):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_converters()
    with pytest.raises(ValueError, match=r"encodes tables.* with nysplus\.export\.to_onnx"):
        skl2onnx.to_onnx(classifier, np.zeros((1, 5), dtype=np.float32))
