"""Merge pairs of landmarks of the RBF kernel."""

from __future__ import annotations

import numpy as np

from nysplus._typing import Float
from nysplus.kernels import Kernel

# Points between two landmarks that are tried for the merged one, as shares of the way.
SEGMENT = np.linspace(0.0, 1.0, 11)


def merged(kernel: Kernel, Z: Float, A: Float, n: int) -> Float:
    """Merge landmarks until `n` remain, as in training on a budget (Wang et al. 2012).

    The landmark of the smallest coefficients and a second landmark are replaced by a point between
    them. Second landmark and point have the least cost in the norm of the kernel's space.
    O(k (d + L)) for each of k landmarks.

    Parameters
    ----------
    kernel : Kernel
        RBF: along the segment of two landmarks it is a power of its value at the ends.
    Z : ndarray of shape (k, d)
    A : ndarray of shape (k, L)
        Coefficients.
    n : int
        Number of remaining landmarks.
    """
    Z, A = Z.astype(np.float64), A.astype(np.float64)
    sizes, left = np.einsum("ij,ij->i", A, A), np.ones(len(Z), dtype=bool)
    for _ in range(len(Z) - n):
        i = int(np.where(left, sizes, np.inf).argmin())
        near, products = kernel(Z, Z[i : i + 1]), (A @ A[i])[:, None]
        to_i, to_j = near ** (1.0 - SEGMENT) ** 2, near**SEGMENT**2
        both = sizes[i] + sizes[:, None] + 2.0 * near * products
        lost = both - to_i**2 * sizes[i] - to_j**2 * sizes[:, None] - 2.0 * to_i * to_j * products
        left[i] = False
        lost[~left] = np.inf
        j, best = np.unravel_index(int(lost.argmin()), lost.shape)
        Z[j] += SEGMENT[best] * (Z[i] - Z[j])
        A[j] = to_i[j, best] * A[i] + to_j[j, best] * A[j]
        sizes[j] = A[j] @ A[j]
    return Z[left]
