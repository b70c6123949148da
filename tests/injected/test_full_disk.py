"""A full disk loses nothing that was there, and leaves nothing behind.

That of a checkpoint is in ``tests/_runtime/checkpoints``.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from full_disk import full_disk

from nysplus import NystroemRegressor
from nysplus.export import to_c, to_html, to_json
from nysplus.persistence import load, save
from nysplus_experiments.cli import app
from nysplus_experiments.harness import records
from nysplus_experiments.paper.results import Result, read_results

ROWS = np.random.RandomState(0).rand(60, 3)
HOW = ["limit", "fsync", "replace"]


def _model(n):
    return NystroemRegressor(n, alpha=0.1, gamma=1.0, random_state=0).fit(ROWS, ROWS[:, 0])


@pytest.mark.parametrize("write", [save, to_json, to_c, to_html])
@pytest.mark.parametrize("how", HOW)
def test_the_old_file_stays(monkeypatch, tmp_path, how, write):
    path = tmp_path / "model"
    write(_model(5), path)
    before = path.read_bytes()
    with full_disk(monkeypatch, how, 100), pytest.raises(OSError, match=r"space left|too large"):
        write(_model(9), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]
    write(_model(9), path)
    assert path.read_bytes() != before
    if write is save:
        assert load(path).landmarks_.shape == (9, 3)


@pytest.mark.parametrize("size", range(0, 42, 6))
def test_a_row_that_did_not_fit_is_measured_again(monkeypatch, tmp_path, size):
    path = tmp_path / "results.csv"
    rows = [Result("digits", "Nys", n, None, 0, 7, "ok", accuracy=90.0 + n) for n in (1, 2, 3)]
    records.begin(path, Result, environment=None)
    records.append(path, rows[0])
    with (
        full_disk(monkeypatch, "limit", path.stat().st_size + size),
        pytest.raises(OSError, match="too large"),
    ):
        records.append(path, rows[1])
    assert read_results(path) == rows[:1]
    records.begin(path, Result, environment=None)  # as every run does
    for row in rows[1:]:
        records.append(path, row)
    assert read_results(path) == rows


EXPERIMENT = """
[[run]]
figures = [2]
datasets = ["digits"]
methods = ["Nys"]
sizes = [5, 10, 15, 20]
"""


@pytest.mark.slow
def test_reproduce_says_so_and_goes_on(monkeypatch, tmp_path, capsys):
    config, out = tmp_path / "small.toml", tmp_path / "out"
    config.write_text(EXPERIMENT)
    command = ["reproduce", "--config", str(config), "--out", str(out)]
    with full_disk(monkeypatch, "limit", 700), pytest.raises(SystemExit) as ended:
        app(command)
    assert ended.value.code == 2
    assert "Error: [Errno 27] File too large" in capsys.readouterr().err
    done = read_results(out / "results.csv")
    assert 1 <= len(done) < 4
    with pytest.raises(SystemExit) as ended:
        app(command)
    assert ended.value.code == 0
    again = read_results(out / "results.csv")
    assert again[: len(done)] == done
    assert [row.n for row in again] == [5, 10, 15, 20]
    assert sorted(os.listdir(out)) == ["notes.json", "report.html", "results.csv"]
