"""Compare headers with models that other libraries write for microcontrollers.

The libraries write C for models of scikit-learn: forests (emlearn, micromlgen, m2cgen) and support
vector machines (micromlgen, m2cgen). Each program is compiled for a Cortex-M0 with ``-Os``. Bytes
are those of its flash memory, and the accuracy is that of the model on the test rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

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
from nysplus_experiments.integers.targets import TARGETS, sections

TARGET = TARGETS["cortex-m0"]
# Models that emlearn does not have, and models that would take long to write and to compile: the
# program of m2cgen for 10 trees on Letter has 1.5 MB.
LARGE = "forest of 100 trees"
LEFT_OUT = {("emlearn", "SVC"), ("m2cgen", LARGE), ("mnist", "m2cgen"), ("mnist", "micromlgen")}
LEFT_OUT |= {(dataset, model) for dataset in ("letter", "mnist") for model in (LARGE, "SVC")}
# Programs that predict one row, by library.
PROGRAMS = {
    "emlearn": '#include "model.h"\nint16_t x[{d}];\nvolatile int label;\n'
    "int main(void)\n{{\n    label = model_predict(x, {d});\n    for (;;) {{}}\n}}\n",
    "micromlgen": "#include <stdint.h>\n#include <stdarg.h>\n#include <math.h>\n"
    '#include "model.h"\n'
    "float x[{d}];\nvolatile int label;\nEloquent::ML::Port::{name} model;\n"
    "int main()\n{{\n    label = model.predict(x);\n    for (;;) {{}}\n}}\n",
    "m2cgen": '#include "model.h"\ndouble x[{d}], scores[{n}];\n'
    "int main(void)\n{{\n    score(x, scores);\n    for (;;) {{}}\n}}\n",
}


@dataclass(frozen=True)
class PeerModel(Row, key="dataset library model"):
    """One row of ``peers.csv``."""

    dataset: str
    library: str
    model: str
    accuracy: float
    flash: int | None
    error: str


def _emlearn(model: Any, name: str) -> str:
    converted = import_module("emlearn").convert(model, method="inline", dtype="int16_t")
    return str(converted.save(name="model", file=None, format="c", inference=["inline"]))


def _micromlgen(model: Any, name: str) -> str:
    return str(import_module("micromlgen").port(model, classname=name))


def _m2cgen(model: Any, name: str) -> str:
    return str(import_module("m2cgen").export_to_c(model))


WRITERS: dict[str, Callable[[Any, str], str]] = {
    "emlearn": _emlearn,
    "micromlgen": _micromlgen,
    "m2cgen": _m2cgen,
}
# gamma is a number, which micromlgen needs: scikit-learn's default
PEERS: dict[str, Callable[[float], Any]] = {
    "forest of 10 trees": lambda gamma: RandomForestClassifier(10, random_state=0),
    LARGE: lambda gamma: RandomForestClassifier(100, random_state=0),
    "SVC": lambda gamma: SVC(C=10.0, gamma=gamma),
}


def _flash(folder: Path, program: str, text: str, library: str) -> int:
    """Return the bytes of flash memory of a program on the target."""
    (folder / "model.h").write_text(text)
    ending, compiler = ".c", TARGET.compiler
    if library == "micromlgen":
        ending, compiler = ".cpp", compiler.replace("gcc", "g++")
    (folder / f"main{ending}").write_text(program)
    import_path = []
    if library == "emlearn":
        import_path = [f"-I{import_module('emlearn').includedir}"]
    flags = ("-Os", "-ffunction-sections", "-fdata-sections", "-I.", *import_path, *TARGET.flags)
    command = [compiler, *flags, "-Wl,--gc-sections", f"main{ending}", "-lm", "-o", "main.elf"]
    compiled(command, folder)
    text_bytes, data, _ = sections(TARGET, folder / "main.elf")
    return text_bytes + data


def measure(dataset: str, library: str, name: str) -> PeerModel:
    """Fit a model, write it with a library, and compile it."""
    problem = integer_problem(dataset)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if library == "nysplus":
            model = fitted(dataset, name)
            how: dict[str, Any] = {"X": problem.X, "input_type": INPUT_TYPE}
            (folder / "nysplus.h").write_text(to_c(model, arithmetic="int", **how))
            program = Path(source("predict_once.c")).read_text()
            program = program.replace("ROW x", f"{INPUT_TYPE}_t x")
            flash: int | None = _flash(folder, program, "", library)
            error = ""
        else:
            gamma = 1.0 / (problem.X.shape[1] * float(problem.X.var()))
            model = PEERS[name](gamma).fit(problem.X, problem.y)
            flash, error = None, ""
            sizes = {"d": problem.X.shape[1], "n": len(model.classes_), "name": "Model"}
            try:
                text = WRITERS[library](model, "Model")
                flash = _flash(folder, PROGRAMS[library].format(**sizes), text, library)
            except Exception as failure:  # whatever a library cannot do is a row of the table
                error = f"{type(failure).__name__}: {' '.join(str(failure).split())[:100]}"
        accuracy = 100.0 * float(np.mean(model.predict(problem.X_test) == problem.y_test))
    return PeerModel(dataset, library, name, accuracy, flash, error)


def run(options: BenchOptions) -> None:
    """Measure the models that are not in the file yet."""
    options.expect()
    names = chosen(options)
    budgets, writers = (BUDGETS[:1], ()) if options.smoke else (BUDGETS, WRITERS)
    tasks = [(d, "nysplus", budget) for d in names for budget in budgets]
    tasks += [
        (d, library, model)
        for d in names
        for library in writers
        for model in PEERS
        if not {(library, model), (d, model), (d, library)} & LEFT_OUT
    ]
    options.measure("peers.csv", PeerModel, tasks, measure)
