"""Scores of rows that a model was not fitted to: probabilities and prediction sets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysplus._fit.report import HeldOutScore
from nysplus._learning.refine import Refined
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Blocks
from nysplus._rows.target_codes import TargetCode
from nysplus.conformal import Calibration, calibrated
from nysplus.landmarks import Landmarks, LandmarkSelector


@dataclass(frozen=True)
class CalibrationRules:
    """Numbers that steer the calibration of a fit.

    Attributes
    ----------
    scaling_rows : int
        Rows whose leave-one-out scores set the slope of probabilities: enough for one number.
    calibration_rows, calibration_share : int and float
        Rows whose leave-one-out scores set the bounds of prediction sets and intervals, at most,
        if the selector reports no members: the standard error of a coverage of 90 % is then .7
        points. With fewer than 20,000 rows a tenth of them, but at least `scaling_rows`, so that
        small fits take no longer.
    counted_leverage : float
        How often the leverage of a row is counted where its target had a part in the choice of the
        landmarks, and this part is not known: without the row they would be elsewhere. Of 1, 1.5
        and 2, 2 has the coverage nearest to the confidence on most datasets with 200 landmarks.
    """

    scaling_rows: int = 1000
    calibration_rows: int = 2000
    calibration_share: float = 0.1
    counted_leverage: float = 2.0

    def scored_rows(self, n_rows: int) -> int:
        """Return the number of rows to score, of a number of rows."""
        some = min(self.calibration_rows, int(self.calibration_share * n_rows))
        return max(self.scaling_rows, some)


DEFAULT_RULES = CalibrationRules()


@dataclass(frozen=True)
class LeftOut:
    """Everything that follows from scores of rows that a model was not fitted to.

    Attributes
    ----------
    scaling : Scaling or None
        From scores to probabilities; None for values.
    accuracy : HeldOutScore or None
        Of leave-one-out scores; None for values, and for scores of held-out rows.
    calibration : Calibration or None
        None for multilabel targets.
    """

    scaling: Scaling | None
    accuracy: HeldOutScore | None
    calibration: Calibration | None


def calibrate_refined(refined: Refined, code: TargetCode) -> LeftOut:
    """Return the calibration of a refined model, from the held-out rows of its search."""
    assert refined.scores is not None
    found = calibrated(refined.scores.scored, code, refined.scaling, "held-out rows")
    return LeftOut(refined.scaling, None, found)


def calibrate_ridge(
    left_out: LeaveOneOut,
    code: TargetCode,
    selector: LandmarkSelector,
    landmarks: Landmarks,
    held_out: ScoredRows | None,
    rules: CalibrationRules = DEFAULT_RULES,
) -> LeftOut:
    """Return the calibration of a ridge solution.

    Sets and intervals come from leave-one-out scores. Where a model of the same size was scored on
    held-out rows before, they come from these: its landmarks did not depend on the held-out rows.
    Values of rows outside memory may have none, if their scores would take a pass of their own.

    Parameters
    ----------
    left_out : LeaveOneOut
    code : TargetCode
    selector : LandmarkSelector
        Which has chosen the landmarks.
    landmarks : Landmarks
    held_out : ScoredRows or None
        Outputs of a model of the same size that was fitted without these rows.
    rules : CalibrationRules, optional
    """
    drawn, scaling, accuracy = None, None, None
    if code.discrete:
        drawn = left_out.scores(rules.scaling_rows)
        scaling, accuracy = _scaling(drawn, code)
    if code.kind == "labels":
        return LeftOut(scaling, accuracy, None)
    if held_out is not None:
        found = calibrated(held_out, code, scaling, "held-out rows")
        return LeftOut(scaling, accuracy, found)
    scored = _left_out_rows(left_out, selector, landmarks, drawn, rules)
    bounds = None if scored is None else calibrated(scored, code, scaling, "leave-one-out")
    return LeftOut(scaling, accuracy, bounds)


def scaling_of(
    left_out: LeaveOneOut, code: TargetCode, rules: CalibrationRules = DEFAULT_RULES
) -> Scaling | None:
    """Return the slope of probabilities from leave-one-out scores; None for values."""
    return _scaling(left_out.scores(rules.scaling_rows), code)[0] if code.discrete else None


def _left_out_rows(
    left_out: LeaveOneOut,
    selector: LandmarkSelector,
    landmarks: Landmarks,
    drawn: ScoredRows | None,
    rules: CalibrationRules,
) -> ScoredRows | None:
    """Return leave-one-out scores for the bounds; None where they would take another pass.

    `drawn` are the scores that set the slope of probabilities, if there are any.
    """
    members = landmarks.members
    if members is not None and len(members.rows):
        return left_out.scores_of_members(members.rows, members.landmark, members.share)
    scored, rows = drawn, left_out.problem.rows_at_hand
    if isinstance(rows, Blocks):
        # a generator of its own: models do not depend on the number of rows that are scored
        most = rules.scored_rows(left_out.problem.blocks.n_rows)
        scored = left_out.scores_of(np.sort(rows.sample(most, np.random.RandomState(0))))
    if scored is None or selector.targets == "ignored":
        return scored
    return recounted(scored, rules.counted_leverage)


def _scaling(some: ScoredRows, code: TargetCode) -> tuple[Scaling, HeldOutScore]:
    """Return the slope of probabilities, and the accuracy of the same leave-one-out scores."""
    targets, weight = code.as_targets(some.Y), some.weight
    accuracy = float(weight @ targets.row_scores(some.scores) / weight.sum())
    scaling = fit_scaling(some.scores, targets.labels, weight)
    return scaling, HeldOutScore("leave-one-out accuracy", accuracy, len(weight))


def recounted(scored: ScoredRows, times: float) -> ScoredRows:
    """Return leave-one-out scores with residuals ``r / (1 − h)^times`` in place of r / (1 − h)."""
    # leave-one-out scores of rows that are interpolated are not defined
    left = np.maximum(1.0 - scored.leverage, 1e-10)
    errors = (scored.scores - scored.Y) / left[:, None] ** (times - 1.0)
    return replace(scored, scores=scored.Y + errors)
