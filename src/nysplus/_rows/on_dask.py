"""Rows on a Dask cluster: sums over its partitions, without numerics of their own.

The function of a pass is sent to the workers once. Sums of partitions are added along a tree on
the workers, and only the last one reaches the client. Without a client the partitions are read
one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import config_context, get_config

from nysplus._rows.blocks import Block, Work
from nysplus._rows.dask_collections import Names, feature_names, partitions
from nysplus._rows.dask_workers import WorkersLost, repeated, watched, worker_threads
from nysplus._rows.look import Look
from nysplus._rows.on_disk import Coding, SurveyedBlocks
from nysplus._rows.readers import (
    BlockRows,
    Chunk,
    Reading,
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
from nysplus.encoding import TableEncoder
from nysplus.encoding.schema import TableSchema
from nysplus.encoding.summary import TableSummary

# Blocks may take the memory of a worker's thread divided by this number; the rest is for
# partitions and sums.
WORKER_SHARE = 8
# Number of targets that are sent to the client before a fit.
SHOWN_ROWS = 1000
Part = TypeVar("Part", bound=Additive)


def open_dask(
    X: Any, y: Any, sample_weight: Any, features: Any, is_table: bool = False
) -> Source | DaskRows:
    """Return the rows of a Dask collection, on the cluster of the active client if there is one.

    Parameters
    ----------
    X : Dask array, data frame, or list of delayed ``(X, y)`` or ``(X, y, sample_weight)``
    y, sample_weight : Dask array or series, array, column name, or None
    features : sequence of str, optional
        Columns of a data frame to use, in this order.
    is_table : bool
        Whether columns may have gaps, texts and dates. Sparse rows never have.
    """
    names = feature_names(X, y, sample_weight, features) if hasattr(X, "columns") else None
    parts = partitions(X, y, sample_weight, names)
    client = _client()
    if client is not None:
        return DaskRows(client, parts, names, is_table)
    import dask

    return BlockRows(lambda: (dask.compute(part)[0] for part in parts), names, is_table)


def _client() -> Any:
    """Return the active client, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


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


class DaskRows:
    """The partitions of a collection on a cluster.

    Attributes
    ----------
    client : distributed.Client
    parts : list
        ``(X, y, sample_weight)`` of delayed parts, the last two possibly None, or delayed ones.
    n_features, dtype, sparse, feature_names, has_targets, is_table, schema
        As in a :class:`~nysplus._rows.readers.Source`.
    """

    schema: TableSchema | None = None

    def __init__(self, client: Any, parts: list[Any], names: Names, is_table: bool) -> None:
        self.client = client
        self.parts = parts
        leaf = self._leaf(_described, 0, Reading(names, is_table))
        first = repeated(lambda: self._added({0: leaf}, lambda number: None))
        self.n_features, self.dtype, self.sparse = first.n_features, first.dtype, first.sparse
        self.is_table = is_table and not first.sparse
        self.feature_names = names or first.names
        self.has_targets = first.targets is not None
        self._first = first

    def first_targets(self, n: int) -> Any:
        """Return the targets of the first rows, `SHOWN_ROWS` at most."""
        return self._first.targets[:n]

    def survey(self, kind: Kind | None, progress: Progress) -> Survey:
        """Return the survey of all rows, computed by the workers."""
        found: Survey = self._first_pass(_surveyed, kind, "survey", progress)
        return found

    def look_at_columns(self, encoder: TableEncoder, progress: Progress) -> TableSummary:
        """Return the summary of a table's columns, computed by the workers."""
        found: Look = self._first_pass(_looked, encoder, "columns", progress)
        return found.summary

    def _first_pass(
        self, function: Callable[..., Any], argument: Any, stage: str, progress: Progress
    ) -> Any:
        """Return the sum of a function over partitions whose numbers of rows are not known."""
        progress.passes += 1
        with progress.stage(stage, None, None) as advance:

            def attempt() -> Any:
                traits, reading = self._first.traits, self._shared_reading()
                leaves = {
                    number: self._leaf(function, number, reading, argument, traits)
                    for number in range(len(self.parts))
                }
                return self._added(leaves, lambda number: advance(0))

            found = repeated(attempt)
            advance(found.n_rows)
        return found

    def _shared_reading(self) -> Any:
        """Return how partitions are read; with a schema, which may be large, as a future."""
        reading = Reading(self.feature_names, self.is_table, self.schema)
        return reading if self.schema is None else self._shared(reading)

    def total(self, job: Job[Part], sizes: list[int], advance: Advance) -> Part:
        """Return the sum of a job over all partitions."""
        starts = np.cumsum([0, *sizes]).tolist()
        uncounted = dict(enumerate(sizes))  # partitions of a repeated attempt are counted once

        def count(number: int) -> None:
            if number in uncounted:
                advance(uncounted.pop(number))

        def attempt() -> Part:
            shared, reading = self._shared(job), self._shared_reading()
            leaves = {
                number: self._leaf(_summed, number, reading, shared, starts[number])
                for number in range(len(self.parts))
            }
            total: Part = self._added(leaves, count)
            return total

        return repeated(attempt)

    def _shared(self, job: Job[Any] | Reading) -> Any:
        """Return an object as a future on one worker, from which the others fetch it.

        ``scatter(broadcast=True)`` never returns if one of the workers is lost meanwhile.
        """
        worker_threads(self.client)
        try:
            shared = self.client.scatter(job, hash=False)
        except OSError as error:
            raise WorkersLost("The worker that was to have the function is lost.") from error
        if not self.client.who_has([shared])[shared.key]:
            raise WorkersLost("The worker that has the function is lost.")
        return shared

    def taken(self, rows: npt.NDArray[np.intp], sizes: list[int]) -> Chunk:
        """Return the rows with the given numbers, in that order; no other rows are sent."""
        starts = np.cumsum([0, *sizes])
        home = np.searchsorted(starts, rows, side="right") - 1
        homes = np.unique(home).tolist()

        def attempt() -> list[Chunk]:
            reading = self._shared_reading()
            leaves = {
                number: self._leaf(_taken, number, reading, rows[home == number] - starts[number])
                for number in homes
            }
            begun = {future.key: future for future in self._begun(leaves).values()}
            own = set(begun)
            with watched(self.client, begun, lambda: self._keys() | own):
                found: list[Chunk] = self.client.gather(list(begun.values()))
            return found

        places = np.concatenate([np.flatnonzero(home == number) for number in homes])
        return join_chunks(repeated(attempt)).take(np.argsort(places))

    def _leaf(self, function: Callable[..., Any], number: int, *arguments: Any) -> Any:
        """Return the delayed ``function(part, number, *arguments)`` of one partition."""
        import dask

        leaf = dask.delayed(function, pure=False)
        return leaf(self.parts[number], int(number), *arguments)

    def _begun(self, leaves: dict[int, Any]) -> dict[int, Any]:
        """Return the futures of some partitions' leaves, each computed where its partition is.

        The scheduler's own choice evens out the load by moving partitions, which takes longer.
        """
        homes = self._homes()
        return {
            number: self.client.compute(leaf, workers=homes[number], allow_other_workers=True)
            for number, leaf in leaves.items()
        }

    def _homes(self) -> list[list[str]]:
        """Return the workers of each partition: those that hold it, or one shared with neighbours.

        Sums of neighbouring partitions are added first, so that most of them stay on their worker.
        """
        threads, holders = worker_threads(self.client), self.client.who_has()
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

    def _keys(self) -> set[Any]:
        """Return the keys of all tasks that partitions are made by."""
        graphs: dict[int, Any] = {}
        for part in self.parts:
            for piece in part if isinstance(part, tuple) else (part,):
                graph = {} if piece is None else piece.dask
                graphs[id(graph)] = graph
        return {key for graph in graphs.values() for key in graph}

    def _added(self, leaves: dict[int, Any], count: Callable[[int], None]) -> Any:
        """Return the sum of the leaves, added along a tree; their results are released early.

        Parameters
        ----------
        leaves : dict from int to Delayed
            By the numbers of their partitions.
        count : callable
            Called with the number of each finished partition.
        """
        import dask
        from distributed import as_completed

        begun = self._begun(leaves)
        numbers = {future.key: number for number, future in begun.items()}
        join, level = dask.delayed(_joined, pure=False), list(begun.values())
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        own = {*numbers, *({} if len(begun) == 1 else level[0].dask)}
        root = level[0] if len(begun) == 1 else self.client.compute(level[0])
        unfinished = {future.key: future for future in (*begun.values(), root)}
        waiting = as_completed(list(begun.values()))
        del begun, level  # a future that is referred to keeps its result on the workers
        try:
            with watched(self.client, unfinished, lambda: self._keys() | own):
                for future in waiting:
                    if future is not root:
                        del unfinished[future.key]
                    if future.status == "finished":
                        count(numbers[future.key])
                return root.result()
        finally:
            future = root = None  # an error keeps this frame


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


def _chunk(raw: Any, number: int, reading: Reading) -> Chunk:
    return as_chunk(raw, f"partition {number}", reading)


@dataclass(frozen=True)
class _Description:
    """Width and type of a partition, the targets of its first rows, names of columns, traits."""

    n_features: int
    dtype: np.dtype[Any]
    sparse: bool
    targets: Any
    names: Names
    traits: tuple[str, ...]


def _described(raw: Any, number: int, reading: Reading) -> _Description:
    chunk = _chunk(raw, number, reading)
    sparse = sp.issparse(chunk.X)
    dtype = np.dtype(np.float64) if reading.is_table and not sparse else chunk.X.dtype
    shown = None if chunk.y is None else chunk.y[:SHOWN_ROWS]
    names = block_names(raw)
    return _Description(chunk.X.shape[1], dtype, sparse, shown, names, traits(chunk, names))


def _looked(
    raw: Any, number: int, reading: Reading, encoder: TableEncoder, first: tuple[str, ...]
) -> Look:
    chunk = _chunk(raw, number, reading)
    check_traits(chunk, block_names(raw), first)
    return Look.at(chunk, encoder)


def _surveyed(
    raw: Any, number: int, reading: Reading, kind: Kind | None, first: tuple[str, ...]
) -> Survey:
    given = _chunk(raw, number, replace(reading, schema=None))
    check_traits(given, block_names(raw), first)
    chunk = reading.numbers(given)
    return Survey.of(chunk.X, chunk.y, chunk.sample_weight, kind)


def _summed(raw: Any, number: int, reading: Reading, job: Job[Part], start: int) -> Part:
    """Return the sum over one partition, in blocks that fit in the memory of the worker."""
    chunk = _chunk(raw, number, reading)
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


def _taken(raw: Any, number: int, reading: Reading, rows: npt.NDArray[np.intp]) -> Chunk:
    return _chunk(raw, number, reading).take(rows)


def _joined(first: Part, second: Part) -> Part:
    """Return the sum of two sums, which stay unchanged: Dask may need them again."""
    return deepcopy(first).__iadd__(second)
