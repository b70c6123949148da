"""The training objective at a fitted expansion, in float64 and in blocks.

    J(A, b) = ‖K(X, Z) A + b − Y‖² + ρ tr(Aᵀ K(Z, Z) A)

with targets ±1, one column a class, or one column for two classes.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from nysplus_experiments.speed.peers import Expansion

_BLOCK_ROWS = 4096


def training_objective(
    X: np.ndarray, codes: np.ndarray, expansion: Expansion, gamma: float, rho: float
) -> float:
    """Return J(A, b).

    Parameters
    ----------
    X : ndarray of shape (N, d)
    codes : ndarray of shape (N,)
        Classes as the numbers 0 to L − 1.
    expansion : Expansion
        Z, A and b of a model with the RBF kernel.
    gamma, rho : float
    """
    A = expansion.dual_coef.astype(np.float64)
    # Distances about the landmarks' mean: far from the origin ‖x‖² + ‖z‖² − 2xz cancels.
    center = expansion.landmarks.mean(axis=0, dtype=np.float64)
    Z = expansion.landmarks - center
    classes = np.arange(A.shape[1]) if A.shape[1] > 1 else 1
    total = 0.0
    for first in range(0, len(X), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        scores = rbf_kernel(X[rows] - center, Z, gamma) @ A + expansion.intercept
        Y = np.where(codes[rows, None] == classes, 1.0, -1.0)
        total += float(np.square(scores - Y).sum())
    return total + rho * float(np.einsum("il,il", A, rbf_kernel(Z, Z, gamma) @ A))
