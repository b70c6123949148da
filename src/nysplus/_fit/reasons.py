"""Say why a fit has chosen its kernel, its size and its training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysplus._bytes.budget import most_landmarks
from nysplus._fit.model import FittedModel
from nysplus._fit.plan import Plan
from nysplus._fit.report import (
    Choice,
    FitReport,
    HeldOutScore,
    model_choices,
    model_parts,
    score_text,
    with_reasons,
)
from nysplus._fit.size import HeldOutScores
from nysplus._learning.refine import Refined
from nysplus._runtime.record import ACCURACY, FitRecord, Trial
from nysplus.encoding.code import TableCode
from nysplus.landmarks import GivenLandmarks

# Columns whose names have room in a line.
NAMED_COLUMNS = 5


@dataclass(frozen=True)
class Outcome:
    """The results of the stages of a fit that its report needs.

    Attributes
    ----------
    refined : Refined or None
        The result of refinement; None without one, or if another model was fitted afterwards.
    rejected : Refined or None
        The result of refinement if another model was fitted afterwards.
    size_scores : HeldOutScores or None
        Of the chosen size, where sizes were compared.
    left_out : HeldOutScore or None
        Leave-one-out score of the model, where it was computed.
    """

    refined: Refined | None = None
    rejected: Refined | None = None
    size_scores: HeldOutScores | None = None
    left_out: HeldOutScore | None = None


def fit_report(
    model: FittedModel,
    plan: Plan,
    record: FitRecord,
    n_rows: int,
    outcome: Outcome | None = None,
) -> FitReport:
    """Return the report of a fit.

    Parameters
    ----------
    model : FittedModel
    plan : Plan
    record : FitRecord
    n_rows : int
        Rows of a positive weight.
    outcome : Outcome, optional
    """
    outcome = outcome or Outcome()
    trials, expansion, refined = tuple(record.trials), model.expansion, outcome.refined
    choices = model_choices(expansion)
    if model.solver != "linear":
        reasons = {
            "kernel": _kernel_reason(plan, trials, refined),
            "landmarks": _landmark_reason(plan, trials, refined),
            "map": _map_reason(plan, refined),
            "storage": _storage_reason(plan, refined),
        }
        choices = with_reasons(choices, reasons) + _code_choices(trials, refined)
    choices += _column_choices(model, plan)
    if model.alpha is not None and not _kept(refined):
        choices.append(_ridge_choice(model, plan))
    if model.solver != "linear":
        choices += _refinement_choices(trials, refined or outcome.rejected)
    if plan.budget is not None:
        choices.append(_unused(model, plan, trials, n_rows, refined))
    return FitReport(
        tuple(choices),
        trials,
        model_parts(expansion),
        int(expansion.landmarks.shape[0]),
        None if plan.budget is None else plan.budget.n_bytes,
        _held_out(model, trials, outcome) or outcome.left_out,
        dict(record.seconds),
    )


def _kept(refined: Refined | None) -> bool:
    return refined is not None and refined.kept


def _chosen(trials: tuple[Trial, ...], *stages: str) -> Trial | None:
    """Return the latest chosen trial of some stages."""
    found = [trial for trial in trials if trial.stage in stages and trial.chosen]
    return found[-1] if found else None


def _of_stage(trials: tuple[Trial, ...], stage: str) -> list[Trial]:
    return [trial for trial in trials if trial.stage == stage]


def _held_out(
    model: FittedModel,
    trials: tuple[Trial, ...],
    outcome: Outcome,
) -> HeldOutScore | None:
    discrete, refined, size_scores = model.code.discrete, outcome.refined, outcome.size_scores
    found = None
    if model.solver == "linear":
        found = _chosen(trials, "linear")
    elif refined is not None and refined.comparison is not None:
        compared = refined.comparison
        mean = compared.after if refined.kept else compared.before
        found = Trial.of("refinement", "", mean, discrete, compared.n_rows)
    elif size_scores is not None:
        found = Trial.of("size", "", size_scores.mean, discrete, len(size_scores.rows))
    else:
        found = _chosen(trials, "size")
    return None if found is None else HeldOutScore(found.metric, found.score, found.n_rows)


def _kernel_reason(plan: Plan, trials: tuple[Trial, ...], refined: Refined | None) -> str:
    if _kept(refined):
        return "the learned map includes the width"
    if plan.metric is not None:
        return "best width behind the learned metric, by leave-one-out"
    tried, codes = _of_stage(trials, "kernel"), _of_stage(trials, "code")
    if tried or (plan.automatic and codes):
        number = f"best of {len(tried)} by" if tried else "with the code, by"
        classes = ACCURACY in (tried or codes)[0].metric
        return f"{number} leave-one-out {'accuracy and ' if classes else ''}squared error"
    gamma = plan.kernel.get_params(deep=False).get("gamma")
    return f"gamma={gamma!r}" if isinstance(gamma, str) else "as given"


def _landmark_reason(plan: Plan, trials: tuple[Trial, ...], refined: Refined | None) -> str:
    if plan.budget is not None:
        if _kept(refined):
            assert refined is not None
            return refined.reason or "within the budget, with the map"
        tried = _of_stage(trials, "size")
        return f"best of {len(tried)} models within the budget" if tried else "within the budget"
    if isinstance(plan.selector, GivenLandmarks):
        return "as given"
    if plan.growth is None:
        return "n_components"
    if refined is not None and refined.kept and refined.reason:
        return refined.reason
    chosen, tried = _chosen(trials, "size"), _of_stage(trials, "size")
    if chosen is None:
        return "the only number for so few rows"
    if chosen is tried[-1]:
        return "the largest number that is tried for these rows"
    return "more are no better on held-out rows"


def _map_reason(plan: Plan, refined: Refined | None) -> str:
    if not _kept(refined):
        return f"metric={plan.metric.kind!r}" if plan.metric is not None else ""
    assert plan.refinement is not None
    if plan.refinement.rank != "auto":
        return f"rank={plan.refinement.rank}"
    return "as many as features, at most 32" if plan.budget is None else "follows from the bytes"


def _storage_reason(plan: Plan, refined: Refined | None) -> str:
    if plan.budget is None:
        return "the type of the computation"
    return "trained in these bits" if _kept(refined) else "chosen with the number of landmarks"


def _code_choices(trials: tuple[Trial, ...], refined: Refined | None) -> list[Choice]:
    """Return the code of an unrefined table; that of a refined one is part of its training."""
    chosen = _chosen(trials, "code")
    if chosen is None or _kept(refined):
        return []
    reason = f"best of {len(_of_stage(trials, 'code'))} by leave-one-out"
    return [Choice("code", chosen.model.partition(", ")[0], reason)]


def _column_choices(model: FittedModel, plan: Plan) -> list[Choice]:
    """Return the columns of a table that are used, where a budget leaves others out."""
    code, schema = model.expansion.encoder, model.columns.schema
    if plan.budget is None or not isinstance(code, TableCode) or schema is None:
        return []
    names = [schema.columns[i].name for i in np.unique(code.groups)]
    if len(names) == len(schema.columns):
        return []
    more = ", …" if len(names) > NAMED_COLUMNS else ""
    named = ", ".join(names[:NAMED_COLUMNS]) + more
    reason = f"{named}; the others matter least for their bytes"
    return [Choice("columns", f"{len(names)} of {len(schema.columns)}", reason)]


def _ridge_choice(model: FittedModel, plan: Plan) -> Choice:
    reason = "as given" if len(plan.alphas) == 1 else "by leave-one-out"
    if len(plan.alphas) > 1 and not model.code.discrete:
        reason = "by generalized cross-validation"
    if model.solver == "linear":
        reason = "smallest loss on held-out rows"
    return Choice("ridge", f"alpha={model.alpha:.4g}", reason)


def _refinement_choices(trials: tuple[Trial, ...], refined: Refined | None) -> list[Choice]:
    if refined is None:
        return []
    if refined.comparison is None:
        return [Choice("refinement", "not tried", refined.reason)]
    before, compared = _of_stage(trials, "refinement"), refined.comparison
    metric = before[-1].metric
    after, unrefined = (
        score_text(metric, Trial.of("", "", mean, metric == ACCURACY, 0).score)
        for mean in (compared.after, compared.before)
    )
    reason = (
        f"{metric} {after} learned, {unrefined} unrefined: a difference of "
        f"{compared.errors:+.1f} standard errors"
    )
    reason += f", {compared.needed:g} are needed" if compared.needed > 0 else ""
    choices = [Choice("refinement", "kept" if refined.kept else "not kept", reason)]
    chosen = _chosen(trials, "refinement")
    if refined.kept and chosen is not None:
        n = len({trial.model for trial in before}) - 1
        why = "the only candidate" if n == 1 else f"one of {n} candidates"
        choices.append(Choice("training", chosen.model, why))
    return choices


def _unused(
    model: FittedModel,
    plan: Plan,
    trials: tuple[Trial, ...],
    n_rows: int,
    refined: Refined | None,
) -> Choice:
    """Return how many bytes of the budget are not used, and why."""
    assert plan.budget is not None
    expansion = model.expansion
    left, n = plan.budget.n_bytes - expansion.n_bytes, int(expansion.landmarks.shape[0])
    sizes = {part.name: part.n_bytes for part in model_parts(expansion)}
    each = (sizes.get("landmarks", 0) + sizes.get("coefficients", 0)) / max(n, 1)
    larger = [trial.n_bytes or 0 for trial in _of_stage(trials, "size")]
    if n == 0:
        reason = "a linear function needs no more"
    elif _kept(refined) and refined is not None and refined.reason:
        reason = refined.reason
    elif left < each:
        reason = "less than another landmark takes"
    elif n >= most_landmarks(n_rows):
        reason = f"{n:,} landmarks are the most for {n_rows:,} rows"
    elif not _kept(refined) and larger and max(larger) > expansion.n_bytes:
        reason = "larger models are no better on held-out rows"
    elif _kept(refined) and plan.encoder is not None:
        reason = f"this style of training has at most {n:,} landmarks"
    else:
        reason = "more bits or landmarks are not expected to help"
    return Choice("unused", f"{left:,} of {plan.budget.n_bytes:,} bytes", reason)
