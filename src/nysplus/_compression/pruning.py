"""Reduce the landmarks of an expansion: remove or merge some, and move the remaining ones.

The smaller function f' minimises the squared distance to the larger function f

    ``Σ_i w_i ‖f(x_i) − f'(x_i)‖² + ε ‖f − f'‖²_H``,    ``Σ_i w_i = 1``,

over the landmarks of f and over rows, if there are any. The first term is the difference of the
scores. The second term, the norm of the kernel's space, decides wherever the first one is
indifferent. The best coefficients of given landmarks solve linear equations, and the cost of
removing a landmark follows from the inverse of their matrix. If the kernel has gradients, all
remaining landmarks are then moved together by variable projection.
The intercept is kept, so that the two functions agree far from all landmarks. An exception is a
function that is a small difference of large terms, which few landmarks cannot reproduce: it is
first replaced by a function of the same scores with smaller coefficients and another intercept.

Landmarks of the RBF kernel may be merged instead of removed (:func:`merged`). After the moves,
merged landmarks are sometimes closer to f than the landmarks left by removals, and sometimes
farther (``benchmarks/compress.py`` measures both).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nysplus._compression.merging import merged
from nysplus._compression.misfit import (
    ROW_SMOOTHNESS,
    SMOOTHNESS,
    TAMED_JITTER,
    Misfit,
    indefinite_kernel,
)
from nysplus._holdout import Positions
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

# A function that is a small difference of large terms is replaced by a function of the same scores,
# up to this share of their variance, with the largest of these ε for which that is possible.
SAME_SCORES = 1e-3
RIDGES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
# Removals between two updates of the inverse, each by one matrix product.
REMOVALS = 64
# Rows on which the two functions are compared: more cost time and change little.
ROWS = 5000


@dataclass(frozen=True)
class PruningRules:
    """The numbers that steer pruning, and the reason for each."""

    # Landmarks that compete for each place, but not fewer than this in total: with thousands of
    # landmarks most are close to other landmarks, and removals cost the cube of their number.
    shortlist_ratio: int = 4
    min_shortlist: int = 1000
    # In longer lists fewer landmarks compete for each place: most of them are kept anyway.
    long_shortlist: int = 2000
    long_shortlist_ratio: float = 1.5

    def count(self, n: int) -> int:
        """Return the number of landmarks that compete for `n` places."""
        few = min(self.shortlist_ratio * n, self.long_shortlist)
        return max(few, int(self.long_shortlist_ratio * n), self.min_shortlist)


DEFAULT_PRUNING = PruningRules()


@dataclass(frozen=True)
class Shortlist:
    """The landmarks that compete for the places of a smaller expansion.

    Attributes
    ----------
    misfit : Misfit
        Distance from the larger expansion.
    kept : ndarray of shape (k,)
        Positions among the landmarks of the larger expansion.
    M : ndarray of shape (k, k)
        Left side of the equations of the coefficients.
    A : ndarray of shape (k, L)
        Coefficients of the landmarks on the list, without the others.
    """

    misfit: Misfit
    kept: Positions
    M: Float
    A: Float


def listed(
    expansion: KernelExpansion,
    n: int,
    X: Any = None,
    weight: Float | None = None,
    rules: PruningRules = DEFAULT_PRUNING,
) -> Shortlist:
    """Return the shortlist for `n` landmarks; for the parameters see :func:`reduced`."""
    kernel, Z = expansion.kernel, expansion.landmarks
    if not kernel.positive_semidefinite and not isinstance(kernel, FunctionKernel):
        raise indefinite_kernel(kernel)
    plain = replace(expansion, projection=None, packed=None)
    if X is not None and expansion.projection is not None:
        X = project(X, expansion.projection)
    compared = _compared_rows(Z, X, weight)
    smoothness = SMOOTHNESS if X is None else ROW_SMOOTHNESS
    kept = shortlist(plain, n, rules)
    misfit = Misfit.of(plain, *compared, smoothness)
    if misfit.cancels:
        misfit = Misfit.of(tamed(plain, Z[kept], *compared), *compared, smoothness)
    parts = misfit.parts(Z[kept])
    return Shortlist(misfit, kept, parts.M, misfit.coefficients(parts))


def reduced(
    expansion: KernelExpansion,
    n: int,
    X: Any = None,
    weight: Float | None = None,
    merge: bool = False,
    rules: PruningRules = DEFAULT_PRUNING,
    seconds: float | None = None,
    competing: Shortlist | None = None,
) -> tuple[KernelExpansion, Positions | None]:
    """Return an expansion with fewer landmarks, as close to the given one as possible.

    O(b n'² + n'³) for b rows and n' competing landmarks, 4 n or 1000; then at most 30 steps of
    O(b n² + n³) for kernels with gradients.

    Parameters
    ----------
    expansion : KernelExpansion
        Of a positive semidefinite kernel; kernels given as functions are tried.
    n : int
        Number of landmarks.
    X : ndarray or CSR matrix of shape (b, d), optional
        Rows on which the two expansions should agree, besides the landmarks. Both have half of
        the weight; at most 5000 rows are used.
    weight : ndarray of shape (b,), optional
        Of the rows.
    merge : bool
        Whether landmarks are merged instead of removed; for dense landmarks of the RBF kernel.
    rules : PruningRules, optional
    seconds : float, optional
        Time limit of the moves.
    competing : Shortlist, optional
        What :func:`listed` has returned for the same parameters.

    Returns
    -------
    expansion : KernelExpansion
    kept : ndarray of shape (n,), or None
        Positions of the remaining landmarks; None if they have moved.
    """
    kernel, Z = expansion.kernel, expansion.landmarks
    check_number(n, Z.shape[0])
    if n == Z.shape[0]:
        return expansion, np.arange(n)
    some = competing or listed(expansion, n, X, weight, rules)
    misfit, kept = some.misfit, some.kept
    if merge:
        points = merged(kernel, Z[kept], some.A, n)
    else:
        kept = kept[eliminated(some.M, some.A, n)[0]]
        points = Z[kept]
    moves = kernel.differentiable and not sp.issparse(Z)
    if moves:
        points = misfit.moved(points, seconds).astype(float_dtype(Z.dtype))
    double = KernelExpansion(kernel, points, misfit.solve(points), misfit.b)
    rows = misfit.X.astype(expansion.dual_coef.dtype)
    small = in_float32(double, Blocks(rows, ValueTargets(misfit.F)))
    return replace(small, projection=expansion.projection), None if moves else kept


def _compared_rows(Z: Any, X: Any, weight: Float | None) -> tuple[Any, Float]:
    """Return the rows on which the two functions are compared, and weights that sum to one.

    Half of the weight is on landmarks, which cover the training rows, and half on given rows.
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
    """Return the positions of at most `ROWS` rows at even distances."""
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.intp))


def check_number(n: Any, most: int) -> None:
    """Raise unless `n` is a number of landmarks from 1 to `most`."""
    check_count("n_components", n)
    if n > most:
        raise ValueError(
            f"n_components={n} exceeds the {most} landmarks of the model, and compress cannot add "
            "landmarks. Pass a smaller number, or fit a larger model."
        )


def eliminated(M: Float, A: Float, n: int) -> tuple[Positions, float]:
    """Remove landmarks one by one, always the one of the least cost; return the remaining ones.

    In the norm ``tr AᵀMA`` the removal of landmark j costs ``‖a_j‖² / (M⁻¹)_jj`` if all other
    coefficients compensate for it. The costs add up, and their sum is returned as well. The inverse
    of the remaining M follows by eliminating j: this is a Cholesky factorisation of M⁻¹ in the
    order of the removals. O(k³) for k landmarks, nearly all of it in matrix products.

    Parameters
    ----------
    M : ndarray of shape (k, k)
        Positive definite.
    A : ndarray of shape (k, L)
        Coefficients.
    n : int
        Number of remaining landmarks.
    """
    found = cholesky(M, 0.0)
    if found is None:
        raise ValueError("M is not positive definite to working precision.")
    inverse = found[0](np.eye(len(M)))
    # a lower bound of (M⁻¹)_jj after any removals
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


def shortlist(
    expansion: KernelExpansion, n: int, rules: PruningRules = DEFAULT_PRUNING
) -> Positions:
    """Return the positions of the landmarks that compete for `n` places.

    All landmarks, or the first pivots of a greedy Cholesky factorisation that favours large
    coefficients.
    """
    Z, A = expansion.landmarks, expansion.dual_coef
    most = rules.count(n)
    if Z.shape[0] <= most:
        return np.arange(Z.shape[0])
    size = np.einsum("ij,ij->i", A, A, dtype=np.float64)
    rng = np.random.RandomState(0)  # ignored by the greedy rule
    return np.sort(pivoted_cholesky(expansion.kernel, Z, most, size, rng, greedy=True))


def tamed(expansion: KernelExpansion, points: Any, X: Any, weight: Float) -> KernelExpansion:
    """Return an expansion in other landmarks with the same scores and smaller coefficients.

    It is the smoothest one that is close enough, with its own intercept. A wide kernel with a small
    ridge may lead to an intercept of hundreds that the kernel functions cancel; reproducing both
    would take most of the smaller model's landmarks. O(b n² + n³), a few times.
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
        if found is None:  # a smaller ridge makes the equations worse
            break
        A = found[0](R)
        expansion = KernelExpansion(kernel, points, A, mean - K_mean @ A)
        if float((weight @ (F - K @ A) ** 2).sum()) <= most:
            break
    return expansion
