"""Fit the baselines: random Fourier features and the full kernel machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from sklearn.kernel_approximation import RBFSampler
from sklearn.svm import SVC

from nysplus._ridge.moments import Moments
from nysplus._ridge.path import RidgePath
from nysplus._rows.blocks import Block
from nysplus._rows.slicing import row_slices
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.kernels import RBF
from nysplus_experiments.harness.measurement import Measure, measure
from nysplus_experiments.paper.trial import ALPHA, Codes, Fitted, Trial, codes_of, on_landmarks

# The paper does not state the C of its kernel SVM; 10 is a common choice for scaled features.
SVM_C = 10.0
# A full kernel matrix of this many rows takes 3.2 GB.
FULL_ROWS = 20_000


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
    _check_rows(n)
    step = measure(
        lambda: kernel_ridge(trial.kernel, trial.split.X_train, trial.targets.coded(), ALPHA)
    )
    return on_landmarks(step.result, n * n, None, step.seconds, step.peak_mb)


def fit_kernel_svm(trial: Trial, n: int, n_initial: int) -> Fitted:
    """Fit scikit-learn's kernel SVM, one-vs-one for several classes."""
    _check_rows(n)
    model = SVC(C=SVM_C, gamma=trial.split.gamma)
    step = measure(model.fit, trial.split.X_train, trial.targets.codes)
    arrays = (model.support_vectors_, model.dual_coef_, model.intercept_)
    return _plain(model.predict, step, arrays, None)


def _check_rows(n: int) -> None:
    if n > FULL_ROWS:
        raise ValueError(
            f"A full kernel machine of {n} rows needs {8 * n * n / 1e9:.0f} GB; the limit is "
            f"{FULL_ROWS} rows. Leave KRR and KSVM out for this dataset."
        )


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
