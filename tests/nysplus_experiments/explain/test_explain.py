"""Measurements of Shapley values, and their tables."""

from __future__ import annotations

import pytest

from nysplus_experiments.explain import exactness, page, peers, times
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import ROOT, BenchOptions

pytest.importorskip("pandas", reason="tables need pandas")
pytestmark = pytest.mark.skipif(
    not (ROOT / "tests" / "factories.py").is_file(), reason="needs a checkout of the repository"
)


def test_exactness_resumes(tmp_path, capsys):
    options = BenchOptions("explain", tmp_path, extra={"models": "3"})
    exactness.run(options)
    content = options.path("exactness.csv").read_text()
    exactness.run(options)
    assert options.path("exactness.csv").read_text() == content
    rows = records.read(options.path("exactness.csv"), exactness.Exactness)
    assert [row.model for row in rows] == [0, 1, 2]
    assert max(row.error for row in rows) < 1e-10
    assert max(row.additivity for row in rows) < 1e-8
    assert "laplacian" in capsys.readouterr().out


def test_times_are_measured_for_both_forms(monkeypatch):
    monkeypatch.setattr(times, "REPEATS", 1)
    for form in ("product", "dense map"):
        row = times.measure(form, 10, 12, 5, 2)
        assert row.cpu_ms_per_row > 0


@pytest.mark.slow
def test_values_of_shap_are_the_exact_ones_within_their_error():
    pytest.importorskip("shap", reason="the comparison needs shap")
    row = peers.measure("PermutationExplainer", 610, 2, 10)
    assert row.difference < 4 * row.own_error + 1e-6
    assert row.additivity < 1e-8
    assert row.ratio > 1


def test_tables_have_all_parts():
    results = ROOT / "results"
    if not (results / "explain" / "peers.csv").is_file():
        pytest.skip("no results")
    assert set(page.parts(results)) == {"machine", "exactness", "times", "peers"}
