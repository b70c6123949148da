"""Rows on a Dask cluster: sums over its partitions, without numerics of their own.

The function of a pass is sent to the workers once. Sums of partitions are added along a tree on
the workers, and only the last one reaches the client. Without a client the partitions are read
one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn import config_context, get_config

from nysplus._rows.blocks import Block, Work
from nysplus._rows.on_disk import Coding, SurveyedBlocks
from nysplus._rows.readers import (
    BlockRows,
    Chunk,
    Source,
    as_chunk,
    block_names,
    check_traits,
    join_chunks,
    traits,
)
from nysplus._rows.survey import Survey
from nysplus._runtime.checkpoint import Step
from nysplus._runtime.progress import Advance, Progress
from nysplus._typing import Additive, Kind

# Blocks may take the memory of a worker's thread divided by this number; the rest is for
# partitions and sums.
WORKER_SHARE = 8
# Number of times that a pass is started if all workers that have its function are lost.
ATTEMPTS = 3
# Number of targets that are sent to the client before a fit.
SHOWN_ROWS = 1000
Part = TypeVar("Part", bound=Additive)

Names = tuple[str, ...] | None


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, or a list of delayed blocks."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    return type(first).__module__.partition(".")[0] in {"dask", "dask_expr"}


def open_dask(X: Any, y: Any, sample_weight: Any, features: Any) -> Source | DaskRows:
    """Return the rows of a Dask collection, on the cluster of the active client if there is one.

    Parameters
    ----------
    X : Dask array, data frame, or list of delayed ``(X, y)`` or ``(X, y, sample_weight)``
    y, sample_weight : Dask array or series, array, column name, or None
    features : sequence of str, optional
        Columns of a data frame to use, in this order.
    """
    names = _feature_names(X, y, sample_weight, features) if hasattr(X, "columns") else None
    parts = _partitions(X, y, sample_weight, names)
    client = _client()
    if client is not None:
        return DaskRows(client, parts, names)
    import dask

    return BlockRows(lambda: (dask.compute(part)[0] for part in parts), names)


def _client() -> Any:
    """Return the active client, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _feature_names(X: Any, y: Any, sample_weight: Any, features: Any) -> tuple[str, ...]:
    """Return the columns of a data frame that are features."""
    taken = [name for name in (y, sample_weight) if isinstance(name, str)]
    if isinstance(y, list):
        taken += y
    names = [name for name in X.columns if name not in taken] if features is None else features
    missing = [name for name in [*taken, *names] if name not in X.columns]
    if missing:
        raise ValueError(f"X has no columns {missing}. It has {list(X.columns)}.")
    return tuple(names)


def _partitions(X: Any, y: Any, sample_weight: Any, names: Names) -> list[Any]:
    """Return ``(X, y, sample_weight)`` of delayed parts, or delayed ones, for each partition."""
    if isinstance(X, (list, tuple)):
        if y is not None or sample_weight is not None:
            raise ValueError("Delayed blocks bring y and sample_weight along: leave both None.")
        return list(X)
    if names is None:
        X = X.rechunk({1: X.shape[1]})
        columns = [X, _beside(X, "y", y), _beside(X, "sample_weight", sample_weight)]
    else:
        columns = [X[list(names)], _column(X, "y", y), _column(X, "sample_weight", sample_weight)]
    rows = [None if column is None else _pieces(column) for column in columns]
    counts = {len(pieces) for pieces in rows if pieces is not None}
    if len(counts) > 1:
        raise ValueError(
            f"X, y and sample_weight have different numbers of partitions, {sorted(counts)}. "
            "Repartition them alike."
        )
    return [
        tuple(None if pieces is None else pieces[number] for pieces in rows)
        for number in range(counts.pop())
    ]


def _beside(X: Any, what: str, values: Any) -> Any:
    """Return targets or weights in the same chunks as the rows of an array."""
    if values is None:
        return None
    if isinstance(values, str):
        raise ValueError(f"{what}={values!r} names a column, and only data frames have names.")
    import dask.array as da

    if not is_dask(values):
        values = da.from_array(np.asarray(values))
    elif hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):
        return values  # unknown sizes cannot be compared, nor rechunked
    if values.shape[0] != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows, {what} has {values.shape[0]}. Pass one entry for each row."
        )
    return values.rechunk((X.chunks[0], *((width,) for width in values.shape[1:])))


def _column(X: Any, what: str, values: Any) -> Any:
    """Return a column that is named, or given as a series."""
    if values is not None and not isinstance(values, (str, list)) and not is_dask(values):
        raise ValueError(
            f"{what} is a {type(values).__name__} and X a Dask data frame, whose partitions have "
            "unknown numbers of rows. Pass the name of a column, or a Dask series."
        )
    return X[values] if isinstance(values, (str, list)) else values


def _holders(key: Any, graph: dict[Any, Any], holders: dict[Any, Any]) -> list[str]:
    """Return the workers that hold a result, or else its inputs."""
    seen, waiting, found = {key}, [key], []
    while waiting:
        key = waiting.pop()
        if holders.get(key):
            found += holders[key]
        else:
            more = set(getattr(graph.get(key), "dependencies", ())) - seen
            seen |= more
            waiting += more
    return found


def _pieces(collection: Any) -> list[Any]:
    """Return the partitions along the rows as delayed objects."""
    return list(np.ravel(collection.to_delayed()))


class DaskRows:
    """The partitions of a collection on a cluster.

    Attributes
    ----------
    client : distributed.Client
    parts : list
        ``(X, y, sample_weight)`` of delayed parts, the last two possibly None, or delayed ones.
    n_features, dtype, feature_names, has_targets
        As in a :class:`~nysplus._rows.readers.Source`.
    """

    def __init__(self, client: Any, parts: list[Any], names: Names) -> None:
        self.client = client
        self.parts = parts
        self.feature_names: Names = names
        first = self._begun([self._leaf(_described, 0)], [0])[0].result()
        self.n_features, self.dtype = first.n_features, first.dtype
        self.feature_names = names or first.names
        self.has_targets = first.targets is not None
        self._first = first

    def first_targets(self, n: int) -> Any:
        """Return the targets of the first rows, `SHOWN_ROWS` at most."""
        return self._first.targets[:n]

    def survey(self, kind: Kind | None, progress: Progress) -> Survey:
        """Return the survey of all rows, computed by the workers."""
        progress.passes += 1
        first = self._first.traits
        leaves = [self._leaf(_surveyed, number, kind, first) for number in range(len(self.parts))]
        with progress.stage("survey", None, None) as advance:
            found: Survey = self._added(leaves, [0] * len(leaves), advance)
            advance(found.n_rows)
        return found

    def total(self, job: Job[Part], sizes: list[int], advance: Advance) -> Part:
        """Return the sum of a job over all partitions."""
        from distributed.client import CancelledError

        for _ in range(ATTEMPTS - 1):
            with suppress(CancelledError):  # all workers that had the job are lost: send it again
                return self._total(job, sizes, advance)
        return self._total(job, sizes, advance)

    def _total(self, job: Job[Part], sizes: list[int], advance: Advance) -> Part:
        shared = self.client.scatter(job, broadcast=True)
        starts = np.cumsum([0, *sizes])
        leaves = [
            self._leaf(_summed, number, shared, int(starts[number]))
            for number in range(len(self.parts))
        ]
        total: Part = self._added(leaves, sizes, advance)
        return total

    def taken(self, rows: npt.NDArray[np.intp], sizes: list[int]) -> Chunk:
        """Return the rows with the given numbers, in that order; no other rows are sent."""
        starts = np.cumsum([0, *sizes])
        home = np.searchsorted(starts, rows, side="right") - 1
        homes = np.unique(home)
        leaves = [
            self._leaf(_taken, number, rows[home == number] - starts[number]) for number in homes
        ]
        found = self.client.gather(self._begun(leaves, homes.tolist()))
        places = np.concatenate([np.flatnonzero(home == number) for number in homes])
        return join_chunks(found).take(np.argsort(places))

    def _leaf(self, function: Callable[..., Any], number: int, *arguments: Any) -> Any:
        """Return the delayed ``function(part, number, names, *arguments)`` of one partition."""
        import dask

        leaf = dask.delayed(function, pure=False)
        return leaf(self.parts[number], int(number), self.feature_names, *arguments)

    def _begun(self, leaves: list[Any], numbers: list[int]) -> list[Any]:
        """Return the futures of some leaves, each computed on the worker of its partition.

        The scheduler's own choice evens out the load by moving partitions, which takes longer.
        """
        homes = self._homes()
        return [
            self.client.compute(leaf, workers=homes[number], allow_other_workers=True)
            for number, leaf in zip(numbers, leaves, strict=True)
        ]

    def _homes(self) -> list[list[str]]:
        """Return the workers of each partition: those that hold it, or one shared with neighbours.

        Sums of neighbouring partitions are added first, so that most of them stay on their worker.
        """
        holders = self.client.who_has()
        threads = [worker for worker, n in self.client.nthreads().items() for _ in range(n)]
        graphs: dict[int, tuple[Any, dict[Any, Any]]] = {}  # partitions of a collection share one
        homes = []
        for number, part in enumerate(self.parts):
            rows = part[0] if isinstance(part, tuple) else part
            graph = rows.dask  # a delayed object may build it each time
            if id(graph) not in graphs:
                graphs[id(graph)] = graph, dict(graph)  # kept: its id must not be used again
            known = _holders(rows.key, graphs[id(graph)][1], holders)
            homes.append(known or [threads[number * len(threads) // len(self.parts)]])
        return homes

    def _added(self, leaves: list[Any], sizes: list[int], advance: Advance) -> Any:
        """Return the sum of the leaves, added along a tree; their results are released early."""
        import dask
        from distributed import as_completed

        level = begun = self._begun(leaves, list(range(len(leaves))))
        rows = dict(zip([future.key for future in begun], sizes, strict=True))
        join = dask.delayed(_joined, pure=False)
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        root = begun[0] if len(begun) == 1 else self.client.compute(level[0])
        waiting = as_completed(begun)
        del begun, level  # a future that is referred to keeps its result on the workers
        for future in waiting:
            advance(rows[future.key])
        return root.result()


@dataclass(frozen=True)
class Job(Generic[Part]):
    """The work of a pass on a partition.

    Attributes
    ----------
    work : Work
    coding : Coding
    working_memory : float
        scikit-learn's setting at the client, in MiB.
    """

    work: Work[Part]
    coding: Coding
    working_memory: float


@dataclass(frozen=True)
class DaskBlocks(SurveyedBlocks):
    """Rows on a cluster."""

    rows: DaskRows = field(kw_only=True)

    @property
    def remote(self) -> bool:
        """True: workers may be other machines."""
        return True

    @property
    def _sizes(self) -> list[int]:
        return [piece.n_rows for piece in self.survey.pieces]

    def _sum(self, step: Step[Part], work: Work[Part], stage: str) -> None:
        job = Job(work, self.coding, get_config()["working_memory"])
        with self.progress.stage(stage, self.n_rows, None) as advance:
            step.add(self.rows.total(job, self._sizes, advance), self.n_rows)

    def gather(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return some rows, with features as floats."""
        self.progress.passes += 1
        return self.coding.gathered(self.rows.taken(rows, self._sizes), rows)


# ---- functions that run on the workers ---------------------------------------------------------


def _chunk(raw: Any, number: int, names: Names) -> Chunk:
    return as_chunk(raw, f"partition {number}", names)


@dataclass(frozen=True)
class _Description:
    """Width and type of a partition, the targets of its first rows, names of columns, traits."""

    n_features: int
    dtype: np.dtype[Any]
    targets: Any
    names: Names
    traits: tuple[str, ...]


def _described(raw: Any, number: int, names: Names) -> _Description:
    chunk = _chunk(raw, number, names)
    shown = None if chunk.y is None else chunk.y[:SHOWN_ROWS]
    found = block_names(raw)
    return _Description(chunk.X.shape[1], chunk.X.dtype, shown, found, traits(chunk, found))


def _surveyed(
    raw: Any, number: int, names: Names, kind: Kind | None, first: tuple[str, ...]
) -> Survey:
    chunk = _chunk(raw, number, names)
    check_traits(chunk, block_names(raw), first)
    return Survey.of(chunk.X, chunk.y, chunk.sample_weight, kind)


def _summed(raw: Any, number: int, names: Names, job: Job[Part], start: int) -> Part:
    """Return the sum over one partition, in blocks that fit in the memory of the worker."""
    chunk = _chunk(raw, number, names)
    total = job.work.zero()
    with config_context(working_memory=min(job.working_memory, _worker_memory())):
        for part in job.work.slices(chunk.n_rows):
            rows = slice(start + part.start, start + part.stop)
            addend = job.work.part(job.coding.block(chunk.take(part), rows))
            total = total.__iadd__(addend)
    return total


def _worker_memory() -> float:
    """Return the MiB that blocks may take in one thread of this worker.

    distributed has no function that tells a task the memory limit and the number of threads of its
    worker. `memory_manager` and `state` are attributes of its Worker class; the client's
    `scheduler_info` has both numbers, but only of the workers that were there when it was called.
    """
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    if not limit:
        return np.inf
    return float(limit / worker.state.nthreads / WORKER_SHARE / 2**20)


def _taken(raw: Any, number: int, names: Names, rows: npt.NDArray[np.intp]) -> Chunk:
    return _chunk(raw, number, names).take(rows)


def _joined(first: Part, second: Part) -> Part:
    """Return the sum of two sums, which stay unchanged: Dask may need them again."""
    return deepcopy(first).__iadd__(second)


# ---- predictions -------------------------------------------------------------------------------


def lazily(X: Any, function: Callable[[Any], Any], width: int, names: Iterable[str] | None) -> Any:
    """Return ``function(rows)`` of a collection as a lazy one of the same kind.

    Parameters
    ----------
    X : Dask array, data frame, or list of delayed blocks
    function : callable
        From rows, an array or a data frame, to an array.
    width : int
        Number of features.
    names : iterable of str, optional
        Columns of a data frame that are features.
    """
    import dask

    if isinstance(X, (list, tuple)):
        return [dask.delayed(_of_block)(block, function) for block in X]
    if hasattr(X, "columns"):
        features = X if names is None else X[list(names)]
        return features.map_partitions(_framed, function)
    example = function(np.zeros((1, width), dtype=X.dtype))
    X = X.rechunk({1: X.shape[1]})
    if example.ndim == 1:
        return X.map_blocks(function, dtype=example.dtype, drop_axis=1, meta=example[:0])
    chunks = X.chunks[0], (example.shape[1],)
    return X.map_blocks(function, dtype=example.dtype, chunks=chunks, meta=example[:0])


def _of_block(block: Any, function: Callable[[Any], Any]) -> Any:
    return function(block[0] if isinstance(block, (list, tuple)) else block)


def _framed(rows: Any, function: Callable[[Any], Any]) -> Any:
    """Return the result for a data frame with its index."""
    import pandas as pd

    result = function(rows)
    kind = pd.Series if result.ndim == 1 else pd.DataFrame
    return kind(result, index=rows.index)
