"""Measure claims on the results: each function returns `Evidence` or raises `NotTestable`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from nysplus_experiments.harness.statistics import Estimate, estimate
from nysplus_experiments.harness.tables import count, interval
from nysplus_experiments.paper.rules import Evidence, clear
from nysplus_experiments.paper.runs import FULL_METHODS, Curve, Runs, dataset_title

_SECONDS = "final_stage_seconds"  # steps 3 to 6 for a two-stage method, the whole fit for any other


class NotTestable(Exception):
    """A claim cannot be tested on these results; ``measured`` is what there is nevertheless."""

    def __init__(self, reason: str, measured: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.measured = measured


@dataclass(frozen=True)
class At:
    """The sizes a claim is about, all by default; a size within 3 % of the requested one counts."""

    n: int | None = None
    kb: float | None = None
    above_kb: float | None = None
    largest_gain: bool = False

    def choose(self, gaps: pd.DataFrame, kb: dict[int, float]) -> list[int]:
        """Return the sizes ``n`` among those of ``gaps``; empty where the requested one is not."""
        if self.largest_gain:
            return [int(gaps.mean().idxmax())]
        if self.above_kb is not None:
            return [n for n in gaps if kb.get(n, 0.0) >= self.above_kb]
        requested = self.n if self.n is not None else self.kb
        if requested is None:
            return list(gaps)
        have: dict[int, float] = {n: n if self.n is not None else kb.get(n, 0.0) for n in gaps}
        nearest = min(have, key=lambda n: abs(have[n] - requested))
        return [nearest] if abs(have[nearest] - requested) <= 0.03 * requested else []

    def describe(self) -> str:
        """Return the requested sizes in words."""
        if self.above_kb is not None:
            return f"a model above {self.above_kb:g} kB"
        if self.kb is not None:
            return f"a model of {self.kb:g} kB"
        return f"n = {self.n}" if self.n is not None else "a size"


ALL_SIZES = At()


def never(runs: Runs, dataset: str, reason: str) -> Evidence:
    """Raise `NotTestable`: the claim is about something that results do not hold."""
    raise NotTestable(reason)


def require(runs: Runs, dataset: str, *curves: Curve) -> None:
    """Raise `NotTestable` unless there are results of all curves on a dataset."""
    if dataset not in runs.datasets:
        raise NotTestable(f"There are no results on {dataset_title(dataset)}.")
    missing = [c.label for c in curves if runs.curve(dataset, c).empty]
    if missing:
        raise NotTestable(f"There are no results of {' or '.join(missing)}.")


def _cells(table: pd.DataFrame) -> tuple[Estimate, ...]:
    """Return the estimate of each column, over the trials that it has."""
    return tuple(estimate(values.dropna()) for _, values in table.items())


def _total(table: pd.DataFrame) -> pd.Series:
    """Return the mean over the columns for the trials that all of them have."""
    return table.dropna().mean(axis="columns").dropna()  # NaN where there is no column


def paired_evidence(gaps: pd.DataFrame, lead: str = "") -> Evidence:
    """Return the evidence of paired differences at one or several sizes."""
    total, cells = estimate(_total(gaps)), _cells(gaps)
    tail = f"difference {interval(total, sign=True)}; "
    if len(cells) == 1:
        text = f"n = {gaps.columns[0]}: {lead}{tail}"
    else:
        above, below = clear(cells)
        text = (
            f"{len(cells)} sizes, n = {min(gaps)} to {max(gaps)}: mean {tail}"
            f"clearly positive at {above}, clearly negative at {below}; "
        )
    return Evidence(total, cells, text + _trials(total, cells), sizes=tuple(map(int, gaps)))


def _trials(total: Estimate, cells: Sequence[Estimate]) -> str:
    """Write the trials that all sizes have, and the most that a size has if that is more."""
    most = max(cell.trials for cell in cells)
    return count(most, "trial") if most == total.trials else f"{total.trials} to {most} trials"


def _levels(runs: Runs, dataset: str, curves: Sequence[Curve], n: int) -> str:
    parts = []
    for curve in curves:
        table = runs.table(dataset, curve)
        values = _total(table) if curve.method in FULL_METHODS else table.get(n, pd.Series())
        if values.notna().any():
            parts.append(f"{curve.label} {interval(estimate(values.dropna()))}")
    return ", ".join(parts) + "; " if parts else ""


def gap(runs: Runs, dataset: str, better: Curve, worse: Curve, at: At = ALL_SIZES) -> Evidence:
    """Measure ``better`` minus ``worse`` at the sizes of a claim."""
    require(runs, dataset, better, worse)
    gaps = runs.differences(dataset, better, worse)
    if gaps.empty:
        raise NotTestable(f"{better.label} and {worse.label} share no size and trial.")
    sizes = runs.sizes(dataset, better) or runs.sizes(dataset, worse)
    chosen = at.choose(gaps, sizes)
    if not chosen:
        largest = max(gaps)
        lead = _levels(runs, dataset, (better, worse), largest)
        measured = paired_evidence(gaps[[largest]], lead).text
        raise NotTestable(f"It needs {at.describe()}, which was not run.", measured)
    if _total(gaps[chosen]).empty:
        raise NotTestable("No trial was finished at all sizes.")
    return paired_evidence(gaps[chosen], _levels(runs, dataset, (better, worse), chosen[0]))


def first_stage_gain(runs: Runs, dataset: str) -> Evidence:
    """Measure Nys+ with the largest ``n_0`` minus Nys+ with the smallest, at every size."""
    require(runs, dataset, Curve("Nys+", "largest"))
    fixed = runs.fixed_n_initials(dataset)
    if len(fixed) < 2:
        raise NotTestable("It needs Nys+ with two different n_0 over several sizes.")
    small, large = Curve("Nys+", fixed[0]), Curve("Nys+", fixed[-1])
    evidence = gap(runs, dataset, large, small)
    text = f"n_0 = {fixed[-1]} against {fixed[0]}; {evidence.text}"
    return replace(evidence, text=text)


def lead_over_best(
    runs: Runs, dataset: str, best: Curve, others: Sequence[Curve], at: At = ALL_SIZES
) -> Evidence:
    """Measure ``best`` minus whichever of the ``others`` has the highest mean at each size.

    Only sizes at which all of them were run count: who is missing may be the best.
    """
    require(runs, dataset, best, *others)
    by_rival = {curve: runs.differences(dataset, best, curve) for curve in others}
    shared = sorted(set.intersection(*(set(gaps) for gaps in by_rival.values())))
    rivals = {n: min(others, key=lambda curve: by_rival[curve][n].mean()) for n in shared}
    gaps = pd.DataFrame({n: by_rival[rival][n] for n, rival in rivals.items()})
    chosen = at.choose(gaps, runs.sizes(dataset, best)) if shared else []
    if not chosen or _total(gaps[chosen]).empty:
        raise NotTestable(f"It needs {at.describe()}, which was not run with all methods.")
    lead = _levels(runs, dataset, (best, rivals[chosen[0]]), chosen[0])
    return paired_evidence(gaps[chosen], lead)


def gain_of_gains(
    runs: Runs, dataset: str, more: tuple[Curve, Curve], less: Sequence[tuple[Curve, Curve]]
) -> Evidence:
    """Measure the gain of one pair of curves minus the mean gain of other pairs, over all sizes."""
    require(runs, dataset, *more, *(curve for pair in less for curve in pair))
    first, *others = (runs.differences(dataset, *pair) for pair in (more, *less))
    excess = (first - sum(others) / len(others)).dropna(axis="columns", how="all")
    if _total(excess).empty:
        raise NotTestable("The variants share no size and trial.")
    return paired_evidence(excess)


def growth(runs: Runs, dataset: str, better: Curve, worse: Curve, above_kb: float) -> Evidence:
    """Measure how much a gain grows from the smallest to the largest size above a limit."""
    require(runs, dataset, better, worse)
    gaps = runs.differences(dataset, better, worse)
    sizes = At(above_kb=above_kb).choose(gaps, runs.sizes(dataset, better))
    if len(sizes) < 2 or gaps[sizes].dropna().empty:
        raise NotTestable(f"It needs two sizes above {above_kb:g} kB.")
    total = estimate((gaps[max(sizes)] - gaps[min(sizes)]).dropna())
    text = (
        f"from n = {min(sizes)} to {max(sizes)} the gain changes by "
        f"{interval(total, sign=True)}; {count(total.trials, 'trial')}"
    )
    return Evidence(total, (total,), text, sizes=(min(sizes), max(sizes)))


def _present(runs: Runs, dataset: str, curves: Sequence[Curve]) -> list[Curve]:
    present = [curve for curve in curves if not runs.curve(dataset, curve).empty]
    require(runs, dataset, *(present or curves))
    return present


def level(runs: Runs, dataset: str, curves: Sequence[Curve], threshold: float) -> Evidence:
    """Measure accuracy minus a threshold at every size of the curves that are there."""
    tables = [runs.table(dataset, curve) for curve in _present(runs, dataset, curves)]
    cells = [cell for table in tables for cell in _cells(table - threshold)]
    share = sum(cell.mean > 0 for cell in cells)
    best = max(cells, key=lambda cell: cell.mean).map(lambda x: x + threshold)
    text = (
        f"mean above {threshold:g} % in {share} of {len(cells)} cells; highest "
        f"{interval(best)}; {count(best.trials, 'trial')}"
    )
    sizes = sorted({int(n) for table in tables for n in table})
    return Evidence(best, tuple(cells), text, sizes=tuple(sizes))


def _first_reach(table: pd.DataFrame, goal: pd.Series) -> pd.Series:
    """Return the smallest size at which each trial reaches its goal; NaN where none does."""
    reached = table.ge(goal, axis="index").reindex(goal.index, fill_value=False)
    return reached.idxmax(axis="columns").where(reached.any(axis="columns")).astype(float)


def _saving(
    ours: pd.DataFrame, rivals: Sequence[pd.DataFrame], goal: pd.Series, target: str
) -> Evidence:
    """Measure by how many percent fewer landmarks ``ours`` reaches a goal than the best rival.

    A trial that does not reach it counts with the largest size, which makes a saving look smaller.
    """
    first = [_first_reach(table, goal) for table in (ours, *rivals)]
    if all(sizes.isna().all() for sizes in first):
        raise NotTestable(f"No curve reaches {target} at the sizes that were run.")
    largest = max(max(table) for table in (ours, *rivals))
    own, *others = (sizes.fillna(largest) for sizes in first)
    rival = pd.concat(others, axis="columns").min(axis="columns")
    total = estimate(100.0 * (1.0 - own / rival))
    text = (
        f"reaches {target} at n = {own.mean():.0f} against {rival.mean():.0f} in the mean, saving "
        f"{interval(total, sign=True, unit='%')}; {count(total.trials, 'trial')}"
    )
    return Evidence(total, (total,), text, "%", tuple(map(int, ours)))


def saving_to_full(runs: Runs, dataset: str, ours: Curve, rival: Curve, full: str) -> Evidence:
    """Measure the saving in landmarks up to the accuracy of a full kernel machine."""
    require(runs, dataset, ours, rival, Curve(full))
    own, other = runs.table(dataset, ours), runs.table(dataset, rival)
    own, other = own.align(other, join="inner", axis="columns")
    complete = pd.concat([own, other], axis="columns").dropna()
    goal = runs.reference(dataset, full, complete.index)
    if goal.empty or own.empty:
        raise NotTestable(f"{ours.label}, {rival.label} and {full} share no size and trial.")
    return _saving(own, [other], goal, f"{full} ({goal.mean():.2f} %)")


def saving_to_saturation(
    runs: Runs, dataset: str, ours: Curve, rivals: Sequence[Curve]
) -> Evidence:
    """Measure the saving in landmarks up to one standard deviation below the saturation accuracy.

    Saturation is the highest mean at the largest size that all curves have.
    """
    require(runs, dataset, ours, *rivals)
    tables = [runs.table(dataset, curve) for curve in (ours, *rivals)]
    shared = sorted(set.intersection(*(set(table) for table in tables)))
    tables = [table[shared] for table in tables]
    trials = pd.concat(tables, axis="columns").dropna().index
    if len(trials) < 2:
        raise NotTestable("It needs two trials of all curves at the same sizes.")
    saturated = max((table[max(shared)].dropna() for table in tables), key=lambda x: x.mean())
    limit = float(saturated.mean() - saturated.std())
    return _saving(tables[0], tables[1:], pd.Series(limit, index=trials), f"{limit:.2f} %")


def _geometric(above: pd.DataFrame, below: pd.DataFrame, what: str) -> Evidence:
    """Return the geometric mean of the ratio of two tables of seconds."""
    logs = np.log((above / below).where((above > 0) & (below > 0))).dropna(axis=1, how="all")
    if _total(logs).empty:
        raise NotTestable("The times of both are in no trial.")
    total = estimate(_total(logs)).map(math.exp)
    cells = tuple(cell.map(math.exp) for cell in _cells(logs))
    text = (
        f"{what} {interval(total)} (geometric mean of {len(cells)} cells); "
        f"{count(total.trials, 'trial')}"
    )
    return Evidence(total, cells, text, "times")


def stage_ratio(runs: Runs, dataset: str, curves: Sequence[Curve]) -> Evidence:
    """Measure the time of steps 3 to 6 divided by that of steps 1 and 2."""
    present = _present(runs, dataset, curves)
    final, first = (
        pd.concat({curve: runs.table(dataset, curve, column) for curve in present}, axis="columns")
        for column in (_SECONDS, "first_stage_seconds")
    )
    return _geometric(final, first, "steps 3–6 take, against steps 1–2,")


def time_ratio(runs: Runs, dataset: str, slow: Curve, fast: Curve) -> Evidence:
    """Measure the training time of one curve divided by that of another at the same sizes."""
    require(runs, dataset, slow, fast)
    above, below = (runs.table(dataset, curve, _SECONDS) for curve in (slow, fast))
    above, below = above.align(below, join="inner", axis="columns")
    return _geometric(above, below, f"{slow.label} takes, against {fast.label},")


def gap_at_equal_time(runs: Runs, dataset: str, better: Curve, slow: Curve) -> Evidence:
    """Measure the accuracy of ``better`` in the time that each model of ``slow`` takes, minus its.

    ``better`` is interpolated in the logarithm of time and constant beyond its last size. Sizes at
    which ``slow`` is faster, in any trial, than all of ``better`` are left out.
    """
    require(runs, dataset, better, slow)
    seconds = runs.table(dataset, slow, _SECONDS)
    own = runs.table(dataset, slow).reindex_like(seconds).where(seconds.notna())
    gaps = pd.DataFrame(np.nan, own.index, own.columns)
    rival = runs.curve(dataset, better).dropna(subset=_SECONDS).sort_values(_SECONDS)
    for trial, points in rival.groupby("trial"):
        times = points[_SECONDS].to_numpy(dtype=float)
        if trial in gaps.index and times[0] > 0:
            requested = seconds.loc[trial].reindex(gaps.columns)
            there = np.interp(np.log(requested), np.log(times), points["accuracy"])
            gaps.loc[trial] = (there - own.loc[trial]).where(requested >= times[0])
    gaps = gaps.loc[:, (gaps.notna() | own.isna()).all()]
    if _total(gaps).empty:
        raise NotTestable("The training times do not overlap.")
    return paired_evidence(gaps)
