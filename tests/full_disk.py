"""Disks without space."""

from __future__ import annotations

import errno
import os
import resource
import signal
from contextlib import contextmanager


@contextmanager
def full_disk(monkeypatch, how, size=0):
    """Let files grow to `size` bytes only, or let a function of the system find the disk full."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if how != "limit":
        with monkeypatch.context() as patched:
            patched.setattr(os, how, full)
            yield
        return
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
