"""Choose the numbers of a C header, and compute the scores that they give in C.

The arithmetic of the header is float by default, or double. Features far from zero have a
centre subtracted, in double if float has too few digits for the rows themselves. Features that are
very large or very small are multiplied by a power of two, so that squares stay in the range of
float. Columns of a code are near one, and need neither; their centre is subtracted after the map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from nysplus._typing import Float
from nysplus.expansion import PackedArray, PackedExpansion, pack_array
from nysplus.export.c_codes import CCode, c_code
from nysplus.export.c_kernels import c_kernel
from nysplus.export.c_tables import summands
from nysplus.export.contents import Contents
from nysplus.export.rounding import compared_rows, exact_scores, largest_change
from nysplus.kernels import AdditiveChi2, Chi2, Kernel, Laplacian, Linear

# Largest landmarks between these numbers need no other unit: their squares, and squares of rows
# that are a million times larger or smaller, are in the range of float.
LEAST, MOST = 1e-12, 1e12
# Scores that float changes by more than this, relative to the largest, are worth a warning; beyond
# the second number they are wrong.
MAX_CHANGE, WRONG = 1e-4, 0.1
TYPES = {"float": np.float32, "double": np.float64}
# Rows are double if that divides the change of scores by this number at least.
WORTH_DOUBLE = 2.0


@dataclass(frozen=True)
class CModel:
    """A model as its header has it.

    Attributes
    ----------
    content : Contents
        With tables in types that C has, in the unit. Without an encoder, the linear term is of rows
        minus the centre.
    unit : float
        A power of two, by which rows minus the centre are multiplied; 1 for coded rows.
    row, real : "float" or "double"
        Type of the features of a row, and of all arithmetic after the centre is subtracted.
    change : float
        Largest change of a score by the rounding of all numbers and of the arithmetic, over the
        largest score.
    code : CCode or None
        The encoder in C.
    background : ndarray of shape (m, d) or None
        Rows that Shapley values compare with; None without a function for them.
    """

    content: Contents
    unit: float = 1.0
    row: str = "float"
    real: str = "float"
    change: float = 0.0
    code: CCode | None = None
    background: Float | None = None

    @property
    def origin(self) -> PackedArray | None:
        """``-cP``, which sums over code columns start from, before any factor; None if zero."""
        stored = self.content.stored
        P, c = stored.projection, stored.center
        if self.code is None or c is None or P is None or P.values.ndim == 1:
            return None
        start = -(c.unpacked().astype(np.float64) @ summands(P).astype(np.float64))
        return PackedArray(start.astype(TYPES[self.real]))

    def coordinates(self, rows: Float) -> tuple[Float, Float]:
        """Return u of rows, and the rows of the linear term, with the arithmetic of the header."""
        stored, real = self.content.stored, TYPES[self.real]
        X: Float = rows.astype(TYPES[self.row])
        if self.code is not None:
            X = self.code.matrix(X, real)
        code = X
        if stored.center is not None and self.origin is None:
            X = X - stored.center.values
        U: Float = (X * X.dtype.type(self.unit)).astype(real)
        in_linear_term = U if self.code is None else code
        if stored.projection is not None:
            U = _mapped(U, stored.projection, self.origin)
        return U, in_linear_term

    def scores(self, rows: Float) -> Float:
        """Return the scores of rows with the arithmetic of the header."""
        stored, real = self.content.stored, TYPES[self.real]
        U, in_linear_term = self.coordinates(rows)
        K = c_kernel(self.content.kernel).matrix(U, stored.landmarks.unpacked())
        A = stored.dual_coef.unpacked().astype(np.float64)
        sums: Float = (K.astype(real).astype(np.float64) @ A).astype(real)
        if stored.linear is not None:
            sums += _mapped(in_linear_term, stored.linear)
        return sums + stored.intercept.unpacked()


def _mapped(U: Float, stored: PackedArray, origin: PackedArray | None = None) -> Float:
    """Return ``UP``, added one feature after the other, to the origin if there is one."""
    if stored.values.ndim == 1:
        return U * stored.unpacked()
    P = summands(stored)
    total = np.zeros((len(U), P.shape[1]), dtype=U.dtype)
    if origin is not None:
        total += origin.values
    for u, p in zip(U.T, P, strict=True):
        total += u[:, None] * p
    return total if stored.factor is None else total * stored.factor


def c_model(content: Contents, dtype: str) -> CModel:
    """Return the numbers of the header of a model, with the type of its rows.

    Parameters
    ----------
    content : Contents
    dtype : {"auto", "float32", "float64"}
        Type of the tables: "auto" makes float64 float32 and keeps smaller types. With float64 all
        arithmetic is double.
    """
    real = "double" if dtype == "float64" else "float"
    code = content.encoder
    given = real == "double" or code is not None
    unit = 1.0 if given else _unit(content.stored.landmarks.unpacked())
    scaled = _about_center(content if unit == 1.0 else _in_unit(content, unit), unit)
    stored = scaled.stored
    tables = replace(
        stored,
        landmarks=_table(stored.landmarks, dtype),
        dual_coef=_table(stored.dual_coef, dtype),
        intercept=_table(stored.intercept, dtype),
        projection=None if stored.projection is None else _table(stored.projection, dtype),
        linear=None if stored.linear is None else _table(stored.linear, dtype),
    )
    coded = None if code is None else c_code(code, dtype)
    model = CModel(replace(scaled, stored=tables), unit, real, real, code=coded)
    rows = compared_rows(content)
    exact = exact_scores(content, rows)

    def measured(model: CModel) -> CModel:
        with np.errstate(all="ignore"):
            return replace(model, change=largest_change(exact, model.scores(rows)))

    single = measured(model)
    plain = stored.center is None and unit == 1.0 and code is None
    if plain or single.change <= MAX_CHANGE or model.row == "double":
        return single
    double = measured(replace(model, row="double"))
    return double if WORTH_DOUBLE * double.change <= single.change else single


def _table(stored: PackedArray, dtype: str) -> PackedArray:
    """Return the numbers in a type that C has."""
    if dtype == "float64":
        return PackedArray(stored.unpacked().astype(np.float64))
    if stored.values.dtype == np.float64 or dtype == "float32":
        return pack_array(stored.unpacked(), "float32")
    return stored


def _unit(Z: Float) -> float:
    """Return the power of two that brings the landmarks near one, or 1 if they are near enough."""
    largest = float(np.abs(Z).max())
    if largest == 0 or LEAST <= largest <= MOST:
        return 1.0
    return float(2.0 ** -np.round(np.log2(largest)))


def _in_unit(content: Contents, unit: float) -> Contents:
    """Return the same function of rows that are multiplied by a unit."""
    stored = content.stored
    kernel, factor = _scaled_kernel(content.kernel, unit)
    A = stored.dual_coef
    if factor != 1.0:
        A = PackedArray(A.unpacked().astype(np.float64) * factor)
    tables: PackedExpansion = replace(
        stored,
        landmarks=_times(stored.landmarks, unit),
        dual_coef=A,
        linear=None if stored.linear is None else _times(stored.linear, 1.0 / unit),
    )
    return replace(content, kernel=kernel, stored=tables)


def _about_center(content: Contents, unit: float) -> Contents:
    """Return the same function with a linear term of rows minus the centre: ``cB`` goes into b.

    Columns of a code have no need of it.
    """
    stored, B = content.stored, content.stored.linear
    if content.encoder is not None or stored.center is None or B is None:
        return content
    c = unit * stored.center.unpacked().astype(np.float64)
    b = stored.intercept.unpacked().astype(np.float64) + c @ B.unpacked().astype(np.float64)
    return replace(content, stored=replace(stored, intercept=PackedArray(b)))


def _times(stored: PackedArray, unit: float) -> PackedArray:
    if stored.scale is None:
        return PackedArray(stored.unpacked().astype(np.float64) * unit)

    def times(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        return np.asarray(numbers.astype(np.float64) * unit, dtype=np.float32)

    offset = None if stored.offset is None else times(stored.offset)
    return replace(stored, scale=times(stored.scale), offset=offset)


def _scaled_kernel(kernel: Kernel, unit: float) -> tuple[Kernel, float]:
    """Return the kernel of rows in a unit, and the factor that its values still need."""
    power = 1 if isinstance(kernel, (Laplacian, Chi2, AdditiveChi2)) else 2
    if isinstance(kernel, (Linear, AdditiveChi2)):
        return kernel, unit**-power
    gamma: Any = kernel.get_params().get("gamma")
    if gamma is None:  # cosines have no unit
        return kernel, 1.0
    scaled: Kernel = clone(kernel).set_params(gamma=gamma * unit**-power)
    return scaled, 1.0
