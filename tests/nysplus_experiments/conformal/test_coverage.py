"""The measurement of coverage: sizes, foreign rows, and a smoke run with its page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pandas")

from nysplus_experiments.conformal import cost, page, peers
from nysplus_experiments.conformal.coverage import FILE, MODELS, Coverage, Sets, measure, run
from nysplus_experiments.conformal.rows import foreign, split_of, swapped
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchOptions


def test_sets_are_counted():
    sets = np.array([[True, False], [True, True], [False, False], [False, True]])
    found = Sets.of_sets(sets, np.array([0, 1, 0, 0]))
    assert (found.coverage, found.size, found.empty) == (50.0, 1.0, 25.0)


def test_widths_are_in_deviations_of_the_target():
    y = np.array([0.0, 2.0])
    found = Sets.of_intervals(np.array([-1.0, 3.0]), np.array([1.0, 7.0]), y)
    assert (found.coverage, found.size) == (50.0, 3.0)


def frame():
    rng = np.random.RandomState(0)
    numbers = {"a": rng.randn(50), "b": 5 + rng.rand(50), "c": rng.randn(50)}
    return pd.DataFrame({**numbers, "kind": pd.Categorical(rng.choice(["x", "y"], 50))})


def test_swapped_columns_all_change_their_place(rng):
    rows = frame()
    found = swapped(rows, rng)
    for name in ("a", "b", "c"):
        assert not np.allclose(found[name], rows[name])
    assert sorted(map(tuple, found[["a", "b", "c"]].T.to_numpy())) == sorted(
        map(tuple, rows[["a", "b", "c"]].T.to_numpy())
    )
    assert (found["kind"] == rows["kind"]).all()
    assert swapped(rows[["a", "kind"]], rng) is None


def test_tables_without_numbers_have_no_foreign_rows(rng, monkeypatch):
    donor = type("Donor", (), {"frame": pd.DataFrame(rng.rand(30, 2))})
    monkeypatch.setattr("nysplus_experiments.conformal.rows.load_table", lambda name: donor)
    rows = frame()
    assert foreign(rows[["kind"]], "car", rng, None) is None
    assert foreign(rows, "car", rng, None)["b"].between(0, 1).all()
    found = foreign(rows, "car", rng, rows)
    assert found["b"].mean() == pytest.approx(rows["b"].mean(), abs=0.5)
    assert found["kind"].dtype == rows["kind"].dtype


def test_a_smoke_run_fills_the_tables_of_the_page(tmp_path, monkeypatch):
    donor = type("Donor", (), {"frame": pd.DataFrame(np.random.RandomState(0).rand(30, 2))})
    monkeypatch.setattr("nysplus_experiments.conformal.rows.load_table", _with(donor))
    options = BenchOptions("conformal", tmp_path, smoke=True, extra={"models": "landmarks"})
    run(options)
    rows = records.frame(options.path(FILE), Coverage)
    assert len(rows) == 2
    assert rows["coverage"].between(60, 100).all()
    means = page.by_dataset(rows)
    assert (means["error"] > 0.5).all()
    assert "100 landmarks" in page.summary_table(rows)
    assert "100 landmarks" in page.novelty_table(rows)
    assert "synthetic" in page.dataset_table(rows[rows["classes"] > 0], "size")
    assert measure("synthetic", "landmarks", 0).coverage == rows["coverage"][0]


def _with(donor):
    """Return a loader of tables that needs no files."""
    from nysplus_experiments.harness.raw_tables import SOURCES, load_table

    return lambda name: load_table(name) if not SOURCES[name].file else donor


def test_the_table_of_peers():
    rows = pd.DataFrame(
        {
            "dataset": ["letter", "letter"],
            "method": ["nysplus", "mapie-split"],
            "seed": [0, 0],
            "classes": [26, 26],
            "coverage": [90.0, 91.0],
            "size": [1.1, 1.2],
            "fit_cpu_seconds": [0.5, 0.4],
        }
    )
    lines = page.peers_table(rows).splitlines()
    assert lines[2] == "| Letter | nysplus | 90.00 | 1.100 | 0.50 | 1 |"


def test_fits_without_sets_and_novelty_have_the_same_model():
    split = split_of("synthetic", 0)
    model = MODELS["landmarks"](split, 0)
    whole = model.fit(split.X, split.y).predict_proba(split.X_test)
    with cost.without():
        model.fit(split.X, split.y)
    assert model._model.calibration is None
    assert model._model.familiar is None
    np.testing.assert_array_equal(model.predict_proba(split.X_test), whole)


def test_the_table_of_costs():
    rows = pd.DataFrame([vars(cost.Cost("letter", 5000, 0.21, 0.2, 1.05))])
    assert page.cost_table(rows).splitlines()[2] == "| Letter | 5,000 | 0.210 | 0.200 | 1.050 |"


@pytest.mark.slow
def test_mapie_takes_tables_with_categories():
    pytest.importorskip("mapie")
    found = peers.measure("synthetic", "mapie-split", 0)
    assert 80 < found.coverage < 100
