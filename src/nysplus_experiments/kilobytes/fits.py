"""Accuracy, bytes and seconds of models of a few kilobytes: ours and those of other libraries.

- ``targets``: models under a budget, at the sizes of the page's main table
- ``stable``: ten seeds of a few models
- ``flipped``: training rows of which a tenth have a wrong label
- ``draws``: few training rows, with and without refinement
- ``regression``, ``matern``, ``multilabel``, ``sparse``: other targets, kernels and rows
- ``unrefined``: models under a budget that are not refined
- ``peers``: support vector machines, gradient boosting and Nystroem of other libraries
- ``seconds``: models in turn with support vector machines, one after the other

The seed is that of the split, the order of the rows and the fit. Settings are each library's
defaults. Each fit has one thread, and its time is processor time, which other processes hardly
change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import root_mean_squared_error

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus.encoding import ImageEncoder
from nysplus.kernels import Matern
from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.problems import (
    MULTILABEL,
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
UNREFINED, REFINED, IMAGE, AUGMENTED = "unrefined", "refined", "image", "augmented"
QUICK = "quick"
SVC, NYSTROEM, TREES = "sklearn-svc", "sklearn-nystroem", ("lightgbm", "xgboost")
REFINE: dict[str, Any] = {UNREFINED: False, REFINED: True, IMAGE: True, AUGMENTED: True}
REFINE[QUICK] = Refinement(search=False)
#: Methods with an `ImageEncoder`, and the random changes of their images.
AUGMENT = {IMAGE: None, AUGMENTED: "affine"}
IMAGE_SHAPES = {"mnist": (28, 28), "usps": (16, 16), SMOKE: (8, 8)}
PEERS = {
    name: next(s for s in SYSTEMS if s.name == name and s.dtype == dtype)
    for name, dtype in ((SVC, "float64"), (NYSTROEM, "float32"), *((t, "float32") for t in TREES))
}
# -- datasets with their models, the quickest first
_SMALL: dict[str, tuple[str, ...]] = {REFINED: ("1kB", "4kB", "16kB")}
TARGETS: dict[str, dict[str, tuple[str, ...]]] = {
    "pendigits": _SMALL,
    "magic": _SMALL,
    "letter": {REFINED: ("4kB", "8kB", "16kB", "64kB")},
    "usps": {IMAGE: ("4kB", "8kB", "16kB"), REFINED: ("4kB", "16kB", "64kB")},
    "susy": _SMALL,
    "a9a": _SMALL,
    "ijcnn1": _SMALL,
    "ijcnn1-resplit": _SMALL,
    "mnist": {
        IMAGE: ("2kB", "4kB", "8kB", "12kB", "16kB", "64kB"),
        AUGMENTED: ("12kB", "32kB"),
        REFINED: ("4kB", "16kB", "64kB"),
    },
    "skin": _SMALL,
    "covtype": _SMALL,
}
FIGURE_DATASETS = ("pendigits", "usps", "letter", "ijcnn1", "covtype", "mnist")
TABULAR_DATASETS = ("magic", "susy", "a9a", "skin")
TABULAR_SETTING = "16kB"
STABLE_DATASETS, STABLE_SETTING, STABLE_SEEDS = (SMOKE, "magic", "letter"), "16kB", 10
FLIPPED_DATASET, FLIPPED_SETTING, FLIPPED_SHARE = "letter", "64kB", 0.1
DRAWS, DRAW_ROWS, DRAW_SETTINGS = 20, 500, ("100", "4kB")
REGRESSION_SETTINGS = ("4kB", "16kB")
MATERN_NU, MATERN_SETTING = 2.5, "16kB"
MULTILABEL_SETTING = SPARSE_SETTING = "4kB"
#: Models whose fits are timed alone; those of `SVC_TIMED` in turn with a support vector machine.
TIMED = {
    "magic": ("16kB",),
    "usps": ("16kB", "64kB"),
    "letter": ("16kB", "64kB"),
    "mnist": ("64kB",),
}
SVC_TIMED, QUICK_SETTING = ("usps", "letter"), "8kB"
UNREFINED_SETTINGS = ("4kB", "16kB", "64kB")
NYSTROEM_SIZES = ("30", "100", "500")
# One SVM on MNIST takes many minutes, and CovType's 500,000 rows are too many for an SVM.
SVC_SEEDS = {"usps": SEEDS, "letter": SEEDS, "pendigits": 1, "ijcnn1": 1, "mnist": 1}
# LightGBM on MNIST did not end within 20 minutes.
TOO_LONG = (("lightgbm", "mnist"),)
# Large data have one seed of models that are only points of the figure.
ONE_SEED = ("ijcnn1", "covtype", "mnist", "skin")
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

    The accuracy of several labels is the share of right ones. ``bits`` are those of the map, the
    landmarks and the coefficients, such as "8/5/4" or "-/5/6" without a map; ``refined`` is 1 if
    the refinement was kept. Other libraries have none of them. Some of their fits are older than
    the column of processor seconds.
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
    bits: str
    refined: int | None
    fit_cpu_seconds: float | None
    fit_seconds: float
    predict_seconds: float
    rows: int
    test_rows: int


def in_bytes(setting: str) -> bool:
    """Tell a budget from a number of landmarks."""
    return setting.endswith("B")


# Datasets of each part, the most important part first.
PARTS: dict[str, tuple[str, ...]] = {
    "targets": tuple(TARGETS),
    "stable": STABLE_DATASETS,
    "flipped": (FLIPPED_DATASET,),
    "draws": ("pendigits", "magic", "usps", "susy", "a9a", "letter"),
    "regression": ("california", "kin40k"),
    "matern": ("letter", "california"),
    "multilabel": (MULTILABEL,),
    "sparse": ("a9a",),
    "unrefined": (*FIGURE_DATASETS, *TABULAR_DATASETS),
    "peers": (*FIGURE_DATASETS, *TABULAR_DATASETS, "california", "kin40k"),
    "seconds": tuple(TIMED),
}
#: Name of several parts: other kinds of rows, labels, targets and kernels.
KINDS = ("flipped", "draws", "regression", "matern", "multilabel", "sparse")
#: The part whose fits have the machine for themselves.
ALONE = "seconds"
BOTH = (REFINED, UNREFINED)


def models_of(part: str, dataset: str) -> Iterator[tuple[str, str, int]]:
    """Yield the methods that are fitted to a dataset in a part, their settings and seeds."""
    match part:
        case "targets":
            for method, settings in TARGETS[dataset].items():
                yield from product((method,), settings, (SEEDS,))
        case "stable":
            yield REFINED, STABLE_SETTING, STABLE_SEEDS
        case "flipped":
            yield from product(BOTH, (FLIPPED_SETTING,), (SEEDS,))
        case "draws":
            yield from product(BOTH, DRAW_SETTINGS, (DRAWS,))
        case "regression":
            yield from product(BOTH, REGRESSION_SETTINGS, (SEEDS,))
        case "matern":
            yield from product(BOTH, (MATERN_SETTING,), (SEEDS,))
        case "multilabel":
            yield from product(BOTH, (MULTILABEL_SETTING,), (SEEDS,))
        case "sparse":
            yield REFINED, SPARSE_SETTING, SEEDS
        case "unrefined":
            settings = UNREFINED_SETTINGS if dataset in FIGURE_DATASETS else (TABULAR_SETTING,)
            yield from product((UNREFINED,), settings, (_few_seeds(dataset),))
        case "peers":
            yield from _peers_of(dataset)
        case "seconds":
            first, *others = timed_models(dataset)
            between = [(SVC, "")] if dataset in SVC_TIMED else []
            yield from ((*model, SEEDS) for model in (first, *between, *others))


def timed_models(dataset: str) -> list[tuple[str, str]]:
    """Return the methods and settings whose fits are timed alone."""
    quick = [(QUICK, QUICK_SETTING)] if dataset in SVC_TIMED else []
    return [*product((REFINED,), TIMED[dataset]), *quick]


def _peers_of(dataset: str) -> Iterator[tuple[str, str, int]]:
    if SOURCES[dataset].regression:
        yield TREES[0], "", SEEDS
        return
    in_figure = dataset in FIGURE_DATASETS
    if in_figure:
        yield from product((NYSTROEM,), NYSTROEM_SIZES, (1,))
    if dataset in SVC_SEEDS:
        yield SVC, "", SVC_SEEDS[dataset]
    for method in TREES:
        if (method, dataset) not in TOO_LONG:
            yield method, "", 1 if in_figure else SEEDS


def _few_seeds(dataset: str) -> int:
    return 1 if dataset in ONE_SEED else SEEDS


DATASETS = tuple(dict.fromkeys(name for names in PARTS.values() for name in names))
# A fit of each kind, on data that come with scikit-learn.
SMOKE_PLAN = (
    Key("targets", SMOKE, REFINED, "20", 0),
    Key("targets", SMOKE, AUGMENTED, "2kB", 0),
    Key("flipped", SMOKE, UNREFINED, "2kB", 0),
    Key("draws", SMOKE, REFINED, "20", 1),
    Key("matern", SMOKE, UNREFINED, "20", 0),
    Key("multilabel", MULTILABEL, UNREFINED, "1kB", 0),
    Key("sparse", SMOKE, UNREFINED, "20", 0),
    Key("peers", SMOKE, NYSTROEM, "20", 0),
    Key("seconds", SMOKE, SVC, "", 0),
)


def plan(parts: Sequence[str], datasets: Sequence[str], seeds: int = DRAWS) -> Iterator[Key]:
    """Yield all fits in the order of `PARTS` and then by seed, without peers not installed."""
    for part in PARTS:
        if part not in parts:
            continue
        models = [
            (name, *m) for name in PARTS[part] if name in datasets for m in models_of(part, name)
        ]
        for seed in range(min(seeds, max((count for *_, count in models), default=0))):
            for dataset, method, setting, count in models:
                if seed < count and (method not in PEERS or PEERS[method].installed):
                    yield Key(part, dataset, method, setting, seed)


@lru_cache(maxsize=1)  # the fits of a seed follow each other, and MNIST is large
def rows_of(part: str, dataset: str, seed: int) -> Problem:
    """Return the rows of a fit, with classes as the numbers 0 to L − 1."""
    load_problem.cache_clear()
    problem = load_problem(dataset, seed, DRAW_ROWS if part == "draws" else ALL_ROWS, ALL_ROWS)
    if SOURCES[dataset].regression or problem.y.ndim > 1:
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
    if key.method in PEERS:
        if regression:
            from lightgbm import LGBMRegressor

            return LGBMRegressor(n_jobs=1, random_state=key.seed, verbose=-1)
        return PEERS[key.method].make(int(key.setting) if key.setting else None, problem.scale)
    estimator: Any = NystroemRegressor if regression else NystroemClassifier
    options: dict[str, Any] = {"refine": REFINE[key.method], "random_state": key.seed}
    if in_bytes(key.setting):
        options["budget"] = key.setting
    else:
        options["n_components"] = int(key.setting)
    if key.method in AUGMENT:
        shape = IMAGE_SHAPES[key.dataset]
        options["encoder"] = ImageEncoder(shape, augment=AUGMENT[key.method])
    if key.part == "matern":
        options["kernel"] = Matern(nu=MATERN_NU)
    return estimator(**options)


@cache
def warm_up() -> None:
    """Fit a small model, once in each process: the first fit imports modules."""
    X = np.random.RandomState(0).standard_normal((200, 3))
    quick = Refinement(search=False, n_epochs=1)
    NystroemClassifier(budget="1kB", refine=quick, random_state=0).fit(X, X[:, 0] > 0)


def measure(*key: Any) -> CompactFit:
    """Fit one model, and predict the test rows."""
    warm_up()
    what = Key(*key)
    problem, system = rows_of(what.part, what.dataset, what.seed), PEERS.get(what.method)
    dtype = system.dtype if system else "float32"
    X, X_test = problem.X.astype(dtype), problem.X_test.astype(dtype)
    if what.part == "sparse":
        X, X_test = csr_matrix(X), csr_matrix(X_test)
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
        fit_cpu_seconds=fitted.cpu_seconds,
        fit_seconds=fitted.seconds,
        predict_seconds=median(seconds),
        rows=X.shape[0],
        test_rows=X_test.shape[0],
    )


def _size(model: Any, system: System | None) -> dict[str, Any]:
    """Return bytes, landmarks, rank, bits and whether the refinement was kept."""
    if system is not None:
        ours = {"landmarks": None, "rank": None, "bits": "", "refined": None}
        return {"bytes": system.stored_bytes(model), **ours}
    P, Z, packed = model.projection_, model.landmarks_, model.expansion_.packed
    parts = (P, Z, model.dual_coef_)
    if packed is not None:
        parts = (packed.projection, packed.landmarks, packed.dual_coef)
    return {
        "bytes": int(model.model_bytes_),
        "landmarks": Z.shape[0],
        "rank": None if P is None else P.shape[1],
        "bits": "/".join(map(_bits, parts)),
        "refined": int(model.refined_),
    }


def _bits(array: Any) -> str:
    """Return the bits of the numbers of an array, which may be a `PackedArray`; "-" for None."""
    if array is None:
        return "-"
    values = getattr(array, "values", array)
    return str(array.bits if values.dtype == np.int8 else 8 * values.dtype.itemsize)


def run(options: BenchOptions) -> None:
    """Measure compact models. Options of this step: parts, seeds (the most), workers."""
    options.expect("parts", "seeds", "workers")
    parts = options.texts("parts", list(PARTS), [*PARTS, "kinds"])
    parts = [name for part in parts for name in (KINDS if part == "kinds" else (part,))]
    if options.smoke:
        tasks = [key for key in SMOKE_PLAN if key.part in parts]
    else:
        datasets = available(options.choose_datasets(DATASETS))
        tasks = list(plan(parts, datasets, options.integer("seeds", DRAWS)))
    workers = options.integer("workers", 1)
    shared = [key for key in tasks if key.part != ALONE]
    alone = [key for key in tasks if key.part == ALONE]
    for own, count in ((shared, workers), (alone, 1)):
        if own:
            _measure(options, own, 0 if options.smoke else count)
            options = replace(options, fresh=False)  # the first call has put the file aside


def _measure(options: BenchOptions, tasks: Sequence[Key], workers: int) -> None:
    how: dict[str, Any] = {"settings": {"threads": 1}, "workers": workers, "any_machine": True}
    options.measure(FILE, CompactFit, tasks, measure, **how)
