"""How a student is trained on given and synthetic rows together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nysplus._learning.candidates import Recipe
from nysplus._learning.refinement import MIN_STEPS, Refinement
from nysplus._learning.tables import LONGEST, MID, STANDARD, TableRules, TableStyle
from nysplus._learning.training import TrainingOptions

# Ways to train on tables. Predictions of a teacher have little noise: no label smoothing, and as
# many landmarks as fit in the budget.
STYLES = (replace(LONGEST, epochs=75.0, value_epochs=75.0), MID, STANDARD)
N_LANDMARKS = 1500
# Steps of a run on all rows, as a multiple of those of a run on the given rows.
LENGTH = 3.0
# Short looks and folds: runs are long, and tell styles apart earlier.
LOOK_LENGTH, MAX_FOLDS = 0.25, 2


@dataclass(repr=False, eq=False)
class StudentRefinement(Refinement):
    """Refinement on synthetic rows beside the given ones.

    Parameters
    ----------
    n_given, n_rows : int
        Number of the given rows, and of all rows.
    """

    n_given: int = 1
    n_rows: int = 1

    @property
    def _share(self) -> float:
        """The share of the epochs of given rows that all rows have."""
        return min(1.0, LENGTH * self.n_given / self.n_rows)

    def recipes(self, n_rows: int, discrete: bool = True, rate: float = 1.0) -> list[Recipe]:
        """Return the recipes that are compared, with fewer epochs where rows are synthetic."""

        def shortened(options: TrainingOptions) -> TrainingOptions:
            length = max(self._share, MIN_STEPS / options.n_steps)
            return options if length >= 1.0 else options.scaled(length)

        return [
            replace(recipe, options=shortened(recipe.options))
            for recipe in super().recipes(n_rows, discrete, rate)
        ]

    def table_styles(self, discrete: bool) -> list[tuple[TableStyle, ...]]:
        """Return ways to train on tables, with fewer epochs where rows are synthetic."""
        styles = [
            replace(
                style,
                epochs=self._share * style.epochs,
                value_epochs=self._share * style.value_epochs,
                label_smoothing=0.0,
                n_landmarks=N_LANDMARKS,
            )
            for style in STYLES
        ]
        return [tuple(styles)]

    def table_rules(self, rules: TableRules) -> TableRules:
        """Return rules for tables that count compared rows and epochs by the given rows."""
        rules, times = super().table_rules(rules), self.n_rows / self.n_given
        return replace(
            rules,
            full_epochs_rows=int(rules.full_epochs_rows * times),
            compared_rows=int(rules.compared_rows * times),
            look_length=LOOK_LENGTH,
            max_folds=MAX_FOLDS,
        )
