"""``nysplus explain``."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from command_line import failure, run, write_csv

import nysplus
from nysplus import NystroemClassifier, NystroemRegressor
from nysplus.explain import shapley_values


def test_values_are_those_of_the_library(model, table):
    found = json.loads(run("explain", model, table, "--row", 17, "--json"))
    loaded = nysplus.load(model)
    scores = loaded.decision_function(str(table))
    assert found["score"] == pytest.approx(scores[16], abs=1e-4)
    total = found["base"] + sum(column["value"] for column in found["columns"])
    assert total == pytest.approx(found["score"])
    assert {column["name"] for column in found["columns"]} == {
        *("weight", "distance", "vehicle", "ordered")
    }
    assert found["prediction"] in ("yes", "no")
    # the command has kept the similarity of the rows of a file, of which the fit keeps none
    novelty = loaded.novelty(str(table))
    assert found["novelty"] == pytest.approx(novelty[16])
    assert 0.3 < novelty.mean() < 0.7
    assert "values of the score of yes" in run("explain", model, table, "--row", 17)
    sizes = [abs(column["value"]) for column in found["columns"]]
    assert sizes == sorted(sizes, reverse=True)


def test_few_rows_are_all_the_background(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.randn(60, 3)
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    model = NystroemClassifier(10, random_state=0).fit(X, y)
    model.save(tmp_path / "m.nys")
    np.savez(tmp_path / "rows.npz", X=X)
    arguments = ("explain", tmp_path / "m.nys", tmp_path / "rows.npz", "--row", 2, "--json")
    expected = shapley_values(model, X[1:2], X)
    for name in (None, "1"):
        found = json.loads(run(*arguments, *(() if name is None else ("--class", name))))
        own = expected.output(str(model.predict(X[1:2])[0]) if name is None else name)
        values = {column["name"]: column["value"] for column in found["columns"]}
        np.testing.assert_allclose([values[f"column {i}"] for i in range(3)], own.values[0])
    assert "--class 7 is not known" in failure(*arguments, "--class", 7)
    assert "--row 61 is not in" in failure(*arguments[:4], 61)


def test_a_row_unlike_the_training_rows(tmp_path):
    X = np.random.RandomState(0).randn(60, 3)
    model = NystroemRegressor(10, random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "m.nys")
    rows = write_csv(tmp_path / "rows.csv", **dict(zip("abc", (50 * X[:2]).T, strict=True)))
    found = json.loads(run("explain", tmp_path / "m.nys", rows, "--row", 1, "--json"))
    assert found["novelty"] == 1.0
    assert "This row is unlike the training rows (more unusual than all" in found["notes"][0]


def test_a_background_of_its_own_and_errors_of_samples(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.randn(60, 3)
    model = NystroemRegressor(10, kernel="matern", random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "m.nys")
    names = dict(zip("abc", X.T, strict=True))
    rows = write_csv(tmp_path / "rows.csv", **names)
    zeros = write_csv(tmp_path / "zeros.csv", **{name: [0.0] for name in names})
    arguments = ("explain", tmp_path / "m.nys", rows, "--row", 1)
    found = json.loads(run(*arguments, "--background", zeros, "--json"))
    assert found["base"] == pytest.approx(float(model.predict(np.zeros((1, 3)))[0]))
    assert not found["exact"]
    assert "standard_error" in found["columns"][0]
    text = run(*arguments)
    assert "mean score of 60 typical rows" in text
    assert "±" in text
    assert "one score only" in failure(*arguments, "--class", "a")
