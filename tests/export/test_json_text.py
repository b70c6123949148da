"""JSON of models that encode tables."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from exported import json_scores
from factories import alter, encoded_model, raw_numbers, table_code, table_schema

from nysplus import NystroemClassifier
from nysplus._bytes.quantise import pack_expansion
from nysplus._fit.model import Columns
from nysplus.export import to_json
from nysplus.export.json_text import TERMS

RAW, TEST = raw_numbers(), raw_numbers(80, seed=1)
Y = (np.nan_to_num(RAW[:, 0]) > 30).astype(int)


def classifier(metric=None, dtype=np.float64):
    model = NystroemClassifier(10, alpha=1.0, metric=metric, random_state=0)
    return encoded_model(model, Y, dtype)


@pytest.mark.parametrize("metric", [None, "diagonal", 3])
@pytest.mark.parametrize("centre", [False, True])
def test_it_has_all_that_is_needed(metric, centre):
    model = classifier(metric)
    if centre:
        c = np.linspace(-0.2, 0.2, table_code().n_columns)
        alter(model, expansion=model.expansion_.with_center(c))
    text = to_json(model)
    np.testing.assert_allclose(
        json_scores(text, TEST)[:, 0], model._model.decision(TEST), rtol=1e-7
    )
    content = json.loads(text)
    assert content["format_version"] == 3
    assert content["formula"] == f"f(x) = k({'(E(x) - c)' if centre else 'E(x)'} P, Z) A + b"
    assert ("center" in content) == centre


def test_packed_models():
    model = classifier(3, np.float32)
    code = model.expansion_.encoder
    packed = pack_expansion(replace(model.expansion_, encoder=None), "int8", code(RAW))
    alter(model, expansion=replace(packed, encoder=code))
    scores = model._model.decision(TEST)
    np.testing.assert_allclose(json_scores(to_json(model), TEST)[:, 0], scores, atol=1e-4)


def test_the_inputs_and_their_levels():
    content = json.loads(to_json(classifier()))
    columns = table_schema().columns
    assert content["n_features"] == 7
    assert content["feature_names"] == [column.name for column in columns]
    assert content["inputs"][6] == {
        "name": "city",
        "kind": "category",
        "levels": ["Rome", "Bonn", "Oslo"],
    }
    assert [record["kind"] for record in content["inputs"]] == [column.kind for column in columns]


def test_every_kind_of_term_has_a_formula():
    encoder = json.loads(to_json(classifier()))["encoder"]
    kinds = {term["kind"] for term in encoder["terms"]}
    assert kinds == set(encoder["formulas"]) == {name for name, _ in TERMS.values()}
    for term in encoder["terms"]:
        for name in set(term) - {"kind", "column", "name"}:
            assert name in encoder["formulas"][term["kind"]]


def test_a_code_without_a_schema():
    model = alter(classifier(), columns=Columns(7))
    for source in (model, model.expansion_):
        content = json.loads(to_json(source))
        assert content["inputs"] is None
        assert content["feature_names"] is None
        assert content["n_features"] == 7
