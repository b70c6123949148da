from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nysplus_experiments.harness import records
from nysplus_experiments.harness.records import ResultsError

HERE = {"processor": "a", "versions": {"numpy": "2"}}


@dataclass(frozen=True)
class Row(records.Row, key="dataset n"):
    dataset: str
    n: int | None
    seconds: float | None = None
    good: bool = True
    note: str = ""


ROWS = [
    Row("usps", 10, 0.1 + 0.2, note='a "quoted", thing — ✓\nand more'),
    Row("usps", None, None, good=False),
    Row("letter", 2**40, 1e-300),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "new" / "rows.csv"
    assert records.begin(path, Row, HERE) == []
    for row in ROWS:
        records.append(path, row)
    return path


def test_rows_survive_the_file(path: Path) -> None:
    assert records.read(path, Row) == ROWS
    assert records.environment_of(path) == HERE


def test_a_file_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert records.read(tmp_path / "none.csv", Row) == []
    assert records.environment_of(tmp_path / "none.csv") == {}


def test_a_torn_last_line_is_dropped(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    assert records.read(path, Row) == ROWS[:2]
    assert records.begin(path, Row, HERE) == ROWS[:2]
    records.append(path, ROWS[2])
    assert path.read_bytes() == whole


def test_another_environment_puts_the_file_aside(path: Path, capsys) -> None:
    content, other = path.read_bytes(), HERE | {"processor": "b"}
    assert records.begin(path, Row, HERE) == ROWS
    assert records.begin(path, Row, other) == []
    assert path.with_name("rows.csv.old").read_bytes() == content
    assert "measured elsewhere" in capsys.readouterr().out
    assert json.loads(path.with_suffix(".json").read_text()) == other


def test_a_fresh_run_puts_the_file_aside(path: Path, capsys) -> None:
    assert records.begin(path, Row, HERE, fresh=True) == []
    assert "as asked" in capsys.readouterr().out
    assert path.with_name("rows.csv.old").exists()


def test_rows_that_carry_their_environment_need_no_other_file(tmp_path: Path) -> None:
    records.begin(tmp_path / "rows.csv", Row, None)
    records.append(tmp_path / "rows.csv", ROWS[0])
    assert records.begin(tmp_path / "rows.csv", Row, None) == ROWS[:1]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_other_columns_are_refused_and_left_alone(path: Path) -> None:
    path.write_text("a,b\n1,2\n")
    for use in (lambda: records.read(path, Row), lambda: records.begin(path, Row, HERE)):
        with pytest.raises(ResultsError, match=r"rows\.csv does not start with .* got 'a,b'"):
            use()
    assert path.read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize("line", ["usps,1", "usps,one,2.0,True,"])
def test_a_bad_row_is_named(path: Path, line: str) -> None:
    path.write_text(f"dataset,n,seconds,good,note\n{line}\n")
    with pytest.raises(ResultsError, match="line 2 is not a row of 5 columns"):
        records.read(path, Row)


def test_the_last_row_of_a_key_counts(path: Path) -> None:
    retried = replace(ROWS[0], seconds=5.0)
    records.append(path, retried)
    assert records.read_last(path, Row) == [*ROWS[1:], retried]


def test_frames_have_the_columns_and_types(path: Path) -> None:
    pytest.importorskip("pandas")
    for frame in (records.frame(ROWS, Row), records.frame(path, Row)):
        assert list(frame.columns) == ["dataset", "n", "seconds", "good", "note"]
        assert frame["dataset"].tolist() == ["usps", "usps", "letter"]
        assert frame["seconds"].isna().tolist() == [False, True, False]
        assert frame["good"].tolist() == [True, False, True]
    assert records.frame(path, Row)["n"].max() == 2**40
    assert list(records.frame([], Row).columns) == ["dataset", "n", "seconds", "good", "note"]


@pytest.mark.parametrize(
    "content", [b"\xff\n", b'"' + b"a" * 200_000 + b"\n"], ids=["bytes", "cell"]
)
def test_files_that_are_no_csv_text_are_refused(path: Path, content: bytes) -> None:
    path.write_bytes(path.read_bytes() + content)
    with pytest.raises(ResultsError, match=str(path)):
        records.read(path, Row)


@pytest.mark.parametrize("content", [b"\xff", b"[" * 5000, b"[]", b"{"])
def test_files_that_are_no_json_objects_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.json").write_bytes(content)
    with pytest.raises(ResultsError, match=r"notes\.json .*Move it away|Move the file away"):
        records.read_json(tmp_path / "notes.json")
