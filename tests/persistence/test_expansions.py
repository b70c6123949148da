"""Files of models whose numbers have few bits."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import fields, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from factories import alter, encoded_model, raw_numbers, table, with_few_bits
from forged import JUNK, forge, loaded, places, set_entry, set_tensor
from safetensors import safe_open
from sampling import sampled

from nysplus import NystroemClassifier, NystroemRegressor
from nysplus._bytes.bit_stream import pack_bits
from nysplus._bytes.quantise import pack_expansion
from nysplus.expansion import KernelExpansion, PackedExpansion
from nysplus.persistence import load, save

ROWS = table(200)
RAW = raw_numbers(200)
PARTS = ("landmarks", "dual_coef", "projection", "linear")


@cache
def _fitted(encoder):
    model, y = NystroemClassifier(9, alpha=1.0, metric=3, random_state=0), ROWS.targets["several"]
    return encoded_model(model, y) if encoder else model.fit(ROWS.X, y)


def _model(bits, encoder=False, **options):
    """Return a classifier with a map and a linear term, and some parts in few bits."""
    model = copy(_fitted(encoder))
    d = len(model.expansion_.projection)
    expansion = replace(model.expansion_, linear=np.random.RandomState(0).randn(d, 3))
    return alter(model, expansion=with_few_bits(expansion, bits, **options))


def _header(path):
    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()["nysplus"])


def _check_round_trip(model, path, rows):
    save(model, path)
    again = load(path)
    for field in fields(PackedExpansion):
        one, other = (getattr(each.expansion_.packed, field.name) for each in (model, again))
        assert (one is None) == (other is None)
        if one is not None:
            assert one.bits == other.bits
            for name in ("values", "scale", "offset"):
                array, found = getattr(one, name), getattr(other, name)
                assert (array is None) == (found is None)
                if array is not None:
                    assert array.dtype == found.dtype
                    np.testing.assert_array_equal(array, found)
                    assert array.flags.f_contiguous == found.flags.f_contiguous
    np.testing.assert_array_equal(again._model.decision(rows), model._model.decision(rows))
    assert again.model_bytes_ == model.model_bytes_
    return again


@sampled(("bits", "part", "encoder"), range(2, 8), PARTS, [False, True])
def test_parts_come_back(tmp_path, bits, part, encoder):
    model = _model({part: bits}, encoder)
    _check_round_trip(model, tmp_path / "model", RAW if encoder else ROWS.X)
    header = _header(tmp_path / "model")
    assert header["format"] == 4
    assert list(header["expansion"]["few_bits"]) == [part]


@pytest.mark.parametrize(("offset", "scale_type"), product([False, True], ["float16", "float32"]))
def test_every_part_has_its_own_number_of_bits(tmp_path, offset, scale_type):
    bits = dict(zip(PARTS, (4, 7, 2, 5), strict=True))
    model = _model(bits, offset=offset, scale_type=scale_type)
    _check_round_trip(model, tmp_path / "model", ROWS.X)
    length = int.from_bytes((tmp_path / "model").read_bytes()[:8], "little")
    assert (tmp_path / "model").stat().st_size == 8 + length + model.model_bytes_


def test_memory_order_comes_back(tmp_path):
    model = _model({"projection": 4})
    stored = model.expansion_.packed
    P = replace(stored.projection, values=np.asfortranarray(stored.projection.values))
    packed = replace(stored, projection=P)
    expansion = KernelExpansion.unpacked(model.expansion_.kernel, packed)
    _check_round_trip(alter(model, expansion=expansion), tmp_path / "model", ROWS.X)


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({}, 1),
        ({"offset": True}, 4),
        ({"scale_type": np.float16}, 4),
    ],
    ids=str,
)
def test_formats_of_int8(tmp_path, options, number):
    model = _model({"landmarks": 8, "dual_coef": 8}, **options)
    _check_round_trip(model, tmp_path / "model", ROWS.X)
    header = _header(tmp_path / "model")
    assert header["format"] == number
    assert "few_bits" not in header["expansion"]


def test_a_diagonal_map_has_one_scale(tmp_path):
    model = NystroemRegressor(9, metric="diagonal", random_state=0)
    model.fit(ROWS.X, ROWS.targets["values"])
    for options in ({}, {"offset": True}):
        alter(model, expansion=with_few_bits(model.expansion_, {"projection": 6}, **options))
        _check_round_trip(model, tmp_path / "model", ROWS.X)


def test_files_of_int8_have_no_entry_of_few_bits(tmp_path):
    """Earlier versions read them."""
    model = NystroemRegressor(9, random_state=0).fit(ROWS.X, ROWS.targets["values"])
    alter(model, expansion=pack_expansion(model.expansion_, "int8", ROWS.X))
    save(model, tmp_path / "model")
    header = _header(tmp_path / "model")
    assert header["format"] == 1
    assert set(header["expansion"]) == {"kernel", "stored", "csr", "fortran"}


# Forged files


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("bits") / "model"
    save(_model(dict(zip(PARTS, (4, 3, 2, 5), strict=True)), offset=True), path)
    return path.read_bytes()


@pytest.fixture
def written(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    return path


def _record(name, key, to):
    return set_entry("expansion", "few_bits", name, key, to=to)


def _byte(name, position, to):
    """Change one byte of a stream."""

    def made(stream):
        stream[position] = to
        return stream

    return set_tensor(name, made)


def _drop(name):
    def change(tensors, header):
        del tensors[name]

    return change


FORGED = {
    "one bit": (_record("landmarks", "bits", 1), "bits=1 of 'landmarks' must be 2 to 7"),
    "eight bits": (_record("landmarks", "bits", 8), "must be 2 to 7"),
    "no bits": (_record("landmarks", "bits", 0), "must be 2 to 7"),
    "negative bits": (_record("landmarks", "bits", -4), "must be 2 to 7"),
    "half a bit": (_record("landmarks", "bits", 4.0), "bits=4.0"),
    "true": (_record("landmarks", "bits", True), "bits=True"),
    "more bits": (_record("landmarks", "bits", 5), "must be 17 uint8"),
    "fewer bits": (_record("landmarks", "bits", 3), "must be 11 uint8"),
    "rows": (_record("landmarks", "shape", [10, 3]), "must be 15 uint8"),
    "rows of the same bytes": (_record("linear", "shape", [3, 2]), "must be 4 uint8"),
    "bomb": (_record("landmarks", "shape", [10**12, 3]), "must be 1500000000000 uint8"),
    "large bomb": (_record("landmarks", "shape", [2**80, 2**80]), "uint8"),
    "nothing of much": (_record("landmarks", "shape", [0, 2**80]), "must be 0 uint8"),
    "negative shape": (_record("landmarks", "shape", [-9, -3]), "one or two sizes"),
    "float shape": (_record("landmarks", "shape", [9.0, 3]), "one or two sizes"),
    "no shape": (_record("landmarks", "shape", []), "one or two sizes"),
    "three axes": (_record("landmarks", "shape", [9, 3, 1]), "one or two sizes"),
    "shape of other parts": (_record("landmarks", "shape", [3, 9]), "for 3 landmarks"),
    "flat": (_record("landmarks", "shape", [27]), "its landmarks have the shape"),
    "text shape": (_record("landmarks", "shape", "9"), "shape='9'"),
    "record": (set_entry("expansion", "few_bits", "landmarks", to=4), "no 'bits'"),
    "few bits": (set_entry("expansion", "few_bits", to=[]), r"few_bits=\[\]"),
    "no record": (set_entry("expansion", "few_bits", to={}), "shape"),
    "another part": (
        set_entry("expansion", "few_bits", "intercept", to={"bits": 4, "shape": [3]}),
        "few_bits of 'intercept' is of no tensor with a scale",
    ),
    "unknown part": (set_entry("expansion", "few_bits", "x", to={}), "few_bits of 'x'"),
    "no scale": (_drop("landmarks.scale"), "its tensors are"),
    "not stored": (set_entry("expansion", "stored", to=False), "its tensors are"),
    "longer": (set_tensor("landmarks", lambda s: np.append(s, s[:1])), "must be 14 uint8"),
    "shorter": (set_tensor("landmarks", lambda s: s[:-1].copy()), "must be 14 uint8"),
    "two axes": (set_tensor("landmarks", lambda s: s.reshape(7, 2)), "must be 14 uint8"),
    "type": (set_tensor("landmarks", lambda s: s.view(np.int8)), "must be 14 uint8"),
    "code": (_byte("landmarks", 3, 0xF0), "a code that integers of 4 bits do not have"),
    "last bits": (_byte("landmarks", -1, 0x17), "bits that belong to no integer"),
    "offset nan": (set_tensor("landmarks.offset", lambda o: o * np.nan), "not finite"),
    "offset inf": (set_tensor("dual_coef.offset", lambda o: o + np.inf), "not finite"),
    "offset type": (
        set_tensor("linear.offset", lambda o: o.astype(np.float64)),
        "offset of 'linear' must be a float32 or float16 per column",
    ),
    "offset shape": (set_tensor("linear.offset", lambda o: o[:-1].copy()), "per column"),
    "large sum": (
        lambda tensors, header: tensors.update(
            {"linear.offset": np.full(3, 3e38, np.float32), "linear.scale": np.full(3, 2e37, "f4")}
        ),
        "scale or offset of 'linear' is too large",
    ),
    "negative scale": (set_tensor("linear.scale", lambda s: -s), "must not be negative"),
    "scale type": (set_tensor("linear.scale", lambda s: s.astype(np.int8)), "per column"),
    "offset alone": (
        set_tensor("intercept.offset", lambda _: np.ones(3, np.float32)),
        "its tensors are",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files(written, name):
    change, message = FORGED[name]
    forge(written, change)
    with pytest.raises(ValueError, match=message) as caught:
        load(written)
    assert str(written) in str(caught.value)


def test_junk_at_every_place_of_the_layout(written, content):
    layout = _header(written)["expansion"]["few_bits"]
    for keys in places(layout):
        for junk in JUNK:
            written.write_bytes(content)
            forge(written, set_entry("expansion", "few_bits", *keys, to=junk))
            assert loaded(written) is None


@pytest.mark.parametrize("name", ["landmarks", "landmarks.scale", "landmarks.offset"])
def test_junk_in_every_tensor(written, content, name):
    for shape in [(), (0,), (3,), (14,), (9, 3)]:
        for dtype in ["bool", "int8", "uint8", "uint64", "float16", "float32", "float64"]:
            written.write_bytes(content)
            junk = np.ones(shape, dtype)
            forge(written, set_tensor(name, lambda _, junk=junk: junk))
            again = loaded(written)
            if again is not None:
                assert np.isfinite(again.predict_proba(ROWS.X)).all()


def test_every_stream_that_loads_is_written_again(written, content):
    """A file has one form: no two streams give the same integers."""
    rng = np.random.RandomState(0)
    for _ in range(20):
        values = rng.randint(-7, 8, (9, 3)).astype(np.int8)
        written.write_bytes(content)
        forge(written, set_tensor("landmarks", lambda _, v=values: pack_bits(v, 4)))
        again = load(written)
        np.testing.assert_array_equal(again.expansion_.packed.landmarks.values, values)
        before = written.read_bytes()
        save(again, written)
        forge(written, lambda tensors, header: None)
        assert written.read_bytes() == before
