"""Fewer landmarks for an expansion: some are removed, the others take over and are moved.

The smaller function f' follows the larger one f in the squared distance

    ``Σ_i w_i ‖f(x_i) − f'(x_i)‖² + ε ‖f − f'‖²_H``,    ``Σ_i w_i = 1``,

over the landmarks of f and, where some are given, over rows. The first term weighs what matters,
the second one, the norm of the kernel's own space, settles what the rows leave open. In this
distance the best coefficients of given landmarks follow from linear equations, and what the removal
of a landmark costs from the inverse of their matrix. Kernels with gradients then have their
landmarks moved by variable projection, all at once.
The intercept stays, so that the two functions agree far from all landmarks as well; except where
f is a small difference of large terms, which few landmarks cannot follow: it is then first
replaced by a function of smaller coefficients, and of another intercept, with the same scores.

Instead of being removed, landmarks of the RBF kernel may be merged with others (:func:`merged`).
Once they have moved, merged ones are sometimes closer to f than those that removals leave,
sometimes farther (``benchmarks/compress.py`` measures both).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nysplus._compression.merging import merged
from nysplus._compression.misfit import (
    ROW_SMOOTHNESS,
    SMOOTHNESS,
    TAMED_JITTER,
    Misfit,
    _indefinite,
)
from nysplus._ridge.fit import in_float32
from nysplus._ridge.path import cholesky
from nysplus._rows.blocks import Blocks
from nysplus._rows.projected import project
from nysplus._rows.slicing import float_dtype
from nysplus._rows.targets import ValueTargets
from nysplus._typing import Float
from nysplus._validation import check_count
from nysplus.expansion import KernelExpansion
from nysplus.kernels import FunctionKernel
from nysplus.landmarks.pivoted_cholesky import pivoted_cholesky

# A function whose smoothness costs more than its scores are worth is replaced by one that has the
# same scores up to this share of their variance, with the largest of these ε that allows it.
SAME_SCORES = 1e-3
RIDGES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# Landmarks that compete to be kept: so many for each, or this many.
SHORTLIST_RATIO, SHORTLIST = 4, 1000
# Removals after which the inverse is updated, by one matrix product.
REMOVALS = 64
# Rows that the smaller model follows: more cost time and change little.
ROWS = 5000

Positions = npt.NDArray[np.intp]


def reduced(
    expansion: KernelExpansion,
    n: int,
    X: Any = None,
    weight: Float | None = None,
    merge: bool = False,
) -> tuple[KernelExpansion, Positions | None]:
    """Return an expansion with fewer landmarks that stays as close to the given one as possible.

    O(b n'² + n'³) for b rows and n' landmarks at first, of which four for each that stays are
    looked at, or 1000; then 30 steps of O(b n² + n³) for kernels with gradients.

    Parameters
    ----------
    expansion : KernelExpansion
        Of a positive semidefinite kernel; of a function it is found out.
    n : int
        Landmarks that stay.
    X : ndarray or CSR matrix of shape (b, d), optional
        Rows on which the two should agree, beside the landmarks; they count for one half, and
        not more than 5000 of them are used.
    weight : ndarray of shape (b,), optional
        Of the rows.
    merge : bool
        Whether landmarks are merged instead of removed: dense ones of the RBF kernel.

    Returns
    -------
    expansion : KernelExpansion
    kept : ndarray of shape (n,), or None
        Which landmarks were kept, if they are where they were.
    """
    kernel, Z = expansion.kernel, expansion.landmarks
    check_number(n, Z.shape[0])
    if n == Z.shape[0]:
        return expansion, np.arange(n)
    if not kernel.positive_semidefinite and not isinstance(kernel, FunctionKernel):
        raise _indefinite(kernel)
    seen = replace(expansion, projection=None, packed=None)
    if X is not None and expansion.projection is not None:
        X = project(X, expansion.projection)
    followed = _followed(Z, X, weight)
    smoothness = SMOOTHNESS if X is None else ROW_SMOOTHNESS
    kept = shortlist(seen, n)
    misfit = Misfit.of(seen, *followed, smoothness)
    if misfit.cancels:
        misfit = Misfit.of(tamed(seen, Z[kept], *followed), *followed, smoothness)
    A, moves = misfit.solve(Z[kept]), kernel.differentiable and not sp.issparse(Z)
    if merge:
        points = merged(kernel, Z[kept], A, n)
    else:
        kept = kept[eliminated(misfit.parts(Z[kept]).M, A, n)[0]]
        points = Z[kept]
    if moves:
        points = misfit.moved(points).astype(float_dtype(Z.dtype))
    double = KernelExpansion(kernel, points, misfit.solve(points), misfit.b)
    rows = misfit.X.astype(expansion.dual_coef.dtype)
    small = in_float32(double, Blocks(rows, ValueTargets(misfit.F)))
    return replace(small, projection=expansion.projection), None if moves else kept


def _followed(Z: Any, X: Any, weight: Float | None) -> tuple[Any, Float]:
    """Return the rows on which the smaller model follows, and their weights, which sum to one.

    Landmarks are spread over what the model knows, rows over what it will be asked: both count for
    one half.
    """
    Z = Z[_spread(Z.shape[0])]
    own = np.full(Z.shape[0], 1.0 / Z.shape[0])
    if X is None:
        return Z, own
    some = _spread(X.shape[0])
    X, weight = X[some], np.ones(len(some)) if weight is None else weight[some]
    sparse = sp.issparse(X) or sp.issparse(Z)
    both = sp.vstack([X, Z], format="csr") if sparse else np.concatenate([X, Z])
    return both, 0.5 * np.concatenate([weight / weight.sum(), own])


def _spread(n_rows: int) -> Positions:
    """Return positions of at most `ROWS` rows."""
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.intp))


def check_number(n: Any, most: int) -> None:
    """Raise unless so many landmarks can be left of `most`."""
    check_count("n_components", n)
    if n > most:
        raise ValueError(
            f"n_components={n} exceeds the {most} landmarks of the model, which compress only "
            "lowers. Pass a smaller number, or fit a larger model."
        )


def eliminated(M: Float, A: Float, n: int) -> tuple[Positions, float]:
    """Remove landmarks one after the other, always the one that costs least; return the others.

    In the norm ``tr AᵀMA`` the removal of landmark j costs ``‖a_j‖² / (M⁻¹)_jj`` if all others
    make up for it, and the costs add up: also returned. The inverse of what is left of M
    follows by the elimination of j, so that this is a Cholesky factorisation of M⁻¹ with an order
    of its own. O(k³) for k landmarks, of which nearly all is matrix products.

    Parameters
    ----------
    M : ndarray of shape (k, k)
        Positive definite.
    A : ndarray of shape (k, L)
        Coefficients.
    n : int
        How many stay.
    """
    found = cholesky(M, 0.0)
    if found is None:
        raise ValueError("M is not positive definite to working precision.")
    inverse = found[0](np.eye(len(M)))
    # no (M⁻¹)_jj is below this, whatever is removed
    floor = 1.0 / np.diag(M)
    kept, A, total = np.arange(len(M)), A.copy(), 0.0
    while len(kept) > n:
        count = min(REMOVALS, len(kept) - n)
        taken = np.zeros((len(kept), count))
        diagonal = np.maximum(np.diag(inverse), floor)
        left = np.ones(len(kept), dtype=bool)
        for step in range(count):
            cost = np.einsum("ij,ij->i", A, A) / diagonal
            cost[~left] = np.inf
            j = int(cost.argmin())
            total += float(cost[j])
            column = inverse[:, j] - taken[:, :step] @ taken[j, :step]
            A -= np.outer(column / diagonal[j], A[j])
            taken[:, step] = column / np.sqrt(diagonal[j])
            diagonal = np.maximum(diagonal - taken[:, step] ** 2, floor)
            left[j] = False
        kept, A, floor, taken = kept[left], A[left], floor[left], taken[left]
        inverse = inverse[np.ix_(left, left)] - taken @ taken.T
    return kept, total


def shortlist(expansion: KernelExpansion, n: int) -> Positions:
    """Return the landmarks that compete for `n` places.

    All of them, or those that the others are explained by: with thousands of landmarks most are
    close to others. Large coefficients count more.
    """
    Z, A = expansion.landmarks, expansion.dual_coef
    most = max(SHORTLIST_RATIO * n, SHORTLIST)
    if Z.shape[0] <= most:
        return np.arange(Z.shape[0])
    size = np.einsum("ij,ij->i", A, A, dtype=np.float64)
    rng = np.random.RandomState(0)  # not used: greedy
    return np.sort(pivoted_cholesky(expansion.kernel, Z, most, size, rng, greedy=True))


def tamed(expansion: KernelExpansion, points: Any, X: Any, weight: Float) -> KernelExpansion:
    """Return an expansion in other landmarks with the same scores and smaller coefficients.

    The smoothest one that is close enough, with an intercept of its own. An intercept of hundreds
    that kernel functions take off again, as a wide kernel with a small ridge makes it, would
    otherwise be most of what the smaller model follows. O(b n² + n³), a few times.
    """
    kernel, Z, X = expansion.kernel, points.astype(np.float64), X.astype(np.float64)
    K, B, F = kernel(X, Z), kernel(Z, Z), expansion(X).astype(np.float64)
    mean, K_mean = weight @ F, weight @ K
    K -= K_mean
    F -= mean
    weighted = weight[:, None] * K
    S, R = weighted.T @ K, weighted.T @ F
    scale, most = float(np.diag(B).mean()), SAME_SCORES * float((weight @ F**2).sum())
    for ridge in RIDGES:
        epsilon = ridge * scale
        found = cholesky(S + epsilon * B, TAMED_JITTER * epsilon * scale)
        if found is None:  # and less of a ridge makes no better equations
            break
        A = found[0](R)
        expansion = KernelExpansion(kernel, points, A, mean - K_mean @ A)
        if float((weight @ (F - K @ A) ** 2).sum()) <= most:
            break
    return expansion
