"""How good probabilities are: nysplus' own against those of refitting in cross-validation.

In each trial a random subset of the training rows, at most 5,000 because a support vector machine
is slow, is fitted by every system; the trial's number is the seed of the split and of the fit.
Rows are read, split and scaled to [0, 1] as for `selection`. Trials are the outermost loop, and a
run that was stopped goes on where it stopped.

    python benchmarks/calibration.py [--datasets usps letter] [--trials 5] [--smoke] [--fresh]

Four measures of the probabilities of test rows: the accuracy of the likeliest class; the log-loss
``−mean log p(y)``; the Brier score ``mean Σ_c (p_c − 1[y = c])²``, from 0 to 2; and the expected
calibration error, by how much the probability of the likeliest class is off on average.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import csv_rows
import numpy as np
from child_process import environment, n_threads, restart_with_fixed_threads
from measurement import RESULTS
from selection import SMOKE, SOURCES, Problem, load_problem
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from nysplus import NystroemClassifier
from nysplus.experiments.datasets import DatasetNotFound

DATASETS = ("usps", "letter", "cod_rna", "magic", "a9a", "pendigits")
MAX_TRAIN_ROWS, MAX_TEST_ROWS = 5_000, 3_000
LANDMARKS = 300
BINS = 15
TRIALS = 5


class System(NamedTuple):
    """A classifier with `predict_proba`; ``make`` takes the seed."""

    title: str
    make: Callable[[int], Any]


def _nystroem(seed: int) -> NystroemClassifier:
    return NystroemClassifier(LANDMARKS, random_state=seed)


# The usual way to probabilities: Platt's sigmoid for each class, on five folds, averaged.
SYSTEMS = {
    "nysplus": System("nysplus", _nystroem),
    "nysplus-folds": System(
        "nysplus in `CalibratedClassifierCV`",
        lambda seed: CalibratedClassifierCV(_nystroem(seed), method="sigmoid", cv=5),
    ),
    "svc-folds": System(
        "`SVC` in `CalibratedClassifierCV`",
        lambda seed: CalibratedClassifierCV(SVC(C=10, gamma="scale"), method="sigmoid", cv=5),
    ),
}


@dataclass(frozen=True)
class Calibration:
    """One row of ``calibration.csv``: a fit, and the probabilities of the test rows.

    Accuracy is in percent; the other measures are as in the module's docstring.
    """

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

    @property
    def key(self) -> tuple[int, str, str]:
        """What was measured."""
        return self.trial, self.dataset, self.system


# -- measuring -----------------------------------------------------------------------------------


def calibration_error(P: np.ndarray, codes: np.ndarray) -> float:
    """Return the expected calibration error of the likeliest class.

    Rows are ordered by that probability and cut into 15 bins of equally many rows; in each the
    mean probability is compared with the share of rows that are right, and the absolute
    differences are averaged over the rows.
    """
    excess = P.max(axis=1) - (P.argmax(axis=1) == codes)
    bins = np.array_split(excess[P.max(axis=1).argsort(kind="stable")], BINS)
    return float(sum(abs(part.sum()) for part in bins) / len(codes))


def measure(dataset: str, system: str, trial: int, problem: Problem) -> Calibration:
    """Fit, and judge the probabilities of the test rows."""
    model = SYSTEMS[system].make(trial)
    start = time.perf_counter()
    model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    P, classes = model.predict_proba(problem.X_test), model.classes_
    codes = np.searchsorted(classes, problem.y_test)
    return Calibration(
        dataset,
        system,
        trial,
        rows=len(problem.X),
        test_rows=len(problem.X_test),
        features=problem.X.shape[1],
        classes=len(classes),
        fit_seconds=seconds,
        accuracy=100 * float((P.argmax(axis=1) == codes).mean()),
        log_loss=float(log_loss(codes, P, labels=np.arange(len(classes)))),
        brier=float(((P - np.eye(len(classes))[codes]) ** 2).sum(axis=1).mean()),
        calibration_error=calibration_error(P, codes),
        threads=n_threads(),
    )


def _present(dataset: str) -> bool:
    """Tell whether there are rows; say so where there are none."""
    try:
        load_problem(dataset, 0, MAX_TRAIN_ROWS, MAX_TEST_ROWS)
    except DatasetNotFound as error:
        print(f"{dataset} is left out. {error}")
        return False
    return True


def run(options: argparse.Namespace) -> None:
    """Measure everything that is not in the file yet."""
    rows = csv_rows.begin(options.out, Calibration, environment(), options.fresh)
    done = {row.key for row in rows}
    datasets = [name for name in options.datasets if _present(name)]
    wanted = [
        (trial, dataset, system)
        for trial in range(options.trials)
        for dataset in datasets
        for system in SYSTEMS
    ]
    tasks = [key for key in wanted if key not in done]
    for system in {system for _, _, system in tasks}:  # imports, and threads that start
        measure(SMOKE, system, 0, load_problem(SMOKE, 0, 500, 100))
    for trial, dataset, system in tasks:
        problem = load_problem(dataset, trial, MAX_TRAIN_ROWS, MAX_TEST_ROWS)
        row = measure(dataset, system, trial, problem)
        csv_rows.append(options.out, row)
        print(
            f"{trial + 1}. {dataset:10s}{system:15s}{row.fit_seconds:7.2f} s, "
            f"{row.accuracy:5.2f} %, log-loss {row.log_loss:.4f}, Brier {row.brier:.4f}, "
            f"calibration error {row.calibration_error:.4f}",
            flush=True,
        )


# -- reporting -----------------------------------------------------------------------------------


def calibration_table(rows: Sequence[Calibration]) -> str:
    """Return the table in Markdown: means over the trials ± their standard errors."""
    lines = [
        "| dataset | probabilities of | accuracy, % | log-loss | Brier score | calibration error "
        "| fit, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for name, system in SYSTEMS.items():
            cell = [row for row in rows if (row.dataset, row.system) == (dataset, name)]
            if not cell:
                continue
            columns = (
                _mean([row.accuracy for row in cell], 2),
                _mean([row.log_loss for row in cell], 4),
                _mean([row.brier for row in cell], 4),
                _mean([row.calibration_error for row in cell], 4),
                _mean([row.fit_seconds for row in cell], 2),
            )
            lines.append(" | ".join(("| " + SOURCES[dataset].title, system.title, *columns)) + " |")
    return "\n".join(lines) + "\n"


def _mean(values: Sequence[float], digits: int) -> str:
    """Return ``mean ± standard error``; one value has no error."""
    text = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ± {statistics.stdev(values) / len(values) ** 0.5:.{digits}f}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--smoke", action="store_true", help="seconds: digits, one trial")
    parser.add_argument("--out", type=Path, help="default: in results/; in build/ for smoke")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    options = parser.parse_args()
    if options.smoke:
        options.datasets, options.trials = (SMOKE,), 1
    folder = RESULTS.parents[1] / "build" if options.smoke else RESULTS
    options.out = options.out or folder / "calibration.csv"
    return options


def main() -> None:
    restart_with_fixed_threads()
    options = parse()
    try:
        run(options)
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")
    print("\n" + calibration_table(csv_rows.read(options.out, Calibration)), end="")


if __name__ == "__main__":
    main()
