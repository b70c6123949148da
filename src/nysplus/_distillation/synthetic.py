"""Synthetic rows between neighbours, for a teacher to score.

Each synthetic row lies between a given row and one of its nearest neighbours. A number becomes the
value of its column nearest to a random point between the two; other values are taken from one of
the two. This is the idea of MUNGE (Bucilă, Caruana and Niculescu-Mizil, *Model Compression*, 2006).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from nysplus._typing import Float
from nysplus.encoding import TableEncoder
from nysplus.encoding.frames import is_frame, take_rows

# Kinds of NumPy types that are numbers.
NUMBERS = "iuf"
# Numbers of at most this many values are taken from one of the two rows: they may be codes.
FEW_VALUES = 10


@dataclass(frozen=True)
class SyntheticRules:
    """The numbers that steer synthetic rows, and the reason for each."""

    # Neighbours that a partner is drawn from.
    n_neighbors: int = 5
    # Given rows nearest to a synthetic row that count as its origin, beside the two that it is
    # between: a teacher that was fitted to a row has learned its target for the neighbourhood.
    n_near: int = 3
    # Rows that neighbours are searched among: distances of all pairs take too long for more.
    max_rows: int = 20_000


DEFAULT_RULES = SyntheticRules()


@dataclass(frozen=True)
class SyntheticRows:
    """Rows that lie between given rows.

    Attributes
    ----------
    X : ndarray, CSR matrix or data frame
        Like the given rows.
    origin : ndarray of shape (n, m)
        Positions of given rows: the two that each row was made of, and those nearest to it.
    """

    X: Any
    origin: npt.NDArray[np.intp]


def synthetic_rows(
    X: Any, n: int, rng: np.random.RandomState, rules: SyntheticRules = DEFAULT_RULES
) -> SyntheticRows:
    """Make rows between neighbours.

    Neighbours may be of different classes: the boundary between both is where the scores of a
    teacher tell most.

    Parameters
    ----------
    X : ndarray, CSR matrix or pandas data frame
        Given rows.
    n : int
        Number of rows to make.
    rng : RandomState
    rules : SyntheticRules, optional
    """
    some = rng.permutation(X.shape[0])[: rules.max_rows]
    coordinates = _coordinates(X, some)
    Z = coordinates(take_rows(X, some))
    search = NearestNeighbors().fit(Z)
    neighbors = _neighbors(search, rules.n_neighbors)
    # every row as often as any other, up to one
    repeats = -(-n // len(some))
    first = np.concatenate([rng.permutation(len(some)) for _ in range(repeats)])[:n]
    second = neighbors[first, rng.randint(neighbors.shape[1], size=n)]
    made = _between(X, some[first], some[second], rng)
    near = search.kneighbors(coordinates(made), min(rules.n_near, len(some)), return_distance=False)
    return SyntheticRows(made, np.column_stack([some[first], some[second], some[near]]))


def _coordinates(X: Any, rows: npt.NDArray[np.intp]) -> Callable[[Any], Any]:
    """Return a function to coordinates of rows in which distances of columns are comparable."""
    if sp.issparse(X):
        return lambda rows: rows
    encoder = TableEncoder(numbers="standard", target_statistics=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of the student warns of the same columns
        encoder.fit(take_rows(X, rows))
    return lambda rows: np.asarray(encoder.transform(rows))


def _neighbors(search: NearestNeighbors, n_neighbors: int) -> npt.NDArray[np.intp]:
    """Return the positions of the rows nearest to each row; a single row is its own neighbour."""
    n_rows = search.n_samples_fit_
    if n_rows == 1:
        return np.zeros((1, 1), dtype=np.intp)
    found: npt.NDArray[np.intp] = search.kneighbors(
        n_neighbors=min(n_neighbors, n_rows - 1), return_distance=False
    )
    return found


def _between(
    X: Any,
    first: npt.NDArray[np.intp],
    second: npt.NDArray[np.intp],
    rng: np.random.RandomState,
) -> Any:
    """Return rows between two given rows each."""
    if sp.issparse(X):
        fraction = sp.diags(rng.uniform(size=len(first)))
        return sp.csr_matrix(X[first] + fraction @ (X[second] - X[first]))
    if not is_frame(X):
        columns = [_numbers_between(column, first, second, rng) for column in X.T]
        return np.column_stack(columns).astype(X.dtype, copy=False)
    made = X.iloc[first].reset_index(drop=True)
    for position in range(X.shape[1]):
        column = X.iloc[:, position]
        if column.dtype.kind in NUMBERS:
            numbers = column.to_numpy(np.float64, na_value=np.nan)
            mixed = type(column)(_numbers_between(numbers, first, second, rng))
        else:
            others = column.iloc[second].reset_index(drop=True)
            mixed = made.iloc[:, position].where(rng.uniform(size=len(made)) < 0.5, others)
        made.isetitem(position, mixed.astype(column.dtype))
    return made


def _numbers_between(
    column: npt.NDArray[Any],
    first: npt.NDArray[np.intp],
    second: npt.NDArray[np.intp],
    rng: np.random.RandomState,
) -> npt.NDArray[Any]:
    """Return values of a column between two of its entries each, or one of both entries."""
    left, right, fraction = column[first], column[second], rng.uniform(size=len(first))
    taken = np.where(fraction < 0.5, left, right)
    if column.dtype.kind not in NUMBERS:
        return taken
    values = np.unique(column[~np.isnan(column)])
    if len(values) <= FEW_VALUES:
        return taken
    points: Float = left + fraction * (right.astype(np.float64) - left)
    above = np.searchsorted(values, points).clip(1, len(values) - 1)
    low, high = values[above - 1], values[above]
    # beside a gap there is nothing to interpolate
    return np.where(np.isnan(points), taken, np.where(points - low < high - points, low, high))
