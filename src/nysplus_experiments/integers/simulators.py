"""Run integer headers on simulated processors, compare their bits, and count cycles.

An ATmega328P (``simavr``) scores a few rows, and its timer counts the cycles, for one model also in
floating point. A 32-bit ARM without floating-point unit (``qemu-arm``) scores many rows; its Thumb
instructions, which are those of a Cortex-M0, are counted for one row.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nysplus.export import c_report, to_c
from nysplus.export.c_integer import integer_model
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.integers.models import (
    INPUT_TYPE,
    chosen,
    compiled,
    fitted,
    integer_problem,
    source,
)

ARM_ROWS, AVR_ROWS = 10_000, 5
ARM_FLAGS = ("-static", "-march=armv5te", "-mfloat-abi=soft", "-O2", "-std=c99", "-I.")
# Budgets whose headers fit in the flash memory of an ATmega328P. In floating point the tables are
# in its RAM of 2 kB, so that one smaller model compares both arithmetics.
BUDGETS, PROCESSORS = ("4kB", "16kB"), ("arm", "avr")
COMPARED = [("digits", "1kB", p) for p in ("avr", "avr float", "thumb", "thumb float")]
THUMB_FLAGS = ("-static", "-mthumb", "-march=armv5te", "-mfloat-abi=soft", "-Os", "-std=gnu99")


@dataclass(frozen=True)
class Simulation(Row, key="dataset budget processor"):
    """One row of ``simulators.csv``; ``cycles`` are those of the slowest row.

    They are instructions for the processors "thumb" and "thumb float".
    """

    dataset: str
    budget: str
    processor: str
    rows: int
    different_scores: int | None
    cycles: int | None
    products: int


def on_arm(header: str, rows: np.ndarray) -> np.ndarray:
    """Return the scores of rows by a program for 32-bit ARM."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nysplus.h").write_text(header)
        flags = (*ARM_FLAGS, f"-DROW={INPUT_TYPE}_t")
        compiled(["arm-linux-gnueabi-gcc", *flags, source("score_rows.c"), "-o", "main"], folder)
        command = ["qemu-arm", str(folder / "main")]
        done = subprocess.run(command, input=rows.tobytes(), capture_output=True, check=True)
    return np.frombuffer(done.stdout, dtype=np.int32).reshape(len(rows), -1)[:, :-1]


def on_avr(header: str, rows: np.ndarray, integer: bool) -> tuple[np.ndarray, int]:
    """Return the scores of rows on an ATmega328P, and the cycles of the slowest row."""
    text = ",\n".join("{" + ", ".join(map(str, row)) + "}" for row in rows)
    table = f"static const uint8_t rows[{len(rows)}][{rows.shape[1]}] PROGMEM = {{\n{text}\n}};\n"
    types = (f"{INPUT_TYPE}_t", "int32_t") if integer else ("float", "float")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nysplus.h").write_text(header)
        (folder / "rows.h").write_text(f"#define N_ROWS {len(rows)}\n{table}")
        flags = ["-mmcu=atmega328p", "-std=gnu99", "-Os", "-I."]
        flags += [f"-DROW={types[0]}", f"-DSCORE={types[1]}"]
        compiled(["avr-gcc", *flags, source("score_on_avr.c"), "-lm", "-o", "main.elf"], folder)
        command = ["simavr", "-m", "atmega328p", "-f", "16000000", str(folder / "main.elf")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = re.findall(r"((?:[0-9a-f]{8} )+)", done.stdout + done.stderr)
    words = [[int(word, 16) for word in line.split()] for line in lines]
    numbers = np.array(words, dtype=np.uint32)
    return numbers[:, 1:].view(np.int32), int(numbers[:, 0].max())


def on_thumb(header: str, rows: np.ndarray) -> int:
    """Return the instructions of a prediction: ``qemu-arm`` writes a line for each of them."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nysplus.h").write_text(header)
        row = "float" if rows.dtype == np.float32 else f"{rows.dtype.name}_t"
        flags = (*THUMB_FLAGS, f"-DROW={row}", "-I.")
        command = ["arm-linux-gnueabi-gcc", *flags, source("count_rows.c"), "-lm", "-o", "main"]
        compiled(command, folder)
        for n in (1, 2):
            with (folder / "log").open("wb") as log:
                command = ["qemu-arm", "-singlestep", "-d", "nochain,exec", f"{folder}/main"]
                subprocess.run(command, input=rows[:n].tobytes(), stderr=log, check=True)
            lines.append((folder / "log").read_bytes().count(b"\n"))
    return lines[1] - lines[0]


def measure(dataset: str, budget: str, processor: str) -> Simulation:
    """Run the header of a model on a simulated processor."""
    problem, model = integer_problem(dataset), fitted(dataset, budget)
    if processor.endswith("float"):
        header, report = to_c(model), c_report(model)
        if processor == "avr float":
            rows = problem.X_test[:1].astype(INPUT_TYPE)
            _, cycles = on_avr(header, rows, integer=False)
        else:
            cycles = on_thumb(header, problem.X_test[:2].astype(np.float32))
        return Simulation(dataset, budget, processor, 1, None, cycles, report.products)
    how: dict[str, Any] = {"X": problem.X, "input_type": INPUT_TYPE}
    header, integers = to_c(model, arithmetic="int", **how), integer_model(model, **how)
    report = c_report(model, arithmetic="int", **how)
    if processor == "thumb":
        count = on_thumb(header, problem.X_test[:2].astype(INPUT_TYPE))
        return Simulation(dataset, budget, processor, 1, None, count, report.products)
    slowest: int | None = None
    if processor == "arm":
        rows = np.resize(problem.X_test, (ARM_ROWS, problem.X.shape[1])).astype(INPUT_TYPE)
        scores = on_arm(header, rows)
    else:
        rows = problem.X_test[:AVR_ROWS].astype(INPUT_TYPE)
        scores, slowest = on_avr(header, rows, integer=True)
    different = int((scores != integers.scores(rows)).sum())
    return Simulation(dataset, budget, processor, len(rows), different, slowest, report.products)


def run(options: BenchOptions) -> None:
    """Measure the models that are not in the file yet."""
    options.expect()
    tasks = [] if options.smoke else list(itertools.product(chosen(options), BUDGETS, PROCESSORS))
    options.measure("simulators.csv", Simulation, [*COMPARED, *tasks], measure)
