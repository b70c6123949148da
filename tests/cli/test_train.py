"""`nysplus train`, and what can be done with its file."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from command_line import invoke, run, write_csv

import nysplus


def test_a_table_becomes_a_judged_model(table, tmp_path):
    model = tmp_path / "m.nys"
    output = run("train", table, "--target", "late", "--budget", "2kB", "--time", "2s", out=model)
    assert "late has 2 classes, because it contains texts" in output
    for name in ("on 120 held-out rows", "majority class", "logistic regression", "chosen"):
        assert name in output
    assert "95 % interval" in output
    assert nysplus.load(model).model_bytes_ <= 2048
    assert set(nysplus.load(model).classes_) == {"yes", "no"}


def test_json_has_everything(table, tmp_path):
    found = json.loads(
        run(
            "train",
            table,
            "--target",
            "late",
            "--size",
            20,
            "--no-refine",
            "--json",
            out=tmp_path / "m",
        )
    )
    assert found["task"] == "classify"
    assert found["score"]["interval_95"][0] < found["score"]["value"]
    assert found["score"]["value"] > found["majority_class"]["value"]
    assert found["model"]["landmarks"] == 20
    assert found["model"]["file_bytes"] == (tmp_path / "m").stat().st_size
    assert {"name": "vehicle", "kind": "category"}.items() <= found["model"]["columns"][2].items()
    assert any("note" in note and "no entries" in note for note in found["notes"])


@pytest.mark.parametrize("options", [["--no-refine", "--size", "10"], ["--budget", "512B"]])
def test_the_same_data_and_seed_give_the_same_file(small, tmp_path, options):
    files = [tmp_path / "a.nys", tmp_path / "b.nys"]
    for file in files:
        run("train", small, "--target", "y", *options, out=file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_another_seed_gives_another_file(small, tmp_path):
    files = [tmp_path / "a.nys", tmp_path / "b.nys"]
    for seed, file in enumerate(files):
        options = ("--target", "y", "--seed", seed, "--no-refine", "--size", 10)
        run("train", small, *options, out=file)
    assert files[0].read_bytes() != files[1].read_bytes()


def test_values_are_judged_by_r2(small, tmp_path):
    arguments = ("train", small, "--target", "x", "--no-refine", "--size", 20)
    output = run(*arguments, out=tmp_path / "m")
    assert "x has values, because it contains fractions" in output
    assert "R² " in output
    assert "ridge regression" in output


def test_a_test_file_judges(table, tmp_path):
    options = ("--target", "late", "--no-refine", "--size", 10, "--json")
    found = json.loads(run("train", table, "--test", table, *options, out=tmp_path / "m"))
    assert found["score"]["rows"] == found["rows"] == 600
    same = json.loads(run("evaluate", tmp_path / "m", table, "--target", "late", "--json"))
    assert same["score"] == found["score"]
    assert same["confused"] == found["confused"]


def test_without_holdout_nothing_is_judged(small, tmp_path):
    options = ("--target", "y", "--no-refine", "--size", 10, "--holdout", 0, "--json")
    found = json.loads(run("train", small, *options, out=tmp_path / "m"))
    assert "score" not in found
    assert found["rows"] == 120


def test_quiet_prints_nothing(small, tmp_path):
    options = ("--target", "y", "--no-refine", "--size", 10, "--quiet")
    assert run("train", small, *options, out=tmp_path / "m") == ""


@pytest.mark.parametrize("ending", [".tsv", ".parquet", ".feather", ".npz", ".svm", ".csv.gz"])
def test_every_format_is_read(ending, tmp_path, write_as):
    path, target = write_as(ending)
    options = ("--no-refine", "--size", 10, *(("--target", target) if target else ()))
    output = run("train", path, *options, out=tmp_path / "m")
    assert "2 classes" in output
    lines = run("predict", tmp_path / "m", path).splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 121
    assert set(lines[1:]) <= {"no", "yes", "0", "1"}


def test_the_task_follows_the_target(tmp_path):
    rng = np.random.RandomState(0)
    path = write_csv(
        tmp_path / "t.csv",
        a=rng.rand(100).round(3),
        few=rng.randint(0, 3, 100),
        many=rng.permutation(100),
        truth=np.where(rng.rand(100) < 0.5, "true", "false"),
    )
    for target, words in {
        "few": "3 classes, because it contains 3 different whole numbers",
        "many": "values, because it contains 100 different whole numbers",
        "truth": "2 classes, because it contains truth values",
        "a": "values, because it contains fractions",
    }.items():
        options = ("--target", target, "--no-refine", "--size", 5)
        assert words in run("train", path, *options, out=tmp_path / "m")
    options = ("--target", "few", "--task", "regress", "--no-refine", "--size", 5)
    assert "values, because --task regress" in run("train", path, *options, out=tmp_path / "m")


def test_notes_on_columns_and_missing_targets(tmp_path):
    rng = np.random.RandomState(0)
    n = 100
    path = write_csv(
        tmp_path / "t.csv",
        id=[f"customer {i}" for i in range(n)],
        empty=[""] * n,
        x=rng.rand(n).round(3),
        y=["" if i < 7 else "ab"[i % 2] for i in range(n)],
    )
    code, _, errors = invoke(
        *("train", path, "--target", "y", "--no-refine", "--size", 5, "--out", tmp_path / "m")
    )
    assert code == 0, errors
    assert "7 rows of" in errors
    assert "have no 'y', and are left out." in errors
    assert "The column 'id' has 74 different texts in 74 rows, as identifiers have" in errors
    assert "The column 'empty' has no entries, and is left out." in errors


def test_an_error_and_ctrl_c_leave_nothing(small, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setattr("nysplus.estimators.base.fit_model", interrupted)
    code, _, errors = invoke("train", small, "--target", "y", "--out", folder / "m.nys")
    assert (code, errors) == (130, "Stopped. No file was written.\n")
    assert not list(folder.iterdir())


def test_ctrl_c_after_the_fit_keeps_the_model(small, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("nysplus.cli.train.write_page", interrupted)
    out = tmp_path / "m.nys"
    options = ("--target", "y", "--no-refine", "--size", 5, "--out", out)
    code, _, errors = invoke("train", small, *options, report=True)
    assert (code, errors) == (130, f"Stopped. {out} is complete; no other file was written.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["m.nys"]
    assert nysplus.load(out).n_features_in_ == 2


@pytest.mark.slow
def test_a_report_is_written_beside_the_model(table, tmp_path):
    pytest.importorskip("jinja2")
    out, named = tmp_path / "late.nys", tmp_path / "page.html"
    options = ("--target", "late", "--no-refine", "--size", 10)
    output = run("train", table, *options, out=out, report=True)
    beside = tmp_path / "late_report.html"
    assert output.splitlines()[-1].split() == ["report", str(beside)]
    page = beside.read_text(encoding="utf-8")
    assert "<h1>late, predicted from deliveries.csv</h1>" in page
    assert "The column &#39;note&#39; has no entries, and is left out." in page
    assert 'nysplus.load("late.nys")' in page
    given = (*options, "--holdout", 0, "--report", named, "--json")
    found = json.loads(run("train", table, *given, out=out, report=True))
    assert found["report"] == str(named)
    assert "No rows were held out to judge the model" in named.read_text(encoding="utf-8")
    run("train", table, *options, "--no-report", out=tmp_path / "other.nys", report=True)
    assert not (tmp_path / "other_report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".svm", ".npz"])
def test_reports_of_arrays_and_of_test_files(ending, tmp_path, write_as):
    pytest.importorskip("jinja2")
    path, _ = write_as(ending)
    options = ("--no-refine", "--size", 10, "--test", path)
    run("train", path, *options, out=tmp_path / "m.nys", report=True)
    page = (tmp_path / "m_report.html").read_text(encoding="utf-8")
    assert "120 training rows, 120 test rows; 2 columns" in page
    assert 'id="curve"' in page


def test_a_terminal_shows_progress(small, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    arguments = ("train", small, "--target", "y", "--budget", "512B", "--out", tmp_path / "m")
    code, _, errors = invoke(*arguments, "--time", "1s")
    assert code == 0
    assert "training: refine" in errors
    assert " s left" in errors
    _, _, quiet = invoke(*arguments, "--time", "1s", "--quiet")
    assert quiet == ""
