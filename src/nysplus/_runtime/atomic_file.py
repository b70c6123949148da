"""Write files that exist whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name when the block ends without an error.

    The content goes to a temporary name in the same folder, unique for every write, and is moved
    into place once it is on the disk. A file that exists before stays until then, and after an
    error.

    Parameters
    ----------
    path : str or path
        Replaced if it exists.

    Yields
    ------
    binary file
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to a file as :func:`atomic_write` does."""
    with atomic_write(path) as file:
        file.write(content)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Delete the temporary files of writes to `path` that were killed."""
    path = Path(path)
    for unfinished in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        unfinished.unlink(missing_ok=True)
