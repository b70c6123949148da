"""Pipelines are saved and exported as one model, which takes the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from exported import c_scores, json_scores, needs_gcc, onnx_outputs
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC

from nysplus import NystroemClassifier, NystroemRegressor, from_pipeline, from_svc, load, save
from nysplus.export import to_c, to_html, to_json, to_onnx


def table(seed, n_rows=300):
    """Return a table with gaps and, but for the seed 0, with unseen levels."""
    rng = np.random.RandomState(seed)
    colours = ["red", "green", "blue", "ä b"] + ["mauve"] * (seed > 0)
    frame = pd.DataFrame(
        {
            # numbers that float32 represents, which other languages get
            "income": rng.lognormal(1.0, 1.0, n_rows).astype(np.float32).astype(float),
            "age": np.rint(rng.uniform(18, 90, n_rows)),
            "children": rng.poisson(1.5, n_rows).astype(float),
            "weight": rng.uniform(40, 120, n_rows).astype(np.float32).astype(float),
            "colour": rng.choice(colours, n_rows).astype(object),
            "grade": rng.choice([1.0, 2.0, 3.0, 4.0][: 3 + (seed > 0)], n_rows),
        }
    )
    for name in frame:
        frame.loc[rng.rand(n_rows) < 0.1, name] = np.nan
    return frame


def fitted(model):
    """Return a pipeline with terms of all kinds."""

    def imputed(step, **options):
        return make_pipeline(SimpleImputer(**options), step)

    steps = make_column_transformer(
        (imputed(QuantileTransformer(n_quantiles=50), strategy="median"), ["income"]),
        (imputed(PowerTransformer()), ["age"]),
        (imputed(StandardScaler(), add_indicator=True), ["children"]),
        (imputed(MinMaxScaler(clip=True)), ["weight"]),
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        (
            make_pipeline(
                OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                SimpleImputer(),
            ),
            ["grade"],
        ),
    )
    frame = table(0)
    y = np.log(frame["income"].fillna(3.0)) + (frame["colour"] == "red") + frame["grade"].fillna(0)
    if hasattr(model, "predict_proba") or isinstance(model, SVC):
        y = np.array(["low", "high"])[(y > y.median()).astype(int)]
    return make_pipeline(steps, model).fit(frame, y)


@pytest.fixture(scope="module")
def classifier():
    return fitted(NystroemClassifier(40, alpha=0.01, gamma=0.3, random_state=0))


def feeds_of(frame):
    texts = frame["colour"].fillna("").to_numpy(dtype=object)[:, None]
    numbers = {name: frame[[name]].to_numpy(np.float32) for name in frame if name != "colour"}
    return {"colour": texts, **numbers}


def test_saved_and_loaded(classifier, tmp_path):
    save(classifier, tmp_path / "model")
    model = load(tmp_path / "model")
    assert type(model) is NystroemClassifier
    expected = classifier.predict_proba(table(1))
    np.testing.assert_allclose(model.predict_proba(table(1)), expected, atol=1e-6)
    moved = table(1)[sorted(table(1), reverse=True)].assign(another=1)
    np.testing.assert_allclose(model.predict_proba(moved), expected, atol=1e-6)


def test_refusals_are_saved(tmp_path):
    X = table(0)[["age", "grade"]].dropna()
    steps = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["grade"]))
    save(make_pipeline(steps, NystroemRegressor(10)).fit(X, X["age"]), tmp_path / "model")
    model = load(tmp_path / "model")
    with pytest.raises(ValueError, match="The column 'grade' contains '4'"):
        model.predict(X.assign(grade=4.0))
    with pytest.raises(ValueError, match="The column 'age' has gaps"):
        model.predict(X.assign(age=np.nan))


def test_onnx(classifier):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    frame = table(1)
    found = onnx_outputs(to_onnx(classifier, scores=True), feeds_of(frame))
    scores = classifier.decision_function(frame)
    np.testing.assert_allclose(found["scores"][:, 0], scores, atol=1e-4)
    np.testing.assert_allclose(
        found["probabilities"], classifier.predict_proba(frame), atol=1e-4, rtol=0
    )
    clear = np.abs(scores) > 1e-3
    assert clear.mean() > 0.9
    assert (found["label"] == classifier.predict(frame))[clear].all()


def test_onnx_of_an_array(moons):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X, y = moons
    X = X.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), NystroemClassifier(20, random_state=0)).fit(X, y)
    graph = to_onnx(pipeline)
    assert [each.name for each in graph.graph.input] == ["X"]
    expected = pipeline.predict_proba(X)
    np.testing.assert_allclose(onnx_outputs(graph, X)["probabilities"], expected, atol=1e-4)


def test_numbers_that_float32_does_not_tell_apart():
    pytest.importorskip("onnx", reason="onnx is not installed")
    X = 1e9 + np.arange(100.0)[:, None]
    model = NystroemRegressor(20, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, np.sin(X[:, 0] / 10))
    with pytest.warns(UserWarning, match=r"rounding rows to float32.* Pass dtype='float64'"):
        to_onnx(pipeline)
    graph = to_onnx(pipeline, dtype="float64")
    found = onnx_outputs(graph, X)["variable"][:, 0]
    np.testing.assert_allclose(found, pipeline.predict(X), atol=1e-5)


@needs_gcc
def test_c(classifier, tmp_path):
    frame = table(1)
    raw = from_pipeline(classifier)._model.columns.schema.read(frame)
    found = c_scores(tmp_path, classifier, raw)[:, 0]
    np.testing.assert_allclose(found, classifier.decision_function(frame), atol=1e-4)


def test_json(classifier):
    frame = table(1)
    raw = from_pipeline(classifier)._model.columns.schema.read(frame)
    found = json_scores(to_json(classifier), raw)[:, 0]
    np.testing.assert_allclose(found, classifier.decision_function(frame), atol=1e-5)


@pytest.mark.parametrize(
    "function", [to_c, to_html, to_json, to_onnx, lambda pipeline: save(pipeline, "x")]
)
def test_pipelines_that_end_in_another_model(function):
    with pytest.raises(TypeError, match=r"'svc' of the pipeline is a SVC.*from_svc imports"):
        function(fitted(SVC()))


def test_an_svc(tmp_path):
    pipeline = fitted(SVC())
    save(from_svc(pipeline, n_components=30, random_state=0), tmp_path / "model")
    model = load(tmp_path / "model")
    assert np.mean(model.predict(table(1)) == pipeline.predict(table(1))) > 0.95
