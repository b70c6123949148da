"""The stages of a fit: kernel and metric, size, landmarks, ridge, refinement, storage."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysplus._bytes.budget import Budget, Limit
from nysplus._bytes.center import center_of
from nysplus._bytes.quantise import quantise
from nysplus._fit.feature_range import check_range
from nysplus._fit.model import Columns, FittedModel
from nysplus._fit.plan import Plan, warn_of_memory
from nysplus._fit.size import choose_size, fitting_landmarks, sizes_within
from nysplus._fit.unpredicted import warn_of_unpredicted
from nysplus._holdout import PairedComparison, row_scores
from nysplus._learning.refine import Refined, refine
from nysplus._ridge.fit import ExpansionFit
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.blocks import Blocks, RowBlocks
from nysplus._rows.projected import composed, projected
from nysplus._rows.target_codes import TargetCode
from nysplus._tuning.metric import learn_metric, through
from nysplus._tuning.width import tune_kernel
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import Landmarks, LandmarkSelector, Problem, Uniform, select_landmarks


@dataclass(frozen=True)
class FitRules:
    """Numbers that steer the last stages of a fit.

    Attributes
    ----------
    scaling_rows : int
        Rows whose leave-one-out scores set the slope of probabilities: enough for one number.
    checked_rows : int
        Rows on which a quantised model is compared with the same model before.
    tolerated : float
        Standard errors by which the quantised model must not be worse.
    """

    scaling_rows: int = 1000
    checked_rows: int = 2000
    tolerated: float = 2.0


@dataclass(frozen=True)
class Resolved:
    """A fit whose kernel and metric are settled.

    Attributes
    ----------
    problem : Problem
        The rows as the kernel sees them, and the kernel with its width.
    selector : LandmarkSelector
    projection : ndarray or None
        The linear map between the given rows and those of `problem`.
    given : RowBlocks
        The rows before the map, minus the centre.
    center : ndarray or None
        Subtracted from all rows: the stages after this one do not see it.
    budget : Budget or None
        The bytes of everything but the centre.
    """

    problem: Problem
    selector: LandmarkSelector
    projection: Float | None
    given: RowBlocks
    center: Float | None = None
    budget: Budget | None = None


@dataclass(frozen=True)
class ModelSize:
    """How many landmarks a model has, and the bytes that it may take, if these are limited."""

    n: int
    limit: Limit | None = None


def fit_model(
    plan: Plan,
    blocks: RowBlocks,
    code: TargetCode,
    columns: Columns,
    rng: np.random.RandomState,
    rules: FitRules | None = None,
) -> FittedModel:
    """Run all stages of a fit.

    Parameters
    ----------
    plan : Plan
        Checked parameters.
    blocks : RowBlocks
    code : TargetCode
        Of the targets in `blocks`.
    columns : Columns
    rng : RandomState
    rules : FitRules, optional
    """
    rules = rules or FitRules()
    resolved = resolve_kernel(plan, blocks, rng)
    size = choose_model_size(plan, resolved, rng)
    landmarks = choose_landmarks(resolved, size, rng)
    fit = fit_ridge(resolved, landmarks, rng)
    # drawn before refinement, so that a model that stays unrefined is the one of refine=False
    rounding = rng if size.limit is None else np.random.RandomState(rng.randint(2**31 - 1))
    refined = refine_model(plan, resolved, size, fit, rng)
    stored = store_model(resolved, size, fit, refined, rules, rounding)
    rows = rows_in_memory(resolved, fit)
    if code.discrete and rows is not None:
        warn_of_unpredicted(stored.expansion, rows, code)
    return FittedModel(
        expansion=stored.expansion.with_center(resolved.center),
        code=code,
        columns=columns,
        scaling=stored.scaling or scaling_of(fit.left_out, code, rules),
        alpha=fit.alpha,
        solver=fit.solver,
        landmark_indices=None if stored.kept else landmarks.indices,
        refined=stored.kept,
        n_kernel_evaluations=landmarks.n_kernel_evaluations + fit.n_kernel_evaluations,
        n_passes=blocks.progress.passes,
    )


def rows_in_memory(resolved: Resolved, fit: ExpansionFit) -> Blocks | None:
    """Return rows on which the model can be checked without a pass over rows elsewhere.

    All rows, where they are in memory; else those that were drawn to choose the ridge, if there
    are any and the model sees them as they were given.
    """
    at_hand = fit.left_out.problem.rows_at_hand
    for rows in (resolved.given, at_hand if resolved.projection is None else None):
        if isinstance(rows, Blocks):
            return rows
    return None


def resolve_kernel(plan: Plan, blocks: RowBlocks, rng: np.random.RandomState) -> Resolved:
    """Settle the metric and the kernel's width."""
    warn_of_memory(plan, blocks.n_candidates)
    check_range(plan, blocks)
    center = _center(plan, blocks)
    given = projected(blocks, None, center)
    n, selector, projection = plan.n_landmarks, through(plan.selector, None, center), None
    budget = None if plan.budget is None else plan.budget.reserving(center)
    problem = Problem(given, plan.kernel, plan.approximation, plan.alphas)
    if budget is not None:  # the number of landmarks is not known yet, but about this
        n = sizes_within(budget, problem, Uniform(), None, rng)[-1].n
    if plan.metric is not None:
        found = learn_metric(problem, selector, n, plan.metric, rng)
        projection, kernel = found.projection, found.kernel
        selector = through(selector, projection)
    elif plan.kernel.is_tuned:
        kernel = tune_kernel(problem, selector, n, rng)
    else:  # gamma="scale" is defined by the rows as given
        kernel = plan.kernel.resolve(blocks, rng)
    problem = replace(problem, blocks=projected(given, projection), kernel=kernel)
    return Resolved(problem, selector, projection, given, center, budget)


def _center(plan: Plan, blocks: RowBlocks) -> Float | None:
    """Return the centre of the rows, where a model has numbers that offsets would spoil.

    Numbers under a budget are of small types, and the images of landmarks under a map do not tell
    where rows are. Landmarks that are rows, in the type of the rows, are as exact as these.
    """
    planned = plan.budget is not None or plan.metric is not None or plan.refinement is not None
    if not planned or not plan.kernel.of_differences:
        return None
    return center_of(blocks.feature_spread())


def choose_model_size(plan: Plan, resolved: Resolved, rng: np.random.RandomState) -> ModelSize:
    """Return the number of landmarks: `n_components`, or the best number within the budget."""
    if resolved.budget is None:
        return ModelSize(plan.n_landmarks)
    problem, selector, P = resolved.problem, resolved.selector, resolved.projection
    sizes = sizes_within(resolved.budget, problem, selector, P, rng)
    size = choose_size(problem, selector, sizes, resolved.given, P, rng)
    return ModelSize(size.n, Limit(resolved.budget, resolved.given.n_features, size.dtypes[0]))


def choose_landmarks(resolved: Resolved, size: ModelSize, rng: np.random.RandomState) -> Landmarks:
    """Run the selector."""
    problem, selector, P = resolved.problem, resolved.selector, resolved.projection
    if size.limit is None:
        return select_landmarks(selector, problem, size.n, rng)
    return fitting_landmarks(size.limit.budget, problem, selector, size.n, P, rng)


def fit_ridge(resolved: Resolved, landmarks: Landmarks, rng: np.random.RandomState) -> ExpansionFit:
    """Fit the coefficients of the landmarks; the result is a function of rows minus the centre."""
    fit = resolved.problem.fit(landmarks.points, rng)
    return replace(fit, expansion=replace(fit.expansion, projection=resolved.projection))


def refine_model(
    plan: Plan,
    resolved: Resolved,
    size: ModelSize,
    fit: ExpansionFit,
    rng: np.random.RandomState,
) -> Refined:
    """Learn landmarks, coefficients and map where the plan has it, and keep what is better."""
    if plan.refinement is None:
        return Refined(fit.expansion)
    start = replace(fit.expansion, projection=None)
    found = refine(resolved.problem, resolved.selector, start, plan.refinement, rng, size.limit)
    P = composed(resolved.projection, found.expansion.projection)
    return replace(found, expansion=replace(found.expansion, projection=P))


def store_model(
    resolved: Resolved,
    size: ModelSize,
    fit: ExpansionFit,
    refined: Refined,
    rules: FitRules,
    rng: np.random.RandomState,
) -> Refined:
    """Quantise the model under a budget; return the unrefined one if that spoils the refined one.

    A learned map is rounded together with the metric's, but was compared before that.
    """
    if size.limit is None:
        return refined
    dtype = refined.dtype or size.limit.dtype
    small = quantise(refined.expansion, dtype, resolved.given, rng)
    if refined.kept and _is_worse(small, refined.expansion, resolved.given, rules):
        refined = Refined(fit.expansion)
        small = quantise(fit.expansion, size.limit.dtype, resolved.given, rng)
    return replace(refined, expansion=small)


def _is_worse(
    model: KernelExpansion, other: KernelExpansion, blocks: RowBlocks, rules: FitRules
) -> bool:
    """Return whether a model is clearly worse than another on some of the rows."""
    rng = np.random.RandomState(0)
    rows = blocks.gather(blocks.sample(min(blocks.n_candidates, rules.checked_rows), rng))
    scores, others = row_scores(model, rows), row_scores(other, rows)
    return PairedComparison.of(scores, others, rows.weight, rules.tolerated).better


def scaling_of(left_out: LeaveOneOut, code: TargetCode, rules: FitRules) -> Scaling | None:
    """Return the slope of probabilities from leave-one-out scores; None for values."""
    if not code.discrete:
        return None
    some = left_out.scores(rules.scaling_rows)
    return fit_scaling(some.scores, code.as_targets(some.Y).labels, some.weight)
