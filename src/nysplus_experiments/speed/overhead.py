"""Measure costs paid once or per call: import, first fit, predicting few rows, clustering."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from nysplus._rows.blocks import Blocks
from nysplus.landmarks.clustering import centroids
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.speed.peers import SYSTEMS

ROWS, FEATURES, LANDMARKS = 2000, 50, 500
GAMMA = 1 / FEATURES
BATCHES = (1, 10, 100)
# Of calls in a row: long against the clock, short against the machine's drift.
SECONDS_A_BATCH = 0.1
CLUSTERED_ROWS, CLUSTERING_STEPS = 20_000, 20
FIRST_FITS = 9
COMPARED = {"nysplus": "nysplus", "scikit-learn": "sklearn-nystroem"}
MODULES = {"nysplus": "nysplus", "scikit-learn": "sklearn.kernel_approximation"}
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
_FIT_TWICE = "from nysplus_experiments.speed.overhead import fit_twice; fit_twice({!r})"
# The part of the measurement that a row belongs to, where it has another name.
_PARTS = {"second fit": "first fit", "check": "predict"}


@dataclass(frozen=True)
class Overhead(Row, key="part repeat"):
    """One row of ``overhead.csv``: ``rows`` is the size of a batch, where there is one."""

    what: str
    system: str
    rows: int | None
    repeat: int
    seconds: float

    @property
    def part(self) -> str:
        """The part that is measured as a whole."""
        return _PARTS.get(self.what, self.what)


def time_imports(repeat: int) -> list[Overhead]:
    """Time the imports of nysplus and of scikit-learn's own Nyström module."""
    return [
        Overhead("import", system, None, repeat, float(_python(_IMPORT.format(module))))
        for system, module in MODULES.items()
    ]


def time_first_fits(repeat: int) -> list[Overhead]:
    """Time the first and the second fit of a fresh interpreter."""
    rows = []
    for system in COMPARED:
        seconds = map(float, _python(_FIT_TWICE.format(system)).split())
        for what, value in zip(("first fit", "second fit"), seconds, strict=True):
            rows.append(Overhead(what, system, None, repeat, value))
    return rows


def fit_twice(system: str) -> None:
    """Print the seconds of two equal fits in this process."""
    X, y = _make_rows()
    for _ in range(2):
        model = _make(system)
        start = time.perf_counter()
        model.fit(X, y)
        print(time.perf_counter() - start)


def time_predictions(repeat: int) -> list[Overhead]:
    """Time predictions of a few rows, and scikit-learn's validation of one row."""
    X, _ = _make_rows()
    models = {system: _fitted(system) for system in COMPARED}

    def check(rows: np.ndarray) -> None:
        check_is_fitted(models["nysplus"])
        validate_data(models["nysplus"], rows, reset=False, accept_sparse="csr", dtype="numeric")

    found = [Overhead("check", "scikit-learn", 1, repeat, _seconds_a_call(check, X[:1]))]
    for n_rows in BATCHES:
        for system, model in models.items():
            seconds = _seconds_a_call(model.predict, X[:n_rows])
            found.append(Overhead("predict", system, n_rows, repeat, seconds))
    return found


def time_clusterings(repeat: int) -> list[Overhead]:
    """Time k-means on the same float64 rows, by nysplus and by variants of scikit-learn's."""
    X = np.random.RandomState(0).standard_normal((CLUSTERED_ROWS, FEATURES))
    settings = {"n_clusters": LANDMARKS, "init": "random", "n_init": 1, "random_state": 0}

    def sklearn(dtype: str, algorithm: str) -> KMeans:
        k_means = KMeans(**settings, max_iter=CLUSTERING_STEPS, algorithm=algorithm)
        return k_means.fit(X.astype(dtype))

    def nysplus() -> Any:
        pool = Blocks(X).gather(np.arange(len(X)))
        return centroids(pool, LANDMARKS, CLUSTERING_STEPS, np.random.RandomState(0))

    ways: dict[str, Callable[[], object]] = {
        "nysplus": nysplus,
        "Lloyd, float64": lambda: sklearn("float64", "lloyd"),
        "Lloyd, float32": lambda: sklearn("float32", "lloyd"),
        "Elkan, float32": lambda: sklearn("float32", "elkan"),
    }
    found = []
    for name, cluster in ways.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            cluster()
        seconds = time.perf_counter() - start
        found.append(Overhead("k-means", name, CLUSTERED_ROWS, repeat, seconds))
    return found


def _make_rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.RandomState(0).standard_normal((ROWS, FEATURES))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _make(system: str) -> Any:
    requested = (COMPARED[system], "float64")
    found = next(each for each in SYSTEMS if (each.name, each.dtype) == requested)
    return found.make(LANDMARKS, GAMMA)


@cache
def _fitted(system: str) -> Any:
    return _make(system).fit(*_make_rows())


def _seconds_a_call(function: Callable[[np.ndarray], object], rows: np.ndarray) -> float:
    function(rows)
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS_A_BATCH:
        function(rows)
        calls += 1
    return (time.perf_counter() - start) / calls


def _python(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run(options: BenchOptions) -> None:
    """Measure the repeats that are not in the file yet; two in a smoke run."""
    options.expect("repeats")
    repeats = options.integer("repeats", 2 if options.smoke else 15)
    few = min(repeats, FIRST_FITS)
    parts: dict[str, tuple[Callable[[int], list[Overhead]], int]] = {
        "import": (time_imports, repeats),
        "first fit": (time_first_fits, few),
        "predict": (time_predictions, repeats),
        "k-means": (time_clusterings, few),
    }
    options.measure(
        "overhead.csv",
        Overhead,
        [(part, repeat) for part, (_, count) in parts.items() for repeat in range(count)],
        lambda part, repeat: parts[part][0](repeat),
        prepare=lambda: time_imports(0),  # fills the system's file cache
    )
