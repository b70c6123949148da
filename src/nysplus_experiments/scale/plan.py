"""What a fit would take on a cluster that nobody has: a formula with measured constants."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cluster import ClusterFit
from out_of_core import Pass, listed

PLAN_ROWS, PLAN_WORKERS, PLAN_PARTITIONS = 1_000_000_000, 100, 1000
PLAN_SELECTION = "negative-margin"
# Bytes a second: a gigabit is the least that machines of a cluster are joined by.
BANDWIDTH = 1e9 / 8
# Passes whose time is on the workers and grows with the rows.
KINDS = ("survey", "moments", "margins")


@dataclass(frozen=True)
class Constants:
    """What a plan needs, measured on one worker of one thread.

    Attributes
    ----------
    seconds : dict
        For each row, by kind of pass: "survey", "moments", "margins".
    task : float
        Seconds for each partition of a pass, beside its rows.
    client : float
        Seconds of a fit outside the passes.
    sum_bytes, broadcast_bytes : int
        Of the moments, and of what is sent to every worker before a pass.
    gather_bytes : float
        Of the rows that a gather fetches.
    """

    seconds: dict[str, float]
    task: float
    client: float
    sum_bytes: int
    broadcast_bytes: int
    gather_bytes: float


def constants(fits: Sequence[ClusterFit], selection: str) -> Constants:
    """Take the constants from the measurements."""
    own = [f for f in fits if (f.what, f.workers, f.selection) == ("fit", 1, selection)]
    stages = [
        [(kind_of(stage), stage) for stage in listed(fit.stages) if kind_of(stage) in KINDS]
        for fit in own
    ]
    by_kind: dict[str, list[float]] = {}
    for kind, stage in itertools.chain(*stages):
        by_kind.setdefault(kind, []).append(stage.seconds / stage.rows)
    tiny = [
        stage.seconds / fit.partitions
        for fit in fits
        if fit.what == "tiny"
        for stage in listed(fit.stages)
    ]
    outside = [
        fit.fit_seconds - sum(stage.seconds for _, stage in passes)
        for fit, passes in zip(own, stages, strict=True)
    ]
    gathered = [
        sum(sent.n_bytes for sent in fit.list_transfers() if sent.kind == "taken")
        / pass_counts(fit)["gather"]
        for fit in own
    ]
    return Constants(
        {kind: statistics.median(values) for kind, values in by_kind.items()},
        statistics.median(tiny),
        statistics.median(outside),
        own[0].sum_bytes,
        own[0].broadcast_bytes,
        statistics.median(gathered),
    )


def kind_of(stage: Pass) -> str:
    """Return what a stage is without whose it is: "moments" of "pilot: moments"."""
    return stage.stage.rpartition(": ")[2]


def pass_counts(fit: ClusterFit) -> dict[str, int]:
    """Return how often each kind of pass is made in a fit."""
    made = [kind_of(stage) for stage in listed(fit.stages)]
    counts = {kind: made.count(kind) for kind in KINDS}
    counts["gather"] = fit.passes - sum(counts.values())
    return {kind: count for kind, count in counts.items() if count}


@dataclass(frozen=True)
class PlannedPass:
    """One kind of pass on paper: how often, and the seconds and bytes of one."""

    kind: str
    count: int
    rows: float
    tasks: float
    tree: float
    broadcast: float
    moved_bytes: float

    @property
    def seconds(self) -> float:
        """Of one pass."""
        return self.rows + self.tasks + self.tree + self.broadcast


def plan(
    known: Constants, counts: dict[str, int], n_rows: int, workers: int, partitions: int
) -> list[PlannedPass]:
    """Compute the passes of a fit.

    Parameters
    ----------
    known : Constants
    counts : dict
        How often each kind of pass is made; kinds without seconds for a row are gathers.
    n_rows, workers, partitions : int
    """
    depth = (partitions - 1).bit_length()  # sums are added two by two: ⌈log₂ P⌉ times
    passes = []
    for kind, count in counts.items():
        # Only the moments are sums of n² numbers; those of other passes are small beside them.
        S = known.sum_bytes if kind == "moments" else 0
        J = known.broadcast_bytes if kind in ("moments", "margins") else 0
        G = known.gather_bytes if kind == "gather" else 0
        passes.append(
            PlannedPass(
                kind,
                count,
                rows=n_rows / workers * known.seconds.get(kind, 0.0),
                tasks=partitions * known.task,
                tree=depth * S / BANDWIDTH,
                broadcast=workers * J / BANDWIDTH,
                moved_bytes=(partitions - 1) * S + workers * J + G,
            )
        )
    return passes
