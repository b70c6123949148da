"""Kernels of the ℓ1 distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.metrics import pairwise

from nysplus._rows.blocks import RowBlocks
from nysplus._typing import Float
from nysplus.kernels.base import _median_distance, _Width, feature_pairs


@dataclass(repr=False, eq=False)
class Laplacian(_Width):
    """Laplacian kernel ``exp(−γ‖x − z‖₁)``.

    Parameters
    ----------
    gamma : "scale", "median", None or float, default="scale"
        "scale": ``1 / (d · Std(X))``, since the distance grows with the values themselves;
        "median": ``1 / m`` with m the median distance; None: ``1 / d``.
    """

    @property
    def unit_diagonal(self) -> bool:
        """True."""
        return True

    @property
    def of_differences(self) -> bool:
        """True."""
        return True

    @property
    def separable(self) -> Literal["product", "sum"] | None:
        """A product over the features."""
        return "product"

    def per_feature(self, X: Any, Z: Any) -> Float:
        """Return ``exp(−γ|x − z|)`` of each feature."""
        x, z = feature_pairs(X, Z)
        factors: Float = np.exp(-self.width * np.abs(x - z))
        return factors

    def evaluate(self, X: Any, Z: Any) -> Float:
        """Return the kernel matrix."""
        K: Float = pairwise.laplacian_kernel(X, Z, gamma=self.width)
        return K.astype(X.dtype, copy=False)

    def _scale(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        deviation = np.sqrt(blocks.variance())
        return float(1.0 / (blocks.n_features * deviation)) if deviation > 0 else 1.0

    def _median(self, blocks: RowBlocks, rng: np.random.RandomState) -> float:
        length = _median_distance(blocks, rng, "cityblock")
        return 1.0 / length if length > 0 else 1.0
