"""Folds of given and synthetic rows."""

from __future__ import annotations

from dataclasses import replace

import factories
import numpy as np
import pytest

from nysplus._learning.candidates import Deadline
from nysplus._learning.search import RefinementSearch
from nysplus._learning.setup import TrainingSetup
from nysplus._rows.taught_targets import TaughtClasses
from nysplus.landmarks import Uniform

GIVEN, ALL = 60, 100


@pytest.fixture
def search(rng):
    """Return a search on 60 given rows and 40 rows that were made of two of them each."""
    X, codes = factories.classes(ALL, 3, 3)
    own = np.repeat(np.arange(GIVEN)[:, None], 2, axis=1)
    made = np.array([rng.permutation(GIVEN)[:2] for _ in range(ALL - GIVEN)])
    targets = TaughtClasses(codes, 3, np.eye(3)[codes], np.vstack([own, made]))
    problem = factories.problem(X, codes)
    problem = replace(problem, blocks=replace(problem.blocks, targets=targets))
    start = problem.fit(X[:10], np.random.RandomState(0)).expansion
    # in another order than that of their numbers
    rows = problem.blocks.gather(rng.permutation(ALL))
    setup = TrainingSetup.of(rows, 2, np.random.RandomState(0))
    return RefinementSearch(problem, Uniform(), start, rows, 0, Deadline(None), setup=setup)


def test_synthetic_rows_are_never_held_out(search):
    held_out = np.concatenate(search.folds())
    assert sorted(search.rows.numbers[held_out]) == list(range(GIVEN))


def test_rows_made_of_held_out_rows_are_not_trained_on(search):
    origin = search.rows.targets.origin
    for positions in search.folds():
        fold = search.hold_out(positions)
        numbers = search.rows.numbers[positions]
        apart = ~np.isin(origin, numbers).any(axis=1)
        np.testing.assert_array_equal(fold.others, np.flatnonzero(apart))
        assert GIVEN - len(positions) < len(fold.others) < ALL - len(positions)
