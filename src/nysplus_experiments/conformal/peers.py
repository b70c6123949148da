"""Prediction sets and intervals right after a fit, against MAPIE around the same model.

All methods get the same rows. MAPIE's split method fits to 80 % of them and calibrates with the
others; its cross method fits five models, and keeps all of them to predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split

from nysplus_experiments.conformal.coverage import CONFIDENCE, MODELS, SEEDS, Sets, chosen
from nysplus_experiments.conformal.rows import Split, split_of
from nysplus_experiments.harness import measurement
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row

FILE = "peers.csv"
DATASETS = (
    *("letter", "pendigits", "segment", "churn", "spambase", "concrete", "kin8nm", "california"),
)
CALIBRATION_SHARE, FOLDS = 0.2, 5
TITLES = {"nysplus": "nysplus", "mapie-split": "MAPIE, split", "mapie-cross": "MAPIE, cross"}


@dataclass(frozen=True)
class Peer(Row, key="dataset method seed"):
    """One row of ``peers.csv``; the columns are those of ``coverage.csv``."""

    dataset: str
    method: str
    seed: int
    classes: int
    coverage: float
    size: float
    fit_cpu_seconds: float


class _OfTables(ClassifierMixin, BaseEstimator):
    """A classifier without `n_features_in_`.

    MAPIE lets models that have it predict a row of zeros, which is no row of a table with
    categories.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> _OfTables:
        """Fit the model."""
        self.model.fit(X, y)
        self.classes_ = self.model.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the classes of rows."""
        classes: np.ndarray = self.model.predict(X)
        return classes

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of classes."""
        probabilities: np.ndarray = self.model.predict_proba(X)
        return probabilities


def _mapie(method: str, split: Split) -> Any:
    """Return MAPIE's class of a method, "Split" or "Cross"."""
    kind = "Regressor" if split.regression else "Classifier"
    module = "mapie.regression" if split.regression else "mapie.classification"
    return getattr(import_module(module), f"{method}Conformal{kind}")


def _split(model: Any, split: Split, seed: int) -> Any:
    groups = None if split.regression else split.y
    parts = train_test_split(
        split.X, split.y, test_size=CALIBRATION_SHARE, random_state=seed, stratify=groups
    )
    found = _mapie("Split", split)(model, confidence_level=CONFIDENCE, prefit=False)
    return found.fit(parts[0], parts[2]).conformalize(parts[1], parts[3])


def _cross(model: Any, split: Split, seed: int) -> Any:
    found = _mapie("Cross", split)(model, confidence_level=CONFIDENCE, cv=FOLDS, random_state=seed)
    return found.fit_conformalize(split.X, split.y)


def _fitted(method: str, split: Split, seed: int) -> Any:
    model = MODELS["landmarks"](split, seed)
    if method == "nysplus":
        return model.fit(split.X, split.y)
    inner = model if split.regression else _OfTables(model)
    return {"mapie-split": _split, "mapie-cross": _cross}[method](inner, split, seed)


def measure(dataset: str, method: str, seed: int) -> Peer:
    """Fit a method and measure its sets or intervals on the test rows."""
    split = split_of(dataset, seed)
    fitted = measurement.measure(_fitted, method, split, seed)
    found, X, y = fitted.result, split.X_test, split.y_test
    classes = np.unique(split.y)
    if method == "nysplus":
        sets = Sets.of(found, X, y)
    elif split.regression:
        ends = found.predict_interval(X)[1][:, :, 0]
        sets = Sets.of_intervals(ends[:, 0], ends[:, 1], y)
    else:
        sets = Sets.of_sets(found.predict_set(X)[1][:, :, 0], np.searchsorted(classes, y))
    return Peer(
        *(dataset, method, seed, 0 if split.regression else len(classes)),
        coverage=sets.coverage,
        size=sets.size,
        fit_cpu_seconds=fitted.cpu_seconds,
    )


def run(options: BenchOptions) -> None:
    """Measure sets of all methods. Options of this step: seeds (a list)."""
    options.expect("seeds")
    methods = list(TITLES)
    if find_spec("mapie") is None:
        print("MAPIE is skipped: it is not installed.")
        methods = methods[:1]
    seeds = options.integers("seeds", [0] if options.smoke else SEEDS)
    tasks = [(d, m, s) for s, d, m in product(seeds, chosen(options, DATASETS), methods)]
    options.measure(FILE, Peer, tasks, measure, settings={"threads": 1}, any_machine=True)
