"""Columns behind the steps of a pipeline, as functions of one column of the table each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.encoding.code import Curve, Linear, Missing, Power, Term
from nysplus.pipelines.operations import IDENTITY, Broken, Operation, PowerTransform, Shift


class CannotFold(ValueError):
    """A step that has no place in the code of a table, and why."""


@dataclass(frozen=True, eq=False)
class Column(ABC):
    """A function of one column of the table.

    Attributes
    ----------
    source : int
        Position of that column.
    """

    source: int

    @abstractmethod
    def then(self, operation: Operation) -> Column:
        """Return the column behind another operation."""

    @abstractmethod
    def imputed(self, value: Any) -> Column:
        """Return the column with a value in place of gaps."""

    @abstractmethod
    def flag(self) -> Column:
        """Return 1 for gaps and 0 for other entries."""

    @property
    def refuses_gaps(self) -> bool:
        """Whether gaps are left."""
        return False


class OneTermColumn(Column):
    """A function that is a term of its own."""

    @abstractmethod
    def term(self, column: int, center: float) -> Term:
        """Return the term of a raw column, with a number subtracted from its values."""


@dataclass(frozen=True, eq=False)
class NumberColumn(OneTermColumn):
    """A function of a number.

    Attributes
    ----------
    fill : object
        The entry of the table that gaps are filled with; None if they are not.
    """

    fill: Any

    @property
    def refuses_gaps(self) -> bool:
        """Whether gaps are left."""
        return self.fill is None

    def flag(self) -> Column:
        """Return 1 for gaps and 0 for other entries."""
        return FlagColumn(self.source, 0.0, 1.0 if self.fill is None else 0.0)

    def imputed(self, value: Any) -> Column:
        """Return the column with a value in place of gaps."""
        if self.fill is not None:
            return self
        raise CannotFold("comes after a QuantileTransformer or a PowerTransformer. Impute first")


@dataclass(frozen=True, eq=False)
class LinearColumn(NumberColumn):
    """A linear function of a number, or an entry of any kind as it is."""

    shift: Shift

    @property
    def as_given(self) -> bool:
        """Whether no step has changed the entries."""
        return self.shift == IDENTITY

    def then(self, operation: Operation) -> Column:
        """Return the column behind another operation."""
        if isinstance(operation, Shift):
            return replace(self, shift=self.shift.then(operation))
        if isinstance(operation, Broken):
            t, v = self.shift.inverse(operation.knots), operation.values
            apart = np.append(True, np.diff(t) > 0)
            return CurveColumn(self.source, self.fill, Broken(t[apart], v[apart]))
        assert isinstance(operation, PowerTransform)
        return PowerColumn(self.source, self.fill, self.shift, operation, IDENTITY)

    def imputed(self, value: Any) -> Column:
        """Return the column with a value in place of gaps."""
        if self.fill is not None:
            return self
        fill = value if self.as_given else self.shift.inverse(float(value))
        return replace(self, fill=fill)

    def term(self, column: int, center: float) -> Term:
        """Return the term of a raw column."""
        offset = self.shift.inverse(center)
        fill = offset if self.fill is None else float(self.fill)
        return Linear(column, offset, self.shift.scale, fill)


@dataclass(frozen=True, eq=False)
class CurveColumn(NumberColumn):
    """A piecewise-linear function of a number."""

    curve: Broken

    def then(self, operation: Operation) -> Column:
        """Return the column behind another operation."""
        if not isinstance(operation, Shift):
            raise CannotFold("comes after another step that is not linear")
        return replace(self, curve=Broken(self.curve.knots, operation(self.curve.values)))

    def term(self, column: int, center: float) -> Term:
        """Return the term of a raw column."""
        t, v = self.curve.knots, self.curve.values
        fill = t[len(t) // 2] if self.fill is None else np.clip(float(self.fill), t[0], t[-1])
        gap = int(np.searchsorted(t, fill))
        if t[gap] != fill:
            t, v = np.insert(t, gap, fill), np.insert(v, gap, self.curve(fill))
        knots = t.astype(np.float32)
        knots = knots if np.array_equal(knots, t) else t
        return Curve(column, knots, (v - center).astype(np.float32), gap)


@dataclass(frozen=True, eq=False)
class PowerColumn(NumberColumn):
    """A power transform of a number."""

    before: Shift
    power: PowerTransform
    after: Shift

    def then(self, operation: Operation) -> Column:
        """Return the column behind another operation."""
        if not isinstance(operation, Shift):
            raise CannotFold("comes after another step that is not linear")
        return replace(self, after=self.after.then(operation))

    def term(self, column: int, center: float) -> Term:
        """Return the term of a raw column."""
        origin, unit = self.before.offset, self.before.scale
        some = origin if self.power.signed else self.before.inverse(1.0)
        fill = some if self.fill is None else float(self.fill)
        exponent, signed = self.power.exponent, self.power.signed
        offset, scale = self.after.inverse(center), self.after.scale
        return Power(column, exponent, signed, origin, unit, offset, scale, fill)


@dataclass(frozen=True, eq=False)
class FlagColumn(OneTermColumn):
    """One number for gaps, another one for other entries."""

    present: float
    missing: float

    def then(self, operation: Operation) -> Column:
        """Return the column behind another operation."""
        present, missing = operation(np.array([self.present, self.missing]))
        return FlagColumn(self.source, float(present), float(missing))

    def imputed(self, value: Any) -> Column:
        """Return the column itself, which has no gaps."""
        return self

    def flag(self) -> Column:
        """Return zeros: the column has no gaps."""
        return FlagColumn(self.source, 0.0, 0.0)

    def term(self, column: int, center: float) -> Term:
        """Return the term of a raw column."""
        return Missing(column, self.present - center, self.missing - center)


@dataclass(frozen=True)
class Levels:
    """The levels of a category that an encoder knows.

    Attributes
    ----------
    names : tuple of str
    numbered : bool
        Whether they are numbers in the table.
    refuses_others, refuses_gaps : bool
        Whether the encoder refuses other levels, and gaps.
    """

    names: tuple[str, ...]
    numbered: bool
    refuses_others: bool
    refuses_gaps: bool


@dataclass(frozen=True, eq=False)
class LevelColumn(Column):
    """A number for each level of a category.

    Attributes
    ----------
    levels : Levels
    values : ndarray of shape (n_levels + 2,)
        The last two are for other levels and for gaps.
    """

    levels: Levels
    values: Float

    def then(self, operation: Operation) -> Column:
        """Return the column behind another operation."""
        return replace(self, values=operation(self.values))

    def imputed(self, value: Any) -> Column:
        """Return the column with a value in place of gaps."""
        return replace(self, values=np.where(np.isnan(self.values), float(value), self.values))

    def flag(self) -> Column:
        """Return 1 for gaps and 0 for other entries."""
        return replace(self, values=np.isnan(self.values).astype(np.float64))

    @property
    def refuses_gaps(self) -> bool:
        """Whether gaps are left, or the encoder refuses them."""
        return self.levels.refuses_gaps or bool(np.isnan(self.values[-1]))

    @property
    def refuses_others(self) -> bool:
        """Whether other levels have no number, or the encoder refuses them."""
        return self.levels.refuses_others or bool(np.isnan(self.values[-2]))
