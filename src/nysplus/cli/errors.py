"""Errors that users can mend, and the message after Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CommandError(ValueError):
    """An argument or a file of a command is not allowed; the message says what to do."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C after a file was written; the message names the file."""


@contextmanager
def stopped_after(written: Path) -> Iterator[None]:
    """Tell, if Ctrl-C ends the block, that a file is complete and others are missing."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(f"Stopped. {written} is complete; no other file was written.") from None
