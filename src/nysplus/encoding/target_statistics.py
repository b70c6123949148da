"""Mean targets of the levels of categories, without the rows of a fold.

A level's mean includes the target of every row that has it. A model trained on such means trusts
them too much, so every training row gets the means of the folds that it is not in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nysplus._typing import Float
from nysplus.encoding.code import Lookup, level_rows

N_FOLDS = 5
# Rows with the mean target that are added to every level.
PRIOR_ROWS = 5.0
# Differences of means that are smaller, compared with the targets, are rounding errors.
ROUNDING = 1e-12
# Largest float16: means of few rows among very many, with tiny weights, may exceed it.
LARGEST = float(np.finfo(np.float16).max)


def fold_of(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the fold of rows, by their numbers; rows in any regular order are spread evenly."""
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hash
    return ((mixed >> np.uint64(40)) % np.uint64(N_FOLDS)).astype(np.intp)


@dataclass(frozen=True)
class Categories:
    """The categories whose levels get statistics.

    Attributes
    ----------
    columns : tuple of int
        Raw columns.
    n_levels : tuple of int
    """

    columns: tuple[int, ...]
    n_levels: tuple[int, ...]

    def zero(self, n_outputs: int) -> Float:
        """Return the sums over no rows: weights and weighted targets, by fold and by level."""
        return np.zeros((N_FOLDS, sum(n + 2 for n in self.n_levels), 1 + n_outputs))

    def sums(self, raw: Float, Y: Float, weight: Float, rows: npt.NDArray[np.intp]) -> Float:
        """Return the sums over some rows, which add to those over other rows.

        Parameters
        ----------
        raw : ndarray of shape (b, d)
        Y : ndarray of shape (b, L)
            Coded targets.
        weight : ndarray of shape (b,)
        rows : ndarray of shape (b,)
            Numbers of the rows among all rows.
        """
        sums = self.zero(Y.shape[1])
        fold, addends = fold_of(rows), weight[:, None] * np.column_stack([np.ones(len(Y)), Y])
        start = 0
        for column, n in zip(self.columns, self.n_levels, strict=True):
            np.add.at(sums, (fold, start + level_rows(raw[:, column], n)), addends)
            start += n + 2
        return sums

    def lookups(self, sums: Float) -> tuple[list[Lookup], list[list[Lookup]]]:
        """Return the standardised means of all rows, and those without each fold in turn.

        Parameters
        ----------
        sums : ndarray
            Of all rows.

        Returns
        -------
        complete : list of Lookup
            One for each category.
        without : list of list of Lookup
            The same without fold 0, 1, …
        """
        complete: list[Lookup] = []
        without: list[list[Lookup]] = [[] for _ in range(N_FOLDS)]
        parts = [sums, *(np.delete(sums, fold, axis=0) for fold in range(N_FOLDS))]
        start = 0
        for column, n in zip(self.columns, self.n_levels, strict=True):
            here = slice(start, start + n + 2)
            for lookups, part in zip((complete, *without), parts, strict=True):
                lookups.append(Lookup(column, _standardised_means(part[:, here].sum(axis=0))))
            start += n + 2
        return complete, without


def _standardised_means(sums: Float) -> npt.NDArray[np.float16]:
    """Return the mean target of each level, drawn towards the mean of all rows, which is 0.

    Mean and spread are those of the rows in `sums` as well, so that rows of a fold have no part in
    the numbers that they get.
    """
    mass, totals = sums[:, :1], sums[:, 1:]
    if mass.sum() <= 0:
        return np.zeros(totals.shape, dtype=np.float16)
    mean = totals.sum(axis=0) / mass.sum()
    above = (totals - mass * mean) / (mass + PRIOR_ROWS)
    spread = np.sqrt((mass * above**2).sum(axis=0) / mass.sum())
    rounding = ROUNDING * np.abs(totals).sum(axis=0) / mass.sum()
    unit = np.where(spread > rounding, spread, np.inf)
    means: npt.NDArray[np.float16] = (above / unit).clip(-LARGEST, LARGEST).astype(np.float16)
    return means
