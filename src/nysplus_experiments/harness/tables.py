"""Write numbers as text, and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nysplus_experiments.harness.statistics import Estimate, median_range

if TYPE_CHECKING:
    import pandas as pd

#: Text of a number that is missing.
MISSING = "–"


def short(value: float) -> str:
    """Write a number with two or three digits and no exponent.

    >>> short(0.01234), short(3.14159), short(1234.5), short(float("nan"))
    ('0.012', '3.1', '1234', '–')
    """
    if not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


def spread(values: Iterable[float], write: Callable[[float], str] = short) -> str:
    """Write "median [smallest, largest]", or the number alone where there is one."""
    known = [value for value in values if not math.isnan(value)]
    median, low, high = map(write, median_range(known))
    return median if len(known) < 2 else f"{median} [{low}, {high}]"


def size(n_bytes: float) -> str:
    """Write a number of bytes.

    >>> size(212_992), size(3_100_000)
    ('208 kB', '3.0 MB')
    """
    if not math.isfinite(n_bytes):
        return MISSING
    return f"{n_bytes / 2**20:.1f} MB" if n_bytes >= 2**20 else f"{n_bytes / 2**10:.0f} kB"


def percent(accuracy: float) -> str:
    """Write an accuracy with two decimals."""
    return f"{accuracy:.2f}" if math.isfinite(accuracy) else MISSING


def interval(
    value: Estimate, decimals: int | None = None, sign: bool = False, unit: str = ""
) -> str:
    """Write "mean [low, high]"; by default with two to four decimals, two figures if small."""
    if decimals is None:
        small = 0.0 < abs(value.mean) < 0.1
        decimals = min(4, 1 - math.floor(math.log10(abs(value.mean)))) if small else 2
    spec = f"{'+' if sign else ''}.{decimals}f"
    mean = f"{value.mean:{spec}}{f' {unit}' if unit else ''}"
    if not value.has_interval:
        return mean
    return f"{mean} [{value.low:{spec}}, {value.high:{spec}}]"


def count(number: int, noun: str) -> str:
    """Write a number with its noun, as in "1 trial" or "5 trials"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def frame_markdown(frame: pd.DataFrame, index: bool = False) -> str:
    """Return a table of pandas in Markdown, cells as `str` has them."""
    table = frame.reset_index() if index else frame
    return markdown([str(name) for name in table.columns], table.astype(str).to_numpy().tolist())


def machine(environment: Mapping[str, Any]) -> str:
    """Return a sentence on the machine and the versions of a file of results."""
    versions = environment["versions"]
    named = ("nysplus", "numpy", "scikit-learn")
    listed = ", ".join(f"{name} {versions[name]}" for name in named if name in versions)
    return (
        f"Made on {environment['cores']} cores of {environment['processor']} "
        f"({environment['system']}), Python {environment['python']}, {listed}."
    )
