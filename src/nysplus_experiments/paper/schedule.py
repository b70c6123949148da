"""Choose the rows that undecided claims lack, those of the cheapest claim first.

A claim that is judged after every trial is decided by chance sooner or later. There are two looks
instead: at the first five trials (`PILOT`), and, for a claim that these leave undecided, at all
trials of the experiment, even if a smaller number would have decided it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nysplus_experiments.harness.datasets import DATASETS
from nysplus_experiments.paper.claims import Claim, entries, evaluate, measure, rule_of
from nysplus_experiments.paper.evidence import NotTestable
from nysplus_experiments.paper.results import Key, Result
from nysplus_experiments.paper.rules import Over
from nysplus_experiments.paper.runner import estimate_seconds
from nysplus_experiments.paper.runs import FULL_METHODS, PILOT, Curve, Runs

_OPEN = ("undecided", "not testable here")
# Method, n and n_0.
Cell = tuple[str, int, int | None]


@dataclass(frozen=True)
class Batch:
    """Rows that an undecided claim lacks, and their estimated seconds."""

    claim: Claim
    tasks: tuple[Key, ...]
    seconds: float


def undecided(tasks: Sequence[Key], results: Iterable[Result]) -> list[Batch]:
    """Return a batch for each claim that rows of an experiment may decide, the cheapest first.

    The first five trials of a claim are a batch, and all others another one. Claims about times
    have none: their rows must be fitted on a machine that does nothing else.
    """
    results = list(results)
    finished = {row.key for row in results if row.ok}
    first = [row for row in results if row.trial < PILOT]
    planned = _Planned(tasks)
    batches = []
    for entry, pilot, claim in zip(entries(), evaluate(first), evaluate(results), strict=True):
        if pilot.verdict not in _OPEN and claim.verdict not in _OPEN:
            continue
        left = [task for task in planned.tasks(entry) if task not in finished]
        if left:
            chosen = tuple(task for task in left if task.trial < PILOT) or tuple(left)
            batches.append(Batch(claim, chosen, sum(estimate_seconds(chosen))))
    return sorted(batches, key=lambda batch: batch.seconds)


class _Planned(Runs):
    """Stand-ins for the rows of an experiment, to find those that a measure reads."""

    def __init__(self, tasks: Sequence[Key]) -> None:
        super().__init__(_stand_in(task) for task in tasks if task.trial < 2)
        self._tasks = tasks
        self._read: set[Curve] = set()

    def curve(self, dataset: str, curve: Curve) -> pd.DataFrame:
        """Return the models of a curve, and note that it was read."""
        self._read.add(curve)
        return super().curve(dataset, curve)

    def tasks(self, entry: dict[str, Any]) -> list[Key]:
        """Return the rows that a claim is judged by.

        A rule that judges each size by itself uses all trials of a size; other rules use the
        trials that all sizes have.
        """
        cells = self._cells(entry)
        own = [t for t in self._tasks if t.dataset == entry["on"] and t[1:4] in cells]
        if isinstance(rule_of(entry), Over):
            return own
        counts = Counter(t.trial for t in own if t.method not in FULL_METHODS)
        return [t for t in own if counts[t.trial] == max(counts.values(), default=0)]

    def _cells(self, entry: dict[str, Any]) -> set[Cell]:
        """Return the cells that a claim is judged by; none where the experiment cannot test it."""
        self._read.clear()
        # The size of the largest gain is not known before all sizes are there.
        args = {k: v for k, v in entry["args"].items() if v != {"largest_gain": True}}
        try:
            sizes = measure(entry | {"args": args}, self).sizes
        except NotTestable:
            return set()
        return {
            (row.method, int(row.n), None if pd.isna(row.n_initial) else int(row.n_initial))
            for curve in self._read
            for row in super(_Planned, self).curve(entry["on"], curve).itertuples()
            if row.n in sizes or row.method in FULL_METHODS
        }


def _stand_in(task: Key) -> Result:
    """Return a row of the paper's model size, with an accuracy that means nothing."""
    data = DATASETS[task.dataset]
    n_outputs = 1 if data.n_classes == 2 else data.n_classes
    n_bytes = 8 * task.n * (data.n_features + n_outputs)
    return Result(*task, seed=0, status="ok", accuracy=50.0, paper_bytes=n_bytes)
