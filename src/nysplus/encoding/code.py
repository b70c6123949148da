"""The code E of a table: from the raw numbers of a row to columns that a kernel can compare.

Raw numbers are the columns of a table as :class:`~nysplus.encoding.schema.TableSchema` reads them:
numbers with NaN for gaps, levels of categories as 0, 1, … with NaN for gaps and −1 for other
levels, dates as seconds since 1970. A code is a sum of *terms*, each of which turns one raw column
into a few code columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float


class Code(Protocol):
    """The function E from raw columns to code columns: of a table, or of images."""

    @property
    def n_inputs(self) -> int:
        """Number of raw columns."""

    @property
    def n_columns(self) -> int:
        """Number of code columns."""

    @property
    def n_bytes(self) -> int:
        """Bytes of its numbers."""

    def __call__(self, X: Any, dtype: npt.DTypeLike = np.float32) -> Float:
        """Return the code columns of raw numbers of shape (N, n_inputs), rounded to `dtype`."""

    def same(self, other: Any) -> bool:
        """Return whether another code gives the same columns."""


@dataclass(frozen=True, eq=False)
class Term(ABC):
    """Code columns of one raw column.

    Attributes
    ----------
    column : int
        The raw column.
    """

    column: int

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of code columns."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Bytes of the term's numbers."""

    @abstractmethod
    def of(self, x: Float) -> Float:
        """Return the code columns, of shape (N, n_columns), of the raw numbers x of shape (N,)."""

    @abstractmethod
    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """Return the suffixes that turn the name of the raw column into names of code columns.

        Parameters
        ----------
        levels : tuple of str
            Names of the levels; empty where the column is no category.
        """


@dataclass(frozen=True, eq=False)
class Linear(Term):
    """``(x − offset) · scale``, and ``(fill − offset) · scale`` for gaps.

    Attributes
    ----------
    offset, scale, fill : float
    """

    offset: float
    scale: float
    fill: float

    n_columns = 1

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers, two where float16 holds one; `fill` is free if it is the offset."""
        numbers = np.array([self.offset, self.scale, self.fill])
        with np.errstate(over="ignore"):
            sizes = np.where(numbers.astype(np.float16) == numbers, 2, 4)
        return int(sizes[: 2 if self.fill == self.offset else 3].sum())

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        filled = np.where(np.isnan(x), self.fill, x)
        return ((filled - self.offset) * self.scale)[:, None]

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """The column keeps its name."""
        return [""]


@dataclass(frozen=True, eq=False)
class Ramps(Term):
    """The thermometer code: one column for each bin between neighbouring knots.

    ``θ_k(x) = height · clip((x − t_{k−1}) / (t_k − t_{k−1}), 0, 1)``, so that the squared distance
    of two codes is ``height²`` times the number of bins between two numbers: an ℓ1 distance.

    Attributes
    ----------
    knots : ndarray of shape (m + 1,)
        Increasing, of the smallest floating type that keeps them apart.
    height : float
    gap : int
        The number of the knot that gaps are filled with.
    """

    knots: npt.NDArray[Any]
    height: float
    gap: int

    @property
    def n_columns(self) -> int:
        """Number of bins m."""
        return len(self.knots) - 1

    @property
    def n_bytes(self) -> int:
        """Bytes of the knots, and one for the number of the knot for gaps."""
        return int(self.knots.nbytes) + 1

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        t = self.knots.astype(np.float64)
        filled = np.where(np.isnan(x), t[self.gap], x)
        ramps = filled[:, None] - t[:-1]
        ramps *= 1.0 / np.diff(t)
        np.clip(ramps, 0.0, 1.0, out=ramps)
        ramps *= self.height
        return ramps

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """Name the upper end of each bin, with as many digits as keep the names apart."""
        for digits in (6, 9, 17):
            names = [f" ≤ {knot:.{digits}g}" for knot in self.knots[1:].tolist()]
            if len(set(names)) == len(names):
                break
        return names


@dataclass(frozen=True, eq=False)
class Curve(Term):
    """A piecewise-linear function of one number, constant beyond its knots.

    Attributes
    ----------
    knots : ndarray of shape (m + 1,)
        Increasing.
    values : ndarray of shape (m + 1,)
        Of a floating type.
    gap : int
        The number of the knot that gaps are filled with.
    """

    knots: npt.NDArray[Any]
    values: npt.NDArray[Any]
    gap: int

    n_columns = 1

    @property
    def n_bytes(self) -> int:
        """Bytes of knots and values, and one for the number of the knot for gaps."""
        return int(self.knots.nbytes + self.values.nbytes) + 1

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        t = self.knots.astype(np.float64)
        filled = np.where(np.isnan(x), t[self.gap], x)
        return np.interp(filled, t, self.values.astype(np.float64))[:, None]

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """The column keeps its name."""
        return [""]


@dataclass(frozen=True, eq=False)
class OneHot(Term):
    """One column for each level, and for gaps where these are a level; zeros for other levels.

    Attributes
    ----------
    n_levels : int
        The first levels of the raw column; there may be others.
    gaps : bool
        Whether the last column is for gaps.
    """

    n_levels: int
    gaps: bool

    n_bytes = 2

    @property
    def n_columns(self) -> int:
        """Number of levels, gaps included if they are one."""
        return self.n_levels + self.gaps

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        gap = float(self.n_levels if self.gaps else -1)
        level = np.where(np.isnan(x), gap, np.where(x < self.n_levels, x, -1.0))
        hot: Float = (level[:, None] == np.arange(self.n_columns)).astype(np.float64)
        return hot

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """Name the levels."""
        return [f" = {level}" for level in levels[: self.n_levels]] + [" missing"] * self.gaps


def level_rows(x: Float, n_levels: int) -> npt.NDArray[np.intp]:
    """Return the rows of a table for raw numbers of a category: others and gaps come last."""
    other = (x < 0) | (x >= n_levels)
    rows: npt.NDArray[np.intp] = np.where(np.isnan(x), n_levels + 1, np.where(other, n_levels, x))
    return rows.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Lookup(Term):
    """A row of a table for each level.

    Attributes
    ----------
    table : ndarray of shape (n_levels + 2, k)
        Of a floating type. The last two rows are for other levels and for gaps.
    """

    table: npt.NDArray[Any]

    @property
    def n_columns(self) -> int:
        """Number of columns k of the table."""
        return int(self.table.shape[1])

    @property
    def n_bytes(self) -> int:
        """Bytes of the table."""
        return int(self.table.nbytes)

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        return self.table[level_rows(x, len(self.table) - 2)].astype(np.float64)

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """Number the columns, if there are several."""
        return [""] if self.n_columns == 1 else [f" ({k})" for k in range(self.n_columns)]


@dataclass(frozen=True, eq=False)
class Circle(Term):
    """Cosine and sine of a number on a circle, such as the hour of a day; zeros for gaps.

    Attributes
    ----------
    period : float
    origin : float
        A number at the angle zero.
    name : str
        What goes round, such as "hour".
    """

    period: float
    origin: float
    name: str

    n_columns = 2
    n_bytes = 16

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        angle = (2.0 * np.pi / self.period) * np.mod(x - self.origin, self.period)
        point: Float = np.nan_to_num(np.stack([np.cos(angle), np.sin(angle)], axis=1))
        return point

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """Name cosine and sine."""
        return [f" {self.name} (cos)", f" {self.name} (sin)"]


@dataclass(frozen=True, eq=False)
class Power(Term):
    """A power transform between two changes of unit, as of scikit-learn's ``PowerTransformer``.

    ``(T((x − origin) · unit) − offset) · scale``, where T is the transform of Box and Cox
    ``T(u) = (u^λ − 1) / λ`` of positive numbers, with ``log(u)`` for λ = 0; or, `signed`, that of
    Yeo and Johnson, of any number: ``T(u) = ((1 + u)^λ − 1) / λ`` for u ≥ 0, and minus the same of
    −u with 2 − λ in place of λ for u < 0.

    Attributes
    ----------
    exponent : float
        λ.
    signed : bool
    origin, unit, offset, scale : float
    fill : float
        The raw number that gaps are filled with.
    """

    exponent: float
    signed: bool
    origin: float
    unit: float
    offset: float
    scale: float
    fill: float

    n_columns = 1
    n_bytes = 25

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        u = (np.where(np.isnan(x), self.fill, x) - self.origin) * self.unit
        if not self.signed and (u <= 0).any():
            raise ValueError(
                f"The Box-Cox transform of column {self.column} is one of positive numbers, and X "
                f"contains {x[u <= 0][0]:g}."
            )
        return ((self._transformed(u) - self.offset) * self.scale)[:, None]

    def _transformed(self, u: Float) -> Float:
        if not self.signed:
            return _power(np.log(u), self.exponent)
        above = _power(np.log1p(np.maximum(u, 0.0)), self.exponent)
        return above - _power(np.log1p(np.maximum(-u, 0.0)), 2.0 - self.exponent)

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """The column keeps its name."""
        return [""]


def _power(logarithm: Float, exponent: float) -> Float:
    """Return ``(u^λ − 1) / λ``, given ``log(u)``."""
    if exponent == 0:
        return logarithm
    power: Float = np.expm1(exponent * logarithm) / exponent
    return power


@dataclass(frozen=True, eq=False)
class Missing(Term):
    """One number for gaps, another one for all else.

    Attributes
    ----------
    present, missing : float
        0 for numbers and 1 for gaps, unless a scaler has changed them.
    """

    present: float = 0.0
    missing: float = 1.0

    n_columns = 1

    @property
    def n_bytes(self) -> int:
        """Bytes of the two numbers; one where they are a flag."""
        return 1 if (self.present, self.missing) == (0.0, 1.0) else 9

    def of(self, x: Float) -> Float:
        """Return the code columns of raw numbers."""
        flag: Float = np.where(np.isnan(x), self.missing, self.present)
        return flag[:, None]

    def suffixes(self, levels: tuple[str, ...]) -> list[str]:
        """Say that the number is missing."""
        return [" missing"]


@dataclass(frozen=True, eq=False)
class TableCode:
    """The code of a table: the columns of all terms, side by side.

    Attributes
    ----------
    n_inputs : int
        Number of raw columns d.
    terms : tuple of Term
    """

    n_inputs: int
    terms: tuple[Term, ...]

    @property
    def n_columns(self) -> int:
        """Number of code columns D."""
        return sum(term.n_columns for term in self.terms)

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers of all terms, and two a term for its kind and its raw column."""
        return sum(term.n_bytes + 2 for term in self.terms)

    @property
    def groups(self) -> npt.NDArray[np.intp]:
        """The raw column of each code column, of shape (D,)."""
        return np.repeat(
            np.array([term.column for term in self.terms], dtype=np.intp),
            [term.n_columns for term in self.terms],
        )

    def __call__(self, X: Float, dtype: npt.DTypeLike = np.float32) -> Float:
        """Return the code columns of raw numbers of shape (N, d). O(N D).

        They are computed in float64 and rounded to `dtype`. Numbers that are far beyond those of
        training may overflow to infinity, which kernels take.
        """
        code: Float = np.empty((len(X), self.n_columns), dtype=dtype)
        start = 0
        for term in self.terms:
            stop = start + term.n_columns
            with np.errstate(over="ignore"):
                code[:, start:stop] = term.of(np.asarray(X[:, term.column], dtype=np.float64))
            start = stop
        return code

    def same(self, other: Any) -> bool:
        """Return whether another code gives the same columns."""
        if not isinstance(other, TableCode):
            return False
        return self.n_inputs == other.n_inputs and [
            (type(term), *map(_plain, vars(term).values())) for term in self.terms
        ] == [(type(term), *map(_plain, vars(term).values())) for term in other.terms]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
