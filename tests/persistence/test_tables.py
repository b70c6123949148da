"""Files of models that encode tables."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from factories import alter, encoded_model, raw_numbers, table_code, table_schema
from forged import JUNK, forge, loaded, places, set_entry, set_tensor
from safetensors import safe_open
from sampling import sampled
from sklearn.base import BaseEstimator

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.budget import STORAGE
from nysplus._bytes.quantise import pack_expansion
from nysplus._fit.model import Columns
from nysplus.encoding.code import Linear, TableCode
from nysplus.encoding.schema import TableColumn, TableSchema
from nysplus.persistence import load, parameters, save
from nysplus.persistence.parameters import value_in, value_out
from nysplus.persistence.tables import (
    DEFAULTS,
    FLAGS,
    schema_in,
    schema_out,
    table_code_in,
    table_code_out,
)

RAW = raw_numbers()
Y = np.random.RandomState(5).randint(0, 3, len(RAW))


@cache
def _fitted(estimator, **params):
    model = estimator(12, alpha=1.0, random_state=0, **params)
    return encoded_model(model, Y if estimator is NystroemClassifier else np.sin(Y))


def _model(dtype=None, estimator=NystroemClassifier, **params):
    """Return a model that a test may alter."""
    model = copy(_fitted(estimator, **params))
    if dtype is not None:
        code = model.expansion_.encoder
        packed = pack_expansion(replace(model.expansion_, encoder=None), dtype, code(RAW))
        alter(model, expansion=replace(packed, encoder=code))
    return model


def _header(path):
    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()["nysplus"]), set(file.keys())


def _same_terms(one, other):
    assert [type(term) for term in one.terms] == [type(term) for term in other.terms]
    for a, b in zip(one.terms, other.terms, strict=True):
        for name, value in vars(a).items():
            assert type(value) is type(vars(b)[name])
            np.testing.assert_array_equal(value, vars(b)[name])
            if isinstance(value, np.ndarray):
                assert value.dtype == vars(b)[name].dtype


@sampled(("dtype", "metric"), [None, *STORAGE], [None, "diagonal", 4])
def test_models_come_back_bit_for_bit(tmp_path, dtype, metric):
    model, path = _model(dtype, metric=metric), tmp_path / "model"
    save(model, path)
    again = load(path)
    _same_terms(again.expansion_.encoder, model.expansion_.encoder)
    assert again._model.columns.schema == model._model.columns.schema
    assert again.n_features_in_ == 8
    assert again.feature_names_in_.tolist() == list(table_schema().names)
    assert again.model_bytes_ == model.model_bytes_
    np.testing.assert_array_equal(again._model.decision(RAW), model._model.decision(RAW))
    np.testing.assert_array_equal(again._model.predict(RAW), model._model.predict(RAW))


def test_a_centre(tmp_path):
    model = _model("int8", NystroemRegressor)
    c = np.linspace(0.0, 1.0, model.expansion_.encoder.n_columns).astype(np.float32)
    alter(model, expansion=model.expansion_.with_center(c))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again._model.predict(RAW), model._model.predict(RAW))


def test_a_table_without_names(tmp_path):
    """Columns of arrays are known by their positions."""
    columns = tuple(
        replace(column, name=f"column {column.position}") for column in table_schema().columns
    )
    schema = replace(table_schema(), names=None, columns=columns)
    model = alter(_model(), columns=Columns(8, schema=schema))
    save(model, tmp_path / "model")
    assert load(tmp_path / "model")._model.columns.schema == schema


def test_a_code_without_a_schema(tmp_path):
    model = alter(_model(), columns=Columns(7))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again._model.columns.schema is None
    np.testing.assert_array_equal(again._model.predict(RAW), model._model.predict(RAW))


def test_older_versions_refuse_an_encoder_and_read_the_rest(tmp_path):
    save(_model(), tmp_path / "encoded")
    header, tensors = _header(tmp_path / "encoded")
    assert header["format"] == 3
    assert {name for name in tensors if name.startswith("encoder")} == {
        "encoder.float16",
        "encoder.float32",
        "encoder.float64",
    }
    save(NystroemRegressor(5, random_state=0).fit(table_code()(RAW)[:, :7], Y), tmp_path / "plain")
    header, _ = _header(tmp_path / "plain")
    assert header["format"] == 1
    assert "schema" not in header
    assert "encoder" not in header["expansion"]


def test_every_entry_of_a_column_is_kept():
    """Each of them is other than its default, and a new one would be missed."""
    column = TableColumn(2, "größe", "category", ("1", "2"), *[True] * len(FLAGS))
    assert {field.name for field in fields(column)} == {"position", "name", *DEFAULTS}
    for names in (None, ("a", "b", "größe")):
        schema = TableSchema(3, names, (column,))
        assert schema_in(json.loads(json.dumps(schema_out(schema))), 3) == schema


def test_numbers_of_numpy_are_numbers(tmp_path):
    code = TableCode(1, (Linear(np.int64(0), np.float64(1.0), np.float32(2.0), 3.0),))
    tensors, record = table_code_out(code)
    again = table_code_in(json.loads(json.dumps(record)), tensors)
    assert vars(again.terms[0]) == {"column": 0, "offset": 1.0, "scale": 2.0, "fill": 3.0}


class _Encoder(BaseEstimator):
    def __init__(self, numbers="auto", categories=(), n_bins=16):
        self.numbers = numbers
        self.categories = categories
        self.n_bins = n_bins


def test_encoders_are_parameters(monkeypatch):
    value = _Encoder("standard", categories=["zip", 3], n_bins=8)
    with pytest.raises(ValueError, match="cannot be saved"):
        value_out(value, "encoder")
    monkeypatch.setitem(parameters.OBJECTS, "_Encoder", _Encoder)
    again = value_in(json.loads(json.dumps(value_out(value, "encoder"))))
    assert type(again) is _Encoder
    assert again.get_params() == value.get_params()


# Forged files


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "model"
    save(_model("int8", metric=3), path)
    return path.read_bytes()


@pytest.fixture
def written(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    return path


def _term(position, name, to):
    return set_entry("expansion", "encoder", "terms", position, name, to=to)


def _column(position, name, to):
    return set_entry("schema", "columns", position, name, to=to)


def _array(dtype, *shape):
    return [dtype, *shape]


def _number(dtype, position, to):
    """Change one number of an encoder's tensor."""

    def made(tensor):
        tensor[position] = to
        return tensor

    return set_tensor(f"encoder.{dtype}", made)


def _drop_encoder(tensors, header):
    del header["expansion"]["encoder"]
    for dtype in ("float16", "float32", "float64"):
        del tensors[f"encoder.{dtype}"]


def _drop_schema(tensors, header):
    del header["schema"]


NAN, INF = float("nan"), float("inf")
FORGED = {
    "kind": (_term(0, "kind", "Popen"), "term 'Popen' is not known"),
    "another kind": (_term(0, "kind", "OneHot"), "no 'n_levels'"),
    "no terms": (set_entry("expansion", "encoder", "terms", to=[]), "no terms"),
    "not a list": (set_entry("expansion", "encoder", "terms", to={}), "terms={}"),
    "encoder": (set_entry("expansion", "encoder", to=None), "encoder=None"),
    "column": (_term(0, "column", 7), "column 7 of 7"),
    "negative column": (_term(0, "column", -1), "column -1 of 7"),
    "true column": (_term(0, "column", True), "column=True"),
    "inputs": (set_entry("expansion", "encoder", "n_inputs", to=9), "reads 9 columns, not 7"),
    "huge inputs": (set_entry("expansion", "encoder", "n_inputs", to=10**15), "not 7"),
    "height": (_term(0, "height", NAN), "height of Ramps"),
    "gap": (_term(0, "gap", 9), "gap=9 is none of 9 knots"),
    "negative gap": (_term(0, "gap", -1), "gap=-1"),
    "offset": (_term(7, "offset", INF), "offset of Linear"),
    "scale": (_term(7, "scale", "1"), "scale='1'"),
    "large number": (_term(7, "scale", 10**400), "too large"),
    "period": (_term(4, "period", 0.0), "must be positive"),
    "period nan": (_term(4, "period", NAN), "period of Circle"),
    "name": (_term(4, "name", 3), "name=3"),
    "levels": (_term(11, "n_levels", 5), "its projection has the shape"),
    "level bomb": (_term(11, "n_levels", 10**12), "its projection has the shape"),
    "negative levels": (_term(11, "n_levels", -1), "n_levels=-1"),
    "gaps": (_term(11, "gaps", 1), "gaps=1"),
    "few columns": (_term(11, "gaps", False), "its projection has the shape"),
    "knot shape": (_term(0, "knots", _array("float16", 3, 3)), r"knots of the shape \(3, 3\)"),
    "one knot": (_term(0, "knots", _array("float16", 1)), "too few"),
    "no knots": (_term(0, "knots", _array("float16", 0)), "no type and shape"),
    "knots bomb": (_term(0, "knots", _array("float16", 10**12)), "fewer numbers of 'float16'"),
    "knot type": (_term(0, "knots", _array("int8", 9)), "fewer numbers of 'int8'"),
    "fewer knots": (_term(0, "knots", _array("float16", 8)), "is not possible|not increasing|more"),
    "three axes": (_term(0, "knots", _array("float16", 3, 3, 1)), "no type and shape"),
    "no type": (_term(0, "knots", []), "no type and shape"),
    "knot object": (_term(0, "knots", {}), "knots={}"),
    "values": (_term(5, "values", _array("float16", 4)), "do not fit 9 knots"),
    "flat table": (_term(12, "table", _array("float32", 5)), r"table of the shape \(5,\)"),
    "small table": (_term(12, "table", _array("float32", 1, 5)), r"table of the shape \(1, 5\)"),
    "large table": (_term(14, "table", _array("float16", 10, 1)), "its projection has"),
    "knot nan": (_number("float16", 1, NAN), "knots of an encoder has numbers that are not"),
    "knot order": (_number("float32", 1, -5.0), "not increasing"),
    "same knots": (_number("float64", 1, table_code().terms[3].knots[0]), "not increasing"),
    "knots too near": (
        set_tensor("encoder.float64", lambda a: np.append([0.0, 5e-324], a[2:])),
        "not increasing",
    ),
    "curve nan": (_number("float16", 10, NAN), "values of a curve"),
    "table inf": (_number("float32", -1, INF), "a table of an encoder"),
    "more numbers": (set_tensor("encoder.float16", lambda a: np.append(a, a[:1])), "more numbers"),
    "fewer numbers": (set_tensor("encoder.float16", lambda a: a[:-1].copy()), "fewer numbers"),
    "tensor type": (set_tensor("encoder.float16", lambda a: a.astype(np.int8)), "no list"),
    "tensor axes": (set_tensor("encoder.float16", lambda a: a[None].copy()), "no list"),
    "another tensor": (set_tensor("encoder.int8", lambda _: np.ones(3, np.int8)), "no list"),
    "no encoder": (_drop_encoder, "its projection has the shape"),
    "no schema": (_drop_schema, "reads 7 columns, not 8"),
    "csr": (set_entry("expansion", "csr", to={"shape": [12, 4], "array": False}), "CSR landmarks"),
    "schema": (set_entry("schema", to=[]), r"schema=\[\]"),
    "names": (set_entry("schema", "names", to=["a"]), "names must be 8 different texts"),
    "same names": (set_entry("schema", "names", to=["a"] * 8), "different texts"),
    "number names": (set_entry("schema", "names", to=list(range(8))), "different texts"),
    "no columns": (set_entry("schema", "columns", to=[]), "not increasing"),
    "position": (_column(0, "position", 8), "position=8 of 8"),
    "negative position": (_column(0, "position", -8), "position=-8"),
    "position twice": (_column(1, "position", 0), "not increasing"),
    "no names": (set_entry("schema", "names", to=None), "no 'name'"),
    "column kind": (_column(0, "kind", "text"), "kind='text'"),
    "level twice": (_column(6, "levels", ["Rome"] * 3), "must be different texts"),
    "level numbers": (_column(6, "levels", [1, 2, 3]), "must be different texts"),
    "fewer levels": (_column(6, "levels", ["Rome"]), "3 levels of a column that has 1"),
    "levels of numbers": (_column(0, "levels", ["Rome"]), "has no levels"),
    "exponent": (_term(8, "exponent", INF), "exponent of Power"),
    "signed": (_term(8, "signed", 1), "signed=1"),
    "missing": (_term(10, "missing", NAN), "missing of Missing"),
    "numbered": (_column(6, "numbered", 1), "numbered=1"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files(written, name):
    change, message = FORGED[name]
    forge(written, change)
    with pytest.raises(ValueError, match=message) as caught:
        load(written)
    assert str(written) in str(caught.value)


def test_positions_without_names_are_different(written):
    def change(tensors, header):
        header["schema"]["names"] = None
        for column in header["schema"]["columns"]:
            column["name"] = "a"
        header["schema"]["columns"][1]["position"] = 0

    forge(written, change)
    with pytest.raises(ValueError, match="not increasing"):
        load(written)


def test_a_schema_without_an_encoder_is_refused(tmp_path):
    save(NystroemRegressor(5, random_state=0).fit(table_code()(RAW)[:, :7], Y), tmp_path / "model")
    columns = tuple(
        replace(column, position=position) for position, column in enumerate(table_schema().columns)
    )
    schema = schema_out(replace(table_schema(), n_features=7, names=None, columns=columns))
    assert len(schema_in(schema, 7)) == 7
    forge(tmp_path / "model", set_entry("schema", to=schema))
    with pytest.raises(ValueError, match="a schema, but no encoder"):
        load(tmp_path / "model")


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_junk_at_every_place_of_code_and_schema(written, content):
    header, _ = _header(written)
    parts = {("expansion", "encoder"): header["expansion"]["encoder"]}
    parts["schema",] = header["schema"]
    for keys, part in parts.items():
        for number, more in enumerate(places(part)):
            for junk in JUNK[number % 3 :: 3]:
                written.write_bytes(content)
                forge(written, set_entry(*keys, *more, to=junk))
                again = loaded(written)
                if again is not None:
                    assert again._model.decision(RAW).shape == (len(RAW), 3)
