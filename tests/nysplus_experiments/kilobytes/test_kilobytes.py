"""The measurements of compact models: plans, rows, runs that resume, tables, figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from nysplus import NystroemClassifier, Refinement
from nysplus.encoding import ImageEncoder
from nysplus.kernels import Matern
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import RESULTS, BenchOptions
from nysplus_experiments.harness.problems import SOURCES, load_problem
from nysplus_experiments.kilobytes import STEPS, fits, page, summary, tables

UNITS = {"kB": 2**10, "MB": 2**20}


# -- runs ----------------------------------------------------------------------------------------


def _run(tmp_path):
    options = BenchOptions("kilobytes", tmp_path, smoke=True)
    STEPS["fits"](options)
    return options.path(fits.FILE)


@pytest.mark.slow
def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    quick = Refinement(search=False, n_epochs=5)
    monkeypatch.setattr(fits, "REFINE", dict.fromkeys(fits.REFINE, quick) | {"unrefined": False})
    path = _run(tmp_path)
    rows = records.read(path, fits.CompactFit)
    assert [row.key for row in rows] == list(fits.SMOKE_PLAN)
    by_kind = {(row.part, row.method): row for row in rows}
    refined = by_kind["targets", "refined"]
    assert (refined.landmarks, refined.rows, refined.test_rows) == (20, 1297, 500)
    assert refined.refined in (0, 1)
    assert refined.bits.endswith("32/32")
    image = by_kind["targets", "augmented"]
    assert image.bytes <= 2048
    assert all(int(bits) <= 8 for bits in image.bits.split("/") if bits != "-")
    assert by_kind["flipped", "unrefined"].bits == "-/4/6"
    assert by_kind["draws", "refined"].rows == fits.DRAW_ROWS
    svc = by_kind["seconds", "sklearn-svc"]
    assert svc.landmarks is svc.rank is svc.refined is None
    assert svc.bytes > 10 * refined.bytes
    assert all(75 < row.accuracy <= 100 and row.rmse is None for row in rows)
    assert all(row.fit_cpu_seconds > 0 < row.predict_seconds for row in rows)

    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:10])  # the last line was torn
    asked = []
    measure = fits.measure
    monkeypatch.setattr(fits, "measure", lambda *key: asked.append(key) or measure(*key))
    _run(tmp_path)
    assert asked == [rows[-1].key]
    again = records.read(path, fits.CompactFit)
    assert [(row.key, row.accuracy) for row in again] == [(row.key, row.accuracy) for row in rows]


def test_fits_of_the_seconds_have_the_machine_for_themselves(tmp_path, monkeypatch):
    asked = []

    def record(self, file, row_class, tasks, measure, **how):
        asked.append(([key.part for key in tasks], how["workers"], self.fresh))

    monkeypatch.setattr(BenchOptions, "measure", record)
    monkeypatch.setattr(fits, "available", list)
    extra = {"parts": "seconds,sparse", "workers": "2", "seeds": "1"}
    fits.run(BenchOptions("kilobytes", tmp_path, fresh=True, extra=extra))
    # the file is put aside once
    assert asked == [(["sparse"], 2, True), (["seconds"] * 10, 1, False)]
    asked.clear()
    fits.run(BenchOptions("kilobytes", tmp_path, extra={"parts": "kinds"}))
    assert list(dict.fromkeys(asked[0][0])) == list(fits.KINDS)


def test_a_fit_that_fails_is_reported_and_leaves_no_row(tmp_path, monkeypatch, capsys):
    def fail(*key):
        raise ValueError(f"no {key[2]} today")

    monkeypatch.setattr(fits, "measure", fail)
    shared = [key for key in fits.SMOKE_PLAN if key.part != fits.ALONE]
    with pytest.raises(SystemExit, match=f"{len(shared)} measurements failed"):
        _run(tmp_path)
    assert "ValueError: no sklearn-nystroem today" in capsys.readouterr().out
    assert records.read(tmp_path / "kilobytes" / fits.FILE, fits.CompactFit) == []


# -- plans and rows ------------------------------------------------------------------------------


def _everything(monkeypatch):
    """Return the whole plan, whatever is installed."""
    everywhere = {name: replace(system, requires="") for name, system in fits.PEERS.items()}
    monkeypatch.setattr(fits, "PEERS", everywhere)
    return list(fits.plan(tuple(fits.PARTS), fits.DATASETS))


def test_the_plan(monkeypatch):
    keys = _everything(monkeypatch)
    assert len(set(keys)) == len(keys)
    assert list(dict.fromkeys(key.part for key in keys)) == list(fits.PARTS)
    for part in fits.PARTS:  # all datasets of a seed before the next seed
        seeds = [key.seed for key in keys if key.part == part]
        assert seeds == sorted(seeds)
    main = Counter(key[1:4] for key in keys if key.part == "targets")
    assert main == dict.fromkeys(tables.targets(), 5)
    # every point of the figure is measured once
    shown = [key[1:] for key in keys if key.part in tables.FIGURE_PARTS]
    assert len(set(shown)) == len(shown)
    machines = Counter(key[:2] for key in keys if key.method == "sklearn-svc")
    assert machines == {
        **{("peers", name): count for name, count in fits.SVC_SEEDS.items()},
        **{("seconds", name): 5 for name in fits.SVC_TIMED},
    }
    timed = [key[1:4] for key in keys if key.part == "seconds" and key.dataset == "letter"]
    in_turn = [("refined", "16kB"), ("sklearn-svc", ""), ("refined", "64kB"), ("quick", "8kB")]
    assert timed == [("letter", *model) for model in in_turn] * 5
    draws = Counter((key.dataset, key.method, key.setting) for key in keys if key.part == "draws")
    assert set(draws.values()) == {20}
    assert len(draws) == 24
    stable = Counter(key.dataset for key in keys if key.part == "stable")
    assert stable == {"digits": 10, "magic": 10, "letter": 10}


def test_parts_data_and_seeds_can_be_left_out():
    keys = list(fits.plan(("unrefined", "flipped"), ("letter",), 2))
    parts = {(key.part, key.dataset) for key in keys}
    assert parts == {("flipped", "letter"), ("unrefined", "letter")}
    assert {key.seed for key in keys} == {0, 1}


def test_settings_are_the_defaults():
    problem = load_problem("digits", 0)
    plain = NystroemClassifier().get_params()

    def changed(method, setting, part="targets"):
        key = fits.Key(part, "digits", method, setting, 3)
        params = fits.make_model(key, problem).get_params(deep=False)
        return {name: value for name, value in params.items() if value != plain[name]}

    assert changed("unrefined", "7") == {"n_components": 7, "random_state": 3}
    assert changed("refined", "7") == {"n_components": 7, "random_state": 3, "refine": True}
    budget = {"budget": "4kB", "random_state": 3, "refine": True}
    assert changed("refined", "4kB") == budget
    for method, augment in (("image", None), ("augmented", "affine")):
        image = changed(method, "4kB")
        expected = ImageEncoder((8, 8), augment=augment).get_params()
        assert image.pop("encoder").get_params() == expected
        assert image == budget
    matern = changed("refined", "4kB", "matern")
    assert matern.pop("kernel").get_params() == Matern(nu=fits.MATERN_NU).get_params()
    assert matern == budget
    svc = fits.make_model(fits.Key("targets", "digits", "sklearn-svc", "", 0), problem)
    assert svc.C == 10
    assert svc.gamma == pytest.approx(1 / (64 * problem.X.var()))


def test_labels_are_made_for_each_seed():
    first, second = (fits.rows_of("multilabel", "multilabel", seed) for seed in (0, 1))
    assert first.X.shape == (5000, 40)
    assert first.y.shape == (5000, 10)
    assert first.y_test.shape == (2500, 10)
    assert 0 <= first.X.min() < first.X.max() <= 1
    assert not np.array_equal(first.X, second.X)


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
    ours = key[2] in fits.REFINE
    regression = SOURCES[key[1]].regression
    return fits.CompactFit(
        *key,
        *((None, accuracy / 100) if regression else (accuracy, None)),
        n_bytes,
        *((50, 8, "8/5/4", refined) if ours else (None, None, "", None)),
        *(fit, 2 * fit, predict, 1000, 500),
    )


def _frame(rows):
    return records.frame(rows, fits.CompactFit)


def _lines(table):
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_a_line_has_shape_bits_and_seconds():
    rows = [
        _fit("targets", "mnist", "augmented", "12kB", seed, accuracy=98.0 + seed, fit=1.0 + seed)
        for seed in range(3)
    ]
    lines = {tuple(line[:3]): line[3:] for line in _lines(tables.accuracy(_frame(rows)))}
    assert len(lines) == len(list(tables.targets()))
    numbers = ["99.00", "98.00 to 100.00", "3", "4,000", "50 × 8", "8/5/4", "2.0 [1.0, 3.0]"]
    assert lines["MNIST", "refined, images, augmented", "12 kB"] == numbers
    assert lines["MNIST", "refined", "64 kB"] == ["–", "–", "0", "–", "–", "–", "–"]


@pytest.mark.parametrize(
    ("accuracy", "needed", "share"),
    [
        (98.30, "64 kB", "0.13"),  # 98.34 in 64 kB
        (98.00, "16 kB to 64 kB", "0.13 to 0.50"),
        (88.00, "≤ 4 kB", "–"),
        (98.70, "> 387 kB", "< 0.02"),
    ],
)
def test_the_earlier_version_needed_more_bytes(accuracy, needed, share):
    row = _fit("targets", "mnist", "image", "8kB", 0, accuracy=accuracy, n_bytes=2**13)
    lines = {tuple(line[:3]): line[3:] for line in _lines(tables.before(_frame([row])))}
    assert lines["MNIST", "refined, images", "8 kB"] == [f"{accuracy:.2f}", "–", "–", needed, share]
    assert lines["MNIST", "refined", "16 kB"] == ["–", "97.49", "–", "–", "–"]


def test_the_svc_is_compared_seed_by_seed():
    rows = []
    for seed, seconds in enumerate((2.0, 4.0, 6.0)):
        other = {"accuracy": 89.0, "n_bytes": 120_000, "predict": 3.0, "fit": seconds}
        for part in ("targets", "seconds"):
            rows.append(_fit(part, "letter", "refined", "16kB", seed))
        for part in ("peers", "seconds"):
            rows.append(_fit(part, "letter", "sklearn-svc", "", seed, **other))
    lines = {tuple(line[:3]): line[3:] for line in _lines(tables.svc(_frame(rows)))}
    line = lines["Letter", "refined", "16 kB"]
    assert line[:3] == ["90.00", "89.00", "+1.00"]
    assert line[3:] == ["30 [30, 30]", "30 [30, 30]", "2.0 [1.0, 3.0]"]
    assert lines["Letter", "refined", "64 kB"] == ["–", "89.00", *["–"] * 4]
    text = summary.text(_frame(rows))
    assert "2.0 s on Letter in 16 kB" in text
    assert "0.50 [0.33, 1.0] on Letter in 16 kB" in text


def test_boosting_is_compared_seed_by_seed():
    models = (
        ("targets", "refined", "16kB", [80.0, 90.0]),
        ("unrefined", "unrefined", "16kB", [79.0, 89.5]),
        ("peers", "lightgbm", "", [79.4, 89.6]),
        ("peers", "xgboost", "", [80.4, 90.6]),
    )
    frame = _frame(
        _fit(part, "magic", method, setting, seed, accuracy=accuracy)
        for part, method, setting, values in models
        for seed, accuracy in enumerate(values)
    )
    line = _lines(tables.tabular(frame))[0]
    assert line[:4] == ["Magic", "85.00", "80.00 to 90.00", "2"]
    assert line[4] == "+0.75 [+0.50, +1.00]"
    assert line[5:] == ["+0.50 [+0.40, +0.60]", "1.0 ×", "−0.50 [−0.60, −0.40]", "1.0 ×"]
    alone = tables.tabular(frame[frame["method"] != "xgboost"])
    assert _lines(alone)[0][7:] == ["–", "–"]


def test_seeds_are_compared_with_the_test_rows():
    frame = _frame(
        _fit("stable", "magic", "refined", "16kB", seed, accuracy=accuracy, n_bytes=16_000 + seed)
        for seed, accuracy in enumerate((79.0, 80.0, 81.0))
    )
    line = {line[0]: line[1:] for line in _lines(tables.stable(frame))}["Magic"]
    error = 100 * np.sqrt(0.8 * 0.2 / 500)
    expected = ["3", "80.00", "79.00 to 81.00", "1.00", f"{error:.2f}"]
    assert line == [*expected, "16,001 [16,000, 16,002]"]


@pytest.mark.parametrize(("losses", "worst"), [([-3, 0.75, 0.5], "0.75"), ([-3, -1], "0.00")])
def test_the_largest_loss_of_all_draws_is_shown(losses, worst):
    frame = _frame(
        _fit("draws", "usps", method, "4kB", seed, accuracy=80.0 - lost, refined=seed % 2)
        for seed, loss in enumerate(losses)
        for method, lost in (("unrefined", 0), ("refined", loss))
    )
    lines = {tuple(line[:2]): line for line in _lines(tables.draws(frame))}
    assert lines["USPS", "4 kB"][-2:] == [f"1 of {len(losses)}", worst]
    assert lines["USPS", "100 landmarks"][-2:] == ["–", "–"]


def test_the_smaller_of_two_equal_models_is_named():
    rows = [
        _fit("targets", "usps", "image", "64kB", 0, accuracy=95.0, n_bytes=40_000),
        _fit("targets", "usps", "refined", "64kB", 0, accuracy=95.0, n_bytes=60_000),
        _fit("peers", "usps", "sklearn-svc", "", 0, accuracy=95.5, n_bytes=4_000_000),
    ]
    (line,) = _lines(tables.any_size(_frame(rows)))
    assert line == ["USPS", "95.00", "39 kB", "scikit-learn SVC", "95.50", "3.8 MB", "−0.50"]
    published = {tuple(line[:2]): line for line in _lines(tables.published(_frame(rows)))}
    assert published["USPS", "SNC"][-1] == "39 kB, refined, images"
    assert published["MNIST", "SNC"][-1] == "–"
    assert "within one standard error on USPS" in summary.text(_frame(rows))


# -- the page ------------------------------------------------------------------------------------


def _invent(keys, folder):
    """Write a file of invented fits in which refined models gain with size."""
    rng = np.random.RandomState(0)
    path = folder / "kilobytes" / fits.FILE
    known = {"cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    records.begin(path, fits.CompactFit, known | {"threads": 1})
    for key in keys:
        n_bytes = {"sklearn-svc": 8e6, "lightgbm": 9e6, "xgboost": 5e6}.get(key.method)
        if key.setting.endswith("B"):
            n_bytes = 0.99 * int(key.setting[:-2]) * UNITS[key.setting[-2:]]
        elif key.setting:
            n_bytes = int(key.setting) * (400 if key.method == "sklearn-nystroem" else 150)
        error = {"image": 15, "refined": 25, "unrefined": 90}.get(key.method, 120) / n_bytes**0.25
        accuracy = 100 - error * rng.uniform(0.95, 1.05)
        records.append(path, _fit(*key, accuracy=accuracy, n_bytes=int(n_bytes)))


def _check(parts):
    for name, text in parts.items():
        assert not {"nan", "None", "<NA>"} & set(text.replace("|", " ").split()), name


@pytest.mark.slow
def test_tables_of_all_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(records.os, "fsync", lambda descriptor: None)
    _invent(_everything(monkeypatch), tmp_path)
    parts = page.parts(tmp_path)
    _check(parts)
    assert all(len(text.splitlines()) > 2 or name == "machine" for name, text in parts.items())
    assert len(parts["summary"].splitlines()) == 5
    page.draw(tmp_path, tmp_path)
    assert [p.name for p in (tmp_path / "results" / "figures").iterdir()] == ["kilobytes.png"]


def test_tables_of_an_interrupted_run(tmp_path):
    keys = list(fits.plan(("targets",), ("pendigits", "usps"), 1))
    keys += list(fits.plan(("flipped",), ("letter",), 1))[:1]  # stopped before the second
    _invent(keys, tmp_path)
    parts = page.parts(tmp_path)
    _check(parts)
    medians = {tuple(line[:3]): line[3] for line in _lines(parts["accuracy"])}
    assert {key[0] for key, middle in medians.items() if middle != "–"} == {"Pendigits", "USPS"}
    assert _lines(parts["any-size"]) == []
    flipped = {line[0]: line[1] for line in _lines(parts["wrong-labels"])}
    assert flipped["unrefined"] == "–" != flipped["refined"]


@pytest.mark.slow
def test_tables_and_figure_without_any_fit(tmp_path):
    _invent([], tmp_path)
    parts = page.parts(tmp_path)
    _check(parts)
    assert parts["summary"] == "–"
    page.draw(tmp_path, tmp_path)


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no results")
def test_no_committed_model_exceeds_its_budget():
    rows = records.read(RESULTS / "kilobytes" / fits.FILE, fits.CompactFit)
    budgets = [(row, row.setting) for row in rows if fits.in_bytes(row.setting)]
    assert all(row.bytes <= int(text[:-2]) * UNITS[text[-2:]] for row, text in budgets)
