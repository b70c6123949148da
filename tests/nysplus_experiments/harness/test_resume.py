"""A run measures what its file lacks, reports failures and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
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


KILLED = """
import os
import time
from pathlib import Path

from nysplus_experiments.harness.resume import _outcomes


def wait(folder):
    Path(folder, f"worker-{os.getpid()}").touch()
    time.sleep(600)


if __name__ == "__main__":
    list(_outcomes([(os.environ["FOLDER"],)], wait, workers=1))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs the list of processes in /proc")
def test_workers_end_with_a_killed_run(tmp_path):
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    parent = subprocess.Popen([sys.executable, program], env=os.environ | {"FOLDER": str(tmp_path)})
    (worker,) = _waited(lambda: list(tmp_path.glob("worker-*")))
    parent.kill()
    parent.wait()
    process = worker.name.removeprefix("worker-")
    assert _waited(lambda: not _runs(process))


def _waited(condition):
    """Return the condition once it holds, or after a minute."""
    end = time.monotonic() + 60
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def _runs(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
