"""Quantise a model: numbers in smaller types, and coefficients that compensate for rounding.

The coefficients are solved again by least squares to the scores of the model before rounding, and
are themselves rounded row by row, each row compensating for the rounding of the rows before it.
Targets play no part: a refit to the targets would undo what was learned.
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
    pack_array,
    rounded,
)

# Ridges in units of the mean diagonal entry. The first is for a change of A, and is safe with any
# number of rows. The others are for A itself, where there are enough rows: a larger ridge makes A,
# and its rounding errors, smaller, but changes the function.
CHANGE_RIDGE = 1e-3
RIDGES = (1e-5, 1e-6, 1e-7)
# The ridge of a map in the same units, the shares of its largest scale that are tried, and the
# number of features beyond which their products would take too much memory.
MAP_RIDGE, MAP_SCALES, MAX_MAP_FEATURES = 1e-3, (1.0, 0.5, 0.25, 0.125), 4096
# Scores that change by less than this share of their spread need no new coefficients.
SAME = 1e-4
# Rows that new coefficients are solved on: 4000, or ten per landmark.
ROUNDING_ROWS, ROUNDING_RATIO = 4000, 10
# Relative rounding error of float32, and the share of the scores' spread that it may cost.
ROUNDING, LOST = 2.0**-24, 1e-3
# Numbers whose squares, and sums of squares, float32 can represent.
FLOAT32_RANGE = (1e-15, 1e15)


def pack_expansion(expansion: KernelExpansion, dtype: str, X: Any) -> KernelExpansion:
    """Return the function with its numbers in the storage type `dtype`.

    B and P are rounded first, then Z. If scores then change by more than 1e-4 of their spread, A
    is solved again to reproduce the scores before rounding, with several ridges; the solution
    that comes closest once it is rounded is kept. b follows from the mean scores.
    O(N n (r + n) + n³) time, O(n²) memory.

    Parameters
    ----------
    expansion : KernelExpansion
        Without a centre: X are rows about it.
    dtype : {"float64", "float32", "float16", "int8"}
        Of P, Z, A and B. b has float32 (float64 for float64), and so has a diagonal P beside int8:
        its numbers are units of features, which have no common scale.
    X : ndarray or CSR matrix of shape (N, d)
        Rows that the model was fitted to: a few thousand, and not fewer than landmarks.

    Notes
    -----
    CSR landmarks stay three arrays, and `packed` stays None: float64 and float32 set the type of
    the data, the smaller types are not available.
    """
    if sp.issparse(expansion.landmarks):
        return _sparse(expansion, dtype)
    wide = "float64" if dtype == "float64" else "float32"
    P = B = None
    if expansion.projection is not None:
        P = _packed_map(expansion.projection, dtype, wide, X)
    if expansion.linear is not None:
        B = _packed_map(expansion.linear, dtype, wide, X)
    # without landmarks there is nothing that could have a scale
    Z = pack_array(expansion.landmarks, dtype if len(expansion.landmarks) else wide)

    def completed(A: PackedArray, b: Float) -> KernelExpansion:
        packed = PackedExpansion(Z, A, pack_array(b, wide), P, linear=B)
        return KernelExpansion.unpacked(expansion.kernel, packed)

    A = expansion.dual_coef.astype(np.float64)
    if dtype == "float64":
        return completed(pack_array(A, dtype), expansion.intercept)
    F = expansion(X).astype(np.float64)

    def change_with(coefficients: PackedArray) -> tuple[float, KernelExpansion]:
        """Return the root mean square change of the scores, and the function with its b."""
        differences = F - completed(coefficients, np.zeros(F.shape[1]))(X)
        b = differences.mean(axis=0)
        change = float(np.sqrt(((differences - b) ** 2).mean()))
        return change, completed(coefficients, b)

    if len(A) == 0:
        return change_with(pack_array(A, wide))[1]
    # coefficients beyond the range of float16 are clipped, and then solved again
    change, best = change_with(pack_array(A if dtype == "int8" else _clipped(A, dtype), dtype))
    if change > SAME * float(np.sqrt(F.var(axis=0).mean())):
        rest = F if B is None else F - X @ B.unpacked()
        for coefficients in _Equations.of(best, X, rest).solutions(A, dtype):
            other_change, other = change_with(coefficients)
            if other_change < change:
                change, best = other_change, other
    return best


def _packed_map(P: Float, dtype: str, wide: str, X: Any) -> PackedArray:
    """Return the map in a storage type; to int8 it is rounded so that mapped rows change least.

    The largest entries often belong to features that are nearly always zero. A smaller scale clips
    these entries and rounds all other entries less: each column gets the scale that changes mapped
    rows least.
    """
    if dtype != "int8":
        return pack_array(P, dtype)
    if P.ndim == 1:
        return pack_array(P, wide)
    plain = pack_array(P, dtype)
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


def _clipped(A: Float, dtype: str) -> Float:
    """Return A clipped to the range of a floating type."""
    largest = float(np.finfo(dtype).max)
    return A.clip(-largest, largest)


def _sparse(expansion: KernelExpansion, dtype: str) -> KernelExpansion:
    """Return an expansion with CSR landmarks in a floating type."""
    if dtype not in ("float64", "float32"):
        raise ValueError(
            f"CSR landmarks can be stored in float64 or float32, not in {dtype!r}. Use one of "
            "the two, or fit to dense rows."
        )
    return replace(
        expansion,
        landmarks=expansion.landmarks.astype(dtype),
        dual_coef=expansion.dual_coef.astype(dtype),
        intercept=expansion.intercept.astype(dtype),
        projection=None if expansion.projection is None else expansion.projection.astype(dtype),
        linear=None if expansion.linear is None else expansion.linear.astype(dtype),
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
        Rounding error that centring leaves of columns that do not vary.
    """

    scatter: Float
    product: Float
    n_rows: int
    noise: float

    @classmethod
    def of(cls, expansion: KernelExpansion, X: Any, F: Float) -> _Equations:
        """Return the equations of the expansion's Z and P; its A and b are ignored."""
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
        """Yield coefficients near A, then solutions with less and less ridge, in `dtype`."""
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
        # a constant function leaves nothing to solve
        H.flat[:: len(H) + 1] += max(ridge * mean, self.noise) if mean > self.noise else 1.0
        return H


def _rounded_in_turn(A: Float, H: Float, dtype: str, share: float = 1.0) -> PackedArray:
    """Round coefficients row by row, and let later rows compensate for the rounding errors.

    With ``H⁻¹ = UᵀU`` an error e in row i is compensated best, in the norm of H, by subtracting
    ``e U_ij / U_ii`` from every later row j (optimal brain quantisation). Rows that other rows
    compensate for worst come first. For int8 the scale is a share of ``max|v| / 127``.
    O(n³ + n² L).
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
            values[row] = _clipped(left[i], dtype)
        else:
            values[row] = rounded(left[i], scale)
        error = (left[i] - values[row] * unit) / U[i, i]
        left[i + 1 :] -= np.outer(U[i, i + 1 :], error)
    return PackedArray(values, scale)


def representable_types(expansion: KernelExpansion, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types whose range contains the landmarks, the map and the linear term.

    All types are computed with in float32, which must contain squares of the landmarks, too.
    Coefficients out of range are clipped, and the other coefficients compensate for it.
    """
    Z, P, B = expansion.landmarks, expansion.projection, expansion.linear
    landmark = float(np.abs(Z).max()) if Z.shape[0] else 0.0
    number = max((float(np.abs(part).max()) for part in (P, B) if part is not None), default=0.0)
    if landmark > 0 and not FLOAT32_RANGE[0] < landmark < FLOAT32_RANGE[1]:
        return ()
    small = max(landmark, number) < float(np.finfo(np.float16).max)
    return tuple(dtype for dtype in dtypes if small or dtype != "float16")


def out_of_range() -> ValueError:
    """Return the error of landmarks that no type within the budget can represent."""
    return ValueError(
        "Landmarks are not in the range of the types that the budget leaves room for. Raise the "
        "budget, or scale the features."
    )


def quantise(
    expansion: KernelExpansion,
    dtype: str,
    blocks: RowBlocks,
    rng: np.random.RandomState,
) -> KernelExpansion:
    """Return the function with its numbers in a storage type, solved again on some of the rows."""
    n_rows = max(ROUNDING_ROWS, ROUNDING_RATIO * expansion.landmarks.shape[0])
    some: Any = blocks.gather(blocks.sample(min(n_rows, blocks.n_candidates), rng)).X
    small = pack_expansion(expansion, dtype, some)
    spread = float(expansion(some).std())
    if not blocks.discrete and np.abs(expansion.intercept).max() * ROUNDING > LOST * spread > 0:
        warnings.warn(
            f"Values are about {np.abs(expansion.intercept).max():.3g}, and their differences are "
            "so small that float32, the floating type under a budget, loses digits of them. "
            "Subtract the mean from y, or fit without a budget.",
            stacklevel=2,
        )
    return small
