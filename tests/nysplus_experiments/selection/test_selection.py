"""The measurements of landmark selection: rows of a trial, plans, runs that resume, tables."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus.landmarks import SELECTORS
from nysplus_experiments.harness import problems, records
from nysplus_experiments.harness.bench import RESULTS, BenchError, BenchOptions
from nysplus_experiments.harness.datasets import DatasetNotFound
from nysplus_experiments.harness.problems import SOURCES, load_problem
from nysplus_experiments.selection import (
    STEPS,
    ablation,
    calibration,
    curve,
    gamma,
    metric,
    page,
    selectors,
)
from nysplus_experiments.selection.comparison import WIDTHS

FILES = {
    selectors: selectors.SelectionFit,
    gamma: gamma.WidthFit,
    metric: metric.MetricFit,
    ablation: ablation.AblationFit,
    calibration: calibration.Calibration,
    curve: curve.CurvePoint,
}


def _options(tmp_path, **extra):
    return BenchOptions("selection", tmp_path, smoke=True, extra=extra)


# -- runs ----------------------------------------------------------------------------------------


def _run(tmp_path):
    chosen = {"workers": "0", "widths": "scale,4 scale", "selectors": "uniform,kmeans"}
    options = _options(tmp_path, **chosen)
    STEPS["selectors"](options)
    return options.path("selection.csv")


def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    path = _run(tmp_path)
    fits = records.read(path, selectors.SelectionFit)
    assert {(fit.width, fit.selector) for fit in fits} == {
        (width, rule) for width in ("scale", "4 scale") for rule in ("uniform", "kmeans")
    }
    assert all(80 < fit.accuracy < 100 and fit.rmse is None for fit in fits if fit.width == "scale")
    widths = {fit.width: fit.gamma for fit in fits}
    assert widths["4 scale"] == pytest.approx(4 * widths["scale"])

    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    asked = []
    run_fit = selectors.run_fit
    monkeypatch.setattr(selectors, "run_fit", lambda *key: asked.append(key) or run_fit(*key))
    _run(tmp_path)
    assert asked == [fits[-1].key]
    again = records.read(path, selectors.SelectionFit)
    assert [(fit.key, fit.accuracy) for fit in again] == [(fit.key, fit.accuracy) for fit in fits]


def test_a_rule_that_fails_is_reported_and_leaves_no_row(tmp_path, monkeypatch, capsys):
    def fail(model, problem):
        if model.selection == "kmeans":
            raise ValueError("no centroids today")
        return predict(model, problem)

    predict = problems.fit_and_predict
    monkeypatch.setattr(problems, "fit_and_predict", fail)
    with pytest.raises(SystemExit, match="2 measurements failed"):
        _run(tmp_path)
    assert capsys.readouterr().out.count("ValueError: no centroids today") == 2
    fits = records.read(tmp_path / "selection" / "selection.csv", selectors.SelectionFit)
    assert {fit.selector for fit in fits} == {"uniform"}


@pytest.mark.slow
def test_worker_processes_share_the_fits(tmp_path):
    STEPS["selectors"](_options(tmp_path, workers="1", widths="scale", selectors="uniform"))
    fits = records.read(tmp_path / "selection" / "selection.csv", selectors.SelectionFit)
    assert [fit.key for fit in fits] == [("digits", 20, "scale", "uniform", 0)]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["gamma", "ablation", "calibration"])
def test_a_step_measures_what_its_file_lacks(tmp_path, monkeypatch, capsys, step):
    monkeypatch.setattr(gamma, "GRID_POWERS", range(2))
    monkeypatch.setattr(gamma, "GRID_FOLDS", 2)
    monkeypatch.setattr(calibration, "LANDMARKS", 20)
    module = {"gamma": gamma, "ablation": ablation, "calibration": calibration}[step]
    options = _options(tmp_path)
    STEPS[step](options)
    first = records.read(options.path(module.FILE), FILES[module])
    assert len({row.key for row in first}) == len(first) > 2
    assert all(row.accuracy > 50 for row in first)
    capsys.readouterr()
    STEPS[step](options)
    assert capsys.readouterr().out == ""
    assert records.read(options.path(module.FILE), FILES[module]) == first


def test_the_curve_is_recorded_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(curve, "SERIES", {"doubling": (10, 20)})
    options = _options(tmp_path)
    STEPS["curve"](options)
    points = records.read(options.path(curve.FILE), curve.CurvePoint)
    assert [point.n for point in points] == [10, 20]
    assert {point.key for point in points} == {("doubling", "digits", 0)}


def test_unknown_options_are_rejected(tmp_path):
    with pytest.raises(BenchError, match="colour"):
        STEPS["gamma"](_options(tmp_path, colour="red"))
    with pytest.raises(BenchError, match="'iris' is unknown"):
        STEPS["gamma"](BenchOptions("selection", tmp_path, datasets=("iris",)))


# -- plans and rows ------------------------------------------------------------------------------


def test_the_order_keeps_a_partial_file_balanced():
    rules = selectors.selectors(regression=False)
    keys = list(selectors.plan(("usps", "kin40k"), (20, 100), ("scale",), rules, 2))
    places = [(trial, n) for _, n, _, _, trial in keys]
    assert places == sorted(places)
    assert len(set(keys)) == len(keys)
    ours = {selector for dataset, _, _, selector, _ in keys if dataset == "kin40k"}
    assert {"uniform", "kmeans", "auto"} <= ours
    assert not {"negative-margin", "support-centroids"} & ours


def test_rules_for_classes_and_for_regression():
    classes, regression = selectors.selectors(False), selectors.selectors(True)
    assert classes[-1] == regression[-1] == "auto"
    assert "negative-margin" in classes
    assert "residual" not in classes
    assert set(classes) | set(regression) == set(SELECTORS) | {"auto"}


def test_rows_of_a_trial(tmp_path, monkeypatch):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(3, 9, size=(90, 4)).astype(np.float32), np.arange(90) % 3
    np.savez(tmp_path / "magic_gamma.npz", X=X, y=y)
    np.savez(tmp_path / "kin40k_regression.npz", X=X, y=y.astype(np.float32))
    np.savez(tmp_path / "a9a.npz", X_train=X[:60], y_train=y[:60], X_test=X[60:], y_test=y[60:])
    monkeypatch.setenv("NYSPLUS_DATA", str(tmp_path))
    load_problem.cache_clear()
    try:
        first, second = (load_problem("magic", trial, 40, 20) for trial in (0, 1))
        public = load_problem("a9a", 0, 40, 20)
        regression = load_problem("kin40k", 0)
        with pytest.raises(DatasetNotFound, match="NYSPLUS_DATA"):
            load_problem("susy", 0)
    finally:
        load_problem.cache_clear()
    assert first.X.shape == (40, 4)
    assert first.X_test.shape == (20, 4)
    assert first.X.dtype == np.float64
    assert not np.array_equal(first.X, second.X)
    assert first.X.min() >= 0
    assert first.X.max() <= 1
    assert first.scale == pytest.approx(1 / (4 * first.X.var()))
    scaled = (X[60:] - X[:60].min(0)) / np.ptp(X[:60], axis=0)
    assert all(np.isclose(row, scaled, atol=1e-6).all(axis=1).any() for row in public.X_test)
    np.testing.assert_allclose(regression.X.mean(axis=0), 0, atol=1e-9)
    assert regression.y.std() == pytest.approx(1)


def test_five_features_decide():
    from sklearn.feature_selection import mutual_info_classif
    from sklearn.tree import DecisionTreeClassifier

    problem = metric.sparse_problem(0, rows=(3000, 100))
    assert problem.X.shape == (3000, 20)
    assert problem.X_test.shape == (100, 20)
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0).fit(problem.X, problem.y)
    assert set(np.argsort(tree.feature_importances_)[-5:]) == set(range(5))
    assert mutual_info_classif(problem.X, problem.y, random_state=0)[5:].max() < 0.05


def test_a_metric_is_measured_on_coded_classes():
    digits = load_problem("digits", 0, 600, 100)
    accuracy, seconds, n_bytes = metric.measure(digits, "no metric", 0)
    assert accuracy > 90
    assert seconds > 0
    assert n_bytes > 0


def test_the_calibration_error_of_known_probabilities():
    codes = np.tile([0, 1], 150)
    sure = np.eye(2)[codes]
    assert calibration.calibration_error(sure, codes) == 0
    assert calibration.calibration_error(sure[:, ::-1], codes) == pytest.approx(1)
    half = np.full((300, 2), 0.5)
    assert calibration.calibration_error(half, codes) == pytest.approx(0, abs=1e-12)


# -- tables --------------------------------------------------------------------------------------


def test_search_times_are_paired():
    rows = (
        gamma.WidthFit("usps", 100, trial, way, 90.0, seconds, 0.1)
        for trial, times in enumerate([(1.0, 20.0), (2.0, 30.0)])
        for way, seconds in zip(("auto", "grid"), times, strict=True)
    )
    fits = records.frame(rows, gamma.WidthFit)
    assert sorted(gamma.search_times(fits)) == [15.0, 20.0]


def _invent(folder, trials):
    """Write files of invented fits in which "auto" is ahead by two points."""
    rng = np.random.RandomState(0)
    rows = {module: [] for module in FILES}
    for dataset in ("usps", "ijcnn1", "ijcnn1-resplit", "covtype", "kin40k"):
        regression = SOURCES[dataset].regression
        rules = ("auto", "kmeans", "uniform") + (() if regression else ("negative-margin",))
        for key in selectors.plan([dataset], (20, 100), WIDTHS, rules, trials):
            score = 80 + rng.normal(scale=0.1) + 2 * (key[3] == "auto")
            scores = (None, 1 / score) if regression else (score, None)
            rows[selectors].append(selectors.SelectionFit(*key, *scores, 1.0, 0.1, 1e-5))
    for key in gamma.plan(gamma.DATASETS[:2], (100,), trials):
        rows[gamma].append(gamma.WidthFit(*key, 80 + rng.normal(), 1.0, 0.1))
    for key in metric.plan(metric.DATASETS[-2:], trials):
        rows[metric].append(metric.MetricFit(*key, 80 + rng.normal(), 1.0, 2000))
    for key in ablation.plan(ablation.DATASETS[:2], (20,), trials):
        rows[ablation].append(ablation.AblationFit(*key, 80 + rng.normal(), 1.0))
    for trial in range(trials):
        for system in calibration.SYSTEMS:
            numbers = (10, 10, 4, 2, 1.0, 80 + rng.normal(), 0.5, 0.2, 0.1, 1)
            rows[calibration].append(calibration.Calibration("usps", system, trial, *numbers))
        for series, sizes in curve.SERIES.items():
            for n in sizes:
                columns = (series, "usps", 10, trial, n, 0.8, 0.8, 0.01, 1.0, 2.0)
                rows[curve].append(curve.CurvePoint(*columns))
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    for module, own in rows.items():
        path = folder / "selection" / module.FILE
        records.begin(path, FILES[module], known)
        for row in own:
            records.append(path, row)


@pytest.mark.parametrize("trials", [1, 3])
def test_tables_of_few_fits(tmp_path, monkeypatch, trials):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(tmp_path, trials)
    parts = page.parts(tmp_path)
    assert all(text and "nan" not in text for text in parts.values())
    first = parts["summary"].splitlines()[2]
    assert first.startswith("| `auto` |")
    assert ("[" in first) == (trials > 1)
    assert "IJCNN, public split" not in parts["datasets"]
    assert "IJCNN, public split" in parts["cells"]
    assert parts["gamma"].splitlines()[-1].startswith("| **all** |")
    page.draw(tmp_path, tmp_path)
    figures = sorted(path.name for path in (tmp_path / "results" / "figures").iterdir())
    assert figures == ["which_landmarks_gain.png", "which_landmarks_loss.png"]


def test_a_page_without_fits_says_what_to_run(tmp_path):
    with pytest.raises(records.ResultsError, match="nysplus bench selection"):
        page.parts(tmp_path)


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no results")
def test_the_committed_runs_are_complete():
    compared = page.comparisons(RESULTS / "selection")[1]
    assert (len(compared.cells), len(compared.rules), len(compared.trials)) == (108, 9, 5)
