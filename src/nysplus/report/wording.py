"""Sizes, names and labels as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def size_text(n_bytes: int) -> str:
    """Return a number of bytes as text, where 1 kB is 1024 bytes."""
    if n_bytes < 1024:
        return f"{n_bytes} bytes"
    if n_bytes < 1024**2:
        return f"{n_bytes / 1024:.1f} kB"
    return f"{n_bytes / 1024**2:.1f} MB"


def few(names: Iterable[Any], most: int = 20) -> str:
    """Return the first names as text."""
    listed = [str(name) for name in names]
    more = f" … ({len(listed):,} in total)" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def as_texts(labels: Array) -> Array:
    """Return labels as texts, which are the same for 1, 1.0 and "1"."""
    if labels.dtype.kind == "b":
        return np.where(labels, "true", "false")
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
        labels = labels.astype(np.int64)
    texts: Array = labels.astype(str)
    return texts


def signed(value: float) -> str:
    """Return a number of three digits with its sign."""
    return f"{value:+#.3g}".rstrip(".").replace("-", "−")


def plain(value: float) -> str:
    """Return a number of five digits."""
    return f"{value:.5g}".replace("-", "−")
