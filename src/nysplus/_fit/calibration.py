"""Scores of rows that a model was not fitted to: probabilities, prediction sets and novelty."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysplus._fit.report import HeldOutScore
from nysplus._learning.refine import Refined
from nysplus._ridge.leave_one_out import LeaveOneOut
from nysplus._ridge.probability import Scaling, fit_scaling
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.target_codes import TargetCode
from nysplus._typing import Float
from nysplus.conformal import Calibration, Novelty, calibrated
from nysplus.expansion import KernelExpansion
from nysplus.landmarks import Landmarks, LandmarkSelector


@dataclass(frozen=True)
class CalibrationRules:
    """Numbers that steer the calibration of a fit.

    Attributes
    ----------
    scaling_rows : int
        Rows whose leave-one-out scores set the slope of probabilities: enough for one number.
    calibration_rows, calibration_share : int and float
        Rows whose leave-one-out scores set the bounds of prediction sets and intervals, at most:
        the standard error of a coverage of 90 % is then .7 points. With fewer than 20,000 rows a
        tenth of them, but at least `scaling_rows`, so that small fits take no longer.
    counted_leverage : float
        How often the leverage of a row is counted where its target had a part in the choice of the
        landmarks: without the row they would be elsewhere. Of 1, 1.5 and 2, 2 has the coverage
        nearest to the confidence on most datasets with 200 landmarks.
    novelty_rows : int
        Rows whose similarity to the nearest landmark is compared with: 1 in 1000 is seen.
    """

    scaling_rows: int = 1000
    calibration_rows: int = 2000
    calibration_share: float = 0.1
    counted_leverage: float = 2.0
    novelty_rows: int = 1000

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
    Values of rows outside memory have none, because their scores would take a pass of their own.

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
    in_memory = isinstance(left_out.problem.blocks, Blocks)
    if not code.discrete:
        if held_out is None and not in_memory:
            return LeftOut(None, None, None)
        scored = held_out or _scores_of_values(left_out, landmarks, rules)
        return LeftOut(None, None, _calibration(scored, code, None, selector, held_out, rules))
    more = code.kind == "classes" and held_out is None and in_memory
    scored, first = _scores_of_classes(left_out, rules, more)
    scaling, accuracy = _scaling(first, code)
    used = held_out or scored
    return LeftOut(scaling, accuracy, _calibration(used, code, scaling, selector, held_out, rules))


def scaling_of(
    left_out: LeaveOneOut, code: TargetCode, rules: CalibrationRules = DEFAULT_RULES
) -> Scaling | None:
    """Return the slope of probabilities from leave-one-out scores; None for values."""
    return _scaling(left_out.scores(rules.scaling_rows), code)[0] if code.discrete else None


def _scores_of_values(
    left_out: LeaveOneOut, landmarks: Landmarks, rules: CalibrationRules
) -> ScoredRows:
    """Return leave-one-out scores, of rows that have not moved the landmarks if there are any."""
    if landmarks.unused is None or len(landmarks.unused) == 0:
        return left_out.scores(rules.scored_rows(left_out.problem.blocks.n_rows))
    scored = left_out.scores_of(np.sort(landmarks.unused.numbers), left_out.problem.blocks)
    return replace(scored, leverage=np.zeros_like(scored.leverage))


def _scores_of_classes(
    left_out: LeaveOneOut, rules: CalibrationRules, more: bool
) -> tuple[ScoredRows, ScoredRows]:
    """Return leave-one-out scores, and those of the rows that set the slope of probabilities."""
    drawn = left_out.drawn(rules.scaling_rows)
    if not more:
        scored = left_out.scores_of(drawn)
        return scored, scored
    # a generator of its own: models do not depend on the number of rows that are scored
    most = rules.scored_rows(left_out.problem.blocks.n_rows)
    others = left_out.problem.rows_at_hand.sample(most, np.random.RandomState(0))
    others = np.setdiff1d(others, drawn)[: max(0, most - len(drawn))]
    scored = left_out.scores_of(np.union1d(drawn, others))
    return scored, scored.take(np.flatnonzero(np.isin(scored.rows, drawn)))


def _scaling(some: ScoredRows, code: TargetCode) -> tuple[Scaling, HeldOutScore]:
    """Return the slope of probabilities, and the accuracy of the same leave-one-out scores."""
    targets, weight = code.as_targets(some.Y), some.weight
    accuracy = float(weight @ targets.row_scores(some.scores) / weight.sum())
    scaling = fit_scaling(some.scores, targets.labels, weight)
    return scaling, HeldOutScore("leave-one-out accuracy", accuracy, len(weight))


def _calibration(
    scored: ScoredRows,
    code: TargetCode,
    scaling: Scaling | None,
    selector: LandmarkSelector,
    held_out: ScoredRows | None,
    rules: CalibrationRules,
) -> Calibration | None:
    if held_out is not None:
        return calibrated(held_out, code, scaling, "held-out rows")
    if selector.targets != "ignored":
        scored = recounted(scored, rules.counted_leverage)
    return calibrated(scored, code, scaling, "leave-one-out")


def recounted(scored: ScoredRows, times: float) -> ScoredRows:
    """Return leave-one-out scores with residuals ``r / (1 − h)^times`` in place of r / (1 − h)."""
    # leave-one-out scores of rows that are interpolated are not defined
    left = np.maximum(1.0 - scored.leverage, 1e-10)
    errors = (scored.scores - scored.Y) / left[:, None] ** (times - 1.0)
    return replace(scored, scores=scored.Y + errors)


def novelty_of(
    expansion: KernelExpansion,
    rows: RowBlocks,
    landmark_rows: np.typing.NDArray[np.intp] | None,
    rules: CalibrationRules = DEFAULT_RULES,
) -> Novelty | None:
    """Return the similarity of training rows to the landmarks; None for kernels without one.

    Parameters
    ----------
    expansion : KernelExpansion
    rows : RowBlocks
    landmark_rows : ndarray of int or None
        Numbers of rows that are landmarks, which are left out: they equal one.
    rules : CalibrationRules, optional
    """
    if not expansion.measures_similarity:
        return None
    drawn = rows.sample(rules.novelty_rows, np.random.RandomState(0))
    if landmark_rows is not None:
        others = np.setdiff1d(drawn, landmark_rows)
        drawn = others if len(others) else drawn
    return novelty_of_rows(expansion, rows.gather(np.sort(drawn)))


def novelty_of_rows(expansion: KernelExpansion, rows: Block) -> Novelty:
    """Return the similarity of some rows to the landmarks."""
    similarities: Float = expansion.similarity(rows.X)
    return Novelty.of(similarities, rows.counts)
