"""Gain of selected landmarks over uniform ones under changed conditions, one changed at a time.

The conditions are the width of the kernel, the ridge, the scaling of the features, the weights of
the classes, the number of training rows, the pool that landmarks are drawn from (the 1 n to 8 n
rows of largest negative margin, or all rows), and quotas of landmarks for each class. Pilot and
final model share the conditions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from nysplus_experiments.harness import datasets
from nysplus_experiments.harness.bench import BenchOptions
from nysplus_experiments.harness.records import Row
from nysplus_experiments.mechanism.geometry import residuals
from nysplus_experiments.mechanism.rules import (
    RowNumbers,
    class_quotas,
    drawn_from_hardest,
    hardest_of_each_class,
)
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
    score,
)

FILE = "conditions.csv"
DATASETS = ("mnist", "letter", "ijcnn1", "usps", "cod_rna")
N, SMOKE_N = 250, 50
POOLS = (1, 2, 4, 8)
ALL = "all"
ROWS = (2_500, 7_500, 30_000)
_CONDITIONS: Mapping[str, Mapping[str, Conditions]] = {
    "gamma": {f"{factor:g}": Conditions(gamma=factor) for factor in (0.25, 0.5, 1, 2, 4)},
    "rho": {f"{rho:g}": Conditions(rho=rho) for rho in (1e-8, 1e-5, 1e-3, 1e-1, 1.0)},
    "scaling": {
        "one range": Conditions(scaling="global"),
        "range of each feature": Conditions(scaling="feature"),
        "variance 1": Conditions(scaling="standard"),
    },
    "weights": {"equal": Conditions(), "balanced": Conditions(balanced=True)},
}
FACTORS = (*_CONDITIONS, "rows", "pool", "quotas")


@dataclass(frozen=True)
class Gain(Row, key="dataset n factor trial"):
    """One row of ``conditions.csv``: both kinds of landmarks under one condition.

    ``uniform`` and ``selected`` are test accuracies in percent, ``*_balanced`` means over classes.
    ``chosen_wrong`` is the share of the selected rows that the pilot predicts wrong, in percent,
    and ``wrong_rows`` the number of training rows that it predicts wrong. ``*_unexplained`` are
    ``tr(K − K̃) / tr K`` on test rows, in percent.
    """

    dataset: str
    n: int
    factor: str
    trial: int
    level: str
    uniform: float
    selected: float
    uniform_balanced: float
    selected_balanced: float
    chosen_wrong: float
    wrong_rows: int
    uniform_unexplained: float
    selected_unexplained: float


# Test rows on which the explained share of the kernel is measured.
_EXPLAINED_ROWS = 1_000


def _unexplained(pilot: Pilot, points: Any) -> float:
    X = pilot.trial.split.X_test[:_EXPLAINED_ROWS]
    return float(f"{100 * residuals(pilot.trial.kernel, points, X).mean():.6g}")


def _columns(pilot: Pilot, rows: RowNumbers) -> dict[str, Any]:
    """Return the columns of rows that were selected by the margins of the pilot."""
    points = pilot.trial.split.X_train[rows]
    final = pilot.problem.fit(points, copy.deepcopy(pilot.rng)).expansion
    uniform, selected = score(pilot.trial, pilot.fit.expansion), score(pilot.trial, final)
    return {
        "uniform": uniform.accuracy,
        "selected": selected.accuracy,
        "uniform_balanced": uniform.balanced,
        "selected_balanced": selected.balanced,
        "chosen_wrong": round(100 * float(np.mean(~pilot.hits[rows])), 4),
        "wrong_rows": int(np.sum(~pilot.hits)),
        "uniform_unexplained": _unexplained(pilot, pilot.fit.expansion.landmarks),
        "selected_unexplained": _unexplained(pilot, points),
    }


@lru_cache(maxsize=8)
def _compared(dataset: str, n: int, trial: int, conditions: Conditions) -> dict[str, Any]:
    """Return the columns of Algorithm 1; the paper's conditions return with every factor."""
    pilot = fit_pilot(*changed_trial(dataset, trial, conditions), n)
    return _columns(pilot, drawn_from_hardest(pilot, n, n))


def _levels(dataset: str, factor: str) -> Mapping[str, Conditions]:
    if factor != "rows":
        return _CONDITIONS[factor]
    count = datasets.DATASETS[dataset].counts[0]
    return {str(rows): Conditions(rows=rows) for rows in sorted({min(r, count) for r in ROWS})}


def _pools(pilot: Pilot, n: int) -> dict[str, RowNumbers]:
    sizes = {str(pool): pool * n for pool in POOLS} | {ALL: len(pilot.margins)}
    return {level: drawn_from_hardest(pilot, n, size) for level, size in sizes.items()}


def _quotas(pilot: Pilot, n: int) -> dict[str, RowNumbers]:
    by_share = class_quotas(pilot.codes, n)
    equal = class_quotas(np.arange(len(by_share)), n)
    return {
        "share of rows": hardest_of_each_class(pilot, by_share),
        "equal": hardest_of_each_class(pilot, equal),
    }


#: Factors that change the selection alone: the rows of each level, by the pilot and n.
_SELECTIONS = {"pool": _pools, "quotas": _quotas}


def measure(dataset: str, n: int, factor: str, trial: int) -> list[Gain]:
    """Return the gains at all levels of a factor."""
    if factor in _SELECTIONS:
        pilot = fit_pilot(*changed_trial(dataset, trial, Conditions()), n)
        chosen = _SELECTIONS[factor](pilot, n)
        found = {level: _columns(pilot, rows) for level, rows in chosen.items()}
    else:
        found = {
            level: _compared(dataset, n, trial, _canonical(dataset, conditions))
            for level, conditions in _levels(dataset, factor).items()
        }
    key = (dataset, n, factor, trial)
    return [Gain(*key, level, **columns) for level, columns in found.items()]


def _canonical(dataset: str, conditions: Conditions) -> Conditions:
    """Return equal conditions without the dataset's own scaling and number of rows."""
    row = datasets.DATASETS[dataset]
    own_scaling = conditions.scaling == row.scaling
    all_rows = row.counts[0] <= min(conditions.rows, MAX_TRAIN_ROWS)
    return Conditions(
        conditions.gamma,
        conditions.rho,
        None if own_scaling else conditions.scaling,
        conditions.balanced,
        MAX_TRAIN_ROWS if all_rows else conditions.rows,
    )


def plan(
    names: Sequence[str], factors: Sequence[str], trials: int
) -> Iterator[tuple[str, int, str, int]]:
    """Yield dataset, n, factor and trial, trial by trial."""
    for trial, dataset, factor in product(range(trials), names, factors):
        yield dataset, SMOKE_N if dataset == SMOKE else N, factor, trial


def run(options: BenchOptions) -> None:
    """Measure the trials that are not in the file yet. Options of this step: factors, trials."""
    options.expect("factors", "trials")
    factors = options.texts("factors", FACTORS, FACTORS)
    tasks = plan(chosen_datasets(options, DATASETS), factors, n_trials(options))
    settings = {"max_train_rows": MAX_TRAIN_ROWS, "max_test_rows": MAX_TEST_ROWS}
    options.measure(FILE, Gain, tasks, measure, settings=settings, any_machine=True)
