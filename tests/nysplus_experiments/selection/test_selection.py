"""The benchmark of landmark selection: its runs, its statistics, and the page made from them."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "which_landmarks.md"
FIGURES = ("which_landmarks_gain.png", "which_landmarks_loss.png")

pytestmark = pytest.mark.skipif(
    not BENCHMARKS.exists(), reason="an installed package has no benchmarks"
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def selection():
    return importlib.import_module("selection")


@pytest.fixture
def tables():
    return importlib.import_module("selection_tables")


@pytest.fixture
def tuning():
    return importlib.import_module("tuning")


@pytest.fixture
def page():
    return importlib.import_module("selection_page")


# -- runs ----------------------------------------------------------------------------------------


def _options(selection, tmp_path):
    return selection.parse(
        [
            *("--smoke", "--workers", "1", "--widths", "scale", "4 scale"),
            *("--selectors", "uniform", "kmeans", "--out", str(tmp_path / "selection.csv")),
        ]
    )


def test_a_run_goes_on_where_it_stopped(selection, tmp_path, monkeypatch):
    options = _options(selection, tmp_path)
    assert selection.run(options) == 0
    fits = selection.csv_rows.read(options.out, selection.SelectionFit)
    assert {(fit.width, fit.selector) for fit in fits} == {
        (width, rule) for width in ("scale", "4 scale") for rule in ("uniform", "kmeans")
    }
    assert all(80 < fit.accuracy < 100 and fit.rmse is None for fit in fits if fit.width == "scale")
    widths = {fit.width: fit.gamma for fit in fits}
    assert widths["4 scale"] == pytest.approx(4 * widths["scale"])

    lines = options.out.read_text().splitlines(keepends=True)
    options.out.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    asked = []
    run_fit = selection.run_fit
    monkeypatch.setattr(selection, "run_fit", lambda key: asked.append(key) or run_fit(key))
    selection.run(options)
    assert asked == [fits[-1].key]
    again = selection.csv_rows.read(options.out, selection.SelectionFit)
    assert [fit.key for fit in again] == [fit.key for fit in fits]
    assert [fit.accuracy for fit in again] == [fit.accuracy for fit in fits]


def test_a_rule_that_fails_is_told_and_leaves_no_row(selection, tmp_path, monkeypatch, capsys):
    options = _options(selection, tmp_path)

    def fail(model, problem):
        if model.selection == "kmeans":
            raise ValueError("no centroids today")
        return predict(model, problem)

    predict = selection.fit_and_predict
    monkeypatch.setattr(selection, "fit_and_predict", fail)
    assert selection.run(options) == 2
    assert capsys.readouterr().out.count("ValueError: no centroids today") == 2
    fits = selection.csv_rows.read(options.out, selection.SelectionFit)
    assert {fit.selector for fit in fits} == {"uniform"}


def test_the_order_keeps_a_partial_file_balanced(selection):
    rules = selection.selectors(regression=False)
    keys = list(selection.plan(("usps", "kin40k"), (20, 100), ("scale",), rules, 2))
    places = [(key.trial, key.n) for key in keys]
    assert places == sorted(places)
    assert len(set(keys)) == len(keys)
    ours = {key.selector for key in keys if key.dataset == "kin40k"}
    assert {"uniform", "kmeans", "auto"} <= ours
    assert not {"negative-margin", "support-centroids"} & ours


def test_rules_for_classes_and_for_numbers(selection):
    classes, numbers = selection.selectors(False), selection.selectors(True)
    assert classes[-1] == numbers[-1] == "auto"
    assert "negative-margin" in classes
    assert "residual" not in classes
    known = set(selection.SELECTORS) | {"auto"}
    assert set(classes) | set(numbers) == known


def test_rows_of_a_trial(selection, tmp_path, monkeypatch):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(3, 9, size=(90, 4)).astype(np.float32), np.arange(90) % 3
    np.savez(tmp_path / "magic_gamma.npz", X=X, y=y)
    np.savez(tmp_path / "kin40k_regression.npz", X=X, y=y.astype(np.float32))
    np.savez(tmp_path / "a9a.npz", X_train=X[:60], y_train=y[:60], X_test=X[60:], y_test=y[60:])
    monkeypatch.setenv("NYSPLUS_DATA", str(tmp_path))
    selection.load_problem.cache_clear()
    try:
        first, second = (selection.load_problem("magic", trial, 40, 20) for trial in (0, 1))
        public = selection.load_problem("a9a", 0, 40, 20)
        numbers = selection.load_problem("kin40k", 0)
        with pytest.raises(selection.DatasetNotFound, match="NYSPLUS_DATA"):
            selection.load_problem("susy", 0)
    finally:
        selection.load_problem.cache_clear()
    assert first.X.shape == (40, 4)
    assert first.X_test.shape == (20, 4)
    assert first.X.dtype == np.float64
    assert not np.array_equal(first.X, second.X)
    assert first.X.min() >= 0
    assert first.X.max() <= 1
    assert first.scale == pytest.approx(1 / (4 * first.X.var()))
    scaled = (X[60:] - X[:60].min(0)) / np.ptp(X[:60], axis=0)
    assert all(np.isclose(row, scaled, atol=1e-6).all(axis=1).any() for row in public.X_test)
    np.testing.assert_allclose(numbers.X.mean(axis=0), 0, atol=1e-9)
    assert numbers.y.std() == pytest.approx(1)


# -- statistics ----------------------------------------------------------------------------------

# cells × rules × trials
VALUES = np.array(
    [
        [[90.0, 92.0], [88.0, 88.0], [80.0, 82.0]],
        [[70.0, 70.0], [75.0, 79.0], [60.0, 64.0]],
        [[50.0, 52.0], [51.0, 51.0], [51.0, 51.0]],
    ]
)
RULES = ("auto", "kmeans", "uniform")


def _comparison(tables, values=VALUES, rules=RULES):
    cells = [("usps", 20), ("usps", 100), ("letter", 20), ("letter", 100)]
    return tables.compare(
        tables.Observation(tables.Cell(*cells[c], "scale"), rules[r], t, value)
        for (c, r, t), value in np.ndenumerate(values)
    )


def test_losses_ranks_and_gains(tables):
    compared = _comparison(tables)
    assert compared.rules == RULES
    np.testing.assert_array_equal(compared.values, VALUES)
    # best: auto (91), kmeans (77), all equal (51)
    np.testing.assert_allclose(compared.losses, [[0, 3, 10], [7, 0, 15], [0, 0, 0]])
    assert compared.ranked() == ["kmeans", "auto", "uniform"]
    assert compared.worst("uniform") == (15.0, tables.Cell("usps", 100, "scale"))
    assert [compared.mean_rank(rule) for rule in RULES] == pytest.approx(
        [(1 + 2 + 2) / 3, (2 + 1 + 2) / 3, (3 + 3 + 2) / 3]
    )
    assert compared.mean("auto").mean == pytest.approx((91 + 70 + 51) / 3)
    # by trial: (10 + 10 − 1)/3 and (10 + 6 + 1)/3
    gain = compared.gain("auto", "uniform")
    assert gain.mean == pytest.approx(6)
    assert gain.high - gain.low == pytest.approx(2 * 12.7062047 / 3, rel=1e-6)
    assert compared.mean_loss("uniform").mean == pytest.approx(25 / 3)


def test_regret_chooses_on_other_trials(tables):
    values = np.array([[[90.0, 80.0], [80.0, 90.0]]])  # each is best in one trial
    compared = _comparison(tables, values, ("auto", "uniform"))
    assert compared.mean_loss("auto").mean == 0
    # trial 0 is judged by the best of trial 1, uniform: 80 − 90; and the other way round
    assert compared.mean_regret("auto").mean == pytest.approx((80 - 90 + 80 - 80) / 2)


def test_datasets_are_drawn_whole(tables):
    compared = _comparison(tables)
    found = compared.gain_over_datasets("auto", "uniform")
    # USPS alone: (10 + 8)/2; Letter alone: 0; a draw of both: their cells' mean
    assert (found.low, found.high) == (0, 9)
    assert found.mean == pytest.approx(6)
    assert found.trials == 2
    alone = compared.where(lambda cell: cell.dataset == "usps")
    assert not alone.gain_over_datasets("auto", "uniform").has_interval


def test_clear_differences(tables):
    rng = np.random.RandomState(0)
    noise = rng.normal(scale=0.1, size=(3, 2, 5))
    values = 80 + noise + np.array([[[1.0], [0]], [[-1.0], [0]], [[0], [0]]])
    compared = _comparison(tables, values, ("auto", "uniform"))
    above, below = compared.clear("auto", "uniform")
    assert above == [compared.cells[0]]
    assert below == [compared.cells[1]]


def test_a_run_that_was_stopped(tables):
    cells = [tables.Cell("usps", n, "scale") for n in (20, 100, 500)]
    observations = [tables.Observation(cell, rule, 0, 1.0) for cell in cells for rule in "ab"]
    observations.pop()  # of the largest cell one rule is missing
    observations += [tables.Observation(cells[0], rule, 1, 1.0) for rule in "ab"]
    compared = tables.compare(observations)
    assert compared.cells == tuple(cells[:2])
    assert compared.trials == (0,)
    observations += [tables.Observation(cells[1], rule, 1, 1.0) for rule in "ab"]
    assert tables.compare(observations).trials == (0, 1)
    assert tables.compare([]) is None


# -- the page ------------------------------------------------------------------------------------


def _invent(selection, tuning, folder, trials, best="auto"):
    """Write files of invented fits in which one rule is ahead by two points."""
    rng = np.random.RandomState(0)
    rows = []
    for dataset in ("usps", "ijcnn1", "ijcnn1-resplit", "covtype", "kin40k"):
        regression = selection.SOURCES[dataset].regression
        rules = ("auto", "kmeans", "uniform") + (() if regression else ("negative-margin",))
        for key in selection.plan([dataset], (20, 100), selection.WIDTHS, rules, trials):
            score = 80 + rng.normal(scale=0.1) + 2 * (key.selector == best)
            scores = (None, 1 / score) if regression else (score, None)
            rows.append(selection.SelectionFit(*key, *scores, 1.0, 0.1, 1e-5))
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    known |= {"max_train_rows": 20_000, "max_test_rows": 10_000}
    (folder / "selection.json").write_text(json.dumps(known))
    _write(folder / "selection.csv", rows)
    columns = {"gamma": (1.0, 0.1), "metric": (1.0, 2000), "ablation": (1.0,)}
    for name, part in tuning.PARTS.items():
        plan = part.plan(part.datasets[:2], trials)
        made = [part.row_class(*key, 80 + rng.normal(), *columns[name]) for key in plan]
        _write(tuning.csv_path(name, folder), made)


def _write(path, rows):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(rows[0])])
        writer.writerows(["" if x is None else x for x in astuple(row)] for row in rows)


@pytest.mark.parametrize("trials", [1, 3])
def test_a_page_of_few_fits(selection, tuning, page, tmp_path, trials):
    _invent(selection, tuning, tmp_path, trials)
    text = page.write_page(tmp_path, tmp_path).read_text()
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == list(FIGURES)
    assert "nan" not in text
    assert "$" not in text
    assert 'Leave `selection="auto"`: of all rules it has the smallest mean loss.' in text
    for title in ("Regression", "A learned metric", "What each idea in `auto` brings"):
        assert f"\n## {title}\n" in text
    # the public split is shown apart: 3 datasets × 2 sizes × 3 widths are compared
    assert "Over 18 cells (3 datasets, 2 sizes, 3 widths" in text
    assert "IJCNN, public split" not in text.split("## All cells")[0]


def test_a_page_without_the_other_files(selection, tuning, page, tmp_path):
    _invent(selection, tuning, tmp_path, 1)
    for name in tuning.PARTS:
        tuning.csv_path(name, tmp_path).unlink()
    text = page.write_page(tmp_path, tmp_path).read_text()
    assert "## A learned metric" not in text
    assert "grid search" not in text
    assert "\n## Regression\n" in text


def test_the_advice_follows_the_numbers(tables, page):
    ahead = _comparison(tables, np.array([[[80.0, 80.1, 80.2], [82.0, 82.2, 82.1]]]), RULES[:2])
    assert "try `kmeans` too" in page.advice(ahead)
    noisy = _comparison(tables, np.array([[[80.0, 85.0, 75.0], [82.0, 74.0, 85.0]]]), RULES[:2])
    assert "within the noise" in page.advice(noisy)
    behind = tables.Estimate(-0.5, -0.7, -0.3, 5)
    assert page.distance(behind) == "0.50 [0.30, 0.70] points below"


def test_times_are_ratios(tables):
    # −log seconds: kmeans takes twice as long as uniform
    values = -np.log(np.array([[[2.0, 4.0], [1.0, 2.0]]]))
    lines = tables.seconds(_comparison(tables, values, ("kmeans", "uniform")))
    assert lines[2] == "| `uniform` | 1.4 s |"
    assert lines[3] == "| `kmeans` | 2.00 [2.00, 2.00] |"


@pytest.mark.skipif(
    not (BENCHMARKS / "results" / "selection.csv").exists(), reason="nothing is measured yet"
)
def test_the_page_is_made_from_the_measurements(tmp_path):
    script = BENCHMARKS / "selection_page.py"
    subprocess.run([sys.executable, script, "--docs", tmp_path], check=True, capture_output=True)
    assert (tmp_path / PAGE.name).read_text() == PAGE.read_text()
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == list(FIGURES)
    assert all((PAGE.parent / "figures" / name).exists() for name in FIGURES)


# -- tuning --------------------------------------------------------------------------------------


def test_search_times_are_paired(tuning):
    fits = [
        tuning.WidthFit("usps", 100, trial, way, 90.0, seconds, 0.1)
        for trial, times in enumerate([(1.0, 20.0), (2.0, 30.0)])
        for way, seconds in zip(("auto", "grid"), times, strict=True)
    ]
    assert sorted(tuning.search_times(fits)) == [15.0, 20.0]
    assert tuning.search_times(fits[:1]) == []


def test_five_features_decide(tuning, monkeypatch):
    monkeypatch.setattr(tuning, "SPARSE_ROWS", (3000, 100))
    problem = tuning.sparse_problem(0)
    assert problem.X.shape == (3000, 20)
    assert problem.X_test.shape == (100, 20)
    from sklearn.feature_selection import mutual_info_classif
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0).fit(problem.X, problem.y)
    assert set(np.argsort(tree.feature_importances_)[-5:]) == set(range(5))
    assert mutual_info_classif(problem.X, problem.y, random_state=0)[5:].max() < 0.05


def test_the_parts_of_tuning_resume(tuning, tmp_path, capsys):
    asked = []

    def measure(dataset, system, trial):
        asked.append((dataset, system, trial))
        if system == "full":
            raise ValueError("no metric today")
        return tuning.MetricFit(dataset, system, trial, 90.0, 1.0, 100)

    part = tuning.Part(tuning.MetricFit, (tuning.SPARSE,), 1, tuning.plan_metrics, measure)
    options = tuning.parse(
        ["metric", "--datasets", tuning.SPARSE, "--trials", "1", "--out", str(tmp_path / "m.csv")]
    )
    assert tuning.run(part, options) == 1
    assert "no metric today" in capsys.readouterr().out
    first = len(asked)
    assert tuning.run(part, options) == 1
    assert asked[first:] == [(tuning.SPARSE, "full", 0)]
