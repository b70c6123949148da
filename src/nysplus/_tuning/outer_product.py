"""The average gradient outer product of a fitted function, and the linear map it defines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.utils.extmath import safe_sparse_dot

from nysplus._rows.projected import project
from nysplus._rows.slicing import row_slices
from nysplus._runtime.threads import in_threads, thread_count
from nysplus._typing import Float
from nysplus.expansion import KernelExpansion

# Least weight of a direction, in units of the mean weight: none is lost for good after a round.
FLOOR = 1e-3


def gradient_outer_product(
    expansion: KernelExpansion,
    X: Any,
    weight: Float | None = None,
    diagonal_only: bool = False,
) -> Float:
    """Return the average gradient outer product ``mean_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ``.

    O(N L r (n + r)) time, or O(N L r n) for the diagonal of a function without a projection or
    with a diagonal one; O(r² + block) memory.

    Parameters
    ----------
    expansion : KernelExpansion
        With a differentiable kernel, and without a centre. If it has a projection P, gradients are
        still taken in the coordinates of X.
    X : ndarray or CSR matrix of shape (N, d)
    weight : ndarray of shape (N,), optional
        Weight of each row in the mean.
    diagonal_only : bool
        Whether to return only the mean squares of the partial derivatives.

    Returns
    -------
    ndarray of shape (d, d), or (d,) if `diagonal_only`
    """
    P = expansion.projection
    squares = diagonal_only and (P is None or P.ndim == 1)
    n, r = expansion.landmarks.shape
    mass = X.shape[0] if weight is None else float(weight.sum())

    def part(rows: slice) -> Float:
        own = None if weight is None else weight[rows]
        return _gradient_sum(expansion, X[rows], own, squares)

    total = np.zeros(r if squares else (r, r))
    sums_bytes = (thread_count() + 2) * total.nbytes
    row_bytes = 8 * (2 * n + 3 * r + X.shape[1])
    for addend in in_threads(part, row_slices(X.shape[0], row_bytes, held=sums_bytes)):
        total += addend
    total /= mass
    # ∇f(x) = P ∇g(xP) where f(x) = g(xP)
    if P is None:
        return total
    if P.ndim == 1:
        return P**2 * total if squares else P[:, None] * total * P
    return np.einsum("ij,jk,ik->i", P, total, P) if diagonal_only else P @ total @ P.T


def _gradient_sum(expansion: KernelExpansion, X: Any, weight: Float | None, squares: bool) -> Float:
    """Return ``Σ_i w_i Σ_c g gᵀ`` of a block, or its diagonal, in the landmarks' coordinates."""
    r = expansion.landmarks.shape[1]
    total: Float = np.zeros(r if squares else (r, r))
    for G in row_gradients(expansion, X, weight):
        total += np.einsum("ij,ij->j", G, G) if squares else G.T @ G
    return total


def row_gradients(
    expansion: KernelExpansion, X: Any, weight: Float | None = None
) -> Iterator[Float]:
    """Yield the gradients of each output at each row, in the landmarks' coordinates.

    They are those of ``k(u, Z)A`` by u, of shape (N, r), times the square roots of the weights.

    Parameters
    ----------
    expansion : KernelExpansion
        With a differentiable kernel, and without a centre.
    X : ndarray or CSR matrix of shape (N, d)
    weight : ndarray of shape (N,), optional
    """
    A = expansion.dual_coef
    X, Z = X.astype(A.dtype, copy=False), expansion.landmarks.astype(A.dtype, copy=False)
    if expansion.projection is not None:
        X = project(X, expansion.projection)
    slopes = expansion.kernel.slopes(X, Z)
    if weight is not None:
        slopes *= np.sqrt(weight)[:, None]
    X = X.toarray() if sp.issparse(X) else X
    if not sp.issparse(Z):
        # x − z stays the same, but does not cancel if all rows lie far from the origin
        shift = Z.mean(axis=0)
        X, Z = X - shift, Z - shift
    sums = slopes @ A
    for c in range(A.shape[1]):
        # Σ_j a_jc σ_j (x − z_j), for every row
        G = sums[:, c, None] * X
        G -= safe_sparse_dot(slopes * A[:, c], Z)
        yield G


def metric_of(M: Float, kind: str | int) -> Float:
    """Return the linear map whose squared distances are ``(x − z)ᵀ M (x − z)``.

    M is first scaled to a trace of d, and 1e-3 is added to its diagonal.

    Parameters
    ----------
    M : ndarray of shape (d, d), or (d,) for its diagonal alone
    kind : "diagonal", "full" or int
        "diagonal": the square root of the diagonal, of shape (d,); "full": the symmetric square
        root, of shape (d, d); a number: that many eigenvectors of the largest eigenvalues, times
        the square roots of the eigenvalues, of shape (d, kind).
    """
    d = len(M)
    diagonal = np.diagonal(M) if M.ndim == 2 else M
    trace = float(diagonal.sum())
    # a constant function has no gradient: all directions get the same weight
    scale = d / trace if trace > 0 else 0.0
    if kind == "diagonal":
        return np.sqrt(scale * diagonal + FLOOR if scale else np.ones(d))
    S = scale * M if scale else np.eye(d)
    S.flat[:: d + 1] += FLOOR
    values, vectors = eigh(S, check_finite=False)
    roots = np.sqrt(np.maximum(values, 0.0))
    if kind == "full":
        root: Float = (vectors * roots) @ vectors.T
        return root
    strongest = np.arange(d)[::-1][: int(kind)]
    directions: Float = vectors[:, strongest] * roots[strongest]
    return directions
