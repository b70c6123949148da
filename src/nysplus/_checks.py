"""Checks of single parameters, for every object that has some."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np


def is_count(value: Any) -> bool:
    """Return whether `value` is an integer, of any type that stands for one."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def check_count(name: str, value: Any, at_least: int = 1, optional: bool = False) -> None:
    """Raise unless `value` is an integer of at least `at_least`, or None where that may be."""
    if value is None and optional:
        return
    if not is_count(value) or value < at_least:
        allowed = f"an integer of at least {at_least}" + (" or None" if optional else "")
        raise ValueError(f"{name}={value!r} must be {allowed}.")
