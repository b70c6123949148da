"""Fill the tables of docs/results/integers.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from nysplus_experiments.harness import records
from nysplus_experiments.harness.pages import Page
from nysplus_experiments.harness.problems import SOURCES
from nysplus_experiments.harness.tables import MISSING, machine, markdown, percent
from nysplus_experiments.integers.agreement import IntegerAgreement
from nysplus_experiments.integers.peers import PeerModel
from nysplus_experiments.integers.simulators import Simulation
from nysplus_experiments.integers.targets import TARGETS, TargetSize

PROCESSORS = {
    "arm": "ARMv5, qemu-arm",
    "avr": "ATmega328P, simavr",
    "avr float": "ATmega328P, simavr, floating point",
    "thumb": "ARM Thumb, qemu-arm, instructions",
    "thumb float": "ARM Thumb, qemu-arm, floating point, instructions",
}


def parts(results: Path) -> dict[str, str]:
    """Return the tables of the page."""
    folder = results / "integers"
    frames = {
        row.__name__: records.frame(folder / f"{file}.csv", row)
        for file, row in (
            ("agreement", IntegerAgreement),
            ("targets", TargetSize),
            ("simulators", Simulation),
            ("peers", PeerModel),
        )
    }
    return {
        "machine": f"*{machine(records.environment_of(folder / 'agreement.csv'))}*",
        "agreement": agreement_table(frames["IntegerAgreement"]),
        "targets": target_table(frames["TargetSize"], "int"),
        "float-targets": target_table(frames["TargetSize"], "float"),
        "simulators": simulator_table(frames["Simulation"]),
        "peers": peer_table(frames["PeerModel"]),
    }


def _number(value: float) -> str:
    return MISSING if pd.isna(value) else f"{int(value):,}"


def agreement_table(rows: pd.DataFrame) -> str:
    """List accuracy in both arithmetics, and the comparison of bits."""
    lines = [
        [
            SOURCES[row.dataset].title,
            row.budget,
            _number(row.bytes),
            row.bits,
            percent(row.float_accuracy),
            percent(row.int_accuracy),
            f"{row.changed_labels} of {row.test_rows:,}",
            f"{100 * row.score_change:.2g}",
            _number(row.table_bytes),
            _number(row.rows),
            _number(row.different_scores + row.different_labels),
        ]
        for row in rows.sort_values(["dataset", "bytes"]).itertuples()
    ]
    header = ["data", "budget", "bytes", "bits", "accuracy in float, %", "in integers, %"]
    header += ["changed labels", "change of scores, %", "table bytes", "rows compared"]
    return markdown([*header, "rows that differ"], lines)


def target_table(rows: pd.DataFrame, arithmetic: str) -> str:
    """List flash memory and RAM by model and target."""
    own = rows[rows["arithmetic"] == arithmetic]
    lines = []
    for (dataset, budget), some in own.groupby(["dataset", "budget"], sort=False):
        by_target = some.set_index("target").reindex(list(TARGETS))
        cells = [
            MISSING
            if pd.isna(row.flash)
            else f"{_number(row.flash)} / {_number(row.ram)} + {_number(row.stack)}"
            for row in by_target.itertuples()
        ]
        tables = _number(some["table_bytes"].iloc[0])
        lines.append([SOURCES[dataset].title, budget, tables, *cells])
    titles = [target.title for target in TARGETS.values()]
    return markdown(["data", "budget", "table bytes", *titles], lines)


def simulator_table(rows: pd.DataFrame) -> str:
    """List differing scores and cycles by model and processor."""
    lines = [
        [
            SOURCES[row.dataset].title,
            row.budget,
            PROCESSORS[row.processor],
            _number(row.rows),
            _number(row.different_scores),
            _number(row.cycles),
            MISSING if pd.isna(row.cycles) else f"{row.cycles / row.products:.0f}",
        ]
        for row in rows.itertuples()
    ]
    header = ["data", "budget", "processor", "rows", "scores that differ", "cycles for a row"]
    return markdown([*header, "cycles for a product"], lines)


def peer_table(rows: pd.DataFrame) -> str:
    """List flash memory and accuracy by dataset, library and model."""
    lines = [
        [
            SOURCES[row.dataset].title,
            row.library,
            row.model,
            percent(row.accuracy),
            _number(row.flash),
        ]
        for row in rows.sort_values(["dataset", "flash"]).itertuples()
    ]
    header = ["data", "library", "model", "accuracy, %", "bytes of flash memory"]
    return markdown(header, lines)


PAGE = Page("results/integers.md", parts)
