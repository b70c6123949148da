"""What the results say on a claim: differences, savings and ratios, paired by trial.

A measure takes `Runs` and a dataset and returns `Evidence`, or raises `NotTestable`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nysplus_experiments.harness.statistics import Series, average, estimate, subtract
from nysplus_experiments.harness.tables import count, interval
from nysplus_experiments.paper.rules import Evidence, clear
from nysplus_experiments.paper.runs import (
    FULL_METHODS,
    Curve,
    Runs,
    dataset_title,
    series,
    training_seconds,
)


class NotTestable(Exception):
    """A claim cannot be tested on these results; ``measured`` is what there is nevertheless."""

    def __init__(self, reason: str, measured: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.measured = measured


@dataclass(frozen=True)
class At:
    """Which sizes a claim is about; all of them by default.

    A size counts as run when one within 3 % of it was: the paper's 406 kB on Letter are 410 kB at
    1250 landmarks.
    """

    n: int | None = None
    kb: float | None = None
    above_kb: float | None = None
    largest_gain: bool = False

    def choose(self, gaps: dict[int, Series], kb: dict[int, float]) -> list[int]:
        """Return the sizes ``n`` among those of ``gaps``; empty where the wanted one is not."""
        if self.largest_gain:
            return [max(gaps, key=lambda n: estimate(gaps[n].values()).mean)]
        if self.above_kb is not None:
            return [n for n in gaps if kb.get(n, 0.0) >= self.above_kb]
        wanted = self.n if self.n is not None else self.kb
        if wanted is None:
            return list(gaps)
        have: dict[int, float] = {n: n if self.n is not None else kb.get(n, 0.0) for n in gaps}
        nearest = min(have, key=lambda n: abs(have[n] - wanted))
        return [nearest] if abs(have[nearest] - wanted) <= 0.03 * wanted else []

    def describe(self) -> str:
        """Return what was wanted, in words."""
        if self.above_kb is not None:
            return f"a model above {self.above_kb:g} kB"
        if self.kb is not None:
            return f"a model of {self.kb:g} kB"
        return f"n = {self.n}" if self.n is not None else "a size"


def never(runs: Runs, dataset: str, reason: str) -> Evidence:
    """Raise `NotTestable`: the claim is about something that results do not hold."""
    raise NotTestable(reason)


def require(runs: Runs, dataset: str, *curves: Curve) -> None:
    """Raise `NotTestable` unless there are results of all curves on a dataset."""
    if dataset not in runs.datasets:
        raise NotTestable(f"There are no results on {dataset_title(dataset)}.")
    missing = [c.label for c in curves if not runs.curve(dataset, c)]
    if missing:
        raise NotTestable(f"There are no results of {' or '.join(missing)}.")


def paired_evidence(gaps: dict[int, Series], lead: str = "") -> Evidence:
    """Return the evidence of paired differences at one or several sizes."""
    total = estimate(average(gaps.values()).values())
    cells = tuple(estimate(gap.values()) for gap in gaps.values())
    trials = count(total.trials, "trial")
    difference = interval(total, sign=True)
    if len(cells) == 1:
        text = f"n = {next(iter(gaps))}: {lead}difference {difference}; {trials}"
        return Evidence(total, cells, text)
    above, below = clear(cells)
    text = (
        f"{len(cells)} sizes, n = {min(gaps)} to {max(gaps)}: mean difference {difference}; "
        f"clearly positive at {above}, clearly negative at {below}; {trials}"
    )
    return Evidence(total, cells, text)


def _levels(runs: Runs, dataset: str, curves: Sequence[Curve], n: int) -> str:
    parts = []
    for curve in curves:
        by_n = runs.accuracies(dataset, curve)
        values = average(by_n.values()) if curve.method in FULL_METHODS else by_n.get(n, {})
        if values:
            parts.append(f"{curve.label} {interval(estimate(values.values()))}")
    return ", ".join(parts) + "; " if parts else ""


def gap(runs: Runs, dataset: str, better: Curve, worse: Curve, at: At) -> Evidence:
    """Measure ``better`` minus ``worse`` at the sizes of a claim."""
    require(runs, dataset, better, worse)
    gaps = runs.differences(dataset, better, worse)
    if not gaps:
        raise NotTestable(f"{better.label} and {worse.label} share no size and trial.")
    sizes = runs.sizes(dataset, better) or runs.sizes(dataset, worse)
    chosen = at.choose(gaps, sizes)
    if not chosen:
        largest = max(gaps)
        lead = _levels(runs, dataset, (better, worse), largest)
        measured = paired_evidence({largest: gaps[largest]}, lead).text
        raise NotTestable(f"It needs {at.describe()}, which was not run.", measured)
    chosen_gaps = {n: gaps[n] for n in chosen}
    if not average(chosen_gaps.values()):
        raise NotTestable("No trial was finished at all sizes.")
    return paired_evidence(chosen_gaps, _levels(runs, dataset, (better, worse), chosen[0]))


def first_stage_gain(runs: Runs, dataset: str) -> Evidence:
    """Measure Nys+ with the largest ``n_0`` minus Nys+ with the smallest, at every size."""
    require(runs, dataset, Curve("Nys+", "largest"))
    fixed = runs.fixed_n_initials(dataset)
    if len(fixed) < 2:
        raise NotTestable("It needs Nys+ with two different n_0 over several sizes.")
    small, large = Curve("Nys+", fixed[0]), Curve("Nys+", fixed[-1])
    evidence = gap(runs, dataset, large, small, At())
    text = f"n_0 = {fixed[-1]} against {fixed[0]}; {evidence.text}"
    return replace(evidence, text=text)


def lead_over_best(
    runs: Runs, dataset: str, best: Curve, others: Sequence[Curve], at: At
) -> Evidence:
    """Measure ``best`` minus whichever of the ``others`` has the highest mean at each size.

    Only sizes at which all of them were run count: who is missing may be the best.
    """
    require(runs, dataset, best, *others)
    by_rival = {curve: runs.differences(dataset, best, curve) for curve in others}
    gaps: dict[int, Series] = {}
    rivals: dict[int, Curve] = {}
    for n in sorted(set.intersection(*(set(found) for found in by_rival.values()))):
        rival = min(others, key=lambda curve: estimate(by_rival[curve][n].values()).mean)
        gaps[n], rivals[n] = by_rival[rival][n], rival
    chosen = at.choose(gaps, runs.sizes(dataset, best)) if gaps else []
    if not chosen or not average(gaps[n] for n in chosen):
        raise NotTestable(f"It needs {at.describe()}, which was not run with all methods.")
    lead = _levels(runs, dataset, (best, rivals[chosen[0]]), chosen[0])
    return paired_evidence({n: gaps[n] for n in chosen}, lead)


def gain_of_gains(
    runs: Runs, dataset: str, more: tuple[Curve, Curve], less: Sequence[tuple[Curve, Curve]]
) -> Evidence:
    """Measure the gain of one pair of curves minus the mean gain of other pairs, over all sizes."""
    require(runs, dataset, *more, *(curve for pair in less for curve in pair))
    gains = [runs.differences(dataset, *pair) for pair in (more, *less)]
    shared = sorted(set.intersection(*(set(gain) for gain in gains)))
    excess = {n: subtract(gains[0][n], average(gain[n] for gain in gains[1:])) for n in shared}
    excess = {n: gaps for n, gaps in excess.items() if gaps}
    if not excess or not average(excess.values()):
        raise NotTestable("The variants share no size and trial.")
    return paired_evidence(excess)


def growth(runs: Runs, dataset: str, better: Curve, worse: Curve, above_kb: float) -> Evidence:
    """Measure how much a gain grows from the smallest to the largest size above a limit."""
    require(runs, dataset, better, worse)
    gaps = runs.differences(dataset, better, worse)
    sizes = At(above_kb=above_kb).choose(gaps, runs.sizes(dataset, better))
    steps = subtract(gaps[max(sizes)], gaps[min(sizes)]) if len(sizes) > 1 else {}
    if not steps:
        raise NotTestable(f"It needs two sizes above {above_kb:g} kB.")
    total = estimate(steps.values())
    text = (
        f"from n = {min(sizes)} to {max(sizes)} the gain changes by "
        f"{interval(total, sign=True)}; {count(total.trials, 'trial')}"
    )
    return Evidence(total, (total,), text)


def level(runs: Runs, dataset: str, curves: Sequence[Curve], threshold: float) -> Evidence:
    """Measure accuracy minus a threshold at every size of the curves that are there."""
    present = [curve for curve in curves if runs.curve(dataset, curve)]
    require(runs, dataset, *(present or curves))
    cells = [
        estimate(x - threshold for x in values.values())
        for curve in present
        for values in runs.accuracies(dataset, curve).values()
    ]
    share = sum(cell.mean > 0 for cell in cells)
    best = max(cells, key=lambda cell: cell.mean).map(lambda x: x + threshold)
    text = (
        f"mean above {threshold:g} % in {share} of {len(cells)} cells; highest "
        f"{interval(best)}; {count(best.trials, 'trial')}"
    )
    return Evidence(best, tuple(cells), text)


# -- measures of size and time -------------------------------------------------------------------


def _first_reach(curve: dict[int, Series], goal: Series) -> dict[int, int]:
    """Return the smallest size at which each trial reaches its goal, where it does."""
    reached: dict[int, int] = {}
    for n, values in sorted(curve.items(), reverse=True):
        reached.update({t: n for t, x in values.items() if t in goal and x >= goal[t]})
    return reached


def _saving(
    ours: dict[int, Series], rivals: Sequence[dict[int, Series]], goal: Series, target: str
) -> Evidence:
    """Measure by how many percent fewer landmarks ``ours`` reaches a goal than the best rival.

    Who does not reach it in a trial is counted with the largest size that was run, which makes a
    saving look smaller than it is.
    """
    largest = max(n for curve in (ours, *rivals) for n in curve)
    first = _first_reach(ours, goal)
    others = [_first_reach(curve, goal) for curve in rivals]
    if not first and not any(others):
        raise NotTestable(f"No curve reaches {target} at the sizes that were run.")
    savings = []
    sizes = []
    for t in goal:
        own, rival = first.get(t, largest), min(other.get(t, largest) for other in others)
        sizes.append((own, rival))
        savings.append(100.0 * (1.0 - own / rival))
    total = estimate(savings)
    own_mean, rival_mean = np.mean(sizes, axis=0)
    text = (
        f"reaches {target} at n = {own_mean:.0f} against {rival_mean:.0f} in the mean, saving "
        f"{interval(total, sign=True, unit='%')}; {count(total.trials, 'trial')}"
    )
    return Evidence(total, (total,), text, "%")


def saving_to_full(runs: Runs, dataset: str, ours: Curve, rival: Curve, full: str) -> Evidence:
    """Measure the saving in landmarks up to the accuracy of a full kernel machine."""
    require(runs, dataset, ours, rival, Curve(full))
    own, other = runs.accuracies(dataset, ours), runs.accuracies(dataset, rival)
    shared = {n for n in own if n in other}
    own, other = ({n: curve[n] for n in shared} for curve in (own, other))
    goal = runs.reference(dataset, full, average([*own.values(), *other.values()]))
    if not goal:
        raise NotTestable(f"{ours.label}, {rival.label} and {full} share no size and trial.")
    return _saving(own, [other], goal, f"{full} ({np.mean(list(goal.values())):.2f} %)")


def saving_to_saturation(
    runs: Runs, dataset: str, ours: Curve, rivals: Sequence[Curve]
) -> Evidence:
    """Measure the saving in landmarks up to one standard deviation below the saturation accuracy.

    Saturation is the highest mean at the largest size that all curves have.
    """
    require(runs, dataset, ours, *rivals)
    curves = [runs.accuracies(dataset, curve) for curve in (ours, *rivals)]
    shared = set.intersection(*(set(curve) for curve in curves))
    curves = [{n: curve[n] for n in sorted(shared)} for curve in curves]
    trials = average(cell for curve in curves for cell in curve.values())
    if len(trials) < 2:
        raise NotTestable("It needs two trials of all curves at the same sizes.")
    ends = [np.array(list(curve[max(shared)].values())) for curve in curves]
    saturated = max(ends, key=lambda values: float(values.mean()))
    limit = float(saturated.mean() - saturated.std(ddof=1))
    return _saving(curves[0], curves[1:], dict.fromkeys(trials, limit), f"{limit:.2f} %")


def _geometric(logs: Sequence[Series], what: str) -> Evidence:
    shared = average(logs)
    if not shared:
        raise NotTestable("The times of both are in no trial.")
    total = estimate(shared.values()).map(math.exp)
    cells = tuple(estimate(log.values()).map(math.exp) for log in logs)
    text = (
        f"{what} {interval(total)} (geometric mean of {len(logs)} cells); "
        f"{count(total.trials, 'trial')}"
    )
    return Evidence(total, cells, text, "times")


def stage_ratio(runs: Runs, dataset: str, curves: Sequence[Curve]) -> Evidence:
    """Measure the time of steps 3 to 6 divided by that of steps 1 and 2."""
    present = [curve for curve in curves if runs.curve(dataset, curve)]
    require(runs, dataset, *(present or curves))
    logs = []
    for curve in present:
        for cell in runs.curve(dataset, curve).values():
            first = series(cell, lambda r: r.first_stage_seconds)
            final = series(cell, training_seconds)
            logs.append(_log_ratio(final, first))
    return _geometric([log for log in logs if log], "steps 3–6 take, against steps 1–2,")


def _log_ratio(above: Series, below: Series) -> Series:
    both = {t for t in above if above[t] > 0 and below.get(t, 0.0) > 0}
    return {t: math.log(above[t] / below[t]) for t in sorted(both)}


def time_ratio(runs: Runs, dataset: str, slow: Curve, fast: Curve) -> Evidence:
    """Measure the training time of one curve divided by that of another at the same sizes."""
    require(runs, dataset, slow, fast)
    left, right = runs.curve(dataset, slow), runs.curve(dataset, fast)
    logs = [
        _log_ratio(series(left[n], training_seconds), series(right[n], training_seconds))
        for n in left
        if n in right
    ]
    return _geometric([log for log in logs if log], f"{slow.label} takes, against {fast.label},")


def gap_at_equal_time(runs: Runs, dataset: str, better: Curve, slow: Curve) -> Evidence:
    """Measure the accuracy of ``better`` in the time that each model of ``slow`` takes, minus its.

    ``better`` is interpolated in the logarithm of time; beyond its last size it keeps that size's
    accuracy. Sizes at which ``slow`` is faster, in any trial, than all of ``better`` are left out.
    """
    require(runs, dataset, better, slow)
    gaps: dict[int, Series] = {}
    rival = runs.curve(dataset, better)
    for n, cell in runs.curve(dataset, slow).items():
        seconds, own = series(cell, training_seconds), series(cell)
        for t in seconds:
            points = sorted(
                (series(c, training_seconds)[t], series(c)[t])
                for c in rival.values()
                if t in series(c, training_seconds)
            )
            if points and seconds[t] >= points[0][0] > 0:
                times, accuracies = np.array(points).T
                there = np.interp(math.log(seconds[t]), np.log(times), accuracies)
                gaps.setdefault(n, {})[t] = float(there) - own[t]
        if n in gaps and len(gaps[n]) < len(own):
            del gaps[n]
    if not gaps or not average(gaps.values()):
        raise NotTestable("The training times do not overlap.")
    return paired_evidence(gaps)
