"""``nysplus distill``: predictions in a file teach a model."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from command_line import failure, run, write_csv

import nysplus

FAST = ("--time", "2s", "--budget", "1kB")


@pytest.fixture
def scores(small, tmp_path):
    """Probabilities of the classes of `small`, nearly certain, as `nysplus predict` names them."""
    with small.open(newline="", encoding="utf-8") as file:
        y = [row["y"] for row in csv.DictReader(file)]
    yes = np.where(np.array(y) == "yes", 0.95, 0.05)
    columns = {"prediction": y, "probability_no": 1 - yes, "probability_yes": yes}
    return write_csv(tmp_path / "scores.csv", **columns)


def test_a_model_of_the_predictions_is_written(small, scores, tmp_path):
    out = tmp_path / "small.nys"
    printed = run(
        *("distill", small, "--scores", scores, "--target", "y", "--json", *FAST), out=out
    )
    result = json.loads(printed)
    assert result["kept"] in ("student", "model fitted to y")
    model = nysplus.load(out)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.model_bytes_ <= 1024
    assert len(run("predict", out, small).splitlines()) == 121


def test_values(tmp_path):
    rng = np.random.RandomState(0)
    x = rng.uniform(-2.0, 2.0, 120).round(4)
    data = write_csv(tmp_path / "data.csv", x=x, z=rng.rand(120).round(4), y=np.sin(x).round(4))
    scores = write_csv(tmp_path / "scores.csv", prediction_of_y=np.sin(x).round(4))
    out = tmp_path / "small.nys"
    printed = run("distill", data, "--scores", scores, "--target", "y", *FAST, out=out)
    assert "kept" in printed
    assert type(nysplus.load(out)).__name__ == "NystroemRegressor"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"no": [0.5], "yes": [0.5]}, "has 1 rows, and the data have 120"),
        ({"no": [0.5] * 120, "maybe": [0.5] * 120}, "no columns for the classes yes"),
        ({"no": [0.7] * 120, "yes": [0.7] * 120}, "sum of 1"),
        ({"value": [0.7] * 120}, "contains no numbers"),
        ({"prediction": ["no"] * 120}, "no column beside 'prediction'"),
    ],
    ids=["rows", "classes", "sums", "values", "predictions"],
)
def test_bad_predictions(columns, text, small, tmp_path):
    scores = write_csv(tmp_path / "scores.csv", **columns)
    out = tmp_path / "small.nys"
    arguments = ("distill", small, "--scores", scores, "--target", "y", "--out", out)
    assert text in failure(*arguments)
    assert not out.exists()


def test_predictions_need_names(small, write_as, tmp_path):
    path, _ = write_as(".npz")
    assert "no named columns" in failure("distill", small, "--scores", path, "--target", "y")
