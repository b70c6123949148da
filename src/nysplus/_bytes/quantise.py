"""Fewer bytes for the same function: numbers in smaller types, coefficients that make up for it.

What rounding the map and the landmarks changes is taken up by the coefficients, which are solved
again by least squares to the scores of the model as it was, and so is, row by row, what rounding
the coefficients changes. Targets play no part: a refit to them would undo what was learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, cholesky

from nysplus._rows.blocks import RowBlocks
from nysplus._rows.projected import project
from nysplus._rows.slicing import row_slices
from nysplus._typing import Float
from nysplus.expansion import (
    KernelExpansion,
    PackedArray,
    PackedExpansion,
    int8_scale,
    pack,
    rounded,
)

# Ridges, in units of the mean of the diagonal: of a change of A, which is safe with any number of
# rows, and of all of A, where enough rows say what it must be. A large one makes A small, and what
# is lost by rounding it, but changes the function.
CHANGE_RIDGE = 1e-3
RIDGES = (1e-5, 1e-6, 1e-7)
# The same for a map, shares of its scales that are tried, and the most features whose products are
# looked at.
MAP_RIDGE, MAP_SCALES, MAX_MAP_FEATURES = 1e-3, (1.0, 0.5, 0.25, 0.125), 4096
# Scores that change by less than this share of their spread need no other coefficients.
SAME = 1e-4
# Rows that say which coefficients make up for rounding: this many, or so many for each landmark.
ROUNDING_ROWS, ROUNDING_RATIO = 4000, 10
# Share of a number that float32 rounds, and of the scores' spread that may be lost by it.
ROUNDING, LOST = 2.0**-24, 1e-3


def stored(expansion: KernelExpansion, dtype: str, X: Any) -> KernelExpansion:
    """Return the function with its numbers stored in the type `dtype`.

    P is rounded first, then Z. If scores then change by more than 1e-4 of their spread, A is
    solved again to reproduce those of the function as it was, in several ways, of which the one
    is kept that comes closest after A is rounded itself; b follows from the means.
    O(N n (r + n) + n³) time, O(n²) memory.

    Parameters
    ----------
    expansion : KernelExpansion
    dtype : {"float64", "float32", "float16", "int8"}
        Of P, Z and A. b has float32 (float64 for float64), and so has a diagonal P beside int8:
        its numbers are units of features, which have no common scale.
    X : ndarray or CSR matrix of shape (N, d)
        Rows that the model was fitted to: a few thousand, and not fewer than landmarks.

    Notes
    -----
    CSR landmarks stay the three arrays that they are, without `storage`: float64 and float32 set
    the type of their data, the smaller types are not available.
    """
    if sp.issparse(expansion.landmarks):
        return _sparse(expansion, dtype)
    wide = "float64" if dtype == "float64" else "float32"
    P = None
    if expansion.projection is not None:
        P = _stored_map(expansion.projection, dtype, wide, X)
    Z = pack(expansion.landmarks, dtype)

    def completed(A: PackedArray, b: Float) -> KernelExpansion:
        return KernelExpansion.unpacked(expansion.kernel, PackedExpansion(Z, A, pack(b, wide), P))

    A = expansion.dual_coef.astype(np.float64)
    if dtype == "float64":
        return completed(pack(A, dtype), expansion.intercept)
    F = expansion(X).astype(np.float64)

    def judged(coefficients: PackedArray) -> tuple[float, KernelExpansion]:
        """Return the root mean square of what changes, with b from the means."""
        differences = F - completed(coefficients, np.zeros(F.shape[1]))(X)
        b = differences.mean(axis=0)
        change = float(np.sqrt(((differences - b) ** 2).mean()))
        return change, completed(coefficients, b)

    # coefficients beyond the range of float16 are cut, and then solved again
    change, best = judged(pack(A if dtype == "int8" else _within(A, dtype), dtype))
    if change > SAME * float(np.sqrt(F.var(axis=0).mean())):
        for coefficients in _Equations.of(best, X, F).solutions(A, dtype):
            other_change, other = judged(coefficients)
            if other_change < change:
                change, best = other_change, other
    return best


def _stored_map(P: Float, dtype: str, wide: str, X: Any) -> PackedArray:
    """Return the map in a type; rounded to int8 in turn, so that rows go where they went before.

    The largest entries are often those of features that are hardly ever other than zero. Smaller
    scales cut them, and serve all others better: each column has the scale that changes rows least.
    """
    if dtype != "int8":
        return pack(P, dtype)
    if P.ndim == 1:
        return pack(P, wide)
    plain = pack(P, dtype)
    if len(P) > MAX_MAP_FEATURES:
        return plain
    X = X.astype(np.float64)
    H = (X.T @ X).toarray() if sp.issparse(X) else X.T @ X
    mean = float(np.trace(H)) / len(H)
    H.flat[:: len(H) + 1] += MAP_RIDGE * mean if mean > 0 else 1.0
    P = P.astype(np.float64)

    def change(found: PackedArray) -> Float:
        E = P - found.unpacked()
        lost: Float = np.einsum("ij,ij->j", E, H @ E)
        return lost

    assert plain.scale is not None
    values, scale, least = plain.values.copy(), plain.scale.copy(), change(plain)
    for share in MAP_SCALES:
        found = _rounded_in_turn(P, H, dtype, share)
        lost = change(found)
        better = lost < least
        assert found.scale is not None
        values[:, better], scale[better] = found.values[:, better], found.scale[better]
        least = np.minimum(least, lost)
    return PackedArray(values, scale)


def _within(A: Float, dtype: str) -> Float:
    """Return A with entries that a floating type cannot hold cut to its largest number."""
    largest = float(np.finfo(dtype).max)
    return A.clip(-largest, largest)


def _sparse(expansion: KernelExpansion, dtype: str) -> KernelExpansion:
    if dtype not in ("float64", "float32"):
        raise ValueError(
            f"CSR landmarks can be stored in float64 or float32, not in {dtype!r}. Use one of "
            "these, or fit to dense rows."
        )
    return replace(
        expansion,
        landmarks=expansion.landmarks.astype(dtype),
        dual_coef=expansion.dual_coef.astype(dtype),
        intercept=expansion.intercept.astype(dtype),
        projection=None if expansion.projection is None else expansion.projection.astype(dtype),
    )


@dataclass(frozen=True)
class _Equations:
    """The normal equations of ``K A + b = F`` with b eliminated.

    Attributes
    ----------
    scatter : ndarray of shape (n, n)
        ``KᵀK`` of the centred columns.
    product : ndarray of shape (n, L)
        ``KᵀF`` of the centred columns.
    n_rows : int
    noise : float
        What centring leaves of columns that do not vary.
    """

    scatter: Float
    product: Float
    n_rows: int
    noise: float

    @classmethod
    def of(cls, expansion: KernelExpansion, X: Any, F: Float) -> _Equations:
        """Return those of the expansion's Z and P, whatever its A and b are."""
        Z, P = expansion.landmarks.astype(np.float64), expansion.projection
        n, N = len(Z), X.shape[0]
        scatter, product, total = np.zeros((n, n)), np.zeros((n, F.shape[1])), np.zeros(n)
        F = F - F.mean(axis=0)
        for rows in row_slices(N, 16 * n, held=scatter.nbytes, threads=1):
            some = X[rows].astype(np.float64)
            K = expansion.kernel(some if P is None else project(some, P), Z)
            scatter += K.T @ K
            product += K.T @ F[rows]
            total += K.sum(axis=0)
        noise = float(np.finfo(np.float64).eps) * float(np.trace(scatter))
        scatter -= np.outer(total, total / N)
        return cls(scatter, product, N, noise)

    def solutions(self, A: Float, dtype: str) -> Iterator[PackedArray]:
        """Yield coefficients near A, and others for the same scores, rounded to `dtype`."""
        H = self._with_ridge(CHANGE_RIDGE)
        change = cho_solve(cho_factor(H), self.product - self.scatter @ A)
        yield _rounded_in_turn(A + change, H, dtype)
        if self.n_rows >= len(A):
            for ridge in RIDGES:
                H = self._with_ridge(ridge)
                yield _rounded_in_turn(cho_solve(cho_factor(H), self.product), H, dtype)

    def _with_ridge(self, ridge: float) -> Float:
        H = self.scatter.copy()
        mean = float(np.trace(H)) / len(H)
        # a function that is constant leaves nothing to solve
        H.flat[:: len(H) + 1] += max(ridge * mean, self.noise) if mean > self.noise else 1.0
        return H


def _rounded_in_turn(A: Float, H: Float, dtype: str, share: float = 1.0) -> PackedArray:
    """Round coefficients row by row; the rows that are left make up for each one's error.

    With ``H⁻¹ = UᵀU`` an error e in row i is made up for best, in the sense of H, by taking
    ``e U_ij / U_ii`` off every later row j (as in optimal brain quantisation). Rows that others
    can stand in for least come first. int8 has a share of the scale that would hold the largest
    entry. O(n³ + n² L).
    """
    n = len(A)
    inverse = cho_solve(cho_factor(H), np.eye(n))
    order = np.argsort(np.diagonal(inverse), kind="stable")
    U = cholesky(inverse[np.ix_(order, order)])
    scale = int8_scale(share * A) if dtype == "int8" else None
    unit = 1.0 if scale is None else scale.astype(np.float64)
    values = np.empty(A.shape, dtype=dtype)
    left = A[order]
    for i, row in enumerate(order):
        if scale is None:
            values[row] = _within(left[i], dtype)
        else:
            values[row] = rounded(left[i], scale)
        error = (left[i] - values[row] * unit) / U[i, i]
        left[i + 1 :] -= np.outer(U[i, i + 1 :], error)
    return PackedArray(values, scale)


def representable_types(expansion: KernelExpansion, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types whose range the landmarks and the map are within: float16 has a small one.

    Coefficients that are not are cut, and the others make up for it.
    """
    arrays = [expansion.landmarks]
    if expansion.projection is not None:
        arrays.append(expansion.projection)
    largest = max(float(np.abs(array).max()) for array in arrays)
    small = largest < float(np.finfo(np.float16).max)
    return tuple(dtype for dtype in dtypes if small or dtype != "float16")


def quantise(
    expansion: KernelExpansion,
    dtype: str,
    blocks: RowBlocks,
    rng: np.random.RandomState,
) -> KernelExpansion:
    """Return the function with its numbers in a type, by some of the rows."""
    n_rows = max(ROUNDING_ROWS, ROUNDING_RATIO * expansion.landmarks.shape[0])
    some: Any = blocks.gather(blocks.sample(min(n_rows, blocks.n_candidates), rng)).X
    small = stored(expansion, dtype, some)
    spread = float(expansion(some).std())
    if not blocks.discrete and np.abs(expansion.intercept).max() * ROUNDING > LOST * spread > 0:
        warnings.warn(
            f"Values are about {np.abs(expansion.intercept).max():.3g} and differ by so much less "
            "that float32, in which a budget has its numbers computed, loses digits of the "
            "differences. Subtract the mean from y, or fit without a budget.",
            stacklevel=2,
        )
    return small
