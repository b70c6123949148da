"""The commands on CSV files, as `nysplus bench tables walk` runs them."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from nysplus_experiments.harness.raw_tables import SYNTHETIC, load_table
from nysplus_experiments.tables import walk

CHURN = Path(os.environ.get("NYSPLUS_DATA", ".")) / "tables" / "churn.npz"


def test_files_have_levels_as_texts_and_gaps_left_empty(tmp_path):
    with walk.write_table(SYNTHETIC, tmp_path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    frame = load_table(SYNTHETIC).frame
    assert [*rows[0]] == [*frame.columns, walk.TARGET]
    assert {row["x3"] for row in rows} == {"level 0", "level 1", "level 2", ""}
    assert sum(row["x0"] == "" for row in rows) == frame["x0"].isna().sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [SYNTHETIC, pytest.param("churn", marks=pytest.mark.all_combinations)]
)
def test_every_command_succeeds(name):
    if name == "churn" and not CHURN.is_file():
        pytest.skip("churn.npz is not at hand: set NYSPLUS_DATA to the folder of tables")
    steps = {step.command: step for step in walk.walk(name, smoke=True)}
    assert [*steps] == [*walk.COMMANDS]
    assert steps["evaluate"].accuracy > 80
    assert steps["train"].bytes < 32 * 1024
    assert steps["compare"].accuracy > 75
