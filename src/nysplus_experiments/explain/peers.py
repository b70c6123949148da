"""Compare exact Shapley values with the estimates of shap, on the same functions.

An ``SVC`` of scikit-learn is fitted to breast cancer (30 columns, standardised). `from_svc` returns
the same function, so that exact values and those of ``shap.KernelExplainer`` for the SVC estimate
the same numbers. ``shap.PermutationExplainer`` estimates those of a model of nysplus. Each estimate
is made twice with different seeds, which tells its own error. `shapley_values` explains 50 rows
in a call, and the estimates are those of the first few of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from nysplus import NystroemClassifier, from_svc
from nysplus._runtime.threads import using_threads
from nysplus.explain import shapley_values
from nysplus_experiments.harness import records
from nysplus_experiments.harness.bench import BenchError, BenchOptions
from nysplus_experiments.harness.records import Row

# Explainer, evaluations of a row, rows of shap, and background rows. The defaults of shap for 30
# columns are 2 · 30 + 2048 coalitions, and ten permutations in both directions. With the larger
# numbers errors are 1 to 2 % of the values; KernelExplainer takes half a gigabyte then.
CASES = [
    ("KernelExplainer", 2108, 4, 100),
    ("KernelExplainer", 20000, 2, 100),
    ("PermutationExplainer", 610, 4, 100),
    ("PermutationExplainer", 61000, 2, 100),
]
# Test rows that nysplus explains in a call.
ROWS = 50


@dataclass(frozen=True)
class Peer(Row, key="peer evaluations rows background"):
    """One row of ``peers.csv``: values of the same function by shap and by nysplus.

    ``difference`` is the root mean square of the difference of shap's values from the exact ones,
    ``own_error`` that of the difference between two runs of shap, over √2; both in units of the
    root mean square of the exact values. Seconds are CPU time of one thread per row; ``ratio`` is
    that of shap over that of nysplus, in one process. ``rows`` are those of shap.
    """

    peer: str
    evaluations: int
    rows: int
    background: int
    model: str
    landmarks: int
    columns: int
    cpu_s_per_row: float
    cpu_ms_per_row_nysplus: float
    ratio: float
    difference: float
    own_error: float
    additivity: float


def measure(peer: str, evaluations: int, n_rows: int, n_background: int) -> Peer:
    """Return the comparison with one explainer of shap."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    background, rows = X[:n_background], X[-ROWS:]
    if peer == "KernelExplainer":
        teacher = SVC(C=1.0).fit(X[:400], y[:400])
        model, score, name = from_svc(teacher), teacher.decision_function, "SVC"
    else:
        model = NystroemClassifier(100, random_state=0).fit(X[:400], y[:400])
        score, name = model.decision_function, "NystroemClassifier"
    with using_threads(1):
        own, exact = _timed(lambda: shapley_values(model, rows, background), 5)
        runs = [
            partial(_estimate, peer, evaluations, score, background, rows[:n_rows], seed)
            for seed in (0, 1)
        ]
        found = [_timed(run) for run in runs]
    seconds, own = min(each[0] for each in found) / n_rows, own / ROWS
    (_, first), (_, second) = found
    values = exact.values[:n_rows]
    scale = np.sqrt((values**2).mean())
    total = exact.base_values + exact.values.sum(axis=1)
    return Peer(
        *(peer, evaluations, n_rows, n_background, name, len(model.landmarks_), X.shape[1]),
        *(_digits(seconds), _digits(1e3 * own), _digits(seconds / own)),
        _digits(np.sqrt(((first - values) ** 2).mean()) / scale),
        _digits(np.sqrt(((first - second) ** 2).mean() / 2.0) / scale),
        _digits(np.abs(total - score(rows)).max()),
    )


def _timed(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the shortest CPU time of several calls, and the last result."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        result = function()
        times.append(time.process_time() - begin)
    return min(times), result


def _estimate(
    peer: str, evaluations: int, score: Any, background: Any, rows: Any, seed: int
) -> Any:
    """Return the values of shap."""
    shap: Any = import_module("shap")
    np.random.seed(seed)
    if peer == "KernelExplainer":
        # without the default selection of ten columns, which biases the values
        explainer = shap.KernelExplainer(score, background)
        return explainer.shap_values(rows, nsamples=evaluations, l1_reg=False, silent=True)
    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.PermutationExplainer(score, masker, seed=seed)
    return explainer(rows, max_evals=evaluations, silent=True).values


def _digits(value: float) -> float:
    return float(f"{value:.2g}")


def run(options: BenchOptions) -> None:
    """Compare with the explainers that are not in the file yet; print the comparison."""
    options.expect()
    try:
        shap: Any = import_module("shap")
    except ImportError as error:
        raise BenchError("This step compares with shap: pip install shap") from error
    tasks = [("PermutationExplainer", 610, 1, 5)] if options.smoke else CASES
    options.measure("peers.csv", Peer, tasks, measure, settings={"shap": shap.__version__})
    print(records.frame(options.path("peers.csv"), Peer).T.to_string())
