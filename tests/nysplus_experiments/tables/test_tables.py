"""The measurements on tables: fits at a size, runs that resume, seconds, CSV files, exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchError, BenchOptions
from nysplus_experiments.harness.datasets import DatasetNotFound
from nysplus_experiments.harness.raw_tables import (
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
    TABLES,
    load_table,
    nominal_columns,
)
from nysplus_experiments.tables import (
    STEPS,
    boosting,
    csv_files,
    exports,
    fits,
    practice,
    seconds,
)
from nysplus_experiments.tables.pipelines import PIPELINES, preprocessing
from nysplus_experiments.tables.system import Model, NoModel, System
from nysplus_experiments.tables.systems import all_systems, svm


class _Answers:
    """Predictions of a made-up system."""

    def __init__(self, regression, y):
        self.shares = y.mean() if regression else np.bincount(y) / len(y)

    def __call__(self, frame):
        return np.repeat(np.atleast_2d(self.shares), len(frame), axis=0)


def _fit_constant(rows, n_bytes, prepared):
    if n_bytes is not None and n_bytes < 1000:
        raise NoModel("One number takes 1,000 bytes.")
    return Model(_Answers(rows.regression, rows.y), 1000, prepared or "whole")


@pytest.fixture
def invented(monkeypatch):
    """Two made-up systems in the place of the real ones; the second one is not installed."""
    systems = {
        "first": System("first", "First", "sklearn", _fit_constant, lambda rows: "shared"),
        "absent": System("absent", "Absent", "no_such_library", _fit_constant),
    }
    monkeypatch.setattr(fits, "all_systems", lambda: systems)
    fits.prepared.cache_clear()
    return systems


# -- fits ----------------------------------------------------------------------------------------


def test_a_fit_is_scored_on_all_rows_and_on_rows_without_a_twin(invented):
    row = fits.measure(SYNTHETIC, "first", "4 kB", 0)
    split = load_table(SYNTHETIC).split(0)
    counts = np.bincount(split.y)
    right = split.y_test == counts.argmax()
    assert row.score == pytest.approx(100 * right.mean())
    assert row.new_score == pytest.approx(100 * right[~split.has_twin].mean())
    expected = -np.log((counts / counts.sum())[split.y_test]).mean()
    assert row.log_loss == pytest.approx(expected)
    assert (row.rows, row.test_rows, row.features, row.nominal) == (350, 150, 5, 2)
    assert (row.bytes, row.detail) == (1000, "shared")
    assert row.version.startswith("sklearn 1")
    assert fits.measure(SYNTHETIC, "first", fits.UNLIMITED, 0).detail == "whole"


def test_errors_are_in_deviations_of_the_test_target(invented):
    row = fits.measure(SYNTHETIC_REGRESSION, "first", "4 kB", 0)
    split = load_table(SYNTHETIC_REGRESSION).split(0)
    errors = split.y_test - split.y.mean()
    assert row.score == pytest.approx(np.sqrt(np.mean(errors**2)) / split.y_test.std())
    assert row.log_loss is None


def test_a_size_without_a_model_has_its_reason(invented):
    row = fits.measure(SYNTHETIC, "first", "0.25 kB", 0)
    assert (row.score, row.bytes, row.log_loss) == (None, None, None)
    assert row.detail == "One number takes 1,000 bytes."


def test_classes_without_training_rows_have_the_smallest_probability():
    probabilities = np.array([[0.5, 0.5], [0.9, 0.1], [0.0, 1.0]])
    found = fits.log_loss(probabilities, np.array([0, 2]), np.array([2, 1, 5]))
    assert found == pytest.approx(-(np.log(0.5) + 2 * np.log(1e-6)) / 3)


def test_an_interrupted_run_resumes(invented, tmp_path, capsys):
    options = BenchOptions("tables", tmp_path, smoke=True)
    fits.run(options)
    path = options.path("bytes/first.csv")
    rows = records.read(path, fits.TableFit)
    smoke = (SYNTHETIC, SYNTHETIC_REGRESSION)
    assert [row.key for row in rows] == [(t, "first", s, 0) for t in smoke for s in fits.SIZES]
    assert "absent is skipped. no_such_library is not installed." in capsys.readouterr().out
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    fits.run(options)
    assert "1 of 1, " in capsys.readouterr().out
    assert [row.key for row in records.read(path, fits.TableFit)] == [row.key for row in rows]


def test_systems_sizes_and_seeds_can_be_chosen(invented, tmp_path):
    extra = {"systems": "first", "seeds": "2,4", "sizes": "4 kB"}
    options = BenchOptions("tables", tmp_path, smoke=True, extra=extra)
    fits.run(options)
    rows = records.read(options.path("bytes/first.csv"), fits.TableFit)
    assert {(row.size, row.seed) for row in rows} == {("4 kB", 2), ("4 kB", 4)}
    fits.run(replace(options, fresh=True))  # both seeds stay
    assert len(records.read(options.path("bytes/first.csv"), fits.TableFit)) == 4
    with pytest.raises(BenchError, match="'none' is unknown"):
        fits.run(replace(options, extra={"systems": "none"}))


def test_a_failure_leaves_the_other_systems_running(invented, tmp_path, monkeypatch):
    def fail(rows, n_bytes, prepared):
        raise RuntimeError("broken")

    invented["absent"] = System("absent", "Absent", "sklearn", fail)
    invented["last"] = System("last", "Last", "sklearn", _fit_constant)
    options = BenchOptions("tables", tmp_path, smoke=True, extra={"sizes": "4 kB"})
    with pytest.raises(SystemExit, match="absent, seed 0: 2 measurements failed"):
        fits.run(options)
    assert len(records.read(options.path("bytes/last.csv"), fits.TableFit)) == 2


@pytest.mark.parametrize("table", [SYNTHETIC, SYNTHETIC_REGRESSION])
@pytest.mark.parametrize("system", [name for name in all_systems() if name != "constant"])
def test_systems_accept_levels_and_gaps_and_keep_their_bytes(system, table, monkeypatch):
    monkeypatch.setattr(boosting, "MAX_ITERATIONS", 10)  # these tables are learned by then
    monkeypatch.setattr(boosting, "LARGEST", 4096)
    monkeypatch.setattr(svm, "TIME_LIMIT", 0.5)
    if not all_systems()[system].installed:
        pytest.skip(f"{system} is not installed")
    if system == "nysplus":
        pytest.skip("fits of nysplus with an encoder are tested elsewhere")
    constant = fits.measure(table, "constant", "1 kB", 0)
    row = fits.measure(table, system, "4 kB", 0)
    gain = row.score - constant.score
    assert gain < -0.1 if table == SYNTHETIC_REGRESSION else gain > 10
    assert 50 < row.bytes <= 4096
    tiny = fits.measure(table, system, "0.25 kB", 0)
    assert tiny.score is None or tiny.bytes <= 256


def test_a_system_is_one_file_of_the_folder():
    known = all_systems()
    assert set(known) >= {"nysplus", "lightgbm", "xgboost", "catboost", "linear", "constant"}
    assert [name for name, system in known.items() if system.name != name] == []


# -- csv files and pipelines ---------------------------------------------------------------------


@pytest.mark.parametrize("name", list(PIPELINES))
def test_preprocessing_gives_numbers_without_gaps(name):
    split = csv_files.split_of(SYNTHETIC, 0)
    transformer = preprocessing(*PIPELINES[name])
    made = transformer.fit_transform(split.X, split.y)
    assert np.isfinite(made).all()
    unseen = split.X_test.assign(x3="level 99")
    assert np.isfinite(transformer.transform(unseen)).all()
    assert made.shape[1] == transformer.transform(unseen).shape[1]


def test_a_csv_file_has_the_rows_of_the_table():
    table, read = load_table(SYNTHETIC), csv_files.split_of(SYNTHETIC, 1)
    split = table.split(1)
    assert nominal_columns(read.X) == ["x3", "x4"]
    assert not isinstance(read.X["x3"].dtype, pd.CategoricalDtype)
    for name in read.X:
        gaps = split.X[name].isna()
        assert (read.X[name].isna() == gaps).all()
        if name in ("x3", "x4"):
            assert (read.X[name][~gaps] == split.X[name][~gaps].astype(str)).all()
        else:
            np.testing.assert_allclose(read.X[name], split.X[name], rtol=1e-12)
    np.testing.assert_array_equal(read.y_test, split.y_test)
    np.testing.assert_array_equal(read.has_twin, split.has_twin)


def test_the_plan_of_csv_files(monkeypatch):
    frames = {"mixed": pd.DataFrame({"a": ["x"]}), "numbers": pd.DataFrame({"a": [1.0]})}

    class Loaded:
        def __init__(self, name):
            self.frame = frames[name]

    monkeypatch.setattr(csv_files, "load_table", Loaded)
    names = [csv_files.RAW, *PIPELINES]
    found = list(csv_files.plan(["mixed", "numbers"], names, [0]))
    assert [key[1] for key in found if key[0] == "mixed"] == names
    one_hot = [csv_files.RAW, "standard, one-hot", "quantile, one-hot"]
    assert [key[1] for key in found if key[0] == "numbers"] == one_hot


def test_models_of_csv_files_differ_in_the_preprocessing_only(tmp_path, monkeypatch):
    made = []

    class Majority(DummyClassifier):
        model_bytes_ = 7

    def estimator(regression, seed, budget, **options):
        made.append((regression, seed, budget, options))
        return Majority()

    monkeypatch.setattr(csv_files, "estimator", estimator)
    options = BenchOptions("tables", tmp_path, smoke=True, extra={"kinds": "hand-made"})
    STEPS["csv"](options)
    rows = records.read(options.path(csv_files.FILE), csv_files.CsvFit)
    assert [row.pipeline for row in rows] == list(PIPELINES)
    assert all(row.bytes == 7 and 20 < row.accuracy < 60 for row in rows)
    assert made == [(False, 0, "64kB", {"encoder": None})] * len(PIPELINES)


# -- summaries -----------------------------------------------------------------------------------


def _lines(table):
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def _timed(table, method, score, cpu_seconds):
    return seconds.TimedFit(table, method, 0, score, cpu_seconds, 5000, 100, 10, 3, "library 1")


def test_times_are_compared_with_lightgbm_table_by_table():
    rows = [_timed("wall_robot", "64kB", 90, 6.0), _timed("cpu_act", "64kB", 0.1, 6.0)]
    rows += [_timed("wall_robot", "lightgbm", 90, 2.0), _timed("cpu_act", "lightgbm", 0.1, 0.5)]
    found = practice.times(records.frame(rows, seconds.TimedFit))
    lines = {line[0]: line[1:] for line in _lines(found)}
    assert list(lines) == [*seconds.TABLES, "median"]
    assert lines["wall_robot"] == ["5,000", "6.0", "–", "–", "2.0", "–", "3.0", "–"]
    assert lines["cpu_act"] == ["5,000", "6.0", "–", "–", "0.50", "–", "12", "–"]
    assert lines["adult"] == ["–"] * 8
    assert lines["median"] == ["–", "6.0", "–", "–", "1.2", "–", "7.5", "–"]


def test_twelve_tables_are_timed_with_all_rows():
    assert len(set(seconds.TABLES)) == 12
    assert set(seconds.TABLES) <= set(TABLES)
    keys = list(seconds.plan(["adult", "cpu_act"], [0, 1]))
    assert len(set(keys)) == len(keys)
    installed = [name for name, method in seconds.METHODS.items() if method.installed]
    assert [key[1] for key in keys] == installed * 4
    assert [key[2] for key in keys] == sorted(key[2] for key in keys)


@pytest.mark.parametrize("method", ["lightgbm", "xgboost"])
def test_timed_fits_take_raw_frames(method):
    pytest.importorskip(method, reason=f"{method} is not installed")
    row = seconds.measure(SYNTHETIC, method, 0)
    assert row.score > 60
    assert (row.rows, row.test_rows, row.nominal) == (350, 150, 2)
    assert row.version.startswith(method)


def test_the_timed_tables_are_every_second_one():
    try:
        rows = {name: len(load_table(name).y) for name in TABLES if name != "a9a"}
    except DatasetNotFound as error:
        pytest.skip(str(error))
    middle = sorted((n, name) for name, n in rows.items() if 5_000 < n < 50_000)
    assert [name for _, name in middle][1::2] == list(seconds.TABLES)


def test_exports_are_summed_up_by_format():
    rows = [
        exports.ExportCheck("churn", "c", 2000, 10, 5, 1e-6, 0),
        exports.ExportCheck("adult", "c", 2000, 20, 6, 3e-5, 1),
        exports.ExportCheck("churn", "onnx", 2000, 10, 5, 1e-7, 0),
    ]
    frame = records.frame(rows, exports.ExportCheck)
    assert _lines(practice.agreement(frame)) == [
        ["c", "2", "4,000", "30", "11", "3.0e-05 (adult)", "1"],
        ["onnx", "1", "2,000", "10", "5", "1.0e-07 (churn)", "0"],
    ]


def test_the_raw_frame_is_compared_with_the_best_pipeline():
    scores = {csv_files.RAW: [90.0, 91.0], "standard, one-hot": [89.0, 92.0]}
    scores |= {"quantile, target": [90.5, 91.5]}
    rows = [
        csv_files.CsvFit("churn", name, seed, score, 1, 1.0, 1, 1)
        for name, own in scores.items()
        for seed, score in enumerate(own)
    ]
    frame = records.frame(rows, csv_files.CsvFit)
    expected = ["churn", "90.50", "quantile, target", "91.00", "−0.50"]
    assert _lines(practice.csv(frame)) == [expected]
    unfinished = frame[frame["pipeline"] != csv_files.RAW]
    assert _lines(practice.csv(unfinished)) == [["churn", "–", "quantile, target", "91.00", "–"]]


# -- exports ---------------------------------------------------------------------------------------


def test_exports_are_compared_on_changed_rows(tmp_path):
    """Gaps, unseen levels and another order of the columns change nothing between formats."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = BenchOptions("tables", tmp_path, smoke=True)
    exports.run(options)
    checks = records.read(tmp_path / "tables" / exports.FILE, exports.ExportCheck)
    assert {check.format for check in checks} == set(exports.FORMATS)
    for check in checks:
        assert check.gaps > 0
        assert check.other_labels == 0
        assert check.difference < 1e-3


def test_other_labels_leaves_out_ties():
    scores = np.array([[1.0], [-1.0], [1e-6]])
    assert exports.other_labels(scores, -scores) == 2
    assert exports.other_labels(scores, np.array([[1.0], [-1.0], [-1e-6]])) == 0
