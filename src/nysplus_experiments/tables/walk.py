"""Run the commands of ``nysplus`` on CSV files: time, score and bytes of each."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nysplus_experiments.harness.bench import BenchError, BenchOptions
from nysplus_experiments.harness.raw_tables import SYNTHETIC, available_tables, load_table
from nysplus_experiments.harness.records import Row

FILE = "walk.csv"
TABLES = ("adult", "churn", "hr_job_change", "vehicle_coupon")
TARGET = "target"
# Commands in their order; each may use the files of those before it.
COMMANDS = {
    "train": f"train table.csv --target {TARGET} --budget 16kB --time 60s --out model.nys",
    "evaluate": f"evaluate model.nys table.csv --target {TARGET}",
    "export": "export model.nys --to c --out model.h",
    "predict": "predict model.nys table.csv --proba --out predictions.csv",
    "compare": f"compare table.csv --target {TARGET} --figure sizes.png",
}
# A smoke run has models of less time.
SMOKE = {"train": " --time 1s", "compare": " --time 1s --budgets 4kB"}


@dataclass(frozen=True)
class WalkStep(Row, key="table"):
    """One row of ``walk.csv``: a command, its time, its score in percent and its output's bytes."""

    table: str
    command: str
    seconds: float
    cpu_seconds: float
    accuracy: float | None
    bytes: int | None


def write_table(name: str, folder: Path) -> Path:
    """Write a table as a CSV file: levels as texts, gaps left empty, the target last."""
    table = load_table(name)
    path = folder / "table.csv"
    table.frame.assign(**{TARGET: table.y}).to_csv(path, index=False)
    return path


def walk(name: str, smoke: bool = False) -> list[WalkStep]:
    """Run all commands on a table, each in a process of its own."""
    with TemporaryDirectory() as folder:
        write_table(name, Path(folder))
        return [_step(name, command, Path(folder), smoke) for command in COMMANDS]


def _step(name: str, command: str, folder: Path, smoke: bool) -> WalkStep:
    text = COMMANDS[command] + (SMOKE.get(command, "") if smoke else "")
    as_json = command != "predict"  # one object for each row
    arguments = [*text.split(), *(["--json"] if as_json else [])]
    source = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": source}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "nysplus.cli", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise BenchError(f"nysplus {text} failed on {name}: {done.stderr.strip()}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout) if as_json else {}
    return WalkStep(name, command, seconds, cpu, _accuracy(found), _bytes(command, found))


def _accuracy(found: dict[str, Any]) -> float | None:
    """Return the score of a command, in `compare` that of our largest model."""
    ours = [model for model in found.get("models", ()) if model["name"].startswith("nysplus")]
    score = ours[-1]["score"] if ours else found.get("score")
    return None if score is None else 100.0 * float(score["value"])


def _bytes(command: str, found: dict[str, Any]) -> int | None:
    if command == "train":
        return int(found["model"]["file_bytes"])
    return int(found["bytes"]) if command == "export" else None


def run(options: BenchOptions) -> None:
    """Run the commands on four tables, and print the time, score and bytes of each."""
    options.expect()
    tables = [SYNTHETIC] if options.smoke else available_tables(options.choose_datasets(TABLES))
    options.measure(
        *(FILE, WalkStep, [(name,) for name in tables]), lambda name: walk(name, options.smoke)
    )
