"""The rules for holding rows out and comparing models."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus._holdout import (
    PairedComparison,
    best_of,
    draw_rows,
    largest_within_noise,
    least_loss_within_error,
    mask_out,
    mean_score,
    row_scores,
    split,
    split_positions,
    stratified_folds,
)
from nysplus._rows.blocks import Blocks
from nysplus._rows.targets import ClassTargets, ValueTargets

X = np.arange(60.0)[:, None]
CLASSES = Blocks(X, ClassTargets(np.arange(60) % 3, 3))


# ---- rows to hold out --------------------------------------------------------------------------


@pytest.mark.parametrize(("n_held_out", "n_others"), [(10, 20), (20, 40), (5, 1000)])
def test_split_rows_are_disjoint(n_held_out, n_others, rng):
    held_out, others = split(CLASSES, n_held_out, n_others, rng)
    assert len(held_out) == n_held_out
    assert others.n_rows == min(n_others, 60 - n_held_out)
    assert not {*held_out.X[:, 0]} & {*others.X[:, 0]}
    np.testing.assert_array_equal(held_out.labels.codes, held_out.X[:, 0] % 3)


@pytest.mark.parametrize(("n_rows", "expected"), [(60, 20), (5, 2), (3, 1), (2, 1)])
def test_at_most_a_third_is_held_out(n_rows, expected, rng):
    blocks = Blocks(X[:n_rows], ClassTargets(np.arange(n_rows) % 2, 2))
    held_out, others = split(blocks, 1000, 1000, rng)
    assert (len(held_out), others.n_rows) == (expected, n_rows - expected)


def test_a_single_row_is_used_for_both(rng):
    held_out, others = split(Blocks(X[:1], ValueTargets(X[:1])), 5, 5, rng)
    np.testing.assert_array_equal(held_out.X, others.X)


def test_rows_without_weight_are_not_drawn(rng):
    weight = np.repeat([0.0, 1.0], 30)
    held_out, others = split(Blocks(X, ValueTargets(X), weight), 100, 100, rng)
    assert {*held_out.X[:, 0], *others.X[:, 0]} == {*range(30, 60)}


def test_positions_are_a_permutation(rng):
    held_out, others = split_positions(30, 7, rng)
    assert len(held_out) == 7
    assert sorted([*held_out, *others]) == list(range(30))


def test_drawn_rows_are_in_order(rng):
    rows = draw_rows(CLASSES, 20, rng)
    assert rows.n_rows == 20
    assert (np.diff(rows.X[:, 0]) > 0).all()


def test_masked_rows_keep_their_places(rng):
    held_out, masked = mask_out(CLASSES, 15, rng)
    assert held_out.n_rows == 15
    weight = masked.block(slice(None)).weight
    np.testing.assert_array_equal(masked.X, X)
    np.testing.assert_array_equal(np.flatnonzero(weight == 0), held_out.X[:, 0])


@pytest.mark.parametrize(
    "targets",
    [ClassTargets(np.repeat([0, 1, 2], [10, 20, 30]), 3), ValueTargets(X**2)],
    ids=["classes", "values"],
)
def test_every_fold_has_rows_of_every_kind(targets, rng):
    folds = stratified_folds(targets, 5, rng)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    for fold in folds:
        assert (np.diff(fold) > 0).all()
        # rows are sorted by class, or by value
        assert np.histogram(fold, [0, 10, 30, 60])[0] == pytest.approx([2, 4, 6], abs=1)


# ---- scores ------------------------------------------------------------------------------------


def test_scores_of_classes_are_hits():
    rows = Blocks(X[:4], ClassTargets(np.array([0, 0, 1, 1]), 2), np.array([1.0, 1.0, 1.0, 3.0]))
    rows = rows.block(slice(None))

    def model(X):
        return np.array([[-1.0], [1.0], [1.0], [0.5]])

    np.testing.assert_array_equal(row_scores(model, rows), [1, 0, 1, 1])
    assert mean_score(model, rows) == pytest.approx(5 / 6)


def test_scores_of_values_are_squared_errors_with_a_minus():
    rows = Blocks(X[:2], ValueTargets(np.array([[1.0, 0.0], [2.0, 2.0]]))).block(slice(None))

    def model(X):
        return np.zeros((2, 2))

    np.testing.assert_array_equal(row_scores(model, rows), [-1, -8])
    assert mean_score(model, rows) == -4.5


# ---- choices -----------------------------------------------------------------------------------


def test_the_first_of_equal_candidates_is_chosen():
    assert best_of(iter(["a", "bbb", "ccc", "d"]), score=len) == "bbb"


def test_the_largest_ridge_within_noise_is_chosen():
    alphas, found = (0.1, 1.0, 10.0, 100.0), np.ones((4, 2))
    assert largest_within_noise(alphas, np.array([0.9, 0.91, 0.909, 0.5]), 1000, found) == 10.0
    assert largest_within_noise(alphas, np.array([0.9, 0.91, 0.909, 0.5]), 10**8, found) == 1.0
    assert largest_within_noise(alphas, np.ones(4), 10, found) == 100.0
    assert largest_within_noise(alphas, np.full(4, 1 + 1e-15), 10, found) == 100.0  # rounded sums


@pytest.mark.parametrize(
    ("rare", "chosen"),
    [
        ([9, 8, 7, 0], 10.0),  # the largest ridge does not find the class
        ([90, 80, 8, 8], 1.0),  # less than a tenth of 90
        ([90, 80, 10, 10], 100.0),
        ([0, 0, 0, 0], 100.0),  # no ridge finds it
        ([0, 0, 0, 9], 100.0),
    ],
)
def test_a_ridge_that_gives_up_a_class_is_not_an_equal(rare, chosen):
    alphas, accuracies = (0.1, 1.0, 10.0, 100.0), np.array([0.9001, 0.9, 0.9, 0.9])
    found = np.column_stack([[5000, 5001, 5002, 5003], rare]).astype(float)
    assert largest_within_noise(alphas, accuracies, 10_000, found) == chosen


def test_classes_are_compared_among_equal_ridges_only():
    """The ridge that finds the rare class is far worse, and none of the others gives it up."""
    found = np.array([[100.0, 10.0], [900.0, 0.0], [900.0, 0.0]])
    assert largest_within_noise((0.1, 1.0, 10.0), np.array([0.1, 0.9, 0.9]), 1000, found) == 10.0


def _with_rare_class(N=5000, n_rare=7):
    codes = np.arange(N) % 2
    codes[np.linspace(100, N - 1, n_rare).astype(int)] = 2
    return Blocks(np.arange(float(N))[:, None], ClassTargets(codes, 3)), np.flatnonzero(codes == 2)


def test_drawn_rows_have_rows_of_every_class(rng):
    blocks, rare = _with_rare_class()
    codes = draw_rows(blocks, 100, rng).targets.codes
    assert (codes == 2).sum() == len(rare)
    assert 100 <= len(codes) <= 100 + len(rare)


def test_a_draw_from_balanced_classes_is_a_plain_draw():
    rows = draw_rows(CLASSES, 20, np.random.RandomState(0)).X[:, 0]
    np.testing.assert_array_equal(rows, np.sort(CLASSES.sample(20, np.random.RandomState(0))))


def test_half_of_a_rare_class_is_masked_out(rng):
    blocks, rare = _with_rare_class()
    held_out, masked = mask_out(blocks, 50, rng)
    n_held_out = (held_out.targets.codes == 2).sum()
    assert len(rare) // 2 <= n_held_out < len(rare)
    assert np.count_nonzero(masked.sample_weight[rare]) == len(rare) - n_held_out


BEFORE = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
AFTER = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
WEIGHT = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("accuracies", "losses", "chosen"),
    [
        ([0.9, 0.88, 0.8], [0.5, 0.4, 0.1], 1),  # 0.88 is within one standard error, 0.03
        ([0.9, 0.86, 0.8], [0.5, 0.4, 0.1], 0),
        ([1.0, 1.0, 0.99], [0.2, 0.1, 0.0], 1),  # without an error, accuracy comes first
    ],
)
def test_the_least_loss_of_about_the_best_accuracy_is_chosen(accuracies, losses, chosen):
    got = least_loss_within_error(np.array(accuracies), np.array(losses), np.ones(100))
    assert got == chosen


def test_weights_make_the_standard_error_of_fewer_rows():
    weight = np.r_[np.ones(20), np.full(980, 1e-9)]
    accuracies, losses = np.array([0.9, 0.84]), np.array([0.5, 0.4])
    assert least_loss_within_error(accuracies, losses, weight) == 1
    assert least_loss_within_error(accuracies, losses, np.ones(1000)) == 0


def test_models_are_compared_row_by_row():
    compared = PairedComparison.of(BEFORE, AFTER, WEIGHT, 1.0)
    assert (compared.before, compared.after, compared.n_rows) == (0.4, 0.7, 7)
    # differences times weights: −2, 1, 1, 3
    assert compared.errors == pytest.approx(3.0 / np.sqrt(4 + 1 + 1 + 9))
    assert not compared.better
    assert PairedComparison.of(BEFORE, AFTER, WEIGHT, 0.5).better


def test_differences_are_within_bounds_or_not():
    compared = PairedComparison.of(BEFORE, AFTER, WEIGHT, 1.0)
    assert compared.within(-1.0, 2.0)
    assert compared.within(-np.inf, np.inf)
    assert not compared.within(1.0, 2.0)
    clear = PairedComparison.of(np.zeros(100), np.ones(100), np.ones(100), 1.0)
    assert clear.errors == 10.0
    assert not clear.within(-1.0, 2.0)


def test_equal_models_are_not_better():
    same = np.array([1.0, 0.0])
    assert not PairedComparison.of(same, same, np.ones(2), 1.0).better


def test_comparisons_are_written_in_the_units_of_the_targets():
    classes = PairedComparison.of(BEFORE, AFTER, WEIGHT, 1.0)
    assert str(classes) == "40.00 % before, 70.00 % after on 7 held-out rows"
    values = PairedComparison.of(np.full(2000, -4.0), np.full(2000, -0.25), np.ones(2000), 1.0)
    assert str(values) == "error 2 before, 0.5 after on 2,000 held-out rows"
