"""Write files that exist whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nysplus._runtime.file_lock import is_linked, try_lock

# Bytes of the random part of a temporary name.
TOKEN_BYTES = 4


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name when the block ends without an error.

    The content goes to a temporary name in the same folder, unique for every write, and is moved
    into place once it is on the disk. A file that exists before stays until then, and after an
    error; the new one has its permissions. A symbolic link stays, and its target is replaced.
    Temporary files of writes to `path` that were killed are removed.

    Parameters
    ----------
    path : str or path
        Replaced if it exists.

    Yields
    ------
    binary file
    """
    path = Path(os.path.realpath(path))
    before = _regular(path)
    remove_unfinished(path)
    unfinished, file = _begin(path, 0o666 if before is None else stat.S_IMODE(before.st_mode))
    try:
        with file:
            if before is not None:
                _take_over(file, before)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":  # while the lock keeps others from removing it
                os.replace(unfinished, path)
        if os.name == "nt":
            os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell of
            unfinished.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to a file as :func:`atomic_write` does."""
    with atomic_write(path) as file:
        file.write(content)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Delete the temporary files of writes to `path` that were killed, and not of others."""
    path = Path(os.path.realpath(path))
    temporary = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * TOKEN_BYTES}}}\.part")
    with suppress(OSError):  # what cannot be listed or locked stays
        for name in os.listdir(path.parent):
            if temporary.fullmatch(name):
                _remove_if_abandoned(path.with_name(name))


def _remove_if_abandoned(unfinished: Path) -> None:
    """Delete a temporary file unless its writer, which has locked it, is still there."""
    with suppress(OSError), open(unfinished, "rb") as file:
        if try_lock(file):
            unfinished.unlink(missing_ok=True)


def _regular(path: Path) -> os.stat_result | None:
    """Return the attributes of a file, or None if there is none; refuse folders and devices."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is no regular file, and cannot be replaced. Pass another path.")
    return found


def _begin(path: Path, mode: int) -> tuple[Path, BinaryIO]:
    """Create a temporary file beside `path`, and lock it as long as it is open."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(TOKEN_BYTES)}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = open(os.open(unfinished, flags, mode), "wb")  # noqa: SIM115  # closed by the caller
        locked = True
        with suppress(OSError):  # a file system without locks
            locked = try_lock(file)
        if locked and is_linked(file):
            return unfinished, file
        file.close()  # another write has found it unlocked, and removes it


def _take_over(file: BinaryIO, before: os.stat_result) -> None:
    """Give a file the permissions, and if possible the owner, of the one that it replaces."""
    if os.name != "nt":
        with suppress(PermissionError):  # only root gives files to others
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
