"""Locks on files, which the system takes back from processes that are killed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":  # pragma: no cover - the other branch is the tested one
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_lock(file: BinaryIO) -> bool:
    """Lock an open file until it is closed; return False where another one has locked it.

    File systems without locks raise an OSError.
    """
    try:
        _lock(file.fileno())
    except (BlockingIOError, PermissionError):
        return False
    return True


def is_linked(file: BinaryIO) -> bool:
    """Return whether an open file still has a name."""
    return os.fstat(file.fileno()).st_nlink > 0


class FileLock:
    """A lock that one owner at a time has, among all threads and processes of a machine.

    The file exists while the lock is held. One that a killed process has left is no obstacle.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def acquire(self) -> bool:
        """Return False where another owner has the lock.

        In a folder that cannot be written to, and on file systems without locks, the lock is
        granted to everyone.
        """
        while True:
            try:
                file = open(self._path, "ab")  # noqa: SIM115  # closed by release
            except OSError:
                return True
            try:
                if not try_lock(file):
                    file.close()
                    return False
            except OSError:
                file.close()
                return True
            if is_linked(file):
                self._file = file
                return True
            file.close()  # its owner has removed it meanwhile

    def release(self) -> None:
        """Give the lock back, and remove its file."""
        if self._file is None:
            return
        if sys.platform == "win32":  # pragma: no cover - the other branch is the tested one
            self._file.close()  # open files cannot be removed, and those of the next owner are not
            with suppress(OSError):
                self._path.unlink()
        else:
            # while it is locked: afterwards the file may be that of the next owner
            with suppress(OSError):  # of a folder that is gone, or no longer writable
                self._path.unlink()
            self._file.close()
        self._file = None
