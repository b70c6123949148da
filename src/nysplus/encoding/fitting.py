"""Fit a code to the raw numbers of a table: knots, scales and levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from nysplus._typing import Float
from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Ramps,
    TableCode,
    Term,
)
from nysplus.encoding.schema import TableColumn, TableSchema

NumberCode = Literal["thermometer", "standard", "rank_gauss"]
DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0
# The first Monday of 1970.
MONDAY = 4 * DAY


@dataclass(frozen=True)
class CodeRules:
    """The numbers that a code follows, and the reason for each.

    Attributes
    ----------
    max_columns : int
        Columns of all thermometer codes together: the map behind the code, and the time of a fit,
        grow with them.
    min_bins : int
        Bins of each number at least.
    span : float
        Squared distance between the two ends of a thermometer: that of uniform numbers of unit
        variance, in the ℓ1 distance.
    curve_knots : int
        Bins of a rank-Gauss curve.
    max_hot : int
        Levels with columns of their own; rarer ones are all zeros.
    smallest : float
        Smaller differences of numbers count as none, so that slopes are finite.
    knot_error : float
        Share of a bin by which its knots may be rounded.
    scaling_error : float
        Share by which the numbers that standardise a column may be rounded: those for its mean and
        for gaps in standard deviations, that for its scale as a ratio.
    season : float
        Seconds from which on the time of the year can matter.
    """

    max_columns: int = 800
    min_bins: int = 4
    span: float = float(np.sqrt(12.0))
    curve_knots: int = 16
    max_hot: int = 32
    smallest: float = 1e-300
    knot_error: float = 1 / 32
    scaling_error: float = 0.01
    season: float = 60 * DAY


DEFAULT_RULES = CodeRules()


def fit_code(
    raw: Float,
    schema: TableSchema,
    numbers: NumberCode,
    n_bins: int,
    lookups: Sequence[Lookup] = (),
    rules: CodeRules = DEFAULT_RULES,
) -> TableCode:
    """Return the code of a table.

    Parameters
    ----------
    raw : ndarray of shape (N, d)
        Raw numbers of all rows, or of a sample of them.
    schema : TableSchema
        With d columns.
    numbers : {"thermometer", "standard", "rank_gauss"}
        How numbers are coded.
    n_bins : int
        Bins of a thermometer code, as long as all of them together are not too many.
    lookups : sequence of Lookup
        Codes of categories, in place of columns for their levels.
    rules : CodeRules, optional
    """
    counted = sum(column.kind != "category" for column in schema.columns)
    n_bins = max(rules.min_bins, min(n_bins, rules.max_columns // max(1, counted)))
    given = {lookup.column: lookup for lookup in lookups}
    terms: list[Term] = []
    for i, column in enumerate(schema.columns):
        if i in given:
            terms.append(given[i])
        elif column.kind == "category":
            terms.append(_levels(i, column, rules))
        else:
            x = raw[:, i][~np.isnan(raw[:, i])]
            terms += _number(i, x, column.gaps, numbers, n_bins, rules)
            if column.kind == "date":
                terms += _circles(i, x, rules)
            if column.gaps:
                terms.append(Missing(i))
    if not terms:
        raise ValueError(
            f"The columns {[column.name for column in schema.columns]} of X vary by less than "
            f"{rules.smallest:g}, or not at all in {len(raw):,} rows. Pass columns that vary."
        )
    return TableCode(len(schema), tuple(terms))


def _levels(i: int, column: TableColumn, rules: CodeRules) -> Term:
    """Return columns for levels; two levels have one column, with other levels between them."""
    if len(column.levels) == 2 and not column.gaps:
        half = np.sqrt(0.5)  # the squared distance of two levels is 2, as between columns
        return Lookup(i, np.array([[-half], [half], [0.0], [0.0]], dtype=np.float16))
    return OneHot(i, min(len(column.levels), rules.max_hot), column.gaps)


def _number(
    i: int, x: Float, gaps: bool, numbers: NumberCode, n_bins: int, rules: CodeRules
) -> list[Term]:
    """Return the code of a number; none where a sample of it does not vary."""
    if len(x) == 0 or np.ptp(x) < rules.smallest:
        return []
    middle = float(np.median(x))
    if numbers == "standard":
        return [_standardised(i, x, middle if gaps else None, rules)]
    n_bins = n_bins if numbers == "thermometer" else rules.curve_knots
    knots, rank = _knots(x, n_bins)
    apart = np.append(True, np.diff(knots) >= rules.smallest)
    knots, rank = knots[apart], rank[apart]
    if len(knots) < 2:
        return []
    gap = int(np.abs(knots - middle).argmin())
    bins = np.diff(knots)
    smaller = np.minimum(np.append(bins, np.inf), np.insert(bins, 0, np.inf))
    stored = _shortest(knots, rules.knot_error * smaller)
    if numbers == "thermometer":
        return [Ramps(i, stored, float(np.sqrt(rules.span / (len(knots) - 1))), gap)]
    least = 0.5 / (n_bins + 1)
    values = ndtri(rank.clip(least, 1.0 - least))
    return [Curve(i, stored, values.astype(np.float16), gap)]


def _knots(x: Float, n_bins: int) -> tuple[Float, Float]:
    """Return knots among the numbers, and their ranks between 0 and 1.

    Knots are quantiles of numbers of which each is counted as often as there are rows in a bin, at
    most. Otherwise a number that most rows have, such as zero, would take most of the knots.
    """
    values, counts = np.unique(x, return_counts=True)
    if len(values) <= n_bins + 1:
        rank = np.cumsum(counts) - 0.5 * counts
        return values, (rank - rank[0]) / (rank[-1] - rank[0])
    mass = np.minimum(counts, len(x) / n_bins)
    rank = np.cumsum(mass) - 0.5 * mass
    rank = (rank - rank[0]) / (rank[-1] - rank[0])
    levels = np.linspace(0.0, 1.0, n_bins + 1)
    after = np.searchsorted(rank, levels).clip(1, len(rank) - 1)
    nearest = np.unique(after - (levels - rank[after - 1] < rank[after] - levels))
    return values[nearest], rank[nearest]


def _standardised(i: int, x: Float, fill: float | None, rules: CodeRules) -> Linear:
    """Return the code of a number in standard deviations; gaps have its mean without a `fill`."""
    deviation = float(x.std())
    scale = 1.0 / deviation if deviation > 0 else 1.0

    def rounded(value: float, unit: float) -> float:
        return float(_shortest(np.array([value]), rules.scaling_error * unit)[0])

    offset = rounded(float(x.mean()), deviation)
    gap = offset if fill is None else rounded(fill, deviation)
    return Linear(i, offset, rounded(scale, scale), gap)


def _shortest(numbers: Float, allowed: Float | float) -> npt.NDArray[Any]:
    """Return numbers in the smallest floating type that changes each by what is allowed at most."""
    for dtype in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            rounded = numbers.astype(dtype)
        if (
            np.isfinite(rounded).all()
            and (np.abs(rounded.astype(np.float64) - numbers) <= allowed).all()
        ):
            return rounded
    return numbers


def _circles(i: int, x: Float, rules: CodeRules) -> list[Term]:
    """Return the times of the year, the week and the day that vary among dates."""
    circles: list[Term] = []
    if len(x) == 0:
        return circles
    if np.ptp(x) > rules.season:
        circles.append(Circle(i, YEAR, 0.0, "season"))
    if np.ptp(x // DAY) > 0:
        circles.append(Circle(i, WEEK, MONDAY, "weekday"))
    if len(np.unique(x % DAY)) > 1:
        circles.append(Circle(i, DAY, 0.0, "hour"))
    return circles
