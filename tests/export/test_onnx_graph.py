from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from exported import onnx_outputs
from factories import alter
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nysplus import EnsembleMap, Nystroem, NystroemClassifier, NystroemRegressor
from nysplus._bytes.quantise import pack_expansion
from nysplus._rows.target_codes import ClassCode
from nysplus.expansion import KernelExpansion, PackedExpansion, pack_array
from nysplus.export import register_converters, to_onnx
from nysplus.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)
from nysplus_experiments.harness.datasets import DatasetNotFound, load

pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def decided(scores):
    """Tell which rows have a winner by more than rounding."""
    F = np.sort(np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores, axis=1)
    return F[:, -1] - F[:, -2] > 2e-4


def check_classifier(model, X, dtype=np.float32, **options):
    X = X.astype(dtype)
    found = onnx_outputs(to_onnx(model, dtype=dtype, scores=True, **options), X)
    assert list(found) == ["label", "probabilities", "scores"]
    scores = model.decision_function(X).reshape(len(X), -1)
    P = model.predict_proba(X)
    assert found["scores"].dtype == found["probabilities"].dtype == dtype
    assert found["probabilities"].shape == P.shape
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4, rtol=0)
    np.testing.assert_allclose(found["probabilities"], P, atol=1e-3, rtol=0)
    clear = decided(scores)
    assert clear.mean() > 0.95
    assert (found["label"] == model.predict(X))[clear].all()
    return found


def quantised(model, dtype):
    """Store the numbers of a model in fewer bytes."""
    old = model.expansion_
    P = None if old.projection is None else pack_array(old.projection, dtype)
    storage = PackedExpansion(
        pack_array(old.landmarks, dtype),
        pack_array(old.dual_coef, dtype),
        pack_array(old.intercept, "float32"),
        P,
    )
    alter(model, expansion=KernelExpansion.unpacked(old.kernel, storage))
    return model


@pytest.fixture(scope="module")
def digits_model(digits):
    X, y = digits
    return NystroemClassifier(100, random_state=0).fit(X[:1000], y[:1000])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [797, 1, 0])
def test_digits(digits, digits_model, dtype, n_rows):
    X = digits[0][1000 : 1000 + n_rows]
    if n_rows:
        assert check_classifier(digits_model, X, dtype)["label"].dtype == np.int64
    else:
        found = onnx_outputs(to_onnx(digits_model, dtype=dtype), X.astype(dtype))
        assert found["label"].shape == (0,)
        assert found["probabilities"].shape == (0, 10)


@pytest.mark.skipif("NYSPLUS_DATA" not in os.environ, reason="NYSPLUS_DATA names no folder")
@pytest.mark.parametrize("name", ["usps", "letter"])
def test_real_data(name):
    try:
        data = load(name, download=False, dtype=np.float32)
    except DatasetNotFound as error:
        pytest.skip(str(error))
    model = NystroemClassifier(200, random_state=0).fit(data.X_train[:3000], data.y_train[:3000])
    for dtype in ("float32", "int8"):
        expansion = pack_expansion(model.expansion_, dtype, data.X_train[:3000])
        # the same numbers, but float64 arithmetic: numpy's float32 sums are off by 1e-4 on Letter
        A = expansion.dual_coef.astype(np.float64)
        alter(model, expansion=replace(expansion, dual_coef=A))
        check_classifier(model, data.X_test[:1000])


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_versions_of_operators(digits, digits_model, opset):
    made = to_onnx(digits_model, opset=opset)
    assert [(entry.domain, entry.version) for entry in made.opset_import] == [("", opset)]
    check_classifier(digits_model, digits[0][1000:1100], opset=opset)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        *(Matern(nu=nu) for nu in (0.5, 1.5, 2.5)),
        Laplacian(),
        Polynomial(degree=2),
        Polynomial(gamma=0.02, coef0=0.5, degree=2.5),
        Sigmoid(gamma=0.01, coef0=0.1),
        Linear(),
        Cosine(),
        Chi2(),
        AdditiveChi2(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels(digits, kernel, dtype):
    X, y = digits
    rows = y < 3
    X, y = X[rows], y[rows]
    model = NystroemClassifier(20, kernel=kernel, alpha=1.0, random_state=0).fit(X[:200], y[:200])
    X_test = np.vstack([X[200:], np.zeros(X.shape[1])])
    check_classifier(model, X_test, dtype)
    assert onnx_outputs(to_onnx(model, dtype=dtype), X[:0].astype(dtype))["label"].shape == (0,)


@pytest.mark.parametrize("metric", [None, "diagonal", 12])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_fewer_bytes(digits, dtype, metric):
    X, y = digits
    model = NystroemClassifier(60, metric=metric, alpha=0.1, random_state=0)
    model.fit(X[:600].astype(np.float32), y[:600])
    large = to_onnx(model).ByteSize()
    quantised(model, dtype)
    for input_type in (np.float32, np.float64):
        check_classifier(model, X[600:], input_type)
    made = to_onnx(model)
    overhead = made.ByteSize() - model.model_bytes_
    assert overhead < 4500
    assert made.ByteSize() < large
    types = [tensor.data_type for tensor in made.graph.initializer if len(tensor.dims) == 2]
    assert types == [{"float16": 10, "int8": 3}[dtype]] * len(types)
    assert types


def test_coefficients_that_need_float64_get_it(rng):
    X = rng.rand(200, 1).astype(np.float32)
    y = np.sin(9 * X[:, 0])
    model = NystroemRegressor(60, gamma=1.0, alpha=1e-9, selection="uniform", random_state=0)
    model.fit(X.astype(np.float64), y)
    assert np.abs(model.dual_coef_).max() > 1e3
    found = onnx_outputs(to_onnx(model), X)["variable"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 0], model.predict(X), atol=1e-4, rtol=0)


def test_sparse_landmarks(digits):
    X, y = digits
    model = NystroemClassifier(30, selection="uniform", random_state=0)
    model.fit(sp.csr_matrix(X[:300]), y[:300])
    assert sp.issparse(model.landmarks_)
    check_classifier(model, X[300:])


def test_rows_far_from_the_origin(digits):
    X, y = digits
    X = (X + 1000.0).astype(np.float32)
    model = NystroemClassifier(40, random_state=0).fit(X[:400], y[:400])
    check_classifier(model, X[400:])


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (["no", "ja ü"], object),
        ([-3, 7], np.int64),
        ([False, True], np.int64),
        ([1.0, 2.0], np.int64),
    ],
    ids=["str", "int", "bool", "float"],
)
def test_two_classes(moons, classes, dtype):
    X, y = moons
    model = NystroemClassifier(20, random_state=0).fit(X[:200], np.array(classes)[y[:200]])
    assert check_classifier(model, X[200:])["label"].dtype == dtype


def test_strings(moons):
    X, codes = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    model = NystroemClassifier(20, random_state=0).fit(X, labels[codes])
    check_classifier(model, X)


def test_labels(digits):
    X, y = digits
    Y = np.column_stack([y % 2, y > 4, y % 3 == 0])
    model = NystroemClassifier(40, random_state=0).fit(X[:500], Y[:500])
    X = X[500:].astype(np.float32)
    found = onnx_outputs(to_onnx(model, scores=True), X)
    scores = model.decision_function(X)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4, rtol=0)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-3, rtol=0)
    assert (found["label"] == model.predict(X))[np.abs(scores) > 1e-4].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("several", [False, True])
def test_values(several, dtype):
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    y = np.column_stack([y, X[:, 2]]) if several else y
    model = NystroemRegressor(30, random_state=0).fit(X, y)
    found = onnx_outputs(to_onnx(model, dtype=dtype), X.astype(dtype))
    expected = model.predict(X).reshape(len(X), -1)
    assert list(found) == ["variable"]
    assert found["variable"].dtype == dtype
    np.testing.assert_allclose(found["variable"], expected, atol=1e-4, rtol=0)


@pytest.mark.filterwarnings("ignore:The model predicts")
def test_what_cannot_be_exported(digits):
    X, y = digits
    X, y = X[:100], y[:100]

    def fitted(kernel="rbf"):
        return NystroemClassifier(5, kernel=kernel, alpha=1.0, random_state=0).fit(X, y)

    with pytest.raises(ValueError, match=r"FunctionKernel.* has no ONNX graph.*Matern"):
        to_onnx(fitted(FunctionKernel(np.dot)))
    with pytest.raises(ValueError, match="dtype='float16' is not allowed"):
        to_onnx(fitted(), dtype="float16")
    with pytest.raises(ValueError, match=r"opset=9 is not allowed\. Pass a number from 13 to"):
        to_onnx(fitted(), opset=9)
    with pytest.raises(ValueError, match="opset=1000 is not allowed"):
        to_onnx(fitted(), opset=1000)
    halves = NystroemClassifier(5).fit(X, y % 2)
    alter(halves, code=ClassCode(np.array([0.5, 1.5])))
    with pytest.raises(ValueError, match="neither whole numbers nor strings"):
        to_onnx(halves)
    with pytest.raises(TypeError, match="StandardScaler has no kernel expansion"):
        to_onnx(StandardScaler().fit(X))
    with pytest.raises(ValueError, match="scores=True is for classifiers"):
        to_onnx(NystroemRegressor(5).fit(X, y), scores=True)


@pytest.mark.parametrize(
    ("library", "call"), [("onnx", lambda model: to_onnx(model)), ("skl2onnx", None)]
)
def test_missing_libraries_are_named(digits_model, monkeypatch, library, call):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'needs {library}: pip install "nysplus\[onnx\]"'):
        call(digits_model) if call else register_converters()


# -- skl2onnx ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def convert():
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_converters()
    return skl2onnx.to_onnx


@pytest.fixture(scope="module")
def pipeline(digits):
    X, y = digits
    model = make_pipeline(MinMaxScaler(), NystroemClassifier(60, random_state=0))
    return model.fit(16 * X[:1000], y[:1000])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pipeline(digits, pipeline, convert, dtype):
    X = (16 * digits[0][1000:]).astype(dtype)
    made = convert(pipeline, X[:1], options={"zipmap": False})
    found = onnx_outputs(made, X)
    scores = pipeline.decision_function(X)
    assert list(found) == ["label", "probabilities"]
    assert found["probabilities"].dtype == dtype
    np.testing.assert_allclose(found["probabilities"], pipeline.predict_proba(X), atol=1e-3, rtol=0)
    assert (found["label"] == pipeline.predict(X))[decided(scores)].all()
    assert onnx_outputs(made, X[:1])["probabilities"].shape == (1, 10)
    assert onnx_outputs(made, X[:0])["probabilities"].shape == (0, 10)


def test_a_pipeline_of_fewer_bytes(digits, convert):
    X, y = digits
    model = make_pipeline(MinMaxScaler(), NystroemClassifier(60, alpha=0.1, random_state=0))
    model.fit(X[:1000], y[:1000])
    quantised(model[-1], "int8")
    found = onnx_outputs(
        convert(model, X[:1].astype(np.float32), options={"zipmap": False}),
        X[1000:].astype(np.float32),
    )
    scores = model.decision_function(X[1000:])
    assert (found["label"] == model.predict(X[1000:]))[decided(scores)].all()


def test_zipmap(digits, pipeline, convert):
    X = (16 * digits[0][1000:1100]).astype(np.float32)
    P = pipeline.predict_proba(X)
    found = onnx_outputs(convert(pipeline, X[:1]), X)
    assert list(found) == ["output_label", "output_probability"]
    assert list(found["output_probability"][0]) == list(range(10))
    rows = [list(row.values()) for row in found["output_probability"]]
    np.testing.assert_allclose(rows, P, atol=1e-3, rtol=0)
    columns = onnx_outputs(convert(pipeline, X[:1], options={"zipmap": "columns"}), X)
    np.testing.assert_allclose(np.column_stack([columns[f"i{c}"] for c in range(10)]), P, atol=1e-3)


def test_other_options(digits, pipeline, convert, moons):
    X = (16 * digits[0][1000:1100]).astype(np.float32)
    options = {id(pipeline[-1]): {"zipmap": False, "raw_scores": True}}
    found = onnx_outputs(convert(pipeline, X[:1], options=options), X)
    np.testing.assert_allclose(
        found["probabilities"], pipeline.decision_function(X), atol=1e-4, rtol=0
    )
    X, y = moons
    X = X.astype(np.float32)
    model = NystroemClassifier(20, random_state=0).fit(X, np.array(["a", "b"])[y])
    for options in ({"nocl": True}, {"output_class_labels": True}, {"raw_scores": True}):
        found = onnx_outputs(
            convert(model, X[:1], options={id(model): {"zipmap": False, **options}}), X
        )
        clear = decided(model.decision_function(X)[:, None])
        predicted = model.predict(X)
        if "nocl" in options:
            predicted = (predicted == "b").astype(np.int64)
        assert (found["label"] == predicted)[clear].all()
        if "raw_scores" in options:
            f = model.decision_function(X)
            expected = np.column_stack([-f, f])
            np.testing.assert_allclose(found["probabilities"], expected, atol=1e-4, rtol=0)
        if "output_class_labels" in options:
            assert list(found["class_labels"]) == ["a", "b"]


def test_labels_and_values_with_skl2onnx(digits, convert):
    X, y = digits
    X = X[:500].astype(np.float32)
    Y = np.column_stack([y % 2, y > 4, y % 3 == 0])[:500]
    model = NystroemClassifier(40, random_state=0).fit(X, Y)
    found = onnx_outputs(convert(model, X[:1], options={"zipmap": False}), X)
    clear = np.abs(model.decision_function(X)) > 1e-4
    assert (found["label"] == model.predict(X))[clear].all()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-3, rtol=0)
    values = make_pipeline(StandardScaler(), NystroemRegressor(40, random_state=0)).fit(X, Y)
    found = onnx_outputs(convert(values, X[:1]), X)
    np.testing.assert_allclose(found["variable"], values.predict(X), atol=1e-4, rtol=0)


@pytest.mark.parametrize("approximation", ["standard", EnsembleMap(n_experts=2)], ids=str)
def test_features_with_skl2onnx(digits, convert, approximation):
    X = digits[0][:500].astype(np.float32)
    features = Nystroem(n_components=30, approximation=approximation, random_state=0).fit(X)
    found = onnx_outputs(convert(features, X[:1]), X)["variable"]
    np.testing.assert_allclose(found, features.transform(X), atol=1e-4, rtol=0)


def test_whole_numbers_with_skl2onnx(digits, convert):
    X, y = digits
    X = np.rint(16 * X[:500]).astype(np.int64)
    model = NystroemClassifier(40, random_state=0).fit(X, y[:500])
    found = onnx_outputs(convert(model, X[:1], options={"zipmap": False}), X)
    assert found["probabilities"].dtype == np.float32
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-3, rtol=0)


def test_old_operators_with_skl2onnx(pipeline, convert, digits):
    with pytest.raises(ValueError, match="opset=11 is not allowed"):
        convert(pipeline, digits[0][:1].astype(np.float32), target_opset=11)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
@pytest.mark.parametrize("kernel", [Cosine(), RBF(), Polynomial()])
def test_features_in_any_unit(kernel, scale):
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64) * 2.0 ** np.round(np.log2(scale))
    model = NystroemClassifier(20, kernel=kernel, random_state=0).fit(X, y)
    expected = model.decision_function(X)
    for dtype in (np.float32, np.float64):
        found = onnx_outputs(to_onnx(model, dtype=dtype, scores=True), X.astype(dtype))["scores"]
        assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
