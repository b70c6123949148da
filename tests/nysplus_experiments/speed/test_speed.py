"""The measurements of speed run on small data, and their tables compare what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import ROOT, BenchOptions
from nysplus_experiments.harness.datasets import load
from nysplus_experiments.speed import (
    crossover,
    exactness,
    growth,
    overhead,
    peer_comparison,
    sweep,
    tables,
)
from nysplus_experiments.speed.peers import FLOOR, SYSTEMS
from nysplus_experiments.speed.schedule import Measurement, plan, wanted_repeats
from nysplus_experiments.speed.tables import Runs

in_checkout = pytest.mark.skipif(
    not (ROOT / "tests" / "reference.py").is_file(), reason="needs a checkout of the repository"
)


def measured(system, dtype, n, repeat, seconds, accuracy, n_bytes=2**20, status="ok"):
    row = Measurement("letter", system, dtype, n, 100, 10, 4, repeat, status)
    if status != "ok":
        return replace(row, note="no result after 1 s")
    numbers = {"fit_seconds": seconds, "predict_seconds": seconds / 10, "accuracy": accuracy}
    return replace(row, **numbers, model_bytes=n_bytes, solver="gram-float64", peak_mb=1.0)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "speed.csv"
    records.begin(path, Measurement, {}, False)
    for row in (
        measured("nysplus", "float32", 100, 0, 1.0, 90.0),
        measured("sklearn-nystroem", "float32", 100, 0, 2.0, 90.0),
        measured("nysplus", "float32", 100, 1, 2.0, 90.0),
        measured("sklearn-nystroem", "float32", 100, 1, 6.0, 91.0),
        measured("sklearn-nystroem", "float32", 100, 2, 1.0, 90.0, status="error"),
        measured("lightgbm", "float32", None, 0, 0.5, 95.0, 2**21),
        measured("xgboost", "float32", None, 0, 0.5, 95.0, status="time limit"),
    ):
        records.append(path, row)
    return Runs(path)


def test_ratios_are_taken_within_a_repeat(runs):
    ours, theirs = (("letter", s, "float32", 100) for s in ("nysplus", "sklearn-nystroem"))
    assert runs.ratios(theirs, ours, "fit_seconds") == [2.0, 3.0]
    line = tables.same_work(runs).splitlines()[2]
    assert line.startswith("| Letter | 100 | float32 / float32 | 1.5 | 2.5 [2.0, 3.0] |")


def test_a_system_without_success_is_listed_as_missing(runs):
    assert tables.failures(runs).splitlines()[2:] == [
        "| Letter | XGBoost |  | time limit (no result after 1 s) |"
    ]


def test_losses_name_the_library_that_is_ahead(runs):
    assert tables.losses_same_size(runs).splitlines()[2:] == [
        "| Letter | 100 | scikit-learn Nystroem + ridge, float32 | 0.50 points |  |  |  |"
    ]
    (line,) = tables.losses_same_accuracy(runs).splitlines()[2:]
    assert line == (
        "| Letter | LightGBM | **95.00** | 90.00 | 3.00× (0.50 s against 1.5 s) | "
        "3.00× (0.050 s against 0.15 s) |  |"
    )


def test_long_fits_are_repeated_less():
    repeats = [wanted_repeats(measured("nysplus", "float32", 100, 0, s, 90.0)) for s in (1, 10, 99)]
    assert repeats == sorted(repeats, reverse=True)
    assert repeats[-1] == 1


def test_systems_take_turns():
    plans = [list(plan(["letter"], [100], SYSTEMS, repeat)) for repeat in (0, 1)]
    sized = [[cell for cell in cells if cell[3] and cell[1] != FLOOR] for cells in plans]
    assert sized[0] == sized[1][::-1]
    assert set(plans[0]) == set(plans[1])


@pytest.fixture(scope="module")
def problem():
    split = load("digits", dtype=np.float32)
    rows = {name: split.X_train.astype(name) for name in ("float32", "float64")}
    test = {name: split.X_test.astype(name) for name in ("float32", "float64")}
    return peer_comparison.Problem("digits", split.gamma, rows, split.y_train, test, split.y_test)


def test_peers_solve_the_same_problem(problem):
    wanted = ("nysplus", "sklearn-nystroem")
    found = [
        peer_comparison.measure_system(problem, system, 50, True)
        for system in SYSTEMS
        if system.name in wanted and system.dtype == "float64"
    ]
    assert found[0]["objective"] == pytest.approx(found[1]["objective"], rel=1e-6)
    assert found[0]["accuracy"] == found[1]["accuracy"] > 90


def test_solvers_reach_the_same_objective():
    split = load("digits")
    found = [crossover.fit(split, 50, solver) for solver in crossover.SOLVERS]
    objectives = [columns["objective"] for columns in found]
    assert max(objectives) == pytest.approx(min(objectives), rel=1e-6)
    assert [columns["iterations"] > 0 for columns in found] == [False, False, True]


def test_growth_records_a_fit():
    columns = growth.fit_once(*growth.make_rows(1000, "float32"), 20)
    assert columns["solver"]
    assert columns["fit_seconds"] > 0


def test_clusterings_and_predictions_are_timed(monkeypatch):
    monkeypatch.setattr(overhead, "CLUSTERED_ROWS", 300)
    monkeypatch.setattr(overhead, "LANDMARKS", 20)
    monkeypatch.setattr(overhead, "SECONDS_A_BATCH", 0.001)
    rows = overhead.time_clusterings(0) + overhead.time_predictions(3)
    assert {row.key for row in rows} == {("k-means", 0), ("predict", 3)}
    assert len(rows) == 4 + 1 + 2 * len(overhead.BATCHES)


@in_checkout
def test_the_sweep_resumes(tmp_path, capsys):
    options = BenchOptions("speed", tmp_path, extra={"problems": "1"})
    sweep.run(options)
    content = options.path("sweep.csv").read_text()
    sweep.run(options)
    assert options.path("sweep.csv").read_text() == content
    assert "wrong" not in capsys.readouterr().out


@in_checkout
def test_exactness_compares_with_the_dense_reference():
    line = exactness.compare("digits", 50)
    assert float(line.split()[3]) < 1e-9
    assert line.split()[5] == "100.00"
