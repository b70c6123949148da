"""Compare models of kilobytes with SVC and gradient boosting on scikit-learn's digits.

Prints a table, draws accuracy against bytes, compiles the smaller model if there is a C compiler,
and writes a page on which digits can be drawn and are recognised.

    python examples/demo.py [--out build/demo]
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from scipy.stats import binomtest
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from nysplus import NystroemClassifier
from nysplus.encoding import ImageEncoder
from nysplus.export import to_c, to_html

# Predictions of all test rows are timed this many times; the median is shown.
REPEATS = 5
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
# Reads rows of 64 floats and prints the digit of each row.
PROGRAM = """\
#include <stdio.h>
#include "digits.h"

int main(void)
{
    float x[DIGITS_FEATURES];
    while (fread(x, sizeof x, 1, stdin) == 1) printf("%d\\n", digits_classes[digits_predict(x)]);
    return 0;
}
"""
# Okabe and Ito's colours, distinguishable with any colour vision.
OURS, THEIRS = "#D55E00", "#0072B2"


@dataclass(frozen=True)
class Result:
    """A fitted model with its measurements.

    Attributes
    ----------
    accuracy, low, high : float
        Accuracy on the test rows in %, and its 95 % interval by Wilson.
    """

    name: str
    model: Any
    accuracy: float
    low: float
    high: float
    n_bytes: int
    fit_seconds: float
    predict_seconds: float


def models(verbose: int) -> dict[str, Any]:
    """Return the models to compare by name, smallest first."""

    def compact(budget: str) -> NystroemClassifier:
        options = {"budget": budget, "refine": True, "encoder": ImageEncoder((8, 8))}
        return NystroemClassifier(**options, random_state=0, verbose=verbose)

    return {
        "nysplus, 4 kB": compact("4kB"),
        "nysplus, 16 kB": compact("16kB"),
        "SVC(C=10)": SVC(C=10),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    }


def size(model: Any) -> int:
    """Return the bytes of the numbers of a model, or of its pickle."""
    if isinstance(model, NystroemClassifier):
        return model.model_bytes_
    if isinstance(model, SVC):
        return sum(x.nbytes for x in (model.support_vectors_, model.dual_coef_, model.intercept_))
    return len(pickle.dumps(model))


@threadpool_limits.wrap(limits=1)
def measure(name: str, model: Any, data: list[np.ndarray]) -> Result:
    """Fit a model in one thread and return its measurements."""
    X_train, X_test, y_train, y_test = data
    start = time.perf_counter()
    model.fit(X_train, y_train)
    fit_seconds = time.perf_counter() - start
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        predicted = model.predict(X_test)
        seconds.append(time.perf_counter() - start)
    right = binomtest(int((predicted == y_test).sum()), len(y_test))
    interval = right.proportion_ci(method="wilson")
    shares = (100 * p for p in (right.statistic, interval.low, interval.high))
    return Result(name, model, *shares, size(model), fit_seconds, statistics.median(seconds))


def print_table(results: list[Result], data: list[np.ndarray]) -> None:
    """Print a line for each model."""
    n_train, n_test = len(data[0]), len(data[1])
    print(f"Digits: {n_train:,} training rows, {n_test:,} test rows of 8 × 8 pixels\n")
    print(f"{'model':<22}{'accuracy %':<18}{'bytes':>10}{'fit s':>8}{'predict µs/row':>17}")
    for r in results:
        accuracy = f"{r.accuracy:.1f} [{r.low:.1f}, {r.high:.1f}]"
        numbers = f"{r.n_bytes:>10,}{r.fit_seconds:>8.2f}{1e6 * r.predict_seconds / n_test:>17.1f}"
        print(f"{r.name:<22}{accuracy:<18}{numbers}")
    print(
        "\n[ ]: 95 % interval of the test accuracy. Times: one thread. Bytes: landmarks or support"
        "\nvectors, and coefficients; the pickle of HistGradientBoosting."
    )


def draw(results: list[Result], path: Path) -> None:
    """Draw accuracy against bytes."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for r in results:
        ours = r.name.startswith("nysplus")
        look = {"color": OURS if ours else THEIRS, "marker": "o" if ours else "D"}
        bars = ([r.accuracy - r.low], [r.high - r.accuracy])
        axes.errorbar(r.n_bytes / 1024, r.accuracy, yerr=bars, markersize=9, capsize=4, **look)
        place = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
        text = r.name.replace(", ", "\n")
        axes.annotate(text, (r.n_bytes / 1024, r.high), **place, fontsize=12, color=look["color"])
    axes.set_xscale("log")
    axes.margins(x=0.25, y=0.2)
    axes.xaxis.set_major_locator(FixedLocator([4.0**k for k in range(-1, 9)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda kb, _: f"{kb:,g}"))
    axes.set_xlabel("model size (kB, logarithmic)", fontsize=13)
    axes.set_ylabel("test accuracy (%)", fontsize=13)
    axes.set_title("Digits: accuracy with 95 % intervals", fontsize=13)
    axes.tick_params(labelsize=12)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def check_c(model: NystroemClassifier, X: np.ndarray, folder: Path) -> None:
    """Compile a model and compare its predictions with those of Python."""
    if COMPILER is None:
        print("C       not compiled: neither cc, gcc nor clang is installed")
        return
    to_c(model, folder / "digits.h", name="digits")
    (folder / "digits.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Os"]
    subprocess.run([COMPILER, *flags, "digits.c", "-lm", "-o", "digits"], cwd=folder, check=True)
    program = (folder / "digits").resolve()
    done = subprocess.run([program], input=X.tobytes(), stdout=subprocess.PIPE, check=True)
    found = np.array(done.stdout.split(), dtype=int)
    same = int((found == model.predict(X)).sum())
    print(f"C       {folder / 'digits.h'}: {same} of {len(X)} predictions as in Python")
    if same < len(X):
        sys.exit("The compiled model and Python disagree.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the files")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    data = train_test_split(X.astype(np.float32), y, random_state=0)
    terminal = sys.stderr.isatty()
    results = []
    chosen = models(verbose=int(terminal))
    for i, (name, model) in enumerate(chosen.items(), 1):
        if terminal:
            print(f"Fitting {i} of {len(chosen)}: {name}", file=sys.stderr)
        results.append(measure(name, model, data))
    print_table(results, data)
    figure, page, small = folder / "digits.png", folder / "digits.html", results[0].model
    draw(results, figure)
    print(f"\nFigure  {figure}")
    check_c(small, data[1], folder)
    to_html(small, page, title="Draw a digit", examples=data[1][:8])
    print(f"Page    {page}: open it in a browser and draw a digit")


if __name__ == "__main__":
    main()
