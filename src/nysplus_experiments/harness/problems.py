"""Datasets of the experiments on landmarks and compact models: read, split, scaled, subsampled.

Public splits are kept; other data are split 2 : 1 at random. Features are scaled to [0, 1] by the
training rows, images by one range; for regression, features and target are standardised.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.datasets import DatasetNotFound, load
from nysplus_experiments.harness.measurement import measure

MAX_TRAIN_ROWS, MAX_TEST_ROWS = 20_000, 10_000
SMOKE = "digits"  # comes with scikit-learn
MULTILABEL = "multilabel"  # made by scikit-learn


@dataclass(frozen=True)
class Source:
    """Origin of a dataset: a name in the registry, or a file in the folder NYSPLUS_DATA.

    A dataset with neither is made by scikit-learn.
    """

    title: str
    loader: str = ""
    file: str = ""
    public_split: bool = False
    regression: bool = False


SOURCES = {
    "usps": Source("USPS", "usps"),
    "letter": Source("Letter", "letter"),
    "cod_rna": Source("COD-RNA", "cod_rna"),
    "ijcnn1": Source("IJCNN, public split", "ijcnn1", public_split=True),
    "ijcnn1-resplit": Source("IJCNN, random split", "ijcnn1"),
    "mnist": Source("MNIST", "mnist"),
    "covtype": Source("CovType", "covtype"),
    "shuttle": Source("Shuttle", "shuttle"),
    "pendigits": Source("Pendigits", file="pendigits"),
    "a9a": Source("a9a", file="a9a"),
    "magic": Source("Magic", file="magic_gamma"),
    "susy": Source("SUSY, 30,000 rows", file="susy_30k_subset"),
    "skin": Source("Skin", file="skin_nonskin"),
    "california": Source("California housing", file="california_housing", regression=True),
    "kin40k": Source("kin40k", file="kin40k_regression", regression=True),
    SMOKE: Source("digits", SMOKE),
    MULTILABEL: Source("made up, 10 labels"),
}


@dataclass(frozen=True)
class Problem:
    """Rows of one trial; ``scale`` is scikit-learn's ``gamma="scale"`` of the training rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    scale: float

    def width(self, name: str) -> float | str:
        """Return the value of ``gamma`` for "scale", "4 scale" or "auto"."""
        return "auto" if name == "auto" else {"scale": 1, "4 scale": 4}[name] * self.scale


# All datasets of a trial are kept: sizes are an outer loop and return to each of them.
@lru_cache(maxsize=len(SOURCES))
def load_problem(
    name: str, trial: int, max_train: int = MAX_TRAIN_ROWS, max_test: int = MAX_TEST_ROWS
) -> Problem:
    """Return the rows of a trial; its number is the seed of the split and of the subsample."""
    source = SOURCES[name]
    if source.loader:
        split = load(source.loader, trial, public_split=source.public_split)
        X, y, X_test, y_test = split.X_train, split.y_train, split.X_test, split.y_test
    else:
        X, X_test, y, y_test = (
            _read_split(source.file, trial) if source.file else _multilabel_split(trial)
        )
        scaler = StandardScaler() if source.regression else MinMaxScaler()
        X, X_test = scaler.fit_transform(X), scaler.transform(X_test)
        if source.regression:  # errors are then in standard deviations of the target
            mean, deviation = y.mean(), y.std()
            y, y_test = (y - mean) / deviation, (y_test - mean) / deviation
    rng = np.random.RandomState(trial)
    train, test = rng.permutation(len(X))[:max_train], rng.permutation(len(X_test))[:max_test]
    X = np.ascontiguousarray(X[train])
    return Problem(X, y[train], X_test[test], y_test[test], 1 / (X.shape[1] * X.var()))


def _read_split(file: str, trial: int) -> list[np.ndarray]:
    """Return X, X_test, y and y_test of a file, split 2 : 1 unless the file has a split."""
    path = Path(os.environ.get("NYSPLUS_DATA", ".")).expanduser() / f"{file}.npz"
    if not path.is_file():
        raise DatasetNotFound(f"{path} does not exist. Set NYSPLUS_DATA to the folder of the data.")
    with np.load(path) as arrays:
        if "X_train" in arrays:
            rows = [arrays[key] for key in ("X_train", "X_test", "y_train", "y_test")]
        else:
            rows = train_test_split(arrays["X"], arrays["y"], test_size=1 / 3, random_state=trial)
    return [rows[0].astype(np.float64), rows[1].astype(np.float64), *rows[2:]]


def _multilabel_split(trial: int) -> list[np.ndarray]:
    """Return X, X_test, y and y_test of made-up rows of 40 counts and 10 labels."""
    X, y = make_multilabel_classification(
        n_samples=7500, n_features=40, n_classes=10, n_labels=3, random_state=trial
    )
    return list(train_test_split(X, y, test_size=1 / 3, random_state=trial))


def available(names: Iterable[str]) -> list[str]:
    """Return the datasets that can be loaded; print the reason for each of the others."""
    found = []
    for name in names:
        try:
            load_problem(name, 0, 1, 1)
            found.append(name)
        except DatasetNotFound as error:
            print(f"{name} is skipped. {error}")
    load_problem.cache_clear()  # worker processes load their own
    return found


def chosen_datasets(options: BenchOptions, default: Sequence[str]) -> list[str]:
    """Return the datasets to measure that can be loaded: digits alone for a smoke run."""
    if options.smoke:
        return [SMOKE]
    return available(options.choose_datasets((*default, SMOKE), default))


def fit_and_predict(model: Any, problem: Problem) -> tuple[np.ndarray, float]:
    """Return the predictions of a model for the test rows, and the seconds of its fit."""
    fitted = measure(model.fit, problem.X, problem.y)
    return model.predict(problem.X_test), fitted.seconds


def accuracy(predicted: np.ndarray, problem: Problem) -> float:
    """Return the accuracy on the test rows, in percent."""
    return 100 * float(np.mean(predicted == problem.y_test))


def fit_and_score(model: Any, problem: Problem) -> tuple[float, float]:
    """Return the accuracy of a model on the test rows, in percent, and the seconds of its fit."""
    predicted, seconds = fit_and_predict(model, problem)
    return accuracy(predicted, problem), seconds
