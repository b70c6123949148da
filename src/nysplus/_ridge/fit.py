"""Fit a kernel expansion to given landmarks: map, sum, solve, collapse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._ridge.feature_map import Approximation
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.problem import RidgeProblem
from nysplus._ridge.rules import DEFAULT_RULES, SolverRules
from nysplus._ridge.solvers import solve_ridge
from nysplus._rows.blocks import Block, RowBlocks
from nysplus.expansion import KernelExpansion
from nysplus.kernels import Kernel

# Rows on which float32 coefficients are compared with float64 ones, and the largest root mean
# square of the difference, in standard deviations of the targets.
COMPARED_ROWS, MAX_CHANGE = 256, 1e-4


@dataclass(frozen=True)
class ExpansionFit:
    """The result of :func:`fit_expansion`.

    Attributes
    ----------
    expansion : KernelExpansion
        The fitted function.
    alpha : float
        The chosen ridge.
    n_kernel_evaluations : int
        Number of kernel values that the fit computed.
    solver : str
        Name of the solver.
    score : float or None
        Score on rows that were left out (see :class:`~nysplus._ridge.problem.ChosenAlpha`).
    left_out : LeaveOneOut
        Gives the leave-one-out scores of rows.
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
    *,
    rules: SolverRules = DEFAULT_RULES,
    unused: Block | None = None,
) -> ExpansionFit:
    """Fit the ridge regression on the Nyström features of given landmarks.

    O(N n (d + k)) time and O(n² + block) memory in one pass over the rows, and part of a second
    pass where α is chosen by leave-one-out. The spectrum of the landmarks' kernel matrix decides
    on the solver and its precision (:mod:`nysplus._ridge.solvers`).

    Parameters
    ----------
    blocks : RowBlocks
    landmarks : ndarray or CSR matrix of shape (n, d)
    kernel : Kernel
        With all parameters as numbers.
    approximation : Approximation
    alphas : tuple of float
        Ridges to choose from.
    rng : RandomState
    stage : str
        Name of the passes in progress reports.
    with_score : bool
        Whether to score the model on left-out rows even if there is no α to choose.
    rules : SolverRules
    unused : Block, optional
        Rows whose targets have not moved the landmarks, if the others' targets have.
    """
    feature_map = approximation.build(kernel, landmarks, rng)
    problem = RidgeProblem(blocks, feature_map, alphas, rng, stage, with_score, rules, unused)
    answer = solve_ridge(problem)
    A = feature_map.collapse(answer.left_out.W)
    expansion = in_float32(KernelExpansion(kernel, landmarks, A, answer.left_out.b), blocks)
    evaluations = feature_map.n_kernel_evaluations + answer.n_rows * feature_map.n_landmarks
    choice = answer.choice
    return ExpansionFit(
        expansion, choice.alpha, evaluations, answer.solver, choice.score, answer.left_out
    )


def in_float32(expansion: KernelExpansion, blocks: RowBlocks) -> KernelExpansion:
    """Return an expansion of float32 rows with float32 coefficients, if its scores stay the same.

    On 256 rows the root mean square of the change may be 1e-4 of the targets' standard deviation.
    """
    if blocks.dtype != np.float32:
        return expansion
    single = replace(
        expansion,
        dual_coef=expansion.dual_coef.astype(np.float32),
        intercept=expansion.intercept.astype(np.float32),
    )
    compared = np.unique(np.linspace(0, blocks.n_rows - 1, COMPARED_ROWS).astype(np.intp))
    X = blocks.gather(compared).X
    change = np.sqrt(((single(X) - expansion(X)) ** 2).mean(axis=0))
    deviation = np.sqrt(blocks.target_spread().variance)
    return single if (change <= MAX_CHANGE * deviation).all() else expansion
