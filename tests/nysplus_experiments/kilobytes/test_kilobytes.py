"""The measurements of compact models: plans, rows, runs that resume, tables, figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from nysplus import NystroemClassifier, Refinement
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import RESULTS, BenchOptions
from nysplus_experiments.harness.problems import SOURCES, load_problem
from nysplus_experiments.kilobytes import STEPS, fits, page, tables

UNITS = {"kB": 2**10, "MB": 2**20}


# -- runs ----------------------------------------------------------------------------------------


def _run(tmp_path):
    options = BenchOptions("kilobytes", tmp_path, smoke=True)
    STEPS["fits"](options)
    return options.path(fits.FILE)


@pytest.mark.slow
def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    quick = Refinement(search=False, n_epochs=5)
    monkeypatch.setattr(fits, "REFINE", {"selected": False, "refined": quick, "quick": quick})
    path = _run(tmp_path)
    rows = records.read(path, fits.CompactFit)
    assert [row.key for row in rows] == list(fits.SMOKE_PLAN)
    by_kind = {(row.part, row.method): row for row in rows}
    refined = by_kind["targets", "refined"]
    assert (refined.landmarks, refined.rows, refined.test_rows) == (20, 1297, 500)
    assert refined.refined in (0, 1)
    assert refined.storage == "float32"
    assert by_kind["draws", "refined"].rows == fits.DRAW_ROWS
    svc = by_kind["svc", "sklearn-svc"]
    assert svc.landmarks is svc.rank is svc.refined is None
    assert svc.bytes > 10 * refined.bytes
    assert all(80 < row.accuracy <= 100 and row.rmse is None for row in rows)
    assert all(row.fit_seconds > 0 < row.predict_seconds for row in rows)

    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    asked = []
    run_fit = fits.run_fit
    monkeypatch.setattr(fits, "run_fit", lambda *key: asked.append(key) or run_fit(*key))
    _run(tmp_path)
    assert asked == [rows[-1].key]
    again = records.read(path, fits.CompactFit)
    assert [(row.key, row.accuracy) for row in again] == [(row.key, row.accuracy) for row in rows]


def test_a_fit_that_fails_is_reported_and_leaves_no_row(tmp_path, monkeypatch, capsys):
    def fail(*key):
        raise ValueError(f"no {key[2]} today")

    monkeypatch.setattr(fits, "run_fit", fail)
    with pytest.raises(SystemExit, match=f"{len(fits.SMOKE_PLAN)} measurements failed"):
        _run(tmp_path)
    assert "ValueError: no sklearn-svc today" in capsys.readouterr().out
    assert records.read(tmp_path / "kilobytes" / fits.FILE, fits.CompactFit) == []


# -- plans and rows ------------------------------------------------------------------------------


def _everything(monkeypatch, seeds=5):
    """Return the whole plan, whatever is installed."""
    everywhere = {name: replace(system, requires="") for name, system in fits.PEERS.items()}
    monkeypatch.setattr(fits, "PEERS", everywhere)
    return list(fits.plan(tuple(fits.PARTS), fits.DATASETS, seeds))


def test_the_plan(monkeypatch):
    keys = _everything(monkeypatch)
    assert len(set(keys)) == len(keys)
    assert list(dict.fromkeys(key.part for key in keys)) == list(fits.PARTS)
    main = Counter(key[1:4] for key in keys if key.part == "targets")
    assert main == {
        (dataset, "refined", setting): 5
        for dataset, settings in fits.MAIN_SETTINGS.items()
        for setting in settings
    }
    # every point of the figure is measured once: for the main table, or for a curve
    shown = [key[1:] for key in keys if key.part in ("targets", "sizes", "peers")]
    assert len(set(shown)) == len(shown)
    for dataset in fits.FIGURE_DATASETS:
        own = {key[2:4] for key in keys if key.part in ("targets", "sizes") and key[1] == dataset}
        budgets = [s for s in fits.CURVES.get(dataset, fits.CURVE_SETTINGS) if "B" in s]
        assert own >= {(m, b) for m in ("refined", "selected") for b in budgets}
    curves = {(key.dataset, key.seed) for key in keys if key.part == "sizes"}
    assert Counter(dataset for dataset, _ in curves) == fits.CURVE_SEEDS
    machines = Counter(key.dataset for key in keys if key.method == "sklearn-svc")
    assert machines == {"usps": 5, "letter": 5, "mnist": 1, "pendigits": 1, "ijcnn1": 1}
    draws = Counter((key.dataset, key.method) for key in keys if key.part == "draws")
    assert set(draws.values()) == {20}
    assert len(draws) == 12


def test_parts_and_data_can_be_left_out():
    keys = list(fits.plan(("sizes", "flipped"), ("letter",), 2))
    assert {(key.part, key.dataset) for key in keys} == {("flipped", "letter"), ("sizes", "letter")}
    assert {key.seed for key in keys} == {0, 1}


def test_settings_are_the_defaults():
    problem = load_problem("digits", 0)
    plain = NystroemClassifier().get_params()

    def changed(method, setting):
        key = fits.Key("targets", "digits", method, setting, 3)
        params = fits.make_model(key, problem).get_params(deep=False)
        return {name: value for name, value in params.items() if value != plain[name]}

    assert changed("selected", "7") == {"n_components": 7, "random_state": 3}
    assert changed("refined", "7") == {"n_components": 7, "random_state": 3, "refine": True}
    assert changed("quick", "7")["refine"].get_params() == Refinement(search=False).get_params()
    assert changed("refined", "4kB") == {"budget": "4kB", "random_state": 3, "refine": True}
    svc = fits.make_model(fits.Key("targets", "digits", "sklearn-svc", "", 0), problem)
    assert svc.C == 10
    assert svc.gamma == pytest.approx(1 / (64 * problem.X.var()))


def test_a_tenth_of_the_labels_is_wrong():
    codes = np.arange(1000) % 7
    wrong = fits.flipped(codes, 7, seed=0)
    assert (wrong != codes).sum() == 100
    assert set(wrong) == set(range(7))
    assert not np.array_equal(wrong, fits.flipped(codes, 7, seed=1))
    clean, noisy = (fits.rows_of(part, "digits", 0) for part in ("targets", "flipped"))
    assert (clean.y != noisy.y).sum() == round(0.1 * len(clean.y))
    np.testing.assert_array_equal(clean.y_test, noisy.y_test)
    np.testing.assert_array_equal(clean.X, noisy.X)


def test_a_class_without_training_rows_is_never_right(monkeypatch):
    monkeypatch.setattr(fits, "DRAW_ROWS", 6)
    fits.rows_of.cache_clear()
    problem = fits.rows_of("draws", "digits", 0)
    fits.rows_of.cache_clear()
    n_classes = len(np.unique(problem.y))
    assert set(problem.y) == set(range(n_classes))
    assert set(problem.y_test) == {-1, *range(n_classes)}


# -- tables --------------------------------------------------------------------------------------


def _fit(*key, accuracy=90.0, n_bytes=4000, fit=2.0, predict=0.1, refined=1):
    ours = key[2] in ("selected", "refined")
    regression = SOURCES[key[1]].regression
    return fits.CompactFit(
        *key,
        *((None, accuracy / 100) if regression else (accuracy, None)),
        n_bytes,
        *((50, 8, "int8", refined) if ours else (None, None, "", None)),
        *(fit, predict, 1000, 500, 2),
    )


def _frame(rows):
    return records.frame(rows, fits.CompactFit)


def _lines(table):
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_the_svc_is_compared_seed_by_seed():
    rows = []
    for seed, seconds in enumerate((2.0, 4.0, 6.0)):
        rows.append(_fit("targets", "letter", "refined", "16kB", seed))
        other = {"accuracy": 89.0, "n_bytes": 120_000, "predict": 3.0, "fit": seconds}
        rows.append(_fit("svc", "letter", "sklearn-svc", "", seed, **other))
    (line,) = _lines(tables.svc(_frame(rows)))
    assert line[:5] == ["Letter", "16 kB", "90.00", "89.00", "+1.00"]
    assert line[5:] == ["30 [30, 30]", "30 [30, 30]", "2.0 [1.0, 3.0]"]


def test_boosting_is_compared_seed_by_seed():
    models = (
        ("refined", "16kB", [80.0, 90.0]),
        ("selected", "16kB", [79.0, 89.5]),
        ("lightgbm", "", [79.4, 89.6]),
        ("xgboost", "", [80.4, 90.6]),
    )
    frame = _frame(
        _fit("tabular", "magic", method, setting, seed, accuracy=accuracy)
        for method, setting, values in models
        for seed, accuracy in enumerate(values)
    )
    (line,) = _lines(tables.tabular(frame))
    assert line[:4] == ["Magic", "85.00", "80.00 to 90.00", "2 of 5"]
    assert line[4] == "+0.75 [+0.50, +1.00]"
    assert line[5:9] == ["+0.50 [+0.40, +0.60]", "1.0 ×", "−0.50 [−0.60, −0.40]", "1.0 ×"]
    alone = tables.tabular(frame[frame["method"] != "xgboost"])
    assert _lines(alone)[0][7:9] == ["–", "–"]


@pytest.mark.parametrize(("losses", "worst"), [([-3, 0.75, 0.5], "0.75"), ([-3, -1], "0.00")])
def test_the_largest_loss_of_all_draws_is_shown(losses, worst):
    frame = _frame(
        _fit(
            "draws", "usps", method, fits.DRAW_SETTING, seed, accuracy=80.0 - lost, refined=seed % 2
        )
        for seed, loss in enumerate(losses)
        for method, lost in (("selected", 0), ("refined", loss))
    )
    (line,) = _lines(tables.draws(frame))
    assert line[-2:] == [f"1 of {len(losses)}", worst]


def test_the_smaller_of_two_equal_models_is_named():
    rows = [
        _fit("targets", "usps", "refined", "64kB", 0, accuracy=95.0, n_bytes=40_000),
        _fit("sizes", "usps", "refined", "500", 0, accuracy=95.0, n_bytes=120_000),
        _fit("svc", "usps", "sklearn-svc", "", 0, accuracy=95.5, n_bytes=4_000_000),
    ]
    (line,) = _lines(tables.any_size(_frame(rows)))
    assert line == ["USPS", "95.00", "39 kB", "scikit-learn SVC", "95.50", "3.8 MB", "−0.50"]
    published = {tuple(line[:2]): line for line in _lines(tables.published(_frame(rows)))}
    assert published["USPS", "SNC"][-1] == "39 kB"
    assert published["MNIST", "SNC"][-1] == "none"


# -- the page ------------------------------------------------------------------------------------


def _invent(keys, folder):
    """Write a file of invented fits in which refined models gain with size."""
    rng = np.random.RandomState(0)
    path = folder / "kilobytes" / fits.FILE
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    records.begin(path, fits.CompactFit, known | {"threads": 2})
    for key in keys:
        n_bytes = {"sklearn-svc": 8e6, "lightgbm": 9e6, "xgboost": 5e6}.get(key.method)
        if key.setting.endswith("B"):
            n_bytes = 0.99 * int(key.setting[:-2]) * UNITS[key.setting[-2:]]
        elif key.setting:
            n_bytes = int(key.setting) * (400 if key.method == "sklearn-nystroem" else 150)
        error = {"refined": 25, "selected": 90}.get(key.method, 120) / n_bytes**0.25
        accuracy = 100 - error * rng.uniform(0.95, 1.05)
        records.append(path, _fit(*key, accuracy=accuracy, n_bytes=int(n_bytes)))


@pytest.mark.slow
def test_tables_of_all_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(_everything(monkeypatch), tmp_path)
    parts = page.parts(tmp_path)
    for name, text in parts.items():
        assert not {"nan", "None", "<NA>"} & set(text.replace("|", " ").split()), name
        assert len(text.splitlines()) > 2 or name == "machine"
    page.draw(tmp_path, tmp_path)
    assert [p.name for p in (tmp_path / "results" / "figures").iterdir()] == ["kilobytes.png"]


def test_tables_of_an_interrupted_run(tmp_path):
    keys = list(fits.plan(("targets",), ("pendigits", "usps"), 1))
    keys += list(fits.plan(("tabular",), ("magic",), 1))[:1]  # stopped before the second
    _invent(keys, tmp_path)
    parts = page.parts(tmp_path)
    assert [line[0] for line in _lines(parts["accuracy"])] == ["Pendigits"] * 2 + ["USPS"] * 2
    for name in ("tabular", "wrong-labels", "draws", "regression", "svc", "any-size"):
        assert _lines(parts[name]) == []


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no results")
def test_no_committed_model_exceeds_its_budget():
    rows = records.read(RESULTS / "kilobytes" / fits.FILE, fits.CompactFit)
    budgets = [(row, row.setting) for row in rows if fits.in_bytes(row.setting)]
    assert len(budgets) > 50
    assert all(row.bytes <= int(text[:-2]) * UNITS[text[-2:]] for row, text in budgets)
