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
    """

    many_levels = False

    def __init__(self, raw, positions=None, calls=None):
        self.raw, self.n_numbers = raw, raw.shape[1]
        self.positions = np.arange(len(raw)) if positions is None else positions
        self.calls = [] if calls is None else calls

    def at(self, positions):
        """Return views of some of the rows."""
        return SmallViews(self.raw, positions, self.calls)

    def code(self, numbers, n_bins):
        """Return the code of all columns."""
        return TableCode(
            self.n_numbers, tuple(_term(j, x, numbers, n_bins) for j, x in enumerate(self.raw.T))
        )

    def __call__(self, numbers, n_bins, target_statistics):
        self.calls.append((len(self.positions), numbers, n_bins, target_statistics))
        code = self.code(numbers, n_bins)
        return View(code, code(self.raw[self.positions]))


def _term(column, x, numbers, n_bins):
    if numbers == "standard":
        return Linear(column, float(x.mean()), 1.0 / float(x.std()), 0.0)
    knots = np.unique(np.quantile(x, np.linspace(0, 1, (n_bins or 16) + 1)).astype(np.float32))
    if numbers == "rank_gauss":
        return Curve(column, knots, np.linspace(-2, 2, len(knots), dtype=np.float32), 0)
    assert numbers == "thermometer"
    return Ramps(column, knots, float(np.sqrt(np.sqrt(12.0) / (len(knots) - 1))), 0)
