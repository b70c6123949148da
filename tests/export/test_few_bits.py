"""Models whose numbers have few bits, in exports: the same scores as in Python."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from copy import copy
from functools import cache

import numpy as np
import pytest
from exported import (
    FLAGS,
    GCC,
    build_c,
    c_scores,
    json_scores,
    needs_gcc,
    onnx_outputs,
    row_type,
    run_c,
)
from factories import alter, classes, encoded_model, raw_numbers, with_few_bits
from sampling import sampled

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.bit_stream import unpack_bits
from nysplus.export import register_converters, to_c, to_json, to_onnx
from nysplus.export.c_model import c_model
from nysplus.export.contents import contents_of
from nysplus.export.rounding import compared_rows, exact_scores, largest_change

X, Y = classes(300, 6)
RAW = raw_numbers(300)
RAW_Y = (np.nan_to_num(RAW[:, 0]) > 30).astype(int) + (RAW[:, 5] == 1)
PARTS = ("landmarks", "dual_coef", "projection")


@cache
def _fitted(encoder, metric):
    model = NystroemClassifier(15, alpha=1.0, metric=metric, random_state=0)
    return encoded_model(model, RAW_Y) if encoder else model.fit(X, Y)


def _model(bits, encoder=False, metric=5, **options):
    """Return a classifier with some parts in few bits."""
    model = copy(_fitted(encoder, metric))
    return alter(model, expansion=with_few_bits(model.expansion_, bits, **options))


def _rows(model):
    return X if model.expansion_.encoder is None else RAW


def _check_scores(found, model):
    """Compare scores with those in Python, relative to the largest."""
    scores = model._model.decision(_rows(model))
    np.testing.assert_allclose(found, scores, atol=1e-4 * np.abs(scores).max(), rtol=0)


CASES = [
    *({part: bits} for part in PARTS for bits in range(2, 8)),
    dict(zip(PARTS, (4, 3, 7), strict=True)),
    dict(zip(PARTS, (5, 4, 2), strict=True)),
    dict.fromkeys(PARTS, 8),
]


@needs_gcc
@sampled(
    ("bits", "encoder", "options"),
    CASES,
    [False, True],
    [{}, {"offset": True, "scale_type": np.float16}],
)
def test_c(bits, encoder, options, tmp_path):
    model = _model(bits, encoder, **options)
    _check_scores(c_scores(tmp_path, model, _rows(model)), model)
    header = to_c(model)
    for name, number in bits.items():
        size = getattr(model.expansion_.packed, name).values.size
        kind, length = ("int8_t", size) if number == 8 else ("uint8_t", -(-size * number // 8))
        assert f"static const {kind} nysplus_{name}[{length}]" in header


@needs_gcc
@pytest.mark.parametrize("options", [{}, {"offset": True}], ids=str)
@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize("metric", [None, "diagonal"])
def test_c_of_other_maps(metric, encoder, options, tmp_path):
    bits = {"landmarks": 5, "dual_coef": 6, "projection": 7}
    model = _model(bits, encoder, metric, **options)
    _check_scores(c_scores(tmp_path, model, _rows(model)), model)


@needs_gcc
@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize("options", [{}, {"offset": True}], ids=str)
def test_c_with_a_centre(options, encoder, tmp_path):
    model = _model(dict.fromkeys(PARTS, 5), encoder, **options)
    c = np.linspace(-0.3, 0.3, len(model.expansion_.projection)).astype(np.float32)
    alter(model, expansion=model.expansion_.with_center(c))
    _check_scores(c_scores(tmp_path, model, _rows(model)), model)


@needs_gcc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_c_in_other_types(dtype, tmp_path):
    model = _model(dict.fromkeys(PARTS, 3), offset=True, scale_type=np.float16)
    _check_scores(c_scores(tmp_path, model, X, dtype=dtype), model)
    assert "int8_t" not in to_c(model, dtype=dtype)


@needs_gcc
@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize("options", [{}, {"offset": True, "scale_type": np.float16}], ids=str)
def test_the_measured_change_is_that_of_the_compiled_header(options, encoder, tmp_path):
    model = _model(dict(zip(PARTS, (4, 5, 6), strict=True)), encoder, **options)
    content = contents_of(model)
    written, header = c_model(content, "auto"), to_c(model)
    build_c(tmp_path, header)
    rows = compared_rows(content)
    found = run_c(tmp_path, rows, row_type(header))
    change = largest_change(exact_scores(content, rows), found)
    assert 0.3 * written.change < change < 3.0 * written.change


@needs_gcc
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("scale", [1e-30, 1e15])
def test_c_of_features_in_any_unit(scale, offset, tmp_path):
    model = NystroemRegressor(15, alpha=1.0, random_state=0).fit(X * scale, Y)
    bits = {"landmarks": 6, "dual_coef": 6}
    alter(model, expansion=with_few_bits(model.expansion_, bits, offset=offset))
    exact = exact_scores(contents_of(model), X * scale)
    np.testing.assert_allclose(c_scores(tmp_path, model, X * scale), exact, atol=1e-4)


def test_the_bytes_of_tables_are_those_of_the_comment():
    sizes = {"double": 8, "float": 4, "uint16_t": 2, "int8_t": 1, "uint8_t": 1}
    for options in ({}, {"offset": True}, {"offset": True, "scale_type": np.float16}):
        model = _model(dict(zip(PARTS, (4, 3, 8), strict=True)), **options)
        header = to_c(model)
        tables = re.findall(r"static const (\w+) nysplus_(?!classes)\w+\[(\d+)\]", header)
        n_bytes = sum(sizes[kind] * int(size) for kind, size in tables)
        assert f"Tables: {n_bytes} bytes (landmarks int4, dual_coef int3, " in header
        assert n_bytes == model.model_bytes_


def _table_bytes(folder, header):
    """Return the bytes of all constant data of a compiled header, by name."""
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text('#include "model.h"\n')
    subprocess.run([GCC, "-std=c99", "-O0", "-c", "main.c"], cwd=folder, check=True)
    found = subprocess.run(["nm", "-S", "main.o"], cwd=folder, capture_output=True, check=True)
    lines = (line.split() for line in found.stdout.decode().splitlines())
    return {line[3]: int(line[1], 16) for line in lines if len(line) == 4 and line[2] in "rR"}


@needs_gcc
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not there")
@pytest.mark.parametrize("options", [{}, {"offset": True, "scale_type": np.float16}], ids=str)
@pytest.mark.parametrize("bits", CASES, ids=str)
def test_compiled_tables_take_the_bytes_of_the_model_and_its_classes(bits, options, tmp_path):
    model = _model(bits, **options)
    found = _table_bytes(tmp_path, to_c(model))
    assert found.pop("nysplus_classes") == 4 * len(model.classes_)
    assert sum(found.values()) == model.model_bytes_


@needs_gcc
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not there")
@pytest.mark.parametrize("bits", range(2, 9))
def test_compiled_tables_of_a_regressor_take_the_bytes_of_the_model(bits, tmp_path):
    model = NystroemRegressor(15, alpha=1.0, random_state=0).fit(X, Y)
    bits = {"landmarks": bits, "dual_coef": bits}
    alter(model, expansion=with_few_bits(model.expansion_, bits))
    assert sum(_table_bytes(tmp_path, to_c(model)).values()) == model.model_bytes_


@pytest.mark.parametrize(
    ("bits", "expected"),
    [({"landmarks": 8}, set()), ({"landmarks": 4}, {"nibble"}), ({"landmarks": 3}, {"bits"})],
    ids=str,
)
def test_only_functions_that_are_called_are_written(bits, expected):
    header = to_c(_model(bits))
    assert set(re.findall(r"static inline int nysplus_(nibble|bits)\(", header)) == expected


@pytest.mark.parametrize("bits", CASES, ids=str)
def test_c_tables_are_the_stored_integers(bits):
    model, texts = _model(bits), {}
    header = to_c(model)
    for name, values in re.findall(r"nysplus_(\w+)\[\d+\] = \{([^}]*)\}", header):
        texts[name] = values.replace(",", " ").split()
    for name, number in bits.items():
        stored = getattr(model.expansion_.packed, name)
        found = np.array(texts[name], dtype=int)
        if number < 8:
            found = unpack_bits(found.astype(np.uint8), number, stored.values.shape)
        np.testing.assert_array_equal(found.reshape(stored.values.shape), stored.values)


@needs_gcc
@pytest.mark.parametrize("bits", range(2, 8))
def test_no_table_is_read_past_its_end(bits, tmp_path):
    """Sanitizers stop the program at the first byte outside of a table."""
    model = _model(dict.fromkeys(PARTS, bits))
    build_c(tmp_path, to_c(model))
    checked = [*FLAGS, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [GCC, *checked, "main.c", "-lm", "-o", "main"]
    if subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode:
        pytest.skip("gcc has no sanitizers")
    _check_scores(run_c(tmp_path, X), model)


# -- ONNX ----------------------------------------------------------------------------------------


def _onnx_scores(model, dtype, **options):
    """Return the scores of the rows by an ONNX graph, and the graph."""
    if model.expansion_.encoder is not None:
        options["inputs"] = "matrix"
    graph = to_onnx(model, dtype=dtype, scores=True, **options)
    return onnx_outputs(graph, _rows(model).astype(dtype))["scores"], graph


def _tensor_types(graph):
    """Return the types of the tables, as ONNX numbers them."""
    tensors = {tensor.name: tensor.data_type for tensor in graph.graph.initializer}
    return [
        next(kind for name, kind in tensors.items() if re.fullmatch(rf"{part}_\d+", name))
        for part in PARTS
    ]


INT4, INT8, FLOAT = 22, 3, 1


@pytest.mark.parametrize("options", [{}, {"offset": True, "scale_type": np.float16}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bits", CASES, ids=str)
def test_onnx(bits, dtype, options):
    pytest.importorskip("onnxruntime", "1.19", reason="onnxruntime has no int4")
    model = _model(bits, **options)
    found, graph = _onnx_scores(model, dtype)
    _check_scores(found, model)
    types = [INT4 if bits.get(n, 99) <= 4 else INT8 if n in bits else FLOAT for n in PARTS]
    assert _tensor_types(graph) == types
    opset = 21 if INT4 in types else 17
    assert [each.version for each in graph.opset_import] == [opset]


@pytest.mark.parametrize("bits", CASES, ids=str)
def test_onnx_tables_are_the_stored_integers(bits):
    numpy_helper = pytest.importorskip("onnx.numpy_helper", reason="onnx is not installed")
    model = _model(bits)
    tensors = to_onnx(model, scores=True).graph.initializer
    for name in bits:
        values = getattr(model.expansion_.packed, name).values
        (tensor,) = (tensor for tensor in tensors if re.fullmatch(rf"{name}_\d+", tensor.name))
        found = numpy_helper.to_array(tensor).astype(np.int8)
        transposed = found.shape != values.shape  # a product may need the columns first
        np.testing.assert_array_equal(found.T if transposed else found, values)


@pytest.mark.parametrize("metric", [None, "diagonal", 5])
@pytest.mark.parametrize("bits", [4, 6])
def test_onnx_of_tables(bits, metric):
    pytest.importorskip("onnxruntime", "1.19", reason="onnxruntime has no int4")
    model = _model(dict.fromkeys(PARTS, bits), True, metric, offset=True)
    _check_scores(_onnx_scores(model, np.float64)[0], model)


def test_onnx_of_older_operators():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = NystroemClassifier(100, metric=5, alpha=1.0, random_state=0).fit(X, Y)
    alter(model, expansion=with_few_bits(model.expansion_, dict.fromkeys(PARTS, 4)))
    found, graph = _onnx_scores(model, np.float32, opset=17)
    _check_scores(found, model)
    assert set(_tensor_types(graph)) == {INT8}
    saved = 100 * (5 + 3) / 2
    assert to_onnx(model, scores=True).ByteSize() < graph.ByteSize() - saved + 150


@pytest.mark.parametrize("opset", [17, 21])
def test_onnx_with_skl2onnx(opset):
    pytest.importorskip("onnxruntime", "1.19", reason="onnxruntime has no int4")
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    register_converters()
    model = _model(dict.fromkeys(PARTS, 3))
    options = {id(model): {"zipmap": False, "raw_scores": True}}
    rows = X.astype(np.float32)
    graph = skl2onnx.to_onnx(model, rows[:1], options=options, target_opset=opset)
    _check_scores(onnx_outputs(graph, rows)["probabilities"], model)


# -- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"offset": True, "scale_type": np.float16}], ids=str)
@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize("bits", range(2, 8))
def test_json(bits, encoder, options):
    model = _model(dict.fromkeys(PARTS, bits), encoder, **options)
    text = to_json(model)
    _check_scores(json_scores(text, _rows(model)), model)
    for name in PARTS:
        numbers = getattr(model.expansion_.packed, name).unpacked().astype(np.float64)
        np.testing.assert_array_equal(np.array(json.loads(text)[name]), numbers)
