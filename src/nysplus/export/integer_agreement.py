"""Measure how much integer arithmetic changes the scores and labels of a model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysplus._typing import Float
from nysplus.export.c_integer import IntegerModel, features_of, predictions
from nysplus.export.contents import contents_of
from nysplus.export.rounding import compared_rows, exact_scores

# Rows that are compared at most.
MAX_ROWS = 2000
# Labels that change more often than this are worth a warning; beyond the second number the header
# computes another function. Half a percent is the change from float32 to 8-bit numbers.
MAX_LABELS, WRONG_LABELS = 0.005, 0.1
# The same for scores, by the root mean square of their changes over their standard deviation.
MAX_SCORES, WRONG_SCORES = 0.03, 0.3
# A change of fewer rows than this is no reason for a warning.
FEW_ROWS = 3
ADVICE = (
    "Pass an input_scale with more steps, or an input_range that is not wider than the rows, or "
    "fit with a larger alpha, which makes smaller coefficients"
)


@dataclass(frozen=True)
class Agreement:
    """Agreement of integer arithmetic with the model in float64.

    Attributes
    ----------
    n_rows : int
    scores : float
        Root mean square change of scores, over their standard deviation.
    labels : float or None
        Share of rows whose label changes; None for values.
    """

    n_rows: int
    scores: float
    labels: float | None

    def comment(self) -> str:
        """Return a line of the comment at the top of a header."""
        text = f" * On {self.n_rows} rows, scores change by {100 * self.scores:.2g} % (root mean "
        text += "square, of\n * their standard deviation)"
        if self.labels is not None:
            text += f", and {100 * self.labels:.2g} % of the labels change"
        return f"{text}.\n"

    def check(self, given: bool) -> None:
        """Warn if labels or scores change, and raise if they are wrong.

        Parameters
        ----------
        given : bool
            Whether the rows are the user's: labels of rows between landmarks are often uncertain.
        """
        by_labels = given and self.labels is not None
        change = self.labels if given and self.labels is not None else self.scores
        most, wrong = (MAX_LABELS, WRONG_LABELS) if by_labels else (MAX_SCORES, WRONG_SCORES)
        what = f"{100 * change:.2g} % of the labels of {self.n_rows} rows"
        if not by_labels:
            what = f"scores by {100 * change:.2g} % of their standard deviation"
        if change > wrong:
            raise ValueError(f"Integer arithmetic would change {what}. {ADVICE}.")
        if change > most and not (by_labels and change * self.n_rows < FEW_ROWS):
            warnings.warn(f"Integer arithmetic changes {what}. {ADVICE}.", stacklevel=4)


def agreement(model: Any, integers: IntegerModel, X: Any) -> Agreement:
    """Return the agreement on some of the rows of X, or on rows near landmarks without it."""
    content = contents_of(model)
    rows: Float = compared_rows(content) if X is None else features_of(model, X)
    rows = rows[:: -(-len(rows) // MAX_ROWS)]
    exact, found = exact_scores(content, rows), integers.decision_function(rows)
    spread = float(exact.std())
    change = float(np.sqrt(((found - exact) ** 2).mean()))
    labels = None
    if content.kind != "values":
        differ = predictions(content, exact) != predictions(content, found)
        labels = float(np.mean(differ.reshape(len(rows), -1).any(axis=1)))
    return Agreement(len(rows), change / spread if spread > 0 else change, labels)
