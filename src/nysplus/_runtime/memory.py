"""The memory that blocks of rows may take."""

from __future__ import annotations

from sklearn import get_config


def working_bytes() -> int:
    """Return scikit-learn's `working_memory` in bytes."""
    return int(get_config()["working_memory"] * 2**20)
