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
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.linalg.lapack import dpotri

from nysplus._bytes.budget import STORAGE, scale_type
from nysplus._rows.blocks import RowBlocks
from nysplus._rows.projected import project
from nysplus._rows.slicing import row_slices
from nysplus._typing import Float
from nysplus.expansion import (
    MAX_BITS,
    KernelExpansion,
    PackedArray,
    PackedExpansion,
    column_scale,
    integer_bits,
    largest_integer,
    pack_array,
    rounded,
)

# Ridges in units of the mean diagonal entry. The first is for a change of A, and is safe with any
# number of rows. The others are for A itself, where there are enough rows: a larger ridge makes A,
# and its rounding errors, smaller, but changes the function. Few bits need larger ridges.
CHANGE_RIDGE = 1e-3
RIDGES = (1e-5, 1e-6, 1e-7)
FEW_BITS_RIDGES = (1e-3, 1e-4, 1e-5)
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
# Scales that float16 represents to three digits, also where another fit of the same rows has
# landmarks that are ten times larger.
FLOAT16_SCALES = (2e-5, 6e3)


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
    dtype : {"float64", "float32", "float16", "int8", "int5", "int4"}
        Of P, Z, A and B: a name in `STORAGE`, which has the bits of each part. b has float32
        (float64 for float64), and so has a diagonal P beside integers: its numbers are units of
        features, which have no common scale.
    X : ndarray or CSR matrix of shape (N, d)
        Rows that the model was fitted to: a few thousand, and not fewer than landmarks.

    Notes
    -----
    CSR landmarks stay three arrays, and `packed` stays None: float64 and float32 set the type of
    the data, the smaller types are not available.
    """
    if sp.issparse(expansion.landmarks):
        return _sparse(expansion, dtype)
    map_type, landmark_type, coefficient_type = map(_type_name, STORAGE[dtype])
    wide = "float64" if dtype == "float64" else "float32"
    P = B = None
    if expansion.projection is not None:
        P = _packed_map(expansion.projection, map_type, wide, X)
    if expansion.linear is not None:
        B = _packed_map(expansion.linear, map_type, wide, X)
    if len(expansion.landmarks):
        Z = pack_array(expansion.landmarks, landmark_type, scale_type(dtype))
    else:  # there is nothing that could have a scale
        Z = pack_array(expansion.landmarks, wide)

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
    change, best = change_with(pack_array(_clipped(A, coefficient_type), coefficient_type))
    if change > SAME * float(np.sqrt(F.var(axis=0).mean())):
        rest = F if B is None else F - X @ B.unpacked()
        for coefficients in _Equations.of(best, X, rest).solutions(A, coefficient_type):
            other_change, other = change_with(coefficients)
            if other_change < change:
                change, best = other_change, other
    return best


def _type_name(bits: int) -> str:
    """Return the storage type of an array of numbers of `bits` bits."""
    return f"int{bits}" if bits <= MAX_BITS else f"float{bits}"


def _packed_map(P: Float, dtype: str, wide: str, X: Any) -> PackedArray:
    """Return the map in a storage type; integers are rounded so that mapped rows change least.

    The largest entries often belong to features that are nearly always zero. A smaller scale clips
    these entries and rounds all other entries less: each column gets the scale that changes mapped
    rows least.
    """
    if integer_bits(dtype) is None:
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
    turns = _Turns.of(H)
    for share in MAP_SCALES:
        found = turns.rounded(P, dtype, share)
        lost = change(found)
        better = lost < least
        assert found.scale is not None
        values[:, better], scale[better] = found.values[:, better], found.scale[better]
        least = np.minimum(least, lost)
    return PackedArray(values, scale, plain.bits)


def _clipped(A: Float, dtype: str) -> Float:
    """Return A clipped to the range of a floating type; integers have scales for any range."""
    if integer_bits(dtype) is not None:
        return A
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
        turns = _Turns.of(self._with_ridge(CHANGE_RIDGE))
        yield turns.rounded(A + turns.solve(self.product - self.scatter @ A), dtype)
        if self.n_rows < len(A):
            return
        bits = integer_bits(dtype)
        for ridge in RIDGES if bits is None or bits == MAX_BITS else FEW_BITS_RIDGES:
            turns = _Turns.of(self._with_ridge(ridge))
            yield turns.rounded(turns.solve(self.product), dtype)

    def _with_ridge(self, ridge: float) -> Float:
        H = self.scatter.copy()
        mean = float(np.trace(H)) / len(H)
        # a constant function leaves nothing to solve
        H.flat[:: len(H) + 1] += max(ridge * mean, self.noise) if mean > self.noise else 1.0
        return H


@dataclass(frozen=True)
class _Turns:
    """Rounding row by row, where later rows compensate for the rounding errors of earlier ones.

    With ``H⁻¹ = UᵀU`` an error e in row i is compensated best, in the norm of H, by subtracting
    ``e U_ij / U_ii`` from every later row j (optimal brain quantisation). Rows that other rows
    compensate for worst come first.

    Attributes
    ----------
    factor : ndarray of shape (n, n)
        The Cholesky factor of H, in its upper triangle.
    order : ndarray of shape (n,)
        Rows in their turn.
    U : ndarray of shape (n, n)
        The Cholesky factor of the inverse of the rows in turn.
    """

    factor: Float
    order: npt.NDArray[np.intp]
    U: Float

    @classmethod
    def of(cls, H: Float) -> _Turns:
        """Return the turns for a norm. O(n³)."""
        factor, _ = cho_factor(H)
        upper = np.triu(dpotri(factor)[0])
        inverse = upper + np.triu(upper, 1).T
        order = np.argsort(np.diagonal(inverse), kind="stable")
        return cls(factor, order, cholesky(inverse[np.ix_(order, order)]))

    def solve(self, product: Float) -> Float:
        """Return ``H⁻¹ product``."""
        solution: Float = cho_solve((self.factor, False), product)
        return solution

    def rounded(self, A: Float, dtype: str, share: float = 1.0) -> PackedArray:
        """Return numbers in a storage type; for integers with a share of the scale. O(n² L)."""
        bits = integer_bits(dtype)
        scale = None if bits is None else column_scale(share * A, bits)
        unit = 1.0 if scale is None else scale.astype(np.float64)
        values = np.empty(A.shape, dtype=dtype if bits is None else np.int8)
        left = A[self.order]
        for i, row in enumerate(self.order):
            if bits is None or scale is None:
                values[row] = _clipped(left[i], dtype)
            else:
                values[row] = rounded(left[i], scale, bits)
            error = (left[i] - values[row] * unit) / self.U[i, i]
            left[i + 1 :] -= np.outer(self.U[i, i + 1 :], error)
        return PackedArray(values, scale, bits or MAX_BITS)


def representable_types(expansion: KernelExpansion, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types whose range contains the landmarks, the map and the linear term.

    Few bits have landmarks with scales in float16. All types are computed with in float32, which
    must contain squares of the landmarks, too. Coefficients out of range are clipped, and the other
    coefficients compensate for it.
    """
    Z, P, B = expansion.landmarks, expansion.projection, expansion.linear
    landmark = float(np.abs(Z).max()) if Z.shape[0] else 0.0
    number = max((float(np.abs(part).max()) for part in (P, B) if part is not None), default=0.0)
    if landmark > 0 and not FLOAT32_RANGE[0] < landmark < FLOAT32_RANGE[1]:
        return ()
    small = max(landmark, number) < float(np.finfo(np.float16).max)

    def contains(dtype: str) -> bool:
        if dtype == "float16":
            return small
        if scale_type(dtype) == "float32" or Z.shape[0] == 0:
            return True
        scales = np.abs(Z).max(axis=0) / largest_integer(STORAGE[dtype].landmarks)
        low, high = FLOAT16_SCALES
        return bool(((scales == 0) | ((low < scales) & (scales < high))).all())

    return tuple(filter(contains, dtypes))


def compared_types(expansion: KernelExpansion, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the smallest and the largest type that can represent an expansion.

    Of the same landmarks the largest is the most exact, and the smallest is enough if it scores the
    same: types in between are not worth their time.
    """
    found = representable_types(expansion, dtypes)
    return tuple(dict.fromkeys(found[:1] + found[-1:]))


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
