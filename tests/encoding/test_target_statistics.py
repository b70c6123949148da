"""Mean targets of levels, in which a row's own target has no part."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from nysplus.encoding.target_statistics import N_FOLDS, PRIOR_ROWS, Categories, fold_of


def drawn(n_rows=200, n_levels=6, n_outputs=1, seed=0):
    """Return raw numbers of a category with gaps and other levels, targets and weights."""
    rng = np.random.RandomState(seed)
    raw = rng.randint(-1, n_levels, (n_rows, 1)).astype(float)
    raw[rng.rand(n_rows) < 0.1] = np.nan
    Y = rng.randn(n_rows, n_outputs) + np.nan_to_num(raw)
    return raw, Y, rng.choice([0.0, 0.5, 1.0, 3.0], n_rows)


def lookups_of(raw, Y, weight, n_levels=6):
    many = Categories((0,), (n_levels,))
    return many.lookups(many.sums(raw, Y, weight, np.arange(len(raw))))


def test_folds_are_even_and_spread():
    folds = fold_of(np.arange(10_000))
    assert set(folds) == set(range(N_FOLDS))
    assert np.abs(np.bincount(folds) / 10_000 - 0.2).max() < 0.01
    for step in (2, 3, 5, 7, 64):  # rows in a regular order
        share = np.bincount(folds[::step]) / len(folds[::step])
        assert np.abs(share - 0.2).max() < 0.05


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_statistics_are_their_definition(n_outputs):
    raw, Y, weight = drawn(n_outputs=n_outputs)
    (complete,), without = lookups_of(raw, Y, weight)
    folds = fold_of(np.arange(len(raw)))
    levels = np.where(np.isnan(raw[:, 0]), 7, np.where(raw[:, 0] < 0, 6, raw[:, 0])).astype(int)
    used = [np.ones(len(raw), dtype=bool), *(folds != fold for fold in range(N_FOLDS))]
    for lookup, rows in zip([complete, *(one for (one,) in without)], used, strict=True):
        for k in range(n_outputs):
            means = reference.mean_targets(levels.tolist(), Y[:, k], weight, rows, PRIOR_ROWS)
            expected = [means[level] for level in range(8)]
            np.testing.assert_allclose(lookup.table[:, k], expected, rtol=2e-3, atol=2e-3)


def test_sums_of_parts_add_up():
    raw, Y, weight = drawn()
    many, rows = Categories((0,), (6,)), np.arange(200)
    parts = [slice(0, 13), slice(13, 150), slice(150, 200)]
    total = sum(many.sums(raw[p], Y[p], weight[p], rows[p]) for p in parts)
    np.testing.assert_allclose(total, many.sums(raw, Y, weight, rows), rtol=1e-12)
    # folds, levels with others and gaps, weights and targets
    assert many.zero(1).shape == total.shape == (5, 8, 2)


@given(st.integers(0, 10**6), st.integers(0, 59), st.sampled_from([-1e6, -1.0, 0.0, 1e9]))
def test_the_own_target_of_a_row_does_not_matter(seed, row, target):
    """Nor do those of the other rows of its fold: its code is the same, to the last bit."""
    raw, Y, weight = drawn(60, seed=seed)
    fold = fold_of(np.arange(60))[row]
    _, before = lookups_of(raw, Y, weight)
    Y[row] = target
    _, after = lookups_of(raw, Y, weight)
    code, changed = (without[fold][0].of(raw[:, 0])[row] for without in (before, after))
    np.testing.assert_array_equal(code, changed)


def test_levels_without_rows_are_at_the_mean():
    raw, Y = np.zeros((50, 1)), np.random.RandomState(0).randn(50, 1)
    (complete,), _ = lookups_of(raw, Y, np.ones(50), n_levels=3)
    np.testing.assert_array_equal(complete.table[1:], 0)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e50])
def test_targets_that_do_not_vary_have_no_statistics(value):
    raw, _, weight = drawn()
    (complete,), without = lookups_of(raw, np.full((200, 1), value), weight)
    for lookup in (complete, *(one for (one,) in without)):
        np.testing.assert_array_equal(lookup.table, 0)


def test_folds_without_weight():
    """All rows of positive weight are in one fold: the others have nothing to learn from it."""
    raw, Y, _ = drawn()
    folds = fold_of(np.arange(200))
    _, without = lookups_of(raw, Y, (folds == 2).astype(float))
    np.testing.assert_array_equal(without[2][0].table, 0)
    assert np.abs(without[1][0].table).max() > 0


def test_tiny_weights_stay_finite():
    raw, Y, weight = drawn()
    weight[raw[:, 0] == 2] = 1e-40
    Y[raw[:, 0] != 2] = 0.0
    (complete,), _ = lookups_of(raw, Y, weight)
    assert np.isfinite(complete.table).all()
