"""Runs of students are as long as the number of given rows says."""

from __future__ import annotations

import pytest

from nysplus._distillation.training import STYLES, StudentRefinement
from nysplus._learning.refinement import MIN_STEPS, Refinement
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


@pytest.mark.parametrize(("n_given", "n_rows"), [(3000, 3000), (3000, 27_000), (100, 900)])
def test_runs_without_a_table_are_as_long(n_given, n_rows):
    plain = Refinement().recipes(n_rows)
    found = StudentRefinement(n_given=n_given, n_rows=n_rows).recipes(n_rows)
    for recipe, longer in zip(found, plain, strict=True):
        steps, most = recipe.options.n_steps, longer.options.n_steps
        expected = most * min(1.0, 3.0 * n_given / n_rows)
        assert steps == pytest.approx(min(most, max(expected, MIN_STEPS)), rel=0.01)
        assert recipe.width == longer.width
