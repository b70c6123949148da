"""Measure flash memory and RAM of headers on microcontrollers, as cross compilers report them.

Each header is compiled with a program that predicts one row, with ``-Os``, in integers and in
floating point. Flash memory are the sections text and data; RAM are data and bss, which contain the
row, and the stack of the prediction (``-fstack-usage``).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nysplus.export import to_c
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.integers.models import (
    BUDGETS,
    INPUT_TYPE,
    chosen,
    compiled,
    fitted,
    integer_problem,
    source,
)


@dataclass(frozen=True)
class Target:
    """A microcontroller: its compiler with options, and its flash memory in bytes, if it is one."""

    title: str
    compiler: str
    flags: tuple[str, ...]
    flash: int | None = None

    @property
    def size(self) -> str:
        """The program that lists the sections of a file."""
        return self.compiler.replace("gcc", "size")


_ARM = ("-mthumb", "-nostartfiles", "--specs=nosys.specs", "-Wl,-e,main")
_RISCV = (
    *("-march=rv32imc", "-mabi=ilp32", "-nostartfiles", "--specs=picolibc.specs"),
    *("-Wl,--defsym=__flash_size=0x100000", "-Wl,-e,main"),  # picolibc takes 64 kB for granted
)
TARGETS = {
    "cortex-m0": Target("Cortex-M0", "arm-none-eabi-gcc", ("-mcpu=cortex-m0", *_ARM)),
    "cortex-m4": Target(
        "Cortex-M4F",
        "arm-none-eabi-gcc",
        ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", *_ARM),
    ),
    "atmega328p": Target("ATmega328P", "avr-gcc", ("-mmcu=atmega328p",), 32 * 1024),
    "riscv": Target("RISC-V, RV32IMC", "riscv64-unknown-elf-gcc", _RISCV),
}
ARITHMETICS = ("int", "float")


@dataclass(frozen=True)
class TargetSize(Row, key="dataset budget target arithmetic"):
    """One row of ``targets.csv``; None where the program does not fit, and ``error`` says why."""

    dataset: str
    budget: str
    target: str
    arithmetic: str
    table_bytes: int
    flash: int | None
    ram: int | None
    stack: int | None
    error: str


def sections(target: Target, path: Path) -> tuple[int, int, int]:
    """Return the bytes of text, data and bss, without the stack that some libraries reserve."""
    done = subprocess.run([target.size, path], capture_output=True, text=True, check=True)
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    listed = subprocess.run([target.size, "-A", path], capture_output=True, text=True, check=True)
    reserved = sum(map(int, re.findall(r"^\.stack\s+(\d+)", listed.stdout, re.M)))
    return text, data, bss - reserved


def stack_of(folder: Path) -> int:
    """Return the sum of the stacks of all functions: they call each other in one chain at most."""
    lines = [line for path in folder.glob("*.su") for line in path.read_text().splitlines()]
    return sum(int(re.split(r"\t", line)[1]) for line in lines)


def measure(dataset: str, budget: str, target: str, arithmetic: str) -> TargetSize:
    """Compile the header of a model for a target."""
    problem, model, chip = integer_problem(dataset), fitted(dataset, budget), TARGETS[target]
    if shutil.which(chip.compiler) is None:
        raise OSError(f"{chip.compiler} is not installed. It compiles for {chip.title}.")
    integer = arithmetic == "int"
    how: dict[str, Any] = {}
    if integer:
        how = {"arithmetic": "int", "X": problem.X, "input_type": INPUT_TYPE}
    header, row = to_c(model, **how), f"{INPUT_TYPE}_t" if integer else "float"
    tables = int(header.split("Tables: ")[1].split()[0])
    flash = ram = stack = None
    error = ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nysplus.h").write_text(header)
        flags = ("-std=c99", "-Os", "-fstack-usage", "-ffunction-sections", f"-DROW={row}", "-I.")
        command = [chip.compiler, *flags, *chip.flags, "-Wl,--gc-sections"]
        try:
            compiled([*command, source("predict_once.c"), "-lm", "-o", "main.elf"], folder)
            text, data, bss = sections(chip, folder / "main.elf")
            if chip.flash is not None and text + data > chip.flash:
                error = f"{text + data:,} bytes are more than the flash memory"
            else:
                flash, ram, stack = text + data, data + bss, stack_of(folder)
        except OSError as failure:
            error = " ".join(str(failure).split())[-120:]
    sizes = (tables, flash, ram, stack, error)
    return TargetSize(dataset, budget, target, arithmetic, *sizes)


def run(options: BenchOptions) -> None:
    """Measure the models and targets that are not in the file yet."""
    options.expect()
    budgets = BUDGETS[:1] if options.smoke else BUDGETS
    tasks = [
        (dataset, budget, target, arithmetic)
        for dataset in chosen(options)
        for budget in budgets
        for target in TARGETS
        for arithmetic in ARITHMETICS
    ]
    options.measure("targets.csv", TargetSize, tasks, measure)
