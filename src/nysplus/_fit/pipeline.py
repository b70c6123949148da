"""The stages of a fit: code, kernel and metric, size, landmarks, ridge, refinement, storage."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from nysplus._bytes.budget import Budget, NoRoomError, Size
from nysplus._bytes.center import center_of
from nysplus._bytes.quantise import quantise
from nysplus._fit.calibration import DEFAULT_RULES as CALIBRATION_RULES
from nysplus._fit.calibration import (
    CalibrationRules,
    LeftOut,
    calibrate_refined,
    calibrate_ridge,
)
from nysplus._fit.columns import with_importance
from nysplus._fit.feature_range import check_range
from nysplus._fit.feature_scales import warn_of_scales
from nysplus._fit.growth import grown_size
from nysplus._fit.kernel import choose_code
from nysplus._fit.linear import LinearModel, LinearRules, linear_candidate, only_linear
from nysplus._fit.model import Columns, FittedModel
from nysplus._fit.novelty import novelty_of_fit
from nysplus._fit.plan import Plan, warn_of_memory
from nysplus._fit.reasons import Outcome, fit_report
from nysplus._fit.resolved import Resolved
from nysplus._fit.size import (
    ChosenSize,
    HeldOutScores,
    choose_size,
    fitting_landmarks,
    sizes_within,
)
from nysplus._fit.table import Table, table_of
from nysplus._fit.unpredicted import warn_of_unpredicted
from nysplus._learning.augmentation import Augmentation
from nysplus._learning.refine import Refined, refine
from nysplus._ridge.fit import ExpansionFit
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Blocks, RowBlocks
from nysplus._rows.encoded import Encoding, encoded
from nysplus._rows.projected import projected
from nysplus._rows.target_codes import TargetCode
from nysplus._tuning.metric import learn_metric, through
from nysplus._tuning.width import tune_kernel
from nysplus._typing import Float
from nysplus.conformal import calibrated
from nysplus.encoding.code import Code
from nysplus.expansion import stored_bytes
from nysplus.landmarks import Landmarks, Problem, Uniform, select_landmarks


@dataclass(frozen=True)
class FitRules:
    """Numbers that steer the last stages of a fit.

    Attributes
    ----------
    max_unrefined : int
        Landmarks at most of the model that refinement under a budget starts from: refined models
        of fewer are better than unrefined models of more.
    calibration : CalibrationRules
    """

    max_unrefined: int = 400
    calibration: CalibrationRules = CALIBRATION_RULES


@dataclass(frozen=True)
class ModelSize:
    """How many landmarks a model has, and the bytes that it may take, if these are limited.

    Attributes
    ----------
    n : int
    budget : Budget or None
    dtype : str or None
        Storage type of an unrefined model under the budget.
    held_out : HeldOutScores or None
        Of a model of this size, where it was compared with others.
    outputs : ScoredRows or None
        Outputs of that model for the held-out rows.
    """

    n: int
    budget: Budget | None = None
    dtype: str | None = None
    held_out: HeldOutScores | None = None
    outputs: ScoredRows | None = None


def fit_model(
    plan: Plan,
    blocks: RowBlocks,
    code: TargetCode,
    columns: Columns,
    rng: np.random.RandomState,
    rules: FitRules | None = None,
    rejected: Refined | None = None,
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
    rejected : Refined, optional
        The result of a refinement that was not kept, for the report.
    """
    rules, first_rng = rules or FitRules(), deepcopy(rng)
    record = blocks.progress.record
    with record.timed("kernel"):
        table = table_of(plan, columns.schema, blocks)
        table = None if table is None else with_importance(plan, table)
    try:
        with record.timed("kernel"):
            resolved = resolve_kernel(plan, blocks, rng, table)
        with record.timed("size"):
            size = choose_model_size(plan, resolved, rules, rng)
    except NoRoomError:
        if table is None or plan.budget is None:
            raise
        with record.timed("linear"):
            only = only_linear(table, plan.budget, rng)
        return linear_model(plan, only, table, code, columns)
    with record.timed("landmarks"):
        landmarks = choose_landmarks(resolved, size, rng)
    with record.timed("ridge"):
        fit = fit_ridge(resolved, landmarks, rng)
    rounding = rng if size.budget is None else np.random.RandomState(rng.randint(2**31 - 1))
    with record.timed("refinement"):
        refined = refine_model(plan, resolved, size, fit, rng)
    limited = plan.refinement is not None and plan.refinement.max_seconds is not None
    if plan.refinement is not None and plan.budget is not None and not (refined.kept or limited):
        # the small model that refinement started from is not the best one of the budget
        record.keep("refinement")
        plan = replace(plan, refinement=None)
        return fit_model(plan, blocks, code, columns, first_rng, rules, refined)
    evaluations = landmarks.n_kernel_evaluations + fit.n_kernel_evaluations
    with record.timed("linear"):
        linear = better_linear(plan, resolved, size, refined, rng)
    if linear is not None:
        assert table is not None
        return linear_model(plan, linear, table, code, columns, evaluations)
    with record.timed("storage"):
        stored, resolved = store_model(resolved, size, refined, rounding)
    indices = None if stored.kept else landmarks.indices
    with record.timed("probabilities"):
        rows = rows_in_memory(resolved, fit)
        if code.discrete and rows is not None:
            warn_of_unpredicted(stored.expansion, rows, code)
        left_out = left_out_scores(resolved, size, landmarks, fit, stored, code, rules)
        familiar = novelty_of_fit(resolved, landmarks, stored, rows, blocks, columns)
    model = FittedModel(
        expansion=replace(stored.expansion.with_center(resolved.center), encoder=resolved.code),
        code=code,
        columns=columns,
        scaling=left_out.scaling,
        calibration=left_out.calibration,
        familiar=familiar,
        alpha=fit.alpha,
        solver=fit.solver,
        landmark_indices=indices,
        refined=stored.kept,
        n_kernel_evaluations=evaluations,
        n_passes=blocks.progress.passes,
    )
    outcome = Outcome(
        None if plan.refinement is None else refined, rejected, size.held_out, left_out.accuracy
    )
    report = fit_report(model, plan, record, blocks.n_candidates, outcome)
    return replace(model, report=report)


def better_linear(
    plan: Plan,
    resolved: Resolved,
    size: ModelSize,
    refined: Refined,
    rng: np.random.RandomState,
) -> LinearModel | None:
    """Return a linear function of a table that replaces the model of the same budget, if any."""
    table = resolved.table
    if table is None or plan.budget is None or not plan.linear:
        return None
    rival, scores = size.held_out, refined.scores
    if scores is not None:
        rival = HeldOutScores(scores.rows, scores.row_scores, scores.weight)
    assert rival is not None
    searched = plan.refinement is None or plan.refinement.search
    rules = LinearRules() if searched else LinearRules(max_codes=1)
    return linear_candidate(table, plan.budget, rng, rival, rules)


def linear_model(
    plan: Plan,
    linear: LinearModel,
    table: Table,
    code: TargetCode,
    columns: Columns,
    n_kernel_evaluations: int = 0,
) -> FittedModel:
    """Return the record of a linear function of a table's code."""
    rows = encoded(table.rows, Encoding(linear.code))
    if code.discrete and isinstance(rows, Blocks):
        warn_of_unpredicted(linear.expansion, rows, code)
    model = FittedModel(
        expansion=replace(linear.expansion, encoder=linear.code),
        code=code,
        columns=columns,
        scaling=linear.scaling,
        calibration=calibrated(linear.held_out, code, linear.scaling, "held-out rows"),
        alpha=linear.alpha,
        solver="linear",
        refined=False,
        n_kernel_evaluations=n_kernel_evaluations,
        n_passes=table.rows.progress.passes,
    )
    report = fit_report(model, plan, table.rows.progress.record, table.rows.n_candidates)
    return replace(model, report=report)


def rows_in_memory(resolved: Resolved, fit: ExpansionFit) -> Blocks | None:
    """Return rows on which the model can be checked without a pass over rows elsewhere.

    All rows, where they are in memory; else those that were drawn to choose the ridge, if there
    are any and the model sees them as they were given.
    """
    at_hand = fit.left_out.problem.rows_at_hand if resolved.sees_given_rows else None
    for rows in (resolved.given, at_hand):
        if isinstance(rows, Blocks):
            return rows
    return None


def resolve_kernel(
    plan: Plan, blocks: RowBlocks, rng: np.random.RandomState, table: Table | None = None
) -> Resolved:
    """Settle the code of a table or of images, the metric and the kernel's width."""
    warn_of_memory(plan, blocks.n_candidates)
    code: Code | None = plan.image
    budget, center, chosen = plan.budget, None, None
    as_given = blocks
    if plan.image is not None:
        blocks = encoded(blocks, Encoding(plan.image))
    if table is not None:
        chosen = choose_code(plan, table)
        code, blocks = chosen.encoding.code, encoded(blocks, chosen.encoding)
        as_given = blocks
        budget = None if budget is None else budget.reserving(code.n_bytes)
    else:
        check_range(plan, blocks)
        warn_of_scales(plan, blocks)
        center = _center(plan, blocks)
        budget = None if budget is None else budget.reserving(stored_bytes(center))
    given = projected(blocks, None, center)
    n, selector, projection = plan.n_landmarks, through(plan.selector, None, center), None
    problem = Problem(given, plan.kernel, plan.approximation, plan.alphas)
    if budget is not None:  # the number of landmarks is not known yet, but about this
        n = sizes_within(budget, problem, Uniform(), None, rng)[-1].n
    if plan.metric is not None:
        plan.metric.check(plan.kernel, given.n_features)
        found = learn_metric(problem, selector, n, plan.metric, rng)
        projection, kernel = found.projection, found.kernel
        selector = through(selector, projection)
    elif chosen is not None and chosen.kernel is not None:
        kernel = chosen.kernel
    elif plan.kernel.is_tuned:
        kernel = tune_kernel(problem, selector, n, rng, plan.other_kernels)
    else:  # gamma="scale" is defined by the rows as given
        kernel = plan.kernel.resolve(as_given, rng)
    problem = replace(problem, blocks=projected(given, projection), kernel=kernel)
    images = None if plan.image is None else as_given
    return Resolved(problem, selector, projection, given, center, budget, code, table, images)


def _center(plan: Plan, blocks: RowBlocks) -> Float | None:
    """Return the centre of the rows, where a model has numbers that offsets would spoil.

    Numbers under a budget are of small types, and the images of landmarks under a map do not tell
    where rows are. Landmarks that are rows, in the type of the rows, are as exact as these.
    """
    planned = plan.budget is not None or plan.metric is not None or plan.refinement is not None
    if not planned or not plan.kernel.of_differences:
        return None
    return center_of(blocks.feature_spread())


def choose_model_size(
    plan: Plan, resolved: Resolved, rules: FitRules, rng: np.random.RandomState
) -> ModelSize:
    """Return the number of landmarks: `n_components`, or a number chosen by the rows."""
    problem, selector, P = resolved.problem, resolved.selector, resolved.projection
    if resolved.budget is None and plan.growth is not None:
        return ModelSize(grown_size(problem, selector, plan.growth, rng))
    if resolved.budget is None:
        return ModelSize(plan.n_landmarks)
    sizes = sizes_within(resolved.budget, problem, selector, P, rng)
    if plan.refinement is not None:
        # to be compared with on held-out rows; the full one is fitted only if it is better
        n, dtypes = min(sizes[-1].n, rules.max_unrefined), sizes[-1].dtypes
        return ModelSize(n, resolved.budget, dtypes[0])
    found = _chosen_size(resolved, sizes, rng)
    scores = found.held_out, found.outputs
    return ModelSize(found.size.n, resolved.budget, found.size.dtypes[0], *scores)


def _chosen_size(resolved: Resolved, sizes: list[Size], rng: np.random.RandomState) -> ChosenSize:
    """Return the best size; for a table, with the scores that linear functions have to match."""
    problem, selector, P = resolved.problem, resolved.selector, resolved.projection
    always = resolved.table is not None
    return choose_size(problem, selector, sizes, resolved.given, P, rng, always)


def choose_landmarks(resolved: Resolved, size: ModelSize, rng: np.random.RandomState) -> Landmarks:
    """Run the selector."""
    problem, selector, P = resolved.problem, resolved.selector, resolved.projection
    if size.budget is None:
        return select_landmarks(selector, problem, size.n, rng)
    return fitting_landmarks(size.budget, problem, selector, size.n, P, rng)


def fit_ridge(resolved: Resolved, landmarks: Landmarks, rng: np.random.RandomState) -> ExpansionFit:
    """Fit the coefficients of the landmarks; the result is a function of the rows `given`."""
    fit = resolved.problem.fit(landmarks.points, rng, unused=landmarks.unused)
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
    budget, tables = size.budget, None
    if resolved.table is not None:
        tables = resolved.table.views
        budget = plan.budget  # every candidate has a code of its own
    return refine(
        resolved.problem,
        resolved.given,
        resolved.selector,
        fit.expansion,
        plan.refinement,
        rng,
        budget,
        tables=tables,
        may_grow=plan.growth is not None,
        augmentation=_augmentation(plan, resolved),
        images=plan.image is not None,
    )


def _augmentation(plan: Plan, resolved: Resolved) -> Augmentation | None:
    """Return how images are changed while landmarks are learned; None for rows as they are."""
    if plan.augment is None:
        return None
    assert plan.image is not None
    assert resolved.images is not None
    return Augmentation(resolved.images, plan.augment, plan.image, resolved.center)


def store_model(
    resolved: Resolved, size: ModelSize, refined: Refined, rng: np.random.RandomState
) -> tuple[Refined, Resolved]:
    """Quantise the model under a budget.

    A model that was learned under it is stored as it was trained. The second result is the fit with
    the rows that the model sees: a table may have got another code.
    """
    resolved = resolved.with_code(refined.expansion.encoder)
    model = replace(refined.expansion, encoder=None)
    if size.dtype is not None and model.packed is None:
        model = quantise(model, size.dtype, resolved.given, rng)
    return replace(refined, expansion=model), resolved


def left_out_scores(
    resolved: Resolved,
    size: ModelSize,
    landmarks: Landmarks,
    fit: ExpansionFit,
    stored: Refined,
    code: TargetCode,
    rules: FitRules,
) -> LeftOut:
    """Return probabilities and prediction sets, from rows that were left out or held out."""
    if stored.kept:
        return calibrate_refined(stored, code)
    return calibrate_ridge(
        fit.left_out, code, resolved.selector, landmarks, size.outputs, rules.calibration
    )
