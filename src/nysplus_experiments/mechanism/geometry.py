"""Redundancy of landmarks: similarity, effective rank, and the share of a kernel they explain."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, eigvalsh

from nysplus._typing import Float
from nysplus.kernels import Kernel


def nearest_similarity(K: Float) -> float:
    """Return the mean over landmarks of the kernel value with the most similar other landmark."""
    others = K.copy()
    np.fill_diagonal(others, -np.inf)
    return float(others.max(axis=1).mean())


def effective_rank(K: Float) -> float:
    """Return the exponential of the entropy of the eigenvalues of K, scaled to the sum 1.

    It is n for landmarks without any similarity, and 1 for n equal ones.
    """
    values = np.maximum(eigvalsh(K), 0.0)
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def residuals(kernel: Kernel, Z: Float, X: Float) -> Float:
    """Return ``k(x, x) − k̃(x, x)`` of each row: the part that the landmarks do not explain.

    ``k̃(x, x) = k(x, Z) K(Z, Z)⁺ k(Z, x)``; eigenvalues below ``n · eps · λ_max`` are dropped.
    """
    values, vectors = eigh(kernel(Z, Z))
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    features = kernel(X, Z) @ (vectors[:, kept] / np.sqrt(values[kept]))
    found: Float = np.maximum(1.0 - np.einsum("ij,ij->i", features, features), 0.0)
    return found
