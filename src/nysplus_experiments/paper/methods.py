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
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from sklearn.kernel_approximation import RBFSampler
from sklearn.svm import SVC
from threadpoolctl import ThreadpoolController

from nysplus import landmarks
from nysplus._ridge.feature_map import Approximation, EnsembleMap, RandomizedMap, StandardMap
from nysplus._ridge.fit import ExpansionFit, fit_expansion
from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._rows.blocks import Block
from nysplus._rows.slicing import row_slices
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF
from nysplus.landmarks import Landmarks, LandmarkSelector, NegativeMargin, Problem, SupervisedKMeans
from nysplus_experiments.harness.measurement import Measure, measure
from nysplus_experiments.paper.trial import (
    ALPHA,
    Codes,
    Fitted,
    Stage,
    Trial,
    codes_of,
    largest,
    on_landmarks,
)

# The paper does not state the C of its kernel SVM; 10 is a common choice for scaled features.
SVM_C = 10.0
# Training rows of the full machines at most. The kernel matrix of KRR then takes 3.2 GB. LIBSVM
# keeps a part of it only, but its time grows with the square of the rows: half an hour.
KRR_ROWS, SVM_ROWS = 20_000, 150_000
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


def _clustering(dataset: str) -> landmarks.KMeans:
    return landmarks.KMeans(max_rows=clustered_rows(dataset))


VARIANTS: dict[str, Variant] = {
    "Nys": Variant(lambda dataset: landmarks.Uniform(), StandardMap()),
    "ENys": Variant(lambda dataset: landmarks.Uniform(), EnsembleMap(n_experts=5)),
    "RNys": Variant(lambda dataset: landmarks.Uniform(), RandomizedMap(n_oversamples=10, n_iter=2)),
    "KNys": Variant(_clustering, StandardMap()),
}


def _select(
    selector: LandmarkSelector, problem: Problem, n: int, rng: np.random.RandomState
) -> Landmarks:
    selector.check(n, problem.approximation)
    with _repeatable_clustering():
        return landmarks.select_landmarks(selector, problem, n, rng)


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: once is enough


def _repeatable_clustering() -> AbstractContextManager[Any]:
    """Limit k-means to two threads, whose sums do not depend on the order in which they finish."""
    return _thread_pools().limit(limits=2, user_api="openmp")


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
    selector = landmarks.SupportCentroids(n_initial=n_initial, max_rows=max_rows)
    problem = trial.problem(StandardMap())
    choice = measure(_select, selector, problem, n, rng)
    step = measure(_fit, problem, choice.result.points, rng)
    evaluations = choice.result.n_kernel_evaluations + step.result.n_kernel_evaluations
    peak = largest(choice.peak_mb, step.peak_mb)
    return on_landmarks(step.result.expansion, evaluations, choice.seconds, step.seconds, peak)


def fit_fourier(trial: Trial, n: int, n_initial: int) -> Fitted:
    """Fit ridge regression on random Fourier features, in one pass of blocks."""
    row_bytes = 8 * (trial.split.X_train.shape[1] + 4 * n)
    step = measure(_fourier_ridge, trial, n, row_bytes)
    sampler, W, b = step.result

    def predict(rows: Any) -> Codes:
        slices = row_slices(len(rows), row_bytes)
        return np.concatenate([codes_of(sampler.transform(rows[s]) @ W + b) for s in slices])

    return _plain(predict, step, (sampler.random_weights_, sampler.random_offset_, W, b), 0)


def _fourier_ridge(trial: Trial, n: int, row_bytes: int) -> tuple[RBFSampler, Float, Float]:
    sampler = RBFSampler(gamma=trial.split.gamma, n_components=n, random_state=trial.seed(n))
    sampler.fit(trial.split.X_train[:1])  # it looks at the number of columns only

    def part(block: Block) -> Moments:
        return Moments.of(sampler.transform(block.X), block.Y, block.weight)

    zero = partial(Moments.zero, n, trial.blocks.n_outputs)
    moments = trial.blocks.fold(part, zero, row_bytes, "ridge: moments")
    solution = RidgePath(moments).solve(ALPHA)
    return sampler, solution.W, solution.b


def kernel_ridge(kernel: RBF, X: Float, Y: Float, alpha: float) -> KernelExpansion:
    """Return full kernel ridge regression with an intercept that is not penalised.

    Solves ``[K + αI, 1; 1ᵀ, 0] [A; b] = [Y; 0]`` by one Cholesky factorisation.
    """
    K = kernel(X, X)
    K.flat[:: len(X) + 1] += alpha
    # K is symmetric: its transpose has the order of columns that LAPACK overwrites in place.
    factor = cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)
    right_hand_sides = np.column_stack([Y, np.ones(len(X))])
    solved = cho_solve(factor, right_hand_sides, check_finite=False)
    of_Y, of_ones = solved[:, :-1], solved[:, -1:]
    b = of_Y.sum(axis=0) / of_ones.sum()
    return KernelExpansion(kernel, X, of_Y - of_ones * b, b)


def fit_kernel_ridge(trial: Trial, n: int, n_initial: int) -> Fitted:
    """Fit full kernel ridge regression on the coded classes."""
    step = measure(
        lambda: kernel_ridge(trial.kernel, trial.split.X_train, trial.targets.coded(), ALPHA)
    )
    return on_landmarks(step.result, n * n, None, step.seconds, step.peak_mb)


def fit_kernel_svm(trial: Trial, n: int, n_initial: int) -> Fitted:
    """Fit scikit-learn's kernel SVM, one-vs-one for several classes."""
    model = SVC(C=SVM_C, gamma=trial.split.gamma)
    step = measure(model.fit, trial.split.X_train, trial.targets.codes)
    arrays = (model.support_vectors_, model.dual_coef_, model.intercept_)
    return _plain(model.predict, step, arrays, None)


def _plain(
    predict: Callable[[Any], Codes],
    step: Measure[Any],
    arrays: tuple[npt.NDArray[Any], ...],
    evaluations: int | None,
) -> Fitted:
    """Return a model that is described by the arrays it stores."""
    return Fitted(
        predict=predict,
        first_stage_seconds=None,
        final_stage_seconds=step.seconds,
        paper_bytes=8 * sum(array.size for array in arrays),
        stored_bytes=sum(array.nbytes for array in arrays),
        kernel_evaluations=evaluations,
        peak_rss_mb=step.peak_mb,
    )


@dataclass(frozen=True)
class Method:
    """One row of the table; the call is ``fit(trial, n, n_initial)``.

    ``first`` is the method whose fit with n_0 landmarks is the first stage. Full methods use all
    rows, of which there may be at most ``max_rows``, so that there is no size to choose.
    """

    name: str
    fit: Callable[[Trial, int, int], Fitted]
    first: str
    two_stage: bool = False
    max_rows: int | None = None

    @property
    def full(self) -> bool:
        """Whether all training rows take part, in the place of landmarks."""
        return self.max_rows is not None


def _negative_margin(dataset: str, n_initial: int) -> NegativeMargin:
    return NegativeMargin(n_initial=n_initial)


def _supervised_kmeans(dataset: str, n_initial: int) -> SupervisedKMeans:
    return SupervisedKMeans(n_initial=n_initial, n_candidates=_CANDIDATES.get(dataset))


def _one(name: str) -> Method:
    return Method(name, partial(_fit_one_stage, name), name)


def _plus(first: str, rule: Callable[[str, int], NegativeMargin | SupervisedKMeans]) -> Method:
    name = first + "+"
    return Method(name, partial(_fit_two_stage, first, rule), first, two_stage=True)


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
        Method("SC", _fit_support_centroids, "SC", two_stage=True),
        Method("Fourier", fit_fourier, "Fourier"),
        Method("KRR", fit_kernel_ridge, "KRR", max_rows=KRR_ROWS),
        Method("KSVM", fit_kernel_svm, "KSVM", max_rows=SVM_ROWS),
    )
}


def fit_method(name: str, trial: Trial, n: int, n_initial: int | None = None) -> Fitted:
    """Fit a row of `METHODS` with n landmarks; a first stage has n_initial, n by default."""
    method = METHODS[name]
    if method.max_rows is not None and n > method.max_rows:
        raise ValueError(
            f"{name} takes at most {method.max_rows} training rows, got {n}. Leave it out for this "
            "dataset."
        )
    return method.fit(trial, n, n if n_initial is None else n_initial)
