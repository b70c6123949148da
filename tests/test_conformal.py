"""Bounds of nonconformity scores and ranks of similarity against their definitions."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
import scipy.sparse as sp

from nysplus._ridge.probability import Scaling
from nysplus._rows.accumulators import ScoredRows
from nysplus._rows.target_codes import ClassCode, LabelCode, ValueCode
from nysplus.conformal import (
    LEVELS,
    NOVELTY_LEVELS,
    Calibration,
    Directions,
    Novelty,
    bounds,
    calibrated,
    check_confidence,
    rows_needed,
)


def scored(scores, Y, counts=None):
    n = len(scores)
    counts = np.ones(n) if counts is None else counts
    return ScoredRows(np.arange(n), scores, Y, counts, counts, np.zeros(n))


@pytest.mark.parametrize("n", [1, 9, 19, 57, 100, 1234])
def test_bounds_are_the_scores_of_the_finite_sample_ranks(rng, n):
    scores = rng.rand(n)
    found, ordered = bounds(scores, np.ones(n)), np.sort(scores)
    for level, bound in zip(LEVELS, found, strict=True):
        rank = ceil(round((n + 1) * level, 6))
        assert np.isinf(bound) if rank > n else bound == pytest.approx(ordered[rank - 1], rel=1e-6)
        assert np.isinf(bound) == (n < rows_needed(level))


def test_bounds_are_never_below_the_score_they_stand_for(rng):
    """Rounding to float32 must not exclude the row itself."""
    scores = rng.rand(999)
    found = bounds(scores, np.ones(999))[LEVELS == 0.9]
    assert found[0] >= np.sort(scores)[899]


def test_weights_of_rows_equal_repeated_rows_in_the_distribution(rng):
    scores, weight = rng.rand(500), rng.randint(1, 4, 500).astype(float)
    once = bounds(scores, weight)
    again = bounds(np.repeat(scores, weight.astype(int)), np.ones(int(weight.sum())))
    middle = LEVELS <= 0.95
    ranks = [np.searchsorted(np.sort(scores), part[middle]) for part in (once, again)]
    assert np.abs(ranks[0] - ranks[1]).max() <= 2  # of 500: the effective number of rows differs


def test_confidences_between_levels_are_raised_to_the_next(rng):
    calibration = calibrated(
        scored(rng.randn(2000, 1), np.zeros((2000, 1))),
        ValueCode(1, flat=True),
        None,
        "leave-one-out",
    )
    assert calibration.at(0.8999999999) == calibration.at(0.9) < calibration.at(0.9001)
    assert calibration.at(0.9001) == calibration.at(0.91)
    assert calibration.at(0.01) == calibration.at(0.05)


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, -0.5, 90, "90%", None, True, np.nan])
def test_confidences_outside_of_0_and_1_are_refused(confidence):
    with pytest.raises(ValueError, match=r"between 0 and 1, such as 0\.9"):
        check_confidence(confidence)


def test_a_confidence_above_all_levels_is_refused():
    with pytest.raises(ValueError, match=r"above 0\.9999"):
        check_confidence(0.99999)


@pytest.mark.parametrize(("confidence", "n"), [(0.5, 1), (0.9, 9), (0.95, 19), (0.99, 99)])
def test_the_number_of_rows_that_a_confidence_needs(rng, confidence, n):
    assert rows_needed(confidence) == n
    code = ValueCode(1, flat=True)
    enough = calibrated(scored(rng.randn(n, 1), np.zeros((n, 1))), code, None, "leave-one-out")
    assert np.isfinite(enough.at(confidence)).all()
    if n > 1:
        few = scored(rng.randn(n - 1, 1), np.zeros((n - 1, 1)))
        with pytest.raises(ValueError, match=f"at least {n} rows, and this model has {n - 1}"):
            calibrated(few, code, None, "leave-one-out").at(confidence)


def test_values_have_a_column_of_bounds_for_each_output(rng):
    Y = rng.randn(400, 2) * [1.0, 10.0]
    found = calibrated(
        scored(np.zeros((400, 2)), Y), ValueCode(2, flat=False), None, "leave-one-out"
    )
    expected = np.sort(np.abs(Y), axis=0)[ceil(401 * 0.9) - 1]
    np.testing.assert_allclose(found.at(0.9), expected, rtol=1e-6)


def test_classes_have_bounds_of_one_minus_their_probability(rng):
    F, codes = rng.randn(400, 3), rng.randint(0, 3, 400)
    Y = 2.0 * np.eye(3)[codes] - 1.0
    code, scaling = ClassCode(np.array(["a", "b", "c"])), Scaling(1.7, multilabel=False)
    own = 1 - scaling.probabilities(F)[np.arange(400), codes]
    found = calibrated(scored(F, Y), code, scaling, "leave-one-out")
    np.testing.assert_allclose(found.at(0.9), np.sort(own)[ceil(401 * 0.9) - 1], rtol=1e-6)
    by_class = calibrated(scored(F, Y), code, scaling, "leave-one-out", class_conditional=True)
    for c in range(3):
        mine = np.sort(own[codes == c])
        expected = mine[ceil(round((len(mine) + 1) * 0.8, 6)) - 1]
        assert by_class.at(0.8)[c] == pytest.approx(expected, rel=1e-6)


def test_labels_have_no_bounds(rng):
    F = rng.randn(20, 2)
    assert calibrated(scored(F, np.sign(F)), LabelCode(2), None, "leave-one-out") is None


def test_errors_of_class_conditional_bounds_name_the_class():
    table = np.full((len(LEVELS), 2), np.inf, dtype=np.float32)
    calibration = Calibration(table, (50, 3), True, "calibration rows")
    with pytest.raises(ValueError, match="9 rows of class 'rare', and this model has 3"):
        calibration.at(0.9, ["common", "rare"])


def test_novelty_is_the_share_of_rows_that_are_more_similar(rng):
    known = rng.rand(5000)
    novelty = Novelty.of(known, np.ones(5000))
    new = rng.rand(200)
    expected = (known[None] > new[:, None]).mean(axis=1)
    np.testing.assert_allclose(novelty(new), expected, atol=0.02)
    np.testing.assert_array_equal(novelty(np.array([-1.0, 2.0])), [1.0, 0.0])
    assert (np.diff(novelty(np.sort(new))) <= 0).all()
    levels = novelty(novelty.similarities)
    np.testing.assert_allclose(levels, NOVELTY_LEVELS, atol=1e-12)


def narrow(n, rng):
    """Rows whose first column is the sum of the second and the third, nearly."""
    X = rng.randn(n, 4) * [1.0, 1.0, 5.0, 1.0] + 100.0
    X[:, 0] = X[:, 1] + X[:, 2] + 0.01 * rng.randn(n)
    return X


def test_directions_are_those_of_the_least_eigenvalues(rng):
    X = narrow(2000, rng)
    found = Directions.of(X, np.ones(2000), np.array([True] * 3 + [False]))
    assert found.weights.shape == (4, 3)
    assert not found.weights[3].any()
    scaled = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :3]
    values, vectors = np.linalg.eigh(scaled.T @ scaled / 2000)
    expected = (scaled @ vectors) ** 2 / np.maximum(values, 1e-3)
    np.testing.assert_allclose(found.squares(X), expected.sum(axis=1), rtol=1e-3, atol=1e-4)
    gaps = X.copy()
    gaps[:, 1] = np.nan
    at_mean = X.copy()
    at_mean[:, 1] = found.center[1]
    np.testing.assert_allclose(found.squares(gaps), found.squares(at_mean))
    np.testing.assert_allclose(found.squares(sp.csr_matrix(X)), found.squares(X), rtol=1e-4)
    assert found.squares(np.full((1, 4), 1e300))[0] > 1e300


def test_weights_of_rows_equal_repeated_rows_in_directions(rng):
    X, weight = narrow(300, rng), rng.randint(1, 4, 300)
    numeric = np.ones(4, dtype=bool)
    once = Directions.of(X, weight.astype(float), numeric)
    again = Directions.of(np.repeat(X, weight, axis=0), np.ones(weight.sum()), numeric)
    np.testing.assert_allclose(once.squares(X), again.squares(X), rtol=1e-3)


def test_columns_without_numbers_or_variance_have_no_directions(rng):
    X = rng.randn(50, 2)
    assert Directions.of(X, np.ones(50), np.zeros(2, dtype=bool)) is None
    assert Directions.of(np.full((50, 2), 0.1), np.ones(50), np.ones(2, dtype=bool)) is None


def test_the_larger_of_two_ranks_is_a_rank_again(rng):
    X, similarities = narrow(4000, rng), rng.rand(4000)
    found = Directions.of(X[:2000], np.ones(2000), np.ones(4, dtype=bool))
    squares = found.squares(X[2000:])
    novelty = Novelty.of_both(similarities[2000:], squares, np.ones(2000), found)
    ranks = np.sort(novelty(similarities[:2000], X[:2000]))
    np.testing.assert_allclose(ranks, np.linspace(0, 1, 2000), atol=0.05)
    strange = X[:100] + np.eye(4)[0]  # a hundred deviations of the sum
    np.testing.assert_array_equal(novelty(np.full(100, 0.9), strange), 1.0)
    np.testing.assert_array_equal(novelty(np.full(100, -1.0), X[:100]), 1.0)
