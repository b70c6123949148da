"""The search: folds, rules, time, and the unrefined model without held-out rows."""

from __future__ import annotations

from dataclasses import replace

import factories
import numpy as np
import pytest

from nysplus._bytes.budget import Budget, PartBits, Size
from nysplus._learning.candidates import Candidate, Deadline, Recipe, SearchRules
from nysplus._learning.refinement import Refinement
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
    start = replace(search.start, landmarks=X[:1], dual_coef=search.start.dual_coef[:1])
    fold = replace(search, start=start).hold_out(search.folds()[0])
    np.testing.assert_array_equal(fold.landmarks, X[:1])


def test_the_number_of_folds_follows_the_rows():
    assert [SearchRules().count_folds(n) for n in (10_000, 10_001, 200_000)] == [5, 10, 40]


# Rules by which no rows are clean, and recipes are compared.
NOISY = SearchRules(clean_errors=-1.0)


def test_the_first_recipe_is_kept_unless_another_is_convincing(search):
    recipes = Refinement(n_epochs=3).recipes(300)
    eager = replace(search, rules=replace(NOISY, convincing=-np.inf)).run(Size(30, 2), recipes)
    best = int(np.argmax(eager.candidate_scores))
    assert best > 0
    assert eager.candidate.recipe is recipes[best]
    stubborn = replace(search, rules=replace(NOISY, convincing=np.inf)).run(Size(30, 2), recipes)
    assert stubborn.candidate.recipe is recipes[0]
    assert stubborn.candidate_scores == eager.candidate_scores


def test_clean_rows_get_one_long_run(search):
    recipes = Refinement().recipes(300)
    found = replace(search, rules=SearchRules(clean_errors=1.0)).run(Size(30, 2), recipes)
    assert len(found.candidate_scores) == 1
    assert found.candidate.recipe is recipes[0]
    assert found.candidate.length == pytest.approx(300 / 30 / SearchRules().length_ratio)


@pytest.mark.parametrize(
    ("n", "run_cost", "length"), [(5, 1e30, 6.0), (30, 1e30, 10 / 8), (30, 0.0, 1.0)]
)
def test_long_runs_are_limited_by_rows_per_landmark_and_by_operations(search, n, run_cost, length):
    (recipe, *_) = Refinement().recipes(300)
    run = replace(search, rules=SearchRules(run_cost=run_cost))._long(Size(n, 2), recipe)
    assert run.length == pytest.approx(length)


def test_long_runs_on_images_have_few_epochs(search):
    (recipe, *_) = Refinement().recipes(300, rate=0.5)
    assert recipe.options.learning_rate == 0.02
    epochs = recipe.options.n_rows / 300
    rules = SearchRules(run_cost=1e30, image_epochs=2.0 * epochs)
    run = replace(search, rules=rules, images=True)._long(Size(5, 2), recipe)
    assert run.length == pytest.approx(2.0)


def test_models_of_noisy_rows_grow_while_that_helps(search):
    recipes = Refinement(n_epochs=3).recipes(300)
    rules = replace(NOISY, least_rung=2)
    for rising, n in ((np.inf, 10), (-np.inf, 100)):
        grown = replace(search, budget=Budget(4096), rules=replace(rules, rising=rising))
        found = grown.run(Size(100, 2), recipes).candidate.size
        assert (found.n, found.rank) == (n, 2)
        assert found.bits == PartBits(8, 8, 8)  # the few landmarks leave room


def test_without_a_budget_the_number_of_landmarks_is_the_users(search):
    recipes = Refinement(n_epochs=3).recipes(300)
    found = replace(search, rules=NOISY).run(Size(30, 2), recipes)
    assert found.candidate.size == Size(30, 2)


def test_runs_of_the_largest_model_become_longer_while_that_helps(search):
    recipes = [replace(recipe, max_length=5.0) for recipe in Refinement(n_epochs=1).recipes(300)]
    for rising, length in ((-np.inf, 4.0), (np.inf, 1.0)):
        rules = replace(NOISY, rising=rising)
        found = replace(search, rules=rules).run(Size(30, 2), recipes)
        assert found.candidate.length == length
        n_steps = found.candidate.recipe.options.n_steps
        assert found.candidate.options.n_steps == int(length * n_steps)


def test_a_candidate_costs_what_its_run_does():
    recipe = Recipe(0.15, TrainingOptions(100, 10))
    whole, half = (Candidate(Size(20, 3), recipe, length) for length in (1.0, 0.5))
    assert whole.cost(5, 2) == 1000 * (6 * 20 * (3 + 2) + 4 * 5 * 3) == 2 * half.cost(5, 2)


def test_folds_are_held_out_as_long_as_there_is_time(search):
    positions = search.folds()
    assert len(search.hold_out_in_time(positions)) == len(positions)
    hurried = replace(search, deadline=Deadline(1e-9))
    assert len(hurried.hold_out_in_time(positions)) == 1


def test_without_time_to_look_nothing_is_compared(search):
    found = replace(search, rules=NOISY, deadline=Deadline(1e-9)).run(
        Size(30, 2), Refinement().recipes(300)
    )
    assert len(found.candidate_scores) == 1
    assert found.candidate.size.n == 30


def test_time_is_shared():
    assert Deadline(None).share(0.5) is None
    assert not Deadline(None).over
    assert Deadline(1e-9).over
    assert 0 < Deadline(10.0).share(0.5) <= 5.0
    assert Deadline(1e-9).share(0.5) > 0
