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
    """Return the outputs of an ONNX graph by name, given its only input, or all inputs by name."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    made = graph.SerializeToString()
    session = runtime.InferenceSession(made, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feeds = X if isinstance(X, dict) else {session.get_inputs()[0].name: X}
    return dict(zip(names, session.run(None, feeds), strict=True))


def onnx_feeds(schema, raw, dtype=np.float32):
    """Return the inputs of a graph for raw numbers of the columns of a table."""
    feeds = {}
    for column, x in zip(schema.columns, raw.T, strict=True):
        if column.kind == "category":
            levels = [*column.levels, "-77" if column.numbered else "another level"]
            texts = ["" if np.isnan(code) else levels[int(code)] for code in x]
            feeds[column.name] = np.array(texts, dtype=object)
            if column.numbered:
                numbers = [float(text or "nan") for text in texts]
                feeds[column.name] = np.array(numbers, dtype=dtype)
        else:
            feeds[column.name] = x.astype(np.float64 if column.kind == "date" else dtype)
    # in another order than that of the columns
    return {name: feeds[name][:, None] for name in sorted(feeds, reverse=True)}


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
        "cosine": lambda: dot and dot / np.sqrt((x @ x) * (z @ z)),  # where 0/0 is 0
        "laplacian": lambda: np.exp(-gamma * np.abs(x - z).sum()),
        "linear": lambda: dot,
        "polynomial": lambda: (gamma * dot + kernel["coef0"]) ** kernel["degree"],
        "rbf": lambda: np.exp(-gamma * squares.sum()),
        "sigmoid": lambda: np.tanh(gamma * dot + kernel["coef0"]),
    }[name]()


def _power(u, e):
    return np.log(u) if e == 0 else (u**e - 1) / e


def _power_columns(term, x):
    u = ((term["fill"] if np.isnan(x) else x) - term["origin"]) * term["unit"]
    if not term["signed"]:
        t = _power(u, term["exponent"])
    else:
        t = _power(1 + u, term["exponent"]) if u >= 0 else -_power(1 - u, 2 - term["exponent"])
    return [(t - term["offset"]) * term["scale"]]


def _ramp_columns(term, x):
    knots = term["knots"]
    x = knots[term["gap"]] if np.isnan(x) else x
    return [
        term["height"] * min(max((x - knots[k]) / (knots[k + 1] - knots[k]), 0), 1)
        for k in range(len(knots) - 1)
    ]


def _curve_columns(term, x):
    knots, values = term["knots"], term["values"]
    x = min(max(knots[term["gap"]] if np.isnan(x) else x, knots[0]), knots[-1])
    k = max(k for k in range(len(knots) - 1) if x >= knots[k])
    share = (x - knots[k]) / (knots[k + 1] - knots[k])
    return [(1 - share) * values[k] + share * values[k + 1]]


def _circle_columns(term, x):
    a = 2 * np.pi * (x - term["origin"]) / term["period"]
    return [0.0, 0.0] if np.isnan(x) else [np.cos(a), np.sin(a)]


def _lookup_columns(term, x):
    table = term["table"]
    if np.isnan(x):
        return table[-1]
    return table[int(x)] if x in range(len(table) - 2) else table[-2]


def _one_hot_columns(term, x):
    hot = [float(x == i) for i in range(term["n_levels"])]
    return [*hot, float(np.isnan(x))] if term["gaps"] else hot


TERMS = {
    "circle": _circle_columns,
    "curve": _curve_columns,
    "linear": lambda term, x: [
        ((term["fill"] if np.isnan(x) else x) - term["offset"]) * term["scale"]
    ],
    "lookup": _lookup_columns,
    "missing": lambda term, x: [term["missing" if np.isnan(x) else "present"]],
    "one_hot": _one_hot_columns,
    "power": _power_columns,
    "ramps": _ramp_columns,
}


def _code(terms, x):
    """Evaluate the formulas of a code for one row."""
    return np.concatenate([TERMS[term["kind"]](term, x[term["column"]]) for term in terms])


def _image_code(encoder, x):
    """Evaluate the formula of a code of images for one row."""
    h, w, channels = encoder["shape"]
    k = encoder["n_cosines"]
    image = np.reshape(x, (h, w, channels))

    def M(i, a, n):
        return np.sqrt((2 if a > 0 else 1) / n) * np.cos(np.pi * (i + 1 / 2) * a / n)

    return [
        sum(M(i, a, h) * image[i, j, c] * M(j, b, w) for i in range(h) for j in range(w))
        for a in range(min(k, h))
        for b in range(min(k, w))
        for c in range(channels)
    ]


def json_scores(text, rows):
    """Return the scores of rows by what is written in the text of `to_json`, and nothing else."""
    model = json.loads(text)
    A, b, Z = (np.array(model[name]) for name in ("dual_coef", "intercept", "landmarks"))
    if "encoder" in model:
        encoder = model["encoder"]
        images = "shape" in encoder
        rows = [_image_code(encoder, x) if images else _code(encoder["terms"], x) for x in rows]
        rows = np.array(rows)
    linear = rows @ np.array(model["linear"]) if "linear" in model else 0.0
    if "center" in model:
        rows = rows - np.array(model["center"])
    if model["projection"] is not None:
        P = np.array(model["projection"])
        rows = rows * P if P.ndim == 1 else rows @ P
    K = np.array([[_kernel_value(model["kernel"], x, z) for z in Z] for x in rows])
    return K @ A + linear + b
