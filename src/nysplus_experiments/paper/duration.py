"""Estimate how long a row takes, roughly: enough for a time left and for a dry run.

The constants were fitted to single rows on two cores of a server processor. A run corrects them
by its own speed as it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from nysplus_experiments.harness.datasets import DATASETS, Dataset
from nysplus_experiments.paper.methods import METHODS, VARIANTS, clustered_rows
from nysplus_experiments.paper.results import Key

_PRODUCTS, _CLUSTERING = 95e9, 70e9  # operations a second in matrix products, and in k-means
_FIT_ENTRY, _PREDICT_ENTRY = 18e-9, 6e-9  # seconds for a kernel entry beside its products
_EIGEN = 0.24e-9  # seconds for n³ of the two eigendecompositions
_OVERHEAD, _LOAD = 0.02, 2e-8  # seconds of any row, and of loading one number
# Operations of a fit on one row of the data, in units of n²: whitening, then the scatter. A
# standard map takes 2 + 1, five experts 2/5 + 1, a map of rank n/2 takes 1 + 1/4, Fourier 0 + 1.
_WORK = {"ENys": 1.4, "RNys": 1.25, "Fourier": 1.0}


def _fit(method: str, data: Dataset, n: int) -> float:
    """Return the time of a fit: moments, two eigendecompositions, and k-means where it is used."""
    operations = 2 * data.n_features + _WORK.get(method, 3.0) * n
    own = data.counts[0] * n * (operations / _PRODUCTS + _FIT_ENTRY) + _EIGEN * n**3
    return own + (_clustering(data, n) if method == "KNys" else 0.0)


def _scores(n_rows: int, data: Dataset, n: int) -> float:
    return n_rows * n * (2 * data.n_features / _PRODUCTS + _PREDICT_ENTRY)


def _clustering(data: Dataset, n: int) -> float:
    """Return the time of twenty Lloyd iterations."""
    rows = min(clustered_rows(data.name), data.counts[0])
    return 20 * rows * n * (2 * data.n_features + 10) / _CLUSTERING


def _final_stage(task: Key, data: Dataset) -> float:
    n, n_initial, method = task.n, task.n_initial or task.n, METHODS[task.method]
    rows = data.counts[0]
    if method.full:
        return rows**2 * ((2 * data.n_features + rows / 3) / _PRODUCTS + _FIT_ENTRY)
    if task.method in VARIANTS:
        return 0.0  # all of it is the first stage
    if task.method == "SC":
        return _clustering(data, 3 * n) + _fit("Nys", data, n_initial) + _fit("Nys", data, n)
    final = _fit(method.first, data, n)
    return final + (_scores(rows, data, n_initial) if method.two_stage else 0.0)


def estimate_seconds(tasks: Iterable[Key]) -> list[float]:
    """Return the seconds of each task; a shared first stage counts where it is fitted."""
    seconds: list[float] = []
    loaded: tuple[str, int] | None = None
    stage: tuple[str, int] | None = None
    for task in tasks:
        data, first = DATASETS[task.dataset], METHODS[task.method].first
        own = _OVERHEAD + _final_stage(task, data) + _scores(data.counts[1], data, task.n)
        if loaded != (task.dataset, task.trial):
            loaded, stage = (task.dataset, task.trial), None
            own += _LOAD * sum(data.counts) * data.n_features
        n_first = task.n_initial or task.n
        if first in VARIANTS and stage != (first, n_first):
            stage = (first, n_first)
            own += _fit(first, data, n_first)
        seconds.append(own)
    return seconds
