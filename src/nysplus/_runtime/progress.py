"""Report the progress of long fits, to scikit-learn's callbacks and to a terminal.

The engine calls :meth:`Progress.stage` and :meth:`Progress.note`; the estimators decide who
listens.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from nysplus._runtime.record import FitRecord

# Characters of a full bar.
BAR_WIDTH = 20
# Least time between two updates of a line: faster than this nobody reads.
SECONDS_SHOWN = 0.1


try:  # scikit-learn 1.9 and newer
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # one of the two exists
        """Stand in for scikit-learn's mixin, which older versions do not have."""

    def with_callbacks(method: Any) -> Any:
        """Return `method` unchanged: older versions have no callbacks to manage."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "Progress",
    "listening",
    "progress_lines",
    "progress_of",
    "with_callbacks",
]

Advance = Callable[[int], None]

_listeners: ContextVar[tuple[Any, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Any) -> Iterator[None]:
    """Report all fits inside the context to `listener`, which has the methods of `Progress`."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


class Progress:
    """Report passes over the rows to some listeners, or to none.

    Attributes
    ----------
    passes : int
        Number of passes over all rows so far.
    record : FitRecord
        What was compared so far, and the seconds of the stages.
    """

    def __init__(self, *listeners: Any, record: FitRecord | None = None) -> None:
        self._listeners = listeners
        self.passes = 0
        self.record = FitRecord() if record is None else record

    def note(self, text: str) -> None:
        """Report a line of text."""
        for listener in self._listeners:
            listener.note(text)

    def aside(self) -> Progress:
        """Return the progress of work on a part of the rows, which counts as no pass."""
        return Progress(*self._listeners, record=self.record)

    @contextmanager
    def stage(self, name: str, n_rows: int | None, n_blocks: int | None) -> Iterator[Advance]:
        """Open a pass, and yield a function to call with the number of rows of each block.

        Parameters
        ----------
        name : str
        n_rows, n_blocks : int or None
            Numbers of rows and blocks of the pass; None where they are not known yet.
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
    """Write a line per pass to standard error: its name, a bar, rows, seconds, speed."""

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
    """Report every pass as a task of scikit-learn's callbacks, and every block as a subtask.

    A callback that asks the fit to stop is ignored: a fit to a part of the blocks would be a
    different model without notice.
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


def _callback_context(estimator: Any) -> Any:
    """Return the root task of the callbacks of a fit, or None before scikit-learn 1.9.

    The underscore is scikit-learn's: its documentation of `CallbackSupportMixin` names this method
    for estimators to call at the beginning of `fit`, and there is no other one.
    """
    if not hasattr(estimator, "_init_callback_context"):
        return None
    return estimator._init_callback_context(max_subtasks=None)


def _lines(estimator: Any) -> list[Any]:
    """Return the listeners of the context, and the one that `verbose` asks for."""
    if not estimator.verbose:
        return [*_listeners.get()]
    line = _TerminalLine(type(estimator).__name__, keep=estimator.verbose > 1)
    return [*_listeners.get(), line]


def progress_lines(estimator: Any) -> Progress:
    """Return the progress of work after a fit of `estimator`, for its `verbose` alone."""
    return Progress(*_lines(estimator))


@contextmanager
def progress_of(estimator: Any, X: Any, y: Any) -> Iterator[Progress]:
    """Open the progress of one fit of `estimator`, for its callbacks and its `verbose`.

    ``verbose=1`` updates a line on a terminal and writes nothing elsewhere; ``verbose=2`` also
    writes a line for every finished pass to pipes and log files.
    """
    listeners = _lines(estimator)
    context = _callback_context(estimator)
    if context is not None:
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        listeners.append(_CallbackTasks(estimator, context))
    yield Progress(*listeners)
    if context is not None:
        context.call_on_fit_task_end(
            estimator=estimator,
            X=X,
            y=y,
            reconstruction_attributes={},  # the estimator has all fitted attributes by now
        )
