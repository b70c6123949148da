"""Predict the cost of a fit on a large cluster by a formula with measured constants."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nysplus_experiments.scale.cluster import ClusterFit
from nysplus_experiments.scale.stages import parse_column

# Bytes a second: a gigabit is the slowest network that machines of a cluster have.
BANDWIDTH = 1e9 / 8
# Passes whose time is spent on the workers and grows with the rows.
KINDS = ("survey", "moments", "scores")


@dataclass(frozen=True)
class Constants:
    """Costs of the parts of a fit, measured on one worker of one thread.

    ``seconds`` are per row by kind of pass, ``task`` per partition of a pass, ``client`` per fit
    outside the passes; ``gather_bytes`` are those of the rows that a gather fetches.
    """

    seconds: dict[str, float]
    task: float
    client: float
    sum_bytes: int
    broadcast_bytes: int
    gather_bytes: float


def constants(fits: Sequence[ClusterFit], selection: str) -> Constants:
    """Return medians over the measured fits with one selector."""
    own = [fit for fit in fits if (fit.what, fit.workers, fit.selection) == ("fit", 1, selection)]
    by_kind: dict[str, list[float]] = {}
    outside, gathered = [], []
    for fit in own:
        passes = [stage for stage in parse_column(fit.stages) if stage.kind in KINDS]
        for stage in passes:
            by_kind.setdefault(stage.kind, []).append(stage.seconds / stage.rows)
        outside.append(fit.fit_seconds - sum(stage.seconds for stage in passes))
        taken = sum(sent.n_bytes for sent in fit.list_transfers() if sent.kind == "taken")
        gathered.append(taken / pass_counts(fit)["gather"])
    tiny = [
        stage.seconds / fit.partitions
        for fit in fits
        if fit.what == "tiny"
        for stage in parse_column(fit.stages)
    ]
    return Constants(
        {kind: statistics.median(values) for kind, values in by_kind.items()},
        statistics.median(tiny),
        statistics.median(outside),
        own[0].sum_bytes,
        own[0].broadcast_bytes,
        statistics.median(gathered),
    )


def pass_counts(fit: ClusterFit) -> dict[str, int]:
    """Return the number of passes of each kind in a fit."""
    made = [stage.kind for stage in parse_column(fit.stages)]
    counts = {kind: made.count(kind) for kind in KINDS}
    counts["gather"] = fit.passes - sum(counts.values())
    return {kind: count for kind, count in counts.items() if count}


@dataclass(frozen=True)
class PlannedPass:
    """One kind of pass: how often it is made, and the predicted seconds and bytes of one."""

    kind: str
    count: int
    rows: float
    tasks: float
    tree: float
    broadcast: float
    moved_bytes: float

    @property
    def seconds(self) -> float:
        """Seconds of one pass."""
        return self.rows + self.tasks + self.tree + self.broadcast


def plan(
    known: Constants,
    counts: Mapping[str, int],
    n_rows: int,
    workers: int,
    partitions: int,
    bandwidth: float = BANDWIDTH,
) -> list[PlannedPass]:
    """Predict the passes of a fit; kinds without seconds per row are gathers."""
    depth = (partitions - 1).bit_length()  # sums are added two by two: ⌈log₂ P⌉ times
    passes = []
    for kind, count in counts.items():
        # Only the moments are sums of n² numbers; those of other passes are small beside them.
        S = known.sum_bytes if kind == "moments" else 0
        J = known.broadcast_bytes if kind in ("moments", "scores") else 0
        G = known.gather_bytes if kind == "gather" else 0
        passes.append(
            PlannedPass(
                kind,
                count,
                rows=n_rows / workers * known.seconds.get(kind, 0.0),
                tasks=partitions * known.task,
                tree=depth * S / bandwidth,
                broadcast=workers * J / bandwidth,
                moved_bytes=(partitions - 1) * S + workers * J + G,
            )
        )
    return passes


def total_seconds(known: Constants, passes: Sequence[PlannedPass]) -> float:
    """Return the predicted seconds of a fit, with the client's work."""
    return sum(p.count * p.seconds for p in passes) + known.client
