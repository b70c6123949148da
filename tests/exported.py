"""Evaluate exported models without the library: C headers, ONNX graphs and JSON."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

from nysplus.export import to_c

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]

# reads rows of floats, writes for each the outputs of every function
MAIN = """
#include <stdio.h>
#include "model.h"
int main(void)
{
    ROW x[NYSPLUS_FEATURES];
    float scores[NYSPLUS_SCORES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        nysplus_scores(x, scores);
        fwrite(scores, sizeof scores, 1, stdout);
        %s
    }
    return 0;
}
"""


def row_type(header):
    """Return the type in which a header takes rows."""
    return np.float64 if "const double *x" in header else np.float32


def build_c(folder, header, calls="", real="float"):
    """Compile a program that makes `calls` for every row."""
    row = "double" if row_type(header) is np.float64 else "float"
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text((MAIN % calls).replace("float", real).replace("ROW", row))
    subprocess.run([GCC, *FLAGS, "main.c", "-lm", "-o", "main"], cwd=folder, check=True)


def run_c(folder, X, row=np.float32, real=np.float32):
    """Return what the program writes for every row."""
    done = subprocess.run(
        [folder / "main"], input=X.astype(row).tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(done.stdout, dtype=real).reshape(len(X), -1)


def c_scores(folder, model, X, **options):
    """Return the scores of rows by the C header of a model."""
    header = to_c(model, **options)
    real = options.get("dtype") == "float64"
    build_c(folder, header, real="double" if real else "float")
    return run_c(folder, X, row_type(header), np.float64 if real else np.float32)


def onnx_outputs(graph, X):
    """Return the outputs of an ONNX graph by name."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    made = graph.SerializeToString()
    session = runtime.InferenceSession(made, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


def _kernel_value(kernel, x, z):
    """Evaluate the formulas of the text for one row and one landmark."""
    name, gamma, dot = kernel["name"], kernel.get("gamma"), x @ z
    squares = (x - z) ** 2
    if name == "matern":
        s, nu = np.sqrt(4 * kernel["nu"] * gamma * squares.sum()), kernel["nu"]
        return np.exp(-s) * {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu]
    return {
        "additive_chi2": lambda: -(squares / (x + z)).sum(),
        "chi2": lambda: np.exp(-gamma * (squares / (x + z)).sum()),
        "cosine": lambda: dot / np.sqrt((x @ x) * (z @ z)),
        "laplacian": lambda: np.exp(-gamma * np.abs(x - z).sum()),
        "linear": lambda: dot,
        "polynomial": lambda: (gamma * dot + kernel["coef0"]) ** kernel["degree"],
        "rbf": lambda: np.exp(-gamma * squares.sum()),
        "sigmoid": lambda: np.tanh(gamma * dot + kernel["coef0"]),
    }[name]()


def json_scores(text, rows):
    """Return the scores of rows by what is written in the text of `to_json`, and nothing else."""
    model = json.loads(text)
    A, b, Z = (np.array(model[name]) for name in ("dual_coef", "intercept", "landmarks"))
    if model["format_version"] == 2:
        rows = rows - np.array(model["center"])
    if model["projection"] is not None:
        P = np.array(model["projection"])
        rows = rows * P if P.ndim == 1 else rows @ P
    K = np.array([[_kernel_value(model["kernel"], x, z) for z in Z] for x in rows])
    return K @ A + b
