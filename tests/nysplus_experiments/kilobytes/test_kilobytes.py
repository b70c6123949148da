"""The benchmark of compact models: its runs, its verdicts, and the page made from them."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from collections import Counter
from dataclasses import astuple, fields, replace
from pathlib import Path

import numpy as np
import pytest

from nysplus import Refinement

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "kilobytes.md"

pytestmark = pytest.mark.skipif(
    not BENCHMARKS.exists(), reason="an installed package has no benchmarks"
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def kilobytes():
    return importlib.import_module("kilobytes")


@pytest.fixture
def tables():
    return importlib.import_module("kilobytes_tables")


@pytest.fixture
def page():
    return importlib.import_module("kilobytes_page")


# -- runs ----------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_stopped(kilobytes, tmp_path, monkeypatch):
    options = kilobytes.parse(["--smoke", "--out", str(tmp_path / "kilobytes.csv")])
    monkeypatch.setattr(kilobytes, "warm_up", lambda: None)
    assert kilobytes.run(options) == 0
    fits = kilobytes.csv_rows.read(options.out, kilobytes.CompactFit)
    assert [fit.key for fit in fits] == list(kilobytes.SMOKE_PLAN)
    by_kind = {(fit.part, fit.method): fit for fit in fits}
    refined = by_kind["targets", "refined"]
    assert (refined.landmarks, refined.rows, refined.test_rows) == (20, 1297, 500)
    assert refined.refined in (0, 1)
    assert refined.storage == "float32"
    drawn = by_kind["draws", "refined"]
    assert drawn.rows == kilobytes.DRAW_ROWS
    svc = by_kind["svc", "sklearn-svc"]
    assert svc.landmarks is svc.rank is svc.refined is None
    assert svc.bytes > 10 * refined.bytes
    assert all(80 < fit.accuracy <= 100 and fit.rmse is None for fit in fits)
    assert all(fit.fit_seconds > 0 < fit.predict_seconds for fit in fits)

    lines = options.out.read_text().splitlines(keepends=True)
    options.out.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    asked = []
    run_fit = kilobytes.run_fit
    monkeypatch.setattr(kilobytes, "run_fit", lambda key: asked.append(key) or run_fit(key))
    kilobytes.run(options)
    assert asked == [fits[-1].key]
    again = kilobytes.csv_rows.read(options.out, kilobytes.CompactFit)
    assert [(fit.key, fit.accuracy) for fit in again] == [(fit.key, fit.accuracy) for fit in fits]


def test_a_fit_that_fails_is_told_and_leaves_no_row(kilobytes, tmp_path, monkeypatch, capsys):
    def fail(key):
        raise ValueError(f"no {key.method} today")

    options = kilobytes.parse(["--smoke", "--out", str(tmp_path / "kilobytes.csv")])
    monkeypatch.setattr(kilobytes, "run_fit", fail)
    monkeypatch.setattr(kilobytes, "warm_up", lambda: None)
    assert kilobytes.run(options) == len(kilobytes.SMOKE_PLAN)
    assert "ValueError: no sklearn-svc today" in capsys.readouterr().out
    assert kilobytes.csv_rows.read(options.out, kilobytes.CompactFit) == []


def _everything(kilobytes, monkeypatch, seeds=5):
    """Return the whole plan, whatever is installed."""
    everywhere = {name: replace(system, requires="") for name, system in kilobytes.PEERS.items()}
    monkeypatch.setattr(kilobytes, "PEERS", everywhere)
    return list(kilobytes.plan(tuple(kilobytes.PARTS), kilobytes.DATASETS, seeds))


def test_the_plan(kilobytes, monkeypatch):
    keys = _everything(kilobytes, monkeypatch)
    assert len(set(keys)) == len(keys)
    order = list(dict.fromkeys(key.part for key in keys))
    assert order == list(kilobytes.PARTS)
    assert order[0] == "targets"
    refined = Counter(key[1:4] for key in keys if key.part == "targets" and key.method == "refined")
    assert refined == {(t.dataset, "refined", t.setting): 5 for t in kilobytes.TARGETS}
    # what the figure shows is measured once: as a target, or for a curve
    shown = [key[1:] for key in keys if key.part in ("targets", "sizes", "peers")]
    assert len(set(shown)) == len(shown)
    for dataset in kilobytes.FIGURE_DATASETS:
        own = {key[2:4] for key in keys if key.part in ("targets", "sizes") and key[1] == dataset}
        budgets = [s for s in kilobytes.CURVES.get(dataset, kilobytes.CURVE_BUDGETS) if "B" in s]
        assert own >= {(m, b) for m in ("refined", "selected") for b in budgets}
    curves = {(key.dataset, key.seed) for key in keys if key.part == "sizes"}
    assert Counter(dataset for dataset, _ in curves) == kilobytes.CURVE_SEEDS
    machines = Counter(key.dataset for key in keys if key.method == "sklearn-svc")
    assert machines == {"usps": 5, "letter": 5, "mnist": 1, "pendigits": 1, "ijcnn1": 1}
    draws = Counter((key.dataset, key.method) for key in keys if key.part == "draws")
    assert set(draws.values()) == {20}
    assert len(draws) == 12


def test_parts_and_data_can_be_left_out(kilobytes):
    keys = list(kilobytes.plan(("sizes", "flipped"), ("letter",), 2))
    assert {(key.part, key.dataset) for key in keys} == {("flipped", "letter"), ("sizes", "letter")}
    assert {key.seed for key in keys} == {0, 1}


def test_settings_are_the_defaults(kilobytes):
    problem = kilobytes.load_problem("digits", 0)
    plain = kilobytes.NystroemClassifier().get_params()

    def changed(method, setting):
        key = kilobytes.Key("targets", "digits", method, setting, 3)
        params = kilobytes.make_model(key, problem).get_params(deep=False)
        return {name: value for name, value in params.items() if value != plain[name]}

    assert changed("selected", "7") == {"n_components": 7, "random_state": 3}
    assert changed("refined", "7") == {"n_components": 7, "random_state": 3, "refine": True}
    assert changed("quick", "7")["refine"].get_params() == Refinement(search=False).get_params()
    assert changed("refined", "4kB") == {"budget": "4kB", "random_state": 3, "refine": True}
    svc = kilobytes.make_model(kilobytes.Key("targets", "digits", "sklearn-svc", "", 0), problem)
    assert svc.C == 10
    assert svc.gamma == pytest.approx(1 / (64 * problem.X.var()))


def test_a_tenth_of_the_labels_is_wrong(kilobytes):
    codes = np.arange(1000) % 7
    wrong = kilobytes.flipped(codes, 7, seed=0)
    assert (wrong != codes).sum() == 100
    assert set(wrong) == set(range(7))
    assert not np.array_equal(wrong, kilobytes.flipped(codes, 7, seed=1))
    clean, noisy = (kilobytes.rows_of(part, "digits", 0) for part in ("targets", "flipped"))
    assert (clean.y != noisy.y).sum() == round(0.1 * len(clean.y))
    np.testing.assert_array_equal(clean.y_test, noisy.y_test)
    np.testing.assert_array_equal(clean.X, noisy.X)


def test_a_class_that_training_lacks_is_never_right(kilobytes, monkeypatch):
    monkeypatch.setattr(kilobytes, "DRAW_ROWS", 6)
    problem = kilobytes.rows_of("draws", "digits", 0)
    n_classes = len(np.unique(problem.y))
    assert set(problem.y) == set(range(n_classes))
    assert set(problem.y_test) == {-1, *range(n_classes)}


# -- verdicts ------------------------------------------------------------------------------------


def _fit(kilobytes, *key, accuracy=90.0, n_bytes=4000, fit=2.0, predict=0.1, refined=1):
    ours = key[2] in ("selected", "refined")
    regression = kilobytes.SOURCES[key[1]].regression
    return kilobytes.CompactFit(
        *key,
        *((None, accuracy / 100) if regression else (accuracy, None)),
        n_bytes,
        *((50, 8, "int8", refined) if ours else (None, None, "", None)),
        fit,
        predict,
        *(1000, 500, 2),
    )


def test_a_target_is_judged_by_the_median(kilobytes, tables):
    def verdict(accuracies, n_bytes=4096):
        fits = [
            _fit(kilobytes, "targets", "mnist", "refined", "4kB", s, accuracy=a, n_bytes=n_bytes)
            for s, a in enumerate(accuracies)
        ]
        return tables.target_verdict(88.0, fits)

    assert verdict([80.0, 88.0, 99.0]) == "met"
    assert verdict([80.0, 87.999, 99.0]) == "missed by 0.01"
    assert verdict([80.0, 86.5, 99.0]) == "missed by 1.50"
    assert verdict([99.0], n_bytes=4097) == "too large"
    assert verdict([]) == "not measured"


@pytest.mark.parametrize(
    ("svc", "behind"),
    [
        ({"accuracy": 90.0}, []),
        ({"accuracy": 90.1}, ["accuracy"]),
        ({"n_bytes": 30 * 4000 - 1}, ["bytes"]),
        ({"predict": 2.9, "fit": 1.9}, ["predict time", "fit time"]),
    ],
)
def test_everything_is_asked_of_the_svc(kilobytes, tables, svc, behind):
    theirs = {"accuracy": 89.0, "n_bytes": 30 * 4000, "predict": 3.1, "fit": 2.0} | svc
    fits = tables.Fits(
        fit
        for seed in range(3)
        for fit in (
            _fit(kilobytes, "targets", "letter", "refined", "16kB", seed),
            _fit(kilobytes, "svc", "letter", "sklearn-svc", "", seed, **theirs),
        )
    )
    ((dataset, setting, found, _),) = tables.svc_rows(fits)
    assert (dataset, setting, found) == ("letter", "16 kB", behind)
    said = "no model meets all four" if behind else "all four are met by 16 kB"
    assert tables.svc_verdict(fits) == f"Letter: {said}."


def test_boosting_is_compared_seed_by_seed(kilobytes, tables):
    def row(refined, selected, boosted):
        cells = (
            ("refined", "16kB", refined),
            ("selected", "16kB", selected),
            ("lightgbm", "", [a - 1 for a in boosted]),
            ("xgboost", "", boosted),
        )
        fits = tables.Fits(
            _fit(kilobytes, "tabular", "magic", method, setting, seed, accuracy=accuracy)
            for method, setting, values in cells
            for seed, accuracy in enumerate(values)
        )
        return tables.tabular_row(fits, "magic")

    near = row([80.0, 90.0], [79.0, 89.5], [80.4, 90.6])
    assert near[3:6] == ["+0.75 [+0.50, +1.00]", "XGBoost", "−0.50 [−0.60, −0.40]"]
    assert near[-1] == "met"
    far = row([80.0, 90.0], [80.2, 90.0], [81.0, 90.6])
    assert far[-1] == "below the unrefined model; more than 0.5 behind XGBoost"


def test_the_worst_draw_counts(kilobytes, tables, page):
    def section(losses):
        rows = []
        for seed, loss in enumerate(losses):
            for method, accuracy in (("selected", 80.0), ("refined", 80.0 - loss)):
                key = ("draws", "usps", method, kilobytes.DRAW_SETTING, seed)
                rows.append(_fit(kilobytes, *key, accuracy=accuracy, refined=seed % 2))
        return page.draws_section(tables.Fits(rows))

    assert "kept to everywhere; the worst draw of all loses 0.75 (USPS)" in section([-3, 0.75, 0.5])
    assert "| 1 of 3 | 0.75 | met |" in section([-3, 0.75, 0.5])
    assert "not kept to on USPS; the worst draw of all loses 1.25" in section([-3, 1.25])
    assert "the worst draw of all loses 0.00" in section([-3, -1])
    assert page.draws_section(tables.Fits([])) == ""


# -- the page ------------------------------------------------------------------------------------


def _invent(kilobytes, keys, folder):
    """Write a file of invented fits in which refined models gain with size."""
    rng = np.random.RandomState(0)
    rows = []
    for key in keys:
        n_bytes = {"sklearn-svc": 8e6, "lightgbm": 9e6, "xgboost": 5e6}.get(key.method)
        if key.setting.endswith("B"):
            n_bytes = 0.99 * int(key.setting[:-2]) * 2 ** (20 if "M" in key.setting else 10)
        elif key.setting:
            n_bytes = int(key.setting) * (400 if key.method == "sklearn-nystroem" else 150)
        error = {"refined": 25, "selected": 90}.get(key.method, 120) / n_bytes**0.25
        error = (0.5 if key.method == "sklearn-svc" else 1) * error
        accuracy = 100 - error * rng.uniform(0.95, 1.05)
        times = {"fit": rng.uniform(1, 2), "predict": rng.uniform(0.1, 0.2)}
        rows.append(_fit(kilobytes, *key, accuracy=accuracy, n_bytes=int(n_bytes), **times))
    with (folder / "kilobytes.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(rows[0])])
        writer.writerows(["" if x is None else x for x in astuple(row)] for row in rows)
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    (folder / "kilobytes.json").write_text(json.dumps(known | {"threads": 2}))


def test_a_page_of_all_parts(kilobytes, page, tmp_path, monkeypatch):
    _invent(kilobytes, _everything(kilobytes, monkeypatch), tmp_path)
    text = page.write_page(tmp_path, tmp_path).read_text()
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["kilobytes.png"]
    for absent in ("nan", "$", "None", "  |"):
        assert absent not in text
    for title in ("Wrong labels", "500 rows", "Regression", "What it is not best for"):
        assert f"\n## {title}\n" in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({line.count("|") for line in lines if "landmarks × rank" in line}) == 1
    assert "| not measured |" not in text


def test_a_page_of_a_run_that_was_stopped(kilobytes, page, tmp_path):
    keys = list(kilobytes.plan(("targets",), ("pendigits", "usps"), 1))
    keys += list(kilobytes.plan(("tabular",), ("magic",), 1))[:1]  # stopped before the second
    _invent(kilobytes, keys, tmp_path)
    text = page.write_page(tmp_path, tmp_path).read_text()
    assert "Of 4 accuracies that were asked for in advance" in text
    assert text.count("| not measured |") == len(kilobytes.TARGETS) - 4
    assert "Magic |" not in text
    for title in ("Wrong labels", "500 rows", "Regression"):
        assert f"## {title}" not in text


def test_a_page_of_nothing(kilobytes, page, tmp_path):
    _invent(kilobytes, kilobytes.plan(("flipped",), ("letter",), 1), tmp_path)
    with pytest.raises(SystemExit, match=r"Run benchmarks/kilobytes\.py first"):
        page.write_page(tmp_path, tmp_path)


@pytest.mark.skipif(
    not (BENCHMARKS / "results" / "kilobytes.csv").exists(), reason="nothing is measured yet"
)
def test_the_page_is_made_from_the_measurements(tmp_path):
    script = BENCHMARKS / "kilobytes_page.py"
    subprocess.run([sys.executable, script, "--docs", tmp_path], check=True, capture_output=True)
    assert (tmp_path / PAGE.name).read_text() == PAGE.read_text()
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["kilobytes.png"]
    assert (PAGE.parent / "figures" / "kilobytes.png").exists()
