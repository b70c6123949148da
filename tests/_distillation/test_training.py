"""Runs of students are as long as the number of given rows says."""

from __future__ import annotations

import pytest

from nysplus._distillation.training import STYLES, StudentRefinement
from nysplus._learning.tables import TABLE_RULES, options_of


@pytest.mark.parametrize("n_given", [5000, 40_000])
@pytest.mark.parametrize(("times", "length"), [(1, 1.0), (2, 2.0), (4, 3.0), (9, 3.0)])
def test_steps_grow_at_most_threefold_with_synthetic_rows(n_given, times, length):
    learning = StudentRefinement(n_given=n_given, n_rows=times * n_given)
    rules = learning.table_rules(TABLE_RULES)
    (styles,) = learning.table_styles(discrete=True)
    for style, plain in zip(styles, STYLES, strict=True):
        steps = options_of(style, times * n_given, True, rules).n_steps
        expected = length * options_of(plain, n_given, True, TABLE_RULES).n_steps
        assert steps == pytest.approx(expected, rel=0.01)
        assert style.label_smoothing == 0.0
    assert rules.compared_rows == times * TABLE_RULES.compared_rows
