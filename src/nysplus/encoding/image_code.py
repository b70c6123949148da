"""The code E of images: their first cosines, by a formula without numbers of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._typing import Float

# Images that are encoded together: their numbers in float64 stay in a core's cache.
BLOCK_ROWS = 256


def cosines(n: int, k: int) -> Float:
    """Return the first k of n cosines as the columns of a matrix of shape (n, k).

    ``M_ij = √((1 + [j > 0]) / n) · cos(π (i + ½) j / n)``, the orthonormal DCT-II.

    Parameters
    ----------
    n : int
    k : int
        At most n.
    """
    i, j = np.arange(n)[:, None], np.arange(k)
    M: Float = np.sqrt((1.0 + (j > 0)) / n) * np.cos(np.pi * (i + 0.5) * j / n)
    return M


@dataclass(frozen=True)
class ImageCode:
    """The first cosines of images: ``x ↦ M_hᵀ x M_w`` of each channel.

    Rows are images of shape `shape`, and codes images of shape `code_shape`, both flattened in C
    order.

    Attributes
    ----------
    shape : tuple of int
        Height, width and number of channels.
    n_cosines : int
        Cosines along each axis, of an axis of fewer pixels all of them.
    """

    shape: tuple[int, int, int]
    n_cosines: int

    n_bytes = 0

    @property
    def code_shape(self) -> tuple[int, int, int]:
        """Cosines along the height and along the width, and number of channels."""
        height, width, channels = self.shape
        return min(self.n_cosines, height), min(self.n_cosines, width), channels

    @property
    def n_inputs(self) -> int:
        """Number of raw columns: pixels times channels."""
        height, width, channels = self.shape
        return height * width * channels

    @property
    def n_columns(self) -> int:
        """Number of code columns."""
        first, second, channels = self.code_shape
        return first * second * channels

    @property
    def axes(self) -> tuple[Float, Float]:
        """M_h and M_w, the cosines along each axis."""
        first, second, _ = self.code_shape
        return cosines(self.shape[0], first), cosines(self.shape[1], second)

    def __call__(self, X: Any, dtype: npt.DTypeLike = np.float32) -> Float:
        """Return the code columns of images of shape (N, n_inputs). O(N k h w).

        They are computed in float64 and rounded to `dtype`, in blocks, in which sparse rows become
        dense.
        """
        along_height, along_width = self.axes
        code: Float = np.empty((X.shape[0], self.n_columns), dtype=dtype)
        for start in range(0, len(code), BLOCK_ROWS):
            some = X[start : start + BLOCK_ROWS]
            pixels = some.toarray() if sp.issparse(some) else np.asarray(some)
            images = pixels.astype(np.float64).reshape(-1, *self.shape)
            with np.errstate(over="ignore", invalid="ignore"):
                found = _transformed(images, along_height, along_width)
                code[start : start + BLOCK_ROWS] = found.reshape(len(images), -1)
        return code

    def images(self, code: Float) -> Float:
        """Return the smallest images of some code columns, flattened, in float64.

        They have the given code, because the cosines are orthonormal.
        """
        along_height, along_width = self.axes
        codes = code.astype(np.float64).reshape(-1, *self.code_shape)
        return _transformed(codes, along_height.T, along_width.T).reshape(len(codes), -1)

    def same(self, other: Any) -> bool:
        """Return whether another code gives the same columns."""
        return (
            isinstance(other, ImageCode)
            and self.shape == other.shape
            and self.code_shape == other.code_shape
        )


def _transformed(images: Float, first: Float, second: Float) -> Float:
    """Return ``firstᵀ x second`` of each channel of images of shape (N, h, w, channels)."""
    wide = np.tensordot(images, second, axes=(2, 0))
    both = np.tensordot(wide, first, axes=(1, 0))  # of shape (N, channels, second, first)
    found: Float = both.transpose(0, 3, 2, 1)
    return found
