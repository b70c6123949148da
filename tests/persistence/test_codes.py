"""Models that encode images in files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from forged import JUNK, forge, loaded, set_entry, set_tensor
from safetensors import safe_open

from nysplus import NystroemClassifier, load
from nysplus.encoding import ImageEncoder
from nysplus.encoding.image_code import ImageCode
from nysplus.persistence.codes import code_in, code_out


@pytest.fixture
def path(tmp_path, rng):
    X, y = rng.rand(60, 24), rng.randint(0, 2, 60)
    model = NystroemClassifier(5, encoder=ImageEncoder((4, 3, 2), n_cosines=2), random_state=0)
    model.fit(X, y).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_code_takes_no_tensors():
    code = ImageCode((4, 3, 2), 7)
    tensors, record = code_out(code)
    assert tensors == {}
    assert code_in(json.loads(json.dumps(record)), {}) == code


def test_older_versions_refuse_codes_of_images(path):
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["nysplus"])
    assert header["format"] == 5
    assert header["expansion"]["encoder"] == {"shape": [4, 3, 2], "n_cosines": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry("expansion", "encoder", "shape", to=[4, 3]), "height, width and channels"),
        (set_entry("expansion", "encoder", "shape", to=[4, 0, 2]), "height, width and channels"),
        (set_entry("expansion", "encoder", "shape", to=[4, 3, 2.0]), "height, width and channels"),
        (set_entry("expansion", "encoder", "shape", to=[4, 4, 2]), "reads 32 columns, not 24"),
        (set_entry("expansion", "encoder", "n_cosines", to=0), "n_cosines=0 must be at least 1"),
        (set_entry("expansion", "encoder", "n_cosines", to=3), "landmarks have 8 features"),
        (set_entry("expansion", "encoder", to={"shape": [4, 3, 2]}), "no 'n_cosines'"),
        (set_tensor("encoder.float32", lambda _: np.ones(3, np.float32)), "has no tensors"),
        (set_entry("schema", to={"names": None, "columns": []}), "not increasing"),
    ],
)
def test_forged_codes(path, change, message):
    forge(path, change)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_an_encoder_of_images_has_no_schema(path):
    columns = [{"position": i, "name": f"x{i}"} for i in range(24)]
    forge(path, set_entry("schema", to={"names": None, "columns": columns}))
    with pytest.raises(ValueError, match="its encoder is one of images"):
        load(path)


@pytest.mark.parametrize("junk", JUNK, ids=repr)
@pytest.mark.parametrize("name", ["shape", "n_cosines"])
def test_junk(path, name, junk):
    forge(path, set_entry("expansion", "encoder", name, to=junk))
    model = loaded(path)
    assert model is None or model.expansion_.encoder.n_columns == 8
