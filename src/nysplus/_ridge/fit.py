"""Fit a kernel expansion to given landmarks: map, sum, solve, collapse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._ridge.feature_map import Approximation
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.solvers import solve_ridge
from nysplus._rows.blocks import RowBlocks
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel

# Rows on which float32 coefficients are tried.
TRIED_ROWS = 256


@dataclass(frozen=True)
class ExpansionFit:
    """What :func:`fit_expansion` found, and what it cost.

    Attributes
    ----------
    expansion : KernelExpansion
    alpha : float
        The ridge.
    n_kernel_evaluations : int
    solver : str
    score : float or None
        Score on rows that were left out (see :class:`~nysplus._ridge.problem.ChosenAlpha`).
    left_out : LeaveOneOut
        What leaving out rows makes of it.
    """

    expansion: KernelExpansion
    alpha: float
    n_kernel_evaluations: int
    solver: str
    score: float | None
    left_out: LeaveOneOut


def fit_expansion(
    blocks: RowBlocks,
    landmarks: Any,
    kernel: Kernel,
    approximation: Approximation,
    alphas: tuple[float, ...],
    rng: np.random.RandomState,
    stage: str = "ridge",
    with_score: bool = False,
) -> ExpansionFit:
    """Fit the ridge regression on the Nyström features of given landmarks.

    O(N n (d + k)) time and O(n² + block) memory in one pass over the rows, and a part of a
    second one where α is chosen by leave-one-out; what the pass computes, and in which
    precision, follows the spectrum of the landmarks' kernel matrix (:mod:`nysplus._ridge.solvers`).
    With `with_score` the score is found even where there is no ridge to choose.
    """
    feature_map = approximation.build(kernel, landmarks, rng)
    answer = solve_ridge(RidgeProblem(blocks, feature_map, alphas, rng, stage, with_score))
    A = feature_map.collapse(answer.left_out.W)
    expansion = in_float32(KernelExpansion(kernel, landmarks, A, answer.left_out.b), blocks)
    evaluations = feature_map.n_kernel_evaluations + answer.n_rows * feature_map.n_landmarks
    choice = answer.choice
    return ExpansionFit(
        expansion, choice.alpha, evaluations, answer.solver, choice.score, answer.left_out
    )


def in_float32(expansion: KernelExpansion, blocks: RowBlocks) -> KernelExpansion:
    """Return an expansion of float32 rows with float32 coefficients, if scores stay right.

    Tried on some rows: the root mean square of what changes may be 1e-4 of the targets' spread.
    """
    if blocks.dtype != np.float32:
        return expansion
    single = replace(
        expansion,
        dual_coef=expansion.dual_coef.astype(np.float32),
        intercept=expansion.intercept.astype(np.float32),
    )
    X = blocks.gather(np.unique(np.linspace(0, blocks.n_rows - 1, TRIED_ROWS).astype(np.intp))).X
    change = np.sqrt(((single(X) - expansion(X)) ** 2).mean(axis=0))
    spread = np.sqrt(blocks.target_spread().variance)
    return single if (change <= 1e-4 * spread).all() else expansion
