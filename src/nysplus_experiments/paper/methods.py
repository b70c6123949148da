"""Fit the methods of the paper's figures, one table row each, on the library's own engine.

RBF kernel with the dataset's gamma, ridge ρ = 1e-5, float64. Models on landmarks equal
`NystroemClassifier` with the same selector, approximation and ``random_state=seed`` bit for bit;
the first stage of Algorithm 1 is fitted once and serves the one-stage and the two-stage methods.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from nysplus._ridge.feature_map import Approximation, EnsembleMap, RandomizedMap, StandardMap
from nysplus._ridge.fit import ExpansionFit, fit_expansion
from nysplus.landmarks import (
    KMeans,
    Landmarks,
    LandmarkSelector,
    NegativeMargin,
    Problem,
    SupervisedKMeans,
    SupportCentroids,
    Uniform,
    select_landmarks,
)
from nysplus_experiments.harness.measurement import measure
from nysplus_experiments.paper.baselines import (
    FULL_ROWS,
    fit_fourier,
    fit_kernel_ridge,
    fit_kernel_svm,
)
from nysplus_experiments.paper.trial import (
    ALPHA,
    Fitted,
    Stage,
    Trial,
    largest,
    on_landmarks,
    seed_of,
)

__all__ = ["ALPHA", "FULL_ROWS", "METHODS", "Fitted", "Method", "Trial", "fit_method", "seed_of"]

# Rows that k-means clusters (appendices B and C), and rows of largest negative margin that the
# supervised k-means clusters where the paper's number is not the library's default.
_CLUSTERED_ROWS = {"covtype": 50_000}
_CANDIDATES = {"har": 5_000}


@dataclass(frozen=True)
class Variant:
    """An unsupervised Nyström method: how landmarks are drawn, and which map they carry."""

    selector: Callable[[str], LandmarkSelector]
    approximation: Approximation


def clustered_rows(dataset: str) -> int:
    """Return how many rows k-means clusters in the paper's experiments."""
    return _CLUSTERED_ROWS.get(dataset, 20_000)


def _clustering(dataset: str) -> KMeans:
    return KMeans(max_rows=clustered_rows(dataset))


VARIANTS: dict[str, Variant] = {
    "Nys": Variant(lambda dataset: Uniform(), StandardMap()),
    "ENys": Variant(lambda dataset: Uniform(), EnsembleMap(n_experts=5)),
    "RNys": Variant(lambda dataset: Uniform(), RandomizedMap(n_oversamples=10, n_iter=2)),
    "KNys": Variant(_clustering, StandardMap()),
}


def _select(
    selector: LandmarkSelector, problem: Problem, n: int, rng: np.random.RandomState
) -> Landmarks:
    selector.check(n, problem.approximation)
    with _repeatable_clustering():
        return select_landmarks(selector, problem, n, rng)


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: once is enough


def _repeatable_clustering() -> AbstractContextManager[Any]:
    """Limit k-means to two threads, whose sums do not depend on the order in which they finish."""
    limit: AbstractContextManager[Any] = _thread_pools().limit(limits=2, user_api="openmp")
    return limit


def first_stage(name: str, trial: Trial, n: int) -> Stage:
    """Fit a method of `VARIANTS` with `n` landmarks, unless that is what was fitted last."""
    return trial.stage(name, n, partial(_fit_variant, VARIANTS[name], trial, n))


def _fit_variant(variant: Variant, trial: Trial, n: int) -> Stage:
    rng = np.random.RandomState(trial.seed(n))

    def fit() -> ExpansionFit:
        problem = trial.problem(variant.approximation)
        chosen = _select(variant.selector(trial.split.name), problem, n, rng)
        return _fit(problem, chosen.points, rng)

    step = measure(fit)
    return Stage(step.result, step.seconds, step.peak_mb, rng)


def _fit(problem: Problem, points: Any, rng: np.random.RandomState) -> ExpansionFit:
    return fit_expansion(
        problem.blocks, points, problem.kernel, problem.approximation, problem.alphas, rng
    )


def _fit_one_stage(variant: str, trial: Trial, n: int, n_initial: int) -> Fitted:
    stage = first_stage(variant, trial, n)
    evaluations = stage.fit.n_kernel_evaluations
    return on_landmarks(stage.fit.expansion, evaluations, None, stage.seconds, stage.peak_rss_mb)


def _fit_two_stage(
    variant: str,
    rule: Callable[[str, int], NegativeMargin | SupervisedKMeans],
    trial: Trial,
    n: int,
    n_initial: int,
) -> Fitted:
    """Run steps 3 to 6 of Algorithm 1 on the first stage that `variant` is."""
    selector = rule(trial.split.name, n_initial)
    problem = trial.problem(VARIANTS[variant].approximation)
    selector.check(n, problem.approximation)
    first = first_stage(variant, trial, n_initial)
    rng = copy.deepcopy(first.rng)  # goes on where the first stage ended, for every row

    def fit() -> ExpansionFit:
        with _repeatable_clustering():
            chosen = selector.choose(problem, first.fit, n, rng)
        return _fit(problem, chosen.points, rng)

    step = measure(fit)
    scored = trial.blocks.n_rows * n_initial
    return on_landmarks(
        step.result.expansion,
        first.fit.n_kernel_evaluations + scored + step.result.n_kernel_evaluations,
        first.seconds,
        step.seconds,
        largest(first.peak_rss_mb, step.peak_mb),
    )


def _fit_support_centroids(trial: Trial, n: int, n_initial: int) -> Fitted:
    rng = np.random.RandomState(trial.seed(n_initial))
    max_rows = clustered_rows(trial.split.name)
    selector = SupportCentroids(n_initial=n_initial, max_rows=max_rows)
    problem = trial.problem(StandardMap())
    choice = measure(_select, selector, problem, n, rng)
    step = measure(_fit, problem, choice.result.points, rng)
    evaluations = choice.result.n_kernel_evaluations + step.result.n_kernel_evaluations
    peak = largest(choice.peak_mb, step.peak_mb)
    return on_landmarks(step.result.expansion, evaluations, choice.seconds, step.seconds, peak)


@dataclass(frozen=True)
class Method:
    """One row of the table: ``fit(trial, n, n_initial)`` and the name that figures print.

    ``first`` is the method whose fit with n_0 landmarks is the first stage. Full methods use all
    rows, so that there is no size to choose.
    """

    name: str
    title: str
    fit: Callable[[Trial, int, int], Fitted]
    first: str
    two_stage: bool = False
    full: bool = False


def _negative_margin(dataset: str, n_initial: int) -> NegativeMargin:
    return NegativeMargin(n_initial=n_initial)


def _supervised_kmeans(dataset: str, n_initial: int) -> SupervisedKMeans:
    return SupervisedKMeans(n_initial=n_initial, n_candidates=_CANDIDATES.get(dataset))


def _one(name: str) -> Method:
    return Method(name, name, partial(_fit_one_stage, name), name)


def _plus(first: str, rule: Callable[[str, int], NegativeMargin | SupervisedKMeans]) -> Method:
    name = first + "+"
    return Method(name, name, partial(_fit_two_stage, first, rule), first, two_stage=True)


METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        _one("Nys"),
        _plus("Nys", _negative_margin),
        _one("ENys"),
        _plus("ENys", _negative_margin),
        _one("RNys"),
        _plus("RNys", _negative_margin),
        _one("KNys"),
        _plus("KNys", _supervised_kmeans),
        Method("SC", "KNys+ (support centroids)", _fit_support_centroids, "SC", two_stage=True),
        Method("Fourier", "Fourier", fit_fourier, "Fourier"),
        Method("KRR", "KRR", fit_kernel_ridge, "KRR", full=True),
        Method("KSVM", "KSVM", fit_kernel_svm, "KSVM", full=True),
    )
}


def fit_method(name: str, trial: Trial, n: int, n_initial: int | None = None) -> Fitted:
    """Fit a row of `METHODS` with n landmarks; a first stage has n_initial, n by default."""
    return METHODS[name].fit(trial, n, n if n_initial is None else n_initial)
