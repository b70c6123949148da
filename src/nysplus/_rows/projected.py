"""Rows behind a map ``x ↦ (x − c)P``, which turns Euclidean distances into those of a metric.

``‖xP − zP‖² = (x − z) PPᵀ (x − z)ᵀ``, so a fit to projected rows is a fit in the metric PPᵀ. The
centre c changes no distance, and keeps the digits of features that are far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._rows.blocks import Block, Blocks, RowBlocks
from nysplus._rows.mapped import MappedBlocks, RowMap
from nysplus._rows.slicing import float_dtype
from nysplus._runtime.memory import working_bytes
from nysplus._typing import Float


def project(X: Any, P: Float | None, center: Float | None = None) -> Any:
    """Return ``(X − c)P`` in the floating type of the rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (b, d)
        Any numeric type.
    P : ndarray of shape (d, r), or (d,) for a diagonal map, or None
        A diagonal keeps sparse rows sparse, a matrix makes them dense.
    center : ndarray of shape (d,), optional
        c, by default zero. It makes sparse rows dense.
    """
    dtype = float_dtype(X.dtype)
    X = X.astype(dtype, copy=False)
    if center is not None:
        X = (X.toarray() if sp.issparse(X) else X) - center.astype(dtype, copy=False)
    if P is None:
        return X
    P = P.astype(dtype, copy=False)
    if P.ndim == 2:
        return X @ P
    if sp.issparse(X):
        return type(X)((X.data * P[X.indices], X.indices, X.indptr), X.shape)
    return X * P


def composed(first: Float | None, second: Float | None) -> Float | None:
    """Return the composition of two maps, `first` before `second`; None stands for no map."""
    if first is None or second is None:
        return second if first is None else first
    if first.ndim == 1:
        return first * second if second.ndim == 1 else first[:, None] * second
    product: Float = first * second if second.ndim == 1 else first @ second
    return product


@dataclass(frozen=True)
class _Projection:
    """The map of a block's rows; a class, so that it can be pickled."""

    projection: Float | None
    center: Float | None

    def __call__(self, block: Block) -> Any:
        return project(block.X, self.projection, self.center)


@dataclass(frozen=True)
class ProjectedBlocks(MappedBlocks):
    """The rows of other blocks behind a map ``x ↦ (x − c)P``.

    Every pass projects its rows in O(N d r), or O(N d) for a diagonal map.

    Parameters
    ----------
    blocks : RowBlocks
    projection : ndarray of shape (d, r), or (d,) for a diagonal map, or None
        P.
    center : ndarray of shape (d,), optional
        c.
    """

    projection: Float | None
    center: Float | None = None

    @property
    def n_features(self) -> int:
        """Number of features r behind the map."""
        return self.blocks.n_features if self.projection is None else self.projection.shape[-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the rows."""
        return self.blocks.dtype

    @property
    def _map(self) -> RowMap:
        return _Projection(self.projection, self.center)


def projected(blocks: RowBlocks, P: Float | None, center: Float | None = None) -> RowBlocks:
    """Return the rows ``(x − c)P`` of a fit, or the rows themselves without a map and a centre.

    Rows in memory are projected at once if the result fits in the working memory: later passes
    are then faster, and every solver can be used. Otherwise every pass projects its rows.
    """
    if P is None and center is None:
        return blocks
    width = blocks.n_features if P is None else P.shape[-1]
    image_bytes = blocks.n_rows * width * blocks.dtype.itemsize
    if isinstance(blocks, Blocks) and image_bytes <= working_bytes():
        return replace(blocks, X=project(blocks.X, P, center))
    return ProjectedBlocks(blocks, P, center)
