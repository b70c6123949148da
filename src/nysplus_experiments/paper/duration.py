"""How long a row takes, roughly: enough for a time left and for a dry run.

The constants were fitted to single rows on two cores of a server processor. A run corrects them
by its own speed as it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.paper.methods import METHODS, VARIANTS, clustered_rows
from nysplus_experiments.paper.results import Key

# Floating-point operations a second in matrix products, and in k-means.
_PRODUCTS = 95e9
_CLUSTERING = 70e9
# Seconds for one kernel entry beside its products: in a fit, and in a prediction.
_FIT_ENTRY = 18e-9
_PREDICT_ENTRY = 6e-9
# Seconds for n³ of the two eigendecompositions.
_EIGEN = 0.24e-9
# Seconds of any row, and of loading one number.
_OVERHEAD = 0.02
_LOAD = 2e-8
# Operations of a fit on one row of the data, in units of n²: whitening, then the scatter. A
# standard map takes 2 + 1, five experts 2/5 + 1, a map of rank n/2 takes 1 + 1/4, Fourier 0 + 1.
_WORK = {"ENys": 1.4, "RNys": 1.25, "Fourier": 1.0}


def _fit(method: str, dataset: str, n: int) -> float:
    """One pass of moments and two eigendecompositions."""
    N, d = DATASETS[dataset].counts[0], DATASETS[dataset].n_features
    operations = 2 * d + _WORK.get(method, 3.0) * n
    return N * n * (operations / _PRODUCTS + _FIT_ENTRY) + _EIGEN * n**3


def _scores(n_rows: int, dataset: str, n: int) -> float:
    return n_rows * n * (2 * DATASETS[dataset].n_features / _PRODUCTS + _PREDICT_ENTRY)


def _clustering(dataset: str, n: int) -> float:
    """Twenty Lloyd iterations."""
    rows = min(clustered_rows(dataset), DATASETS[dataset].counts[0])
    return 20 * rows * n * (2 * DATASETS[dataset].n_features + 10) / _CLUSTERING


def _first_stage(method: str, dataset: str, n: int) -> float:
    return _fit(method, dataset, n) + (_clustering(dataset, n) if method == "KNys" else 0.0)


def _final_stage(task: Key) -> float:
    dataset, n, method = task.dataset, task.n, METHODS[task.method]
    N, d = DATASETS[dataset].counts[0], DATASETS[dataset].n_features
    n_initial = task.n_initial or n
    if method.full:
        return N**2 * ((2 * d + N / 3) / _PRODUCTS + _FIT_ENTRY)
    if task.method in VARIANTS:
        return 0.0  # all of it is the first stage
    if task.method == "SC":
        both = _fit("Nys", dataset, n_initial) + _fit("Nys", dataset, n)
        return _clustering(dataset, 3 * n) + both
    final = _fit(method.first, dataset, n)
    if method.two_stage:
        final += _scores(N, dataset, n_initial)
    return final + (_clustering(dataset, n) if task.method == "KNys+" else 0.0)


def estimate_seconds(tasks: Iterable[Key]) -> list[float]:
    """Return the seconds of each task in turn, shared first stages counted where they are fitted.

    Parameters
    ----------
    tasks : iterable of Key
        In the order of the run.
    """
    seconds: list[float] = []
    loaded: tuple[str, int] | None = None
    stage: tuple[str, int] | None = None
    for task in tasks:
        row, first = DATASETS[task.dataset], METHODS[task.method].first
        own = _OVERHEAD + _final_stage(task) + _scores(row.counts[1], task.dataset, task.n)
        if loaded != (task.dataset, task.trial):
            loaded, stage = (task.dataset, task.trial), None
            own += _LOAD * sum(row.counts) * row.n_features
        n_first = task.n_initial or task.n
        if first in VARIANTS and stage != (first, n_first):
            stage = (first, n_first)
            own += _first_stage(first, task.dataset, n_first)
        seconds.append(own)
    return seconds
