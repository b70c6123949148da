"""Commands that take a model, and the command line as a whole."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import typer
from command_line import failure, invoke, run, write_csv
from sklearn.datasets import load_digits

import nysplus
from nysplus import NystroemClassifier
from nysplus.cli import app

COMMANDS = (
    *("train", "predict", "evaluate", "explain", "inspect"),
    *("compress", "distill", "export", "serve", "compare"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    output = run(command, "--help")
    assert f"Example: nysplus {command} " in " ".join(output.replace("│", " ").split())


# -- predict ---------------------------------------------------------------------------------------


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_predictions_are_those_of_the_library(model, table, tmp_path):
    out = tmp_path / "p.csv"
    run("predict", model, table, "--proba", out=out)
    loaded, found = nysplus.load(model), rows_of(out)
    assert [row["prediction"] for row in found] == loaded.predict(str(table)).tolist()
    probabilities = [[float(row["probability_no"]), float(row["probability_yes"])] for row in found]
    np.testing.assert_allclose(probabilities, loaded.predict_proba(str(table)), atol=1e-6)


def test_columns_in_any_order_and_new_levels(model, table, tmp_path):
    rows = rows_of(table)
    other = write_csv(
        tmp_path / "other.csv",
        **{name: [row[name] for row in rows] for name in reversed([*rows[0]])},
    )
    assert run("predict", model, other) == run("predict", model, table)
    vehicles = write_csv(
        tmp_path / "new.csv",
        **{"weight": ["1.5", ""], "distance": [3, 4], "ordered": ["2025-02-03 01:00:00"] * 2},
        vehicle=["rocket", ""],
    )
    assert len(run("predict", model, vehicles).splitlines()) == 3


def test_prediction_sets_are_those_of_the_library(model, table, tmp_path):
    out, loaded = tmp_path / "sets.csv", nysplus.load(model)
    run("predict", model, table, "--proba", "--sets", "0.95", out=out)
    found, sets = rows_of(out), loaded.predict_set(str(table), 0.95)
    assert [row["set"] for row in found] == ["|".join(loaded.classes_[row]) for row in sets]
    lines = run("predict", model, table, "--json", "--sets", "0.95").splitlines()
    assert [json.loads(line)["set"] for line in lines] == [
        loaded.classes_[row].tolist() for row in sets
    ]
    for confidence in ("90", "0", "1"):
        message = failure("predict", model, table, "--sets", confidence)
        assert (
            f"--sets {float(confidence)} is not allowed. Pass a number between 0 and 1" in message
        )


def test_intervals_are_those_of_the_library(tmp_path):
    rng = np.random.RandomState(0)
    x = rng.rand(200)
    rows = write_csv(tmp_path / "rows.csv", x=x, y=x + 0.1 * rng.randn(200))
    run("train", rows, "--target", "y", "--budget", "1kB", "--no-refine", out=tmp_path / "m.nys")
    lines = run("predict", tmp_path / "m.nys", rows, "--sets", "0.8", "--json").splitlines()
    ends = [[json.loads(line)["low"], json.loads(line)["high"]] for line in lines]
    expected = nysplus.load(tmp_path / "m.nys").predict_interval(str(rows), 0.8)
    np.testing.assert_allclose(ends, expected)


def test_json_lines(model, table):
    lines = run("predict", model, table, "--json", "--proba").splitlines()
    assert set(json.loads(lines[0])) == {"prediction", "probability_no", "probability_yes"}


# -- the other commands ----------------------------------------------------------------------------


def test_inspect_adds_up(model):
    found = json.loads(run("inspect", model, "--json"))
    assert sum(part["bytes"] for part in found["parts"].values()) == found["model_bytes"]
    assert found["classes"] == ["no", "yes"]
    output = run("inspect", model)
    for words in ("vehicle (3)", "ordered", "not used", "note", "coefficients", "format"):
        assert words in output


@pytest.mark.parametrize("rows", [False, True])
def test_compress_keeps_to_the_budget(model, table, tmp_path, rows):
    given = ("--data", table, "--target", "late") if rows else ()
    out = tmp_path / "small.nys"
    run("compress", model, "--budget", "2kB", "--time", "2s", *given, out=out)
    assert nysplus.load(out).model_bytes_ <= 2048
    assert (
        json.loads(run("evaluate", out, table, "--target", "late", "--json"))["score"]["value"]
        > 0.6
    )


@pytest.mark.parametrize(("form", "ending"), [("c", ".h"), ("json", ".json"), ("onnx", ".onnx")])
def test_exports(model, tmp_path, form, ending):
    if form == "onnx":
        pytest.importorskip("onnx")
    out = tmp_path / f"late{ending}"
    first = json.loads(run("export", model, "--to", form, "--json", out=out))
    content = out.read_bytes()
    assert first["bytes"] == len(content)
    run("export", model, "--to", form, out=out)
    assert out.read_bytes() == content
    if form == "c":
        assert b"late_predict" in content


def test_export_in_integers(model, tmp_path):
    X, y = load_digits(return_X_y=True)
    file, out = tmp_path / "digits.nys", tmp_path / "digits.h"
    NystroemClassifier(budget="1kB", random_state=0).fit(X[:500], y[:500]).save(file)
    run("export", file, "--to", "c-int", out=out)
    assert "int digits_predict(const int16_t *x)" in out.read_text()
    code, _, error = invoke("export", model, "--to", "c-int", "--out", out)
    assert code
    assert "takes tables whose columns are all numbers" in error


def test_compare_lists_all_models(small, tmp_path):
    options = ("--target", "y", "--budgets", "1kB", "--time", "1s", "--folds", 2)
    figure = tmp_path / "sizes.svg"
    found = json.loads(run("compare", small, *options, "--figure", figure, "--json"))
    assert found["figure"] == str(figure)
    assert figure.read_text(encoding="utf-8").count("<svg") == 1
    names = [each["name"] for each in found["models"]]
    assert names[:5] == [
        *("nysplus 1kB", "majority class", "logistic regression", "SVC", "HistGradientBoosting")
    ]
    assert all(each["score"]["rows"] == 120 for each in found["models"])
    options = ("--target", "x", "--budgets", "1kB", "--time", "1s", "--max-rows", 60)
    code, output, errors = invoke("compare", small, *options)
    assert code == 0
    assert "60 of 120 rows are compared on" in errors
    assert "60 rows; trained on 48, judged on 12" in output
    assert "R² ± s.e." in output
    assert "ridge regression" in output


# -- the command line as a whole -------------------------------------------------------------------


def test_experiments_are_offered():
    known = set(typer.main.get_command(app).commands)
    assert known >= {*COMMANDS, "datasets", "reproduce", "bench"}
    code, _, _ = invoke("reproduce", "--dry-run", "--only", "6")
    assert code == 2
    assert "profile" in " ".join(run("reproduce", "--help").split())


def test_without_experiments_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['nysplus_experiments.cli'] = None\n"
        "from nysplus.cli import app; app(['bench', 'speed'], prog_name='nysplus')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "nysplus[experiments,plot]"' in done.stderr


def test_without_pyarrow_the_error_names_the_extra(small, model):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        f"from nysplus.cli import app; app(['train', {str(small)!r}, '--target', 'y'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert 'pip install "nysplus[table]"' in done.stderr


def test_product_commands_need_no_experiments():
    """With the libraries of the experiments impossible to import, all commands are there."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'pooch', 'matplotlib']))\n"
        "from nysplus.cli import app; app(['train', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("option", "environment"), [("--no-color", {}), (None, {"NO_COLOR": "1"})])
def test_no_colours(model, monkeypatch, option, environment):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, output, _ = invoke("inspect", model, *([option] if option else []), **environment)
    assert "\x1b[3" not in output
