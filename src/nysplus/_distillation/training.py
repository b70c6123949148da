"""How a student is trained on given and synthetic rows together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nysplus._learning.refinement import Refinement
from nysplus._learning.tables import TableRules


@dataclass(repr=False, eq=False)
class StudentRefinement(Refinement):
    """Refinement on synthetic rows beside the given ones, in as many steps as on the given alone.

    Parameters
    ----------
    n_given, n_rows : int
        Number of the given rows, and of all rows.
    """

    n_given: int = 1
    n_rows: int = 1

    def table_rules(self, rules: TableRules) -> TableRules:
        """Return rules for tables that count epochs and compared rows by the given rows.

        Epochs fall with the root of the number of rows beyond a number F. For the same steps as on
        the N given rows, min(1, √(F / N)) N, on all M rows, this number is min(F, N) N / M.
        """
        rules = super().table_rules(rules)
        times = self.n_rows / self.n_given
        return replace(
            rules,
            full_epochs_rows=max(1, int(min(rules.full_epochs_rows, self.n_given) / times)),
            compared_rows=int(rules.compared_rows * times),
        )
