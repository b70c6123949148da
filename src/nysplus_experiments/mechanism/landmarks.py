"""Which rows each rule chooses, how redundant they are, and the accuracy of the model on them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import Landmarks
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.mechanism.geometry import effective_rank, nearest_similarity, residuals
from nysplus_experiments.mechanism.rules import MIN_AGREEMENT, RULES
from nysplus_experiments.mechanism.trials import (
    MAX_TEST_ROWS,
    MAX_TRAIN_ROWS,
    SMOKE,
    Conditions,
    Pilot,
    changed_trial,
    chosen_datasets,
    fit_pilot,
    n_trials,
    neighbour_agreement,
    score,
)

FILE = "landmarks.csv"
# Sizes by dataset; on COD-RNA the paper has at most 300 landmarks.
SIZES: Mapping[str, tuple[int, ...]] = {
    "mnist": (100, 500),
    "letter": (100, 500),
    "ijcnn1": (100, 500),
    "usps": (100, 500),
    "cod_rna": (20, 300),
    SMOKE: (20, 50),
}
DATASETS = tuple(name for name in SIZES if name != SMOKE)
#: Rules that are measured on some datasets only: the paper has a claim on IJCNN, and 3 n centroids
#: of images take minutes.
ONLY_ON = {"support centroids": ("ijcnn1", SMOKE)}
#: Name of the entry of all training rows, in place of a rule.
ALL_ROWS = "all rows"
# Test rows on which the explained share of the kernel is measured.
EXPLAINED_ROWS = 2_000


@dataclass(frozen=True)
class LandmarkStatistics(Row, key="dataset n trial"):
    """One row of ``landmarks.csv``: a rule in a trial; shares are percentages.

    ``easy`` and ``hard`` are the accuracies on test rows whose ten nearest training rows all have
    their class, and on the other test rows, of which there are ``hard_rows``. ``pilot_wrong`` and
    ``final_wrong`` are the shares of landmarks that the pilot, and the final model, predict wrong;
    ``outliers`` the share with most neighbours of other classes. ``class_shift`` is half the sum of
    the absolute differences between the class shares of landmarks and of rows. ``least_ratio`` is
    the smallest quotient of the two shares, that of ``least_class``; likewise ``most``.
    ``margin_10``, ``margin_50`` and ``margin_90`` are quantiles of the pilot's negative margins.
    ``unexplained`` is ``tr(K − K̃) / tr K`` on test rows, also for easy and hard ones. Centroids
    have no class, so that the columns on rows are empty.
    """

    dataset: str
    n: int
    trial: int
    rule: str
    accuracy: float | None = None
    balanced: float | None = None
    easy: float | None = None
    hard: float | None = None
    hard_rows: float | None = None
    pilot_wrong: float | None = None
    final_wrong: float | None = None
    outliers: float | None = None
    class_shift: float | None = None
    least_class: str = ""
    least_ratio: float | None = None
    most_class: str = ""
    most_ratio: float | None = None
    margin_10: float | None = None
    margin_50: float | None = None
    margin_90: float | None = None
    similarity: float | None = None
    effective_rank: float | None = None
    unexplained: float | None = None
    unexplained_easy: float | None = None
    unexplained_hard: float | None = None


def measure(dataset: str, n: int, trial: int) -> list[LandmarkStatistics]:
    """Return the statistics of all rules in a trial, and of all training rows."""
    pilot = fit_pilot(*changed_trial(dataset, trial, Conditions()), n)
    agreement, test_agreement = neighbour_agreement(dataset, trial)
    every = Landmarks(pilot.trial.split.X_train, np.arange(len(agreement)))
    rows = [LandmarkStatistics(dataset, n, trial, ALL_ROWS, **_of_rows(pilot, every, agreement))]
    for name, rule in RULES.items():
        if dataset not in ONLY_ON.get(name, (dataset,)):
            continue
        chosen = rule(pilot, n, agreement)
        final = pilot.problem.fit(chosen.points, copy.deepcopy(pilot.rng)).expansion
        columns = _of_model(pilot, final, test_agreement)
        columns |= _of_geometry(pilot, chosen.points, test_agreement)
        columns |= _of_rows(pilot, chosen, agreement)
        if chosen.indices is not None:
            hits = pilot.trial.targets.take(chosen.indices).hits(final(chosen.points))
            columns["final_wrong"] = _percent(~hits)
        rows.append(LandmarkStatistics(dataset, n, trial, name, **columns))
    return rows


def _of_model(pilot: Pilot, final: KernelExpansion, agreement: Float) -> dict[str, Any]:
    scores, easy = score(pilot.trial, final), agreement == 1.0
    return {
        "accuracy": scores.accuracy,
        "balanced": scores.balanced,
        "easy": _percent(scores.hits[easy]),
        "hard": _percent(scores.hits[~easy]),
        "hard_rows": _percent(~easy),
    }


def _of_geometry(pilot: Pilot, points: Float, agreement: Float) -> dict[str, Any]:
    kernel, X = pilot.trial.kernel, pilot.trial.split.X_test[:EXPLAINED_ROWS]
    K, easy = kernel(points, points), agreement[:EXPLAINED_ROWS] == 1.0
    missing = residuals(kernel, points, X)
    return {
        "similarity": round(nearest_similarity(K), 6),
        "effective_rank": round(effective_rank(K), 3),
        "unexplained": _percent(missing),
        "unexplained_easy": _percent(missing[easy]),
        "unexplained_hard": _percent(missing[~easy]),
    }


def _of_rows(pilot: Pilot, chosen: Landmarks, agreement: Float) -> dict[str, Any]:
    rows = chosen.indices
    if rows is None:
        return {}
    every = np.bincount(pilot.codes)
    share = every / every.sum()
    own = np.bincount(pilot.codes[rows], minlength=len(every)) / len(rows)
    ratios = own / share
    least, most = int(ratios.argmin()), int(ratios.argmax())
    low, middle, high = np.quantile(pilot.margins[rows], (0.1, 0.5, 0.9))
    return {
        "pilot_wrong": _percent(~pilot.hits[rows]),
        "outliers": _percent(agreement[rows] < MIN_AGREEMENT),
        "class_shift": round(50 * float(np.abs(own - share).sum()), 3),
        "least_class": str(pilot.trial.classes[least]),
        "least_ratio": round(float(ratios[least]), 4),
        "most_class": str(pilot.trial.classes[most]),
        "most_ratio": round(float(ratios[most]), 4),
        "margin_10": round(float(low), 4),
        "margin_50": round(float(middle), 4),
        "margin_90": round(float(high), 4),
    }


def _percent(values: npt.NDArray[Any]) -> float:
    return float(f"{100 * float(np.mean(values)):.6g}")


def plan(datasets: Sequence[str], trials: int) -> Iterator[tuple[str, int, int]]:
    """Yield dataset, n and trial, trial by trial."""
    for trial, dataset in product(range(trials), datasets):
        yield from ((dataset, n, trial) for n in SIZES[dataset])


def run(options: BenchOptions) -> None:
    """Measure the trials that are not in the file yet. Option of this step: trials."""
    options.expect("trials")
    tasks = plan(chosen_datasets(options, DATASETS), n_trials(options))
    settings = {"max_train_rows": MAX_TRAIN_ROWS, "max_test_rows": MAX_TEST_ROWS}
    options.measure(FILE, LandmarkStatistics, tasks, measure, settings=settings, any_machine=True)
