"""Merge pairs of landmarks."""

from __future__ import annotations

import numpy as np

from nysplus._typing import Float
from nysplus.kernels import Kernel

# Points between two landmarks that are tried for the one that they are merged to.
SEGMENT = np.linspace(0.0, 1.0, 11)


def merged(kernel: Kernel, Z: Float, A: Float, n: int) -> Float:
    """Merge landmarks until `n` are left, as training on a budget does (Wang et al. 2012).

    The one of the smallest coefficients goes, together with the one that makes it cost least in
    the norm of the kernel's space, to the best point between the two. O(k (d + L)) for each of k
    landmarks.

    Parameters
    ----------
    kernel : Kernel
        RBF: between two landmarks it is a power of the one at its ends.
    Z : ndarray of shape (k, d)
    A : ndarray of shape (k, L)
        Coefficients.
    n : int
        How many are left.
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
