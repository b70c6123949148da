"""Errors that users can mend."""

from __future__ import annotations


class CommandError(ValueError):
    """An argument or a file of a command is not allowed; the message says what to do."""
