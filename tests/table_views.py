"""Views of small tables without gaps and categories, for tests of the search."""

from __future__ import annotations

import numpy as np

from nysplus._learning.tables import View
from nysplus.encoding.code import Curve, Linear, Ramps, TableCode


class SmallViews:
    """Views of raw numbers; codes are fitted to all rows, whatever rows are viewed.

    Attributes
    ----------
    calls : list of tuple
        The arguments of all calls, behind the number of viewed rows.
    importance : ndarray or None
        Of the columns, where models may leave some out.
    counts : tuple
        The numbers of columns that models may have; None for all.
    """

    many_levels = False

    def __init__(self, raw, positions=None, calls=None, importance=None, counts=(None,)):
        self.raw, self.n_numbers = raw, raw.shape[1]
        self.importance, self.counts = importance, counts
        self.positions = np.arange(len(raw)) if positions is None else positions
        self.calls = [] if calls is None else calls

    def at(self, positions):
        """Return views of some of the rows."""
        return SmallViews(self.raw, positions, self.calls, self.importance, self.counts)

    def column_counts(self, budget):
        return self.counts

    def code(self, numbers, n_bins, n_columns=None):
        """Return the code of all columns, or of the most important ones."""
        columns = range(self.n_numbers)
        if n_columns is not None:
            columns = np.sort(np.argsort(-self.importance)[:n_columns])
        return TableCode(
            self.n_numbers, tuple(_term(int(j), self.raw[:, j], numbers, n_bins) for j in columns)
        )

    def __call__(self, numbers, n_bins, target_statistics, n_columns=None):
        self.calls.append((len(self.positions), numbers, n_bins, target_statistics))
        code = self.code(numbers, n_bins, n_columns)
        return View(code, code(self.raw[self.positions]))


def _term(column, x, numbers, n_bins):
    if numbers == "standard":
        return Linear(column, float(x.mean()), 1.0 / float(x.std()), 0.0)
    knots = np.unique(np.quantile(x, np.linspace(0, 1, (n_bins or 16) + 1)).astype(np.float32))
    if numbers == "rank_gauss":
        return Curve(column, knots, np.linspace(-2, 2, len(knots), dtype=np.float32), 0)
    assert numbers == "thermometer"
    return Ramps(column, knots, float(np.sqrt(np.sqrt(12.0) / (len(knots) - 1))), 0)
