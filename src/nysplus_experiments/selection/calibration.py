"""Quality of probabilities: nysplus' own against those of cross-validated calibration.

At most 5,000 training rows, because a support vector machine is slow. Measures: accuracy of the
likeliest class; log-loss ``−mean log p(y)``; Brier score ``mean Σ_c (p_c − 1[y = c])²``; and the
mean distance of the likeliest class's probability from the frequency with which it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from nysplus import NystroemClassifier
from nysplus_experiments.harness import measurement, problems
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.harness.tables import markdown

FILE = "calibration.csv"
DATASETS = ("usps", "letter", "cod_rna", "magic", "a9a", "pendigits")
MAX_TRAIN_ROWS, MAX_TEST_ROWS = 5_000, 3_000
LANDMARKS, BINS, TRIALS = 300, 15, 5


def _nystroem(seed: int) -> NystroemClassifier:
    return NystroemClassifier(LANDMARKS, random_state=seed)


# Cross-validated calibration: Platt's sigmoid for each class, on five folds, averaged.
SYSTEMS: dict[str, Callable[[int], Any]] = {
    "nysplus": _nystroem,
    "nysplus-folds": lambda seed: CalibratedClassifierCV(_nystroem(seed), cv=5),
    "svc-folds": lambda seed: CalibratedClassifierCV(SVC(C=10, gamma="scale"), cv=5),
}
TITLES = {
    "nysplus": "nysplus",
    "nysplus-folds": "nysplus in `CalibratedClassifierCV`",
    "svc-folds": "`SVC` in `CalibratedClassifierCV`",
}


@dataclass(frozen=True)
class Calibration(Row, key="dataset system trial"):
    """One row of ``calibration.csv``: a fit, and the probabilities of the test rows."""

    dataset: str
    system: str
    trial: int
    rows: int
    test_rows: int
    features: int
    classes: int
    fit_seconds: float
    accuracy: float
    log_loss: float
    brier: float
    calibration_error: float
    threads: int


def calibration_error(P: np.ndarray, codes: np.ndarray) -> float:
    """Return the expected calibration error of the likeliest class.

    Rows are ordered by that probability and cut into 15 bins of equally many rows.
    """
    excess = P.max(axis=1) - (P.argmax(axis=1) == codes)
    bins = np.array_split(excess[P.max(axis=1).argsort(kind="stable")], BINS)
    return float(sum(abs(part.sum()) for part in bins) / len(codes))


def run_fit(
    dataset: str, system: str, trial: int, rows: tuple[int, int] = (MAX_TRAIN_ROWS, MAX_TEST_ROWS)
) -> Calibration:
    """Fit one system and measure the probabilities of the test rows."""
    problem = problems.load_problem(dataset, trial, *rows)
    fitted = measurement.measure(SYSTEMS[system](trial).fit, problem.X, problem.y)
    P, classes = fitted.result.predict_proba(problem.X_test), fitted.result.classes_
    codes = np.searchsorted(classes, problem.y_test)
    return Calibration(
        dataset,
        system,
        trial,
        rows=len(problem.X),
        test_rows=len(problem.X_test),
        features=problem.X.shape[1],
        classes=len(classes),
        fit_seconds=fitted.seconds,
        accuracy=100 * float((P.argmax(axis=1) == codes).mean()),
        log_loss=float(log_loss(codes, P, labels=np.arange(len(classes)))),
        brier=float(((P - np.eye(len(classes))[codes]) ** 2).sum(axis=1).mean()),
        calibration_error=calibration_error(P, codes),
        threads=measurement.n_threads(),
    )


def _warm_up() -> None:
    """Import libraries and start their threads."""
    for system in SYSTEMS:
        run_fit(problems.SMOKE, system, 0, (500, 100))


def run(options: BenchOptions) -> None:
    """Measure probabilities. Option of this step: trials."""
    options.expect("trials")
    trials = range(options.integer("trials", 1 if options.smoke else TRIALS))
    names = problems.chosen_datasets(options, DATASETS)
    tasks = [(name, system, trial) for trial, name, system in product(trials, names, SYSTEMS)]
    options.measure(FILE, Calibration, tasks, run_fit, prepare=_warm_up)


def calibration_table(rows: pd.DataFrame) -> str:
    """Return means over the trials ± their standard errors, one line a dataset and system."""
    digits = {"accuracy": 2, "log_loss": 4, "brier": 4, "calibration_error": 4, "fit_seconds": 2}
    cells = rows.groupby(["dataset", "system"])[list(digits)]
    mean, error = cells.mean(), cells.sem()
    lines = []
    for key in product(rows["dataset"].unique(), SYSTEMS):
        if key in mean.index:
            texts = [
                f"{mean.at[key, name]:.{d}f} ± {error.at[key, name]:.{d}f}".replace(" ± nan", "")
                for name, d in digits.items()
            ]
            lines.append([problems.SOURCES[key[0]].title, TITLES[key[1]], *texts])
    header = ("data", "probabilities of", "accuracy, %", "log-loss", "Brier score")
    return markdown((*header, "calibration error", "fit, s"), lines)
