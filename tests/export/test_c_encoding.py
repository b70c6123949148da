"""C headers of models that encode tables."""

from __future__ import annotations

import re
import subprocess
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from exported import FLAGS, GCC, build_c, c_scores, needs_gcc, row_type, run_c
from factories import (
    NEW_YEAR,
    alter,
    encoded_model,
    expansion,
    raw_numbers,
    table_code,
    table_schema,
)
from sampling import in_pairs, sampled

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.quantise import pack_expansion
from nysplus._rows.projected import project
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
from nysplus.export import to_c
from nysplus.export.c_inputs import constants
from nysplus.export.c_model import c_model
from nysplus.export.contents import contents, contents_of
from nysplus.export.rounding import compared_rows, exact_scores, largest_change
from nysplus.kernels import RBF, Laplacian

TRAIN, TEST = raw_numbers(400), raw_numbers(600, seed=1)
Y = (np.nan_to_num(TRAIN[:, 0]) > 30).astype(int) + (TRAIN[:, 5] == 1)
PREDICT = "float label = (float)nysplus_predict(x);\nfwrite(&label, sizeof label, 1, stdout);"


def classifier(*options, **more):
    """Return a copy of a model that is fitted once."""
    return copy(fitted(*options, **more))


@cache
def fitted(dtype=None, metric=None, centre=False):
    model = encoded_model(NystroemClassifier(15, alpha=1.0, metric=metric, random_state=0), Y)
    code, function = model.expansion_.encoder, model.expansion_
    rows = code(TRAIN)
    if centre:
        c = rows.mean(axis=0)
        Z = function.landmarks - project(c[None], function.projection)
        function = replace(function, landmarks=Z).with_center(c)
    if dtype is not None:
        c = function.center
        function = function.without_center()
        packed = pack_expansion(
            replace(function, encoder=None), dtype, rows if c is None else rows - c
        )
        function = replace(packed.with_center(c), encoder=code)
    return alter(model, expansion=function)


@needs_gcc
@in_pairs(
    ("dtype", "metric", "centre"),
    [None, "float16", "int8"],
    [None, "diagonal", 5],
    [False, True],
)
def test_models(tmp_path, dtype, metric, centre):
    model = classifier(dtype, metric, centre)
    build_c(tmp_path, to_c(model), PREDICT)
    found = run_c(tmp_path, TEST, np.float64)
    scores = model._model.decision(TEST)
    np.testing.assert_allclose(found[:, :3], scores, atol=1e-4 * np.abs(scores).max(), rtol=0)
    ordered = np.sort(scores, axis=1)
    decided = ordered[:, -1] - ordered[:, -2] > 2e-4
    assert decided.mean() > 0.95
    assert (found[:, 3] == model._model.predict(TEST))[decided].all()


@needs_gcc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_types_of_tables(tmp_path, dtype):
    model = classifier("int8", 5)
    found, scores = c_scores(tmp_path, model, TEST, dtype=dtype), model._model.decision(TEST)
    np.testing.assert_allclose(found, scores, atol=1e-4, rtol=0)
    header = to_c(model, dtype=dtype)
    assert "uint16_t" not in header
    assert "static const double nysplus_code_double" in header
    assert ("float " in header.split("#ifndef")[1]) == (dtype == "float32")


KNOTS = np.cumsum(np.random.RandomState(3).rand(12) + 0.05)
CODES = {
    "linear": [Linear(0, 3.0, 0.5, 2.0)],
    "missing": [Missing(0), Linear(0, 0.0, 1.0, 0.0)],
    "scaled flag": [Missing(0, -0.5, 2.0), OneHot(0, 2, False)],
    "power": [Power(0, 0.4, False, -2.0, 1.5, 0.9, 0.5, 3.0)],
    "log": [Power(0, 0.0, False, -2.0, 1.5, 0.9, 0.5, 3.0)],
    "signed power": [Power(0, 1.4, True, 3.0, 1.5, 0.9, 0.2, 3.0)],
    "signed power 0": [Power(0, 0.0, True, 3.0, 1.5, 0.9, 0.2, 3.0)],
    "signed power 2": [Power(0, 2.0, True, 3.0, 1.5, 0.9, 0.2, 3.0)],
    "one bin": [Ramps(0, np.array([1.0, 2.0], np.float32), 1.5, 1)],
    "one hot": [OneHot(0, 4, True)],
    "one hot without gaps": [OneHot(0, 4, False)],
    "circle": [Circle(0, 7.0, 2.0, "day"), Linear(0, 3.0, 0.5, 2.0)],
    "two columns": [Linear(1, 0.0, 1.0, 0.0), OneHot(0, 3, False)],
}
for dtype in ("float16", "float32", "float64"):
    knots = KNOTS.astype(dtype)
    CODES[f"ramps {dtype}"] = [Ramps(0, knots, 0.8, 3)]
    table = np.random.RandomState(4).randn(6, 3).astype(dtype)
    CODES[f"lookup {dtype}"] = [Lookup(0, table)]
    for other in ("float16", "float32"):
        CODES[f"curve {dtype} {other}"] = [Curve(0, knots, np.sin(knots).astype(other), 5)]


def hand_made(terms, projection=True, kernel=None):
    """Return an expansion of a code with random numbers, and raw numbers to try."""
    code, rng = TableCode(2, tuple(terms)), np.random.RandomState(5)
    numbers = [*rng.uniform(-1, 9, 40), *KNOTS, *range(-1, 8), 1e30, np.nan, -1e30]
    if any(isinstance(term, Power) for term in terms):
        numbers.pop()
    X = np.column_stack([numbers, rng.randn(len(numbers))]).astype(np.float32).astype(np.float64)
    E = code(X[:12], np.float64)
    P = rng.randn(code.n_columns, 2) if projection else None
    Z = E if P is None else E @ P
    return expansion(Z, rng, kernel or RBF(0.3), projection=P, encoder=code, n_outputs=2), X


@needs_gcc
@sampled(("name", "projection"), CODES.keys(), [False, True])
def test_terms(tmp_path, name, projection):
    function, X = hand_made(CODES[name], projection)
    if not {"ramps", "curve", "lookup", "one", "scaled"} & set(name.split()):
        X = X[~(np.abs(X[:, 0]) > 1e20)]  # which no kernel value would be left of
    X = X[~np.isnan(X[:, 0])] if name == "two columns" else X
    model = regressor(function)
    header = to_c(model)
    assert row_type(header) is np.float32
    build_c(tmp_path, header)
    np.testing.assert_allclose(run_c(tmp_path, X), function(X), atol=2e-5, rtol=1e-5)


def regressor(function):
    """Return an estimator whose fitted function is given."""
    d = function.landmarks.shape[1]
    model = NystroemRegressor(2, gamma=1.0).fit(np.eye(max(d, 2)), np.eye(max(d, 2), 2))
    return alter(model, expansion=function)


@needs_gcc
def test_gaps_are_found_with_fast_arithmetic(tmp_path):
    """Compilers may assume that there is no NaN."""
    model = classifier()
    build_c(tmp_path, to_c(model))
    fast = [*FLAGS, "-O3", "-ffast-math"]
    subprocess.run([GCC, *fast, "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    X = np.where(np.eye(7, dtype=bool), np.nan, TEST[~np.isnan(TEST).any(axis=1)][:7])
    found = run_c(tmp_path, X, np.float64)
    np.testing.assert_allclose(found, model._model.decision(X), atol=1e-4, rtol=0)


@needs_gcc
@pytest.mark.parametrize("metric", [None, 5])
@pytest.mark.parametrize("dtype", [None, "int8"])
def test_the_measured_change_is_that_of_the_compiled_header(tmp_path, dtype, metric):
    model = classifier(dtype, metric, centre=True)
    content = contents_of(model)
    written = c_model(content, "auto")
    header = to_c(model)
    build_c(tmp_path, header)
    rows = compared_rows(content)
    found = run_c(tmp_path, rows, row_type(header))
    change = largest_change(exact_scores(content, rows), found)
    assert 0.3 * written.change < change < 3.0 * written.change


def test_rows_are_double_where_float_has_too_few_digits():
    """The knots of dates in the code are 40 seconds apart, and floats 128."""
    assert row_type(to_c(classifier())) is np.float64
    function, _ = hand_made([Ramps(0, KNOTS, 0.8, 3)])
    assert row_type(to_c(regressor(function))) is np.float32
    function, _ = hand_made([Ramps(0, NEW_YEAR + KNOTS, 0.8, 3)])
    assert row_type(to_c(regressor(function))) is np.float64


def test_rows_that_scores_are_compared_at():
    """Half of them are near landmarks, and every kind of number and gap is among them."""
    content = contents_of(classifier(metric=5))
    rows = compared_rows(content)
    assert rows.shape == (512, 7)
    assert np.isnan(rows).any(axis=0).all()
    assert set(np.unique(rows[:, 5][~np.isnan(rows[:, 5])])) == {-1.0, 0.0, 1.0, 2.0}
    exact = classifier(metric=5).expansion_
    U = exact.encoder(rows, np.float64) @ exact.projection
    distance = ((U[:, None] - exact.landmarks) ** 2).sum(axis=2).min(axis=1)
    assert np.median(distance[:256]) < 0.7 * np.median(distance[256:])
    assert content.n_features == 7
    assert content.n_columns == table_code().n_columns


def test_the_bytes_of_tables_are_those_of_the_comment():
    sizes = {"double": 8, "float": 4, "uint16_t": 2, "int8_t": 1}
    for model in (classifier("int8", 5, True), classifier("float16"), classifier(None, "diagonal")):
        header = to_c(model)
        tables = re.findall(r"static const (\w+) nysplus_(?!classes)\w+\[(\d+)\]", header)
        n_bytes = sum(sizes[kind] * int(size) for kind, size in tables)
        assert f"Tables: {n_bytes} bytes" in header
        assert n_bytes <= model.model_bytes_


def test_the_centre_behind_a_map_takes_a_number_for_each_coordinate():
    header = to_c(classifier("int8", 5, centre=True))
    assert "nysplus_origin[5]" in header
    assert "nysplus_center" not in header
    assert "u = (E(x) - c) P" in header


MORE = {"log", "log1p", "expm1"}


def test_only_known_functions_are_called():
    code = re.sub(r"/\*.*?\*/", "", to_c(classifier()), flags=re.S)
    called = set(re.findall(r"\b([a-z]\w*)\(", code))
    own = {name for name in called if name.startswith("nysplus_")}
    assert called - own <= {"expf", "cosf", "sinf", "floor", "memcpy", *MORE, "for", "if", "while"}


@needs_gcc
def test_other_kernels(tmp_path):
    """A sum of absolute differences is taken of all columns of the code."""
    function, X = hand_made(table_terms_of_two_columns(), False, Laplacian(0.2))
    found = c_scores(tmp_path, regressor(function), X)
    np.testing.assert_allclose(found, function(X), atol=2e-5, rtol=1e-5)


def table_terms_of_two_columns():
    return [Ramps(0, KNOTS, 0.8, 3), OneHot(0, 4, True), Missing(1)]


# Names


def schema_of(**levels):
    """Return a schema of categories with these names and levels."""
    columns = [
        TableColumn(i, name, "category", tuple(some))
        for i, (name, some) in enumerate(levels.items())
    ]
    return TableSchema(len(columns), tuple(levels), tuple(columns))


def values_of(text):
    """Return the constants of enums, after the prefix of the model."""
    return {name: int(value) for name, value in re.findall(r"@@_(\w+) = (-?\d+),", text)}


def test_levels_have_names():
    found = values_of(constants(schema_of(city=["Rome", "Bonn"], size=["XL"])))
    assert found == {
        "X_CITY": 0,
        "X_SIZE": 1,
        "CITY_OTHER": -1,
        "CITY_ROME": 0,
        "CITY_BONN": 1,
        "SIZE_OTHER": -1,
        "SIZE_XL": 0,
    }


def test_names_are_different():
    """Of levels, of columns, and of the macros of a header."""
    schema = schema_of(
        a=["b c", "b_c", "B C", "b c 2", "other", "", "🙂", "ß"], a_b=["c", "c" * 99]
    )
    found = values_of(constants(schema))
    assert len(found) == 2 + 9 + 3
    assert list(found)[2:6] == ["A_OTHER", "A_B_C", "A_B_C_2", "A_B_C_3"]
    assert sorted(found.values()) == sorted([0, 1, *range(-1, 8), -1, 0, 1])
    assert all(len(name) < 64 for name in found)
    found = values_of(constants(schema_of(x=["features"], features=["h"])))
    assert len(found) == 2 + 2 + 2


@needs_gcc
def test_hostile_names(tmp_path):
    """Names end no comment, start none, and are no parts of templates."""
    hostile = [
        '*/ int x; /* "',
        "??/",
        "\\",
        "@@ @",
        "`float`",
        "$row",
        "\n#error",
        "/*",
        "//",
        "ü",
    ]
    model = classifier()
    columns = tuple(
        replace(c, name=f"{hostile[i]} {i}", levels=tuple(hostile) if c.levels else ())
        for i, c in enumerate(table_schema().columns)
    )
    schema = replace(table_schema(), names=None, columns=columns)
    alter(model, columns=replace(model._model.columns, schema=schema))
    header = to_c(model, tmp_path / "model.h")
    assert header.isascii()
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void)\n{\n'
        "    const double x[NYSPLUS_FEATURES] = {1, 1, 1, 1, 1, 1, 1};\n"
        "    return nysplus_predict(x);\n}\n"
    )
    subprocess.run([GCC, *FLAGS, "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], check=False)
    assert done.returncode == model._model.predict(np.ones((1, 7)))[0]


@needs_gcc
def test_a_program_that_uses_the_names(tmp_path):
    model = classifier("int8", 5)
    to_c(model, tmp_path / "model.h")
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void)\n{\n'
        "    double x[NYSPLUS_FEATURES] = {0, 0, 0, 0, 1.5, 0, 0};\n"
        "    x[NYSPLUS_X_AGE] = NAN;\n    x[NYSPLUS_X_SINCE] = 1577836900.0;\n"
        "    x[NYSPLUS_X_CITY] = NYSPLUS_CITY_OSLO;\n    x[5] = NYSPLUS_GR_SSE__IN____M_A_B_2;\n"
        "    return nysplus_predict(x);\n}\n"
    )
    subprocess.run([GCC, *FLAGS, "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], check=False)
    x = np.array([[np.nan, 0.0, 1577836900.0, 0.0, 1.5, 1.0, 2.0]])
    assert done.returncode == model._model.predict(x)[0]


def test_the_comment_lists_the_inputs():
    header = to_c(classifier())
    assert ' *     x[0]: "age", a number\n' in header
    assert ' *     x[1]: "income", a number; without gaps\n' in header
    assert ' *     x[2]: "since", a date: seconds since 1970 in UTC\n' in header
    level = "a category: a constant of the enum of its levels"
    assert f'm", {level}, -1 for any other level\n' in header
    assert f' *     x[6]: "city", {level}\n' in header
    assert "id" not in re.findall(r'"(\w+)"', header)


def test_a_code_without_a_schema_has_no_names():
    function, _ = hand_made(CODES["one hot"])
    header = to_c(regressor(function))
    assert "enum" not in header
    assert "#define NYSPLUS_FEATURES 2" in header
    assert contents(function).schema is None
