"""Invent rows of a table at which the scores of an encoded model can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nysplus._rows.projected import project
from nysplus._typing import Float
from nysplus.encoding.code import (
    Circle,
    Curve,
    Linear,
    Lookup,
    Missing,
    OneHot,
    Power,
    Ramps,
    TableCode,
    Term,
)
from nysplus.expansion import KernelExpansion

# Numbers that are tried for each column of a row: they need not bring it very near to a landmark.
N_CHOICES = 16
# Distance of knots between which a curve jumps, as a share of the largest.
JUMP = 1e-12
# Seconds from 1970 to 2038, for dates of which no other range is known.
DATES = 2.0**31


def _between(knots: Any, rng: np.random.RandomState) -> Float:
    """Return numbers within and at the ends of the bins between knots."""
    places = np.append(rng.uniform(0, len(knots) - 1, N_CHOICES - 2), [0, len(knots) - 1])
    numbers: Float = np.interp(places, np.arange(len(knots)), knots.astype(np.float64))
    return numbers


def _without_jumps(knots: Any) -> Float:
    """Return knots but those that are nearer to the one before than numbers of a table are."""
    t: Float = knots.astype(np.float64)
    kept: Float = t[np.append(True, np.diff(t) > JUMP * np.abs(t).max())]
    return kept


def _levels(n_levels: int, rng: np.random.RandomState) -> Float:
    """Return levels, and −1 for another level."""
    levels: Float = rng.permutation(n_levels)[: N_CHOICES - 1].astype(np.float64)
    return np.append(levels, -1.0)


def _normal(term: Linear, rng: np.random.RandomState) -> Float:
    """Return numbers whose code is standard normal."""
    scale = term.scale if term.scale != 0 else 1.0
    numbers: Float = term.offset + rng.standard_normal(N_CHOICES) / scale
    return numbers


def _transformed(term: Power, rng: np.random.RandomState) -> Float:
    """Return numbers that a power transform takes."""
    u = rng.standard_normal(N_CHOICES)
    unit = term.unit if term.unit != 0 else 1.0
    numbers: Float = term.origin + (u if term.signed else np.exp(u)) / unit
    return numbers


# Raw numbers that a term tells apart.
_CHOICES: dict[type[Term], Callable[[Any, np.random.RandomState], Float]] = {
    Circle: lambda term, rng: rng.uniform(0, DATES, N_CHOICES),
    Curve: lambda term, rng: _between(_without_jumps(term.knots), rng),
    Linear: _normal,
    Lookup: lambda term, rng: _levels(len(term.table) - 2, rng),
    Missing: lambda term, rng: np.empty(0),
    OneHot: lambda term, rng: _levels(term.n_levels, rng),
    Power: _transformed,
    Ramps: lambda term, rng: _between(term.knots, rng),
}


def _choices(code: TableCode, column: int, rng: np.random.RandomState) -> Float:
    """Return raw numbers of a column, NaN for a gap included."""
    terms = [term for term in code.terms if term.column == column]
    # a logarithm takes positive numbers only; circles do not tell the range of dates
    positive: list[Term] = [term for term in terms if isinstance(term, Power) and not term.signed]
    others = [term for term in terms if not isinstance(term, (Circle, Missing))]
    ranges = positive or others or terms
    return np.concatenate([*(_CHOICES[type(term)](term, rng) for term in ranges), [np.nan]])


def table_rows(expansion: KernelExpansion, code: TableCode, n_rows: int) -> Float:
    """Return raw numbers of rows: half of them random, half of them near landmarks.

    The numbers of a row near a landmark are chosen column after column, each from a few, to
    minimise the distance in the coordinates of the landmarks. O(N d (D + m) r).

    Parameters
    ----------
    expansion : KernelExpansion
    code : TableCode
        Its encoder.
    n_rows : int
        At least two.
    """
    P = expansion.projection
    rng = np.random.RandomState(0)
    choices = [_choices(code, column, rng) for column in range(code.n_inputs)]
    rows = np.column_stack([some[rng.randint(len(some), size=n_rows)] for some in choices])
    near = rows[: n_rows // 2]
    Z = expansion.landmarks
    left = Z[np.arange(len(near)) % len(Z)] - project(code(near, np.float64), P, expansion.center)
    for column, some in enumerate(choices):
        trial = np.full((len(some) + len(near), code.n_inputs), np.nan)
        trial[:, column] = np.append(some, near[:, column])
        coded = project(code(trial, np.float64) * (code.groups == column), P)
        there, was = coded[: len(some)], coded[len(some) :]
        left += was
        best = (0.5 * (there**2).sum(axis=1) - left @ there.T).argmin(axis=1)
        left -= there[best]
        near[:, column] = some[best]
    return rows
