"""The measurements on ordinary tables: plans, fits, runs that resume, summaries, page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import RESULTS, BenchError, BenchOptions
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
    comparison,
    csv_files,
    exports,
    fits,
    ours,
    page,
    peers,
    seconds,
    summaries,
)
from nysplus_experiments.tables.pipelines import PIPELINES, preprocessing

KILOBYTES = {"64kB": 64, "16kB": 16, "4kB": 4, "fast": 64, "unrefined": 64, "no-encoder": 64}


def _constant(frame, regression, seed):
    return DummyRegressor() if regression else DummyClassifier()


METHODS = {
    "first": fits.Method("First", "sklearn", _constant, lambda model: 100),
    "codes": fits.Method("Codes", "sklearn", _constant, lambda model: 100, nominal_only=True),
    "slow": fits.Method("Slow", "sklearn", _constant, lambda model: 100, modes=("capped",)),
    "absent": fits.Method("Absent", "no_such_library", _constant, lambda model: 100),
}


# -- plans and fits ------------------------------------------------------------------------------


def test_the_plan(monkeypatch):
    monkeypatch.setattr(fits, "LARGEST", ("large",))
    frames = {"large": pd.DataFrame({"a": ["x", "y"]}), "small": pd.DataFrame({"a": [1.0, 2.0]})}

    class Loaded:
        def __init__(self, name):
            self.frame = frames[name]

    monkeypatch.setattr(fits, "load_table", Loaded)
    found = list(fits.plan(METHODS, ["large", "small"], [0, 5], list(fits.MAX_TRAIN)))
    assert len(set(found)) == len(found)
    assert [key[1:] for key in found if key[0] == "all" and key[3] == 0] == [
        ("large", "first", 0),
        ("large", "codes", 0),
        ("large", "absent", 0),
    ]
    assert not [key for key in found if key[0] == "few"]
    capped = [key[1:3] for key in found if key[0] == "capped" and key[3] == 5]
    assert capped == [
        *(("large", name) for name in METHODS),
        *(("small", name) for name in METHODS if name != "codes"),
    ]
    assert [key[3] for key in found] == sorted(key[3] for key in found)


def test_a_fit_is_scored_on_all_rows_and_on_rows_without_a_twin():
    row = fits.measure(METHODS, "capped", SYNTHETIC, "first", 0)
    split = load_table(SYNTHETIC).split(0)
    right = split.y_test == np.bincount(split.y).argmax()
    assert row.score == pytest.approx(100 * right.mean())
    assert row.new_score == pytest.approx(100 * right[~split.has_twin].mean())
    assert (row.rows, row.test_rows, row.features, row.nominal) == (350, 150, 5, 2)
    assert row.new_rows == (~split.has_twin).sum() < 150
    assert row.fit_cpu_seconds >= 0
    assert row.version.startswith("sklearn 1")


def test_errors_are_in_deviations_of_the_test_target():
    row = fits.measure(METHODS, "capped", SYNTHETIC_REGRESSION, "first", 0)
    split = load_table(SYNTHETIC_REGRESSION).split(0)
    errors = split.y_test - split.y.mean()
    assert row.score == pytest.approx(np.sqrt(np.mean(errors**2)) / split.y_test.std())


def test_an_interrupted_run_resumes(tmp_path, capsys):
    options = BenchOptions("tables", tmp_path, smoke=True)
    fits.run_methods(options, "x.csv", METHODS)
    path = options.path("x.csv")
    rows = records.read(path, fits.TableFit)
    smoke = (SYNTHETIC, SYNTHETIC_REGRESSION)
    present = [name for name in METHODS if name != "absent"]
    assert [row.key for row in rows] == [("capped", t, m, 0) for t in smoke for m in present]
    assert "absent is skipped. no_such_library is not installed." in capsys.readouterr().out
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    fits.run_methods(options, "x.csv", METHODS)
    assert "1 of 1, " in capsys.readouterr().out
    assert [row.key for row in records.read(path, fits.TableFit)] == [row.key for row in rows]


def test_methods_seeds_and_modes_can_be_chosen(tmp_path):
    extra = {"methods": "slow", "seeds": "2,4", "modes": "capped"}
    options = BenchOptions("tables", tmp_path, smoke=True, extra=extra)
    fits.run_methods(options, "x.csv", METHODS)
    rows = records.read(options.path("x.csv"), fits.TableFit)
    assert {(row.method, row.seed) for row in rows} == {("slow", 2), ("slow", 4)}
    with pytest.raises(BenchError, match="'none' is unknown"):
        fits.run_methods(replace(options, extra={"methods": "none"}), "x.csv", METHODS)


@pytest.mark.parametrize("table", [SYNTHETIC, SYNTHETIC_REGRESSION])
@pytest.mark.parametrize("method", list(peers.METHODS))
def test_other_libraries_accept_levels_and_gaps(method, table):
    how = peers.METHODS[method]
    if not how.installed:
        pytest.skip(f"{how.library} is not installed")
    row = fits.measure(peers.METHODS, "capped", table, method, 0)
    constant = fits.measure(METHODS, "capped", table, "first", 0)
    gain = row.score - constant.score
    assert gain < -0.1 if table == SYNTHETIC_REGRESSION else gain > 10
    assert row.bytes > 50


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

    def piped(before, regression, seed):
        made.append((before, regression, seed))
        return DummyClassifier()

    monkeypatch.setattr(ours, "piped", piped)
    monkeypatch.setattr(ours, "piped_bytes", lambda model: 7)
    options = BenchOptions("tables", tmp_path, smoke=True, extra={"kinds": "hand-made"})
    STEPS["csv"](options)
    rows = records.read(options.path(csv_files.FILE), csv_files.CsvFit)
    assert [row.pipeline for row in rows] == list(PIPELINES)
    assert all(row.bytes == 7 and 20 < row.accuracy < 60 for row in rows)
    assert {entry[1:] for entry in made} == {(False, 0)}


# -- summaries -----------------------------------------------------------------------------------


def _fit(table, method, seed, score, mode="capped", new_score=None, **columns):
    row = fits.TableFit(
        *(mode, table, method, seed, score, score if new_score is None else new_score),
        *(4000, 2.0, 5000, 100, 80, 10, 3, "library 1"),
    )
    return replace(row, **columns)


def _frame(scores, **columns):
    """Return fits of ``{(table, method): scores of the seeds}``."""
    rows = [
        _fit(table, method, seed, score, **columns)
        for (table, method), own in scores.items()
        for seed, score in enumerate(own)
    ]
    return records.frame(rows, fits.TableFit)


def _lines(table):
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_the_better_form_of_lightgbm_counts_on_each_table():
    wide = comparison.by_method(
        _frame(
            {
                ("churn", "lightgbm"): [90, 91],
                ("churn", "lightgbm-codes"): [92, 90],
                ("abalone", "lightgbm"): [0.5, 0.5],
                ("abalone", "lightgbm-codes"): [0.6, 0.3],
                ("banana", "lightgbm"): [80, 81],
            }
        )
    )
    scores = comparison.LIGHTGBM_BETTER.scores(wide)
    assert scores["churn"].tolist() == [92, 90]
    assert scores["abalone"].tolist() == [0.6, 0.3]
    assert scores["banana"].tolist() == [80, 81]


def test_the_best_of_three_needs_all_three():
    scores = {
        ("churn", "lightgbm"): [90, 91],
        ("churn", "xgboost"): [95, 93],
        ("churn", "catboost"): [94],  # the second seed is not measured yet
        ("banana", "lightgbm"): [80, 81],
        ("banana", "xgboost"): [80, 81],
    }
    found = comparison.BEST_OF_THREE.scores(comparison.by_method(_frame(scores)))
    assert found.to_dict() == {("churn", 0): 95}


def test_margins_are_taken_split_by_split():
    scores = {
        ("churn", "64kB"): [91, 95],
        ("churn", "lightgbm"): [90, 91, 99],
        ("banana", "64kB"): [88.1],
        ("banana", "lightgbm"): [88],
        ("car", "64kB"): [90],
        ("car", "lightgbm"): [93],
        ("abalone", "64kB"): [0.4, 0.1],
        ("abalone", "lightgbm"): [0.4, 0.4],
        ("sml", "64kB"): [0.101],
        ("sml", "lightgbm"): [0.1],
    }
    lines = {tuple(line[:2]): line for line in _lines(summaries.against_lightgbm(_frame(scores)))}
    assert set(lines) == {("64 kB", group) for group in ("all", "design", "others")}
    points = ["−0.13", "+0.10", "−3.00 (car)", "1, 1, 1"]
    ratios = ["0.711", "0.755", "1.010 (sml)", "1, 1, 0"]
    assert lines["64 kB", "all"][2:] == ["5", *points, *ratios]
    assert lines["64 kB", "design"][2:7] == ["2", "+2.50", "+2.50", "+2.50 (churn)", "1, 0, 0"]
    assert lines["64 kB", "others"][2] == "3"


def test_design_tables_are_18_of_the_tables():
    assert len(set(comparison.DESIGN)) == 18
    assert set(comparison.DESIGN) <= set(TABLES)
    assert set(fits.LARGEST) <= set(TABLES)
    assert len(fits.LARGEST) == 8


def test_rows_without_a_twin():
    rows = [
        _fit("wine_quality_white", "64kB", 0, 60.0, new_score=55.0),
        _fit("wine_quality_white", "lightgbm", 0, 66.0, new_score=56.0),
    ]
    frame = records.frame(rows, fits.TableFit)
    lines = _lines(summaries.twins(frame))
    assert [line[:4] for line in lines] == [
        ["wine_quality_white", "20 %", "all", "60.00"],
        ["wine_quality_white", "20 %", "without a twin", "55.00"],
    ]
    assert _lines(summaries.new_rows(frame))[0][:3] == ["64 kB", "1", "−1.00"]


def test_tables_of_all_rows_hold_only_those_fits():
    capped = _frame({("adult", "64kB"): [80], ("adult", "lightgbm"): [90]})
    assert _lines(summaries.all_rows(capped)) == []
    full = _frame(
        {
            ("adult", "64kB"): [88],
            ("adult", "lightgbm"): [87],
            ("fried", "64kB"): [0.2],
            ("fried", "lightgbm"): [0.25],
        },
        mode="all",
    )
    found = pd.concat([capped, full])
    assert _lines(summaries.all_rows(found))[0][:4] == ["64 kB", "LightGBM", "2", "+1.00"]
    scores = {line[0]: line[3] for line in _lines(summaries.all_rows_tables(found))}
    assert scores == {"adult *": "88.00", "fried": "0.200"}
    assert [line[3] for line in _lines(summaries.classification(found))] == ["80.00"]


def test_few_rows_compare_with_the_unrefined_model():
    scores = {("churn", "64kB"): [90], ("churn", "unrefined"): [88], ("churn", "lightgbm"): [91]}
    found = pd.concat([_frame(scores, mode="few"), _frame({("churn", "64kB"): [1]})])
    lines = [line[:4] for line in _lines(summaries.few_rows(found))]
    assert lines == [
        ["64 kB", "the unrefined model", "1", "+2.00"],
        ["64 kB", "LightGBM", "1", "−1.00"],
        ["64 kB, unrefined", "LightGBM", "1", "−3.00"],
    ]


def test_times_are_compared_with_lightgbm_table_by_table():
    timed = pd.concat(
        [
            _frame({("wall_robot", "64kB"): [90], ("cpu_act", "64kB"): [0.1]}, fit_cpu_seconds=6.0),
            _frame({("wall_robot", "lightgbm"): [90]}, fit_cpu_seconds=2.0),
            _frame({("cpu_act", "lightgbm"): [0.1]}, fit_cpu_seconds=0.5),
        ]
    )
    lines = {line[0]: line[1:] for line in _lines(summaries.times(timed))}
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
    assert {key[0] for key in keys} == {"all"}
    installed = [name for name, method in seconds.METHODS.items() if method.installed]
    assert [key[2] for key in keys] == installed * 4
    assert [key[3] for key in keys] == sorted(key[3] for key in keys)


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
    assert _lines(summaries.agreement(frame)) == [
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
    assert _lines(summaries.csv(frame)) == [expected]
    unfinished = frame[frame["pipeline"] != csv_files.RAW]
    assert _lines(summaries.csv(unfinished)) == [["churn", "–", "quantile, target", "91.00", "–"]]


# -- the page ------------------------------------------------------------------------------------


def _invent(folder, methods, tables):
    rng = np.random.default_rng(0)
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    for file, own in ((fits.PEERS_FILE, peers.METHODS), (fits.OURS_FILE, ours.METHODS)):
        path = folder / "tables" / file
        records.begin(path, fits.TableFit, known | {"threads": 1})
        for table in tables:
            for method in (name for name in own if name in methods):
                for seed in range(2):
                    low, high = (0.2, 0.4) if TABLES[table].regression else (80, 90)
                    for mode in ("capped", "all") if table in fits.LARGEST else ("capped",):
                        score = rng.uniform(low, high)
                        records.append(path, _fit(table, method, seed, score, mode=mode))


@pytest.mark.parametrize("methods", [(*ours.METHODS, *peers.METHODS), tuple(peers.METHODS)])
def test_the_page_of_all_methods_and_of_an_unfinished_run(methods, tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(tmp_path, methods, ("churn", "adult", "abalone", "fried"))
    parts = page.parts(tmp_path)
    for name, text in parts.items():
        assert not {"nan", "None", "<NA>"} & set(text.replace("|", " ").split()), name
    assert len(_lines(parts["classification"])) == len(_lines(parts["regression"])) == 2
    assert len(_lines(parts["sizes"])) == len(methods)
    page.draw(tmp_path, tmp_path)
    assert [p.name for p in (tmp_path / "results" / "figures").iterdir()] == ["tables.png"]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no results")
def test_no_committed_model_exceeds_its_budget():
    for row in records.read(RESULTS / "tables" / fits.OURS_FILE, fits.TableFit):
        assert row.bytes <= KILOBYTES[row.method] * 2**10, row.key


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
