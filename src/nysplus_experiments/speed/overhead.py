"""What is paid once or per call: import, the first fit, predicting a few rows, clustering.

Imports and first fits are taken in fresh interpreters, alternately with those of scikit-learn.

    python benchmarks/overhead.py [--repeats 15] [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import csv_rows
import numpy as np
from child_process import environment, restart_with_fixed_threads
from measurement import RESULTS
from peers import SYSTEMS
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from nysplus._blocks import Blocks
from nysplus.landmarks.unsupervised import centroids

ROWS, FEATURES, LANDMARKS = 2000, 50, 500
GAMMA = 1 / FEATURES
BATCHES = (1, 10, 100)
# Of calls in one go: long against the clock, short against the machine's drift.
SECONDS_A_BATCH = 0.1
CLUSTERED_ROWS = 20_000
FIRST_FITS = 9
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
_COMPARED = {
    "nysplus": next(s for s in SYSTEMS if (s.name, s.dtype) == ("nysplus", "float64")),
    "scikit-learn": next(
        s for s in SYSTEMS if (s.name, s.dtype) == ("sklearn-nystroem", "float64")
    ),
}


@dataclass(frozen=True)
class Overhead:
    """One row of ``overhead.csv``: ``rows`` is the batch that is predicted, where there is one."""

    what: str
    system: str
    rows: int | None
    repeat: int
    seconds: float


def import_times(repeats: int) -> Iterator[Overhead]:
    """Yield import times of nysplus and of scikit-learn's own Nyström module."""
    modules = {"nysplus": "nysplus", "scikit-learn": "sklearn.kernel_approximation"}
    for repeat in range(-1, repeats):
        for system, module in modules.items():
            seconds = float(_python("-c", _IMPORT.format(module)))
            if repeat >= 0:  # the first round fills the file cache
                yield Overhead("import", system, None, repeat, seconds)


def first_fits(repeats: int) -> Iterator[Overhead]:
    """Yield the times of the first and of the second fit of a fresh interpreter."""
    for repeat in range(repeats):
        for system in _COMPARED:
            first, second = map(float, _python(__file__, "--fit-twice", system).split())
            yield Overhead("first fit", system, None, repeat, first)
            yield Overhead("second fit", system, None, repeat, second)


def fit_twice(system: str) -> None:
    """Print the seconds of two equal fits in this process."""
    X, y = _rows()
    for _ in range(2):
        model = _COMPARED[system].make(LANDMARKS, GAMMA)
        start = time.perf_counter()
        model.fit(X, y)
        print(time.perf_counter() - start)


def predictions(repeats: int) -> Iterator[Overhead]:
    """Yield seconds a call of predicting a few rows, and of checking one row."""
    X, y = _rows()
    models = {name: each.make(LANDMARKS, GAMMA).fit(X, y) for name, each in _COMPARED.items()}

    def check_only(rows: np.ndarray) -> None:
        check_is_fitted(models["nysplus"])
        validate_data(models["nysplus"], rows, reset=False, accept_sparse="csr", dtype="numeric")

    for repeat in range(repeats):
        yield Overhead("check", "scikit-learn", 1, repeat, _seconds_a_call(check_only, X[:1]))
        for n_rows in BATCHES:
            for system, model in models.items():
                seconds = _seconds_a_call(model.predict, X[:n_rows])
                yield Overhead("predict", system, n_rows, repeat, seconds)


def clusterings(repeats: int) -> Iterator[Overhead]:
    """Yield the times of clustering the same float64 rows, ours and scikit-learn's variants."""
    X = np.random.RandomState(0).standard_normal((CLUSTERED_ROWS, FEATURES))
    blocks = Blocks(X)
    settings = {"n_clusters": LANDMARKS, "init": "random", "n_init": 1, "max_iter": 20}

    def theirs(dtype: str, algorithm: str) -> KMeans:
        rows = X.astype(dtype)
        return KMeans(**settings, algorithm=algorithm, random_state=0).fit(rows)

    rows, rng = np.arange(len(X)), np.random.RandomState
    ways: dict[str, Callable[[], object]] = {
        "nysplus": lambda: centroids(blocks, rows, LANDMARKS, settings["max_iter"], rng(0)),
        "Lloyd, float64": lambda: theirs("float64", "lloyd"),
        "Lloyd, float32": lambda: theirs("float32", "lloyd"),
        "Elkan, float32": lambda: theirs("float32", "elkan"),
    }
    for repeat in range(repeats):
        for name, cluster in ways.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                cluster()
            yield Overhead("k-means", name, CLUSTERED_ROWS, repeat, time.perf_counter() - start)


def _rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.RandomState(0).standard_normal((ROWS, FEATURES))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _seconds_a_call(function: Callable[[np.ndarray], object], rows: np.ndarray) -> float:
    function(rows)
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS_A_BATCH:
        function(rows)
        calls += 1
    return (time.perf_counter() - start) / calls


def _python(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# -- the table -----------------------------------------------------------------------------------


def summary(rows: list[Overhead]) -> list[tuple[str, str]]:
    """Return lines of the table: what, and its median with the smallest and the largest value."""

    def values(what: str, system: str, batch: int | None = None) -> list[float]:
        wanted = (what, system, batch)
        return [row.seconds for row in rows if (row.what, row.system, row.rows) == wanted]

    def differ(what: str, text: str, a: list[float], b: list[float], unit: str) -> None:
        lines.append((f"{what}: {text}", spread([x - y for x, y in zip(a, b, strict=True)], unit)))

    def ratio(what: str, a: list[float], b: list[float]) -> None:
        lines.append((what, spread([x / y for x, y in zip(a, b, strict=True)], "×")))

    lines: list[tuple[str, str]] = []
    ours, theirs = values("import", "nysplus"), values("import", "scikit-learn")
    lines.append(("import nysplus", spread(ours, "ms")))
    lines.append(("import sklearn.kernel_approximation", spread(theirs, "ms")))
    differ("import", "nysplus beyond scikit-learn", ours, theirs, "ms")
    ratio("import: nysplus over scikit-learn", ours, theirs)
    for system in _COMPARED:
        first, second = values("first fit", system), values("second fit", system)
        ratio(f"first fit over second fit of a fresh process, {system}", first, second)
        differ("first fit", f"beyond the second, {system}", first, second, "ms")
    one, check = values("predict", "nysplus", 1), values("check", "scikit-learn", 1)
    lines.append(("predict one row, nysplus", spread(one, "µs")))
    lines.append(("of it scikit-learn's checks of the row", spread(check, "µs")))
    differ("predict one row", "beyond the checks", one, check, "µs")
    for batch in BATCHES:
        ours = values("predict", "nysplus", batch)
        theirs = values("predict", "scikit-learn", batch)
        what = f"predict {batch} row{'s' if batch > 1 else ''}"
        lines.append((f"{what}, scikit-learn's pipeline", spread(theirs, "µs")))
        ratio(f"{what}, scikit-learn's time over ours", theirs, ours)
    for name in ("Lloyd, float64", "Lloyd, float32", "Elkan, float32"):
        what = f"k-means of {CLUSTERED_ROWS:,} rows: scikit-learn's time ({name}) over ours"
        ours = values("k-means", "nysplus", CLUSTERED_ROWS)
        ratio(what, values("k-means", name, CLUSTERED_ROWS), ours)
    return lines


def spread(values: list[float], unit: str) -> str:
    """Return "median [smallest, largest] unit"; seconds are converted to the unit.

    >>> spread([0.001, 0.002, 0.004], "ms")
    '2 [1, 4] ms'
    """
    factor = {"ms": 1e3, "µs": 1e6, "×": 1.0}[unit]
    numbers = (statistics.median(values), min(values), max(values))
    middle, low, high = (_three_digits(factor * x) for x in numbers)
    return f"{middle} [{low}, {high}] {unit}"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def main() -> None:
    if sys.argv[1:2] == ["--fit-twice"]:
        fit_twice(sys.argv[2])
        return
    restart_with_fixed_threads()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="two repeats of everything")
    parser.add_argument("--out", type=Path, default=RESULTS / "overhead.csv")
    options = parser.parse_args()
    repeats = 2 if options.quick else options.repeats
    csv_rows.begin(options.out, Overhead, environment(), fresh=True)
    rows = []
    few = min(repeats, FIRST_FITS)
    parts = (import_times(repeats), first_fits(few), predictions(repeats), clusterings(few))
    for part in parts:
        for row in part:
            csv_rows.append(options.out, row)
            rows.append(row)
    for what, value in summary(rows):
        print(f"{what:60s} {value}")


if __name__ == "__main__":
    main()
