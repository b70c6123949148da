"""Progress of long fits: scikit-learn's callbacks where they exist, a terminal line on request.

The engine knows one verb, :meth:`Progress.stage`; who listens is decided by the shell.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

# Characters of a full bar, and seconds that a line stands before it is written anew.
BAR_WIDTH = 20
SECONDS_SHOWN = 0.1


try:  # scikit-learn 1.9 and newer
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # one of the two exists
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

    def note(self, text: str) -> None:
        """Tell something that is no pass."""
        for listener in self._listeners:
            listener.note(text)

    def aside(self) -> Progress:
        """Return the progress of work on some of the rows only, which is no pass."""
        return Progress(*self._listeners)

    @contextmanager
    def stage(self, name: str, n_rows: int | None, n_blocks: int | None) -> Iterator[Advance]:
        """Open a pass; call what it yields with the rows of each block.

        `n_rows` and `n_blocks` say how many are to come, None where nobody knows yet.
        """
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
    """One line per pass on standard error: what is being done, a bar, rows, seconds, speed."""

    def __init__(self, name: str, keep: bool) -> None:
        self._name = name
        self._keep = keep
        self._live = sys.stderr.isatty()

    @contextmanager
    def stage(self, name: str, n_rows: int | None, n_blocks: int | None) -> Iterator[Advance]:
        start, shown, done = time.perf_counter(), 0.0, 0

        def line() -> str:
            seconds = time.perf_counter() - start
            of = "" if n_rows is None else f" of {n_rows:,}"
            speed = done / max(seconds, 1e-9)
            text = f"{name}:{bar()} {done:,}{of} rows, {seconds:.1f} s, {speed:,.0f} rows/s"
            if n_rows is None or not 0 < done < n_rows:
                return text
            return f"{text}, about {(n_rows - done) / speed:.0f} s left"

        def bar() -> str:
            if not self._live or not n_rows:
                return ""
            full = min(BAR_WIDTH * done // n_rows, BAR_WIDTH)
            return " " + "━" * full + "╌" * (BAR_WIDTH - full)

        def advance(rows: int) -> None:
            nonlocal done, shown
            done += rows
            if self._live and time.perf_counter() - shown >= SECONDS_SHOWN:
                shown = time.perf_counter()
                self._write("\r\033[K", line(), "")

        yield advance
        self._finish(line())

    def note(self, text: str) -> None:
        """Write a line of its own."""
        self._finish(text)

    def _finish(self, text: str) -> None:
        if self._live:
            self._write("\r\033[K", text, "\n")
        elif self._keep:
            self._write("", text, "\n")

    def _write(self, before: str, text: str, after: str) -> None:
        sys.stderr.write(f"{before}[{self._name}] {text}{after}")
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
    def stage(self, name: str, n_rows: int | None, n_blocks: int | None) -> Iterator[Advance]:
        task = self._context.subcontext(task_name=name, max_subtasks=n_blocks)
        task.call_on_fit_task_begin(estimator=self._estimator)

        def advance(rows: int) -> None:
            leaf = task.subcontext(task_name="block")
            leaf.call_on_fit_task_begin(estimator=self._estimator)
            leaf.call_on_fit_task_end(estimator=self._estimator)

        yield advance
        task.call_on_fit_task_end(estimator=self._estimator)

    def note(self, text: str) -> None:
        """Do nothing: callbacks follow tasks."""


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
