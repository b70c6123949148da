"""The measurement of integer headers on few rows, and the tables of its page."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

from nysplus.export import to_c
from nysplus_experiments.harness import measurement, records
from nysplus_experiments.integers import agreement, models, page, peers, simulators, targets


@pytest.fixture
def digits(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "MODELS", tmp_path)
    return models.integer_problem("digits")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_header_agrees_with_its_emulation(digits):
    row = agreement.measure("digits", "1kB", 2000)
    assert (row.different_scores, row.different_labels, row.rows) == (0, 0, 2000)
    assert abs(row.int_accuracy - row.float_accuracy) < 1.0
    # a header of another model does not agree
    how = {"X": digits.X, "input_type": models.INPUT_TYPE}
    model = models.fitted("digits", "1kB")
    header = to_c(model, arithmetic="int", **how).replace("nysplus_intercept[10] = {\n    ", "&1")
    header = header.replace("&1", "nysplus_intercept[10] = {\n    1")
    integers = agreement.integer_model(model, **how)
    different = agreement.differences(header, integers, digits.X_test.astype(int), 500)
    assert different[0] == 500


def test_stacks_of_functions_are_added(tmp_path):
    (tmp_path / "main.su").write_text("main.c:1:5:f\t24\tstatic\nmain.c:9:5:main\t100\tstatic\n")
    assert targets.stack_of(tmp_path) == 124


def test_tables_of_the_page(tmp_path):
    folder = tmp_path / "integers"
    rows = {
        "agreement": agreement.IntegerAgreement(
            *("digits", "4kB", 4079, 98, 64, "-/4/6", 500, 98.4, 98.2, 1, 0.0012, 4573),
            *(1_000_000, 0, 0),
        ),
        "targets": targets.TargetSize("digits", "4kB", "riscv", "int", 4573, 5000, 80, 300, ""),
        "simulators": simulators.Simulation("digits", "4kB", "avr", 5, 0, 1_200_000, 10_000),
        "peers": peers.PeerModel("digits", "emlearn", "SVC", 98.765, None, "no"),
    }
    for name, row in rows.items():
        records.begin(folder / f"{name}.csv", type(row), measurement.environment())
        records.append(folder / f"{name}.csv", row)
    parts = page.parts(tmp_path)
    assert (
        "| digits | 4kB | 4,079 | -/4/6 | 98.40 | 98.20 | 1 of 500 | 0.12 |" in parts["agreement"]
    )
    assert "| 1,000,000 | 0 |" in parts["agreement"]
    assert "| digits | 4kB | 4,573 | – | – | – | 5,000 / 80 + 300 |" in parts["targets"]
    assert "ATmega328P, simavr | 5 | 0 | 1,200,000 | 120 |" in parts["simulators"]
    assert "| digits | emlearn | SVC | 98.77 | – |" in parts["peers"]
