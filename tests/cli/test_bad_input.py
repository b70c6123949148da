"""Input that users can mend: one clear line, exit code 2, and nothing written."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from command_line import failure, invoke, write_csv


def train_failure(path, *options, target="y"):
    out = path.with_name("never.nys")
    line = failure("train", path, "--target", target, "--out", out, *options)
    assert not out.exists()
    return line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--size", "5", "--budget", "4kB"], "--size and --budget exclude each other"),
        (["--budget", "4 kilo"], "is not a size"),
        (["--time", "soon"], "--time soon is not a time. Give for example 60s"),
        (["--holdout", "1.5"], "--holdout 1.5 is no share"),
        (["--holdout", "0.1", "--test", "b.csv"], "--holdout and --test exclude each other"),
        (["--task", "guess"], "Allowed are auto, classify, regress"),
        (["--task", "regress"], "contains texts such as no, yes"),
        (["--test", "none.csv"], "none.csv does not exist"),
    ],
)
def test_options(small, options, words):
    assert words in train_failure(small, *options)


def test_the_target(small, tmp_path):
    assert "has no column 'z'. Its columns are: x, kind, y." in train_failure(small, target="z")
    assert "--target is missing. Name one of the columns" in failure("train", small)
    one = write_csv(tmp_path / "one.csv", x=range(50), y=["a"] * 50, none=[""] * 50, u=range(50))
    assert "has one value, 'a', in all rows" in train_failure(one)
    assert "has no entries" in train_failure(one, target="none")
    texts = write_csv(tmp_path / "texts.csv", x=range(50), y=[f"t{i}" for i in range(50)])
    assert "50 different values in 50 rows, too many for classes" in train_failure(texts)
    dates = write_csv(tmp_path / "dates.csv", x=range(50), y=["2025-01-01", "2025-01-02"] * 25)
    assert "has the type date32" in train_failure(dates)
    few = write_csv(tmp_path / "few.csv", x=range(6), y=["a", "b"] * 3)
    assert "Give at least 20" in train_failure(few)


def test_files(tmp_path, write_as):
    def path(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    assert "is empty: it has 0 bytes" in train_failure(path("a.csv", b""))
    assert "does not exist" in train_failure(tmp_path / "none.csv")
    assert "is a folder" in train_failure(tmp_path)
    assert "unknown ending. Allowed are" in train_failure(path("a.xlsx", b"PK\3\4"))
    parquet = write_as(".parquet")[0].read_bytes()
    assert "it is a Parquet file. Rename it to end in .parquet" in train_failure(
        path("b.csv", parquet)
    )
    assert "does not begin as parquet files do" in train_failure(path("b.parquet", b"x,y\n1,2\n"))
    assert "cannot be read" in train_failure(path("cut.parquet", parquet[:200]))
    assert "it is compressed (.gz)" in train_failure(path("c.csv", b"\x1f\x8b\0\0"))
    latin = "x,y\n1,grün\n".encode("latin1")
    assert "is not UTF-8 text: line 2 has the byte 0xfc" in train_failure(path("d.csv", latin))
    assert "line 1 has a binary zero" in train_failure(path("e.csv", b"x\0,y\n"))
    assert "several columns of one name: x" in train_failure(path("f.csv", b"x,x,y\n1,2,3\n"))
    assert "seem to be separated by ';'" in train_failure(path("g.csv", b"x;y\n1;2\n"))
    assert "has no rows" in train_failure(path("h.csv", b"x,y\n"))
    assert "cannot be read" in train_failure(path("i.csv", b"x,y\n1,2\n1,2,3\n"))
    assert "no columns beside 'y'" in train_failure(path("j.csv", b"y\n1\n2\n"))


def test_columns_that_cannot_be_used(tmp_path):
    """Without any other column an identifier, or a column without entries, is an error."""
    y = ["a", "b"] * 50
    ids = write_csv(tmp_path / "ids.csv", id=[f"customer {i}" for i in range(100)], y=y)
    line = train_failure(ids)
    assert "No column of X can be used" in line
    assert "The column 'id' has 80 different texts in 80 rows, as identifiers have" in line
    empty = write_csv(tmp_path / "empty.csv", none=[""] * 100, other=[""] * 100, y=y)
    assert "The column 'other' has no entries, and is left out." in train_failure(empty)


def test_mixed_types(tmp_path):
    """Texts among numbers make categories, with a note."""
    path = write_csv(
        tmp_path / "mixed.csv", x=[*range(38), "none", "none"], y=["a", "b"] * 20, z=[1.5, 2] * 20
    )
    out = tmp_path / "m.nys"
    options = ("--target", "y", "--no-refine", "--size", 5, "--out", out)
    code, _, errors = invoke("train", path, *options)
    assert code == 0, errors
    assert "The column 'x' has numbers as texts, such as '" in errors


def test_arrays(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, A=np.ones((3, 2)))
    assert "has no arrays ['X', 'y']. Its arrays are A" in failure("train", path)
    np.savez(path, X=np.ones((3, 2)), y=np.ones(4))
    assert "y of" in failure("train", path)
    svm = tmp_path / "a.svm"
    svm.write_text("1 1:2\n0 1:3\n")
    assert "Leave --target out" in train_failure(svm)


def test_places_to_write(small, tmp_path):
    for command in (
        ("train", small, "--target", "y", "--out", tmp_path / "none" / "m.nys"),
        ("train", small, "--target", "y", "--out", tmp_path),
    ):
        assert "folder" in failure(*command)


def test_no_permission_to_write(small, model, tmp_path, monkeypatch):
    """Also as root, who may write everywhere."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: not mode & os.W_OK and access(path, mode, **more)
    )
    out = tmp_path / "out.csv"
    for command in (
        ("train", small, "--target", "y"),
        ("predict", model, small),
        ("export", model, "--to", "c"),
        ("compress", model, "--budget", "1kB"),
    ):
        assert "cannot be written: no permission" in failure(*command, "--out", out)
    assert not out.exists()


def test_places_of_the_report(small, tmp_path):
    def report_failure(*options):
        given = ("train", small, "--target", "y", "--out", tmp_path / "m.nys", *options)
        return failure(*given, report=True)

    assert "exclude each other" in report_failure("--report", "r.html", "--no-report")
    assert "Make it first" in report_failure("--report", tmp_path / "none" / "r.html")
    assert "uses already" in report_failure("--report", tmp_path / "m.nys")
    assert not list(tmp_path.iterdir())


def test_figures_of_comparisons(small, tmp_path):
    options = ("compare", small, "--target", "y", "--figure")
    assert "Allowed are .png, .svg, .pdf" in failure(*options, tmp_path / "a.txt")
    assert "Make it first" in failure(*options, tmp_path / "none" / "a.png")


def test_a_file_that_is_read_is_not_replaced(small, model):
    before = small.read_bytes()
    assert "the command uses already" in failure("train", small, "--target", "y", "--out", small)
    assert "the command uses already" in failure("predict", model, small, "--out", small)
    assert "the command uses already" in failure("export", model, "--to", "c", "--out", model)
    assert small.read_bytes() == before


def test_a_test_file_without_columns_is_found_before_the_fit(small, tmp_path, monkeypatch):
    def never(*arguments):
        raise AssertionError

    monkeypatch.setattr("nysplus.cli.train.fit", never)
    other = write_csv(tmp_path / "other.csv", x=range(30), y=["yes", "no"] * 15)
    assert "has no columns kind, which the model uses" in train_failure(small, "--test", other)


def test_models(model, table, small, tmp_path):
    assert "has no columns distance, " in failure("predict", model, small).replace("weight, ", "")
    assert "cannot be loaded" in failure("predict", small, small)
    assert "does not exist" in failure("inspect", tmp_path / "none.nys")
    assert "unknown ending" in failure("predict", model, table, "--out", tmp_path / "a.txt")
    assert "Allowed are onnx, c, c-int, json" in failure("export", model, "--to", "java")
    assert "Give both or none" in failure(
        *("compress", model, "--budget", "1kB", "--out", tmp_path / "m", "--target", "y")
    )
    texts = write_csv(
        tmp_path / "texts.csv", weight=["heavy"], distance=[1], vehicle=["van"], ordered=["soon"]
    )
    out = tmp_path / "p.csv"
    assert "contained numbers in training" in failure("predict", model, texts, "--out", out)
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


def test_new_classes_are_noted(model, table, tmp_path):
    text = table.read_text(encoding="utf-8").replace(",yes\n", ",perhaps\n", 5)
    text = text.replace(",yes\r\n", ",perhaps\r\n", 5)
    other = tmp_path / "other.csv"
    other.write_text(text, encoding="utf-8", newline="")
    code, _, errors = invoke("evaluate", model, other, "--target", "late")
    assert code == 0
    assert "classes that the model does not know: perhaps" in errors
