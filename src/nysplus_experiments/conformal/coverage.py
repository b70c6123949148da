"""Coverage of prediction sets and intervals of 90 %, right after a fit and after `calibrate`.

Right after a fit all test rows are counted. Then up to 1,000 of them calibrate, drawn several
times, and the others are counted. The same models tell test rows from foreign rows and from rows
whose columns are in another order, by their novelty.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from nysplus import NystroemClassifier, NystroemRegressor, Refinement
from nysplus_experiments.conformal.rows import DATASETS, PROBLEMS, Split, foreign, split_of, swapped
from nysplus_experiments.harness import measurement, problems
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.raw_tables import SYNTHETIC, SYNTHETIC_REGRESSION, available_tables
from nysplus_experiments.harness.records import Row

FILE = "coverage.csv"
CONFIDENCE, SEEDS, CALIBRATION_ROWS, DRAWS = 0.9, (0, 1, 2, 3, 4), 1000, 5
#: Datasets of refined models, whose fits take longer.
REFINED = (
    *("usps", "letter", "pendigits", "kin40k", "adult", "churn", "segment", "wall_robot"),
    *("concrete", "diamonds", "kin8nm", "california"),
)
#: Datasets of models that are fitted to rows on disk, and their most training rows.
ON_DISK, DISK_ROWS = ("letter", "kin40k"), 15_000
#: Datasets of models of 16 kB.
LIMITED = (*REFINED, "mfeat_fourier", "plant_margin", "spambase", "elevators", "sml")
#: Novelty from which on a row counts as foreign.
STRANGE = 0.99


def made(split: Split, seed: int, **params: Any) -> Any:
    """Return an unfitted model for the rows of a split."""
    estimator: Any = NystroemRegressor if split.regression else NystroemClassifier
    return estimator(encoder=split.encoder, random_state=seed, **params)


MODELS: dict[str, Callable[[Split, int], Any]] = {
    "landmarks": partial(made, n_components=100),
    "budget": partial(made, budget="16kB"),
    "refined": partial(made, budget="4kB", refine=Refinement(search=False)),
    "disk": partial(made, n_components=100),
}
#: Datasets of models that are not fitted to all of them.
SOME = {"budget": LIMITED, "refined": REFINED, "disk": ON_DISK}


@dataclass(frozen=True)
class Coverage(Row, key="dataset model seed"):
    """One row of ``coverage.csv``.

    ``score`` is the accuracy in percent, or the RMSE in standard deviations of the test target.
    ``size`` is the mean number of classes in a set, or the width of an interval in the same
    deviations; ``own_`` is after `calibrate`, and a mean over draws of calibration rows.
    ``false_alarms`` are percentages of test rows above a novelty of .99; the three columns after it
    are areas under ROC curves.
    """

    dataset: str
    model: str
    seed: int
    rows: int
    test_rows: int
    classes: int
    source: str
    calibration_rows: int
    score: float
    coverage: float
    size: float
    empty: float | None
    own_rows: int
    own_coverage: float
    own_size: float
    false_alarms: float | None
    swapped: float | None
    foreign: float | None
    scaled: float | None
    fit_cpu_seconds: float


@dataclass(frozen=True)
class Sets:
    """Share of rows that their sets or intervals cover, mean size, and share of empty sets."""

    coverage: float
    size: float
    empty: float | None

    @classmethod
    def of(cls, model: Any, X: pd.DataFrame, y: np.ndarray) -> Sets:
        """Measure sets of a model with `predict_set`, or intervals of one without."""
        if not hasattr(model, "predict_set"):
            low, high = model.predict_interval(X, CONFIDENCE).T
            return cls.of_intervals(low, high, y)
        return cls.of_sets(model.predict_set(X, CONFIDENCE), np.searchsorted(model.classes_, y))

    @classmethod
    def of_intervals(cls, low: np.ndarray, high: np.ndarray, y: np.ndarray) -> Sets:
        """Measure intervals of values."""
        inside = (low <= y) & (y <= high)
        return cls(100 * float(inside.mean()), float((high - low).mean() / y.std()), None)

    @classmethod
    def of_sets(cls, sets: np.ndarray, codes: np.ndarray) -> Sets:
        """Measure sets of classes."""
        inside, sizes = sets[np.arange(len(codes)), codes], sets.sum(axis=1)
        return cls(
            100 * float(inside.mean()), float(sizes.mean()), 100 * float((sizes == 0).mean())
        )


def measure(dataset: str, model: str, seed: int) -> Coverage:
    """Fit a model, and count the test rows that its sets or intervals cover."""
    split = split_of(dataset, seed, *([DISK_ROWS] if model == "disk" else []))
    if model == "disk":  # arrays on disk have no names of columns
        warnings.filterwarnings("ignore", message="X has feature names")
    with TemporaryDirectory() as folder:
        rows = _mapped(split, Path(folder)) if model == "disk" else split.X
        fitted = measurement.measure(MODELS[model](split, seed).fit, rows, split.y)
    machine, X, y = fitted.result, split.X_test, split.y_test
    predicted, calibration = machine.predict(X), machine._model.calibration
    score = (
        float(np.sqrt(np.mean((predicted - y) ** 2)) / y.std())
        if split.regression
        else 100 * float(np.mean(predicted == y))
    )
    found, novelty = Sets.of(machine, X, y), _novelty(machine, split, dataset, X, seed)
    n_own, own = _calibrated(machine, split, seed)
    return Coverage(
        *(dataset, model, seed, len(split.y), len(y)),
        classes=0 if split.regression else len(machine.classes_),
        source=calibration.source,
        calibration_rows=calibration.n_rows[0],
        score=score,
        coverage=found.coverage,
        size=found.size,
        empty=found.empty,
        own_rows=n_own,
        own_coverage=own.coverage,
        own_size=own.size,
        false_alarms=novelty["false_alarms"],
        swapped=novelty["swapped"],
        foreign=novelty["foreign"],
        scaled=novelty["scaled"],
        fit_cpu_seconds=fitted.cpu_seconds,
    )


def _mapped(split: Split, folder: Path) -> np.ndarray:
    """Return the training rows as an array on disk."""
    np.save(folder / "X.npy", split.X.to_numpy())
    mapped: np.ndarray = np.load(folder / "X.npy", mmap_mode="r")
    return mapped


def _calibrated(machine: Any, split: Split, seed: int) -> tuple[int, Sets]:
    """Return the number of calibration rows, and the mean of the sets of other rows."""
    rng, n = np.random.RandomState(seed), min(CALIBRATION_ROWS, len(split.y_test) // 2)
    found = []
    for _ in range(DRAWS):
        order = rng.permutation(len(split.y_test))
        own, others = order[:n], order[n:]
        machine.calibrate(split.X_test.iloc[own], split.y_test[own])
        found.append(astuple(Sets.of(machine, split.X_test.iloc[others], split.y_test[others])))
    coverage, size, _ = zip(*found, strict=True)
    return n, Sets(float(np.mean(coverage)), float(np.mean(size)), None)


def _novelty(
    machine: Any, split: Split, dataset: str, X: pd.DataFrame, seed: int
) -> dict[str, float | None]:
    """Return the share of test rows that count as foreign, and areas under ROC curves."""
    if machine._model.familiar is None:  # a linear function of a table
        return dict.fromkeys(("false_alarms", "swapped", "foreign", "scaled"))
    rng, familiar = np.random.RandomState(seed), machine.novelty(X)
    strange = {
        "swapped": swapped(X, rng),
        "foreign": foreign(X, dataset, rng, None),
        "scaled": foreign(X, dataset, rng, split.X),
    }
    areas = {
        name: None if rows is None else _area(familiar, machine.novelty(rows))
        for name, rows in strange.items()
    }
    return {"false_alarms": 100 * float(np.mean(familiar > STRANGE)), **areas}


def _area(familiar: np.ndarray, strange: np.ndarray) -> float:
    truth = np.repeat([0, 1], [len(familiar), len(strange)])
    return float(roc_auc_score(truth, np.concatenate([familiar, strange])))


def chosen(options: BenchOptions, default: tuple[str, ...] = DATASETS) -> list[str]:
    """Return the datasets to measure that can be loaded."""
    if options.smoke:
        return [SYNTHETIC, SYNTHETIC_REGRESSION]
    names = options.choose_datasets(DATASETS, default)
    known = {
        *problems.available(name for name in names if name in PROBLEMS),
        *available_tables(name for name in names if name not in PROBLEMS),
    }
    return [name for name in names if name in known]


def run(options: BenchOptions) -> None:
    """Measure coverages. Options of this step: seeds, models (lists)."""
    options.expect("seeds", "models")
    seeds = options.integers("seeds", [0] if options.smoke else SEEDS)
    models = options.texts("models", [*MODELS], [*MODELS])
    tasks = [
        (name, model, seed)
        for model, seed, name in product(models, seeds, chosen(options))
        if name in SOME.get(model, (name,))
    ]
    settings = {"threads": 1}
    options.measure(FILE, Coverage, tasks, measure, settings=settings, any_machine=True)
