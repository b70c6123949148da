"""Progress of long fits: scikit-learn's callbacks where they exist, a terminal line on request.

The engine knows one verb, :meth:`Progress.stage`; who listens is decided by the shell.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

try:  # scikit-learn 1.9 and newer
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin, which this version does not have."""

    def with_callbacks(method: Any) -> Any:
        """Return `method` as it is: this scikit-learn has no callbacks to manage."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "progress_of", "with_callbacks"]

Advance = Callable[[int], None]


class Progress:
    """Tells its listeners about passes over the rows; silent when it has none.

    Attributes
    ----------
    passes : int
        How often all rows were gone through.
    """

    def __init__(self, *listeners: Any) -> None:
        self._listeners = listeners
        self.passes = 0

    def aside(self) -> Progress:
        """Return the progress of work on some of the rows only, which is no pass."""
        return Progress(*self._listeners)

    @contextmanager
    def stage(self, name: str, n_rows: int, n_blocks: int) -> Iterator[Advance]:
        """Open a pass over `n_rows` rows; call what it yields with the rows of each block."""
        with ExitStack() as stack:
            hooks = [
                stack.enter_context(listener.stage(name, n_rows, n_blocks))
                for listener in self._listeners
            ]

            def advance(rows: int) -> None:
                for hook in hooks:
                    hook(rows)

            yield advance


class _TerminalLine:
    """One line per pass on standard error: rows, seconds, what is being done."""

    def __init__(self, name: str, keep: bool) -> None:
        self._name = name
        self._keep = keep
        self._live = sys.stderr.isatty()

    @contextmanager
    def stage(self, name: str, n_rows: int, n_blocks: int) -> Iterator[Advance]:
        start, done = time.perf_counter(), 0

        def line() -> str:
            seconds = time.perf_counter() - start
            return f"[{self._name}] {name}: {done:,} of {n_rows:,} rows, {seconds:.1f} s"

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            if self._live:
                sys.stderr.write("\r\033[K" + line())
                sys.stderr.flush()

        yield advance
        if self._live:
            sys.stderr.write("\n")
        elif self._keep:
            sys.stderr.write(line() + "\n")
        sys.stderr.flush()


class _CallbackTasks:
    """Every pass is a task of scikit-learn's callback tree, every block a leaf of it.

    A callback's wish to stop is not followed: a fit on some of the blocks would be a
    silently different model.
    """

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator = estimator
        self._context = context

    @contextmanager
    def stage(self, name: str, n_rows: int, n_blocks: int) -> Iterator[Advance]:
        task = self._context.subcontext(task_name=name, max_subtasks=n_blocks)
        task.call_on_fit_task_begin(estimator=self._estimator)

        def advance(rows: int) -> None:
            leaf = task.subcontext(task_name="block")
            leaf.call_on_fit_task_begin(estimator=self._estimator)
            leaf.call_on_fit_task_end(estimator=self._estimator)

        yield advance
        task.call_on_fit_task_end(estimator=self._estimator)


@contextmanager
def progress_of(estimator: Any, X: Any, y: Any) -> Iterator[Progress]:
    """Open the progress of one fit of `estimator`: its callbacks, its `verbose`, both or none.

    ``verbose=1`` keeps a live line on a terminal and stays silent elsewhere; from
    ``verbose=2`` on every finished pass also leaves a line in pipes and log files.
    """
    listeners: list[Any] = []
    if estimator.verbose:
        listeners.append(_TerminalLine(type(estimator).__name__, keep=estimator.verbose > 1))
    context = None
    if hasattr(estimator, "_init_callback_context"):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        listeners.append(_CallbackTasks(estimator, context))
    yield Progress(*listeners)
    if context is not None:
        context.call_on_fit_task_end(
            estimator=estimator,
            X=X,
            y=y,
            reconstruction_attributes={},  # the estimator carries them all by now
        )
