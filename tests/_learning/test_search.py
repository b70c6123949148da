"""The search: folds, rules, time, and the unrefined model without held-out rows."""

from __future__ import annotations

from dataclasses import replace

import factories
import numpy as np
import pytest

from nysplus._bytes.budget import Size
from nysplus._learning.candidates import Candidate, Deadline, Recipe, SearchRules
from nysplus._learning.refine import Refinement
from nysplus._learning.search import RefinementSearch
from nysplus._learning.setup import TrainingSetup
from nysplus._learning.training import TrainingOptions
from nysplus.landmarks import Uniform


@pytest.fixture
def search(moons):
    """Return a search on 300 rows, with an unrefined model of 30 landmarks."""
    X, y = moons
    problem = factories.problem(X, y, alphas=(1e-3,))
    start = problem.fit(X[:30], np.random.RandomState(0)).expansion
    rows = problem.blocks.gather(np.arange(300))
    setup = TrainingSetup.of(rows, 2, np.random.RandomState(0))
    return RefinementSearch(problem, Uniform(), start, rows, 0, Deadline(None), setup=setup)


def test_every_row_is_in_one_fold_and_classes_are_spread(search, moons):
    folds, y = search.folds(), moons[1]
    assert sorted(np.concatenate(folds)) == list(range(300))
    for fold in folds:
        assert abs(y[fold].mean() - y.mean()) < 0.02


def test_the_unrefined_model_is_scored_on_rows_that_it_has_not_seen(search, moons):
    X = moons[0]
    for positions in search.folds():
        fold = search.hold_out(positions)
        held_out = {tuple(row) for row in X[positions]}
        assert not held_out & {tuple(row) for row in fold.landmarks}
        assert set(fold.others) == set(range(300)) - set(positions)
    # with many rows per landmark it is not fitted again
    start = replace(search.start, landmarks=X[:2], dual_coef=search.start.dual_coef[:2])
    fold = replace(search, start=start).hold_out(search.folds()[0])
    np.testing.assert_array_equal(fold.landmarks, X[:2])


def test_the_number_of_folds_follows_the_rows():
    assert [SearchRules().count_folds(n) for n in (10_000, 10_001, 200_000)] == [5, 10, 40]


def test_the_first_recipe_is_kept_unless_another_is_convincing(search):
    recipes = Refinement(n_epochs=3).recipes(300)
    eager = replace(search, rules=SearchRules(convincing=-np.inf)).run([Size(30, 2)], recipes)
    best = int(np.argmax(eager.candidate_scores))
    assert best > 0
    assert eager.candidate.recipe is recipes[best]
    stubborn = replace(search, rules=SearchRules(convincing=np.inf)).run([Size(30, 2)], recipes)
    assert stubborn.candidate.recipe is recipes[0]
    assert stubborn.candidate_scores == eager.candidate_scores


def test_runs_are_lengthened_while_that_helps(search):
    """From a short run of a quarter to a complete run, then twice and four times as long."""
    rules = SearchRules(few_rows=100, short_rows=100, short_cost=0.0)
    recipes = [
        replace(recipe, max_lengthening=4.0) for recipe in Refinement(n_epochs=1).recipes(300)
    ]
    found = replace(search, rules=rules).run([Size(30, 2)], recipes)
    assert found.candidate.length in (0.25, 1.0, 2.0, 4.0)
    n_steps = found.candidate.recipe.options.n_steps
    assert found.candidate.options.n_steps == max(1, int(found.candidate.length * n_steps))
    assert found.candidate.length > 0.25  # a quarter of an epoch is a step


def test_a_candidate_costs_what_its_run_does():
    recipe = Recipe(0.15, TrainingOptions(100, 10))
    whole, half = (Candidate(Size(20, 3), recipe, length) for length in (1.0, 0.5))
    assert whole.cost(5, 2) == 1000 * (6 * 20 * (3 + 2) + 4 * 5 * 3) == 2 * half.cost(5, 2)


def test_time_is_shared():
    assert Deadline(None).share(0.5) is None
    assert 0 < Deadline(10.0).share(0.5) <= 5.0
    assert Deadline(1e-9).share(0.5) > 0
