"""Targets that another model has set."""

from __future__ import annotations

import numpy as np
import pytest

from nysplus._rows.targets import ClassTargets, ValueTargets
from nysplus._rows.taught_targets import TaughtClasses, TaughtValues


def certain(codes, n_classes):
    """Return classes as probabilities of zero and one."""
    own = np.arange(len(codes))
    return TaughtClasses(codes, n_classes, np.eye(n_classes)[codes], np.column_stack([own, own]))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_of_zero_and_one_are_classes(n_classes, rng):
    codes = rng.randint(n_classes, size=30)
    hard, soft = ClassTargets(codes, n_classes), certain(codes, n_classes)
    scores, weight = rng.standard_normal((30, hard.n_outputs)), rng.rand(30)
    np.testing.assert_array_equal(soft.coded(), hard.coded())
    np.testing.assert_array_equal(soft.row_scores(scores), hard.row_scores(scores))
    for name in ("mass", "mean", "variance"):
        got, expected = (getattr(t.spread(weight), name) for t in (soft, hard))
        np.testing.assert_allclose(got, expected, atol=1e-12)
    F, choices, weights = soft.choices(scores, weight)
    chosen = weights > 0
    np.testing.assert_array_equal(F[chosen], scores)
    np.testing.assert_array_equal(choices[chosen], codes)
    np.testing.assert_array_equal(weights[chosen], weight)


def test_rows_keep_their_probabilities_and_origin(rng):
    P = rng.dirichlet(np.ones(3), 8)
    parents = np.column_stack([np.arange(8), np.arange(8)[::-1]])
    targets = TaughtClasses(P.argmax(axis=1), 3, P, parents)
    again = targets.take(np.arange(3)).joined(targets.take(np.arange(3, 8)))
    for name in ("codes", "probabilities", "origin"):
        np.testing.assert_array_equal(getattr(again, name), getattr(targets, name))
    np.testing.assert_allclose(targets.coded(), 2 * P - 1)


def test_values_are_learned_from_the_teacher_and_compared_with_the_truth(rng):
    taught, truth = rng.standard_normal((2, 8, 1))
    targets = TaughtValues(taught, truth, np.zeros((8, 2), dtype=int))
    np.testing.assert_array_equal(targets.coded(), taught)
    scores = rng.standard_normal((8, 1))
    np.testing.assert_array_equal(
        targets.row_scores(scores), ValueTargets(truth).row_scores(scores)
    )
    again = targets.take(np.arange(3)).joined(targets.take(np.arange(3, 8)))
    for name in ("Y", "truth", "origin"):
        np.testing.assert_array_equal(getattr(again, name), getattr(targets, name))
