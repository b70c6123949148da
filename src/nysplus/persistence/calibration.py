"""Bounds of prediction sets and quantiles of similarity as JSON, and back, all checked.

All are small tables of float32, written as Base64 into the header: versions that do not know them
ignore them. Directions of least variance have an entry of their own, so that files of models
without them are as before.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

from nysplus._rows.target_codes import TargetCode
from nysplus.conformal import (
    LEVELS,
    N_DIRECTIONS,
    NOVELTY_LEVELS,
    SOURCES,
    Calibration,
    Directions,
    Novelty,
)
from nysplus.persistence.parameters import entry, require


def calibration_out(calibration: Calibration | None) -> dict[str, Any] | None:
    """Return the bounds of prediction sets or intervals as JSON."""
    if calibration is None:
        return None
    return {
        "bounds": _text(calibration.bounds),
        "n_rows": list(calibration.n_rows),
        "class_conditional": calibration.class_conditional,
        "source": calibration.source,
    }


def calibration_in(header: dict[str, Any], code: TargetCode) -> Calibration | None:
    """Return the bounds of which :func:`calibration_out` has written the JSON."""
    if header.get("calibration") is None:
        return None
    record = entry(header, "calibration", dict)
    require(code.kind != "labels", "a calibration belongs to one class per row, or to values.")
    conditional = entry(record, "class_conditional", bool)
    require(not conditional or code.discrete, "class_conditional belongs to classes only.")
    m = len(code.classes) if conditional else 1 if code.discrete else code.n_outputs
    bounds = _numbers(record, "bounds", len(LEVELS) * m).reshape(len(LEVELS), m)
    with np.errstate(invalid="ignore"):  # inf − inf
        ordered = not (np.diff(bounds, axis=0) < 0).any()
    require(ordered and (bounds >= 0).all(), "bounds must not be negative, nor decrease.")
    n_rows, source = entry(record, "n_rows", list), entry(record, "source", str)
    fits = len(n_rows) == m and all(type(n) is int and n >= 1 for n in n_rows)
    require(fits, f"n_rows of a calibration must be {m} positive integers.")
    known = {name: name for name in SOURCES}
    require(source in known, f"source={source[:20]!r} of a calibration is not known.")
    return Calibration(bounds, tuple(n_rows), conditional, known[source])


def novelty_out(novelty: Novelty | None) -> str | None:
    """Return the quantiles of similarity as text."""
    return None if novelty is None else _text(novelty.similarities)


def directions_out(novelty: Novelty | None) -> dict[str, str] | None:
    """Return the directions of least variance as texts, where a novelty has them."""
    if novelty is None or novelty.directions is None:
        return None
    found = novelty.directions
    return {name: _text(getattr(found, name)) for name in ("center", "weights", "distances")}


def novelty_in(header: dict[str, Any], n_columns: int) -> Novelty | None:
    """Return the quantiles of :func:`novelty_out`, with what :func:`directions_out` has written."""
    if header.get("novelty") is None:
        return None
    similarities = _numbers(header, "novelty", len(NOVELTY_LEVELS))
    decreasing = bool((np.diff(similarities) <= 0).all())
    require(decreasing and np.isfinite(similarities).all(), "quantiles of novelty must decrease.")
    return Novelty(similarities, _directions_in(header, n_columns))


def _directions_in(header: dict[str, Any], n_columns: int) -> Directions | None:
    if header.get("directions") is None:
        return None
    record = entry(header, "directions", dict)
    center = _numbers(record, "center", n_columns)
    r = min(N_DIRECTIONS, len(entry(record, "weights", str)) * 3 // 4 // (4 * n_columns))
    weights = _numbers(record, "weights", n_columns * max(r, 1)).reshape(n_columns, -1)
    distances = _numbers(record, "distances", len(NOVELTY_LEVELS))
    finite = np.isfinite(center).all() and np.isfinite(weights).all()
    require(finite, "center and weights of directions must be finite.")
    increasing = bool((np.diff(distances) >= 0).all()) and bool(np.isfinite(distances).all())
    require(increasing and distances[0] >= 0, "distances must be positive and increase.")
    return Directions(center, weights, distances)


def _text(numbers: npt.NDArray[np.float32]) -> str:
    return b64encode(numbers.astype("<f4").tobytes()).decode("ascii")


def _numbers(record: dict[str, Any], name: str, size: int) -> npt.NDArray[np.float32]:
    """Return float32 numbers without NaN from their text."""
    try:
        content = b64decode(entry(record, name, str), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{name} is not Base64.") from error
    require(len(content) == 4 * size, f"{name} must be {size} numbers of 4 bytes.")
    numbers = np.frombuffer(content, dtype="<f4").astype(np.float32)
    require(not np.isnan(numbers).any(), f"{name} has numbers that are no numbers.")
    return numbers
