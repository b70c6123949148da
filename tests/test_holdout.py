"""Rows held out, and models compared on them."""

from __future__ import annotations

import factories
import numpy as np
import pytest

from nysplus._holdout import (
    PairedComparison,
    best_of,
    mean_score,
    split,
    split_positions,
    stratified_folds,
)
from nysplus._rows.targets import ClassTargets, ValueTargets


@pytest.mark.parametrize(("n_rows", "sizes"), [(1000, (50, 200)), (90, (30, 60)), (1, (1, 1))])
def test_a_split_has_the_sizes_asked_for_or_a_third(n_rows, sizes, rng):
    X, y = factories.classes(n_rows)
    held_out, others = split(factories.blocks(X, y), 50, 200, rng)
    assert (len(held_out), others.n_rows) == sizes
    if n_rows > 1:
        assert not {tuple(row) for row in held_out.X} & {tuple(row) for row in others.X}


def test_positions_are_split_without_rest(rng):
    held_out, others = split_positions(20, 5, rng)
    assert len(held_out) == 5
    assert sorted([*held_out, *others]) == list(range(20))


def test_values_are_spread_over_all_folds(rng):
    folds = stratified_folds(ValueTargets(np.arange(100.0)[:, None]), 5, rng)
    assert sorted(np.concatenate(folds)) == list(range(100))
    for fold in folds:
        assert abs(fold.mean() - 49.5) < 5
        assert (np.diff(fold) > 0).all()


def test_the_mean_score_is_weighted(rng):
    X, y = rng.randn(4, 1), np.array([0, 1, 1, 1])
    rows = factories.blocks(X, y, sample_weight=np.array([1.0, 2.0, 3.0, 4.0]))
    assert isinstance(rows.targets, ClassTargets)
    block = rows.gather(np.arange(4))
    assert mean_score(lambda X: np.array([[-1.0], [-1.0], [1.0], [1.0]]), block) == 0.8


def test_of_equal_candidates_the_first_is_best():
    assert best_of(iter(["b", "aa", "cc"]), len) == "aa"


def test_models_are_compared_row_by_row():
    before = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    after = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    weight = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 3.0, 1.0])
    comparison = PairedComparison.of(before, after, weight, 1.0)
    assert comparison.n_rows == 7
    assert (comparison.before, comparison.after) == (0.4, 0.7)
    assert comparison.errors == pytest.approx(3.0 / np.sqrt(1 + 1 + 9 + 4))
    assert not comparison.better
    assert PairedComparison.of(before, after, weight, 0.5).better
    assert "40.00 % before, 70.00 % after on 7 held-out rows" in str(comparison)


def test_a_model_that_changes_nothing_is_not_better():
    same = np.array([1.0, 0.0])
    assert not PairedComparison.of(same, same, np.ones(2), 1.0).better
