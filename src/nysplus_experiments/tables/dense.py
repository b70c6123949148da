"""Frames as matrices for linear models, kernels and networks, and their weights in 8 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nysplus_experiments.harness.raw_tables import nominal_columns
from nysplus_experiments.tables.pipelines import preprocessing
from nysplus_experiments.tables.system import Rows

#: Bytes of a float32 number, and of a nominal column (its kind and its levels).
NUMBER_BYTES, NOMINAL_BYTES = 4, 2


@dataclass(frozen=True)
class DenseCode:
    """Standardised numbers, the median and a flag for gaps, one column a level.

    A number takes a scale; its mean is part of the intercept, or of the landmarks. A column with
    gaps takes its median as well. Names of levels are not counted: rows come with their numbers.
    """

    transformer: Any
    n_columns: int
    n_bytes: int

    @classmethod
    def of(cls, rows: Rows) -> DenseCode:
        """Learn the scales from training rows."""
        transformer = preprocessing().fit(rows.X)
        nominal = nominal_columns(rows.X)
        numbers = rows.X.drop(columns=nominal)
        scales = numbers.shape[1] + int(numbers.isna().any().sum())
        n_bytes = NUMBER_BYTES * scales + NOMINAL_BYTES * len(nominal)
        return cls(transformer, transformer.transform(rows.X[:1]).shape[1], n_bytes)

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the matrix of a frame."""
        return np.asarray(self.transformer.transform(frame))


def int8(weights: np.ndarray) -> np.ndarray:
    """Return weights rounded to 8 bits with one scale a column (an output of a layer)."""
    scale = np.abs(weights).max(axis=0) / 127
    scale = np.where(scale > 0, scale, 1.0).astype(np.float32)
    return np.asarray(np.round(weights / scale) * scale)
