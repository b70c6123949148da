"""A run measures what its file lacks, reports failures and goes on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest

from nysplus_experiments.harness import records
from nysplus_experiments.harness.resume import measure_missing


@dataclass(frozen=True)
class Square(records.Row, key="name n"):
    name: str
    n: int
    value: float
    threads: str = ""


TASKS = [("a", 1), ("a", 2), ("b", 3)]


def square(name, n):
    return Square(name, n, float(n**2), os.environ.get("OMP_NUM_THREADS", ""))


def _values(path):
    return [(row.key, row.value) for row in records.read(path, Square)]


def test_only_missing_tasks_are_measured(tmp_path, capsys):
    path = tmp_path / "squares.csv"
    measure_missing(path, Square, TASKS[:2], square)
    assert "2 of 2" in capsys.readouterr().out
    asked, prepared = [], []

    def measure(*task):
        asked.append(task)
        return square(*task)

    measure_missing(path, Square, iter(TASKS), measure, prepare=lambda: prepared.append(1))
    assert (asked, prepared) == ([("b", 3)], [1])
    assert _values(path) == [(("a", 1), 1.0), (("a", 2), 4.0), (("b", 3), 9.0)]
    measure_missing(path, Square, TASKS, measure, prepare=lambda: prepared.append(2))
    assert (asked, prepared) == ([("b", 3)], [1])


def test_a_failure_leaves_no_row_and_is_tried_again(tmp_path, capsys):
    path = tmp_path / "squares.csv"

    def fail(name, n):
        if n == 2:
            raise ValueError("two is\nnot allowed")
        return square(name, n)

    with pytest.raises(SystemExit, match="1 measurement failed"):
        measure_missing(path, Square, TASKS, fail)
    assert "a 2: ValueError: two is not allowed" in capsys.readouterr().out
    assert [key for key, _ in _values(path)] == [("a", 1), ("b", 3)]
    measure_missing(path, Square, TASKS, square)
    assert [key for key, _ in _values(path)] == [("a", 1), ("b", 3), ("a", 2)]


def test_an_interrupt_keeps_the_rows_so_far(tmp_path):
    path = tmp_path / "squares.csv"

    def interrupt(name, n):
        if n == 2:
            raise KeyboardInterrupt
        return square(name, n)

    with pytest.raises(KeyboardInterrupt):
        measure_missing(path, Square, TASKS, interrupt)
    assert [key for key, _ in _values(path)] == [("a", 1)]


def test_a_task_can_have_several_rows(tmp_path):
    path = tmp_path / "squares.csv"
    measure_missing(path, Square, [("a", 1)], lambda *task: [square(*task), square(*task)])
    assert len(_values(path)) == 2


def test_settings_and_fresh_put_the_old_file_aside(tmp_path):
    path = tmp_path / "squares.csv"
    measure_missing(path, Square, TASKS[:1], square)
    measure_missing(path, Square, TASKS[1:], square, settings={"rows": 10})
    assert [key for key, _ in _values(path)] == TASKS[1:]
    assert records.environment_of(path)["rows"] == 10
    measure_missing(path, Square, TASKS[:1], square, settings={"rows": 10}, fresh=True)
    assert [key for key, _ in _values(path)] == TASKS[:1]


@pytest.mark.parametrize(
    ("changed", "kept"), [({"processor": "P"}, True), ({"versions": {"numpy": "1"}}, False)]
)
def test_rows_of_other_machines_are_kept_where_they_count(changed, kept, tmp_path):
    path = tmp_path / "squares.csv"
    measure_missing(path, Square, TASKS[:1], square)
    elsewhere = records.environment_of(path) | changed
    path.with_suffix(".json").write_text(json.dumps(elsewhere))
    measure_missing(path, Square, TASKS, square, any_machine=True)
    assert (path.with_name("squares.csv.old").exists()) is not kept
    assert [key for key, _ in _values(path)] == TASKS
    if kept:
        assert records.environment_of(path) == elsewhere
        measure_missing(path, Square, TASKS, square)  # as times need it
        assert path.with_name("squares.csv.old").exists()


def test_rows_that_are_not_valid_are_measured_again(tmp_path):
    path = tmp_path / "squares.csv"
    measure_missing(path, Square, TASKS, square)
    measure_missing(path, Square, TASKS, square, valid=lambda row: row.n != 3)
    assert [key for key, _ in _values(path)] == [*TASKS, ("b", 3)]
