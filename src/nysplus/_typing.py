"""Types that several rooms share."""

from __future__ import annotations

from typing import Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.floating]

Rows = slice | npt.NDArray[np.intp]

# What an estimator predicts: a classifier classes (or labels), a regressor values.
Kind = Literal["classes", "values"]

# What the targets of some rows are: a class each, any number of labels each, or numbers.
TargetKind = Literal["classes", "labels", "values"]


class Additive(Protocol):
    """A sum over rows: moments, surveys, lists of rows and arrays of numbers."""

    def __iadd__(self, other: Self, /) -> Self:
        """Add the sum over other rows in place."""
