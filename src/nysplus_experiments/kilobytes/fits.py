"""Accuracy of models of a few kilobytes: ours, full SVMs, gradient boosting, Nystroem.

- ``targets``: refined models at the sizes of the page's main table
- ``svc``: SVMs in turn with refined models without a search of settings, to compare times
- ``tabular``: refined and unrefined models of 16 kB against gradient boosting
- ``flipped``: training rows of which a tenth have a wrong label
- ``draws``: few training rows, with and without refinement
- ``peers`` and ``sizes``: further points of the figure
- ``regression``: regressors of 16 kB against gradient boosting

The seed is that of the split, the order of the rows and the fit. Settings are each library's
defaults. Gradient boosting runs in a process of its own, its threads waiting as it prefers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import root_mean_squared_error

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.problems import (
    SMOKE,
    SOURCES,
    Problem,
    accuracy,
    available,
    load_problem,
)
from nysplus_experiments.harness.records import Row
from nysplus_experiments.speed.peers import SYSTEMS, System

FILE = "kilobytes.csv"
SEEDS = 5
ALL_ROWS = sys.maxsize
# -- methods
SELECTED, REFINED, QUICK = "selected", "refined", "quick"
SVC, NYSTROEM, TREES = "sklearn-svc", "sklearn-nystroem", ("lightgbm", "xgboost")
REFINE = {SELECTED: False, REFINED: True, QUICK: Refinement(search=False)}
PEERS = {
    name: next(s for s in SYSTEMS if s.name == name and s.dtype == dtype)
    for name, dtype in ((SVC, "float64"), (NYSTROEM, "float32"), *((t, "float32") for t in TREES))
}
# -- datasets with their settings, the quickest first
MAIN_SETTINGS = {
    "pendigits": ("100", "500"),
    "usps": ("64kB", "16kB"),
    "letter": ("64kB", "16kB"),
    "ijcnn1": ("100", "500"),
    "ijcnn1-resplit": ("100", "500"),
    "mnist": ("64kB", "16kB", "4kB", "1MB"),
    "covtype": ("500",),
}
FIGURE_DATASETS = ("pendigits", "usps", "letter", "ijcnn1", "covtype", "mnist")
TABULAR_SETTING = REGRESSION_SETTING = "16kB"
FLIPPED_DATASET, FLIPPED_SETTING, FLIPPED_SHARE = "letter", "64kB", 0.1
DRAWS, DRAW_ROWS, DRAW_SETTING = 20, 500, "100"
# Seeds of the SVM; one fit on MNIST takes many minutes.
SVC_SEEDS, QUICK_SETTING = {"usps": SEEDS, "letter": SEEDS, "mnist": 1}, "250"
# The figure has SVMs on these data, too. CovType's 500,000 rows are too many for an SVM.
SVC_FIGURE_DATASETS = ("pendigits", "ijcnn1")
NYSTROEM_SIZES = ("30", "100", "500")
CURVE_SETTINGS = ("4kB", "16kB", "64kB", "20", "100", "500")
# On 500,000 rows each fit takes minutes.
CURVES = {"covtype": ("16kB", "20", "100", "500")}
# More seeds where fits are quick.
CURVE_SEEDS = {"pendigits": 3, "usps": 3, "letter": 3, "ijcnn1": 1, "covtype": 1, "mnist": 1}
# Boosting on MNIST takes minutes; longer fits are stopped.
TREE_SECONDS = 1200
# Predictions of less than a second are timed three times, and the median is kept.
SHORT_PREDICT = 1.0


class Key(NamedTuple):
    """Identity of a fit; the setting is a budget ("16kB"), landmarks ("100"), or empty."""

    part: str
    dataset: str
    method: str
    setting: str
    seed: int


@dataclass(frozen=True)
class CompactFit(Row, key="part dataset method setting seed"):
    """One row of ``kilobytes.csv``: accuracy in percent, RMSE in deviations of the target.

    ``refined`` is 1 if the refinement was kept; other libraries have no landmarks, rank, storage.
    """

    part: str
    dataset: str
    method: str
    setting: str
    seed: int
    accuracy: float | None
    rmse: float | None
    bytes: int
    landmarks: int | None
    rank: int | None
    storage: str
    refined: int | None
    fit_seconds: float
    predict_seconds: float
    rows: int
    test_rows: int
    threads: int


def in_bytes(setting: str) -> bool:
    """Tell a budget from a number of landmarks."""
    return setting.endswith("B")


# Datasets of each part, the most important part first.
PARTS = {
    "targets": tuple(MAIN_SETTINGS),
    "svc": tuple(SVC_SEEDS),
    "tabular": ("magic", "susy", "a9a", "skin"),
    "flipped": (FLIPPED_DATASET,),
    "draws": ("pendigits", "letter", "usps", "magic", "susy", "a9a"),
    "peers": FIGURE_DATASETS,
    "sizes": FIGURE_DATASETS,
    "regression": ("california", "kin40k"),
}


def seeds_of(part: str, dataset: str, seeds: int) -> int:
    """Return the number of seeds of a dataset in a part, at most ``seeds`` unless it is fixed."""
    fixed = {"draws": DRAWS, "peers": 1}
    limits = {"svc": SVC_SEEDS, "sizes": CURVE_SEEDS}
    return fixed.get(part, min(seeds, limits.get(part, {}).get(dataset, seeds)))


def models_of(part: str, dataset: str) -> Iterator[tuple[str, str]]:
    """Yield the methods that are fitted to a dataset in a part, with their settings."""
    match part:
        case "targets":
            yield from product((REFINED,), MAIN_SETTINGS[dataset])
        case "svc":
            yield from ((QUICK, QUICK_SETTING), (SVC, ""))
        case "tabular":
            yield from product((REFINED, SELECTED), (TABULAR_SETTING,))
            yield from product(TREES, ("",))
        case "flipped":
            yield from product((REFINED, SELECTED), (FLIPPED_SETTING,))
        case "draws":
            yield from product((SELECTED, REFINED), (DRAW_SETTING,))
        case "peers":
            yield from product((NYSTROEM,), NYSTROEM_SIZES)
            yield from product((SVC,) if dataset in SVC_FIGURE_DATASETS else (), ("",))
            yield from product(TREES[::-1], ("",))
        case "sizes":
            for setting in CURVES.get(dataset, CURVE_SETTINGS):
                if setting not in MAIN_SETTINGS[dataset]:
                    yield REFINED, setting
                if in_bytes(setting):
                    yield SELECTED, setting
        case "regression":
            yield from product((REFINED, SELECTED), (REGRESSION_SETTING,))
            yield TREES[0], ""


DATASETS = tuple(dict.fromkeys(name for names in PARTS.values() for name in names))
# A fit of each kind, on data that come with scikit-learn.
SMOKE_PLAN = (
    Key("targets", SMOKE, REFINED, "20", 0),
    Key("svc", SMOKE, QUICK, "20", 0),
    Key("svc", SMOKE, SVC, "", 0),
    Key("flipped", SMOKE, SELECTED, "20", 0),
    Key("draws", SMOKE, REFINED, "20", 1),
    Key("peers", SMOKE, NYSTROEM, "20", 0),
)


def plan(parts: Sequence[str], datasets: Sequence[str], seeds: int = SEEDS) -> Iterator[Key]:
    """Yield all fits in the order of `PARTS`, without peers that are not installed."""
    for part in PARTS:
        for dataset in PARTS[part] if part in parts else ():
            for seed in range(seeds_of(part, dataset, seeds) if dataset in datasets else 0):
                for method, setting in models_of(part, dataset):
                    if method not in PEERS or PEERS[method].installed:
                        yield Key(part, dataset, method, setting, seed)


@lru_cache(maxsize=1)  # the fits of a seed follow each other, and MNIST is large
def rows_of(part: str, dataset: str, seed: int) -> Problem:
    """Return the rows of a fit, with classes as the numbers 0 to L − 1."""
    load_problem.cache_clear()
    problem = load_problem(dataset, seed, DRAW_ROWS if part == "draws" else ALL_ROWS, ALL_ROWS)
    if SOURCES[dataset].regression:
        return problem
    classes, codes = np.unique(problem.y, return_inverse=True)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    # A class without training rows is never predicted.
    test_codes = np.array([code_of.get(label, -1) for label in problem.y_test.tolist()])
    if part == "flipped":
        codes = flipped(codes, len(classes), seed)
    return replace(problem, y=codes, y_test=test_codes)


def flipped(codes: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """Return codes of which a random share is replaced by another class."""
    rng = np.random.RandomState(seed)
    chosen = rng.permutation(len(codes))[: round(FLIPPED_SHARE * len(codes))]
    wrong = codes.copy()
    wrong[chosen] += rng.randint(1, n_classes, size=len(chosen))
    return wrong % n_classes


def make_model(key: Key, problem: Problem) -> Any:
    """Return the unfitted model of a fit."""
    regression = SOURCES[key.dataset].regression
    if key.method not in PEERS:
        estimator: Any = NystroemRegressor if regression else NystroemClassifier
        name, size = (
            ("budget", key.setting) if in_bytes(key.setting) else ("n_components", int(key.setting))
        )
        return estimator(**{name: size}, refine=REFINE[key.method], random_state=key.seed)
    if regression:
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_jobs=measurement.n_threads(), random_state=key.seed, verbose=-1)
    return PEERS[key.method].make(int(key.setting) if key.setting else None, problem.scale)


def measure(*key: Any) -> CompactFit:
    """Fit one model, and predict the test rows."""
    what = Key(*key)
    problem, system = rows_of(what.part, what.dataset, what.seed), PEERS.get(what.method)
    dtype = system.dtype if system else "float32"
    X, X_test = problem.X.astype(dtype), problem.X_test.astype(dtype)
    fitted = measurement.measure(make_model(what, problem).fit, X, problem.y)
    predicted = measurement.measure(fitted.result.predict, X_test)
    seconds = [predicted.seconds]
    while seconds[0] < SHORT_PREDICT and len(seconds) < 3:
        seconds.append(measurement.measure(fitted.result.predict, X_test).seconds)
    regression = SOURCES[what.dataset].regression
    error = root_mean_squared_error(problem.y_test, predicted.result) if regression else None
    return CompactFit(
        *(what.part, what.dataset, what.method, what.setting, what.seed),
        accuracy=None if regression else accuracy(predicted.result, problem),
        rmse=error,
        **_size(fitted.result, system),
        fit_seconds=fitted.seconds,
        predict_seconds=median(seconds),
        rows=len(X),
        test_rows=len(X_test),
        threads=measurement.n_threads(),
    )


def _size(model: Any, system: System | None) -> dict[str, Any]:
    """Return bytes, landmarks, rank, type of the stored landmarks and whether it is refined."""
    if system is not None:
        ours = {"landmarks": None, "rank": None, "storage": "", "refined": None}
        return {"bytes": system.stored_bytes(model), **ours}
    P, packed = model.projection_, model.expansion_.packed
    Z = model.landmarks_
    return {
        "bytes": int(model.model_bytes_),
        "landmarks": len(Z),
        "rank": None if P is None else P.shape[1],
        "storage": Z.dtype.name if packed is None else packed.landmarks.type_name,
        "refined": int(model.refined_),
    }


def run_fit(*key: Any) -> CompactFit:
    """Measure here, or gradient boosting in a new process, where its threads wait differently."""
    if Key(*key).method in TREES:
        found: CompactFit = measurement.run_in_child(
            measure, *key, time_limit=TREE_SECONDS, library_waiting=True
        )
        return found
    return measure(*key)


def warm_up() -> None:
    """Import the libraries that are measured in this process, and start their threads."""
    for key in SMOKE_PLAN:
        measure(*key)


def run(options: BenchOptions) -> None:
    """Measure compact models. Options of this step: parts, seeds."""
    options.expect("parts", "seeds")
    parts = options.texts("parts", list(PARTS), list(PARTS))
    if options.smoke:
        tasks = [key for key in SMOKE_PLAN if key.part in parts]
    else:
        datasets = available(options.choose_datasets(DATASETS))
        tasks = list(plan(parts, datasets, options.integer("seeds", SEEDS)))
    prepare = None if options.smoke else warm_up
    options.measure(FILE, CompactFit, tasks, run_fit, prepare=prepare)
